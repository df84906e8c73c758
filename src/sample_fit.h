// Hyperparameters from a sample of a stream's rows.
//
// A few rows are fitted to by their exact evidence, O(R³). What they cannot show is structure finer
// than their distances: θ of a thousand rows calls it noise, however many rows a model has learnt.
// So larger samples count whole, by the bound of (6) with no past,
//
//   log N(y; 0, Q_ff + σ² I) − ½ tr(K_ff − Q_ff)/σ²,   Q_ff = K_fu K_uu⁻¹ K_uf,
//
// O(R M_u²), with points u of their own: many more than a model needs to predict, since a bound
// with few points prefers long lengthscales and more noise. Where even these leave much of the
// rows, which is the case where there is next to no noise, the exact evidence of fewer rows tells
// more.
#pragma once

#include <optional>

#include "ample/hyperparameters.h"
#include "ample/optimizer.h"
#include "ample/types.h"

namespace ample {

/// Rows beyond which nothing is asked of a sample that takes O(R³).
inline constexpr Index kMostExactRows = 1000;

struct SampleFit {
  Hyperparameters theta;
  MinimizeSummary summary;
  Index rows = 0;           // that were fitted to
  std::optional<Matrix> Z;  // the points u, if the bound was fitted
};

/// Never worse than the start by its own measure, if that can be evaluated; otherwise the summary
/// is not usable.
[[nodiscard]] SampleFit fit_to_sample(const Hyperparameters& start, const MatrixRef& X,
                                      const VectorRef& y, const MinimizeOptions& options,
                                      Curvature& curvature, const ShouldStop& should_stop);

}  // namespace ample
