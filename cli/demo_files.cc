#include "demo_files.h"

#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "errors.h"
#include "output.h"
#include "report.h"

namespace ample::cli {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const VectorRef& v) { return std::vector<double>(v.begin(), v.end()); }

void write_file(const std::filesystem::path& path, const std::string& text) {
  TextOutput file(path.string());
  file.write(text);
  file.finish();
}

}  // namespace

nlohmann::ordered_json to_json(const DemoScore& o) {
  return {{"points", o.points},     {"rmse", o.rmse},
          {"nlpd", o.nlpd},         {"lengthscale", o.lengthscale},
          {"variance", o.variance}, {"noise_variance", o.noise_variance}};
}

nlohmann::ordered_json picture_of(const DemoRun& run, const Vector& grid) {
  const Prediction p = run.model.predict(grid);
  Json batches = Json::array();
  for (std::size_t b = 0; b < run.reports.size(); ++b) {
    Json batch = Json::parse(to_json_line(run.reports[b], {}));
    batch.erase("seconds_select");
    batch.erase("seconds_fit");
    batch["x"] = to_json(run.scenario.batches[b].X.col(0));
    batch["y"] = to_json(run.scenario.batches[b].y);
    batches.push_back(std::move(batch));
  }
  return {{"batches", std::move(batches)},
          {"inducing_inputs", to_json(run.model.inducing_inputs().col(0))},
          {"grid",
           {{"x", to_json(grid)},
            {"truth", to_json(true_function(run.scenario, grid))},
            {"mean", to_json(p.mean)},
            {"std", to_json(p.variance.cwiseSqrt())}}}};
}

nlohmann::ordered_json shadow_of(const DemoRun& run, const Vector& grid) {
  Json shadow = to_json(score_of(run, grid));
  Json sizes = Json::array();
  for (const BatchReport& r : run.reports) sizes.push_back(r.inducing);
  shadow["inducing"] = std::move(sizes);
  shadow["mean"] = to_json(run.model.predict(grid).mean);
  return shadow;
}

std::filesystem::path make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    throw DataError(fmt::format("{}: cannot make the folder: {}", path, error.message()));
  }
  return path;
}

void write_tables(const std::filesystem::path& folder, const Batch& all, const Vector& grid) {
  std::string stream = "x,y\n";
  for (Index i = 0; i < all.y.size(); ++i) stream += fmt::format("{},{}\n", all.X(i, 0), all.y[i]);
  write_file(folder / "stream.csv", stream);
  std::string queries = "x\n";
  for (const double x : grid) queries += fmt::format("{}\n", x);
  write_file(folder / "new.csv", queries);
}

}  // namespace ample::cli
