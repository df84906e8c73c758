// Arc-cosine kernels (Cho & Saul 2009):  k = σ²/π (p q)^{n/2} J_n(θ),  with a = Σ w_d x_d z_d + b,
// p = Σ w_d x_d² + b, q = Σ w_d z_d² + b, cos θ = a/√(pq), and
//   J_0 = π − θ,   J_1 = sin θ + (π − θ) cos θ,   J_2 = 3 sin θ cos θ + (π − θ)(1 + 2 cos² θ).
#include <cmath>
#include <numbers>

#include "kernel_leaf.h"
#include "kernel_loops.h"

namespace ample {
namespace {

constexpr std::size_t kWeight = 1;
constexpr std::size_t kBias = 2;

class ArcCosineLeaf final : public Leaf {
 public:
  using Leaf::Leaf;

  void evaluate(const MatrixRef& X, const MatrixRef& Z, Eigen::Ref<Matrix> K) const override {
    const Features x = features(X);
    const Features z = features(Z);
    for (Index j = 0; j < K.cols(); ++j) {
      const Eigen::ArrayXd theta = angles(x, z, j);
      K.col(j) = scalar(kVariance) / std::numbers::pi * magnitude(x.norm * z.norm[j]) * J(theta);
    }
  }

  void diagonal(const MatrixRef& X, Eigen::Ref<Vector> k) const override {
    // J_n(0) = π, π, 3π.
    k = scalar(kVariance) * (option() == 2 ? 3.0 : 1.0) *
        magnitude(features(X).norm.square()).matrix();
  }

  void pull_back(const MatrixRef& X, const MatrixRef& Z, const MatrixRef& K_bar,
                 const Adjoint& into) const override {
    const Features x = features(X);
    const Features z = features(Z);
    const double n = option();
    for (Index j = 0; j < K_bar.cols(); ++j) {
      const Eigen::ArrayXd theta = angles(x, z, j);
      const Eigen::ArrayXd scale = magnitude(x.norm * z.norm[j]) / std::numbers::pi;
      const Eigen::ArrayXd k = scale * J(theta);  // at σ² = 1
      const Eigen::ArrayXd K_bar_j = K_bar.col(j).array();
      const Eigen::ArrayXd w = scalar(kVariance) * K_bar_j;
      // Adjoints of cos θ and of log √(pq). Between near points the first is huge and what it meets
      // tiny: with u = x/√p, v = z/√q the derivatives of cos θ are written in u − v and 1 − cos θ,
      // where the difference of a, p and q would leave nothing but rounding.
      const Eigen::ArrayXd cos_bar = w * scale * dJ_dcos(theta);
      const Eigen::ArrayXd log_bar = w * (n * k);
      const Eigen::ArrayXd one_minus_cos = 2.0 * (0.5 * theta).sin().square();
      const auto weight_bar = [&](const Eigen::ArrayXd& u, double v) {
        const Eigen::ArrayXd squares = u.square() + v * v;
        return 0.5 *
               (cos_bar * (one_minus_cos * squares - (u - v).square()) + log_bar * squares).sum();
      };
      if (into.theta != nullptr) {
        into.theta[offset(kVariance)] += (K_bar_j * k).sum();
        into.theta[offset(kBias)] += weight_bar(x.norm.inverse(), 1.0 / z.norm[j]);
      }
      for (Index d = 0; d < active(X.cols()); ++d) {
        const Eigen::ArrayXd u = X.col(column(d)).array() / x.norm;
        const double v = Z(j, column(d)) / z.norm[j];
        const double weight = value(kWeight, d);
        if (into.theta != nullptr) {
          into.theta[offset(kWeight) + (is_ard(kWeight) ? d : 0)] += weight_bar(u, v);
        }
        if (into.X != nullptr) {
          into.X->col(column(d)).array() +=
              weight * (cos_bar * (v - u + one_minus_cos * u) + log_bar * u) / x.norm;
        }
        if (into.Z != nullptr) {
          (*into.Z)(j, column(d)) +=
              weight / z.norm[j] * (cos_bar * (u - v + one_minus_cos * v) + log_bar * v).sum();
        }
      }
    }
  }

