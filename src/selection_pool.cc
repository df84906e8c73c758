#include "selection_pool.h"

#include <algorithm>

#include "jitter.h"

namespace ample {

Matrix stack(const MatrixRef& top, const MatrixRef& bottom) {
  Matrix all(top.rows() + bottom.rows(), bottom.cols());
  all << top, bottom;
  return all;
}

Matrix rows_of(const MatrixRef& points, const std::vector<Index>& which) {
  return points(which, Eigen::all);
}

double selection_jitter(const SelectionProblem& p) {
  if (p.old.size() > 0) return p.old.jitter;
  const double mean_variance = p.old.kernel.diagonal(p.X).mean();
  return first_jitter(mean_variance, p.old.noise_variance)
      .value(mean_variance, p.old.noise_variance);
}

Selection from_pool(const SelectionProblem& p, const Matrix& pool, std::vector<Index> taken) {
  std::sort(taken.begin(), taken.end());
  Selection selection;
  selection.Z = rows_of(pool, taken);
  selection.added =
      std::count_if(taken.begin(), taken.end(), [&](Index i) { return i >= p.old.size(); });
  selection.removed = p.old.size() - (selection.Z.rows() - selection.added);
  return selection;
}

SelectionStop why_exhausted(const GreedyVariance& greedy) {
  return greedy.stopped_by_rounding() ? SelectionStop::no_variance : SelectionStop::pool_used_up;
}

}  // namespace ample
