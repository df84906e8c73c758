// σ² exp(−s/2), s = Σ_d (2 sin(π(x_d − z_d)/p)/ℓ_d)².
#include <algorithm>
#include <array>

#include "kernel_leaf.h"
#include "kernel_loops.h"

namespace ample {
namespace {

constexpr std::size_t kPeriod = 2;

class PeriodicLeaf final : public UniformLeaf {
 public:
  using UniformLeaf::UniformLeaf;

  void evaluate(const MatrixRef& X, const MatrixRef& Z, Eigen::Ref<Matrix> K) const override {
    const Matrix x = in_periods(Z, X);
    const Matrix z = in_periods(Z, Z);
    if (K.cols() > 1 && (is_far(x) || is_far(z))) {
      // Differences from each point of Z itself are exact where it matters.
      for (Index j = 0; j < K.cols(); ++j) evaluate(X, Z.middleRows(j, 1), K.col(j));
      return;
    }
    for (Index j = 0; j < K.cols(); ++j) {
      for_chunks(K.rows(), [&](Index first, Index rows) {
        double* s = &K(first, j);
        distance(x, z, first, rows, j, s);
        loops::se_value(s, rows, scalar(kVariance));
      });
    }
  }

  void pull_back(const MatrixRef& X, const MatrixRef& Z, const MatrixRef& K_bar,
                 const Adjoint& into) const override {
    const Matrix x = in_periods(Z, X);
    const Matrix z = in_periods(Z, Z);
    const double per_period = 1.0 / scalar(kPeriod);  // ∂(x in periods)/∂x
    double variance_bar = 0.0;
    double log_period_bar = 0.0;
    Vector lengthscale_bar = Vector::Zero(x.cols());
    std::array<double, kChunk> s;
    std::array<double, kChunk> g;
    std::array<double, kChunk> w;
    for (Index j = 0; j < K_bar.cols(); ++j) {
      for_chunks(K_bar.rows(), [&](Index first, Index rows) {
        const double* adjoint = K_bar.col(j).data() + first;
        distance(x, z, first, rows, j, s.data());
        loops::se_slope(s.data(), rows, g.data(), w.data());
        loops::multiply(w.data(), adjoint, rows, scalar(kVariance), w.data());
        variance_bar += loops::dot(g.data(), adjoint, rows);
        for (Index a = 0; a < x.cols(); ++a) {
          double* x_bar = into.X != nullptr ? &(*into.X)(first, column(a)) : nullptr;
          const auto sums = loops::weigh_sines(&x(first, a), z(j, a), w.data(), rows,
                                               value(kLengthscale, a), per_period, x_bar);
          lengthscale_bar[a] += sums.lengthscale;
          log_period_bar += sums.log_period;
          if (into.Z != nullptr) (*into.Z)(j, column(a)) -= per_period * sums.x;
        }
      });
    }
    if (into.theta == nullptr) return;
    into.theta[offset(kVariance)] += variance_bar;
    if (is_ard(kLengthscale)) {
      for (Index a = 0; a < x.cols(); ++a)
        into.theta[offset(kLengthscale) + a] += lengthscale_bar[a];
    } else {
      into.theta[offset(kLengthscale)] += lengthscale_bar.sum();
    }
    into.theta[offset(kPeriod)] += log_period_bar * per_period;
  }

 private:
  [[nodiscard]] Matrix in_periods(const MatrixRef& origin, const MatrixRef& X) const {
    return scaled_from(origin, X, [&](Index) { return 1.0 / scalar(kPeriod); });
  }

  void distance(const Matrix& x, const Matrix& z, Index first, Index rows, Index j,
                double* s) const {
    std::fill_n(s, rows, 0.0);
    for (Index a = 0; a < x.cols(); ++a) {
      loops::add_sine_distance(&x(first, a), z(j, a), rows, value(kLengthscale, a), s);
    }
  }
};

}  // namespace

NodePtr make_periodic(const LeafType& type, std::vector<Positive> fields, Dimensions dims) {
  return std::make_shared<PeriodicLeaf>(type, std::move(fields), 0, std::move(dims));
}

}  // namespace ample
