// The online evidence lower bound L̂ (paper eq. "onlinecollapsed") and its gradient.
//
// For a new batch X [N,D] with sites of precision Λ = diag(λ) and targets t, any number of pasts i
// that remember earlier data with inducing inputs Z_i, and any new inducing inputs Z_b and
// hyperparameters θ, with L Lᵀ = K_bb, V = L⁻¹ K_bf and T_i = L_i⁻¹ K_ib L⁻ᵀ               (4):
//
//   A  = V Λ Vᵀ + Σ_i T_iᵀ A_i T_i,   c = V Λ t + Σ_i T_iᵀ c_i                            (5)
//   L̂ = ½ Σ_n log(λ_n/2π) − ½ tᵀΛt − ½ Σ_n λ_n (k_nn − ‖v_n‖²)
//        − ½ Σ_i tr[A_i (L_i⁻¹ K_ii L_i⁻ᵀ − T_i T_iᵀ)] + F − Σ_i F_i                      (6)
//
// λ_n = w_n/σ²; σ² moves with θ. Where the points of a past are the first rows of Z_b its trace
// term is zero and T = [Wᵀ 0], Wᵀ = L_old⁻¹ L_a (7, 8). Cost O(N M² + M³) for value and gradient
// together; memory N·M + a few M². What the bound is compared to is in optimum.h.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "ample/kernel.h"
#include "ample/sites.h"
#include "ample/state.h"
#include "ample/types.h"

namespace ample {

class Past;

/// All that one factorisation of the bound yields; value, gradient and posterior are read from it.
/// V is kept as its transpose: appending an inducing point is then appending a column, and BLAS's
/// triangular solves run faster from the right.
struct BoundFactors {
  Matrix L;    // [M,M] lower Cholesky factor of K_bb with jitter
  Matrix Vt;   // [N,M] Vᵀ = K_fb L⁻ᵀ, row n times √w_n
  Matrix A;    // [M,M] (5), lower triangle
  Matrix L_D;  // [M,M] lower Cholesky factor of D = I + A
  Vector c;    // [M]   (5)
  Vector w;    // [M]   L_D⁻¹ c

  double jitter = 0.0;                // ε on the diagonal of K_bb
  double jitter_factor = 0.0;         // ε relative to the mean prior variance, or, if it
  bool jitter_follows_noise = false;  // follows the noise, to σ²; 0 if ε does not move with θ
  double residual = 0.0;              // Σ w_n (k_nn − ‖v_n‖²)
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

  /// The usual bound, with one past. Keeps references to `old` and X, which must outlive it.
  OnlineBound(const State& old, const MatrixRef& X, Sites sites,
              Inducing inducing = Inducing::fixed);
  /// With any number of pasts, none included. X may have no rows.
  OnlineBound(const std::vector<const State*>& pasts, const MatrixRef& X, Sites sites,
              Inducing inducing = Inducing::fixed);
  ~OnlineBound();

  /// Factorises at (θ, Z). False if that fails even with more jitter; nothing may then be read.
  /// A `jitter` given is used as it is, instead of the rule of the derivation's §1.
  [[nodiscard]] bool factorize(const Kernel& kernel, double noise_variance, const MatrixRef& Z,
                               std::optional<double> jitter = std::nullopt);

  /// Takes over a factorisation at θ_old, where the points of the only past are the first rows of
  /// Z: what a selection computed anyway. ε stays what it was. False if the value is not finite.
  [[nodiscard]] bool start_from(const MatrixRef& Z, BoundFactors factors);

  /// L̂ (6) at the last factorisation.
  [[nodiscard]] double value() const { return value_; }
  [[nodiscard]] const BoundFactors& factors() const { return f_; }

  /// The gradient at the last factorisation; with respect to Z too for moving inducing inputs.
  [[nodiscard]] const BoundGradient& gradient();

  /// The state after this batch: moves the factors out, so the bound must be factorised anew before
  /// anything else is asked of it.
  [[nodiscard]] State absorb();

 private:
  struct GradientPass;  // bound_gradient.cc

  void place(const MatrixRef& Z);
  bool at_theta_old(const Kernel& kernel, double noise_variance) const;
  bool factorize_prior(std::optional<double> jitter);
  bool extend_prior(const State& old);
  void add_rows();
  bool factorize_precision(bool extended);
  bool finish();

  std::vector<std::unique_ptr<Past>> pasts_;
  Past* nested_ = nullptr;  // the one whose points are the first rows of Z, if there is one
  Index dimension_;
  Eigen::Ref<const Matrix> X_;
  Sites sites_;
  Vector t_;            // [N] √w_n t_n
  Vector root_weight_;  // [N] √w_n; empty if all are 1
  Inducing inducing_;
  double t_squared_;  // Σ w_n t_n²

  std::optional<Kernel> kernel_;
  double noise_variance_ = 0.0;
  Matrix Z_;
  BoundFactors f_;
  double F_ = 0.0;  // (1)
  double value_ = 0.0;

  // Workspaces.
  Matrix D_inv_;     // [M,M] D⁻¹, then B = (I − D⁻¹) L⁻¹
  Matrix K_bb_bar_;  // [M,M]
  Matrix E_;         // [M,M_a] D⁻¹H of a nested past
  Matrix K_fb_bar_;  // [N,M] for N < M
  BoundGradient gradient_;
};

}  // namespace ample
