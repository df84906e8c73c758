// A kernel from outside the library: one component of a spectral mixture (Wilson & Adams 2013),
//   k(x, z) = σ² exp(−½ Σ_d δ_d²/ℓ_d²) cos(2π Σ_d δ_d/p_d),   δ = x − z.
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <numbers>

#include <ample/kernel_check.h>
#include <ample/kernel_formula.h>
#include <ample/snapshot.h>

using namespace ample;

class SpectralFormula final : public KernelFormula {
 public:
  KernelSignature signature() const override {
    using Kind = Parameter::Kind;
    return {.name = "spectral",
            .fields = {{.name = "variance", .kind = Kind::variance},
                       {.name = "lengthscale", .kind = Kind::lengthscale, .per_dimension = true},
                       {.name = "period", .kind = Kind::period, .per_dimension = true}}};
  }

  void evaluate(const KernelValues& theta, const MatrixRef& X, const MatrixRef& Z,
                Eigen::Ref<Matrix> K) const override {
    for (Index j = 0; j < Z.rows(); ++j) {
      const Column column(theta, X, Z.row(j));
      K.col(j) = theta(kVariance) * column.envelope * column.phase.cos();
    }
  }

  void diagonal(const KernelValues& theta, const MatrixRef&, Eigen::Ref<Vector> k) const override {
    k.setConstant(theta(kVariance));
  }

  void pull_back(const KernelValues& theta, const MatrixRef& X, const MatrixRef& Z,
                 const MatrixRef& K_bar, const KernelAdjoint& into) const override {
    for (Index j = 0; j < Z.rows(); ++j) {
      const Column column(theta, X, Z.row(j));
      const Array weight = K_bar.col(j).array() * column.envelope;
      into.add(kVariance, (weight * column.phase.cos()).sum());
      // dF/ds for s = Σ δ²/ℓ², and dF/dphase.
      const Array s_bar = -0.5 * theta(kVariance) * weight * column.phase.cos();
      const Array phase_bar = -theta(kVariance) * weight * column.phase.sin();
      for (Index d = 0; d < X.cols(); ++d) {
        const double l = theta(kLengthscale, d);
        const double p = theta(kPeriod, d);
        const Array delta = X.col(d).array() - Z(j, d);
        into.add(kLengthscale, d, (-2.0 / (l * l * l)) * (s_bar * delta.square()).sum());
        into.add(kPeriod, d, (-2.0 * std::numbers::pi / (p * p)) * (phase_bar * delta).sum());
        const Array delta_bar =
            (2.0 / (l * l)) * s_bar * delta + (2.0 * std::numbers::pi / p) * phase_bar;
        if (into.X != nullptr) into.X->col(d).array() += delta_bar;
        if (into.Z != nullptr) (*into.Z)(j, d) -= delta_bar.sum();
      }
    }
  }

  void pull_back_diagonal(const KernelValues&, const MatrixRef&, const VectorRef& k_bar,
                          const KernelAdjoint& into) const override {
    into.add(kVariance, k_bar.sum());
  }

 private:
  using Array = Eigen::ArrayXd;
  enum Field : std::size_t { kVariance, kLengthscale, kPeriod };  // as in the signature

  /// What a column of K is made of.
  struct Column {
    Column(const KernelValues& theta, const MatrixRef& X, const Eigen::RowVectorXd& z) {
      Array s = Array::Zero(X.rows());
      phase = Array::Zero(X.rows());
      for (Index d = 0; d < X.cols(); ++d) {
        const Array delta = X.col(d).array() - z[d];
        s += (delta / theta(kLengthscale, d)).square();
        phase += (2.0 * std::numbers::pi / theta(kPeriod, d)) * delta;
      }
      envelope = (-0.5 * s).exp();
    }
    Array envelope;
    Array phase;
  };
};

/// So that it is written like the others: Spectral{.period = 0.5}.
struct Spectral {
  Positive variance = 1.0;
  Positive lengthscale = 1.0;
  Positive period = 1.0;
  Dimensions dims = {};
  operator Kernel() const { return make_kernel("spectral", {variance, lengthscale, period}, dims); }
};

int main() {
  register_kernel(std::make_shared<SpectralFormula>());  // once, before its name is read or used

  // In a test of yours: is it a kernel, and are the derivatives right?
  const Kernel two = Spectral{.variance = 1.4, .lengthscale = {0.8, 1.7}, .period = {1.3, 0.6}};
  const auto faults = kernel_faults(two, Matrix::Random(6, 2), Matrix::Random(5, 2));
  for (const std::string& fault : faults) std::cerr << fault << "\n";

  ContinualGPOptions options;
  options.start.kernel = Spectral{.lengthscale = 2, .period = 0.9, .dims = {0}} + Constant{};
  ContinualGP gp(options);
  for (int batch = 0; batch < 3; ++batch) {
    const Matrix X = (Matrix::Random(100, 2).array() + batch) * 2.0;
    const Vector y = 3.0 + (2.0 * std::numbers::pi * X.col(0).array()).sin();
    gp.observe(X, y + 0.1 * Vector::Random(100));
  }
  std::cout << gp.size() << " inducing points, " << gp.kernel().to_string() << "\n";

  save(gp, "spectral.ample");
  const ContinualGP again = load("spectral.ample");
  std::remove("spectral.ample");
  const Matrix X = Matrix::Random(50, 2);
  const Vector truth = 3.0 + (2.0 * std::numbers::pi * X.col(0).array()).sin();
  const Vector mean = gp.predict(X).mean;
  const bool learnt = (mean - truth).norm() / std::sqrt(50.0) < 0.1;
  const bool same = again.predict(X).mean == mean && again.kernel() == gp.kernel();
  std::cout << "learnt: " << learnt << ", the same when loaded: " << same << "\n";
  return faults.empty() && learnt && same ? 0 : 1;
}
