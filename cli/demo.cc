// ample demo: the three streams of scenarios.h, learnt batch by batch before the reader's eyes, and
// then compared with an exact GP that is given all data at once. Standard output is for people, or
// JSON lines with --json.
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
  ContinualGPOptions model_options = scenario_options();
  model_options.selection = make_selection("vips", {{"delta", options.delta}});
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
  for (const auto make : {growing_domain, fixed_domain, outliers}) {
    DemoRun run{.scenario = make(options.seed), .model = ContinualGP(model_options)};
    narrator.begin(run.scenario);
    for (const Batch& batch : run.scenario.batches) {
      stop_if_interrupted();
      narrator.tell(run.scenario, run.observe(batch));
    }
    const Batch all = all_rows(run.scenario);
    const Vector grid = scored_grid(all);
    const DemoScore own = score_of(run, grid);
    narrator.wait_for_exact();
    const DemoScore exact = score_of_exact(all, model_options.start, grid);
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
    scenario.update(picture_of(run, grid));
    scenarios.push_back(std::move(scenario));
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
      app.add_subcommand("demo", "Learn three small streams and show how the model sizes itself.");
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
