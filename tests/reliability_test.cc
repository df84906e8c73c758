// What docs/reliability.md promises of the program: nothing is lost, nothing is overwritten, and
// the exit code and the message say what happened.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "ample/snapshot.h"
#include "interrupt.h"
#include "support/paths.h"
#include "support/program.h"
#include "support/random.h"

namespace ample {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::Arguments;
using testing::lines_of;
using testing::Program;
using testing::Result;

class Reliability : public testing::ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    testing::Random random(1);
    for (int i = 0; i < 300; ++i) {
      const double x = random.uniform(-3.0, 3.0);
      rows_.push_back(fmt::format("{},{}", x, std::sin(x) + 0.1 * random.normal()));
    }
    store("data.csv", table(0, 300));
  }

  [[nodiscard]] std::string table(std::size_t first, std::size_t count) const {
    return "x,y\n" + rows(first, count);
  }
  [[nodiscard]] std::string rows(std::size_t first, std::size_t count) const {
    std::string text;
    for (std::size_t i = first; i < first + count; ++i) text += rows_[i] + '\n';
    return text;
  }

  void fit(const std::string& model = "m.ample") const {
    succeed({"fit", "data.csv", "--batch-size", "100", "--save", model});
  }
  [[nodiscard]] Index rows_seen(const std::string& model = "m.ample") const {
    return load((folder_ / model).string()).rows_seen();
  }

  /// By a shell, in the folder, with `ample` in $AMPLE.
  [[nodiscard]] Result shell(const std::string& command) const {
    ::setenv("AMPLE", paths::program(), 1);
    Program program(folder_, {"-c", command}, -1, "/bin/sh");
    return program.wait();
  }

  template <class Condition>
  static void wait_until(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (!condition()) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  void wait_for_lines(std::size_t count) const {
    wait_until([&] { return lines_of(stored("r.jsonl")).size() >= count; });
  }

  std::vector<std::string> rows_;
};

// ---- one update at a time

TEST_F(Reliability, TwoUpdatesAtOnceAreRefusedOrWait) {
  fit();
  Program first(folder_, {"update", "m.ample", "-", "--batch-size", "50", "--report", "r.jsonl",
                          "--save-every", "0"});
  first.write(table(0, 60));
  wait_for_lines(1);  // it has saved too, so that the file is another one by now
  wait_until([&] { return rows_seen() == 350; });
  fail({"update", "m.ample", "data.csv"}, 5,
       "m.ample: another program is updating it; --wait waits until it has finished");
  fail({"fit", "data.csv", "--save", "m.ample"}, 5,
       "m.ample: another program is updating it; --wait waits until it has finished");
  EXPECT_EQ(run({"predict", "m.ample", "data.csv"}).code, 0);  // readers need not wait
  succeed({"update", "m.ample", "data.csv", "--save", "other.ample"});

  fs::create_directory(folder_ / "waiting");
  Program second(folder_ / "waiting", {"update", "../m.ample", "../data.csv", "--wait"});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  first.close_input();
  EXPECT_EQ(first.wait().code, 0);
  EXPECT_EQ(second.wait().code, 0);
  EXPECT_EQ(rows_seen(), 300 + 60 + 300);
}

TEST_F(Reliability, WaitingCanBeInterrupted) {
  fit();
  Program first(folder_, {"update", "m.ample", "-", "--batch-size", "10", "--report", "r.jsonl"});
  first.write(table(0, 15));
  wait_for_lines(1);
  fs::create_directory(folder_ / "waiting");
  Program second(folder_ / "waiting", {"update", "../m.ample", "../data.csv", "--wait"});
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  second.signal(SIGTERM);
  const int code = second.wait().code;
  EXPECT_TRUE(code == 128 + SIGTERM || code == -SIGTERM) << code;
}

TEST_F(Reliability, AModelThatOthersChangedIsNotOverwritten) {
  fit();
  fit("theirs.ample");
  Program program(folder_, {"update", "m.ample", "-", "--batch-size", "50", "--report", "r.jsonl"});
  program.write(table(0, 60));
  wait_for_lines(1);
  fs::rename(folder_ / "theirs.ample", folder_ / "m.ample");
  const std::string theirs = stored("m.ample");
  program.close_input();
  const Result result = program.wait();
  EXPECT_EQ(result.code, 5);
  EXPECT_EQ(
      result.err,
      "ample update: m.ample: changed by another program meanwhile, expected it as it was; not "
      "overwritten\n");
  EXPECT_EQ(stored("m.ample"), theirs);
}

