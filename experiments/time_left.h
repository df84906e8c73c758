// How long it will still take, from the runs that are done.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "plan.h"
#include "results.h"

namespace ample::experiments {

/// A run takes as long as those of the same data and method did on average; of a kind that was
/// never run, as long as those of the same experiment, else as all.
class TimeLeft {
 public:
  TimeLeft(const std::vector<Run>& runs, const Results& results);

  void ended(const Run& run, const Results& results);
  /// "14 min", "2 h 10 min", or "unknown".
  [[nodiscard]] std::string text(int jobs) const;

 private:
  struct Sum {
    double seconds = 0.0;
    int runs = 0;
  };
  [[nodiscard]] double expected(const Run& run) const;
  void learn(const Run& run, const Results& results);

  std::vector<Run> open_;
  std::map<std::string, Sum> sums_;
};

/// "40 s", "14 min", "2 h 10 min".
[[nodiscard]] std::string duration_text(double seconds);

}  // namespace ample::experiments
