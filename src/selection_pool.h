// What the selection methods share: candidates from old points and batch, and the jitter of new
// inducing points.
#pragma once

#include <vector>

#include "ample/selection.h"
#include "greedy_variance.h"

namespace ample {

/// [top; bottom].
Matrix stack(const MatrixRef& top, const MatrixRef& bottom);

/// The rows of `points` at those places, in that order.
Matrix rows_of(const MatrixRef& points, const std::vector<Index>& which);

/// ε of new points: that of the old ones, so that the old factor L is reused as it stands.
double selection_jitter(const SelectionProblem& p);

/// Z from a pool of [Z_old; X], old points first and in their old order.
Selection from_pool(const SelectionProblem& p, const Matrix& pool, std::vector<Index> taken);

SelectionStop why_exhausted(const GreedyVariance& greedy);

}  // namespace ample
