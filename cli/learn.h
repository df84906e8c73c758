// What `fit` and `update` share: a model, a stream of batches, and all that happens around each.
#pragma once

#include <optional>
#include <string>

#include "ample/continual_gp.h"
#include "ample/snapshot.h"
#include "batches.h"
#include "report.h"

namespace CLI {
class App;
}

namespace ample::cli {

/// A test file, and the units in which it is scored: targets are divided by `unit`.
struct TestSet {
  Batch data;
  double unit = 1.0;
};

struct LearnOptions {
  std::string save_to;               // empty: nowhere
  std::optional<double> save_every;  // seconds; none: only at the end
  std::string report_to;             // empty: nowhere
  bool skip_bad_rows = false;
  bool json = false;
  std::optional<int> threads;
};

/// Adds --save-every, --report, --skip-bad-rows, --json and --threads.
void add_learn_options(CLI::App& command, LearnOptions& options);

/// The note with the --batch-size of a fit, the default of updates.
constexpr const char* kBatchSizeNote = "batch_size";

/// Learns from every batch, reports each, saves the model with `notes` and says what came of it. On
/// SIGINT or SIGTERM the batch at hand is given up, the model as of the batch before is saved, and
/// Interrupted is thrown.
void learn(ContinualGP model, BatchSource& source, const std::optional<TestSet>& test,
           const Notes& notes, const LearnOptions& options, const std::string& command);

/// To be called before any work: applies --threads, watches for signals, and finds out now whether
/// the model can be saved later. What comes by standard input cannot be read again: its model is
/// saved once a minute, unless --save-every says otherwise.
void prepare_to_learn(LearnOptions& options, const std::string& data);

}  // namespace ample::cli
