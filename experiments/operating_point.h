// The paper's rule for comparing methods (its appendix "UCI datasets"): one parameter for all data
// sets, the one with the smallest models among those that are accurate enough.
//
//   percentage = (error − error_exact)/|error_noise − error_exact| · 100     mean over folds
//
// A parameter is accurate enough if the percentage is at most the threshold on all data sets but
// the `outliers` that are allowed. Of those, the smallest models come from the largest δ (VIPS) or
// η (CV), and from the smallest ρ (OIPS).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "results.h"

namespace ample::experiments {

enum class Metric { rmse, nlpd };
[[nodiscard]] std::string to_text(Metric metric);

struct Criterion {
  Metric metric;
  double percent;  // 5 or 10
  int outliers;    // 0, 1 or 2
};

/// All criteria of the paper, in its order.
[[nodiscard]] const std::vector<Criterion>& criteria();

/// The folds of one data set at one parameter, after the last batch.
struct Measured {
  int folds = 0;
  int judged = 0;                   // folds whose exact GP was run: percentages are of these
  double inducing = 0.0;            // mean
  double inducing_deviation = 0.0;  // sample deviation; 0 for one fold
  double rmse = 0.0;
  double nlpd = 0.0;
  double rmse_percent = 0.0;
  double nlpd_percent = 0.0;
  double seconds = 0.0;  // mean
  bool capped = false;   // a fold reached the limit on M

  [[nodiscard]] double percent(Metric metric) const {
    return metric == Metric::rmse ? rmse_percent : nlpd_percent;
  }
};

/// parameter → data set → what was measured there; what was not run is not there.
using Sweep = std::map<double, std::map<std::string, Measured>>;

/// The runs of a method on the UCI sets: of an experiment, if given with some of its folds only.
[[nodiscard]] Sweep read_sweep(const Results& results, const std::string& method,
                               const std::string& experiment = "uci",
                               const std::vector<int>& folds = {});

struct OperatingPoint {
  std::optional<double> parameter;  // none if no parameter is accurate enough
  /// A parameter with smaller models was not run on all of the required data sets, and where it was
  /// run it is accurate enough: it may be the operating point instead.
  bool open = false;

  /// What later runs cannot change.
  [[nodiscard]] std::optional<double> settled() const { return open ? std::nullopt : parameter; }
  friend bool operator==(const OperatingPoint&, const OperatingPoint&) = default;
};

/// By the rule above, over the `required` data sets.
[[nodiscard]] OperatingPoint operating_point(const std::string& method, const Sweep& sweep,
                                             const Criterion& criterion,
                                             const std::vector<std::string>& required);

}  // namespace ample::experiments
