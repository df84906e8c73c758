// Greedy choice by gain: take, one after another, the point that raises the bound most (20).
//
// A gain is O(N M + M²), so that those of all N points would be far more than all else in a step.
// They mostly fall as points are taken: those known from earlier steps are kept, and only the best
// of them are computed anew, in blocks, until the best new one is above all old ones. On smooth
// data in three or four dimensions that is about 5 to 40 a step. A gain that has risen meanwhile
// may be overlooked; that costs about one point in a hundred.
#pragma once

#include <optional>
#include <vector>

#include "ample/types.h"
#include "greedy_variance.h"
#include "incremental_bound.h"

namespace ample {

class GreedyGain {
 public:
  /// Of a pool whose first `old` points are those of the old state, to be chosen anew; 0 if they
  /// were kept. The rest is the batch.
  GreedyGain(Index pool, Index old);

  /// The place in the pool of the point to take next; empty if no candidate is open.
  [[nodiscard]] std::optional<Index> next(const GreedyVariance& greedy, IncrementalBound& bound);

  /// How many gains were computed so far.
  [[nodiscard]] Index computed() const { return computed_; }

 private:
  void compute(const GreedyVariance& greedy, IncrementalBound& bound,
               const std::vector<Index>& points);

  Index old_;
  std::vector<Index> open_;         // the candidates that may be taken
  Vector gain_;                     // [P], as last computed; infinite before
  std::vector<Index> computed_at_;  // [P], the size of the model then
  Index computed_ = 0;
};

}  // namespace ample
