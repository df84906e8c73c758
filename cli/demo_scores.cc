#include "demo_scores.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>

#include "ample/exact_gp.h"
#include "ample/metrics.h"
#include "interrupt.h"
#include "stopwatch.h"

namespace ample::cli {
namespace {

template <class Model>
DemoScore judge(const Scenario& scenario, const Model& model, const Kernel& kernel,
                double noise_variance, double seconds, const Vector& grid) {
  const Vector f = true_function(scenario, grid);
  const Prediction p = model.predict(grid, Target::observation);
  DemoScore o{.points = model.size(), .noise_variance = noise_variance, .seconds = seconds};
  o.rmse = rmse(f, p.mean);
  // On average over the noise of y = f + ε: E (y − m)² = (f − m)² + E ε².
  o.nlpd =
      nlpd(f, p) + 0.5 * std::pow(kScenarioNoiseDeviation, 2) * p.variance.cwiseInverse().mean();
  for (const Parameter& parameter : kernel.parameters()) {
    if (parameter.kind == Parameter::Kind::lengthscale) o.lengthscale = parameter.value;
    if (parameter.kind == Parameter::Kind::variance) o.variance = parameter.value;
  }
  return o;
}

}  // namespace

const BatchReport& DemoRun::observe(const Batch& batch) {
  const auto x = batch.X.col(0).array();
  if (reports.empty()) low = high = x[0];
  beyond.push_back((x < low || x > high).count());
  low = std::min(low, x.minCoeff());
  high = std::max(high, x.maxCoeff());
  reports.push_back(model.observe(batch.X, batch.y));
  return reports.back();
}

double DemoRun::seconds() const {
  double sum = 0.0;
  for (const BatchReport& r : reports) sum += r.seconds_select + r.seconds_fit;
  return sum;
}

Batch all_rows(const Scenario& scenario, std::size_t first) {
  const std::span batches = std::span(scenario.batches).subspan(first);
  Index rows = 0;
  for (const Batch& batch : batches) rows += batch.y.size();
  Batch all{Matrix(rows, 1), Vector(rows)};
  Index row = 0;
  for (const Batch& batch : batches) {
    all.X.middleRows(row, batch.y.size()) = batch.X;
    all.y.segment(row, batch.y.size()) = batch.y;
    row += batch.y.size();
  }
  return all;
}

Vector scored_grid(const Batch& all) {
  Vector x = all.X.col(0);
  std::sort(x.begin(), x.end());
  const Index tail = x.size() / 100;
  return Vector::LinSpaced(501, std::floor(x[tail]), std::ceil(x[x.size() - 1 - tail]));
}

Vector true_function(const Scenario& scenario, const Vector& x) {
  return x.unaryExpr(scenario.function);
}

DemoScore score_of(const DemoRun& run, const Vector& grid) {
  return judge(run.scenario, run.model, run.model.kernel(), run.model.noise_variance(),
               run.seconds(), grid);
}

DemoScore score_of_exact(const Scenario& scenario, const Hyperparameters& start,
                         const Vector& grid) {
  const Batch all = all_rows(scenario, scenario.changes ? kFirstChangedBatch : 0);
  const Stopwatch watch;
  ExactGP gp(start);
  gp.fit(all.X, all.y, {}, nullptr, [] { return interrupted() != 0; });
  stop_if_interrupted();
  const Hyperparameters& fitted = gp.hyperparameters();
  return judge(scenario, gp, fitted.kernel, fitted.noise(), watch.seconds(), grid);
}

std::string describe_growth(const DemoRun& run) {
  std::vector<double> M;
  M.reserve(run.reports.size());
  for (const BatchReport& r : run.reports) M.push_back(static_cast<double>(r.inducing));
  const std::size_t batches = M.size();
  const double last = M.back();

  // Next to nothing new for three batches and more, then a jump by half and more.
  for (std::size_t b = 4; b < batches; ++b) {
    if (M[b - 1] <= M[1] + 1 && M[b] >= 1.5 * M[b - 1] && last >= 3 * M[b - 1]) {
      return fmt::format(
          "stayed at {} until batch {} went beyond all before ({} of {} rows), then grew to {}",
          M[b - 1], b + 1, run.beyond[b], run.reports[b].rows, last);
    }
  }
  // Nothing new in the last three batches and more, or hardly anything in the second half.
  const auto halt = static_cast<std::size_t>(std::find(M.begin(), M.end(), last) - M.begin());
  if (halt + 3 < batches) {
    return fmt::format("halted at {}: batches {} to {} added nothing", last, halt + 2, batches);
  }
  const double late = last - M[batches / 2 - 1];
  if (late <= 0.1 * last) {
    return fmt::format("all but halted at {}: batches {} to {} added {}", last, batches / 2 + 1,
                       batches, late);
  }
  // Never far from the straight line between its ends.
  const double slope = (last - M.front()) / static_cast<double>(batches - 1);
  double deviation = 0.0;
  for (std::size_t b = 0; b < batches; ++b) {
    deviation = std::max(deviation, std::abs(M[b] - M.front() - slope * static_cast<double>(b)));
  }
  if (deviation <= 0.1 * (last - M.front())) {
    return fmt::format("grew linearly, by {:.1f} a batch, to {}", slope, last);
  }
  return fmt::format("grew from {} to {}", M.front(), last);
}

std::string describe_change(const DemoRun& run, const DemoRun& keeping, const Vector& grid) {
  std::string forgot;
  for (const BatchReport& r : run.reports) {
    if (r.past_weight < 1.0) {
      forgot += fmt::format("{}{} (to {})", forgot.empty() ? "" : ", ", r.batch, r.past_weight);
    }
  }
  const auto state = [&](const DemoRun& r) {
    return fmt::format("{} points, RMSE {:.2f}", r.model.size(), score_of(r, grid).rmse);
  };
  return fmt::format("{}: {}; without forgetting {}",
                     forgot.empty() ? "forgot nothing" : "forgot at batch " + forgot, state(run),
                     state(keeping));
}

}  // namespace ample::cli
