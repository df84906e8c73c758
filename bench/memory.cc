// The most memory that one batch takes, beside the formula of docs/performance.md.
//
//   memory [--size M] [--json FILE]
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ample/continual_gp.h"
#include "measure.h"

namespace ample::bench {
namespace {

/// A line of /proc/self/status, in bytes: "VmHWM" is the peak, "VmRSS" what is held now.
double status(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name + ":")) continue;
    double kilobytes = 0.0;
    std::istringstream(line.substr(name.size() + 1)) >> kilobytes;
    return 1024.0 * kilobytes;
  }
  return 0.0;
}

void forget_peak() { std::ofstream("/proc/self/clear_refs") << 5; }

int run(Index M, const std::string& json_path) {
  constexpr Index kRows = 300;
  constexpr Index kDimension = 8;
  const double before = status("VmRSS");
  if (before == 0.0) {
    fmt::print(stderr, "memory: /proc/self/status does not say; this needs Linux\n");
    return 3;
  }
  ContinualGPOptions options;
  options.start.kernel = SquaredExponential{.lengthscale = 2.0};
  options.selection = FixedGreedy{.size = M};
  options.refit_every = 0;
  ContinualGP gp(options);
  {
    const Batch batch = random_batch(M, kDimension, 1);
    gp.observe(batch.X, batch.y);
  }
  ContinualGP::Checkpoint checkpoint = *gp.checkpoint();
  gp = ContinualGP();
  checkpoint.options.selection = Vips{.max_inducing = M};
  checkpoint.options.refit_every = 1;
  checkpoint.options.fit.max_evaluations = 3;
  gp = ContinualGP(std::move(checkpoint));
  const double state = status("VmRSS") - before;

  forget_peak();
  const Batch batch = random_batch(kRows, kDimension, 2);
  gp.observe(batch.X, batch.y);
  const double peak = status("VmHWM") - before;

  const auto m = static_cast<double>(M);
  const double state_formula = 8.0 * 3.0 * m * m;
  const double peak_formula = 8.0 * (10.0 * m * m + 2.0 * double(kRows) * m);
  fmt::print("M = {}, N = {}\n", M, kRows);
  fmt::print("state  {:7.0f} MB, 3 M² doubles            {:7.0f} MB, ratio {:.2f}\n", 1e-6 * state,
             1e-6 * state_formula, state / state_formula);
  fmt::print("peak   {:7.0f} MB, 10 M² + 2 N M doubles   {:7.0f} MB, ratio {:.2f}\n", 1e-6 * peak,
             1e-6 * peak_formula, peak / peak_formula);
  const nlohmann::json out{{"inducing", M},        {"rows", kRows},
                           {"state_bytes", state}, {"state_formula_bytes", state_formula},
                           {"peak_bytes", peak},   {"peak_formula_bytes", peak_formula}};
  if (!json_path.empty()) std::ofstream(json_path) << out.dump(2) << '\n';
  return 0;
}

}  // namespace
}  // namespace ample::bench

int main(int argc, char** argv) {
  return ample::bench::run(std::stol(ample::bench::option(argc, argv, "--size", "3000")),
                           ample::bench::option(argc, argv, "--json", ""));
}
