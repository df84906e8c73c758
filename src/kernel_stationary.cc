// σ² g(s), s = Σ_d (x_d − z_d)²/ℓ_d²: squared exponential, Matérn 1/2, 3/2, 5/2, rational
// quadratic.
#include <array>

#include "check.h"
#include "kernel_leaf.h"
#include "kernel_loops.h"

namespace ample {
namespace {

constexpr std::size_t kAlpha = 2;

class Stationary final : public UniformLeaf {
 public:
  using UniformLeaf::UniformLeaf;

  void evaluate(const MatrixRef& X, const MatrixRef& Z, Eigen::Ref<Matrix> K) const override {
    const Matrix x = in_lengthscales(Z, X);
    const Matrix z = in_lengthscales(Z, Z).transpose();
    if (K.cols() > 1 && (is_far(x) || is_far(z))) {
      // Differences from each point of Z itself are exact where it matters.
      for (Index j = 0; j < K.cols(); ++j) evaluate(X, Z.middleRows(j, 1), K.col(j));
      return;
    }
    for (Index j = 0; j < K.cols(); ++j) {
      for_chunks(K.rows(), [&](Index first, Index rows) {
        double* s = &K(first, j);
        loops::squared_distance(&x(first, 0), x.rows(), rows, x.cols(), z.col(j).data(), s);
        value(s, rows);
      });
    }
  }

  // With w = K̄ σ² dg/ds and δ_d = (x_d − z_d)/ℓ_d:  ∂s/∂ℓ_d = −2δ_d²/ℓ_d,  ∂s/∂x_d = 2δ_d/ℓ_d.
  void pull_back(const MatrixRef& X, const MatrixRef& Z, const MatrixRef& K_bar,
                 const Adjoint& into) const override {
    const Matrix x = in_lengthscales(Z, X);
    const Matrix z = in_lengthscales(Z, Z).transpose();
    const Index A = x.cols();
    const double variance = scalar(kVariance);
    const bool by_dimension = is_ard(kLengthscale) || into.X != nullptr || into.Z != nullptr;
    double variance_bar = 0.0;
    double alpha_bar = 0.0;
    double isotropic = 0.0;            // Σ w s
    Vector squares = Vector::Zero(A);  // Σ w δ_d²
    std::array<double, kChunk> s;
    std::array<double, kChunk> g;
    std::array<double, kChunk> w;
    std::array<double, kChunk> dalpha;
    for (Index j = 0; j < K_bar.cols(); ++j) {
      for_chunks(K_bar.rows(), [&](Index first, Index rows) {
        const double* adjoint = K_bar.col(j).data() + first;
        loops::squared_distance(&x(first, 0), x.rows(), rows, A, z.col(j).data(), s.data());
        slope(s.data(), rows, g.data(), w.data(), dalpha.data());
        loops::multiply(w.data(), adjoint, rows, variance, w.data());
        if (into.theta != nullptr) {
          variance_bar += loops::dot(g.data(), adjoint, rows);
          if (kind() == LeafKind::rational_quadratic) {
            alpha_bar += variance * loops::dot(dalpha.data(), adjoint, rows);
          }
        }
        if (!by_dimension) {
          isotropic += loops::dot(w.data(), s.data(), rows);
          return;
        }
        for (Index a = 0; a < A; ++a) {
          const double factor = 2.0 / Leaf::value(kLengthscale, a);
          double* x_bar = into.X != nullptr ? &(*into.X)(first, column(a)) : nullptr;
          const auto moments =
              loops::weigh_differences(&x(first, a), z(a, j), w.data(), rows, factor, x_bar);
          squares[a] += moments.second;
          if (into.Z != nullptr) (*into.Z)(j, column(a)) -= factor * moments.first;
        }
      });
    }
    if (into.theta == nullptr) return;
    into.theta[offset(kVariance)] += variance_bar;
    double* lengthscale_bar = into.theta + offset(kLengthscale);
    if (is_ard(kLengthscale)) {
      for (Index a = 0; a < A; ++a) {
        lengthscale_bar[a] -= 2.0 * squares[a] / Leaf::value(kLengthscale, a);
      }
    } else {
      *lengthscale_bar -= 2.0 * (by_dimension ? squares.sum() : isotropic) / scalar(kLengthscale);
    }
    if (kind() == LeafKind::rational_quadratic) into.theta[offset(kAlpha)] += alpha_bar;
  }

 private:
  [[nodiscard]] Matrix in_lengthscales(const MatrixRef& origin, const MatrixRef& X) const {
    return scaled_from(origin, X, [&](Index a) { return 1.0 / Leaf::value(kLengthscale, a); });
  }

  void value(double* s, Index n) const {
    const double variance = scalar(kVariance);
    switch (kind()) {
      case LeafKind::squared_exponential:
        return loops::se_value(s, n, variance);
      case LeafKind::matern12:
        return loops::matern12_value(s, n, variance);
      case LeafKind::matern32:
        return loops::matern32_value(s, n, variance);
      case LeafKind::matern52:
        return loops::matern52_value(s, n, variance);
      case LeafKind::rational_quadratic:
        return loops::rq_value(s, n, variance, scalar(kAlpha));
      default:
        AMPLE_ASSERT(false);
    }
  }

  void slope(const double* s, Index n, double* g, double* dg, double* dalpha) const {
    switch (kind()) {
      case LeafKind::squared_exponential:
        return loops::se_slope(s, n, g, dg);
      case LeafKind::matern12:
        return loops::matern12_slope(s, n, g, dg);
      case LeafKind::matern32:
        return loops::matern32_slope(s, n, g, dg);
      case LeafKind::matern52:
        return loops::matern52_slope(s, n, g, dg);
      case LeafKind::rational_quadratic:
        return loops::rq_slope(s, n, scalar(kAlpha), g, dg, dalpha);
      default:
        AMPLE_ASSERT(false);
    }
  }
};

}  // namespace

NodePtr make_stationary(const LeafType& type, std::vector<Positive> fields, Dimensions dims) {
  return std::make_shared<Stationary>(type, std::move(fields), 0, std::move(dims));
}

}  // namespace ample
