// ample demo: the four streams of scenarios.h, learnt batch by batch before the reader's eyes, and
// then compared with an exact GP that is given all data at once; where the function changes, also
// with a model that does not forget. Standard output is for people, or JSON lines with --json.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "ample/snapshot.h"
#include "ample/version.h"
#include "commands.h"
#include "demo_files.h"
#include "demo_narrator.h"
#include "demo_scores.h"
#include "interrupt.h"
#include "json_text.h"
#include "numbers.h"
#include "output.h"
#include "scenarios.h"

namespace ample::cli {
namespace {

using Json = nlohmann::ordered_json;

struct DemoOptions {
  std::string output = "ample-demo";
  std::uint64_t seed = 0;
  double delta = 0.05;
  bool json = false;
};

void run_demo(const DemoOptions& options) {
  ContinualGPOptions keeping = scenario_options();
  ContinualGPOptions forgetting = forgetting_options();
  keeping.selection = forgetting.selection = make_selection("vips", {{"delta", options.delta}});
  const std::filesystem::path folder = make_folder(options.output);
  const std::string model_path = (folder / "model.ample").string();
  check_can_save(model_path);  // rather now than after the work
  TextOutput json((folder / "demo.json").string());
  const Narrator narrator(options.json);

  watch_for_signals();
  const Deadline deadline([](int) { return true; });
  narrator.begin(options.delta);
  Json scenarios = Json::array();
  std::vector<std::string> summaries;
  for (const auto make : {growing_domain, fixed_domain, outliers, changing_function}) {
    const Scenario scenario = make(options.seed);
    DemoRun run{.scenario = scenario,
                .model = ContinualGP(scenario.changes ? forgetting : keeping)};
    DemoRun kept{.scenario = scenario, .model = ContinualGP(keeping)};
    narrator.begin(scenario);
    for (const Batch& batch : scenario.batches) {
      stop_if_interrupted();
      narrator.tell(scenario, run.observe(batch));
      if (scenario.changes) kept.observe(batch);
    }
    const Batch all = all_rows(scenario);
    const Vector grid = scored_grid(all);
    DemoScores scores{{"ample", "this model", score_of(run, grid)}};
    if (scenario.changes) {
      scores.push_back({"without_forgetting", "unforgetting", score_of(kept, grid)});
    }
    narrator.wait_for_exact();
    scores.push_back({"exact", "exact GP", score_of_exact(scenario, keeping.start, grid)});
    const std::string summary =
        scenario.changes ? describe_change(run, kept, grid) : describe_growth(run);
    narrator.tell(scenario, grid, scores, summary);

    if (summaries.empty()) {
      save(run.model, model_path);
      write_tables(folder, all, grid);
    }
    summaries.push_back(scenario.title + ": " + summary);
    Json told = {{"name", scenario.name}, {"title", scenario.title}, {"summary", summary}};
    for (const auto& [key, title, score] : scores) told[key] = to_json(score);
    if (scenario.changes) told["without_forgetting"] = shadow_of(kept, grid);
    told.update(picture_of(run, grid));
    scenarios.push_back(std::move(told));
  }
  const Json demo = {{"version", version()},
                     {"seed", options.seed},
                     {"delta", options.delta},
                     {"noise_deviation", kScenarioNoiseDeviation},
                     {"scenarios", std::move(scenarios)}};
  json.write(to_text(demo) + "\n");
  json.finish();
  narrator.end(summaries, folder);
}

}  // namespace

void add_demo(CLI::App& app) {
  auto options = std::make_shared<DemoOptions>();
  CLI::App* command =
      app.add_subcommand("demo", "Learn four small streams and show how the model sizes itself.");
  command->add_option("--output", options->output, "Folder for demo.json, model.ample and tables")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Of the random data")
      ->transform(whole_number<std::uint64_t>())
      ->capture_default_str();
  command->add_option("--delta", options->delta, "Share of the attainable gain that may be lost")
      ->transform(real_number())
      ->capture_default_str();
  command->add_flag("--json", options->json, "JSON lines instead of tables");
  command->footer("Example:\n  ample demo --output /tmp/demo --seed 3");
  command->callback([options] { run_demo(*options); });
}

}  // namespace ample::cli
