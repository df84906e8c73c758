// The result file: every run with its settings, what each batch gave, and what figures are drawn
// from. One SQLite file, docs in experiments/README.md. A run in the middle leaves its model there,
// so that whoever stops, or is stopped, goes on from its last save.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ample/types.h"
#include "database.h"
#include "plan.h"

namespace ample::experiments {

/// After one batch. Errors are those on the batch's test set, with the noise model's beside them.
struct BatchResult {
  Index batch = 0;  // from 1
  Index rows_seen = 0;
  Index inducing = 0;
  Index added = 0;
  Index removed = 0;
  std::string stop;
  double rmse = 0.0;
  double nlpd = 0.0;
  double noise_rmse = 0.0;
  double noise_nlpd = 0.0;
  double elbo = 0.0;  // log evidence of an exact GP
  std::optional<double> threshold;
  std::optional<double> gap;
  std::string kernel;
  double noise_variance = 0.0;
  int evaluations = 0;
  double seconds_select = 0.0;
  double seconds_fit = 0.0;
};

/// Calls visit(column, pointer to member) for every field, in the order of the table's columns.
template <class Visitor>
void for_each_column(Visitor&& visit) {
  visit("batch", &BatchResult::batch);
  visit("rows_seen", &BatchResult::rows_seen);
  visit("inducing", &BatchResult::inducing);
  visit("added", &BatchResult::added);
  visit("removed", &BatchResult::removed);
  visit("stop", &BatchResult::stop);
  visit("rmse", &BatchResult::rmse);
  visit("nlpd", &BatchResult::nlpd);
  visit("noise_rmse", &BatchResult::noise_rmse);
  visit("noise_nlpd", &BatchResult::noise_nlpd);
  visit("elbo", &BatchResult::elbo);
  visit("threshold", &BatchResult::threshold);
  visit("gap", &BatchResult::gap);
  visit("kernel", &BatchResult::kernel);
  visit("noise_variance", &BatchResult::noise_variance);
  visit("evaluations", &BatchResult::evaluations);
  visit("seconds_select", &BatchResult::seconds_select);
  visit("seconds_fit", &BatchResult::seconds_fit);
}

/// What a figure needs beyond that, as JSON.
struct Drawing {
  Index batch = 0;
  std::string name;
  std::string json;
};

/// What a run gave since it was last saved.
struct Progress {
  std::vector<BatchResult> batches;
  std::vector<Drawing> drawings;
  double seconds = 0.0;
};

/// A run that is not finished: the model's file, its settings, and the seconds it took so far.
struct Interruption {
  std::string model;
  std::string settings;
  double seconds = 0.0;
};

enum class RunState { missing, begun, done, failed };
[[nodiscard]] const char* to_text(RunState state);

class Results {
 public:
  /// Opens the file; makes it if it is to be written. Throws cli::DataError for any other file.
  explicit Results(const std::string& path, Access access = Access::write);

  [[nodiscard]] RunState state(const Run& run) const;
  /// Of a failed run.
  [[nodiscard]] std::string error(const Run& run) const;
  /// Seconds of a run that is done, and then has batches.
  [[nodiscard]] std::optional<double> seconds(const Run& run) const;
  /// In order.
  [[nodiscard]] std::vector<BatchResult> batches(const Run& run) const;
  /// Without reading the others.
  [[nodiscard]] std::optional<BatchResult> last_batch(const Run& run) const;
  [[nodiscard]] std::optional<Interruption> interruption(const Run& run) const;

  // Each of these is there as a whole or not at all, whenever the program ends.
  void keep(const Run& run, const Progress& progress, const std::string& settings,
            const std::string& model);
  void finish(const Run& run, const Progress& progress, const std::string& settings, int threads);
  void fail(const Run& run, const std::string& error);
  /// As if it had never been run.
  void forget(const Run& run);

 private:
  void add(const Run& run, const Progress& progress);
  void remove(const Run& run);
  void put(const Run& run, RunState state, double seconds, const std::string& settings, int threads,
           const std::string& error);

  Database database_;
};

}  // namespace ample::experiments
