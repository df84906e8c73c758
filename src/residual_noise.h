// The noise that rows show beside what a model predicts for them.
#pragma once

#include <vector>

#include "ample/state.h"
#include "ample/types.h"

namespace ample {

/// σ² of the rows y [N] at X [N,D] under the state's predictions of f: the one that makes them most
/// probable, N(y_n; m_n, v_n + σ²), each row by itself, and at least `least`. Rows that the model
/// knows next to nothing about do not count: their offset is no noise. A row further off than ten
/// deviations counts as if it were there. O(N M²).
[[nodiscard]] double residual_noise(const State& state, const MatrixRef& X, const VectorRef& y,
                                    double least);

/// The rows [≤ N] that are no outliers beside the state, ten of their deviations off where it knows
/// something; all of them if more than one in a hundred are. O(N M²).
[[nodiscard]] std::vector<Index> without_outliers(const State& state, const MatrixRef& X,
                                                  const VectorRef& y);

}  // namespace ample
