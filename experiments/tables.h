// Ours beside the paper's, as Markdown, from the result file alone.
#pragma once

#include <string>

#include "results.h"

namespace ample::experiments {

/// The table of an experiment, one of experiment_names().
[[nodiscard]] std::string table_of(const std::string& experiment, const Results& results);

/// A line a run: its last batch, and M after every batch. CSV, small enough to keep with the
/// sources.
[[nodiscard]] std::string runs_as_csv(const Results& results);

}  // namespace ample::experiments
