// ample demo: the three streams of scenarios.h, learnt batch by batch before the reader's eyes, and
// then compared with an exact GP that is given all data at once.
//
// Standard output is for people, or JSON lines with --json. The folder receives demo.json (data,
// predictions, inducing points, sizes: what scripts/plot_demo.py draws; no times, so the same seed
// gives the same file), the model of the first stream, and tables to try the other commands on.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ample/continual_gp.h"
#include "ample/exact_gp.h"
#include "ample/metrics.h"
#include "ample/snapshot.h"
#include "ample/version.h"
#include "commands.h"
#include "errors.h"
#include "interrupt.h"
#include "output.h"
#include "report.h"
#include "scenarios.h"
#include "terminal.h"

namespace ample::cli {
namespace {

using Json = nlohmann::ordered_json;

struct DemoOptions {
  std::string output = "ample-demo";
  std::uint64_t seed = 0;
  double delta = 0.05;
  bool json = false;
};

// --- Learning and comparing ----------------------------------------------------------------------

/// One stream and the model that learns it.
struct Run {
  Scenario scenario;
  ContinualGP model;
  std::vector<BatchReport> reports = {};
  std::vector<Index> beyond = {};  // rows of each batch outside the range of all before
  double low = 0.0, high = 0.0;    // that range

  const BatchReport& observe(const Batch& batch) {
    const auto x = batch.X.col(0).array();
    if (reports.empty()) low = high = x[0];
    beyond.push_back((x < low || x > high).count());
    low = std::min(low, x.minCoeff());
    high = std::max(high, x.maxCoeff());
    reports.push_back(model.observe(batch.X, batch.y));
    return reports.back();
  }

