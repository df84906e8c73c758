// What is run: the one table of all runs, data set × method × parameter × fold.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ample::experiments {

/// One run, named by all that its result depends on.
struct Run {
  std::string experiment;  // "uci"
  std::string data;        // "naval"
  std::string method;      // "vips", another selection method, or "exact": all data at once; of
                           // "fronts" a rule (fronts.h)
  double parameter = 0.0;  // δ of VIPS, η of CV, ρ of OIPS, M of a fixed size; 0 for the exact GP
  int fold = 0;            // the part held out, or the seed of made-up data

  /// "uci/naval/vips/0.05/0", its name in the results.
  [[nodiscard]] std::string key() const;

  friend bool operator==(const Run&, const Run&) = default;
};

/// Names that `ample-reproduce` takes, in the order of the paper. "operating-point" makes tables of
/// the runs of "uci".
[[nodiscard]] const std::vector<std::string>& experiment_names();

/// Which part of the table. Empty or not set: all.
struct PlanFilter {
  std::vector<std::string> experiments;
  std::vector<std::string> data;
  std::vector<std::string> methods;
  std::vector<double> parameters;
  std::vector<int> folds;
  /// Also the runs that take days: the paper's whole sweep.
  bool whole_sweep = false;
};

/// The runs of the table that pass, cheap ones first.
[[nodiscard]] std::vector<Run> plan(const PlanFilter& filter);

/// The run of that key, wherever in the table it stands.
[[nodiscard]] std::optional<Run> find_run(const std::string& key);

/// Whether seconds are what is measured, so that nothing else may run beside it.
[[nodiscard]] bool is_timing(const std::string& experiment);

/// The paper's operating points for 10 % RMSE, which the other experiments use: of no outliers, and
/// for OIPS, which has none there, of one.
inline constexpr double kDelta = 0.095;
inline constexpr double kEta = 0.005;
inline constexpr double kRho = 0.93;

}  // namespace ample::experiments
