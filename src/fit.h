// Fitting hyperparameters, and moving inducing inputs, by the gradient of the bound.
#pragma once

#include "ample/bound.h"
#include "ample/hyperparameters.h"
#include "ample/optimizer.h"
#include "ample/types.h"

namespace ample {

/// What a fit found.
struct Fitted {
  Hyperparameters theta;
  Matrix Z;
  MinimizeSummary summary;
  bool bound_is_there = false;  // the last evaluation was at this θ and Z
};

/// Maximises the bound over the free hyperparameters, and over Z too if it moves. If `started`, the
/// bound is factorised at `start` and Z already.
[[nodiscard]] Fitted fit(OnlineBound& bound, bool started, const Hyperparameters& start,
                         const Matrix& Z, bool moving, const MinimizeOptions& options,
                         Curvature& curvature, const ShouldStop& should_stop);

}  // namespace ample
