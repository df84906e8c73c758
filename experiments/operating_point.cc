#include "operating_point.h"

#include <algorithm>
#include <cmath>

#include "ample/metrics.h"
#include "plan.h"

namespace ample::experiments {
namespace {

struct Fold {
  BatchResult last;
  double rmse_percent;
  double nlpd_percent;
  double seconds;
};

Measured summary_of(const std::vector<Fold>& folds) {
  Measured m;
  m.folds = static_cast<int>(folds.size());
  const auto mean = [&](auto value) {
    double sum = 0.0;
    for (const Fold& fold : folds) sum += value(fold);
    return sum / static_cast<double>(folds.size());
  };
  m.inducing = mean([](const Fold& f) { return static_cast<double>(f.last.inducing); });
  m.rmse = mean([](const Fold& f) { return f.last.rmse; });
  m.nlpd = mean([](const Fold& f) { return f.last.nlpd; });
  m.rmse_percent = mean([](const Fold& f) { return f.rmse_percent; });
  m.nlpd_percent = mean([](const Fold& f) { return f.nlpd_percent; });
  m.seconds = mean([](const Fold& f) { return f.seconds; });
  if (folds.size() > 1) {
    const double squares = mean([&](const Fold& f) {
      return std::pow(static_cast<double>(f.last.inducing) - m.inducing, 2);
    });
    const auto n = static_cast<double>(folds.size());
    m.inducing_deviation = std::sqrt(squares * n / (n - 1.0));
  }
  m.capped = std::ranges::any_of(folds, [](const Fold& f) { return f.last.stop == "cap"; });
  return m;
}

}  // namespace

std::string to_text(Metric metric) { return metric == Metric::rmse ? "RMSE" : "NLPD"; }

const std::vector<Criterion>& criteria() {
  static const std::vector<Criterion> all = [] {
    std::vector<Criterion> list;
    for (const Metric metric : {Metric::rmse, Metric::nlpd}) {
      for (const double percent : {5.0, 10.0}) {
        for (const int outliers : {0, 1, 2}) list.push_back({metric, percent, outliers});
      }
    }
    return list;
  }();
  return all;
}

Sweep read_sweep(const Results& results, const std::string& method, const std::string& experiment,
                 const std::vector<int>& folds) {
  PlanFilter filter;
  filter.experiments = {experiment};
  filter.methods = {method};
  filter.folds = folds;
  filter.whole_sweep = true;
  std::map<double, std::map<std::string, std::vector<Fold>>> found;
  for (const Run& run : plan(filter)) {
    const std::optional<double> seconds = results.seconds(run);
    if (!seconds) continue;
    Run exact_run = run;
    exact_run.method = "exact";
    exact_run.parameter = 0.0;
    if (!results.seconds(exact_run)) continue;
    const BatchResult last = results.last_batch(run).value();
    const BatchResult exact = results.last_batch(exact_run).value();
    found[run.parameter][run.data].push_back(
        {.last = last,
         .rmse_percent = relative_to_exact(last.rmse, exact.rmse, exact.noise_rmse),
         .nlpd_percent = relative_to_exact(last.nlpd, exact.nlpd, exact.noise_nlpd),
         .seconds = *seconds});
  }
  Sweep sweep;
  for (const auto& [parameter, sets] : found) {
    for (const auto& [data, list] : sets) sweep[parameter][data] = summary_of(list);
  }
  return sweep;
}

std::optional<double> operating_point(const std::string& method, const Sweep& sweep,
                                      const Criterion& criterion,
                                      const std::vector<std::string>& required) {
  std::optional<double> best;
  for (const auto& [parameter, sets] : sweep) {
    const bool complete = std::ranges::all_of(
        required, [&, &measured = sets](const auto& data) { return measured.contains(data); });
    const auto failures = std::ranges::count_if(sets, [&](const auto& entry) {
      return !(entry.second.percent(criterion.metric) <= criterion.percent);
    });
    if (!complete || failures > criterion.outliers) continue;
    const bool smaller_model = !best || (method == "oips" ? parameter < *best : parameter > *best);
    if (smaller_model) best = parameter;
  }
  return best;
}

}  // namespace ample::experiments
