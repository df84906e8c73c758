// The UCI sets (§5.3), also under other splits, and naval's training time (figure 2b).
#include <memory>

#include "job.h"
#include "protocol.h"

namespace ample::experiments {
namespace {

// "Max." in the paper's tables.
constexpr Index kMostPoints = 7000;

}  // namespace

Job uci_job(const Run& run, const std::filesystem::path& folder) {
  // Ties, batches and folds are shuffled anew for every five folds.
  const auto seed = static_cast<std::uint64_t>(run.fold / kFolds);
  const auto stream = std::make_shared<const Stream>(load_uci(folder, run.data, seed));
  const Index fold = run.fold % kFolds;
  Job job;
  job.batches = stream->batches();
  job.train = [=](Index batch) { return stream->train(batch, fold); };
  job.train_until = [=](Index seen) { return stream->train_until(seen, fold); };
  job.test = [=](Index seen) { return stream->test(seen, fold); };
  job.options.start.kernel = SquaredExponential{.variance = Positive(1.0).within(1e-6, 2000.0)};
  job.options.selection = selection_of(run, kMostPoints);
  job.options.seed = static_cast<std::uint64_t>(run.fold);
  job.exact_after = {job.batches};
  return job;
}

}  // namespace ample::experiments
