// Greedy variance selection: take, one after another, the point of a pool whose value the points
// taken so far leave most uncertain. It is a pivoted Cholesky factorisation of the pool's
// covariance:
//
//   j = argmax r;  d = √(r_j + ε);  v = (k(x_j, pool) − V_·jᵀ V)/d;  r ← r − v∘v          (11)
//
// O(P M) a point for a pool of P points. That is a product of a matrix with a vector, which moves
// all of V through the processor for each point. Once V is large, the covariance that is left, k −
// VᵀV, is therefore kept, and brought up to date for many points at a time by one product of
// matrices.
#pragma once

#include <optional>
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

  /// Takes the next point and returns its place in the pool. Empty when every point is taken or
  /// the rest is determined to rounding; stopped_by_rounding() tells which.
  std::optional<Index> take_next();
  [[nodiscard]] bool stopped_by_rounding() const { return stopped_by_rounding_; }

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
  void keep_covariance();
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