  void pull_back_diagonal(const MatrixRef& X, const VectorRef& k_bar,
                          const Adjoint& into) const override {
    // k = σ² c pⁿ with c = 1, 1, 3.
    const double n = option();
    const double c = n == 2.0 ? 3.0 : 1.0;
    const Eigen::ArrayXd p = features(X).norm.square();
    const Eigen::ArrayXd p_bar = scalar(kVariance) * c * n * p.pow(n - 1.0) * k_bar.array();
    if (into.theta != nullptr) {
      into.theta[offset(kVariance)] += (c * p.pow(n) * k_bar.array()).sum();
      into.theta[offset(kBias)] += p_bar.sum();
    }
    for (Index d = 0; d < active(X.cols()); ++d) {
      const auto x_d = X.col(column(d)).array();
      if (into.theta != nullptr) {
        into.theta[offset(kWeight) + (is_ard(kWeight) ? d : 0)] += (p_bar * x_d.square()).sum();
      }
      if (into.X != nullptr)
        into.X->col(column(d)).array() += 2.0 * value(kWeight, d) * p_bar * x_d;
    }
  }

 private:
  /// Weighted inputs with the bias as one more dimension, each scaled to length one.
  struct Features {
    Matrix unit;          // [N, active + 1]
    Eigen::ArrayXd norm;  // [N], √p
  };

  [[nodiscard]] Features features(const MatrixRef& X) const {
    const Index A = active(X.cols());
    Features f{Matrix(X.rows(), A + 1), {}};
    for (Index d = 0; d < A; ++d) f.unit.col(d) = std::sqrt(value(kWeight, d)) * X.col(column(d));
    f.unit.col(A).setConstant(std::sqrt(scalar(kBias)));
    f.norm = f.unit.rowwise().norm().array();
    f.unit.array().colwise() /= f.norm;
    return f;
  }

  // θ from |u − v| and |u + v|: exactly 0 for equal points, where acos would lose half the digits.
  [[nodiscard]] static Eigen::ArrayXd angles(const Features& x, const Features& z, Index j) {
    const Index n = x.unit.rows();
    Vector v = z.unit.row(j);
    Eigen::ArrayXd minus(n);
    Eigen::ArrayXd plus(n);
    loops::squared_distance(x.unit.data(), n, n, x.unit.cols(), v.data(), minus.data());
    v = -v;
    loops::squared_distance(x.unit.data(), n, n, x.unit.cols(), v.data(), plus.data());
    return 2.0 * minus.sqrt().binaryExpr(plus.sqrt(),
                                         [](double a, double b) { return std::atan2(a, b); });
  }

  [[nodiscard]] Eigen::ArrayXd magnitude(const Eigen::ArrayXd& norms) const {
    return norms.pow(option());
  }

  [[nodiscard]] Eigen::ArrayXd J(const Eigen::ArrayXd& theta) const {
    Eigen::ArrayXd rest = std::numbers::pi - theta;
    if (option() == 0) return rest;
    if (option() == 1) return theta.sin() + rest * theta.cos();
    return 3.0 * theta.sin() * theta.cos() + rest * (1.0 + 2.0 * theta.cos().square());
  }

  [[nodiscard]] Eigen::ArrayXd dJ_dcos(const Eigen::ArrayXd& theta) const {
    Eigen::ArrayXd rest = std::numbers::pi - theta;
    if (option() == 0) {
      // 1/sin θ; the kernel has a kink at θ = 0 and π, where 0 is taken.
      return (theta.sin() > 1e-12).select(1.0 / theta.sin().max(1e-12), 0.0);
    }
    if (option() == 1) return rest;
    return 4.0 * (theta.sin() + rest * theta.cos());
  }
};

}  // namespace

NodePtr make_arc_cosine(const LeafType& type, std::vector<Positive> fields, int order,
                        Dimensions dims) {
  return std::make_shared<ArcCosineLeaf>(type, std::move(fields), order, std::move(dims));
}

}  // namespace ample
