#include "runner.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <map>
#include <optional>
#include <stdexcept>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "ample/threads.h"
#include "carry_out.h"
#include "diagnostics.h"
#include "errors.h"
#include "interrupt.h"
#include "results.h"
#include "time_left.h"
#include "visible_text.h"

namespace ample::experiments {
namespace {

/// Held while a runner works, so that no run is done twice. The system lets go of it when the
/// process ends, however it does.
class Lock {
 public:
  explicit Lock(const std::string& results) : path_(results + ".lock") {
    file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file_ < 0) {
      throw cli::DataError(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
    }
    if (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      ::close(file_);
      throw cli::DataError(fmt::format("{}: another `ample-reproduce` is writing to it", results));
    }
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  Lock(Lock&&) = delete;
  Lock& operator=(Lock&&) = delete;
  // The file stays: if it were removed, one runner could hold the old and another a new one.
  ~Lock() { ::close(file_); }

 private:
  std::string path_;
  int file_;
};

/// A child process with one run, that dies with its parent.
pid_t start_worker(const Run& run, const RunnerOptions& options, int threads) {
  std::vector<std::string> words{"ample-reproduce",
                                 "--worker",
                                 run.key(),
                                 "--results",
                                 options.results,
                                 "--threads",
                                 fmt::format("{}", threads),
                                 "--data-dir",
                                 options.data_folder.string(),
                                 "--save-every",
                                 fmt::format("{}", options.seconds_between_saves)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) {
    throw std::runtime_error(fmt::format("cannot start a process: {}", std::strerror(errno)));
  }
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);  // it died before we asked
    ::execv("/proc/self/exe", arguments.data());
    ::_exit(127);
  }
  return child;
}

std::string describe(const Run& run, const Results& results) {
  std::string text = fmt::format("{} {} {}", run.experiment, run.data, run.method);
  if (run.method != "exact") text += fmt::format(" {}", run.parameter);
  text += fmt::format(" fold {}", run.fold);
  switch (results.state(run)) {
    case RunState::done: {
      const BatchResult last = results.last_batch(run).value_or(BatchResult{});
      return text + fmt::format(": M {}, RMSE {:.4g}, NLPD {:.4g}, {:.1f} s", last.inducing,
                                last.rmse, last.nlpd, results.seconds(run).value_or(0.0));
    }
    case RunState::failed:
      return text + ": FAILED: " + results.error(run);
    default:
      return text + ": stopped";
  }
}

/// The children of a runner, which are ended with it.
class Workers {
 public:
  Workers() = default;
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  Workers(Workers&&) = delete;
  Workers& operator=(Workers&&) = delete;
  ~Workers() {
    for (const auto& [pid, run] : running_) ::kill(pid, SIGTERM);
    for (const auto& [pid, run] : running_) ::waitpid(pid, nullptr, 0);
  }

  [[nodiscard]] std::size_t size() const { return running_.size(); }
  void start(const Run& run, const RunnerOptions& options, int threads) {
    running_.emplace(start_worker(run, options, threads), run);
  }
  /// Waits for one to end; throws Interrupted if a signal comes first.
  std::pair<Run, int> wait() {
    int status = 0;
    pid_t pid = -1;
    do {
      cli::stop_if_interrupted();
      pid = ::waitpid(-1, &status, 0);
    } while (pid < 0 && errno == EINTR);
    const auto ended = running_.find(pid);
    if (ended == running_.end()) throw std::runtime_error("lost a process");
    Run run = std::move(ended->second);
    running_.erase(ended);
    return {std::move(run), status};
  }

 private:
  std::map<pid_t, Run> running_;
};

}  // namespace

Failures run_all(const std::vector<Run>& runs, const RunnerOptions& options) {
  const Lock lock(options.results);
  Results results(options.results);
  if (options.again) {
    for (const Run& run : runs) results.forget(run);
  }
  std::vector<Run> waiting;
  for (const Run& run : runs) {
    if (results.state(run) != RunState::done) waiting.push_back(run);
  }
  TimeLeft time_left(runs, results);
  const std::size_t total = runs.size();
  std::size_t ended = total - waiting.size();
  if (ended > 0)
    cli::say("ample-reproduce", fmt::format("{} of {} runs were done before", ended, total));

  cli::watch_for_signals();
  const int cores = threads();
  Workers workers;
  Failures failures;
  auto next = waiting.begin();
  while (next != waiting.end() || workers.size() > 0) {
    // Where seconds are the result, a run has the machine for itself.
    const auto may_start = [&] {
      if (next == waiting.end()) return false;
      return is_timing(next->experiment) ? workers.size() == 0
                                         : workers.size() < static_cast<std::size_t>(options.jobs);
    };
    while (may_start()) {
      const bool alone = is_timing(next->experiment);
      workers.start(*next, options, alone ? cores : std::max(1, cores / options.jobs));
      ++next;
      if (alone) break;
    }
    const auto [run, status] = workers.wait();
    if (WIFSIGNALED(status)) {
      cli::say(run.key(), fmt::format("its process was ended by signal {}", WTERMSIG(status)));
    }
    const bool done = results.state(run) == RunState::done;
    if (!done) {
      ++failures.runs;
      if (results.state(run) == RunState::failed) ++failures.numerical;
    }
    ++ended;
    time_left.ended(run, results);
    cli::write_to_stderr(fmt::format("[{}/{}] {}; {} left\n", ended, total,
                                     visible(describe(run, results)),
                                     time_left.text(options.jobs)));
  }
  return failures;
}

void run_as_worker(const std::string& key, const RunnerOptions& options, int threads) {
  const std::optional<Run> run = find_run(key);
  if (!run) throw cli::UsageError(fmt::format("no run '{}' in the plan", key));
  set_threads(threads);
  cli::watch_for_signals();
  Results results(options.results);
  carry_out(*run, options.data_folder, options.seconds_between_saves, results);
}

}  // namespace ample::experiments
