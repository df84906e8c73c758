#include "learn.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <mutex>
#include <regex>
#include <system_error>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ample/metrics.h"
#include "ample/threads.h"
#include "diagnostics.h"
#include "errors.h"
#include "interrupt.h"
#include "json_text.h"
#include "numbers.h"
#include "output.h"
#include "stopwatch.h"
#include "terminal.h"
#include "visible_text.h"

namespace ample::cli {
namespace {

constexpr double kSaveStreamEvery = 60.0;

/// What came of a run so far.
struct Outcome {
  Index batches = 0;
  Index rows = 0;
  double seconds = 0.0;
  BatchReport last;
  std::optional<Score> score;
};

std::string counted(Index count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

Score score_of(const ContinualGP& model, const TestSet& test) {
  Prediction p = model.predict(test.data.X, Target::observation);
  p.mean /= test.unit;
  p.variance /= test.unit * test.unit;
  const Vector y = test.data.y / test.unit;
  return {.rmse = rmse(y, p.mean), .nlpd = nlpd(y, p)};
}

/// Writes the report, if there is to be one. A disk that is full for a while does not end the
/// stream: that is said once, and what is lost is told at the end.
class ReportLog {
 public:
  ReportLog(const std::string& path, const std::string& command) : command_(command) {
    if (!path.empty()) report_.emplace(path);
  }

  void add(const BatchReport& batch, const std::optional<Score>& score) {
    if (!report_) return;
    try {
      report_->add(batch, score);
    } catch (const DataError& error) {
      if (lost_++ == 0) {
        problem_ = error.what();
        say(command_, problem_ + "; goes on without that line of the report");
      }
    }
  }

  /// Throws DataError if the report is not whole.
  void finish() const {
    if (lost_ > 0) {
      throw DataError(
          fmt::format("{}; the report lacks {}", problem_, counted(lost_, "line", "lines")));
    }
  }

 private:
  const std::string& command_;
  std::optional<Report> report_;
  Index lost_ = 0;
  std::string problem_;
};

/// The model between batches, and where it is saved. A batch is learnt by a copy, so that what is
/// here is always whole, and another thread may save it when a signal finds a batch that takes
/// long.
class Learner {
 public:
  Learner(ContinualGP model, const Notes& notes, const LearnOptions& options, ModelFile* file,
          const std::string& command)
      : model_(std::move(model)),
        notes_(notes),
        options_(options),
        file_(file),
        command_(command),
        report_(options.report_to, command),
        deadline_([this](int) { return end_early(); }) {}

  void learn_all(BatchSource& source, const std::optional<TestSet>& test) {
    Progress progress(source.total());
    while (const std::optional<TimedBatch> batch = source.next()) {
      ContinualGP next = model_;
      ObserveOptions call{.time = batch->time, .should_stop = stop_on_signal};
      if (options_.max_seconds) call.max_seconds = *options_.max_seconds;
      BatchReport what_happened = next.observe(batch->rows.X, batch->rows.y, call);
      std::optional<Score> score;
      if (test) score = score_of(next, *test);
      const std::lock_guard lock(mutex_);
      model_ = std::move(next);
      outcome_.score = score;
      report_.add(what_happened, score);
      progress.show(what_happened);
      warn(what_happened);
      ++outcome_.batches;
      outcome_.rows += what_happened.rows;
      outcome_.last = std::move(what_happened);
      save_now_and_then();
    }
  }

  /// Saves what was learnt, if anything was. Throws if it cannot.
  void save_at_end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    outcome_.seconds = watch_.seconds();
    save();
  }

  /// The same when the run ends for another reason, which is still to be told: throws nothing.
  void save_after_failure() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    if (interrupted() != 0 || outcome_.batches > 0) say_how_far();
  }

  [[nodiscard]] const ContinualGP& model() const { return model_; }
  [[nodiscard]] const Outcome& outcome() const { return outcome_; }
  [[nodiscard]] const ReportLog& report() const { return report_; }

 private:
  /// A warning without the numbers that differ from batch to batch. An input's number is no such.
  static std::string kind_of(const std::string& warning) {
    static const std::regex number(R"((input |\[)?-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?)");
    std::string kind;
    auto rest = warning.cbegin();
    for (std::sregex_iterator it(rest, warning.cend(), number), end; it != end; ++it) {
      kind.append(rest, (*it)[0].first);
      if ((*it)[1].matched) kind += it->str();
      rest = (*it)[0].second;
    }
    return kind.append(rest, warning.cend());
  }

  /// What a user should know, each kind of it once: a long stream would repeat itself.
  void warn(const BatchReport& batch) {
    for (const std::string& warning : batch.warnings) {
      if (!warned_.insert(kind_of(warning)).second) continue;
      say(command_, fmt::format("batch {}: {}", batch.batch, warning));
    }
  }

  bool save() {
    if (file_ == nullptr || outcome_.batches == 0) return false;
    file_->save(model_, notes_);
    return true;
  }

