// `ample compress MODEL`: a smaller model for the nats it costs, or a table of what sizes would
// cost.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ample/snapshot.h"
#include "commands.h"
#include "errors.h"
#include "interrupt.h"
#include "json_text.h"
#include "model_file.h"
#include "numbers.h"
#include "output.h"
#include "terminal.h"

namespace ample::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CompressOptions {
  std::string model;
  std::optional<double> nats;
  std::optional<Index> points;
  std::string save_to;
  bool wait = false;
  bool json = false;

  [[nodiscard]] bool asks_only() const { return !nats && !points; }
};

/// All of them, nine tenths of them, and so on to a tenth, and one.
std::vector<Index> shown_sizes(Index M) {
  std::vector<Index> sizes;
  for (Index tenths = 10; tenths > 0; --tenths) sizes.push_back((M * tenths + 9) / 10);
  sizes.push_back(1);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

void print_curve(const ContinualGP& model, bool json) {
  const Vector nats = model.compression_curve();
  if (json) {
    // The m-th number is what a model of m points would cost.
    print("{}\n", to_text(Json{{"inducing", model.size()},
                               {"rows_seen", model.rows_seen()},
                               {"nats_by_size", std::vector<double>(nats.begin(), nats.end())}},
                          2));
    return;
  }
  print("{:>8}  {:>12}  {:>12}\n", "points", "nats", "nats a row");
  if (model.size() == 0) return;
  for (const Index m : shown_sizes(model.size())) {
    print("{:>8}  {:>12.4g}  {:>12.4g}\n", m, nats[m],
          nats[m] / static_cast<double>(model.rows_seen()));
  }
}

void print_result(const Compression& done, const std::string& saved_to, bool json) {
  if (json) {
    print("{}\n", to_text(Json{{"inducing_before", done.inducing_before},
                               {"inducing", done.inducing},
                               {"nats", done.nats},
                               {"saved_to", saved_to}},
                          2));
    return;
  }
  print_pairs(
      {{"inducing points", fmt::format("{}, before {}", done.inducing, done.inducing_before)},
       {"nats", fmt::format("{:.6g}", done.nats)},
       {"saved to", saved_to}});
}

void run(const CompressOptions& options) {
  if (options.nats && options.points) {
    throw UsageError("--nats and --points are two ways to say how far, expected one of them");
  }
  if (options.asks_only()) {
    if (!options.save_to.empty()) {
      throw UsageError("--save is given, expected --nats or --points with it: how small?");
    }
    return print_curve(load_snapshot(options.model).model, options.json);
  }
  watch_for_signals();
  ModelFile file(options.save_to.empty() ? options.model : options.save_to, options.wait);
  Snapshot snapshot = load_snapshot(options.model);
  file.check_can_save();
  const Compression done = options.nats ? snapshot.model.compress(*options.nats)
                                        : snapshot.model.compress_to(*options.points);
  stop_if_interrupted();
  file.save(snapshot.model, snapshot.notes);
  print_result(done, file.path(), options.json);
}

}  // namespace

void add_compress(CLI::App& app) {
  CLI::App& command =
      *app.add_subcommand("compress", "Make a model smaller, or say what each size would cost");
  auto options = std::make_shared<CompressOptions>();
  command.add_option("model", options->model, "Model file, as saved by fit")
      ->required()
      ->type_name("MODEL");
  command
      .add_option("--nats", options->nats,
                  "Remove the points that are worth least for at most so many nats in all")
      ->transform(real_number())
      ->type_name("N");
  command.add_option("--points", options->points, "Remove them until so many are left")
      ->transform(whole_number<Index>(1))
      ->type_name("M");
  command.add_option("--save", options->save_to, "Where to save the model (default: MODEL)")
      ->type_name("OTHER");
  command.add_flag("--wait", options->wait,
                   "If another program updates the model, wait for it instead of stopping");
  command.add_flag("--json", options->json, "Print it as JSON");
  command.footer(
      "Predictions of the smaller model differ by at most the nats paid (KL divergence). Without\n"
      "--nats and --points nothing is changed, and a table says what sizes would cost. Example:\n"
      "  ample compress model.ample && ample compress model.ample --nats 1 --save small.ample");
  command.callback([options] { run(*options); });
}

}  // namespace ample::cli