// ---- messages that cannot be written

TEST_F(Reliability, AStandardErrorThatCannotBeWrittenEndsNothing) {
  store("gaps.csv", table(0, 100) + "1,\n" + rows(100, 100));
  const std::string fit = "\"$AMPLE\" fit gaps.csv --skip-bad-rows --batch-size 50 --save s.ample ";
  for (const std::string error : {"2>/dev/full", "2>&-", "2>/dev/null"}) {
    fs::remove(folder_ / "s.ample");
    EXPECT_EQ(shell(fit + error).code, 0) << error;
    EXPECT_EQ(rows_seen("s.ample"), 200) << error;
    EXPECT_EQ(shell("\"$AMPLE\" fit missing.csv " + error).code, 3) << error;
  }
  // A file that is opened next does not take the place of the one closed.
  EXPECT_EQ(shell(fit + "--report r.jsonl 2>&- >&- <&-").code, 3);  // there is no standard output
  EXPECT_EQ(lines_of(stored("r.jsonl")).size(), 4U);
  EXPECT_TRUE(json::accept(lines_of(stored("r.jsonl"))[0]));
}

TEST_F(Reliability, OutputThatDoesNotArriveIsNotSuccess) {
  fit();
  for (const std::string command :
       {"--help", "--version", "fit --help", "inspect m.ample", "inspect m.ample --json",
        "predict m.ample data.csv", "fit data.csv"}) {
    EXPECT_EQ(shell("\"$AMPLE\" " + command + " >/dev/full 2>/dev/null").code, 3) << command;
  }
  // A reader that went away is no error of ours, and needs no message.
  const Result closed =
      shell("(\"$AMPLE\" predict m.ample data.csv --samples 50; echo $? >code) | head -n 1");
  EXPECT_EQ(stored("code"), "141\n");
  EXPECT_EQ(closed.err, "");
}

TEST_F(Reliability, AReportThatCannotBeWrittenEndsNoStream) {
  const Result result =
      run({"fit", "data.csv", "--batch-size", "100", "--save", "s.ample", "--report", "/dev/full"});
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(lines_of(result.err),
            (std::vector<std::string>{
                "ample fit: /dev/full: cannot write: No space left on device; goes on without that "
                "line of the report",
                "ample fit: /dev/full: cannot write: No space left on device; the report lacks 3 "
                "lines"}));
  EXPECT_EQ(rows_seen("s.ample"), 300);
}

// ---- whatever ends a stream, what was learnt is saved

TEST_F(Reliability, ABadLineKeepsWhatWasLearntBefore) {
  const Result result =
      run({"fit", "-", "--batch-size", "50", "--save", "s.ample"}, table(0, 120) + "1,x\n");
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(
      lines_of(result.err),
      (std::vector<std::string>{
          "ample fit: stopped after 2 batches of 100 rows, saved to s.ample",
          "ample fit: standard input:122: column 'y' holds 'x', expected a finite number (use "
          "--skip-bad-rows to drop such rows)"}));
  EXPECT_EQ(result.out, "");
  store("part.csv", table(0, 100));
  succeed({"fit", "part.csv", "--batch-size", "50", "--save", "part.ample"});
  EXPECT_EQ(stored("s.ample"), stored("part.ample"));
}

TEST_F(Reliability, ANumericalFailureKeepsWhatWasLearntBefore) {
  const Result result =
      run({"fit", "-", "--batch-size", "100", "--standardize", "none", "--save", "s.ample"},
          table(0, 100) + "1,1e200\n2,-1e200\n3,2e200\n");
  EXPECT_EQ(result.code, 4) << result.err;
  EXPECT_EQ(rows_seen("s.ample"), 100);
  EXPECT_TRUE(
      result.err.starts_with("ample fit: stopped after 1 batch of 100 rows, saved to s.ample\n"));
}

