// How the time of a batch grows: with the size of the model, with the rows of the batch, and (it
// must not) with the rows already seen. The hyperparameters are refitted by a fixed number of
// evaluations, so that the times differ by nothing but size.
//
//   growth [--quick] [--json FILE]
#include <algorithm>
#include <bit>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ample/continual_gp.h"
#include "measure.h"

namespace ample::bench {
namespace {

constexpr Index kDimension = 8;

/// A model of M points that takes part in further batches and does not grow.
ContinualGP model_of_size(Index M) {
  ContinualGPOptions options;
  options.start.kernel = SquaredExponential{.lengthscale = 2.0};
  options.selection = Vips{.delta = 1e-6, .max_inducing = M};
  options.refit_every = 0;
  ContinualGP gp(options);
  const Batch batch = random_batch(M, kDimension, 1);
  gp.observe(batch.X, batch.y);
  ContinualGP::Checkpoint checkpoint = *gp.checkpoint();
  checkpoint.options.refit_every = 1;
  checkpoint.options.fit.max_evaluations = 5;
  checkpoint.options.fit_tolerance = 0.0;
  return ContinualGP(std::move(checkpoint));
}

/// One more batch of N rows for a model.
struct Case {
  ContinualGP model;
  Index N;
};

/// The best of a few times for each, taken in turn: a machine that is slower for a minute is slower
/// for all of them.
std::vector<double> times_of(const std::vector<Case>& cases, int repeats) {
  std::vector<double> best(cases.size(), std::numeric_limits<double>::infinity());
  for (int r = 0; r < repeats; ++r) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      ContinualGP gp = cases[i].model;
      const Batch batch = random_batch(cases[i].N, kDimension, 2);
      best[i] = std::min(best[i], seconds([&] { gp.observe(batch.X, batch.y); }));
    }
  }
  return best;
}

struct Series {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;

  nlohmann::json report(const std::string& what, const std::string& goal) const {
    const double slope = log_slope(x, y);
    fmt::print("{}: slope {:.3f} (goal {})\n", what, slope, goal);
    for (std::size_t i = 0; i < x.size() && x.size() < 20; ++i) {
      fmt::print("  {} = {:>6}: {:9.2f} ms\n", name, x[i], 1e3 * y[i]);
    }
    return {{name, x}, {"seconds", y}, {"slope", slope}, {"goal", goal}};
  }
};

int run(bool quick, const std::string& json_path) {
  const int repeats = quick ? 2 : 4;
  nlohmann::json out;

  Series size{.name = "M", .x = {}, .y = {}};
  std::vector<Case> cases;
  for (const Index M : {500, 700, 1000, 1400, 2000}) {
    if (quick && M > 1400) continue;
    size.x.push_back(static_cast<double>(M));
    cases.push_back({model_of_size(M), 500});
  }
  size.y = times_of(cases, repeats);
  out["size"] = size.report("time of a batch of 500 rows against M", "2 to 3");

  Series rows{.name = "N", .x = {}, .y = {}};
  cases.clear();
  for (const Index N : {250, 500, 1000, 2000, 4000, 8000}) {
    rows.x.push_back(static_cast<double>(N));
    cases.push_back({model_of_size(500), N});
  }
  rows.y = times_of(cases, repeats);
  out["rows"] = rows.report("time of a batch at M = 500 against its rows N", "at most 1.1");

  // Copies of one model as it was at several moments of its stream.
  Series seen{.name = "rows seen", .x = {}, .y = {}};
  cases.clear();
  ContinualGP gp = model_of_size(100);
  const unsigned batches = quick ? 256 : 1024;
  for (unsigned b = 1; b <= batches; ++b) {
    const Batch batch = random_batch(100, kDimension, 10 + b);
    gp.observe(batch.X, batch.y);
    if (!std::has_single_bit(b)) continue;
    seen.x.push_back(static_cast<double>(gp.rows_seen()));
    cases.push_back({gp, 100});
  }
  seen.y = times_of(cases, 10 * repeats);
  out["seen"] = seen.report("time of a batch at M = 100 against the rows already seen", "0 ± 0.05");
  if (!json_path.empty()) std::ofstream(json_path) << out.dump(2) << '\n';
  return 0;
}

}  // namespace
}  // namespace ample::bench

int main(int argc, char** argv) {
  return ample::bench::run(ample::bench::flag(argc, argv, "--quick"),
                           ample::bench::option(argc, argv, "--json", ""));
}
