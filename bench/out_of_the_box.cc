// How a model fares on a table with no settings at all: a tenth of the rows is held out, the others
// are learnt in one pass. One line a table: size, errors in units of the target's deviation,
// coverage of 95 % intervals, seconds.
//
//   out_of_the_box [--order file|shuffled|sorted|target] [--batch N] [--paper] TABLE...
//
// The target is the last column; `--order sorted` is by the first, `--order target` by the target.
// `--paper` measures the first release's defaults instead.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "ample/continual_gp.h"
#include "ample/metrics.h"
#include "stopwatch.h"
#include "table.h"

namespace {

using namespace ample;  // NOLINT(*-using-namespace): a program of one file

struct Settings {
  std::string order = "shuffled";
  Index batch = 500;
  bool paper = false;
  ContinualGPOptions options = ContinualGPOptions::out_of_the_box();
};

Matrix read(const std::string& path) {
  cli::TableReader reader(path, {.skip_bad_rows = true});
  std::vector<Index> all(static_cast<std::size_t>(reader.columns()));
  std::iota(all.begin(), all.end(), 0);
  reader.select(all);
  return reader.rest().values;
}

void arrange(Matrix& table, const std::string& order) {
  std::vector<Index> rows(static_cast<std::size_t>(table.rows()));
  std::iota(rows.begin(), rows.end(), 0);
  if (order == "shuffled") {
    std::mt19937_64 generator(7);
    std::shuffle(rows.begin(), rows.end(), generator);
  } else if (order != "file") {
    const Index key = order == "target" ? table.cols() - 1 : 0;
    std::ranges::stable_sort(rows, {}, [&](Index row) { return table(row, key); });
  }
  table = table(rows, Eigen::all).eval();
}

void run(const std::string& path, const Settings& settings) {
  Matrix table = read(path);
  arrange(table, settings.order);
  const Index D = table.cols() - 1;
  std::vector<Index> train;
  std::vector<Index> test;
  for (Index i = 0; i < table.rows(); ++i) (i % 10 == 3 ? test : train).push_back(i);
  const Matrix X = table(train, Eigen::seq(0, D - 1));
  const Vector y = table(train, D);
  const Matrix X_test = table(test, Eigen::seq(0, D - 1));
  const Vector y_test = table(test, D);

  ContinualGPOptions options = settings.options;
  if (settings.paper) {
    options = {};
    options.start.kernel = SquaredExponential{.lengthscale = std::sqrt(static_cast<double>(D))};
    options.search_start = true;
    options.scaling = Standardize::first_batch;
  }
  ContinualGP gp(options);
  const Stopwatch watch;
  Index forgot = 0;
  Index relearnt = 0;
  Index capped = 0;
  std::string found;
  for (Index first = 0; first < X.rows(); first += settings.batch) {
    const Index rows = std::min(settings.batch, X.rows() - first);
    const BatchReport r = gp.observe(X.middleRows(first, rows), y.segment(first, rows));
    forgot += r.past_weight < 1.0 ? 1 : 0;
    relearnt += r.relearnt ? 1 : 0;
    capped += r.stop == SelectionStop::cap ? 1 : 0;
    if (!r.found_kernel.empty()) found = r.found_kernel;
  }
  const double seconds = watch.seconds();
  const Prediction p = gp.predict(X_test, Target::observation);
  const double unit = std::sqrt((y_test.array() - y_test.mean()).square().mean());
  const Prediction scaled{p.mean / unit, p.variance / (unit * unit)};
  const std::string name = path.substr(path.find_last_of('/') + 1);
  const std::string kernel = gp.kernel().to_string();
  fmt::print(
      "{:24} {:8} N {:6} D {:3} M {:5} RMSE {:8.4f} NLPD {:8.3f} cover {:.3f} {:7.2f} s  "
      "forgot {} relearnt {} capped {}  {}\n",
      name, settings.order, table.rows(), D, gp.size(), rmse(y_test, p.mean) / unit,
      nlpd(y_test / unit, scaled), coverage(y_test, p, 0.95), seconds, forgot, relearnt, capped,
      kernel.substr(0, kernel.find('(')));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  std::vector<std::string> tables;
  CLI::App app("How a model fares on tables with no settings at all");
  app.add_option("tables", tables, "Tables whose last column is the target")->required();
  app.add_option("--order", settings.order, "file, shuffled, sorted (by the first column), target")
      ->check(CLI::IsMember({"file", "shuffled", "sorted", "target"}));
  app.add_option("--batch", settings.batch, "Rows in a batch")->check(CLI::PositiveNumber);
  app.add_option("--reservoir", settings.options.reservoir, "Rows kept to fit hyperparameters to");
  app.add_option("--prune", settings.options.prune, "Share of a batch's nats for removing points");
  Vips vips{.delta = 0.005, .floor = 1e-3, .max_inducing = 1000};
  app.add_option("--delta", vips.delta, "Share of the explainable nats that may be lost");
  app.add_option("--cap", vips.max_inducing, "Most inducing points");
  bool never_forget = false;
  app.add_flag("--never-forget", never_forget, "Batches may not discount the past");
  bool by_variance = false;
  app.add_flag("--by-variance", by_variance, "Choose points by variance instead of by gain");
  app.add_flag("--paper", settings.paper, "The first release's defaults instead");
  CLI11_PARSE(app, argc, argv);
  if (!by_variance) vips.choose = Vips::Choose::gain;
  settings.options.selection = vips;
  if (never_forget) settings.options.forget = Forgetting::never();
  try {
    for (const std::string& table : tables) run(table, settings);
  } catch (const std::exception& error) {
    fmt::print(stderr, "out_of_the_box: {}\n", error.what());
    return 1;
  }
  return 0;
}
