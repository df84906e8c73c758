// `ample fit DATA`: a table in, a model out.
#include <charconv>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "ample/continual_gp.h"
#include "ample/kernel.h"
#include "ample/merge.h"
#include "ample/selection.h"
#include "ample/snapshot.h"
#include "batches.h"
#include "columns.h"
#include "commands.h"
#include "errors.h"
#include "learn.h"
#include "numbers.h"
#include "table.h"

namespace ample::cli {
namespace {

struct FitOptions {
  std::string data;
  std::string target;
  std::string inputs;
  std::string like;
  Batching batching;
  bool batch_size_given = false;
  std::string standardize = "first-batch";
  std::string kernel = "auto";
  double noise_variance = 0.1;
  std::string selection = "vips";
  SelectionSettings settings;  // those given
  std::optional<Index> refit_every;
  std::optional<Index> reservoir;
  std::optional<double> prune;
  std::string forget;  // empty: as it comes
  std::string time;
  std::optional<double> refit_seconds;
  bool ard = false;
  bool fixed_hyperparameters = false;
  std::string test;
  LearnOptions learn;
};

constexpr const char* kAutomatic = "auto";

/// never, adaptive, or a half-life in rows or, with a column of times, in its units.
Forgetting forgetting(const FitOptions& options, const Forgetting& as_it_comes) {
  const std::string& how = options.forget;
  const bool timed = !options.time.empty();
  if (timed && (how.empty() || how == "never" || how == "adaptive")) {
    throw UsageError("--time is given, expected --forget with a half-life in its units");
  }
  if (how.empty()) return as_it_comes;
  if (how == "never") return Forgetting::never();
  if (how == "adaptive") return Forgetting::adaptive();
  double half_life = 0.0;
  const char* end = how.data() + how.size();
  const auto [stop, problem] = std::from_chars(how.data(), end, half_life);
  if (problem != std::errc() || stop != end || !(half_life > 0.0) || !std::isfinite(half_life)) {
    throw UsageError(fmt::format(
        "--forget is '{}', expected never, adaptive or a positive number of rows", how));
  }
  return timed ? Forgetting::after_time(half_life) : Forgetting::after_rows(half_life);
}

/// All that does not depend on the data, so that a mistake is found before they are opened.
ContinualGPOptions model_options(const FitOptions& options) {
  ContinualGPOptions model;
  SelectionSettings settings = options.settings;
  const bool finds = options.kernel == kAutomatic && !options.fixed_hyperparameters;
  for (const auto& [name, is_given] :
       {std::pair{"--ard", options.ard}, {"--refit-seconds", options.refit_seconds.has_value()}}) {
    if (is_given && !finds) {
      throw UsageError(
          fmt::format("{} is given, expected with it --kernel auto, whose "
                      "hyperparameters are not fixed",
                      name));
    }
  }
  if (options.kernel != kAutomatic) {
    model.start.kernel = Kernel::parse(options.kernel);
  } else if (!options.fixed_hyperparameters) {
    model = ContinualGPOptions::out_of_the_box();
    // What was not said is as it comes, of the method that it comes with.
    if (options.selection == model.selection.name()) settings.merge(model.selection.settings());
  }
  if (options.reservoir) model.reservoir = *options.reservoir;
  if (options.prune) model.prune = *options.prune;
  model.ard = options.ard;
  if (options.refit_seconds) model.refit_seconds = *options.refit_seconds;
  model.forget = forgetting(options, model.forget);
  model.start.noise_variance.value = options.noise_variance;
  model.start.check("--noise-variance");
  model.selection = make_selection(options.selection, settings);
  if (options.refit_every && *options.refit_every < 1) {
    throw UsageError(fmt::format("--refit-every is {}, expected at least 1", *options.refit_every));
  }
  model.refit_every = options.fixed_hyperparameters ? 0 : options.refit_every.value_or(1);
  model.seed = options.batching.seed;
  model.scaling = Standardize::none;
  if (options.standardize == "first-batch") {
    model.scaling = Standardize::first_batch;
  } else if (options.standardize != "all" && options.standardize != "none") {
    throw UsageError(fmt::format("--standardize is '{}', expected none, all or first-batch",
                                 options.standardize));
  }
  return model;
}

TestSet read_test(const std::string& path, Columns columns, bool skip_bad_rows) {
  columns.time.reset();  // predictions need none
  TableReader reader(path, {.skip_bad_rows = skip_bad_rows});
  const Columns found =
      find_columns(columns, reader.names(), reader.columns(), Need::inputs_and_target, path);
  reader.select(found.all());
  return {.data = to_batch(reader.rest().values)};
}

/// Scaling, hyperparameters, options and columns of another model, and none of its data.
void run_like(FitOptions& options) {
  const std::unique_ptr<ModelFile> file = prepare_to_learn(
      options.learn, {{"DATA", options.data}, {"--test", options.test}, {"--like", options.like}});
  if (file) file->check_can_save();
  const Snapshot pilot = load_snapshot(options.like);
  ContinualGP model = empty_like(pilot.model, options.fixed_hyperparameters);
  options.batching.seed = model.checkpoint()->options.seed;
  TableReader reader(options.data, {.skip_bad_rows = options.learn.skip_bad_rows});
  Columns columns = find_columns(columns_of(pilot, options.like), reader.names(), reader.columns(),
                                 Need::inputs_and_target, options.data);
  if (columns.time && !model.checkpoint()->options.forget.by_time()) {
    columns.time.reset();
    if (!columns.names.empty()) columns.names.pop_back();
  }
  std::optional<TestSet> test;
  if (!options.test.empty()) test = read_test(options.test, columns, options.learn.skip_bad_rows);
  if (!options.batch_size_given) {
    options.batching.batch_size =
        batch_size_of(pilot, options.like).value_or(options.batching.batch_size);
  }
  BatchSource source(std::move(reader), columns, options.batching);
  const Notes notes{{kColumnsNote, to_note(columns)},
                    {kBatchSizeNote, fmt::format("{}", options.batching.batch_size)}};
  learn(std::move(model), source, test, notes, options.learn, file.get(), "ample fit");
}

void run(FitOptions& options) {
  if (!options.like.empty()) return run_like(options);
  ContinualGPOptions model = model_options(options);
  const std::unique_ptr<ModelFile> file =
      prepare_to_learn(options.learn, {{"DATA", options.data}, {"--test", options.test}});
  if (file) file->check_can_save();
  const bool all = options.standardize == "all";

  TableReader reader(options.data, {.skip_bad_rows = options.learn.skip_bad_rows});
  const Columns columns = choose_columns(reader.names(), reader.columns(), options.target,
                                         options.inputs, options.time);
  const Index D = columns.dimension();
  if (options.kernel == kAutomatic) model.start.kernel = ContinualGPOptions::default_kernel(D);
  model.start.kernel.check_dimension(D);
  if (const double variance = model.start.kernel.diagonal(Matrix::Ones(1, D))[0];
      !std::isfinite(variance)) {
    throw UsageError(fmt::format("--kernel has the variance {}, expected a finite one", variance));
  }
  std::optional<TestSet> test;
  if (!options.test.empty()) test = read_test(options.test, columns, options.learn.skip_bad_rows);

  BatchSource source(std::move(reader), columns, options.batching, all);
  if (all) {
    const Scaling scaling = source.scaling();
    model.scaling = scaling;
    if (test) test->unit = scaling.target_scale;
  }
  const Notes notes{{kColumnsNote, to_note(columns)},
                    {kBatchSizeNote, fmt::format("{}", options.batching.batch_size)}};
  learn(ContinualGP(model), source, test, notes, options.learn, file.get(), "ample fit");
}

/// A rule by its name, as a number among the settings.
double choose_code(const std::string& rule) {
  if (rule == "variance") return static_cast<double>(Vips::Choose::variance);
  if (rule == "gain") return static_cast<double>(Vips::Choose::gain);
  throw UsageError(fmt::format("--choose is '{}', expected variance or gain", rule));
}

void add_setting(CLI::App& command, FitOptions& options, const char* flag, const char* setting,
                 const char* help) {
  command
      .add_option_function<double>(
          flag, [&options, setting](double value) { options.settings[setting] = value; }, help)
      ->transform(real_number())
      ->type_name("NUMBER");
}

}  // namespace

void add_fit(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("fit", "Fit a model to a table, batch by batch");
  auto shared = std::make_shared<FitOptions>();
  FitOptions& options = *shared;
  command
      .add_option("data", options.data,
                  "Table as CSV, TSV or white-space, plain or gzip; - for standard input")
      ->required()
      ->type_name("DATA");
  command.add_option("--target", options.target, "Name or number of the target (default: last)")
      ->type_name("COLUMN");
  command
      .add_option("--inputs", options.inputs,
                  "Names or numbers of the inputs, comma-separated (default: all others)")
      ->type_name("COLUMNS");
  add_batching_options(command, options.batching);
  command
      .add_option("--seed", options.batching.seed,
                  "For --order shuffle and methods that draw random numbers")
      ->transform(whole_number<std::uint64_t>())
      ->capture_default_str()
      ->type_name("N");
  command
      .add_option("--standardize", options.standardize,
                  "Scale to mean 0 and deviation 1: none, first-batch, or all, which needs the "
                  "whole table and gives --test scores in scaled units")
      ->capture_default_str()
      ->type_name("HOW");
  command
      .add_option("--kernel", options.kernel,
                  "Kernel to start from, as text; auto finds one for the first rows")
      ->capture_default_str()
      ->type_name("TEXT");
  command.add_flag("--ard", options.ard,
                   "With --kernel auto, a lengthscale for each input in any case");
  command.add_option("--noise-variance", options.noise_variance, "Noise variance to start from")
      ->transform(real_number())
      ->capture_default_str()
      ->type_name("NUMBER");
  command
      .add_option("--selection", options.selection,
                  "How inducing points are chosen: vips, cv, oips, fixed-greedy, fixed-gradient")
      ->capture_default_str()
      ->type_name("METHOD");
  add_setting(command, options, "--delta", "delta",
              "vips: share of the explainable nats that may be lost (default: 0.005 with --kernel "
              "auto, else 0.035)");
  command
      .add_option_function<std::string>(
          "--choose",
          [&options](const std::string& rule) { options.settings["choose"] = choose_code(rule); },
          "vips: which point next, the one of most variance or of most gain (default: gain with "
          "--kernel auto, else variance)")
      ->type_name("RULE");
  add_setting(command, options, "--eta", "eta",
              "cv: variance that may remain unexplained (default: 0.5)");
  add_setting(command, options, "--rho", "rho",
              "oips: correlation from which a point is not new (default: 0.93)");
  add_setting(command, options, "--size", "size",
              "fixed-*: number of inducing points (default: 100)");
  add_setting(
      command, options, "--max-inducing", "max_inducing",
      "vips, cv, oips: most inducing points (default: 1000 with --kernel auto, else no limit)");
  auto* every = command
                    .add_option("--refit-every", options.refit_every,
                                "Refit hyperparameters after every K-th batch (default: 1)")
                    ->transform(whole_number<Index>())
                    ->type_name("K");
  command
      .add_option("--reservoir", options.reservoir,
                  "Rows of the past to keep, a sample of all, to fit hyperparameters to; 0 keeps "
                  "none (default: 4000 with --kernel auto, else 0)")
      ->type_name("ROWS");
  command
      .add_option("--prune", options.prune,
                  "Share of each batch's nats for which points may go again (default: 0.05 with "
                  "--kernel auto, else 0)")
      ->type_name("SHARE");
  command
      .add_option(
          "--forget", options.forget,
          "What of the past: never; adaptive, as far as each batch contradicts it; or after "
          "how many rows a row counts half (default: adaptive with --kernel auto, else "
          "never)")
      ->type_name("HOW");
  command
      .add_option("--time", options.time,
                  "Column of times, in whose units --forget is then given. It is no input unless "
                  "--inputs names it")
      ->type_name("COLUMN");
  command
      .add_option(
          "--refit-seconds", options.refit_seconds,
          "With --kernel auto, seconds after which small batches are refitted too (default: "
          "when 500 rows have come)")
      ->transform(real_number(0.0))
      ->type_name("SECONDS");
  command
      .add_flag("--fixed-hyperparameters", options.fixed_hyperparameters,
                "Never refit hyperparameters")
      ->excludes(every);
  auto* like = command
                   .add_option("--like", options.like,
                               "Begin with scaling, hyperparameters, options and columns of this "
                               "model, but none of its data, so that models can be merged")
                   ->type_name("MODEL");
  for (const char* other : {"--target",       "--inputs",       "--seed",
                            "--standardize",  "--kernel",       "--noise-variance",
                            "--selection",    "--delta",        "--choose",
                            "--eta",          "--rho",          "--size",
                            "--max-inducing", "--refit-every",  "--reservoir",
                            "--prune",        "--forget",       "--time",
                            "--ard",          "--refit-seconds"}) {
    like->excludes(command.get_option(other));
  }
  command.add_option("--test", options.test, "Table to score predictions on after each batch")
      ->type_name("FILE");
  command.add_option("--save", options.learn.save_to, "Where to save the model")
      ->type_name("MODEL");
  add_learn_options(command, options.learn);
  command.footer(
      "Example: 10 batches in the order of column `time`, scored on other data after each:\n"
      "  ample fit train.csv --target y --order time --batches 10 --test test.csv \\\n"
      "      --save model.ample --report report.jsonl");
  command.callback([shared, &command] {
    shared->batch_size_given = command.count("--batch-size") > 0;
    run(*shared);
  });
}

}  // namespace ample::cli
