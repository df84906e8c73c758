// The program: any options, killed at any moment, on a disk that is full.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "adversary.h"
#include "ample/snapshot.h"
#include "support/paths.h"

namespace ample::adversary {
namespace {

namespace fs = std::filesystem;

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string some_rows(Dice& dice, int count) {
  std::string text = "x1,x2,y\n";
  for (int i = 0; i < count; ++i) {
    const double a = static_cast<double>(dice.below(6000)) / 1000.0 - 3.0;
    const double b = static_cast<double>(dice.below(6000)) / 1000.0 - 3.0;
    text += fmt::format("{},{},{}\n", a, b, std::sin(a) * std::cos(b) + 0.01 * a);
  }
  return text;
}

bool is_harmless(const std::string& text) {
  return std::ranges::none_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n') || byte == 0x7F;
  });
}

[[noreturn]] void become(const fs::path& folder, const std::vector<std::string>& arguments,
                         int input, const Conditions& conditions) {
  ::dup2(input, STDIN_FILENO);
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  ::dup2(::open((folder / "stdout").c_str(), flags, 0600), STDOUT_FILENO);
  ::dup2(::open((folder / "stderr").c_str(), flags, 0600), STDERR_FILENO);
  if (conditions.file_size_limit > 0) {
    const auto limit = static_cast<rlim_t>(conditions.file_size_limit);
    const rlimit both = {limit, limit};
    ::setrlimit(RLIMIT_FSIZE, &both);
    std::signal(SIGXFSZ, SIG_IGN);
  }
  std::vector<std::string> words{"ample"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  if (::chdir(folder.c_str()) == 0) ::execv(paths::program(), argv.data());
  ::_exit(127);
}

}  // namespace

Ended run_ample(const fs::path& folder, const std::vector<std::string>& arguments,
                const Conditions& conditions) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) throw Broken{"no pipe"};
  const pid_t pid = ::fork();
  if (pid == 0) become(folder, arguments, pipe[0], conditions);
  ::close(pipe[0]);
  // Who kills also keeps the input open: the program is to be in the middle of something.
  std::string_view rest = conditions.input;
  ::fcntl(pipe[1], F_SETFL, conditions.kill_after_microseconds > 0 ? O_NONBLOCK : 0);
  while (!rest.empty()) {
    const ssize_t count = ::write(pipe[1], rest.data(), rest.size());
    if (count < 0) break;
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  if (conditions.kill_after_microseconds > 0) {
    ::usleep(static_cast<useconds_t>(conditions.kill_after_microseconds));
    ::kill(pid, SIGKILL);
  }
  ::close(pipe[1]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), bytes_of(folder / "stdout"),
          bytes_of(folder / "stderr")};
}

