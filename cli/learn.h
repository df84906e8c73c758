// What `fit` and `update` share: a model, a stream of batches, and all that happens around each.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ample/continual_gp.h"
#include "ample/snapshot.h"
#include "batches.h"
#include "distinct_files.h"
#include "model_file.h"
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
  bool wait = false;                 // for another program that updates it
  std::string report_to;             // empty: nowhere
  bool skip_bad_rows = false;
  bool json = false;
  std::optional<int> threads;
  std::optional<double> max_seconds;  // for the fit of a batch
};

/// Adds --save-every, --wait, --report, --skip-bad-rows, --json, --threads and --max-seconds.
void add_learn_options(CLI::App& command, LearnOptions& options);

/// The note with the --batch-size of a fit, the default of updates.
constexpr const char* kBatchSizeNote = "batch_size";
/// As the fit noted it in a model file, if it did. Throws ModelFileError unless it is a number of
/// rows.
[[nodiscard]] std::optional<Index> batch_size_of(const Snapshot& snapshot, const std::string& path);

/// To be called before any work: applies --threads, watches for signals, and makes sure now that
/// the model can be saved later and that nothing is overwritten. `inputs` are the data that the
/// command reads, `model` the model if it goes on from one. What comes by standard input cannot be
/// read again: its model is saved once a minute, unless
/// --save-every says otherwise. Returns where to save; null for nowhere.
[[nodiscard]] std::unique_ptr<ModelFile> prepare_to_learn(LearnOptions& options,
                                                          const std::vector<NamedFile>& inputs,
                                                          const std::string& model = "");

/// Learns from every batch, reports each, saves the model with `notes` and says what came of it.
/// Whatever ends it early, bad data, a failed computation, a signal, the model as of the last batch
/// that was learnt is saved, that is said, and the exception goes on.
void learn(ContinualGP model, BatchSource& source, const std::optional<TestSet>& test,
           const Notes& notes, const LearnOptions& options, ModelFile* file,
           const std::string& command);

}  // namespace ample::cli
