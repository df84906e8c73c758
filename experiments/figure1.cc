// Figure 1: model size and data distribution. The streams are those of `ample demo`.
#include "drawing.h"
#include "job.h"
#include "scenarios.h"

namespace ample::experiments {
namespace {

cli::Scenario scenario(const std::string& name, std::uint64_t seed) {
  if (name == "growing-domain") return cli::growing_domain(seed);
  if (name == "fixed-domain") return cli::fixed_domain(seed);
  return cli::outliers(seed);
}

}  // namespace

Job figure1_job(const Run& run) {
  const cli::Scenario streamed = scenario(run.data, static_cast<std::uint64_t>(run.fold));
  const double low = run.data == "outliers" ? -5.0 : 0.0;
  const double high = run.data == "outliers" ? 15.0 : 10.0;
  const Batch grid = grid_of(cli::scenario_function, low, high, 400);
  const auto test = [grid](Index) { return grid; };
  Job job = job_of(streamed.batches, test, cli::scenario_options());
  job.options.selection = selection_of(run);
  job.draw = [train = job.train, grid](const ContinualGP& model, Index batch) {
    return std::vector<Drawing>{{batch, "curve", curve(model, train(batch - 1), grid.X)}};
  };
  return job;
}

}  // namespace ample::experiments
