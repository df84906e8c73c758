// `ample inspect MODEL`: what is in a model file, after all of its checks.
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
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

/// Of the points' prices, in nats.
struct PriceQuantiles {
  double least, lower, median, upper, most;
};
std::optional<PriceQuantiles> price_quantiles(const ContinualGP& model) {
  const Vector prices = model.prices();
  if (prices.size() == 0) return std::nullopt;
  std::vector<double> sorted = to_list(prices);
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](std::size_t quarters) { return sorted[(sorted.size() - 1) * quarters / 4]; };
  return PriceQuantiles{at(0), at(1), at(2), at(3), at(4)};
}

/// A name as a field of CSV.
std::string to_field(const std::string& name) {
  if (name.find_first_of(R"(,")") == std::string::npos) return name;
  std::string field(1, '"');
  for (const char c : name) field.append(c == '"' ? 2 : 1, c);
  return field + '"';
}

/// Every inducing point with its price, as CSV.
void print_points(const ContinualGP& model, const Columns& columns) {
  const Matrix Z = model.inducing_inputs();
  const Vector prices = model.prices();
  std::string text;
  for (Index d = 0; d < Z.cols(); ++d) {
    text += columns.names.empty() ? fmt::format("x{}", d + 1)
                                  : to_field(columns.names[static_cast<std::size_t>(d)]);
    text += ',';
  }
  text += "price\n";
  for (Index i = 0; i < Z.rows(); ++i) {
    for (Index d = 0; d < Z.cols(); ++d) text += fmt::format("{},", Z(i, d));
    text += fmt::format("{}\n", prices[i]);
  }
  print(std::string_view(text));
}

void print_model_json(const Snapshot& snapshot, const Columns& columns, std::uintmax_t bytes,
                      bool points) {
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
  Json json{{"file_bytes", bytes},
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
  if (const auto prices = price_quantiles(model)) {
    json["price_quantiles"] = {prices->least, prices->lower, prices->median, prices->upper,
                               prices->most};
  }
  if (points) {
    const Matrix Z = model.inducing_inputs();
    const Vector prices = model.prices();
    json["points"] = Json::array();
    for (Index i = 0; i < Z.rows(); ++i) {
      json["points"].push_back({{"inputs", to_list(Z.row(i).transpose())}, {"price", prices[i]}});
    }
  }
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
  std::string points = fmt::format("{}", model.size());
  if (const auto prices = price_quantiles(model)) {
    points += fmt::format(
        ", worth {:.3g} to {:.3g} nats each, a quarter below {:.3g}, half "
        "below {:.3g}, three quarters below {:.3g}",
        prices->least, prices->most, prices->lower, prices->median, prices->upper);
  }
  Pairs pairs{
      {"file", fmt::format("{} bytes, checksum ok, format {}, written by Ample {}", bytes,
                           snapshot.format_version, snapshot.ample_version)},
      {"rows", fmt::format("{} in {} batches", model.rows_seen(), model.batches())},
      {"rows kept", rows_kept(checkpoint)},
      {"inducing points", points},
      {"inputs", fmt::format("{}", model.dimension())},
  };
  if (!columns.names.empty()) {
    const auto target = columns.names.begin() + model.dimension();
    pairs.back().second += fmt::format(": {}", fmt::join(columns.names.begin(), target, ", "));
    pairs.emplace_back("target", *target);
    if (target + 1 != columns.names.end()) pairs.emplace_back("time", target[1]);
  }
  pairs.emplace_back("kernel", model.kernel().to_string());
  for (const Parameter& p : checkpoint.theta.parameters()) {
    pairs.emplace_back("  " + p.name,
                       p.fixed ? fmt::format("{:.6g}, fixed", p.value)
                               : fmt::format("{:.6g} in [{:g}, {:g}]", p.value, p.lower, p.upper));
  }
  pairs.emplace_back("selection", selection);
  pairs.emplace_back("refit", options.refit_every == 0 ? "never"
                              : options.refit_rows > 0
                                  ? fmt::format("after {} rows, or a surprise", options.refit_rows)
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
        "  " + (columns.names.empty() ? "target"
                                      : columns.names[static_cast<std::size_t>(model.dimension())]),
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
  auto points = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "Print it as JSON");
  command.add_flag("--points", *points,
                   "Print every inducing point with its price, what dropping it would cost in "
                   "nats, as CSV, or in the JSON");
  command.footer("Example:\n  ample inspect model.ample --json");
  command.callback([path, json, points] {
    const Snapshot snapshot = load_snapshot(*path);
    const Columns columns = columns_of(snapshot, *path);
    static_cast<void>(batch_size_of(snapshot, *path));  // which an update would need
    const std::uintmax_t bytes = std::filesystem::file_size(*path);
    if (*json) return print_model_json(snapshot, columns, bytes, *points);
    if (*points) return print_points(snapshot.model, columns);
    print_model_table(snapshot, columns, bytes);
  });
}

}  // namespace ample::cli
