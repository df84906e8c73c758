// The online evidence lower bound L̂ (paper eq. "onlinecollapsed"), its gradient, and what it is
// compared to: the best attainable value L* and two upper bounds on it.
//
// For a new batch X [N,D], y [N], a state that remembers the past with inducing inputs Z_a, and any
// new inducing inputs Z_b and hyperparameters θ = (kernel, σ²), with L Lᵀ = K_bb, V = L⁻¹ K_bf and
// T = L_old⁻¹ K_ab L⁻ᵀ                                                                    (4):
//
//   A  = V Vᵀ/σ² + Tᵀ A_old T,   c = V y/σ² + Tᵀ c_old                                    (5)
//   L̂ = −N/2 log(2πσ²) − yᵀy/(2σ²) − (tr K_ff − ‖V‖²)/(2σ²)
//        − ½ tr[A_old (L_old⁻¹ K_aa L_old⁻ᵀ − T Tᵀ)] + F − F_old                          (6)
//
// When Z_a are the first rows of Z_b the trace term is zero and T = [Wᵀ 0], Wᵀ = L_old⁻¹ L_a (7,
// 8). Cost O(N M² + M³) for value and gradient together; memory N·M + a few M².
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "ample/kernel.h"
#include "ample/state.h"
#include "ample/types.h"

namespace ample {

/// All that one factorisation of the bound yields; value, gradient and posterior are read from it.
/// V is kept as its transpose: appending an inducing point is then appending a column, and BLAS's
/// triangular solves run faster from the right.
struct BoundFactors {
  Matrix L;    // [M,M] lower Cholesky factor of K_bb with jitter
  Matrix Vt;   // [N,M] Vᵀ = K_fb L⁻ᵀ
  Matrix G;    // [M_a,M] P_old Y = L_old⁻ᵀ A_old T, general case
  Matrix H;    // W A_old Wᵀ if nested, else Tᵀ A_old T: the past's part of A; lower triangle
  Vector h;    // [M_a] or [M]: the past's part of c
  Matrix A;    // [M,M] (5), lower triangle
  Matrix L_D;  // [M,M] lower Cholesky factor of D = I + A
  Vector c;    // [M]   (5)
  Vector w;    // [M]   L_D⁻¹ c

  double jitter = 0.0;                // ε on the diagonal of K_bb
  double jitter_factor = 0.0;         // ε relative to the mean prior variance, or, if it
  bool jitter_follows_noise = false;  // follows the noise, to σ²; 0 if ε does not move with θ
  double residual = 0.0;              // tr(K_ff − Q_ff) = Σ k_nn − ‖V‖²
  double past_residual = 0.0;         // tr[A_old (L_old⁻¹ K_aa L_old⁻ᵀ − T Tᵀ)]
  double F = 0.0;                     // (1)
};

/// dL̂ with respect to everything that can be fitted, in natural units.
struct BoundGradient {
  Vector theta;                 // [P] kernel parameters
  double noise_variance = 0.0;  // dL̂/dσ²
  Matrix Z;                     // [M,D] inducing inputs; empty unless asked for
};

/// The bound for one batch. Workspaces are kept from one factorisation to the next, so that a fit
/// allocates nothing in its loop.
class OnlineBound {
 public:
  /// Whether Z may move. Fixed inducing inputs that begin with the old ones take the cheaper nested
  /// form; moving ones always take the general form, in which Z_a stays where it was.
  enum class Inducing { fixed, moving };

  /// Keeps references to `old`, X and y, which must outlive it.
  OnlineBound(const State& old, const MatrixRef& X, const VectorRef& y,
              Inducing inducing = Inducing::fixed);

  /// Factorises at (θ, Z). False if that fails even with more jitter; nothing may then be read.
  /// A `jitter` given is used as it is, instead of the rule of the derivation's §1.
  [[nodiscard]] bool factorize(const Kernel& kernel, double noise_variance, const MatrixRef& Z,
                               std::optional<double> jitter = std::nullopt);

  /// L̂ (6) at the last factorisation.
  [[nodiscard]] double value() const { return value_; }
  [[nodiscard]] const BoundFactors& factors() const { return f_; }

  /// The gradient at the last factorisation; with respect to Z too for moving inducing inputs.
  [[nodiscard]] const BoundGradient& gradient();

  /// The state after this batch: moves the factors out, so the bound must be factorised anew before
  /// anything else is asked of it.
  [[nodiscard]] State absorb();

 private:
  bool factorize_prior(std::optional<double> jitter);
  bool extend_prior();
  void carry_past_nested();
  void carry_past_general();
  void add_past();

  const State& old_;
  Eigen::Ref<const Matrix> X_;
  Eigen::Ref<const Vector> y_;
  Inducing inducing_;
  double y_squared_;
  Matrix P_old_;  // L_old⁻ᵀ A_old L_old⁻¹, general case; computed once; lower triangle
  Vector p_old_;  // L_old⁻ᵀ c_old

  std::optional<Kernel> kernel_;
  double noise_variance_ = 0.0;
  Matrix Z_;
  bool nested_ = false;
  std::vector<std::pair<Index, Index>> shared_;  // (row of Z_a, row of Z_b) that are the same point
  BoundFactors f_;
  double value_ = 0.0;

  // Workspaces.
  Matrix D_inv_;     // [M,M] D⁻¹, then (I − D⁻¹) L⁻¹
  Matrix K_bb_bar_;  // [M,M]
  Matrix past_;      // Y, then K̄_ab, [M_a,M] (general); Wᵀ, then D⁻¹H, [M,M_a] (nested)
  Matrix K_fb_bar_;  // [N,M] for N < M
  BoundGradient gradient_;
};

/// L* = log N(y; mean_old(X), Cov_old(X,X) + σ² I), the best value any Z_b can reach at θ = θ_old
/// (9): the log predictive density of the batch. O(N³ + N M²). Empty if the factorisation fails.
/// With a jitter ε: the value that is reached with Z_b = Z_a ∪ X, inducing variables of that jitter
/// (9′). The difference is what jitter costs where every point is an inducing point.
[[nodiscard]] std::optional<double> optimum(const State& old, const MatrixRef& X,
                                            const VectorRef& y, double jitter = 0.0);

/// Upper bounds on L*, for batches too large for optimum(), from inducing points that begin with
/// the old ones, at θ = θ_old. `tight` spreads the residual variance over the new data only (10);
/// `paper` over the pseudo-data too (the paper's Û). L̂ ≤ L* ≤ tight ≤ paper. O(N M² + M³). Empty if
/// a factorisation fails.
enum class UpperBound { tight, paper };
[[nodiscard]] std::optional<double> upper_bound(UpperBound kind, const State& old,
                                                const BoundFactors& factors, const VectorRef& y);
/// The same from the parts it needs: Vᵀ [N,M], L_D [M,M] and tr(K_ff − Q_ff).
[[nodiscard]] std::optional<double> upper_bound(UpperBound kind, const State& old,
                                                const MatrixRef& Vt, const MatrixRef& L_D,
                                                double residual, const VectorRef& y);

}  // namespace ample
