#include "demo_narrator.h"

#include <cmath>
#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "demo_files.h"
#include "json_text.h"
#include "output.h"
#include "report.h"
#include "terminal.h"
#include "visible_text.h"

namespace ample::cli {
namespace {

using Json = nlohmann::ordered_json;

/// As a shell reads it.
std::string quoted(const std::string& path) {
  if (path.find_first_not_of(
          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./+=@%") ==
      std::string::npos) {
    return path;
  }
  std::string text = "'";
  for (const char c : path) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

}  // namespace

Narrator::Narrator(bool json) : json_(json), terminal_(is_terminal(stdout)) {
  if (terminal_) alpha_ = "α", delta_ = "δ", at_most_ = "≤";
}

void Narrator::begin(double delta) const {
  if (json_) return;
  print(
      "Four streams of ten batches: sin(2x) + cos(5x) with noise of deviation {noise}. No data\n"
      "are kept. From each batch the model takes inducing points, M in all, until the gap\n"
      "between its bound and the best attainable is at most {alpha} nats, {delta} = {value} of "
      "what\n"
      "there is to gain over a model that explains nothing. Then an exact GP fits all rows\n"
      "at once. RMSE is against the noiseless function and NLPD that of new observations, on\n"
      "the range shown. In the last stream the function changes half-way: the model forgets\n"
      "what a batch contradicts, beside one that does not; the exact GP fits the rows since.\n",
      fmt::arg("noise", kScenarioNoiseDeviation), fmt::arg("alpha", alpha_),
      fmt::arg("delta", delta_), fmt::arg("value", delta));
}

void Narrator::begin(const Scenario& scenario) const {
  if (json_) return;
  print("\n{}\n\n{:>5} {:>6} {:>6} {:>4} {:>8} {:>8}   {}\n", heading(scenario.title), "batch",
        "rows", "added", "M", "gap", alpha_, "stopped because");
}

void Narrator::tell(const Scenario& scenario, const BatchReport& r) const {
  if (json_) {
    Json line = {{"scenario", scenario.name}};
    line.update(Json::parse(to_json_line(r, {})));
    print("{}\n", to_text(line));
  } else {
    print("{:>5} {:>6} {:>6} {:>4} {:>8.2f} {:>8.2f}   {}\n", r.batch, r.rows_seen,
          fmt::format("+{}", r.inducing_added), r.inducing, r.gap.value(), r.threshold.value(),
          reason(r) + bar(r.inducing));
  }
  std::fflush(stdout);
}

void Narrator::wait_for_exact() const {
  if (terminal_ && !json_) print("\nfitting an exact GP to all rows");
  std::fflush(stdout);
}

void Narrator::tell(const Scenario& scenario, const Vector& grid, const DemoScores& scores,
                    const std::string& summary) const {
  if (json_) {
    Json line = {{"scenario", scenario.name}, {"summary", summary}};
    for (const auto& [key, title, score] : scores) {
      line[key] = to_json(score);
      line[key]["seconds"] = score.seconds;
    }
    print("{}\n", to_text(line));
    return;
  }
  print("{}{:<12} {:>6} {:>8} {:>8} {:>12} {:>9} {:>10} {:>8}\n", terminal_ ? "\r\033[K" : "\n",
        fmt::format("[{}, {}]", grid[0], grid[grid.size() - 1]), "points", "RMSE", "NLPD",
        "lengthscale", "variance", "noise std", "seconds");
  for (const auto& [key, name, o] : scores) {
    print("{:<12} {:>6} {:>8.4f} {:>8.4f} {:>12.3f} {:>9.3f} {:>10.3f} {:>8.3f}\n", name, o.points,
          o.rmse, o.nlpd, o.lengthscale, o.variance, std::sqrt(o.noise_variance), o.seconds);
  }
  std::fflush(stdout);
}

void Narrator::end(const std::vector<std::string>& summaries,
                   const std::filesystem::path& folder) const {
  if (json_) return;
  print("\n{}\n\n", heading("in short"));
  for (const std::string& summary : summaries) print("  {}\n", summary);
  const std::string place = visible(quoted(folder.string()));
  print("\n{}\n\n", heading("try next"));
  print("  ample inspect {}/model.ample\n", place);
  print("  ample predict {}/model.ample {}/new.csv\n", place, place);
  print("  ample fit {}/stream.csv --batches 10 --save mine.ample   # or your own table\n", place);
}

std::string Narrator::heading(std::string text) const {
  if (text.front() >= 'a' && text.front() <= 'z') text.front() += 'A' - 'a';
  return terminal_ ? fmt::format("\033[1m{}\033[0m", text) : text;
}

std::string Narrator::reason(const BatchReport& r) const {
  if (r.past_weight < 1.0) return fmt::format("the past now counts {}", r.past_weight);
  switch (r.stop) {
    case SelectionStop::threshold:
      return fmt::format("gap {} {}{}", at_most_, alpha_, r.inducing_added == 0 ? " already" : "");
    case SelectionStop::pool_used_up:
      return "all rows taken";
    default:
      return std::string(to_string(r.stop));
  }
}

/// M once more, as a length from column 64 on: a square for three points.
std::string Narrator::bar(Index M) const {
  if (!terminal_) return {};
  std::string text = "\033[64G\033[36m";
  for (Index i = 0; i < M; i += 3) text += "▪";
  return text + "\033[0m";
}

}  // namespace ample::cli
