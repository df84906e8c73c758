#include "time_left.h"

#include <cmath>

#include <fmt/format.h>

namespace ample::experiments {
namespace {

/// From the most to the least alike.
std::vector<std::string> kinds_of(const Run& run) {
  return {fmt::format("{}/{}/{}/{}", run.experiment, run.data, run.method, run.parameter),
          fmt::format("{}/{}/{}", run.experiment, run.data, run.method), run.experiment, ""};
}

}  // namespace

TimeLeft::TimeLeft(const std::vector<Run>& runs, const Results& results) {
  for (const Run& run : runs) {
    if (results.state(run) == RunState::done) {
      learn(run, results);
    } else {
      open_.push_back(run);
    }
  }
}

void TimeLeft::learn(const Run& run, const Results& results) {
  const std::optional<double> seconds = results.seconds(run);
  if (!seconds) return;
  for (const std::string& kind : kinds_of(run)) {
    sums_[kind].seconds += *seconds;
    sums_[kind].runs += 1;
  }
}

void TimeLeft::ended(const Run& run, const Results& results) {
  std::erase(open_, run);
  learn(run, results);
}

double TimeLeft::expected(const Run& run) const {
  for (const std::string& kind : kinds_of(run)) {
    const auto known = sums_.find(kind);
    if (known != sums_.end()) return known->second.seconds / known->second.runs;
  }
  return std::nan("");
}

std::string TimeLeft::text(int jobs) const {
  double sum = 0.0;
  for (const Run& run : open_) sum += expected(run);
  return std::isfinite(sum) ? duration_text(sum / jobs) : "unknown";
}

std::string duration_text(double seconds) {
  if (seconds < 99.5) return fmt::format("{:.0f} s", seconds);
  const auto minutes = static_cast<long>(std::lround(seconds / 60.0));
  if (minutes < 100) return fmt::format("{} min", minutes);
  return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
}

}  // namespace ample::experiments
