// One run from its beginning, or from where it was stopped, to its end.
#pragma once

#include <filesystem>

#include "plan.h"
#include "results.h"

namespace ample::experiments {

/// Learns batch by batch, tests after each, and puts what comes of it into `results`. The model is
/// kept there every so many seconds and when a signal comes; Interrupted is then thrown. The exact
/// GP cannot be stopped half-way and begins anew.
void carry_out(const Run& run, const std::filesystem::path& data_folder,
               double seconds_between_saves, Results& results);

}  // namespace ample::experiments