TEST_F(Reliability, TargetsBeyondTheirSquaresAreANumericalError) {
  for (const char* standardize : {"first-batch", "all"}) {
    const Result result = run({"fit", "-", "--standardize", standardize, "--save", "s.ample"},
                              table(0, 99) + "1,1e308\n");
    EXPECT_EQ(result.code, 4) << result.err;
    EXPECT_EQ(lines_of(result.err).size(), 1U) << result.err;
    EXPECT_NE(result.err.find("rescale the data"), std::string::npos) << result.err;
    EXPECT_FALSE(fs::exists(folder_ / "s.ample"));
  }
}

// A column of 1.7e9 with a spread of 5e-4 tells the target, and an input of 1e160 hides nothing.
TEST_F(Reliability, ColumnsAreStandardisedByTheirTrueSpread) {
  testing::Random random(3);
  std::string text;
  for (int i = 0; i < 200; ++i) {
    text += fmt::format("{:.17g},{},{}\n", 1.7e9 + 5e-4 * random.uniform(0.0, 1.0),
                        i == 100 ? 1e160 : random.normal(), random.normal());
  }
  store("t.csv", text);
  for (const char* standardize : {"first-batch", "all"}) {
    (void)run({"fit", "t.csv", "--standardize", standardize, "--save", "s.ample"});
    const Scaling scaling = load((folder_ / "s.ample").string()).predictor()->scaling();
    EXPECT_NEAR(scaling.input_scale[0], 5e-4 / std::sqrt(12.0), 2e-5);
    EXPECT_NEAR(scaling.input_scale[1] / 1e160, 1.0 / std::sqrt(200.0), 1e-3);
  }
}

TEST_F(Reliability, InputsNearOverflowAreANumericalErrorAndNothingIsLost) {
  const Result result =
      run({"fit", "-", "--batch-size", "50", "--save", "s.ample"}, table(0, 150) + "1e308,1\n");
  EXPECT_EQ(result.code, 4) << result.err;
  EXPECT_EQ(rows_seen("s.ample"), 150);
  succeed({"inspect", "s.ample"});
}

TEST_F(Reliability, ColumnsOfOneNameAreFoundByPlace) {
  store("twice.csv", "x,x,y\n1,2,3\n2,3,4\n3,5,4\n");
  succeed({"fit", "twice.csv", "--save", "t.ample"});
  succeed({"predict", "t.ample", "twice.csv"});
  succeed({"update", "t.ample", "twice.csv"});
}

TEST_F(Reliability, NotesThatNoCommandCouldUseAreRefusedByInspect) {
  fit();
  const Snapshot sound = load_snapshot((folder_ / "m.ample").string());
  const std::vector<std::pair<std::string, std::string>> bad{
      {"batch_size", "0"},
      {"batch_size", "5x"},
      {"columns", "{}"},
      {"columns", R"({"count":2,"inputs":[1],"names":[],"target":1})"},
      {"columns", R"({"count":2,"inputs":[0.5],"names":[],"target":1})"},
      {"columns", R"({"count":2,"inputs":[0],"names":["y","y"],"target":1})"},
      {"columns", R"({"count":1,"inputs":[0],"names":[],"target":1})"}};
  for (const auto& [key, text] : bad) {
    Notes notes = sound.notes;
    notes[key] = text;
    save(sound.model, (folder_ / "n.ample").string(), notes);
    const Result result = run({"inspect", "n.ample"});
    EXPECT_EQ(result.code, 5) << key << ": " << text;
    EXPECT_EQ(lines_of(result.err).size(), 1U) << result.err;
  }
}

TEST_F(Reliability, AFailureToSaveIsSaidBesideTheFailureBefore) {
  Program program(folder_, {"fit", "-", "--batch-size", "50", "--save", "gone/s.ample", "--report",
                            "r.jsonl", "--save-every", "1e9"});
  fs::create_directory(folder_ / "gone");
  Program other(folder_, {"fit", "-", "--batch-size", "50", "--save", "gone/s.ample", "--report",
                          "r.jsonl", "--save-every", "1e9"});
  program.close_input();
  program.wait();
  other.write(table(0, 60));
  wait_for_lines(1);
  fs::remove(folder_ / "gone");
  other.write("1,x\n");
  other.close_input();
  const Result result = other.wait();
  EXPECT_EQ(result.code, 3);
  EXPECT_EQ(
      lines_of(result.err)[0],
      "ample fit: stopped after 1 batch of 50 rows, not saved: gone/s.ample: cannot write: No "
      "such file or directory");
}

