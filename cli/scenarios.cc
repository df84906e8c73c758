#include "scenarios.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "generator.h"

namespace ample::cli {
namespace {

constexpr std::size_t kBatches = 10;

/// Observes a function at the inputs, another one from some batch on, and cuts the stream into
/// equal batches.
std::vector<Batch> observe(const std::vector<double>& inputs, Generator& generator,
                           std::size_t first_changed = kBatches) {
  const std::size_t size = inputs.size() / kBatches;
  std::vector<Batch> batches;
  for (std::size_t b = 0; b < kBatches; ++b) {
    Batch batch{Matrix(static_cast<Index>(size), 1), Vector(static_cast<Index>(size))};
    for (std::size_t i = 0; i < size; ++i) {
      const double x = inputs[b * size + i];
      const auto row = static_cast<Index>(i);
      batch.X(row, 0) = x;
      const double f = b < first_changed ? scenario_function(x) : changed_function(x);
      batch.y[row] = f + kScenarioNoiseDeviation * generator.normal();
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

std::vector<double> uniform_inputs(std::size_t count, double low, double high,
                                   Generator& generator) {
  std::vector<double> inputs(count);
  for (double& x : inputs) x = generator.uniform(low, high);
  return inputs;
}

}  // namespace

double scenario_function(double x) { return std::sin(2.0 * x) + std::cos(5.0 * x); }

double changed_function(double x) { return std::sin(2.0 * x) - std::cos(5.0 * x); }

Scenario growing_domain(std::uint64_t seed) {
  Generator generator(seed);
  std::vector<double> inputs = uniform_inputs(500, 0.0, 10.0, generator);
  std::sort(inputs.begin(), inputs.end());
  return {"growing-domain", "growing domain", observe(inputs, generator), scenario_function};
}

Scenario fixed_domain(std::uint64_t seed) {
  Generator generator(seed);
  const std::vector<double> inputs = uniform_inputs(150, 0.0, 10.0, generator);
  return {"fixed-domain", "fixed domain", observe(inputs, generator), scenario_function};
}

Scenario outliers(std::uint64_t seed) {
  Generator generator(seed);
  std::vector<double> inputs = uniform_inputs(1000, 4.0, 6.0, generator);
  for (int i = 0; i < 300; ++i) inputs.push_back(generator.cauchy(5.0));
  return {"outliers", "narrow range with outliers", observe(inputs, generator), scenario_function};
}

Scenario changing_function(std::uint64_t seed) {
  Generator generator(seed);
  const std::vector<double> inputs = uniform_inputs(500, 0.0, 10.0, generator);
  return {.name = "changing-function",
          .title = "function that changes",
          .batches = observe(inputs, generator, kFirstChangedBatch),
          .function = changed_function,
          .changes = true};
}

ContinualGPOptions scenario_options() {
  ContinualGPOptions options;
  options.start.kernel = SquaredExponential{.variance = 1.0, .lengthscale = 0.5};
  options.start.noise_variance.value = 0.5;
  options.selection = Vips{.delta = 0.05};
  return options;
}

ContinualGPOptions forgetting_options() {
  ContinualGPOptions options = scenario_options();
  options.forget = Forgetting::adaptive();
  options.prune = 0.05;
  return options;
}

}  // namespace ample::cli