void attack_options(std::uint64_t seed, const fs::path& folder) {
  Dice dice(seed);
  std::ofstream(folder / "data.csv") << some_rows(dice, 60);
  if (!fs::exists(folder / "m.ample")) {
    run_ample(folder, {"fit", "data.csv", "--save", "m.ample"});
  }
  static const std::vector<std::string> kCommands{"fit", "update", "predict", "inspect", "merge"};
  static const std::vector<std::string> kOptions{"--batch-size",  "--batches",
                                                 "--order",       "--standardize",
                                                 "--kernel",      "--noise-variance",
                                                 "--selection",   "--delta",
                                                 "--eta",         "--rho",
                                                 "--size",        "--max-inducing",
                                                 "--refit-every", "--fixed-hyperparameters",
                                                 "--test",        "--save",
                                                 "--save-every",  "--report",
                                                 "--json",        "--seed",
                                                 "--threads",     "--level",
                                                 "--samples",     "--output",
                                                 "--observation", "--skip-bad-rows",
                                                 "--wait",        "--target",
                                                 "--inputs",      "--like",
                                                 "--nats",        "--fit"};
  static const std::vector<std::string> kValues{"0",
                                                "1",
                                                "2",
                                                "10",
                                                "-1",
                                                "010",
                                                "1e3",
                                                "1e999",
                                                "nan",
                                                "inf",
                                                "",
                                                "x",
                                                "data.csv",
                                                "m.ample",
                                                "new.ample",
                                                "new.csv",
                                                ".",
                                                "/dev/full",
                                                "/dev/null",
                                                "no/such",
                                                "vips",
                                                "cv",
                                                "oips",
                                                "fixed-greedy",
                                                "fixed-gradient",
                                                "none",
                                                "all",
                                                "first-batch",
                                                "shuffle",
                                                "file",
                                                "x1",
                                                "y",
                                                "se",
                                                "(1e300*matern32)^2",
                                                "\x1b[31m",
                                                "\xFF",
                                                "99999999999999999999",
                                                "0.5"};
  const std::string model = bytes_of(folder / "m.ample");
  const std::string data = bytes_of(folder / "data.csv");
  const std::string& command = dice.one_of(kCommands);
  std::vector<std::string> arguments{command};
  if (command != "fit") arguments.emplace_back("m.ample");
  if (command == "merge") arguments.insert(arguments.end(), {"--save", "merged.ample"});
  if (command != "inspect" && command != "merge") arguments.emplace_back("data.csv");
  for (std::size_t i = dice.below(4); i > 0; --i) {
    arguments.push_back(dice.one_of(kOptions));
    if (!dice.one_in(5)) arguments.push_back(dice.one_of(kValues));
  }
  const Ended ended = run_ample(folder, arguments);
  const std::string line = fmt::format("{}", fmt::join(arguments, " "));
  static const std::vector<int> kCodes{0, 2, 3, 4, 5};
  if (std::ranges::find(kCodes, ended.code) == kCodes.end()) {
    throw Broken{fmt::format("exit code {} of: {}", ended.code, line)};
  }
  if (!is_harmless(ended.out) || !is_harmless(ended.err)) throw Broken{"raw output of: " + line};
  if (ended.code != 0 && ended.err.empty()) throw Broken{"no word on why: " + line};
  if (bytes_of(folder / "data.csv") != data) throw Broken{"the data were overwritten: " + line};
  if (command == "fit" || command == "update" || command == "merge") {
    fs::remove(folder / "m.ample");
  } else if (bytes_of(folder / "m.ample") != model) {
    throw Broken{"the model was overwritten: " + line};
  }
}

void attack_by_kill(std::uint64_t seed, const fs::path& folder) {
  Dice dice(seed);
  const std::string model = (folder / "k.ample").string();
  const bool update = fs::exists(model);
  std::vector<std::string> arguments{update ? "update" : "fit"};
  if (update) arguments.emplace_back("k.ample");
  arguments.insert(arguments.end(),
                   {"-", "--batch-size", "10", "--save", "k.ample", "--save-every", "0"});
  const Index before = update ? load(model).rows_seen() : 0;
  run_ample(folder, arguments,
            {.input = some_rows(dice, 400),
             .kill_after_microseconds = 1 + static_cast<int>(dice.below(60'000))});
  if (fs::exists(model)) {
    const ContinualGP gp = load(model);  // whole, whatever happened
    if (gp.rows_seen() < before) throw Broken{"rows were lost"};
    if (gp.rows_seen() > 2'000) fs::remove(model);
  }
  // The next run sweeps up.
  run_ample(folder, {"fit", "-", "--save", "k2.ample"}, {.input = some_rows(dice, 20)});
  std::size_t leftovers = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    leftovers += entry.path().extension() == ".tmp" ? 1 : 0;
  }
  if (leftovers > 1) throw Broken{"leftovers of killed runs are not removed"};
}

void attack_by_full_disk(std::uint64_t seed, const fs::path& folder) {
  Dice dice(seed);
  const std::string model = (folder / "d.ample").string();
  if (!fs::exists(model)) {
    run_ample(folder, {"fit", "-", "--save", "d.ample"}, {.input = some_rows(dice, 60)});
  }
  const std::string before = bytes_of(model);
  const Ended ended =
      run_ample(folder, {"update", "d.ample", "-"},
                {.input = some_rows(dice, 60),
                 .file_size_limit = static_cast<long>(1 + dice.below(2 * before.size()))});
  if (ended.code != 0 && ended.code != 3 && ended.code != 5) {
    throw Broken{fmt::format("exit code {} on a full disk", ended.code)};
  }
  if (ended.code == 5 && bytes_of(model) != before) throw Broken{"the old model is gone"};
  static_cast<void>(load(model));
  if (bytes_of(model).size() > 100'000) fs::remove(model);
}

}  // namespace ample::adversary