// ---- the end comes soon

TEST(Deadlines, EndWorkThatDoesNotListen) {
  const std::string name = (fs::temp_directory_path() / "ample-deadline").string();
  const std::string path = fmt::format("{}-{}", name, ::getpid());
  const pid_t child = ::fork();
  if (child == 0) {
    cli::watch_for_signals();
    const cli::Deadline deadline([&](int signal) {
      std::ofstream(path) << "last words " << signal;
      return true;
    });
    ::raise(SIGTERM);
    for (;;) ::pause();  // work that never asks
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGTERM);
  EXPECT_EQ(testing::bytes_of(path), fmt::format("last words {}", SIGTERM));
  fs::remove(path);
}

TEST(Deadlines, LetWorkThatListensEndByItself) {
  const pid_t child = ::fork();
  if (child == 0) {
    cli::watch_for_signals();
    int code = 1;
    {
      const cli::Deadline deadline([&](int) { return true; });
      ::raise(SIGTERM);
      if (cli::interrupted() == SIGTERM) code = 0;
    }
    ::_exit(code);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// Left alone, the search would end with a line in the report.
TEST_F(Reliability, ASignalEndsTheSearchForAKernel) {
  testing::Random random(2);
  constexpr Index kColumns = 100;
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    const Vector x = random.normal(kColumns);
    for (Index d = 0; d < kColumns; ++d) text += fmt::format("{:.6f},", x[d]);
    text += fmt::format("{:.6f}\n", std::sin(x[0]) + std::cos(2.0 * x[1]) + 0.1 * random.normal());
  }
  store("wide.csv", text);
  for (const int wait : {0, 100, 300}) {
    fs::remove(folder_ / "r.jsonl");
    Program program(folder_, {"fit", "wide.csv", "--batch-size", "1000", "--threads", "1",
                              "--report", "r.jsonl", "--save", "s.ample"});
    wait_until([&] { return fs::exists(folder_ / "r.jsonl"); });
    std::this_thread::sleep_for(std::chrono::milliseconds(wait));
    program.signal(SIGTERM);
    const Result result = program.wait();
    EXPECT_EQ(result.code, 128 + SIGTERM);
    EXPECT_EQ(result.err, "ample fit: stopped by a signal after 0 batches of 0 rows\n");
    EXPECT_EQ(stored("r.jsonl"), "");
  }
}

TEST_F(Reliability, APipeWithoutAWriterCanBeInterrupted) {
  fit();
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  for (const Arguments& arguments : {Arguments{"fit", "pipe", "--save", "s.ample"},
                                     {"update", "m.ample", "pipe"},
                                     {"predict", "m.ample", "pipe"}}) {
    Program program(folder_, arguments);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    program.signal(SIGINT);
    const int code = program.wait().code;
    EXPECT_TRUE(code == 128 + SIGINT || code == -SIGINT) << arguments[0] << ' ' << code;
  }
  // And one that opens, writes, and goes is read to its end.
  Program program(folder_, {"fit", "pipe", "--save", "s.ample"});
  std::ofstream(folder_ / "pipe") << table(0, 100);
  EXPECT_EQ(program.wait().code, 0);
  EXPECT_EQ(rows_seen("s.ample"), 100);
}

// ---- no output is an input

TEST_F(Reliability, OutputsDoNotOverwriteInputs) {
  fit();
  store("test.csv", table(0, 10));
  fs::create_symlink("data.csv", folder_ / "link.csv");
  fs::create_hard_link(folder_ / "data.csv", folder_ / "hard.csv");
  const std::string data = stored("data.csv");
  const std::string model = stored("m.ample");
  for (const std::string same : {"data.csv", "./data.csv", "link.csv", "hard.csv"}) {
    fail({"fit", "data.csv", "--save", same}, 2,
         fmt::format("--save is '{}', the same file as DATA, expected another", same));
    fail({"fit", "data.csv", "--report", same}, 2,
         fmt::format("--report is '{}', the same file as DATA, expected another", same));
    fail({"update", "m.ample", "data.csv", "--save", same}, 2,
         fmt::format("--save is '{}', the same file as DATA, expected another", same));
    fail({"predict", "m.ample", "data.csv", "--output", same}, 2,
         fmt::format("--output is '{}', the same file as DATA, expected another", same));
  }
  fail({"fit", "data.csv", "--test", "test.csv", "--save", "test.csv"}, 2,
       "--save is 'test.csv', the same file as --test, expected another");
  fail({"predict", "m.ample", "data.csv", "--output", "m.ample"}, 2,
       "--output is 'm.ample', the same file as MODEL, expected another");
  fail({"update", "m.ample", "data.csv", "--report", "m.ample"}, 2,
       "--report is 'm.ample', the same file as MODEL, expected another");
  fail({"fit", "data.csv", "--save", "new", "--report", "./new"}, 2,
       "--report is './new', the same file as --save, expected another");
  EXPECT_EQ(shell("\"$AMPLE\" fit - --save data.csv <data.csv").code, 2);
  EXPECT_EQ(stored("data.csv"), data);
  EXPECT_EQ(stored("m.ample"), model);
  EXPECT_FALSE(fs::exists(folder_ / "new"));
  succeed({"update", "m.ample", "data.csv", "--save", "./m.ample"});  // the model itself may be
}

TEST_F(Reliability, EmptyValuesAreUsageErrors) {
  fit();
  const std::string model = stored("m.ample");
  const std::vector<Arguments> cases = {
      {"fit", "data.csv", "--save", ""},
      {"update", "m.ample", "data.csv", "--save", ""},
      {"fit", "data.csv", "--report", ""},
      {"predict", "m.ample", "data.csv", "--output", ""},
      {"fit", "data.csv", "--kernel", ""},
      {"fit", "data.csv", "--target", ""},
      {"fit", "data.csv", "--test", ""},
      {"fit", "data.csv", "--seed", ""},
      {"fit", ""},
      {"update", "", "data.csv"},
      {"update", "m.ample", ""},
      {"fit", "data.csv", "--save="},
      {"demo", "--output", ""},
  };
  for (const Arguments& arguments : cases) {
    const Result result = run(arguments);
    EXPECT_EQ(result.code, 2) << fmt::format("{}", fmt::join(arguments, " ")) << result.err;
    EXPECT_EQ(lines_of(result.err).size(), 1U) << result.err;
  }
  EXPECT_EQ(stored("m.ample"), model);
}

// ---- numbers as they are written

TEST_F(Reliability, NumbersAreReadAsWritten) {
  const auto sizes = [&](const std::string& size) {
    return json::parse(succeed({"fit", "data.csv", "--batch-size", size, "--json",
                                "--fixed-hyperparameters"}))
        .at("batches");
  };
  EXPECT_EQ(sizes("0100"), 3);
  EXPECT_EQ(sizes("+100"), 3);
  fail({"fit", "data.csv", "--batch-size", "0x64"}, 2,
       "--batch-size: is '0x64', expected a whole number; see ample fit --help");
  fail({"fit", "data.csv", "--batch-size", "1e2"}, 2,
       "--batch-size: is '1e2', expected a whole number; see ample fit --help");
  fail({"fit", "data.csv", "--batch-size", "99999999999999999999"}, 2,
       "--batch-size: is '99999999999999999999', expected a whole number from "
       "-9223372036854775808 to 9223372036854775807; see ample fit --help");
  fail({"fit", "data.csv", "--threads", "4294967297"}, 2,
       "--threads: is '4294967297', expected a whole number from 1 to 2147483647; see ample fit "
       "--help");
  for (const std::string text : {"1e999", "inf", "nan", "0x1p4", "1,5", "1 "}) {
    EXPECT_EQ(run({"fit", "data.csv", "--noise-variance", text}).code, 2) << text;
  }
  for (const Arguments& negative : {Arguments{"demo", "--seed", "-1"},
                                    {"fit", "data.csv", "--seed", "-1"},
                                    {"fit", "data.csv", "--save-every", "-1"},
                                    {"fit", "data.csv", "--threads", "-1"}}) {
    const Result result = run(negative);
    EXPECT_EQ(result.code, 2) << result.err;
    EXPECT_NE(result.err.find("is '-1', expected a "), std::string::npos) << result.err;
  }
}

TEST_F(Reliability, SamplesBeyondTheMemoryAreRefused) {
  fit();
  const Result result = run({"predict", "m.ample", "data.csv", "--samples", "99999999999999"});
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(
      result.err.starts_with("ample predict: --samples is 99999999999999, which takes "
                             "3.2e+09 GB of memory, expected at most "))
      << result.err;
}

// ---- nothing raw to a terminal

TEST_F(Reliability, ControlCharactersAreEscapedEverywhere) {
  const std::string evil =
      "\x1b]0;owned\x07 \xC2\x9B"
      "31m";
  store("evil.csv", evil + ",y\n" + rows(0, 100));
  const auto harmless = [](const std::string& text) {
    return std::ranges::none_of(text,
                                [](char c) {
                                  return (static_cast<unsigned char>(c) < 0x20 && c != '\n') ||
                                         c == 0x7F;
                                }) &&
           text.find("\xC2\x9B") == std::string::npos;
  };
  for (const Arguments& arguments : {Arguments{"fit", "evil.csv", "--save", "e.ample"},
                                     {"inspect", "e.ample"},
                                     {"inspect", "e.ample", "--json"},
                                     {"fit", "evil.csv", "--target", "z"},
                                     {"fit", evil},
                                     {"fit", "evil.csv", "--kernel", evil},
                                     {"fit", "evil.csv", "--selection", evil},
                                     {"fit", "evil.csv", "--batch-size", evil},
                                     {"fit", "evil.csv", evil},
                                     {evil},
                                     {"predict", "e.ample", "data.csv"},
                                     {"fit", "evil.csv", "--save", evil + ".ample"},
                                     {"fit", "evil.csv", "--json", "--save", evil + ".ample"},
                                     {"demo", "--seed", evil}}) {
    const Result result = run(arguments);
    EXPECT_TRUE(harmless(result.out)) << arguments[0] << '\n' << result.out;
    EXPECT_TRUE(harmless(result.err)) << arguments[0] << '\n' << result.err;
  }
}

TEST_F(Reliability, PathsThatAreNotUtf8AreEscapedInJson) {
  const Result result = run({"fit", "data.csv", "--json", "--save", "caf\xE9.ample"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(json::parse(result.out).at("saved"), R"(caf\xe9.ample)");
  EXPECT_EQ(rows_seen("caf\xE9.ample"), 300);
}

// ---- exit codes

TEST_F(Reliability, KernelsBeyondDoublesAreUsageErrors) {
  for (const std::string kernel : {"(1e300*matern32)^2", "1e400*se", "se(lengthscale=1e-400)"}) {
    EXPECT_EQ(run({"fit", "data.csv", "--kernel", kernel}).code, 2) << kernel;
  }
}

TEST_F(Reliability, BadSettingsAreUsageErrorsHoweverLateTheyAreFound) {
  EXPECT_EQ(run({"fit", "data.csv", "--delta", "-1"}).code, 2);
  EXPECT_EQ(run({"fit", "data.csv", "--max-inducing", "0"}).code, 2);
  EXPECT_EQ(run({"fit", "data.csv", "--selection", "fixed-greedy", "--size", "0"}).code, 2);
  EXPECT_EQ(run({"fit", "data.csv", "--noise-variance", "-1"}).code, 2);
}

// ---- leftovers

TEST_F(Reliability, WhatAKilledRunLeftIsRemovedByTheNext) {
  store("m.ample.0123456789abcdef.tmp", "half a model");
  store("p.csv.0123456789abcdef.tmp", "half a table");
  fit();
  succeed({"predict", "m.ample", "data.csv", "--output", "p.csv"});
  EXPECT_FALSE(fs::exists(folder_ / "m.ample.0123456789abcdef.tmp"));
  EXPECT_FALSE(fs::exists(folder_ / "p.csv.0123456789abcdef.tmp"));
}

}  // namespace
}  // namespace ample
