// The three streams of the paper's Figure 1 (its appendix, "Model size and data distribution"), and
// one whose function changes:
//
//   y = sin(2x) + cos(5x) + noise of standard deviation 0.2, in ten batches
//
//   growing domain    500 inputs, uniform on [0, 10], in ascending order: every batch is new
//   fixed domain      150 inputs, uniform on [0, 10], in random order: less and less is new
//   outliers          1000 inputs, uniform on [4, 6], then 300 from a Cauchy distribution around 5:
//                     nothing is new until the outliers come, in batch 8
//   changing          500 inputs, uniform on [0, 10], in random order; from batch 6 on the function
//   function          is sin(2x) − cos(5x)
//
// The same seed gives the same numbers on every platform.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ample/continual_gp.h"
#include "ample/types.h"

namespace ample::cli {

struct Scenario {
  std::string name;   // for files: "growing-domain"
  std::string title;  // for people: "growing domain"
  std::vector<Batch> batches;
  double (*function)(double);  // without noise, at the end of the stream
  bool changes = false;        // the function was another one at its beginning
};

/// sin(2x) + cos(5x), what the noise is added to.
[[nodiscard]] double scenario_function(double x);
/// sin(2x) − cos(5x), what it changes into.
[[nodiscard]] double changed_function(double x);

inline constexpr double kScenarioNoiseDeviation = 0.2;

[[nodiscard]] Scenario growing_domain(std::uint64_t seed);
[[nodiscard]] Scenario fixed_domain(std::uint64_t seed);
[[nodiscard]] Scenario outliers(std::uint64_t seed);
[[nodiscard]] Scenario changing_function(std::uint64_t seed);

/// The first batch (from 0) of `outliers` with an outlier in it.
inline constexpr std::size_t kFirstOutlierBatch = 7;
/// The first batch (from 0) of `changing_function` with the new function.
inline constexpr std::size_t kFirstChangedBatch = 5;

/// The model the paper uses on them: SE kernel, lengthscale 0.5, variance 1, noise variance 0.5,
/// VIPS with δ = 0.05.
[[nodiscard]] ContinualGPOptions scenario_options();

/// The same model, which forgets what no longer holds, and prunes.
[[nodiscard]] ContinualGPOptions forgetting_options();

}  // namespace ample::cli
