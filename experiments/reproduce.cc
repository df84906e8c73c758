// `ample reproduce NAME`: the paper's experiments, and tables that set ours beside the paper's.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "commands.h"
#include "data_files.h"
#include "errors.h"
#include "output.h"
#include "plan.h"
#include "results.h"
#include "runner.h"
#include "tables.h"

namespace ample::cli {
namespace {

using experiments::experiment_names;
using experiments::PlanFilter;
using experiments::Results;
using experiments::Run;
using experiments::RunnerOptions;
using experiments::RunState;

struct Arguments {
  std::vector<std::string> names;
  PlanFilter filter;
  RunnerOptions runner;
  std::string data_dir;
  std::string csv;
  bool list = false;
  bool tables_only = false;
  bool again = false;
  std::string worker;
  int threads = 1;
};

std::vector<std::string> chosen_experiments(const std::vector<std::string>& names) {
  if (names == std::vector<std::string>{"all"}) return experiment_names();
  for (const std::string& name : names) {
    if (std::ranges::find(experiment_names(), name) == experiment_names().end()) {
      throw UsageError(fmt::format("unknown experiment '{}', expected all or some of: {}", name,
                                   fmt::join(experiment_names(), " ")));
    }
  }
  return names;
}

/// The tables of operating points are made of the runs of uci.
std::vector<Run> chosen_runs(const Arguments& arguments,
                             const std::vector<std::string>& experiments) {
  PlanFilter filter = arguments.filter;
  filter.experiments = experiments;
  std::ranges::replace(filter.experiments, "operating-point", "uci");
  std::vector<Run> runs = plan(filter);
  if (runs.empty()) {
    throw UsageError(
        "no run of the plan fits --data, --method, --parameter and --fold; without them, --list "
        "shows all (with --whole-sweep the rest of the paper's)");
  }
  return runs;
}

/// Before an hour of work, not after it.
void require_all_data(const std::vector<Run>& runs, const std::filesystem::path& folder) {
  std::set<std::string> needed;
  for (const Run& run : runs) {
    if (run.experiment.starts_with("uci") || run.experiment == "figure2b") needed.insert(run.data);
    if (run.experiment.starts_with("magnetic-")) needed.insert("magnetic");
  }
  for (const std::string& name : needed) experiments::require_data(folder, name);
}

void list_runs(const std::vector<Run>& runs, const std::string& path) {
  const bool there = std::filesystem::exists(path);
  const std::unique_ptr<Results> results = there ? std::make_unique<Results>(path) : nullptr;
  for (const Run& run : runs) {
    const RunState state = results ? results->state(run) : RunState::missing;
    fmt::print("{}\t{}\n", run.key(), to_text(state));
  }
}

void reproduce(const Arguments& arguments) {
  RunnerOptions runner = arguments.runner;
  runner.data_folder = experiments::data_folder(arguments.data_dir);
  if (!arguments.worker.empty()) {
    run_as_worker(arguments.worker, runner, arguments.threads);
    return;
  }
  if (arguments.names.empty()) {
    throw UsageError(
        fmt::format("expected NAME: all or some of {}", fmt::join(experiment_names(), " ")));
  }
  const std::vector<std::string> experiments = chosen_experiments(arguments.names);
  const std::vector<Run> runs = chosen_runs(arguments, experiments);
  if (arguments.list) {
    list_runs(runs, runner.results);
    return;
  }
  int failed = 0;
  if (!arguments.tables_only) {
    require_all_data(runs, runner.data_folder);
    if (arguments.again) {
      Results results(runner.results);
      for (const Run& run : runs) results.forget(run);
    }
    failed = run_all(runs, runner);
  } else if (!std::filesystem::exists(runner.results)) {
    throw DataError(
        fmt::format("{}: no such file of results; run without --tables first", runner.results));
  }
  const Results results(runner.results);
  for (const std::string& experiment : experiments) {
    fmt::print("## {}\n\n{}\n", experiment, table_of(experiment, results));
  }
  if (!arguments.csv.empty()) {
    TextOutput csv(arguments.csv);
    csv.write(runs_as_csv(results));
    csv.finish();
  }
  if (failed > 0) {
    throw NumericalError(fmt::format(
        "{} of {} runs failed; the lines above say why, and the same command tries them "
        "again",
        failed, runs.size()));
  }
}

}  // namespace

void add_reproduce(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "reproduce", "Repeat the paper's experiments and set the results beside the paper's");
  const auto arguments = std::make_shared<Arguments>();
  Arguments& a = *arguments;
  a.runner.results = "results.sqlite";
  command->add_option("NAME", a.names,
                      fmt::format("all, or some of: {}", fmt::join(experiment_names(), " ")));
  command
      ->add_option("--results", a.runner.results,
                   "Where results are kept; what is there is not run again")
      ->type_name("FILE")
      ->capture_default_str();
  command
      ->add_option("--data-dir", a.data_dir,
                   "Where the data sets are (default: $AMPLE_DATA, else where `ample data fetch` "
                   "puts them)")
      ->type_name("FOLDER");
  command->add_option("--jobs", a.runner.jobs, "Processes to use, which share the processors")
      ->type_name("N")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--data", a.filter.data, "Only these data sets")
      ->type_name("NAME,…")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--method", a.filter.methods, "Only these: vips cv oips fixed-greedy exact")
      ->type_name("NAME,…")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--parameter", a.filter.parameters, "Only these values of δ, η, ρ or M")
      ->type_name("X,…")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--fold", a.filter.folds, "Only these folds or seeds, from 0")
      ->type_name("N,…")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_flag("--whole-sweep", a.filter.whole_sweep,
                    "Also the rest of the paper's sweep over parameters, which takes days");
  command->add_flag("--list", a.list, "Only list the runs, and which of them are done");
  command->add_flag("--tables", a.tables_only, "Only print the tables of what is there");
  command->add_flag("--again", a.again, "Forget what is there of these runs first");
  command->add_option("--csv", a.csv, "Also write every run there is, a line each")
      ->type_name("FILE");
  command
      ->add_option("--save-every", a.runner.seconds_between_saves,
                   "How often a run in progress is saved")
      ->type_name("SECONDS")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  // For the processes of --jobs.
  command->add_option("--worker", a.worker, "")->group("");
  command->add_option("--threads", a.threads, "")->group("");
  command->footer(
      "Runs can be stopped at any moment, killed too: the same command goes on where it was.\n"
      "Figures are drawn from the results by experiments/draw.py. Examples:\n"
      "  ample reproduce figure1\n"
      "  ample data fetch && ample reproduce uci --jobs 2 --results results.sqlite\n"
      "  ample reproduce operating-point --tables --results results.sqlite");
  command->callback([arguments] { reproduce(*arguments); });
}

}  // namespace ample::cli
