// `ample predict MODEL DATA`: a table of inputs in, a table of predictions out, block by block.
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "ahead.h"
#include "ample/normal.h"
#include "ample/snapshot.h"
#include "ample/threads.h"
#include "columns.h"
#include "commands.h"
#include "diagnostics.h"
#include "distinct_files.h"
#include "errors.h"
#include "interrupt.h"
#include "numbers.h"
#include "output.h"
#include "table.h"

namespace ample::cli {
namespace {

struct PredictOptions {
  std::string model;
  std::string data;
  double level = 0.95;
  bool observation = false;
  Index samples = 0;
  std::uint64_t seed = 0;
  std::string output;
  bool skip_bad_rows = false;
  std::optional<int> threads;
};

// Rows that are predicted, and sampled jointly, at a time: the covariance of a block takes 8 MB.
constexpr Index kRowBlock = 1000;

/// A block of samples, and its text, must fit into the memory.
void check_samples(Index samples) {
  if (samples < 0) throw UsageError(fmt::format("--samples is {}, expected at least 0", samples));
  constexpr double kTextBytes = 24.0;  // of a number, at most
  constexpr double kBytes = static_cast<double>(kRowBlock) * (sizeof(double) + kTextBytes);
  const double memory =
      static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGESIZE));
  if (const double needed = kBytes * static_cast<double>(samples); needed > memory) {
    throw UsageError(
        fmt::format("--samples is {}, which takes {:.3g} GB of memory, expected at most {:.0f}: "
                    "this machine has {:.3g} GB",
                    samples, needed / 1e9, std::floor(memory / kBytes), memory / 1e9));
  }
}

std::string header(Index samples) {
  std::string line = "mean,std,lower,upper";
  for (Index s = 1; s <= samples; ++s) line += fmt::format(",sample_{}", s);
  return line + '\n';
}

std::string lines(const Prediction& p, double z, const Matrix& samples) {
  fmt::memory_buffer text;
  for (Index i = 0; i < p.mean.size(); ++i) {
    const double deviation = std::sqrt(p.variance[i]);
    fmt::format_to(std::back_inserter(text), "{},{},{},{}", p.mean[i], deviation,
                   p.mean[i] - z * deviation, p.mean[i] + z * deviation);
    for (Index s = 0; s < samples.cols(); ++s) {
      fmt::format_to(std::back_inserter(text), ",{}", samples(i, s));
    }
    text.push_back('\n');
  }
  return fmt::to_string(text);
}

void run(const PredictOptions& options) {
  if (!(options.level > 0.0 && options.level < 1.0)) {
    throw UsageError(fmt::format("--level is {}, expected between 0 and 1", options.level));
  }
  check_samples(options.samples);
  check_distinct({{"MODEL", options.model}, {"DATA", options.data}},
                 {{"--output", options.output}});
  if (options.threads) set_threads(*options.threads);
  watch_for_signals();
  const Deadline deadline([](int) { return true; });
  const double z = normal_quantile(0.5 * (1.0 + options.level));
  const Target target = options.observation ? Target::observation : Target::function;

  const Snapshot snapshot = load_snapshot(options.model);
  TableReader reader(options.data, {.skip_bad_rows = options.skip_bad_rows});
  const Columns columns = find_columns(columns_of(snapshot, options.model), reader.names(),
                                       reader.columns(), Need::inputs, options.data);
  reader.select(columns.inputs);
  TextOutput out(options.output);
  const auto read = [&]() -> std::optional<Matrix> {
    Matrix X = reader.next(kRowBlock);
    return X.rows() > 0 ? std::optional(std::move(X)) : std::nullopt;
  };
  // What comes as a stream is answered before more of it is waited for.
  std::optional<Ahead<Matrix>> ahead;
  if (reader.is_file()) ahead.emplace(read);
  std::uint64_t block = 0;
  while (const std::optional<Matrix> next = ahead ? ahead->next() : read()) {
    stop_if_interrupted();
    const Matrix& X = *next;
    if (block == 0) out.write(header(options.samples));
    const Prediction p = snapshot.model.predict(X, target);
    Matrix samples(X.rows(), 0);
    if (options.samples > 0) {
      samples = snapshot.model.sample(X, options.samples, options.seed + block, target);
    }
    out.write(lines(p, z, samples));
    ++block;
  }
  out.finish();
  if (reader.bad_rows() > 0) {
    say("ample predict",
        fmt::format("dropped {} bad row{}", reader.bad_rows(), reader.bad_rows() == 1 ? "" : "s"));
  }
}

}  // namespace

void add_predict(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("predict", "Predict for the rows of a table, as CSV");
  auto options = std::make_shared<PredictOptions>();
  command.add_option("model", options->model, "Model file")->required()->type_name("MODEL");
  command
      .add_option("data", options->data,
                  "Table with the model's inputs, found by name if both have names; - for standard "
                  "input")
      ->required()
      ->type_name("DATA");
  command.add_option("--level", options->level, "Probability between `lower` and `upper`")
      ->transform(real_number())
      ->capture_default_str()
      ->type_name("P");
  command.add_flag("--observation", options->observation,
                   "Predict noisy observations instead of the function");
  command
      .add_option("--samples", options->samples,
                  "Add K joint samples as columns; rows are sampled 1000 at a time")
      ->transform(whole_number<Index>())
      ->type_name("K");
  command.add_option("--seed", options->seed, "For --samples")
      ->transform(whole_number<std::uint64_t>())
      ->capture_default_str()
      ->type_name("N");
  command.add_option("--output", options->output, "Write to a file instead of standard output")
      ->type_name("FILE");
  command.add_flag("--skip-bad-rows", options->skip_bad_rows,
                   "Drop and count rows with a missing or bad value instead of stopping");
  command.add_option("--threads", options->threads, "Threads to use (default: all processors)")
      ->transform(whole_number<int>(1))
      ->type_name("N");
  command.footer(
      "Prints mean, std, lower, upper in the units of the data. Example:\n"
      "  ample predict model.ample new.csv --observation --output predictions.csv");
  command.callback([options] { run(*options); });
}

}  // namespace ample::cli
