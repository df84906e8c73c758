// What figures are drawn from: posteriors on grids, as JSON.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ample/continual_gp.h"

namespace ample::experiments {

/// A function on an even grid.
[[nodiscard]] Batch grid_of(const std::function<double(double)>& f, double low, double high,
                            Index count);

/// In one dimension: the batch's data, the inducing points, and mean and deviation on the grid:
/// {"x", "y", "z", "grid", "mean", "std"}.
[[nodiscard]] std::string curve(const ContinualGP& model, const Batch& batch, const Matrix& grid);

/// In the plane: mean and deviation on an n × n grid over [low, high], row by row of the second
/// input, the inducing points, and the path of the batch: {"low", "high", "n", "mean", "std", "z",
/// "path"}.
[[nodiscard]] std::string map(const ContinualGP& model, const Matrix& path, const Vector& low,
                              const Vector& high, Index n);

}  // namespace ample::experiments
