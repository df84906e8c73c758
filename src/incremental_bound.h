// The online bound at θ = θ_old while inducing points are added one by one: O(N M + M²) a point
// instead of a factorisation each (derivation §6).
//
//   ℓ = L_D⁻¹ a,  a = new column of A;  λ = √(1 + a_new − ℓᵀℓ);  L_D ← [L_D 0; ℓᵀ λ]          (12)
//   w_new = (c_new − ℓᵀw)/λ
//   L̂ = const − ½ Σ λ_n r_n − Σ log diag L_D + ½‖w‖²                                       (13)
#pragma once

#include <optional>

#include "ample/bound.h"
#include "ample/sites.h"
#include "ample/state.h"
#include "ample/types.h"

namespace ample {

class IncrementalBound {
 public:
  /// Starts with no inducing points at all: the old ones must be chosen anew or are lost. Keeps
  /// a reference to `old`, which must outlive it.
  IncrementalBound(const State& old, Sites sites);

  /// Starts from the old inducing points, Vt = K_fa L_old⁻ᵀ [N, M_a]. Empty if I + A cannot be
  /// factorised.
  static std::optional<IncrementalBound> from_old(const State& old, const Sites& sites,
                                                  const MatrixRef& Vt);

  /// Appends an inducing point. `Vt` holds its column last, after those of the points before it
  /// [N, M+1]. `v_a` is the point's column of K_ab L⁻ᵀ [M_a], and empty if the old points were
  /// kept.
  void append(const MatrixRef& Vt, const VectorRef& v_a);

  /// By how much append() would raise the bound, for each of several points   [B].
  ///
  ///   gain_j = ½ e_jᵀΛe_j − ½ log λ² + ½ w_new²                                              (20)
  ///
  /// `columns` are their columns of Vᵀ [N,B], e_j in (20), `Vt` those of the points so far [N,M],
  /// and `columns_a` their columns of K_ab L⁻ᵀ [M_a,B], empty if the old points were kept.
  /// O(N M + M²) a point, by products of matrices; where there are fewer rows than points and the
  /// old ones were kept, O(N M²) once and then O(N²).
  [[nodiscard]] Vector gains(const MatrixRef& Vt, const MatrixRef& columns,
                             const MatrixRef& columns_a);

  /// L̂ given Σ_n w_n r_n, the residual variances of the batch.
  [[nodiscard]] double value(double residual) const;

  [[nodiscard]] Index size() const { return size_; }
  [[nodiscard]] auto L_D() const { return L_D_.topLeftCorner(size_, size_); }

  /// A, c, L_D and w of the first M points, as a factorisation of the bound would give them.
  void write_factors(Index M, BoundFactors& factors) const&;
  /// The same, without a copy if no point was appended; the bound is spent.
  void write_factors(Index M, BoundFactors& factors) &&;

 private:
  void reserve(Index columns);
  void make_precision(const MatrixRef& Vt);

  const State& old_;
  Sites sites_;
  double constant_;       // ½ Σ log(λ_n/2π) − ½ Σ λ_n t_n² − F_old
  double past_residual_;  // tr[A_old (I − T Tᵀ)]: what of the pseudo-data is not yet represented
  bool keeps_old_ = false;
  Index size_ = 0;
  Matrix A_;    // [capacity, capacity], lower triangle
  Vector c_;    // [capacity]
  Matrix L_D_;  // [capacity, capacity]
  Vector w_;    // [capacity]
  double sum_log_ = 0.0;
  Matrix T_;  // [M_a, capacity], only when started from nothing
  Matrix G_;  // [N,N], the precision of the rows given the points, once gains() keeps it
  Vector g_;  // [N]
};

}  // namespace ample
