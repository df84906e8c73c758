// What a run is made of: a stream of batches, the test set after each, and a model to begin with.
// Each experiment of the paper has a file that makes its jobs.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "ample/continual_gp.h"
#include "plan.h"
#include "results.h"

namespace ample::experiments {

struct Job {
  Index batches = 0;
  /// What the batch (from 0) trains on.
  std::function<Batch(Index batch)> train;
  /// All that the first `seen` batches trained on, for the exact GP.
  std::function<Batch(Index seen)> train_until;
  /// What a model that has seen so many batches is tested on.
  std::function<Batch(Index seen)> test;
  /// The model at its start, its selection included; an exact GP takes the hyperparameters.
  ContinualGPOptions options;
  /// After how many batches the exact GP is fitted.
  std::vector<Index> exact_after;
  /// For figures, after a batch (from 1); may be empty.
  std::function<std::vector<Drawing>(const ContinualGP& model, Index batch)> draw;
};

/// `folder` has the data sets. Throws cli::DataError if one that is needed is missing.
[[nodiscard]] Job make_job(const Run& run, const std::filesystem::path& folder);

[[nodiscard]] Job figure1_job(const Run& run);
[[nodiscard]] Job figure2a_job(const Run& run);
/// uci and uci-splits, and figure2b, which is its naval.
[[nodiscard]] Job uci_job(const Run& run, const std::filesystem::path& folder);
[[nodiscard]] Job magnetic_job(const Run& run, const std::filesystem::path& folder);
[[nodiscard]] Job large_job(const Run& run);

/// The selection method of a run, `cap` being the limit on M where it has one.
[[nodiscard]] SelectionMethod selection_of(const Run& run, Index cap = kNoCap);

/// A job on batches that are all there, tested on `test` after each.
[[nodiscard]] Job job_of(std::vector<Batch> batches, std::function<Batch(Index seen)> test,
                         ContinualGPOptions options);

}  // namespace ample::experiments
