// `ample-reproduce NAME`: the paper's experiments, and tables that set ours beside the paper's.
#include "reproduce.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data_files.h"
#include "diagnostics.h"
#include "errors.h"
#include "interrupt.h"
#include "numbers.h"
#include "output.h"
#include "plan.h"
#include "results.h"
#include "runner.h"
#include "tables.h"

namespace ample::experiments {
namespace {

using cli::DataError;
using cli::print;
using cli::TextOutput;
using cli::UsageError;

struct Arguments {
  std::vector<std::string> names;
  PlanFilter filter;
  RunnerOptions runner;
  std::string data_dir;
  std::string csv;
  bool list = false;
  bool tables_only = false;
  std::string worker;
  int threads = 1;
};

std::vector<std::string> chosen_experiments(const std::vector<std::string>& names) {
  bool all = false;
  for (const std::string& name : names) {
    all = all || name == "all";
    if (name != "all" && std::ranges::find(experiment_names(), name) == experiment_names().end()) {
      throw UsageError(fmt::format("unknown experiment '{}', expected all or some of: {}", name,
                                   fmt::join(experiment_names(), " ")));
    }
  }
  return all ? experiment_names() : names;
}

/// Throws UsageError for a value that no run of the experiments has: it would be left out silently.
template <class T, class Member>
void check_filter(const char* option, const std::vector<T>& wanted, const std::vector<Run>& runs,
                  Member member) {
  std::set<T> known;
  for (const Run& run : runs) known.insert(run.*member);
  for (const T& value : wanted) {
    if (!known.contains(value)) {
      throw UsageError(
          fmt::format("{} is '{}', expected some of: {}", option, value, fmt::join(known, " ")));
    }
  }
}

/// The tables of operating points are made of the runs of uci.
std::vector<Run> chosen_runs(const Arguments& arguments, const std::vector<std::string>& names) {
  PlanFilter filter = arguments.filter;
  filter.experiments = names;
  std::ranges::replace(filter.experiments, "operating-point", "uci");
  std::vector<Run> runs = plan(filter);
  PlanFilter everything;
  everything.experiments = filter.experiments;
  everything.whole_sweep = true;
  const std::vector<Run> possible = plan(everything);
  check_filter("--data", filter.data, possible, &Run::data);
  check_filter("--method", filter.methods, possible, &Run::method);
  check_filter("--parameter", filter.parameters, possible, &Run::parameter);
  check_filter("--fold", filter.folds, possible, &Run::fold);
  if (runs.empty()) {
    throw UsageError(
        "no run of the plan fits --data, --method, --parameter and --fold together; without them, "
        "--list shows all (with --whole-sweep the rest of the paper's)");
  }
  return runs;
}

/// Before an hour of work, not after it.
void require_all_data(const std::vector<Run>& runs, const std::filesystem::path& folder) {
  std::set<std::string> needed;
  for (const Run& run : runs) {
    if (run.experiment.starts_with("uci") || run.experiment == "figure2b" ||
        run.experiment == "fronts") {
      needed.insert(run.data);
    }
    if (run.experiment.starts_with("magnetic-")) needed.insert("magnetic");
  }
  for (const std::string& name : needed) require_data(folder, name);
}

void list_runs(const std::vector<Run>& runs, const std::string& path) {
  const bool there = std::filesystem::exists(path);
  const std::unique_ptr<Results> results =
      there ? std::make_unique<Results>(path, Access::read) : nullptr;
  for (const Run& run : runs) {
    const RunState state = results ? results->state(run) : RunState::missing;
    print("{}\t{}\n", run.key(), to_text(state));
  }
}

void reproduce(const Arguments& arguments) {
  RunnerOptions runner = arguments.runner;
  runner.data_folder = data_folder(arguments.data_dir);
  if (!arguments.worker.empty()) {
    run_as_worker(arguments.worker, runner, arguments.threads);
    return;
  }
  if (arguments.names.empty()) {
    throw UsageError(
        fmt::format("expected NAME: all or some of {}", fmt::join(experiment_names(), " ")));
  }
  const std::vector<std::string> names = chosen_experiments(arguments.names);
  const std::vector<Run> runs = chosen_runs(arguments, names);
  if (arguments.list) {
    list_runs(runs, runner.results);
    return;
  }
  // Found out before an hour of work, not after it.
  if (!arguments.csv.empty()) {
    const TextOutput can_be_written(arguments.csv);
  }
  Failures failures;
  if (!arguments.tables_only) {
    require_all_data(runs, runner.data_folder);
    try {
      failures = run_all(runs, runner);
    } catch (const cli::Interrupted&) {
      cli::say("ample-reproduce", fmt::format("stopped by a signal; the same command goes on{}",
                                              runner.again ? " without --again" : ""));
      throw;
    }
  } else if (!std::filesystem::exists(runner.results)) {
    throw DataError(
        fmt::format("{}: no such file of results; run without --tables first", runner.results));
  }
  const Results results(runner.results, Access::read);
  for (const std::string& experiment : names) {
    print("## {}\n\n{}\n", experiment, table_of(experiment, results));
  }
  if (!arguments.csv.empty()) {
    TextOutput csv(arguments.csv);
    csv.write(runs_as_csv(results));
    csv.finish();
  }
  if (failures.runs > 0) {
    const std::string message = fmt::format(
        "{} of {} runs failed; the lines above say why, and the same command tries them again",
        failures.runs, runs.size());
    if (failures.numerical > 0) throw NumericalError(message);
    throw DataError(message);
  }
}

}  // namespace

void add_reproduce(CLI::App& app) {
  CLI::App* command = &app;
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
      ->add_option(
          "--data-dir", a.data_dir,
          "Where the data sets are (default: $AMPLE_DATA, else where `ample-reproduce data fetch` "
          "puts them)")
      ->type_name("FOLDER");
  command->add_option("--jobs", a.runner.jobs, "Processes to use, which share the processors")
      ->type_name("N")
      ->transform(cli::whole_number<int>(1))
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
      ->transform(cli::real_number())
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--fold", a.filter.folds, "Only these folds or seeds, from 0")
      ->type_name("N,…")
      ->transform(cli::whole_number<int>(0))
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_flag("--whole-sweep", a.filter.whole_sweep,
                    "Also the rest of the paper's sweep over parameters, which takes days");
  auto* list =
      command->add_flag("--list", a.list, "Only list the runs, and which of them are done");
  auto* tables =
      command->add_flag("--tables", a.tables_only, "Only print the tables of what is there");
  command->add_flag("--again", a.runner.again, "Forget what is there of these runs first")
      ->excludes(list)
      ->excludes(tables);
  list->excludes(tables);
  command->add_option("--csv", a.csv, "Also write every run there is, a line each")
      ->type_name("FILE");
  command
      ->add_option("--save-every", a.runner.seconds_between_saves,
                   "How often a run in progress is saved")
      ->type_name("SECONDS")
      ->transform(cli::real_number(0.0))
      ->capture_default_str();
  // For the processes of --jobs.
  command->add_option("--worker", a.worker, "")->group("");
  command->add_option("--threads", a.threads, "")->transform(cli::whole_number<int>(1))->group("");
  command->footer(
      "Runs can be stopped at any moment, killed too: the same command goes on where it was.\n"
      "Figures are drawn from the results by experiments/draw.py. Examples:\n"
      "  ample-reproduce figure1\n"
      "  ample-reproduce data fetch && ample-reproduce uci --jobs 2 --results results.sqlite\n"
      "  ample-reproduce operating-point --tables --results results.sqlite");
  command->callback([arguments, command] {
    if (!command->got_subcommand("data")) reproduce(*arguments);
  });
}

}  // namespace ample::experiments
