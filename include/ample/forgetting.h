// Less of the past: every row that was learnt counts γ rows.
//
//   State half = temper(state, 0.5);                    // A ← γA, c ← γc, F anew
//   auto evidence = TemperedEvidence::of(state, X, y);
//   double density = (*evidence)(0.5);                  // L* (9) of a batch after temper(state,
//   0.5)
//
// A tempered state is exactly the posterior under a likelihood raised to the power γ (a power
// prior). At γ = 1 nothing changes; at γ = 0 the model predicts its prior. Where nothing new comes,
// repeated tempering lets the prices of points (pruning.h) fall to zero.
#pragma once

#include <optional>

#include "ample/state.h"
#include "ample/types.h"

namespace ample {

/// The state in which every past row counts γ rows, 0 ≤ γ ≤ 1. Inducing points stay. O(M³).
[[nodiscard]] State temper(const State& state, double gamma);

/// log N(y; mean_γ(X), Cov_γ(X, X) + σ² I) for any γ: how probable a batch is, were the past
/// tempered before it. Given ξ = L⁻¹b, y is Vᵀξ and noise of covariance B = K_ff − VᵀV + σ²I, so
///
///   L*(γ) = log N(y; 0, B) + F(γA + H, γc + h) − F(γA, γc),   H = V B⁻¹ Vᵀ,   h = V B⁻¹ y    (9″)
///
/// with F as in (1). O(N³ + M³) once, then O(M³) for each γ: two Cholesky factors, which cost far
/// less than turning A into a form in which every further γ is cheap.
class TemperedEvidence {
 public:
  /// Empty if B cannot be factorised.
  [[nodiscard]] static std::optional<TemperedEvidence> of(const State& state, const MatrixRef& X,
                                                          const VectorRef& y);

  /// L*(γ), 0 ≤ γ ≤ 1; minus infinity where it cannot be computed.
  [[nodiscard]] double operator()(double gamma) const;

 private:
  double constant_ = 0.0;  // log N(y; 0, B)
  Matrix A_;
  Vector c_;
  Matrix H_;
  Vector h_;
};

}  // namespace ample
