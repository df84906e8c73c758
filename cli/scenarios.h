// The three streams of the paper's Figure 1 (its appendix, "Model size and data distribution"):
//
//   y = sin(2x) + cos(5x) + noise of standard deviation 0.2, in ten batches
//
//   growing domain    500 inputs, uniform on [0, 10], in ascending order: every batch is new
//   fixed domain      150 inputs, uniform on [0, 10], in random order: less and less is new
//   outliers          1000 inputs, uniform on [4, 6], then 300 from a Cauchy distribution around 5:
//                     nothing is new until the outliers come, in batch 8
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
};

/// sin(2x) + cos(5x), what the noise is added to.
[[nodiscard]] double scenario_function(double x);

inline constexpr double kScenarioNoiseDeviation = 0.2;

[[nodiscard]] Scenario growing_domain(std::uint64_t seed);
[[nodiscard]] Scenario fixed_domain(std::uint64_t seed);
[[nodiscard]] Scenario outliers(std::uint64_t seed);

/// The first batch (from 0) of `outliers` with an outlier in it.
inline constexpr std::size_t kFirstOutlierBatch = 7;

/// The model the paper uses on them: SE kernel, lengthscale 0.5, variance 1, noise variance 0.5,
/// VIPS with δ = 0.05.
[[nodiscard]] ContinualGPOptions scenario_options();

}  // namespace ample::cli
