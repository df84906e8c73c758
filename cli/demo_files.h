// What the demo leaves behind: demo.json, which scripts/plot_demo.py draws (no times, so the same
// seed gives the same file), the model of the first stream, and tables to try the other commands
// on.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "ample/types.h"
#include "demo_scores.h"

namespace ample::cli {

/// Without the seconds.
[[nodiscard]] nlohmann::ordered_json to_json(const DemoScore& score);

/// All that it takes to draw a run.
[[nodiscard]] nlohmann::ordered_json picture_of(const DemoRun& run, const Vector& grid);

/// What it takes to draw one beside it: its score, M after each batch, and its mean.
[[nodiscard]] nlohmann::ordered_json shadow_of(const DemoRun& run, const Vector& grid);

/// Throws DataError if there is none and it cannot be made.
[[nodiscard]] std::filesystem::path make_folder(const std::string& path);

/// What the commands that the demo suggests are run on.
void write_tables(const std::filesystem::path& folder, const Batch& all, const Vector& grid);

}  // namespace ample::cli
