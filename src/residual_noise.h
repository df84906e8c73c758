// The noise that rows show beside what a model predicts for them.
#pragma once

#include "ample/state.h"
#include "ample/types.h"

namespace ample {

/// σ² of the rows y [N] at X [N,D] under the state's predictions of f: the one that makes them most
/// probable, N(y_n; m_n, v_n + σ²), each row by itself, and at least `least`. Rows that the model
/// knows next to nothing about do not count: their offset is no noise. O(N M²).
[[nodiscard]] double residual_noise(const State& state, const MatrixRef& X, const VectorRef& y,
                                    double least);

}  // namespace ample
