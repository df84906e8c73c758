// The noise that rows show beside what a model predicts for them.
#pragma once

#include <vector>

#include "ample/state.h"
#include "ample/types.h"

namespace ample {

/// Whether a row's own target, which the state may have learnt, has a say in what it is compared
/// to.
enum class Own { included, left_out };

/// σ² of the rows y [N] at X [N,D] under the state's predictions of f: the one that makes them most
/// probable, N(y_n; m_n, v_n + σ²), each row by itself, and at least `least`. Rows that the model
/// knows next to nothing about do not count: their offset is no noise. A row further off than ten
/// deviations counts as if it were there. O(N M²).
[[nodiscard]] double residual_noise(const State& state, const MatrixRef& X, const VectorRef& y,
                                    double least, Own own);

/// Outliers are rows that are more than ten of their deviations off what a state predicts where it
/// knows something, and off by more than `least`, as long as they are few: one, or one in a
/// hundred. If there are more, it is the state that is wrong, and none of them is one. O(N M²).

/// The rows [≤ N] that are none.
[[nodiscard]] std::vector<Index> without_outliers(const State& state, const MatrixRef& X,
                                                  const VectorRef& y, double least = 0.0);

/// What each row should count [N]: 1, and an outlier so much that it pulls no more than if it were
/// ten deviations off. Empty if there are none.
[[nodiscard]] Vector outlier_weights(const State& state, const MatrixRef& X, const VectorRef& y,
                                     double least);

}  // namespace ample
