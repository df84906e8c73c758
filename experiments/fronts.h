// How few points are enough: model size against accuracy, for the rules that choose points and
// remove them, from the paper's start and from that of the estimators.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ample/selection.h"
#include "job.h"

namespace ample::experiments {

/// All of a front but δ, which runs along it. In the plan it is the run's method,
/// "paper-gain-0.05" or, with a cap of its own, "default-gain-0.05-900".
struct FrontRule {
  enum class Start {
    paper,           // the paper's protocol; by variance with β = 0 is its own rule
    out_of_the_box,  // ContinualGPOptions::out_of_the_box(), "default" in the plan
  };
  Start start = Start::paper;
  Vips::Choose choose = Vips::Choose::variance;
  double beta = 0.0;
  Index cap = 0;  // at most so many points; 0 is what the start has: none, and 1000 out of the box

  [[nodiscard]] std::string name() const;
  /// Whether it is what the runs of `uci` and `magnetic-paths` have too.
  [[nodiscard]] bool is_the_papers() const;

  friend bool operator==(const FrontRule&, const FrontRule&) = default;
};

/// Those of a start, the paper's own first where it is the paper's.
[[nodiscard]] std::vector<FrontRule> front_rules(FrontRule::Start start);

/// Throws std::logic_error for a name that no rule has.
[[nodiscard]] FrontRule front_rule(std::string_view name);

[[nodiscard]] Job fronts_job(const Run& run, const std::filesystem::path& folder);

}  // namespace ample::experiments