  [[nodiscard]] double seconds() const {
    double sum = 0.0;
    for (const BatchReport& r : reports) sum += r.seconds_select + r.seconds_fit;
    return sum;
  }
};

Batch all_rows(const Scenario& scenario) {
  Index rows = 0;
  for (const Batch& batch : scenario.batches) rows += batch.y.size();
  Batch all{Matrix(rows, 1), Vector(rows)};
  Index row = 0;
  for (const Batch& batch : scenario.batches) {
    all.X.middleRows(row, batch.y.size()) = batch.X;
    all.y.segment(row, batch.y.size()) = batch.y;
    row += batch.y.size();
  }
  return all;
}

/// Where models are scored and drawn: the central 98 % of the inputs, to the next whole number. A
/// Cauchy distribution reaches so far that a picture of all its inputs shows nothing else.
Vector make_grid(const Batch& all) {
  Vector x = all.X.col(0);
  std::sort(x.begin(), x.end());
  const Index tail = x.size() / 100;
  return Vector::LinSpaced(501, std::floor(x[tail]), std::ceil(x[x.size() - 1 - tail]));
}

Vector true_function(const Vector& x) { return x.unaryExpr(&scenario_function); }

/// A model that has seen all data.
struct Outcome {
  Index points = 0;   // inducing points, or the rows that an exact GP keeps
  double rmse = 0.0;  // of the mean, against the noiseless function
  double nlpd = 0.0;  // of new observations
  double lengthscale = 0.0;
  double variance = 0.0;
  double noise_variance = 0.0;
  double seconds = 0.0;
};

template <class Model>
Outcome judge(const Model& model, const Kernel& kernel, double noise_variance, double seconds,
              const Vector& grid) {
  const Vector f = true_function(grid);
  const Prediction p = model.predict(grid, Target::observation);
  Outcome o{.points = model.size(), .noise_variance = noise_variance, .seconds = seconds};
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

Outcome fit_exact(const Batch& all, const Hyperparameters& start, const Vector& grid) {
  const auto begin = std::chrono::steady_clock::now();
  ExactGP gp(start);
  gp.fit(all.X, all.y, {}, nullptr, [] { return interrupted() != 0; });
  stop_if_interrupted();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  const Hyperparameters& fitted = gp.hyperparameters();
  return judge(gp, fitted.kernel, fitted.noise(), elapsed.count(), grid);
}

/// How the model grew, in words that the numbers decide.
std::string describe_growth(const Run& run) {
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

// --- For machines --------------------------------------------------------------------------------

Json to_json(const VectorRef& v) { return std::vector<double>(v.begin(), v.end()); }

Json to_json(const Outcome& o) {
  return {{"points", o.points},     {"rmse", o.rmse},
          {"nlpd", o.nlpd},         {"lengthscale", o.lengthscale},
          {"variance", o.variance}, {"noise_variance", o.noise_variance}};
}

/// All that it takes to draw a run.
Json picture(const Run& run, const Vector& grid) {
  const Prediction p = run.model.predict(grid);
  Json batches = Json::array();
  for (std::size_t b = 0; b < run.reports.size(); ++b) {
    Json batch = Json::parse(to_json_line(run.reports[b], {}));
    batch.erase("seconds_select");
    batch.erase("seconds_fit");
    batch["x"] = to_json(run.scenario.batches[b].X.col(0));
    batch["y"] = to_json(run.scenario.batches[b].y);
    batches.push_back(std::move(batch));
  }
  return {{"batches", std::move(batches)},
          {"inducing_inputs", to_json(run.model.inducing_inputs().col(0))},
          {"grid",
           {{"x", to_json(grid)},
            {"truth", to_json(true_function(grid))},
            {"mean", to_json(p.mean)},
            {"std", to_json(p.variance.cwiseSqrt())}}}};
}

// --- For people ----------------------------------------------------------------------------------

/// Where the story goes: a terminal gets symbols and colours, a pipe plain text, and with --json a
/// reader gets one object a line.
class Narrator {
 public:
  explicit Narrator(bool json) : json_(json), terminal_(is_terminal(stdout)) {
    if (terminal_) alpha_ = "α", delta_ = "δ", at_most_ = "≤";
  }

  void begin(double delta) const {
    if (json_) return;
    fmt::print(
        "Three streams of ten batches: sin(2x) + cos(5x) with noise of deviation {noise}. No data\n"
        "are kept. From each batch the model takes inducing points, M in all, until the gap\n"
        "between its bound and the best attainable is at most {alpha} nats, {delta} = {value} of "
        "what\n"
        "there is to gain over a model that explains nothing. Then an exact GP fits all rows\n"
        "at once. RMSE is against the noiseless function and NLPD that of new observations, on\n"
        "the range shown.\n",
        fmt::arg("noise", kScenarioNoiseDeviation), fmt::arg("alpha", alpha_),
        fmt::arg("delta", delta_), fmt::arg("value", delta));
  }

  void begin(const Scenario& scenario) const {
    if (json_) return;
    fmt::print("\n{}\n\n{:>5} {:>6} {:>6} {:>4} {:>8} {:>8}   {}\n", heading(scenario.title),
               "batch", "rows", "added", "M", "gap", alpha_, "stopped because");
  }

  void tell(const Scenario& scenario, const BatchReport& r) const {
    if (json_) {
      Json line = {{"scenario", scenario.name}};
      line.update(Json::parse(to_json_line(r, {})));
      fmt::print("{}\n", line.dump());
    } else {
      fmt::print("{:>5} {:>6} {:>6} {:>4} {:>8.2f} {:>8.2f}   {}\n", r.batch, r.rows_seen,
                 fmt::format("+{}", r.inducing_added), r.inducing, r.gap.value(),
                 r.threshold.value(), reason(r) + bar(r.inducing));
    }
    std::fflush(stdout);
  }

  void wait_for_exact() const {
    if (terminal_ && !json_) fmt::print("\nfitting an exact GP to all rows");
    std::fflush(stdout);
  }

  void tell(const Scenario& scenario, const Vector& grid, const Outcome& own, const Outcome& exact,
            const std::string& summary) const {
    if (json_) {
      Json line = {{"scenario", scenario.name}, {"summary", summary}};
      line["ample"] = to_json(own);
      line["ample"]["seconds"] = own.seconds;
      line["exact"] = to_json(exact);
      line["exact"]["seconds"] = exact.seconds;
      fmt::print("{}\n", line.dump());
      return;
    }
    fmt::print("{}{:<10} {:>6} {:>8} {:>8} {:>12} {:>9} {:>10} {:>8}\n",
               terminal_ ? "\r\033[K" : "\n",
               fmt::format("[{}, {}]", grid[0], grid[grid.size() - 1]), "points", "RMSE", "NLPD",
               "lengthscale", "variance", "noise std", "seconds");
    for (const auto& [name, o] : {std::pair{"this model", own}, {"exact GP", exact}}) {
      fmt::print("{:<10} {:>6} {:>8.4f} {:>8.4f} {:>12.3f} {:>9.3f} {:>10.3f} {:>8.3f}\n", name,
                 o.points, o.rmse, o.nlpd, o.lengthscale, o.variance, std::sqrt(o.noise_variance),
                 o.seconds);
    }
    std::fflush(stdout);
  }

  void end(const std::vector<std::string>& summaries, const std::filesystem::path& folder) const {
    if (json_) return;
    fmt::print("\n{}\n\n", heading("in short"));
    for (const std::string& summary : summaries) fmt::print("  {}\n", summary);
    const std::string place = quoted(folder.string());
    fmt::print("\n{}\n\n", heading("try next"));
    fmt::print("  ample inspect {}/model.ample\n", place);
    fmt::print("  ample predict {}/model.ample {}/new.csv\n", place, place);
    fmt::print("  ample fit {}/stream.csv --batches 10 --save mine.ample   # or your own table\n",
               place);
  }

 private:
  [[nodiscard]] std::string heading(std::string text) const {
    if (text.front() >= 'a' && text.front() <= 'z') text.front() += 'A' - 'a';
    return terminal_ ? fmt::format("\033[1m{}\033[0m", text) : text;
  }

  [[nodiscard]] std::string reason(const BatchReport& r) const {
    switch (r.stop) {
      case SelectionStop::threshold:
        return fmt::format("gap {} {}{}", at_most_, alpha_,
                           r.inducing_added == 0 ? " already" : "");
      case SelectionStop::pool_used_up:
        return "all rows taken";
      default:
        return std::string(to_string(r.stop));
    }
  }

  /// M once more, as a length from column 64 on: a square for three points.
  [[nodiscard]] std::string bar(Index M) const {
    if (!terminal_) return {};
    std::string text = "\033[64G\033[36m";
    for (Index i = 0; i < M; i += 3) text += "▪";
    return text + "\033[0m";
  }

  /// As a shell reads it.
  static std::string quoted(const std::string& path) {
    if (path.find_first_not_of(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./+=@%") ==
        std::string::npos) {
      return path;
    }
    std::string text = "'";
    for (const char c : path) text += c == '\'' ? "'\\''" : std::string(1, c);
    return text + "'";
  }

  bool json_;
  bool terminal_;
  const char* alpha_ = "alpha";
  const char* delta_ = "delta";
  const char* at_most_ = "<=";
};

// --- Files ---------------------------------------------------------------------------------------

std::filesystem::path make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) {
    throw DataError(fmt::format("{}: cannot make the folder: {}", path, error.message()));
  }
  return path;
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  TextOutput file(path.string());
  file.write(text);
  file.finish();
}

/// What the commands that the demo suggests are run on.
void write_tables(const std::filesystem::path& folder, const Batch& all, const Vector& grid) {
  std::string stream = "x,y\n";
  for (Index i = 0; i < all.y.size(); ++i) stream += fmt::format("{},{}\n", all.X(i, 0), all.y[i]);
  write_file(folder / "stream.csv", stream);
  std::string queries = "x\n";
  for (const double x : grid) queries += fmt::format("{}\n", x);
  write_file(folder / "new.csv", queries);
}

// --- The command ---------------------------------------------------------------------------------

void run_demo(const DemoOptions& options) {
  ContinualGPOptions model_options = scenario_options();
  model_options.selection = make_selection("vips", {{"delta", options.delta}});
  const std::filesystem::path folder = make_folder(options.output);
  const std::string model_path = (folder / "model.ample").string();
  check_can_save(model_path);  // rather now than after the work
  TextOutput json((folder / "demo.json").string());
  const Narrator narrator(options.json);

  watch_for_signals();
  narrator.begin(options.delta);
  Json scenarios = Json::array();
  std::vector<std::string> summaries;
  for (const auto make : {growing_domain, fixed_domain, outliers}) {
    Run run{.scenario = make(options.seed), .model = ContinualGP(model_options)};
    narrator.begin(run.scenario);
    for (const Batch& batch : run.scenario.batches) {
      stop_if_interrupted();
      narrator.tell(run.scenario, run.observe(batch));
    }
    const Batch all = all_rows(run.scenario);
    const Vector grid = make_grid(all);
    const Outcome own =
        judge(run.model, run.model.kernel(), run.model.noise_variance(), run.seconds(), grid);
    narrator.wait_for_exact();
    const Outcome exact = fit_exact(all, model_options.start, grid);
    const std::string summary = describe_growth(run);
    narrator.tell(run.scenario, grid, own, exact, summary);

    if (summaries.empty()) {
      save(run.model, model_path);
      write_tables(folder, all, grid);
    }
    summaries.push_back(run.scenario.title + ": " + summary);
    Json scenario = {{"name", run.scenario.name},
                     {"title", run.scenario.title},
                     {"summary", summary},
                     {"ample", to_json(own)},
                     {"exact", to_json(exact)}};
    scenario.update(picture(run, grid));
    scenarios.push_back(std::move(scenario));
  }
  const Json demo = {{"version", version()},
                     {"seed", options.seed},
                     {"delta", options.delta},
                     {"noise_deviation", kScenarioNoiseDeviation},
                     {"scenarios", std::move(scenarios)}};
  json.write(demo.dump() + "\n");
  json.finish();
  narrator.end(summaries, folder);
}

}  // namespace

void add_demo(CLI::App& app) {
  auto options = std::make_shared<DemoOptions>();
  CLI::App* command =
      app.add_subcommand("demo", "Learn three small streams and show how the model sizes itself.");
  command->add_option("--output", options->output, "Folder for demo.json, model.ample and tables")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Of the random data")->capture_default_str();
  command->add_option("--delta", options->delta, "Share of the attainable gain that may be lost")
      ->capture_default_str();
  command->add_flag("--json", options->json, "JSON lines instead of tables");
  command->footer("Example:\n  ample demo --output /tmp/demo --seed 3");
  command->callback([options] { run_demo(*options); });
}

}  // namespace ample::cli
