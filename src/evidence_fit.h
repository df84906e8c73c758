// Hyperparameters from the evidence of some rows, with a weak prior on lengthscales.
//
//   log p(y | X, θ) − ½ Σ_d ((log ℓ_d − log √D)/s)²,   s = 3
//
// On standardised inputs points in D dimensions are some √D apart. The prior is flat over a factor
// of twenty either way; it keeps the lengthscale of an input that a few hundred rows say nothing
// about from running off, which would make the model sure of what it does not know.
#pragma once

#include <functional>

#include "ample/exact_gp.h"
#include "ample/hyperparameters.h"
#include "ample/optimizer.h"
#include "ample/types.h"

namespace ample {

struct EvidenceFit {
  Hyperparameters theta;
  double log_evidence = 0.0;  // with the prior
  MinimizeSummary summary;
};

/// The log evidence at θ, or a bound on it, and its gradient; false where it cannot be evaluated.
using Evidence = std::function<bool(const Hyperparameters&, double&, EvidenceGradient&)>;

/// Of rows with D inputs. Never worse than the start, if that can be evaluated; otherwise the
/// summary is not usable.
[[nodiscard]] EvidenceFit maximize_evidence(const Evidence& evidence, Index D,
                                            const Hyperparameters& start,
                                            const MinimizeOptions& options, Curvature* curvature,
                                            const ShouldStop& should_stop);

/// The exact one, O(N³ + N² D) an evaluation.
[[nodiscard]] EvidenceFit fit_evidence(const Hyperparameters& start, const MatrixRef& X,
                                       const VectorRef& y, const MinimizeOptions& options,
                                       Curvature* curvature, const ShouldStop& should_stop);

}  // namespace ample
