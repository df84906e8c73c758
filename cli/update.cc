// `ample update MODEL DATA`: go on learning as the fit would have.
#include <memory>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "ample/snapshot.h"
#include "batches.h"
#include "columns.h"
#include "commands.h"
#include "learn.h"
#include "table.h"

namespace ample::cli {
namespace {

struct UpdateOptions {
  std::string model;
  std::string data;
  Batching batching;
  bool batch_size_given = false;
  LearnOptions learn;
};

void run(UpdateOptions options) {
  if (options.learn.save_to.empty()) options.learn.save_to = options.model;
  const std::unique_ptr<ModelFile> file =
      prepare_to_learn(options.learn, {{"DATA", options.data}}, options.model);
  Snapshot snapshot = load_snapshot(options.model);
  file->check_can_save();

  TableReader reader(options.data, {.skip_bad_rows = options.learn.skip_bad_rows});
  const Columns columns = find_columns(columns_of(snapshot, options.model), reader.names(),
                                       reader.columns(), Need::inputs_and_target, options.data);
  options.batching.seed = snapshot.model.checkpoint()->options.seed;
  if (!options.batch_size_given) {
    options.batching.batch_size =
        batch_size_of(snapshot, options.model).value_or(options.batching.batch_size);
  }
  BatchSource source(std::move(reader), columns, options.batching);
  learn(std::move(snapshot.model), source, std::nullopt, snapshot.notes, options.learn, file.get(),
        "ample update");
}

}  // namespace

void add_update(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("update", "Go on learning from more data");
  auto options = std::make_shared<UpdateOptions>();
  command.add_option("model", options->model, "Model file, as saved by fit")
      ->required()
      ->type_name("MODEL");
  command
      .add_option("data", options->data,
                  "Table with the model's columns, found by name if both have names; - for "
                  "standard input")
      ->required()
      ->type_name("DATA");
  add_batching_options(command, options->batching);
  command.add_option("--save", options->learn.save_to, "Where to save the model (default: MODEL)")
      ->type_name("OTHER");
  add_learn_options(command, options->learn);
  command.footer(
      "Kernel, noise, selection, scaling and batch size are those of the fit. Example:\n"
      "  ample update model.ample tuesday.csv --report tuesday.jsonl");
  command.callback([options, &command] {
    options->batch_size_given = command.count("--batch-size") > 0;
    run(*options);
  });
}

}  // namespace ample::cli
