// What the bound is compared to at θ = θ_old: the best value L* that any inducing inputs can reach,
// and two upper bounds on it.
//
//   L* = log N(t; mean_old(X), Cov_old(X,X) + Λ⁻¹)                                          (9)
//
// the log predictive density of the batch under the model as it stands. It equals the paper's
// L̂(N_n + M_a) exactly.
#pragma once

#include <optional>
#include <span>

#include "ample/bound.h"
#include "ample/sites.h"
#include "ample/state.h"
#include "ample/types.h"

namespace ample {

/// How a batch lies in what the model predicts for it, N(m, C) with C = Cov_old(X,X) + Λ⁻¹.
struct PredictiveDensity {
  double log_density = 0.0;  // L* (9)
  double chi_squared =
      0.0;          // (t − m)ᵀ C⁻¹ (t − m): χ² with N degrees of freedom if the model holds
  Vector residual;  // (t_n − m_n)/√C_nn   [N]: standard normal if the model holds
};

/// O(N³ + N M²). Empty if the factorisation fails.
[[nodiscard]] std::optional<PredictiveDensity> predictive_density(const State& old,
                                                                  const MatrixRef& X,
                                                                  const Sites& sites);
/// The same with Vᵀ = K_fa L_old⁻ᵀ [N,M_a] at hand.
[[nodiscard]] std::optional<PredictiveDensity> predictive_density(const State& old,
                                                                  const MatrixRef& X,
                                                                  const Sites& sites,
                                                                  const MatrixRef& Vt);

/// L* (9) alone.
[[nodiscard]] std::optional<double> optimum(const State& old, const MatrixRef& X,
                                            const Sites& sites);
/// The same had the noise variance been one of `factors` times as large, whichever explains the
/// batch best.
[[nodiscard]] std::optional<double> optimum_with_noise(const State& old, const MatrixRef& X,
                                                       const Sites& sites,
                                                       std::span<const double> factors);

/// L*_ε (9′): what Z_b = Z_a ∪ X reaches with inducing variables of jitter ε. L* − L*_ε is what
/// jitter costs where every row is an inducing point.
[[nodiscard]] std::optional<double> optimum_with_jitter(const State& old, const MatrixRef& X,
                                                        const Sites& sites, double jitter);
[[nodiscard]] std::optional<double> optimum_with_jitter(const State& old, const MatrixRef& X,
                                                        const Sites& sites, double jitter,
                                                        const MatrixRef& Vt);

/// Upper bounds on L*, for batches too large for optimum(), from inducing points that begin with
/// the old ones, at θ = θ_old. `tight` spreads the residual variance over the new data only (10);
/// `paper` over the pseudo-data too (the paper's Û). L̂ ≤ L* ≤ tight ≤ paper. O(N M² + M³). Empty if
/// a factorisation fails.
enum class UpperBound { tight, paper };
[[nodiscard]] std::optional<double> upper_bound(UpperBound kind, const State& old,
                                                const BoundFactors& factors, const Sites& sites);
/// The same from the parts it needs: Vᵀ [N,M] with row n times √w_n, L_D [M,M] and
/// Σ w_n (k_nn − ‖v_n‖²).
[[nodiscard]] std::optional<double> upper_bound(UpperBound kind, const State& old,
                                                const MatrixRef& Vt, const MatrixRef& L_D,
                                                double residual, const Sites& sites);

}  // namespace ample
