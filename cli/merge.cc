// `ample merge MODEL... --save OTHER`: models that learnt apart, as one.
#include "ample/merge.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "ample/snapshot.h"
#include "ample/threads.h"
#include "columns.h"
#include "commands.h"
#include "distinct_files.h"
#include "errors.h"
#include "interrupt.h"
#include "json_text.h"
#include "model_file.h"
#include "numbers.h"
#include "output.h"
#include "terminal.h"

namespace ample::cli {
namespace {

struct MergeCommand {
  std::vector<std::string> models;
  std::string save_to;
  std::string report_to;
  std::string kernel;
  std::optional<double> noise_variance;
  bool fit = false;
  std::optional<double> nats;
  std::optional<Index> max_inducing;
  bool wait = false;
  bool json = false;
  std::optional<int> threads;
};

/// A model that is given twice would count its rows twice.
void check_given_once(const std::vector<std::string>& models) {
  std::vector<NamedFile> before;
  for (const std::string& model : models) {
    check_distinct(before, {{"MODEL", model}});
    before.push_back({fmt::format("'{}'", model), model});
  }
}

/// Models of other columns may have the same dimension, and would be merged into nonsense.
void check_columns_alike(const std::vector<Snapshot>& snapshots,
                         const std::vector<std::string>& paths) {
  std::optional<std::size_t> first;  // that names its columns
  for (std::size_t i = 0; i < snapshots.size(); ++i) {
    const Columns columns = columns_of(snapshots[i], paths[i]);
    if (columns.names.empty()) continue;
    if (!first) first = i;
    const Columns expected = columns_of(snapshots[*first], paths[*first]);
    if (columns.names != expected.names) {
      throw UsageError(fmt::format("{} has the columns {}, expected {} as {}", paths[i],
                                   fmt::join(columns.names, ", "), fmt::join(expected.names, ", "),
                                   paths[*first]));
    }
  }
}

std::string merge_report_text(const MergeReport& report, const std::string& saved_to) {
  nlohmann::ordered_json json;
  for_each_merge_field([&](const char* name, auto member) { json[name] = report.*member; });
  json["evaluations"] = report.fit.evaluations;
  json["saved_to"] = saved_to;
  return to_text(json, 2);
}

void print_merge(const MergeReport& report, const std::string& saved_to) {
  Pairs pairs{{"models", fmt::format("{}", report.models)},
              {"rows", fmt::format("{}", report.rows)}};
  if (report.rows_learnt > 0) {
    pairs.emplace_back("rows learnt anew", fmt::format("{}", report.rows_learnt));
  }
  pairs.emplace_back("inducing points",
                     fmt::format("{}, before {}", report.inducing, report.inducing_before));
  pairs.emplace_back("nats pruned", fmt::format("{:.6g}, allowed {:.6g}", report.pruned_nats,
                                                report.allowed_nats));
  pairs.emplace_back("nats by another θ", fmt::format("{:.6g}", report.carried_nats));
  pairs.emplace_back("kernel", report.kernel);
  pairs.emplace_back("noise variance", fmt::format("{:.6g}", report.noise_variance));
  pairs.emplace_back("seconds", fmt::format("{:.3g}", report.seconds));
  pairs.emplace_back("saved to", saved_to);
  print_pairs(pairs);
}

Merged merge_all(const std::vector<Snapshot>& snapshots, const MergeCommand& options) {
  std::vector<ContinualGP> models;
  models.reserve(snapshots.size());
  for (const Snapshot& snapshot : snapshots) models.push_back(snapshot.model);
  const StatusLine line;
  line.show(fmt::format("merging {} models", models.size()));
  MergeOptions merging{.fit = options.fit,
                       .nats = options.nats,
                       .max_inducing = options.max_inducing,
                       .names = options.models,
                       .should_stop = stop_on_signal,
                       .progress = [&line](Index done, Index all) {
                         stop_if_interrupted();
                         line.show(fmt::format("{} of {} models merged", done, all));
                       }};
  if (!options.kernel.empty()) merging.kernel = Kernel::parse(options.kernel);
  if (options.noise_variance) merging.noise_variance = *options.noise_variance;
  return merge(models, merging);
}

void run(const MergeCommand& options) {
  check_given_once(options.models);
  std::vector<NamedFile> inputs;
  inputs.reserve(options.models.size());
  for (const std::string& model : options.models) inputs.push_back({"MODEL", model});
  check_distinct(inputs, {{"--report", options.report_to}});  // --save may well be a model
  check_distinct({{"--save", options.save_to}}, {{"--report", options.report_to}});
  check_report(options.report_to, options.json);
  if (options.threads) set_threads(*options.threads);
  watch_for_signals();
  ModelFile file(options.save_to, options.wait);
  file.check_can_save();
  std::vector<Snapshot> snapshots;
  snapshots.reserve(options.models.size());
  for (const std::string& model : options.models) snapshots.push_back(load_snapshot(model));
  check_columns_alike(snapshots, options.models);
  std::optional<TextOutput> output;
  if (!options.report_to.empty()) output.emplace(options.report_to);

  const Merged merged = merge_all(snapshots, options);
  stop_if_interrupted();
  file.save(merged.model, snapshots[static_cast<std::size_t>(merged.report.largest)].notes);
  const std::string text = merge_report_text(merged.report, file.path());
  if (output) {
    output->write(text + "\n");
    output->finish();
  }
  if (options.json) {
    print("{}\n", text);
  } else if (!is_standard_output(options.report_to)) {
    print_merge(merged.report, file.path());
  }
}

}  // namespace

void add_merge(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("merge", "Join models that learnt apart into one");
  auto options = std::make_shared<MergeCommand>();
  command.add_option("models", options->models, "Model files, as saved by fit --like one pilot")
      ->required()
      ->type_name("MODEL");
  command.add_option("--save", options->save_to, "Where to save the merged model; may be a MODEL")
      ->required()
      ->type_name("OTHER");
  command
      .add_option("--kernel", options->kernel,
                  "Kernel of the merged model, as text (default: that of the model with most rows)")
      ->type_name("TEXT");
  command
      .add_option("--noise-variance", options->noise_variance,
                  "Its noise variance (default: likewise)")
      ->transform(real_number())
      ->type_name("NUMBER");
  command.add_flag("--fit", options->fit, "Fit the hyperparameters to all models, from there");
  command
      .add_option("--nats", options->nats,
                  "Remove the points that are worth least for at most so many nats (default: 0.001 "
                  "for each row that joins the largest model)")
      ->transform(real_number())
      ->type_name("N");
  command
      .add_option("--max-inducing", options->max_inducing,
                  "Remove points until so many are left (default: what the largest model allows)")
      ->transform(whole_number<Index>(1))
      ->type_name("M");
  command
      .add_option(
          "--report", options->report_to,
          "Write what the merge did, as JSON; - for standard output, in place of the summary")
      ->type_name("FILE");
  command.add_flag("--wait", options->wait,
                   "If another program updates the model, wait for it instead of stopping");
  command.add_flag("--json", options->json, "Print it as JSON");
  command.add_option("--threads", options->threads, "Threads to use (default: all processors)")
      ->transform(whole_number<int>(1))
      ->type_name("N");
  command.footer(
      "The models must have learnt different rows, in one scaling. Example:\n"
      "  ample fit sample.csv --save pilot.ample\n"
      "  ample fit monday.csv --like pilot.ample --save monday.ample\n"
      "  ample fit tuesday.csv --like pilot.ample --save tuesday.ample\n"
      "  ample merge monday.ample tuesday.ample --save week.ample");
  command.callback([options] { run(*options); });
}

}  // namespace ample::cli
