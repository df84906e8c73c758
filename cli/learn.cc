#include "learn.h"

#include <chrono>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ample/metrics.h"
#include "ample/threads.h"
#include "errors.h"
#include "interrupt.h"
#include "not_negative.h"
#include "output.h"
#include "terminal.h"

namespace ample::cli {
namespace {

constexpr double kSaveStreamEvery = 60.0;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Outcome {
  Index batches = 0;
  Index rows = 0;
  double seconds = 0.0;
  BatchReport last;
  std::optional<Score> score;
};

Score score_of(const ContinualGP& model, const TestSet& test) {
  Prediction p = model.predict(test.data.X, Target::observation);
  p.mean /= test.unit;
  p.variance /= test.unit * test.unit;
  const Vector y = test.data.y / test.unit;
  return {.rmse = rmse(y, p.mean), .nlpd = nlpd(y, p)};
}

BatchReport observe(ContinualGP& model, const Batch& batch) {
  try {
    return model.observe(batch.X, batch.y, {.should_stop = stop_on_signal});
  } catch (const std::invalid_argument& error) {  // of the model, so it is the data that do not fit
    throw DataError(error.what());
  }
}

/// The next batch. A signal ends standard input early, so that what is then read, or missed, does
/// not count.
std::optional<Batch> next(BatchSource& source) {
  std::optional<Batch> batch;
  try {
    batch = source.next();
  } catch (const DataError&) {
    stop_if_interrupted();
    throw;
  }
  stop_if_interrupted();
  return batch;
}

/// Saves the model now and then, while the stream goes on. A disk that is full for a while does
/// not end it: that is said, and tried again.
class RegularSaves {
 public:
  RegularSaves(const LearnOptions& options, const Notes& notes, const std::string& command)
      : options_(options), notes_(notes), command_(command) {}

  void after_batch(const ContinualGP& model) {
    if (options_.save_to.empty() || !options_.save_every) return;
    if (seconds_since(last_) < *options_.save_every) return;
    try {
      save(model, options_.save_to, notes_);
    } catch (const ModelFileError& error) {
      fmt::print(stderr, "{}: not saved yet: {}\n", command_, error.what());
    }
    last_ = Clock::now();
  }

 private:
  const LearnOptions& options_;
  const Notes& notes_;
  const std::string& command_;
  Clock::time_point last_ = Clock::now();
};

void learn_all(ContinualGP& model, BatchSource& source, const std::optional<TestSet>& test,
               const LearnOptions& options, RegularSaves& saves, Outcome& outcome) {
  std::optional<Report> report;
  if (!options.report_to.empty()) report.emplace(options.report_to);
  Progress progress(source.total());
  while (const std::optional<Batch> batch = next(source)) {
    BatchReport what_happened = observe(model, *batch);
    if (test) outcome.score = score_of(model, *test);
    if (report) report->add(what_happened, outcome.score);
    progress.show(what_happened);
    ++outcome.batches;
    outcome.rows += what_happened.rows;
    outcome.last = std::move(what_happened);
    saves.after_batch(model);
  }
}

void print_json(const ContinualGP& model, const Outcome& outcome, Index bad_rows,
                const std::string& saved_to) {
  nlohmann::ordered_json json{{"rows", outcome.rows},
                              {"bad_rows", bad_rows},
                              {"batches", outcome.batches},
                              {"rows_seen", model.rows_seen()},
                              {"inducing", model.size()},
                              {"kernel", model.kernel().to_string()},
                              {"noise_variance", model.noise_variance()},
                              {"elbo", outcome.last.elbo},
                              {"seconds", outcome.seconds}};
  if (outcome.score) {
    json["rmse"] = outcome.score->rmse;
    json["nlpd"] = outcome.score->nlpd;
  }
  if (!saved_to.empty()) json["saved"] = saved_to;
  fmt::print("{}\n", json.dump(2));
}

void print_table(const ContinualGP& model, const Outcome& outcome, Index bad_rows,
                 const std::string& saved_to) {
  Pairs pairs{{"rows", fmt::format("{} in {} batches", outcome.rows, outcome.batches)}};
  if (bad_rows > 0) pairs.emplace_back("dropped rows", fmt::format("{}", bad_rows));
  if (model.rows_seen() > outcome.rows) {
    pairs.emplace_back("rows so far", fmt::format("{}", model.rows_seen()));
  }
  pairs.emplace_back("inducing points", fmt::format("{}", model.size()));
  pairs.emplace_back("kernel", model.kernel().to_string());
  pairs.emplace_back("noise variance", fmt::format("{:.6g}", model.noise_variance()));
  if (outcome.last.gap) {
    pairs.emplace_back("last gap", fmt::format("{:.3g} nats", *outcome.last.gap));
  }
  if (outcome.score) {
    pairs.emplace_back("test RMSE", fmt::format("{:.6g}", outcome.score->rmse));
    pairs.emplace_back("test NLPD", fmt::format("{:.6g}", outcome.score->nlpd));
  }
  pairs.emplace_back("seconds", fmt::format("{:.3g}", outcome.seconds));
  if (!saved_to.empty()) pairs.emplace_back("saved to", saved_to);
  print_pairs(pairs);
}

}  // namespace

void add_learn_options(CLI::App& command, LearnOptions& options) {
  command
      .add_option("--save-every", options.save_every,
                  "Also save while learning, this often (default: 60 from standard input, else "
                  "only at the end)")
      ->check(not_negative())
      ->type_name("SECONDS");
  command.add_option("--report", options.report_to, "Write one JSON object a batch, one line each")
      ->type_name("FILE");
  command.add_flag("--skip-bad-rows", options.skip_bad_rows,
                   "Drop and count rows with a missing or bad value instead of stopping");
  command.add_flag("--json", options.json, "Print a summary as JSON");
  command.add_option("--threads", options.threads, "Threads to use (default: all processors)")
      ->type_name("N");
}

void prepare_to_learn(LearnOptions& options, const std::string& data) {
  if (data == "-" && !options.save_every) options.save_every = kSaveStreamEvery;
  if (options.threads) set_threads(*options.threads);
  if (!options.save_to.empty()) check_can_save(options.save_to);
  watch_for_signals();
}

void learn(ContinualGP model, BatchSource& source, const std::optional<TestSet>& test,
           const Notes& notes, const LearnOptions& options, const std::string& command) {
  Outcome outcome;
  std::optional<Interrupted> interruption;
  const Clock::time_point start = Clock::now();
  RegularSaves saves(options, notes, command);
  try {
    learn_all(model, source, test, options, saves, outcome);
  } catch (const Interrupted& signal) {
    interruption = signal;
  }
  outcome.seconds = seconds_since(start);
  const bool saved = !options.save_to.empty() && outcome.batches > 0;
  if (saved) save(model, options.save_to, notes);
  if (source.bad_rows() > 0) {
    fmt::print(stderr, "{}: dropped {} bad row{}\n", command, source.bad_rows(),
               source.bad_rows() == 1 ? "" : "s");
  }
  if (interruption) {
    fmt::print(stderr, "{}: stopped by a signal after {} batch{}{}\n", command, outcome.batches,
               outcome.batches == 1 ? "" : "es", saved ? ", saved to " + options.save_to : "");
    throw Interrupted(*interruption);
  }
  if (options.json) {
    print_json(model, outcome, source.bad_rows(), options.save_to);
  } else {
    print_table(model, outcome, source.bad_rows(), options.save_to);
  }
}

}  // namespace ample::cli
