// Whole jobs: the paper's streams from the first batch to the last, under the paper's protocol.
//
//   streams [--quick] [--folds F] [--json FILE]
//
// One row a job: final M, test RMSE, evaluations of the bound, seconds for selection and fit, and
// the worst ratio of the two in a batch. Needs the data sets (AMPLE_DATA).
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ample/continual_gp.h"
#include "ample/metrics.h"
#include "ample/threads.h"
#include "blas.h"
#include "protocol.h"
#include "support/data.h"

namespace ample {
namespace {

struct Job {
  std::string data;
  std::string method;
  SelectionMethod selection;
  bool quick;
};

struct Outcome {
  Index size = 0;
  double rmse = 0.0;
  double nlpd = 0.0;
  double elbo = 0.0;  // sum over batches
  int evaluations = 0;
  double select = 0.0;
  double fit = 0.0;
  double worst_ratio = 0.0;  // of selection to fit, over batches
};

void learn(ContinualGP& gp, const Batch& batch, Outcome& out) {
  const BatchReport r = gp.observe(batch.X, batch.y);
  out.elbo += r.elbo;
  out.evaluations += r.fit.evaluations;
  out.select += r.seconds_select;
  out.fit += r.seconds_fit;
  out.worst_ratio = std::max(out.worst_ratio, r.seconds_select / r.seconds_fit);
}

void score(const ContinualGP& gp, const Batch& test, Outcome& out) {
  const Prediction p = gp.predict(test.X, Target::observation);
  out.size = gp.size();
  out.rmse = rmse(test.y, p.mean);
  out.nlpd = nlpd(test.y, p);
}

Outcome run(const Job& job, Index fold) {
  ContinualGPOptions options;
  options.selection = job.selection;
  Outcome out;
  if (job.data == "magnetic") {
    options.start.kernel = Constant{500.0} + Kernel(Matern52{});
    ContinualGP gp(options);
    const Batch path = experiments::load_magnetic(testing::data_dir(), 3);
    constexpr Index kBatches = 20;
    const Index rows = path.X.rows() / kBatches;
    for (Index b = 0; b < kBatches; ++b) {
      const Index first = b * rows;
      const Index count = b + 1 == kBatches ? path.X.rows() - first : rows;
      learn(gp, {path.X.middleRows(first, count), path.y.segment(first, count)}, out);
    }
    double squares = 0.0;
    Index tested = 0;
    for (const int other : {1, 2, 4, 5}) {
      const Batch test = experiments::load_magnetic(testing::data_dir(), other);
      score(gp, test, out);
      squares += out.rmse * out.rmse * static_cast<double>(test.y.size());
      tested += test.y.size();
    }
    out.rmse = std::sqrt(squares / static_cast<double>(tested));
    return out;
  }
  options.start.kernel = SquaredExponential{.variance = Positive(1.0).within(1e-6, 2000.0)};
  ContinualGP gp(options);
  const experiments::Stream data = experiments::load_uci(testing::data_dir(), job.data, 0);
  for (Index b = 0; b < data.batches(); ++b) learn(gp, data.train(b, fold), out);
  score(gp, data.test(data.batches(), fold), out);
  return out;
}

int run_all(bool quick, Index folds, const std::string& json_path) {
  if (!testing::has_data()) {
    fmt::print(stderr, "streams: {}\n", testing::no_data());
    return 3;
  }
  std::vector<Job> jobs;
  for (const char* data : {"concrete", "skillcraft", "naval", "elevators"}) {
    jobs.push_back({data, "vips 0.095", Vips{.delta = 0.095}, true});
  }
  jobs.push_back({"naval", "vips 0.05", Vips{.delta = 0.05}, true});
  jobs.push_back({"magnetic", "vips 0.095", Vips{.delta = 0.095}, true});
  jobs.push_back({"naval", "fixed 100", FixedGreedy{.size = 100}, true});
  jobs.push_back({"bike", "vips 0.2", Vips{.delta = 0.2}, true});
  jobs.push_back({"kin8nm", "vips 0.2", Vips{.delta = 0.2}, false});
  jobs.push_back({"naval", "fixed 1000", FixedGreedy{.size = 1000}, false});

  fmt::print("{} threads, BLAS core {}\n\n", threads(), blas_core());
  fmt::print("{:<11}{:<12}{:>5}{:>6}{:>9}{:>9}{:>13}{:>7}{:>9}{:>9}{:>9}{:>8}\n", "data", "method",
             "fold", "M", "RMSE", "NLPD", "ELBO", "evals", "select s", "fit s", "total s", "worst");
  nlohmann::json rows = nlohmann::json::array();
  for (const Job& job : jobs) {
    if (quick && !job.quick) continue;
    const Index count = job.data == "magnetic" ? 1 : folds;
    for (Index fold = 0; fold < count; ++fold) {
      const Outcome o = run(job, fold);
      fmt::print(
          "{:<11}{:<12}{:>5}{:>6}{:>9.4f}{:>9.3f}{:>13.2f}{:>7}{:>9.3f}{:>9.3f}{:>9.3f}{:>8.2f}\n",
          job.data, job.method, fold, o.size, o.rmse, o.nlpd, o.elbo, o.evaluations, o.select,
          o.fit, o.select + o.fit, o.worst_ratio);
      std::fflush(stdout);
      rows.push_back({{"data", job.data},
                      {"method", job.method},
                      {"fold", fold},
                      {"inducing", o.size},
                      {"rmse", o.rmse},
                      {"nlpd", o.nlpd},
                      {"elbo", o.elbo},
                      {"evaluations", o.evaluations},
                      {"seconds_select", o.select},
                      {"seconds_fit", o.fit},
                      {"worst_select_over_fit", o.worst_ratio}});
    }
  }
  if (!json_path.empty()) {
    std::ofstream(json_path)
        << nlohmann::json{{"threads", threads()}, {"blas_core", blas_core()}, {"runs", rows}}.dump(
               2)
        << '\n';
  }
  return 0;
}

}  // namespace
}  // namespace ample

int main(int argc, char** argv) {
  bool quick = false;
  ample::Index folds = 1;
  std::string json_path;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--quick") quick = true;
    if (option == "--folds" && i + 1 < argc) folds = std::clamp(std::stoi(argv[++i]), 1, 5);
    if (option == "--json" && i + 1 < argc) json_path = argv[++i];
  }
  return ample::run_all(quick, folds, json_path);
}
