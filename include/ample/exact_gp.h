// Gaussian-process regression on all data at once: the paper's upper reference point.
//
//   K = K_ff(θ) + σ² I = L Lᵀ,   α = K⁻¹ y                                     [N,N], [N]
//   log p(y) = −½ yᵀα − Σ_n log L_nn − N/2 log 2π
//   d log p(y) = ⟨K̄, dK⟩,   K̄ = ½ (α αᵀ − K⁻¹),   d log p(y)/dσ² = tr K̄
//   f(x*) ~ N(k*ᵀα, k** − ‖L⁻¹k*‖²)
//
// (Rasmussen & Williams 2006, algorithm 2.1 and eq. 5.9.) The mean of the prior is zero: centre the
// targets. O(N³) for a value with its gradient, and memory for one N×N matrix (1.6 GB for
// N = 14,000), which is in turn K, L, K⁻¹ and K̄. No jitter: σ² stands on the diagonal already.
#pragma once

#include <optional>

#include "ample/hyperparameters.h"
#include "ample/kernel.h"
#include "ample/optimizer.h"
#include "ample/posterior.h"
#include "ample/types.h"

namespace ample {

/// d log p(y) in natural units.
struct EvidenceGradient {
  Vector theta;                 // [P] kernel parameters
  double noise_variance = 0.0;  // σ²
};

/// The log evidence of a data set, at one set of hyperparameters after the other.
class ExactEvidence {
 public:
  /// Keeps references to X and y, which must outlive it.
  ExactEvidence(const MatrixRef& X, const VectorRef& y);

  /// Factorises at (θ, σ²). False if K is not positive definite to working precision; nothing may
  /// then be read.
  [[nodiscard]] bool factorize(const Kernel& kernel, double noise_variance);

  /// log p(y) at the last factorisation.
  [[nodiscard]] double value() const { return value_; }

  /// The gradient at the last factorisation, whose place in memory it takes: factorise anew before
  /// the factor is read again.
  [[nodiscard]] EvidenceGradient gradient();

  /// L, in the lower triangle; the upper one is unspecified.
  [[nodiscard]] Matrix& factor() { return L_; }
  /// α.
  [[nodiscard]] Vector& weights() { return alpha_; }

 private:
  Eigen::Ref<const Matrix> X_;
  Eigen::Ref<const Vector> y_;
  std::optional<Kernel> kernel_;
  Matrix L_;      // [N,N]
  Vector alpha_;  // [N]
  double value_ = 0.0;
};

/// The model: hyperparameters, and the data that it is conditioned on.
class ExactGP {
 public:
  explicit ExactGP(Hyperparameters hyperparameters);

  /// Maximises the evidence of these data from the present hyperparameters on, within their bounds,
  /// and conditions on the data. The summary speaks of −log p(y); it is never worse than the start.
  /// `curvature`, if given, is where that of the evidence is taken from and left in: of a part of
  /// the data, say, which takes less time to fit.
  MinimizeSummary fit(const MatrixRef& X, const VectorRef& y, const MinimizeOptions& options = {},
                      Curvature* curvature = nullptr, const ShouldStop& should_stop = {});

  /// Conditions on the data at the present hyperparameters. This and fit() forget earlier data,
  /// once they have succeeded; if K cannot be factorised they throw NumericalError.
  void condition(const MatrixRef& X, const VectorRef& y);

  /// Marginals at X; the prior's before any data.
  [[nodiscard]] Prediction predict(const MatrixRef& X, Target target = Target::function) const;

  /// log p(y) of the data conditioned on; 0 before any.
  [[nodiscard]] double log_evidence() const { return log_evidence_; }
  [[nodiscard]] const Hyperparameters& hyperparameters() const { return hyperparameters_; }
  /// The number of data conditioned on.
  [[nodiscard]] Index size() const { return X_.rows(); }

 private:
  void keep(Hyperparameters hyperparameters, const MatrixRef& X, ExactEvidence& evidence);

  Hyperparameters hyperparameters_;
  Matrix X_;      // [N,D]
  Matrix L_;      // [N,N] lower triangle
  Vector alpha_;  // [N]
  double log_evidence_ = 0.0;
};

}  // namespace ample
