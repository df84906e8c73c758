// How long a robot waits: one row learnt and one row predicted by models of 100, 300 and 1000
// inducing points, in eight dimensions, hyperparameters frozen. Percentiles over many calls.
//
//   latency [--calls N] [--json FILE]
//
// N calls at M = 100, and at the others as many as take about the same time.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ample/continual_gp.h"
#include "measure.h"

namespace ample::bench {
namespace {

constexpr Index kDimension = 8;

/// A model of M points that will neither grow nor refit.
ContinualGP frozen_model(const Batch& data, Index M) {
  ContinualGPOptions options;
  options.start.kernel = SquaredExponential{.lengthscale = 3.0};
  options.selection = Vips{.delta = 1e-6, .max_inducing = M};
  options.refit_every = 0;
  ContinualGP gp(options);
  gp.observe(data.X, data.y);
  return gp;
}

nlohmann::json percentiles(const std::string& name, std::vector<double> times) {
  std::sort(times.begin(), times.end());
  nlohmann::json out{{"calls", times.size()}};
  fmt::print("{:<16}", name);
  for (const auto& [label, share] :
       {std::pair{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}}) {
    const double micro = 1e6 * times[static_cast<std::size_t>(share * double(times.size() - 1))];
    fmt::print("  {} {:8.1f}", label, micro);
    out[label] = micro;
  }
  out["max"] = 1e6 * times.back();
  fmt::print("  max {:8.1f} µs\n", 1e6 * times.back());
  return out;
}

nlohmann::json latency_of(Index M, int calls) {
  const Batch data = random_batch(std::max<Index>(2000, 2 * M), kDimension, 1);
  ContinualGP gp = frozen_model(data, M);
  std::vector<double> update;
  std::vector<double> predict;
  double sink = 0.0;
  for (int i = 0; i < calls; ++i) {
    const Index row = i % data.X.rows();
    const Matrix x = data.X.row(row);
    const Vector y = data.y.segment(row, 1);
    update.push_back(seconds([&] { gp.observe(x, y); }));
    predict.push_back(seconds([&] { sink += gp.predict(x).mean[0]; }));
  }
  if (!std::isfinite(sink)) throw std::runtime_error("a prediction is not finite");
  fmt::print("M = {}, D = {}, {} calls\n", gp.size(), kDimension, calls);
  return {{"inducing", gp.size()},
          {"dimension", kDimension},
          {"update_microseconds", percentiles("one-row update", update)},
          {"predict_microseconds", percentiles("one-row predict", predict)}};
}

int run(int calls, const std::string& json_path) {
  nlohmann::json out;
  for (const Index M : {100, 300, 1000}) {
    const auto times = static_cast<int>(M * M / 10000);
    out["sizes"].push_back(latency_of(M, std::max(calls / times, 100)));
  }
  if (!json_path.empty()) std::ofstream(json_path) << out.dump(2) << '\n';
  return 0;
}

}  // namespace
}  // namespace ample::bench

int main(int argc, char** argv) {
  return ample::bench::run(std::stoi(ample::bench::option(argc, argv, "--calls", "100000")),
                           ample::bench::option(argc, argv, "--json", ""));
}
