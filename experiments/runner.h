// Many runs on several processes. Each run is a process of its own, which writes its results
// itself: whatever is killed, at whatever moment, the result file holds whole runs and resumable
// ones.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "plan.h"

namespace ample::experiments {

struct RunnerOptions {
  std::string results;  // the file
  std::filesystem::path data_folder;
  int jobs = 1;
  double seconds_between_saves = 10.0;
  bool again = false;  // forget what is there of the runs first
};

/// Runs that did not end, and how many of these for a reason other than the data's.
struct Failures {
  int runs = 0;
  int numerical = 0;
};

/// Carries out the runs that are not done yet, and says how far it is on standard error. Throws
/// cli::DataError if another runner has the result file, cli::Interrupted after a signal, all that
/// was reached being kept.
Failures run_all(const std::vector<Run>& runs, const RunnerOptions& options);

/// What a process of the runner does: one run, then its end.
void run_as_worker(const std::string& key, const RunnerOptions& options, int threads);

}  // namespace ample::experiments
