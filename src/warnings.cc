#include "warnings.h"

#include <algorithm>
#include <cmath>

#include "check.h"
#include "foresight.h"

namespace ample {
namespace {

// Below this many rows, shares are noise.
constexpr Index kFewRows = 50;

void about_size(const BatchReport& report, std::vector<std::string>& out) {
  const bool is_news = report.refitted || report.rows >= kFewRows;  // not of every single row
  if (is_news && report.rows_seen >= kFewRows && 10 * report.inducing >= 9 * report.rows_seen) {
    out.push_back(fmt::format(
        "nearly every row is an inducing point ({} of {}): the model finds no structure "
        "that fewer could hold",
        report.inducing, report.rows_seen));
  }
  if (report.stop == SelectionStop::cap && report.lost_nats && report.threshold &&
      *report.lost_nats > *report.threshold) {
    out.push_back(
        fmt::format("the limit on inducing points costs this batch {:.3g} nats, {:.3g} "
                    "were asked for; raise max_inducing",
                    *report.lost_nats, *report.threshold));
  }
  if (report.stop == SelectionStop::rounding) {
    out.emplace_back("the bound has no digits left to measure its gap by; standardise the data");
  }
}

void about_outliers(const BatchReport& report, std::vector<std::string>& out) {
  if (report.outliers == 0) return;
  out.push_back(fmt::format(
      "{} of the rows {} far off, by more than ten deviations, and {} for less", report.outliers,
      report.outliers == 1 ? "is" : "are", report.outliers == 1 ? "counts" : "count"));
}

void about_bounds(const Hyperparameters& theta, const BatchReport& report,
                  std::vector<std::string>& out) {
  if (!report.refitted) return;
  constexpr double kAt = 1.0 + 1e-6;
  const Kernel kernel = Kernel::parse(report.kernel);
  Hyperparameters now = theta;
  now.kernel = kernel;
  now.noise_variance.value = report.noise_variance;
  Index long_ones = 0;  // of many inputs that tell nothing, one sentence
  std::string last;
  for (const Parameter& p : now.parameters()) {
    if (p.fixed) continue;
    const bool is_upper = p.value >= p.upper / kAt;
    if (!is_upper && p.value > p.lower * kAt) continue;
    std::string text = fmt::format("{} is at its bound {:.3g}", p.name, p.value);
    if (is_upper && p.kind == Parameter::Kind::lengthscale) {
      ++long_ones;
      last = std::move(text);
    } else {
      out.push_back(std::move(text));
    }
  }
  if (long_ones == 1) out.push_back(std::move(last));
  if (long_ones > 1) {
    out.push_back(fmt::format("{} lengthscales are at their upper bound: those inputs tell nothing",
                              long_ones));
  }
}

void about_scaling(const ContinualGP::Pending& rows, std::vector<std::string>& out) {
  if (rows.X.rows() < 2) return;
  for (Index d = 0; d < rows.X.cols(); ++d) {
    if ((rows.X.col(d).array() == rows.X(0, d)).all()) {
      out.push_back(fmt::format("input {} is constant so far and tells nothing", d));
    }
  }
  if ((rows.y.array() == rows.y[0]).all()) out.emplace_back("the target is constant so far");
}

/// The scaling is of the first rows. The reservoir knows all of them.
void about_units(const Reservoir& rows, std::vector<std::string>& out) {
  if (rows.size() < kFewRows) return;
  constexpr double kFar = 10.0;
  const auto check = [&](const Vector& column, const std::string& name) {
    const double mean = column.mean();
    const double deviation = std::sqrt((column.array() - mean).square().mean());
    if (std::abs(mean) < kFar && deviation < kFar) return;
    out.push_back(
        fmt::format("the scaling of {} no longer fits: in its units the rows so far have the mean "
                    "{:.3g} and the deviation {:.3g}; give a scaling, or begin with typical rows",
                    name, mean, deviation));
  };
  for (Index d = 0; d < rows.X.cols(); ++d) check(rows.X.col(d), fmt::format("input {}", d));
  check(rows.y, "the target");
}

void about_predictions(const BatchReport& report, const VectorRef& y,
                       std::vector<std::string>& out) {
  if (report.rows < kFewRows) return;
  if (report.coverage && *report.coverage < 0.85) {
    out.push_back(fmt::format(
        "only {:.0f} % of this batch lay in its 95 % intervals: {}", 100.0 * *report.coverage,
        are_sorted(y)
            ? "its targets come sorted; shuffle the rows, so that each batch is like the table"
            : "the data have changed, or come in an order that hides what follows"));
  }
  if (!report.optimum || !report.noise_bound) return;
  const double explained = *report.optimum - *report.noise_bound;
  const double nothing = 1e-3 * static_cast<double>(report.rows);
  if (std::abs(explained) < nothing) {
    out.emplace_back("the model explains nothing of this batch: the inputs do not tell the target");
  } else if (explained < 0.0) {
    out.emplace_back("the model foresaw this batch worse than the mean of the targets would have");
  }
}

void about_forgetting(const Forgetting& forget, const BatchReport& report,
                      std::vector<std::string>& out) {
  // Time may have passed between batches, which is nobody's fault.
  if (forget.rule != Forgetting::Rule::half_life || forget.by_time()) return;
  if (report.past_weight >= 0.5) return;
  out.push_back(fmt::format(
      "a row of the past counts {:.3g} after this batch alone, which spans more than a half-life; "
      "cut the data into shorter batches",
      report.past_weight));
}

/// Rows that are kept count alike, so the σ² that is fitted to them is that of a typical row; but a
/// row of weight w is learnt with σ²/w.
void about_weights(const Vector& weights, std::vector<std::string>& out) {
  if (weights.size() == 0) return;
  const double typical = static_cast<double>(weights.size()) / weights.cwiseInverse().sum();
  if (typical >= 0.5 && typical <= 2.0) return;
  out.push_back(fmt::format(
      "the weights are typically {:.3g}, but the noise is fitted to rows that count alike: divide "
      "the weights by that, or give a kernel and keep no rows",
      typical));
}

}  // namespace

std::vector<std::string> warnings(const ContinualGP::Checkpoint& before, const BatchReport& report,
                                  const ContinualGP::Pending& rows) {
  std::vector<std::string> out;
  about_size(report, out);
  about_outliers(report, out);
  about_bounds(before.options.start, report, out);
  if (!rows.base) about_scaling(rows, out);
  if (report.refitted) about_units(before.reservoir, out);
  about_predictions(report, rows.y.tail(std::min(report.rows, rows.y.size())), out);
  about_forgetting(before.options.forget, report, out);
  if (before.options.reservoir > 0 && report.refitted) about_weights(rows.weights, out);
  return out;
}

}  // namespace ample
