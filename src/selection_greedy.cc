// The methods that choose by variance alone: conditional variance and those of fixed size.
#include <functional>
#include <optional>

#include "ample/selection.h"
#include "greedy_variance.h"
#include "selection_pool.h"

namespace ample {
namespace {

/// Takes old points and rows of the batch, the greatest variance first, until `stop` says why to
/// stop or there are none left.
Selection take_until(
    const SelectionProblem& p,
    const std::function<std::optional<SelectionStop>(const GreedyVariance&)>& stop) {
  const Matrix pool = stack(p.old.Z, p.X);
  GreedyVariance greedy(p.old.kernel, pool, selection_jitter(p), p.old.size());
  std::optional<SelectionStop> reason = stop(greedy);
  while (!reason) reason = greedy.take_next() ? stop(greedy) : why_exhausted(greedy);
  Selection out = from_pool(p, pool, greedy.taken());
  out.stop = *reason;
  return out;
}

}  // namespace

Selection ConditionalVariance::select(const SelectionProblem& p) const {
  validate();
  const Index limit = p.limit(max_inducing);
  Selection out = take_until(p, [&](const GreedyVariance& greedy) -> std::optional<SelectionStop> {
    if (greedy.size() > 0 && !(greedy.residual().sum() > eta)) return SelectionStop::threshold;
    if (greedy.size() >= limit) return SelectionStop::cap;
    return std::nullopt;
  });
  out.keep_to(max_inducing);
  return out;
}

Selection FixedGreedy::select(const SelectionProblem& p) const {
  validate();
  return take_until(p, [&](const GreedyVariance& greedy) -> std::optional<SelectionStop> {
    if (greedy.size() >= size) return SelectionStop::size;
    return std::nullopt;
  });
}

Selection FixedGradient::select(const SelectionProblem& p) const {
  Selection out = FixedGreedy{.size = size}.select(p);
  out.moving = true;
  return out;
}

}  // namespace ample
