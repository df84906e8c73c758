#include "ample/selection.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "check.h"

namespace ample {

std::string_view to_string(SelectionStop stop) {
  switch (stop) {
    case SelectionStop::threshold:
      return "threshold";
    case SelectionStop::pool_used_up:
      return "pool used up";
    case SelectionStop::no_variance:
      return "no variance left";
    case SelectionStop::jitter:
      return "jitter";
    case SelectionStop::rounding:
      return "rounding";
    case SelectionStop::cap:
      return "cap";
    case SelectionStop::size:
      return "size";
    case SelectionStop::warm_up:
      return "warm-up";
  }
  AMPLE_ASSERT(false);
}

Index SelectionMethod::most_points() const {
  const SelectionSettings all = settings();
  for (const char* name : {"max_inducing", "size"}) {
    if (const auto found = all.find(name); found != all.end()) {
      return static_cast<Index>(found->second);
    }
  }
  return kNoCap;
}

Index SelectionProblem::limit(Index cap) const {
  // What is taken beyond the cap is paid for in the fit and in the pruning, O(M²) a point: at a cap
  // of 1000, an eighth is about as much work as learning a batch of 500 rows.
  constexpr Index kShareBeyond = 8;
  constexpr Index kFewBeyond = 8;  // so that a small model, too, can learn a new place at once
  if (!pruned_after || cap == kNoCap) return cap;
  return cap + std::min(X.rows(), std::max(cap / kShareBeyond, kFewBeyond));
}

void Selection::keep_to(Index cap) {
  most = cap;
  if (Z.rows() > cap) stop = SelectionStop::cap;
}

double noise_bound(const SelectionProblem& p) {
  // Before the targets show any variance, the prior's takes its place.
  return p.targets.log_density(p.sites.target,
                               p.old.kernel.diagonal(p.X).mean() + p.old.noise_variance);
}

// The largest terms of L̂ and L*: what they sum to is what cancels. Each is off by some units in its
// last place, and so is each of the products that the factorisations sum up.
double rounding_error(const SelectionProblem& p) {
  constexpr double kUnits = 16.0 * std::numeric_limits<double>::epsilon();
  const double prior = p.old.kernel.diagonal(p.X).sum() / p.old.noise_variance;
  const double data = p.sites.scaled_target().squaredNorm() / p.old.noise_variance;
  return kUnits * (prior + data + std::abs(p.old.F));
}

}  // namespace ample
