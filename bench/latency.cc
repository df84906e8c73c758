// How long a robot waits: one row learnt and one row predicted by a model of 100 inducing points,
// in eight dimensions, hyperparameters frozen. Percentiles over many calls.
//
//   latency [--calls N] [--json FILE]
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ample/continual_gp.h"
#include "measure.h"

namespace ample::bench {
namespace {

constexpr Index kSize = 100;
constexpr Index kDimension = 8;

/// A model of kSize points that will neither grow nor refit.
ContinualGP frozen_model(const Batch& data) {
  ContinualGPOptions options;
  options.start.kernel = SquaredExponential{.lengthscale = 3.0};
  options.selection = Vips{.max_inducing = kSize};
  ContinualGP gp(options);
  gp.observe(data.X, data.y);
  ContinualGP::Checkpoint frozen = *gp.checkpoint();
  frozen.options.refit_every = 0;
  return ContinualGP(std::move(frozen));
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

int run(int calls, const std::string& json_path) {
  const Batch data = random_batch(2000, kDimension, 1);
  ContinualGP gp = frozen_model(data);
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
  fmt::print("M = {}, D = {}, {} calls\n", gp.size(), kDimension, calls);
  const nlohmann::json out{{"inducing", gp.size()},
                           {"dimension", kDimension},
                           {"update_microseconds", percentiles("one-row update", update)},
                           {"predict_microseconds", percentiles("one-row predict", predict)}};
  if (!json_path.empty()) std::ofstream(json_path) << out.dump(2) << '\n';
  return std::isfinite(sink) ? 0 : 1;
}

}  // namespace
}  // namespace ample::bench

int main(int argc, char** argv) {
  return ample::bench::run(std::stoi(ample::bench::option(argc, argv, "--calls", "100000")),
                           ample::bench::option(argc, argv, "--json", ""));
}
