// Figure 2a: fixed sizes, VIPS and the exact GP on a synthetic stream.
#include <algorithm>
#include <vector>

#include "drawing.h"
#include "generator.h"
#include "job.h"
#include "protocol.h"
#include "scenarios.h"

namespace ample::experiments {
namespace {

constexpr Index kStreamRows = 1000;
constexpr Index kStreamBatches = 4;
constexpr double kStreamNoiseDeviation = 1.0;

/// Inputs uniform on [0, 12] in ascending order: every batch is a new part of the domain.
Batch sample(std::uint64_t seed) {
  cli::Generator generator(seed);
  std::vector<double> inputs(kStreamRows);
  for (double& x : inputs) x = generator.uniform(0.0, 12.0);
  std::ranges::sort(inputs);
  Batch data{Matrix(kStreamRows, 1), Vector(kStreamRows)};
  for (Index i = 0; i < kStreamRows; ++i) {
    const double x = inputs[static_cast<std::size_t>(i)];
    data.X(i, 0) = x;
    data.y[i] = cli::scenario_function(x) + kStreamNoiseDeviation * generator.normal();
  }
  return data;
}

}  // namespace

Job figure2a_job(const Run& run) {
  const Batch data = sample(static_cast<std::uint64_t>(run.fold));
  const Batch grid = grid_of(cli::scenario_function, 0.0, 10.0, 500);
  ContinualGPOptions options = cli::scenario_options();
  options.selection = selection_of(run);
  Job job = job_of(cut(data, kStreamBatches), nullptr, std::move(options));
  // The part of the grid that the stream has reached: beyond it there is nothing to know yet.
  job.test = [grid, train = job.train](Index seen) {
    const double reached = train(seen - 1).X.maxCoeff();
    const Index count = (grid.X.col(0).array() <= reached).count();
    return Batch{grid.X.topRows(count), grid.y.head(count)};
  };
  for (Index seen = 1; seen <= kStreamBatches; ++seen) job.exact_after.push_back(seen);
  return job;
}

}  // namespace ample::experiments