  void save_now_and_then() {
    if (!options_.save_every || since_save_.seconds() < *options_.save_every) return;
    try {
      save();
    } catch (const ModelFileError& error) {
      say(command_, fmt::format("not saved yet: {}", error.what()));
    }
    since_save_ = Stopwatch();
  }

  void say_how_far() {
    const std::string far = fmt::format(
        "stopped{} after {} of {}", interrupted() != 0 ? " by a signal" : "",
        counted(outcome_.batches, "batch", "batches"), counted(outcome_.rows, "row", "rows"));
    try {
      say(command_, save() ? fmt::format("{}, saved to {}", far, file_->path()) : far);
    } catch (const std::exception& error) {
      say(command_, fmt::format("{}, not saved: {}", far, error.what()));
    }
  }

  /// In another thread, while a batch takes long. False if the run has ended by itself.
  bool end_early() {
    const std::lock_guard lock(mutex_);
    if (ended_) return false;
    say_how_far();
    return true;
  }

  std::mutex mutex_;  // for all that follows, and the file
  ContinualGP model_;
  const Notes& notes_;
  const LearnOptions& options_;
  ModelFile* file_;
  const std::string& command_;
  ReportLog report_;
  std::set<std::string> warned_;  // beginnings of what was said
  Outcome outcome_;
  bool ended_ = false;
  Stopwatch watch_;
  Stopwatch since_save_;
  Deadline deadline_;  // last, so that its thread is the first to go
};

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
  if (!saved_to.empty()) json["saved"] = visible(saved_to);
  print("{}\n", to_text(json, 2));
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
      ->transform(real_number(0.0))
      ->type_name("SECONDS");
  command.add_flag("--wait", options.wait,
                   "Wait while another program updates the model instead of stopping");
  command
      .add_option(
          "--report", options.report_to,
          "Write one JSON object a batch, one line each; - for standard output, in place of "
          "the summary")
      ->type_name("FILE");
  command.add_flag("--skip-bad-rows", options.skip_bad_rows,
                   "Drop and count rows with a missing or bad value instead of stopping");
  command.add_flag("--json", options.json, "Print a summary as JSON");
  command.add_option("--threads", options.threads, "Threads to use (default: all processors)")
      ->transform(whole_number<int>(1))
      ->type_name("N");
  command
      .add_option("--max-seconds", options.max_seconds,
                  "Seconds after which the fit of a batch ends (default: no limit)")
      ->transform(real_number(0.0))
      ->type_name("SECONDS");
}

std::optional<Index> batch_size_of(const Snapshot& snapshot, const std::string& path) {
  const auto note = snapshot.notes.find(kBatchSizeNote);
  if (note == snapshot.notes.end()) return std::nullopt;
  const std::string& text = note->second;
  const char* end = text.data() + text.size();
  Index size = 0;
  const auto [stop, problem] = std::from_chars(text.data(), end, size);
  if (problem != std::errc() || stop != end || size < 1) {
    throw ModelFileError(
        fmt::format("{}: its note of the batch size is '{}', expected a number of rows", path,
                    visible(text, 60)));
  }
  return size;
}

std::unique_ptr<ModelFile> prepare_to_learn(LearnOptions& options,
                                            const std::vector<NamedFile>& inputs,
                                            const std::string& model) {
  const NamedFile save{"--save", options.save_to};
  const NamedFile report{"--report", options.report_to};
  check_distinct({{"MODEL", model}}, {report});  // --save may well be the model
  check_distinct(inputs, {save, report});
  check_report(options.report_to, options.json);
  if (options.save_to.empty()) {
    if (options.save_every) {
      throw UsageError("--save-every is given, expected --save with it: where?");
    }
    if (options.wait) throw UsageError("--wait is given, expected --save with it: for what?");
  }
  const bool from_stream =
      std::ranges::any_of(inputs, [](const NamedFile& input) { return input.path == "-"; });
  if (from_stream && !options.save_every) options.save_every = kSaveStreamEvery;
  if (options.threads) set_threads(*options.threads);
  watch_for_signals();
  if (options.save_to.empty()) return nullptr;
  return std::make_unique<ModelFile>(options.save_to, options.wait);
}

void learn(ContinualGP model, BatchSource& source, const std::optional<TestSet>& test,
           const Notes& notes, const LearnOptions& options, ModelFile* file,
           const std::string& command) {
  Learner learner(std::move(model), notes, options, file, command);
  const auto say_bad_rows = [&] {
    if (source.bad_rows() == 0) return;
    say(command, fmt::format("dropped {}", counted(source.bad_rows(), "bad row", "bad rows")));
  };
  try {
    learner.learn_all(source, test);
  } catch (...) {
    say_bad_rows();
    learner.save_after_failure();
    throw;
  }
  learner.save_at_end();
  say_bad_rows();
  const std::string saved_to = file == nullptr ? "" : file->path();
  if (!is_standard_output(options.report_to)) {
    (options.json ? print_json : print_table)(learner.model(), learner.outcome(), source.bad_rows(),
                                              saved_to);
  }
  learner.report().finish();
}

}  // namespace ample::cli
