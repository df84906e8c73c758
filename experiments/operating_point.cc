#include "operating_point.h"

#include <algorithm>
#include <cmath>

#include "ample/metrics.h"
#include "plan.h"

namespace ample::experiments {
namespace {

struct Fold {
  BatchResult last;
  std::optional<BatchResult> exact;
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
  for (const Fold& f : folds) {
    if (!f.exact) continue;
    ++m.judged;
    m.rmse_percent += relative_to_exact(f.last.rmse, f.exact->rmse, f.exact->noise_rmse);
    m.nlpd_percent += relative_to_exact(f.last.nlpd, f.exact->nlpd, f.exact->noise_nlpd);
  }
  m.rmse_percent /= std::max(1, m.judged);
  m.nlpd_percent /= std::max(1, m.judged);
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
    found[run.parameter][run.data].push_back(
        {.last = results.last_batch(run).value(),
         .exact = results.seconds(exact_run) ? results.last_batch(exact_run) : std::nullopt,
         .seconds = *seconds});
  }
  Sweep sweep;
  for (const auto& [parameter, sets] : found) {
    for (const auto& [data, list] : sets) sweep[parameter][data] = summary_of(list);
  }
  return sweep;
}

OperatingPoint operating_point(const std::string& method, const Sweep& sweep,
                               const Criterion& criterion,
                               const std::vector<std::string>& required) {
  std::vector<double> parameters;
  for (const auto& [parameter, sets] : sweep) parameters.push_back(parameter);
  // Those with the smallest models first.
  if (method != "oips") std::ranges::reverse(parameters);
  OperatingPoint point;
  for (const double parameter : parameters) {
    const auto& sets = sweep.at(parameter);
    int failures = 0;
    bool complete = true;
    for (const std::string& data : required) {
      const auto found = sets.find(data);
      if (found == sets.end() || found->second.judged == 0) {
        complete = false;
      } else if (!(found->second.percent(criterion.metric) <= criterion.percent)) {
        ++failures;
      }
    }
    if (failures > criterion.outliers) continue;
    if (complete) {
      point.parameter = parameter;
      return point;
    }
    point.open = true;
  }
  return point;
}

}  // namespace ample::experiments
