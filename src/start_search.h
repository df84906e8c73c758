// Where a model's first fit begins, if the user has nothing particular in mind.
#pragma once

#include "ample/hyperparameters.h"
#include "ample/sites.h"
#include "ample/types.h"

namespace ample {

/// `start` with its free lengthscales times 1, a third, a tenth or a thirtieth, whichever makes the
/// batch most probable.
[[nodiscard]] Hyperparameters search_lengthscales(const Hyperparameters& start, const Matrix& X,
                                                  const Sites& sites);

}  // namespace ample
