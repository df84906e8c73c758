// What a user should know after a batch, in sentences.
#pragma once

#include <string>
#include <vector>

#include "ample/continual_gp.h"

namespace ample {

/// `before` is the model before the batch; `rows` are those that were learnt, in data units.
[[nodiscard]] std::vector<std::string> warnings(const ContinualGP::Checkpoint& before,
                                                const BatchReport& report,
                                                const ContinualGP::Pending& rows);

}  // namespace ample
