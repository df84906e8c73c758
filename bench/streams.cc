// Whole jobs: the paper's streams from the first batch to the last, under the paper's protocol.
//
//   streams [--quick] [--folds F] [--json FILE]
//
// One row a job: final M, test RMSE, evaluations of the bound, seconds for selection and fit, and
// the worst ratio of the two in a batch. Needs the data sets (AMPLE_DATA).
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ample/continual_gp.h"
#include "ample/metrics.h"
#include "ample/threads.h"
#include "blas.h"
#include "job.h"
#include "support/data.h"

namespace ample {
namespace {

struct Line {
  experiments::Run run;
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
  BatchReport worst;         // the batch that has it
};

Outcome carry_out(const experiments::Run& run) {
  const experiments::Job job = experiments::make_job(run, testing::data_dir());
  ContinualGP gp(job.options);
  Outcome out;
  for (Index b = 0; b < job.batches; ++b) {
    const Batch batch = job.train(b);
    const BatchReport r = gp.observe(batch.X, batch.y);
    out.elbo += r.elbo;
    out.evaluations += r.fit.evaluations;
    out.select += r.seconds_select;
    out.fit += r.seconds_fit;
    if (const double ratio = r.seconds_select / r.seconds_fit; ratio > out.worst_ratio) {
      out.worst_ratio = ratio;
      out.worst = r;
    }
  }
  const Batch test = job.test(job.batches);
  const Prediction p = gp.predict(test.X, Target::observation);
  out.size = gp.size();
  out.rmse = rmse(test.y, p.mean);
  out.nlpd = nlpd(test.y, p);
  return out;
}

int run_all(bool quick, int folds, const std::string& json_path) {
  if (!testing::has_data()) {
    fmt::print(stderr, "streams: {}\n", testing::no_data());
    return 3;
  }
  std::vector<Line> lines;
  for (const char* data : {"concrete", "skillcraft", "naval", "elevators"}) {
    lines.push_back({{"uci", data, "vips", 0.095, 0}, true});
  }
  lines.push_back({{"uci", "naval", "vips", 0.05, 0}, true});
  lines.push_back({{"magnetic-stream", "magnetic", "vips", 0.095, 0}, true});
  lines.push_back({{"uci", "naval", "fixed-greedy", 100, 0}, true});
  lines.push_back({{"uci", "bike", "vips", 0.2, 0}, true});
  lines.push_back({{"uci", "kin8nm", "vips", 0.2, 0}, false});
  lines.push_back({{"large", "growing-domain", "vips", 0.095, 0}, false});
  lines.push_back({{"uci", "naval", "fixed-greedy", 1000, 0}, false});

  fmt::print("{} threads, BLAS core {}\n\n", threads(), blas_core());
  fmt::print("{:<16}{:<12}{:>5}{:>6}{:>9}{:>9}{:>13}{:>7}{:>9}{:>9}{:>9}{:>8}\n", "data", "method",
             "fold", "M", "RMSE", "NLPD", "ELBO", "evals", "select s", "fit s", "total s", "worst");
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& [line, is_quick] : lines) {
    if (quick && !is_quick) continue;
    for (int fold = 0; fold < (line.experiment == "uci" ? folds : 1); ++fold) {
      experiments::Run run = line;
      run.fold = fold;
      const Outcome o = carry_out(run);
      const std::string method =
          fmt::format("{} {}", run.method == "fixed-greedy" ? "fixed" : run.method, run.parameter);
      fmt::print(
          "{:<16}{:<12}{:>5}{:>6}{:>9.4f}{:>9.3f}{:>13.2f}{:>7}{:>9.3f}{:>9.3f}{:>9.3f}{:>8.2f}\n",
          run.data, method, fold, o.size, o.rmse, o.nlpd, o.elbo, o.evaluations, o.select, o.fit,
          o.select + o.fit, o.worst_ratio);
      std::fflush(stdout);
      rows.push_back({{"data", run.data},
                      {"method", method},
                      {"fold", fold},
                      {"inducing", o.size},
                      {"rmse", o.rmse},
                      {"nlpd", o.nlpd},
                      {"elbo", o.elbo},
                      {"evaluations", o.evaluations},
                      {"seconds_select", o.select},
                      {"seconds_fit", o.fit},
                      {"worst_select_over_fit", o.worst_ratio},
                      {"worst",
                       {{"rows", o.worst.rows},
                        {"inducing_before", o.worst.inducing_before},
                        {"inducing", o.worst.inducing},
                        {"evaluations", o.worst.fit.evaluations},
                        {"seconds_select", o.worst.seconds_select},
                        {"seconds_fit", o.worst.seconds_fit}}}});
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
  int folds = 1;
  std::string json_path;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--quick") quick = true;
    if (option == "--folds" && i + 1 < argc) folds = std::clamp(std::stoi(argv[++i]), 1, 5);
    if (option == "--json" && i + 1 < argc) json_path = argv[++i];
  }
  return ample::run_all(quick, folds, json_path);
}
