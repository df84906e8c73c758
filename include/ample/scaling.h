// A fixed affine scaling of inputs and targets, stored with a model: (x − mean)/scale.
//
// In a stream the data's true mean and spread are never known, so a scaling is given, or taken from
// the first batch, and then kept: what the model has learnt is in its units.
#pragma once

#include "ample/types.h"

namespace ample {

/// Means and scales of inputs and target.
struct Scaling {
  Vector input_mean;   // [D]
  Vector input_scale;  // [D], positive
  double target_mean = 0.0;
  double target_scale = 1.0;

  /// Changes nothing, for inputs of dimension D.
  [[nodiscard]] static Scaling identity(Index D);

  /// To mean 0 and standard deviation 1 over the given data. A column that does not vary keeps its
  /// scale: later batches may show it to vary after all.
  [[nodiscard]] static Scaling standardize(const MatrixRef& X, const VectorRef& y);

  /// Throws std::invalid_argument unless sizes match D and every scale is positive and finite.
  void check(Index D) const;

  [[nodiscard]] Matrix inputs(const MatrixRef& X) const;
  [[nodiscard]] Vector targets(const VectorRef& y) const;
  /// Back to the units of the data.
  [[nodiscard]] Prediction restore(Prediction p) const;
};

}  // namespace ample
