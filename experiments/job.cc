#include "job.h"

#include <memory>
#include <stdexcept>
#include <utility>

#include "fronts.h"

namespace ample::experiments {

SelectionMethod selection_of(const Run& run, Index cap) {
  // L* as in the paper, though on a whole path of the robot an upper bound would be less work.
  if (run.method == "vips") {
    return Vips{.delta = run.parameter, .reference = Vips::Reference::optimum, .max_inducing = cap};
  }
  if (run.method == "cv") return ConditionalVariance{.eta = run.parameter, .max_inducing = cap};
  if (run.method == "oips") return Oips{.rho = run.parameter, .max_inducing = cap};
  if (run.method == "fixed-greedy") return FixedGreedy{.size = static_cast<Index>(run.parameter)};
  if (run.method == "exact") return Vips{};  // not asked for
  throw std::logic_error("no selection method '" + run.method + "'");
}

Job job_of(std::vector<Batch> batches, std::function<Batch(Index seen)> test,
           ContinualGPOptions options) {
  const auto all = std::make_shared<const std::vector<Batch>>(std::move(batches));
  Job job;
  job.batches = static_cast<Index>(all->size());
  job.train = [all](Index batch) { return (*all)[static_cast<std::size_t>(batch)]; };
  job.train_until = [all](Index seen) {
    Index rows = 0;
    for (Index b = 0; b < seen; ++b) rows += (*all)[static_cast<std::size_t>(b)].X.rows();
    Batch joined{Matrix(rows, all->front().X.cols()), Vector(rows)};
    Index row = 0;
    for (Index b = 0; b < seen; ++b) {
      const Batch& part = (*all)[static_cast<std::size_t>(b)];
      joined.X.middleRows(row, part.X.rows()) = part.X;
      joined.y.segment(row, part.y.size()) = part.y;
      row += part.X.rows();
    }
    return joined;
  };
  job.test = std::move(test);
  job.options = std::move(options);
  return job;
}

Job make_job(const Run& run, const std::filesystem::path& folder) {
  if (run.experiment == "figure1") return figure1_job(run);
  if (run.experiment == "figure2a") return figure2a_job(run);
  if (run.experiment == "figure2b" || run.experiment.starts_with("uci")) {
    return uci_job(run, folder);
  }
  if (run.experiment == "large") return large_job(run);
  if (run.experiment.starts_with("magnetic-")) return magnetic_job(run, folder);
  if (run.experiment == "fronts") return fronts_job(run, folder);
  throw std::logic_error("no experiment '" + run.experiment + "'");
}

}  // namespace ample::experiments
