// The magnetic field of a room (§5.4), walked by a robot: four paths one after another, or one path
// in pieces.
#include "drawing.h"
#include "job.h"
#include "protocol.h"

namespace ample::experiments {
namespace {

constexpr Index kPieces = 20;
constexpr Index kMapCells = 60;

// CV would take nearly every point. The paper names no cap here; this is the one it has for CV in
// its larger data.
constexpr Index kCrossValidationCap = 5000;

Batch joined(const std::filesystem::path& folder, const std::vector<int>& paths) {
  std::vector<Batch> parts;
  for (const int path : paths) parts.push_back(load_magnetic(folder, path));
  const auto count = static_cast<Index>(parts.size());
  return job_of(std::move(parts), nullptr, {}).train_until(count);
}

}  // namespace

Job magnetic_job(const Run& run, const std::filesystem::path& folder) {
  const std::vector<int> one{3};
  const std::vector<int> four{1, 2, 4, 5};
  ContinualGPOptions options;
  options.start.kernel = Constant{500.0} + Kernel(Matern52{});
  const bool stream = run.experiment == "magnetic-stream";
  options.selection = selection_of(run, run.method == "cv" ? kCrossValidationCap : kNoCap);

  std::vector<Batch> batches;
  if (stream) {
    batches = cut(load_magnetic(folder, 3), kPieces);
  } else {
    for (const int path : four) batches.push_back(load_magnetic(folder, path));
  }
  const auto test = [others = joined(folder, stream ? four : one)](Index) { return others; };
  Job job = job_of(std::move(batches), test, std::move(options));

  // The same square for every map, a little wider than what was walked.
  const Matrix walked = joined(folder, {1, 2, 3, 4, 5}).X;
  const Vector low = walked.colwise().minCoeff().array() - 0.2;
  const Vector high = walked.colwise().maxCoeff().array() + 0.2;
  job.draw = [=, train = job.train, train_until = job.train_until](const ContinualGP& model,
                                                                   Index batch) {
    std::vector<Drawing> drawings;
    if (!stream || batch == 1 || batch % 5 == 0) {
      const Matrix path = stream ? train_until(batch).X : train(batch - 1).X;
      drawings.push_back({batch, "map", map(model, path, low, high, kMapCells)});
    }
    return drawings;
  };
  return job;
}

}  // namespace ample::experiments
