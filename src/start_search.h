// Where a model's first fit begins, if the user has nothing particular in mind.
#pragma once

#include <string>

#include "ample/hyperparameters.h"
#include "ample/optimizer.h"
#include "ample/sites.h"
#include "ample/types.h"

namespace ample {

/// `start` with its free lengthscales times 1, a third, a tenth or a thirtieth, whichever makes the
/// batch most probable.
[[nodiscard]] Hyperparameters search_lengthscales(const Hyperparameters& start, const Matrix& X,
                                                  const Sites& sites);

/// What was tried, and what was chosen.
struct FoundKernel {
  Hyperparameters theta;
  std::string comparison;  // one line: each candidate with its log evidence
};

/// A kernel for standardised data of any kind: squared exponential, Matérn-5/2 or Matérn-3/2, with
/// one lengthscale for all inputs or one for each, whichever has the largest evidence (less ½ log N
/// for each parameter) on at most 500 of the rows. The noise variance keeps the bounds of `start`.
[[nodiscard]] FoundKernel find_kernel(const Hyperparameters& start, const Matrix& X,
                                      const Vector& y, const ShouldStop& should_stop);

}  // namespace ample
