// Kernels of the inner product: constant, linear Σ_d σ_d² x_d z_d, polynomial (σ² xᵀz +
// offset)^degree.
#include <array>
#include <cmath>

#include "kernel_leaf.h"
#include "kernel_loops.h"

namespace ample {
namespace {

constexpr std::size_t kOffset = 1;

class ConstantLeaf final : public UniformLeaf {
 public:
  using UniformLeaf::UniformLeaf;

  void evaluate(const MatrixRef& /*X*/, const MatrixRef& /*Z*/,
                Eigen::Ref<Matrix> K) const override {
    K.setConstant(scalar(kVariance));
  }
  void pull_back(const MatrixRef& /*X*/, const MatrixRef& /*Z*/, const MatrixRef& K_bar,
                 const Adjoint& into) const override {
    if (into.theta != nullptr) into.theta[0] += K_bar.sum();
  }
};

/// p^degree with p = offset + Σ_d σ_d² x_d z_d; linear is degree 1 without an offset.
class DotProduct final : public Leaf {
 public:
  using Leaf::Leaf;

  void evaluate(const MatrixRef& X, const MatrixRef& Z, Eigen::Ref<Matrix> K) const override {
    const Matrix x = scaled(X, [](Index) { return 1.0; });
    const Matrix z = weighted(Z).transpose();
    for (Index j = 0; j < K.cols(); ++j) {
      for_chunks(K.rows(), [&](Index first, Index rows) {
        double* p = &K(first, j);
        loops::dot_product(&x(first, 0), x.rows(), rows, x.cols(), z.col(j).data(), constant(), p);
        if (degree() > 1) {
          Eigen::Map<Eigen::ArrayXd> values(p, rows);
          values = values.pow(degree());
        }
      });
    }
  }

  void diagonal(const MatrixRef& X, Eigen::Ref<Vector> k) const override {
    k = inner_squares(X).array().pow(degree());
  }

  void pull_back(const MatrixRef& X, const MatrixRef& Z, const MatrixRef& K_bar,
                 const Adjoint& into) const override {
    const Matrix x = scaled(X, [](Index) { return 1.0; });
    const Matrix z = scaled(Z, [](Index) { return 1.0; });
    const Matrix z_weighted = weighted(Z).transpose();
    std::array<double, kChunk> w;  // K̄ ∂k/∂p
    for (Index j = 0; j < K_bar.cols(); ++j) {
      for_chunks(K_bar.rows(), [&](Index first, Index rows) {
        loops::dot_product(&x(first, 0), x.rows(), rows, x.cols(), z_weighted.col(j).data(),
                           constant(), w.data());
        Eigen::Map<Eigen::ArrayXd> weights(w.data(), rows);
        weights = degree() * weights.pow(degree() - 1) * K_bar.col(j).segment(first, rows).array();
        accumulate_offset(weights.sum(), into);
        for (Index a = 0; a < x.cols(); ++a) {
          const double wx = loops::dot(w.data(), &x(first, a), rows);  // Σ_i w_i x_ia
          accumulate_variance(a, wx * z(j, a), into);
          if (into.X != nullptr) {
            into.X->col(column(a)).segment(first, rows) += z_weighted(a, j) * weights.matrix();
          }
          if (into.Z != nullptr) (*into.Z)(j, column(a)) += value(kVariance, a) * wx;
        }
      });
    }
  }

  void pull_back_diagonal(const MatrixRef& X, const VectorRef& k_bar,
                          const Adjoint& into) const override {
    const Vector w =
        (degree() * inner_squares(X).array().pow(degree() - 1) * k_bar.array()).matrix();
    accumulate_offset(w.sum(), into);
    for (Index a = 0; a < active(X.cols()); ++a) {
      const auto x = X.col(column(a));
      accumulate_variance(a, (w.array() * x.array().square()).sum(), into);
      if (into.X != nullptr) {
        into.X->col(column(a)) += 2.0 * value(kVariance, a) * w.cwiseProduct(x);
      }
    }
  }

 private:
  [[nodiscard]] bool is_linear() const { return kind() == LeafKind::linear; }
  [[nodiscard]] int degree() const { return is_linear() ? 1 : option(); }
  [[nodiscard]] double constant() const { return is_linear() ? 0.0 : scalar(kOffset); }

  [[nodiscard]] Matrix weighted(const MatrixRef& Z) const {
    return scaled(Z, [&](Index a) { return value(kVariance, a); });
  }
  [[nodiscard]] Vector inner_squares(const MatrixRef& X) const {
    Vector p = Vector::Constant(X.rows(), constant());
    for (Index a = 0; a < active(X.cols()); ++a) {
      p += value(kVariance, a) * X.col(column(a)).cwiseAbs2();
    }
    return p;
  }
  void accumulate_variance(Index a, double amount, const Adjoint& into) const {
    if (into.theta == nullptr) return;
    into.theta[offset(kVariance) + (is_ard(kVariance) ? a : 0)] += amount;
  }
  void accumulate_offset(double amount, const Adjoint& into) const {
    if (into.theta != nullptr && !is_linear()) into.theta[offset(kOffset)] += amount;
  }
};

}  // namespace

NodePtr make_constant(const LeafType& type, std::vector<Positive> fields) {
  return std::make_shared<ConstantLeaf>(type, std::move(fields), 0, Dimensions{});
}

NodePtr make_dot_product(const LeafType& type, std::vector<Positive> fields, int degree,
                         Dimensions dims) {
  return std::make_shared<DotProduct>(type, std::move(fields), degree, std::move(dims));
}

}  // namespace ample
