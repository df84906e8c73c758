// What one earlier model contributes to the bound of the next: a State with inducing inputs Z_a,
// carried to new hyperparameters θ and inducing inputs Z_b. A bound may have any number of pasts.
//
//   T = L_old⁻¹ K_ab L⁻ᵀ                                                                   (4)
//   H = Tᵀ A_old T,   h = Tᵀ c_old                              its part of A and c        (5)
//   r = tr[A_old (L_old⁻¹ K_aa L_old⁻ᵀ − T Tᵀ)]                 its trace term             (6)
//
// Where Z_a are the first rows of Z_b, r = 0 and T = [Wᵀ 0] with Wᵀ = L_old⁻¹ L_a       (7, 8):
// H and h then have the size of Z_a and stand for the leading part of A and c.
#pragma once

#include <utility>
#include <vector>

#include "ample/kernel.h"
#include "ample/state.h"
#include "ample/types.h"

namespace ample {

class Past {
 public:
  /// Keeps a reference to `state`, which must outlive it.
  explicit Past(const State& state) : state_(state) {}

  /// Finds its points among Z. Only one past can stand at the head of Z; an empty one does anyway.
  void place(const Matrix& Z, bool moving, bool may_be_nested);
  [[nodiscard]] bool nested() const { return nested_; }
  [[nodiscard]] const State& state() const { return state_; }

  /// H, h and r at (θ, Z), with L Lᵀ = K_bb and the jitter that is in it.
  void carry(const Kernel& kernel, const Matrix& Z, const Matrix& L, double jitter);
  /// The same for a nested past at θ_old, where W = I.
  void carry_unchanged();

  /// A += H (lower triangle), c += h.
  void add_to(Matrix& A, Vector& c) const;

  [[nodiscard]] Matrix& H();
  [[nodiscard]] const Vector& h() const { return h_; }
  [[nodiscard]] double residual() const { return residual_; }

  /// For a past that is not nested: adds its derivatives through K_ab and K_aa to `into` and
  /// returns that with respect to the jitter. B = (I − D⁻¹) L⁻¹, μ = D⁻¹ c, right = L⁻ᵀ μ.
  double pull_back(const Kernel& kernel, const Matrix& Z, const Matrix& B, const Vector& mu,
                   const Vector& right, const PullBack& into);

 private:
  void carry_nested(const Matrix& L);
  void carry_general(const Kernel& kernel, const Matrix& Z, const Matrix& L, double jitter);
  void prepare_general();

  const State& state_;
  bool nested_ = false;
  std::vector<std::pair<Index, Index>> shared_;  // (row of Z_a, row of Z_b) that are the same point
  Matrix P_old_;            // L_old⁻ᵀ A_old L_old⁻¹, lower triangle; general case, computed once
  Vector p_old_;            // L_old⁻ᵀ c_old
  bool unchanged_ = false;  // H is A_old, and not in H_ until it is asked for
  Matrix H_;                // lower triangle
  Vector h_;
  double residual_ = 0.0;
  Matrix G_;     // [M_a,M] P_old Y = L_old⁻ᵀ A_old T, general case
  Matrix K_aa_;  // [M_a,M_a]
  Matrix work_;  // Y, then K̄_ab, [M_a,M] (general); Wᵀ (nested)
};

}  // namespace ample
