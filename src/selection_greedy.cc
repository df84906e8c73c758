// The methods that choose by variance alone: conditional variance and those of fixed size.
#include "ample/selection.h"
#include "greedy_variance.h"
#include "selection_pool.h"

namespace ample {

Selection ConditionalVariance::select(const SelectionProblem& p) const {
  validate();
  const Matrix pool = stack(p.old.Z, p.X);
  GreedyVariance greedy(p.old.kernel, pool, selection_jitter(p), p.old.size());
  SelectionStop stop = SelectionStop::threshold;
  while (greedy.size() == 0 || greedy.residual().sum() > eta) {
    if (greedy.size() >= p.limit(max_inducing)) {
      stop = SelectionStop::cap;
      break;
    }
    if (!greedy.take_next()) {
      stop = why_exhausted(greedy);
      break;
    }
  }
  Selection out = from_pool(p, pool, greedy.taken());
  out.stop = stop;
  out.keep_to(max_inducing);
  return out;
}

Selection FixedGreedy::select(const SelectionProblem& p) const {
  validate();
  const Matrix pool = stack(p.old.Z, p.X);
  GreedyVariance greedy(p.old.kernel, pool, selection_jitter(p), p.old.size());
  SelectionStop stop = SelectionStop::size;
  while (greedy.size() < size) {
    if (!greedy.take_next()) {
      stop = why_exhausted(greedy);
      break;
    }
  }
  Selection out = from_pool(p, pool, greedy.taken());
  out.stop = stop;
  return out;
}

Selection FixedGradient::select(const SelectionProblem& p) const {
  Selection out = FixedGreedy{.size = size}.select(p);
  out.moving = true;
  return out;
}

}  // namespace ample
