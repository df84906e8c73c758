// The tables of the fronts, from the result file alone.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fronts.h"
#include "results.h"

namespace ample::experiments {

/// The last batch of every fold of a rule at one δ on one data set.
using FrontFolds = std::map<int, BatchResult>;

/// All that was run of the fronts: rule and δ → data set → folds.
using Fronts = std::map<std::pair<std::string, double>, std::map<std::string, FrontFolds>>;

/// The paper's own rule is read from the runs of `uci` and `magnetic-paths`.
[[nodiscard]] Fronts read_fronts(const Results& results);

/// A rule on one set beside the paper's at some δ, means over the folds that both were run on.
struct BesideThePaper {
  double inducing = 0.0;
  double paper_inducing = 0.0;
  double rmse = 0.0;
  double paper_rmse = 0.0;
  std::size_t folds = 0;

  /// Within 0.01, the targets having deviation 1.
  [[nodiscard]] bool is_close() const { return rmse <= paper_rmse + 0.01; }
};

/// One rule and one δ for all of the UCI sets, judged by the accuracy of the paper's rule.
struct FrontChoice {
  std::string rule;
  double delta = 0.0;
  std::map<std::string, BesideThePaper> sets;  // all six

  /// On how many it comes close.
  [[nodiscard]] std::size_t close() const;
  /// The geometric mean of M over the paper's M; sets where it does not come close count too.
  [[nodiscard]] double size() const;
};

/// Of the rules of a start that were run on all six sets, the one that comes close on most, and of
/// those the one with the smallest models.
[[nodiscard]] std::optional<FrontChoice> best_choice(const Fronts& fronts, FrontRule::Start start,
                                                     double paper_delta);

[[nodiscard]] std::string fronts_table(const Results& results);

}  // namespace ample::experiments
