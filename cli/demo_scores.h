// What the demo shows of its streams: how a model grew, and how it does beside an exact GP.
#pragma once

#include <string>
#include <vector>

#include "ample/continual_gp.h"
#include "ample/types.h"
#include "scenarios.h"

namespace ample::cli {

/// One stream and the model that learns it.
struct DemoRun {
  Scenario scenario;
  ContinualGP model;
  std::vector<BatchReport> reports = {};
  std::vector<Index> beyond = {};  // rows of each batch outside the range of all before
  double low = 0.0, high = 0.0;    // that range

  const BatchReport& observe(const Batch& batch);
  /// Of the model, all batches together.
  [[nodiscard]] double seconds() const;
};

/// From some batch (from 0) on.
[[nodiscard]] Batch all_rows(const Scenario& scenario, std::size_t first = 0);

/// Where models are scored and drawn: the central 98 % of the inputs, to the next whole number. A
/// Cauchy distribution reaches so far that a picture of all its inputs shows nothing else.
[[nodiscard]] Vector scored_grid(const Batch& all);

/// Of a scenario at its end, without noise.
[[nodiscard]] Vector true_function(const Scenario& scenario, const Vector& x);

/// A model that has seen all data.
struct DemoScore {
  Index points = 0;   // inducing points, or the rows that an exact GP keeps
  double rmse = 0.0;  // of the mean, against the noiseless function
  double nlpd = 0.0;  // of new observations
  double lengthscale = 0.0;
  double variance = 0.0;
  double noise_variance = 0.0;
  double seconds = 0.0;
};

/// Of several models on one stream: a key for JSON and a title for people.
struct NamedScore {
  const char* key;
  const char* title;
  DemoScore score;
};
using DemoScores = std::vector<NamedScore>;

[[nodiscard]] DemoScore score_of(const DemoRun& run, const Vector& grid);
/// Fits an exact GP to all rows, of a function that changes to those since. Throws Interrupted if a
/// signal comes.
[[nodiscard]] DemoScore score_of_exact(const Scenario& scenario, const Hyperparameters& start,
                                       const Vector& grid);

/// How the model grew, in words that the numbers decide.
[[nodiscard]] std::string describe_growth(const DemoRun& run);
/// What a model forgot of a function that changed, and what became of one that forgets nothing.
[[nodiscard]] std::string describe_change(const DemoRun& run, const DemoRun& keeping,
                                          const Vector& grid);

}  // namespace ample::cli
