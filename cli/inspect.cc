// `ample inspect MODEL`: what is in a model file, after all of its checks.
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "ample/snapshot.h"
#include "columns.h"
#include "commands.h"
#include "json_text.h"
#include "learn.h"
#include "output.h"
#include "terminal.h"

namespace ample::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string how_scaled(const ContinualGPOptions& options) {
  if (std::holds_alternative<Scaling>(options.scaling)) return "given";
  return std::get<Standardize>(options.scaling) == Standardize::none ? "none" : "first-batch";
}

std::vector<double> to_list(const Vector& v) { return {v.begin(), v.end()}; }

/// Rows of the data themselves, which the file holds besides what was learnt from them.
std::string rows_kept(const ContinualGP::Checkpoint& checkpoint) {
  const Index pending = checkpoint.pending.X.rows();
  const Index sample = checkpoint.reservoir.size();
  if (pending == 0 && sample == 0) return "none";
  return fmt::format("{} pending, {} in the reservoir", pending, sample);
}

void print_model_json(const Snapshot& snapshot, const Columns& columns, std::uintmax_t bytes) {
  const ContinualGP& model = snapshot.model;
  const ContinualGP::Checkpoint& checkpoint = *model.checkpoint();
  const ContinualGPOptions& options = checkpoint.options;
  Json parameters = Json::array();
  for (const Parameter& p : checkpoint.theta.parameters()) {
    parameters.push_back({{"name", p.name},
                          {"value", p.value},
                          {"lower", p.lower},
                          {"upper", p.upper},
                          {"fixed", p.fixed}});
  }
  Json selection{{"name", options.selection.name()}};
  for (const auto& [name, value] : options.selection.settings()) selection[name] = value;
  const Scaling scaling = checkpoint.predictor ? checkpoint.predictor->scaling() : Scaling();
  const Json json{{"file_bytes", bytes},
                  {"checksum", "ok"},
                  {"format_version", snapshot.format_version},
                  {"ample_version", snapshot.ample_version},
                  {"rows_seen", model.rows_seen()},
                  {"batches", model.batches()},
                  {"rows_pending", checkpoint.pending.X.rows()},
                  {"rows_in_reservoir", checkpoint.reservoir.size()},
                  {"inducing", model.size()},
                  {"dimension", model.dimension()},
                  {"columns", columns.names},
                  {"kernel", model.kernel().to_string()},
                  {"parameters", parameters},
                  {"noise_variance", model.noise_variance()},
                  {"selection", selection},
                  {"refit_every", options.refit_every},
                  {"seed", options.seed},
                  {"scaling",
                   {{"standardize", how_scaled(options)},
                    {"input_mean", to_list(scaling.input_mean)},
                    {"input_scale", to_list(scaling.input_scale)},
                    {"target_mean", scaling.target_mean},
                    {"target_scale", scaling.target_scale}}}};
  print("{}\n", to_text(json, 2));
}

void print_model_table(const Snapshot& snapshot, const Columns& columns, std::uintmax_t bytes) {
  const ContinualGP& model = snapshot.model;
  const ContinualGP::Checkpoint& checkpoint = *model.checkpoint();
  const ContinualGPOptions& options = checkpoint.options;
  std::string selection = options.selection.name();
  for (const auto& [name, value] : options.selection.settings()) {
    selection += fmt::format(", {} {}", name, value);
  }
  Pairs pairs{
      {"file", fmt::format("{} bytes, checksum ok, format {}, written by Ample {}", bytes,
                           snapshot.format_version, snapshot.ample_version)},
      {"rows", fmt::format("{} in {} batches", model.rows_seen(), model.batches())},
      {"rows kept", rows_kept(checkpoint)},
      {"inducing points", fmt::format("{}", model.size())},
      {"inputs", fmt::format("{}", model.dimension())},
  };
  if (!columns.names.empty()) {
    const auto target = columns.names.end() - 1;
    pairs.back().second += fmt::format(": {}", fmt::join(columns.names.begin(), target, ", "));
    pairs.emplace_back("target", *target);
  }
  pairs.emplace_back("kernel", model.kernel().to_string());
  for (const Parameter& p : checkpoint.theta.parameters()) {
    pairs.emplace_back("  " + p.name,
                       p.fixed ? fmt::format("{:.6g}, fixed", p.value)
                               : fmt::format("{:.6g} in [{:g}, {:g}]", p.value, p.lower, p.upper));
  }
  pairs.emplace_back("selection", selection);
  pairs.emplace_back("refit", options.refit_every == 0 ? "never"
                              : options.refit_every == 1
                                  ? "after every batch"
                                  : fmt::format("every {} batches", options.refit_every));
  pairs.emplace_back("scaling", how_scaled(options));
  if (model.batches() > 0) {
    const Scaling scaling = checkpoint.predictor ? checkpoint.predictor->scaling() : Scaling();
    for (Index d = 0; d < model.dimension(); ++d) {
      const std::string name = columns.names.empty() ? fmt::format("input {}", d + 1)
                                                     : columns.names[static_cast<std::size_t>(d)];
      pairs.emplace_back("  " + name, fmt::format("mean {:.6g}, scale {:.6g}",
                                                  scaling.input_mean[d], scaling.input_scale[d]));
    }
    pairs.emplace_back(
        "  " + (columns.names.empty() ? "target" : columns.names.back()),
        fmt::format("mean {:.6g}, scale {:.6g}", scaling.target_mean, scaling.target_scale));
  }
  print_pairs(pairs);
}

}  // namespace

void add_inspect(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("inspect", "Check a model file and say what is in it");
  auto path = std::make_shared<std::string>();
  auto json = std::make_shared<bool>(false);
  command.add_option("model", *path, "Model file")->required()->type_name("MODEL");
  command.add_flag("--json", *json, "Print it as JSON");
  command.footer("Example:\n  ample inspect model.ample --json");
  command.callback([path, json] {
    const Snapshot snapshot = load_snapshot(*path);
    const Columns columns = columns_of(snapshot, *path);
    static_cast<void>(batch_size_of(snapshot, *path));  // which an update would need
    const std::uintmax_t bytes = std::filesystem::file_size(*path);
    (*json ? print_model_json : print_model_table)(snapshot, columns, bytes);
  });
}

}  // namespace ample::cli
