// Greedy variance selection: take, one after another, the point of a pool whose value the points
// taken so far leave most uncertain. It is a pivoted Cholesky factorisation of the pool's
// covariance:
//
//   j = argmax r;  d = √(r_j + ε);  v = (k(x_j, pool) − V_·jᵀ V)/d;  r ← r − v∘v          (11)
//
// O(P M) a point for a pool of P points. That is a product of a matrix with a vector, which moves
// all of V through the processor for each point. Once V is large, the covariance that is left, k −
// VᵀV, is therefore kept, and brought up to date for many points at a time by one product of
// matrices. Another rule than variance (greedy_gain.h) says itself which point to take.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ample/kernel.h"
#include "ample/types.h"

namespace ample {

class GreedyVariance {
 public:
  /// The first `inducing` points of the pool are inducing variables already, whose jitter ε is
  /// their own; the others are function values. The pool must outlive this.
  GreedyVariance(const Kernel& kernel, const MatrixRef& pool, double jitter, Index inducing = 0);

  /// Begins with inducing inputs Z outside the pool, L Lᵀ = K_zz.
  void start_from(const MatrixRef& Z, const MatrixRef& L);

  /// The place in the pool of the point that is most uncertain. Empty when every point is taken or
  /// the rest is determined to rounding; stopped_by_rounding() tells which.
  [[nodiscard]] std::optional<Index> most_uncertain();
  [[nodiscard]] bool stopped_by_rounding() const { return stopped_by_rounding_; }

  /// Whether point j is neither taken nor determined to rounding.
  [[nodiscard]] bool is_open(Index j) const {
    return is_taken_[static_cast<std::size_t>(j)] == 0 && residual_[j] > rounding_;
  }

  /// Takes point j, which must be open.
  void take(Index j);
  /// Takes the most uncertain point, if there is one.
  std::optional<Index> take_next();

  /// Keeps the covariance that is left from now on, whatever is taken: for many columns(). A pool
  /// too large for that does without. O(P² M).
  void keep_covariance();

  /// What the columns of Vᵀ would be if these points were each taken next   [P, number of points].
  /// O(P M) a point, by a product of matrices.
  [[nodiscard]] Matrix columns(std::span<const Index> points) const;

  [[nodiscard]] Index size() const { return size_; }
  [[nodiscard]] const std::vector<Index>& taken() const { return taken_; }
  /// d of each point taken: the diagonal of the pool's Cholesky factor.
  [[nodiscard]] const std::vector<double>& pivots() const { return pivots_; }
  /// Vᵀ of the pool   [P, size].
  [[nodiscard]] auto Vt() const { return Vt_.leftCols(size_); }
  /// Residual variances r   [P], never negative.
  [[nodiscard]] const Vector& residual() const { return residual_; }

 private:
  void reserve(Index columns);
  void update_covariance();
  void write_kept(Index j, Eigen::Ref<Vector> v) const;
  void write_covariance(Index j, Eigen::Ref<Vector> v) const;

  Kernel kernel_;
  MatrixRef pool_;
  double jitter_;
  Index inducing_;
  double rounding_;  // a residual variance below this is noise of the arithmetic
  Index size_ = 0;
  Matrix Vt_;  // [P, capacity]
  Vector residual_;
  Matrix covariance_;  // given the first `included_` points, lower triangle [P,P]; or empty
  Index included_ = 0;
  std::vector<Index> taken_;
  std::vector<double> pivots_;
  std::vector<char> is_taken_;
  bool stopped_by_rounding_ = false;
};

}  // namespace ample
