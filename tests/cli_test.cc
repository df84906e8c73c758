// The program as its users meet it: run with arguments, judged by what it prints, writes and
// returns.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "ample/snapshot.h"
#include "ample/version.h"
#include "support/program.h"
#include "support/random.h"

namespace ample {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::Arguments;
using testing::bytes_of;
using testing::lines_of;
using testing::Program;
using testing::Result;

class Cli : public testing::ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    rows_ = some_rows(300);
    store("data.csv", "x1,x2,y\n" + join(rows_));
  }

  static std::vector<std::string> some_rows(int count) {
    testing::Random random(42);
    std::vector<std::string> rows;
    for (int i = 0; i < count; ++i) {
      const double a = random.uniform(-3.0, 3.0);
      const double b = random.uniform(0.0, 5.0);
      rows.push_back(fmt::format("{},{},{}", a, b,
                                 10.0 + 5.0 * std::sin(a) * std::cos(b) + 0.1 * random.normal()));
    }
    return rows;
  }
  static std::string join(const std::vector<std::string>& rows, std::size_t first = 0,
                          std::size_t count = std::string::npos) {
    std::string text;
    for (std::size_t i = first; i < rows.size() && i - first < count; ++i) text += rows[i] + '\n';
    return text;
  }

  /// A model of all rows in batches of 100; `options` are added to the command.
  void fit_model(const std::string& name = "model.ample", const Arguments& options = {}) const {
    Arguments arguments{"fit", "data.csv", "--batch-size", "100", "--save", name};
    arguments.insert(arguments.end(), options.begin(), options.end());
    succeed(arguments);
  }

  std::vector<std::string> rows_;
};

// ---- help

TEST_F(Cli, VersionAndHelp) {
  EXPECT_EQ(succeed({"--version"}), std::string("ample ") + version() + "\n");
  EXPECT_NE(succeed({"--help"}).find("Exit codes"), std::string::npos);
  for (const std::string command : {"fit", "update", "predict", "inspect", "merge"}) {
    const std::string help = succeed({command, "--help"});
    EXPECT_NE(help.find("Example"), std::string::npos) << command;
    EXPECT_NE(help.find("ample " + command + " "), std::string::npos) << command;
  }
}

// ---- usage: 2

TEST_F(Cli, UnknownCommandsAndOptionsAreUsageErrors) {
  EXPECT_EQ(run({}).code, 2);
  EXPECT_EQ(run({}).err, "ample: A subcommand is required; see ample --help\n");
  EXPECT_EQ(run({"learn", "data.csv"}).code, 2);
  EXPECT_EQ(run({"learn", "data.csv"}).err,
            "ample: unknown command 'learn', expected one of ample --help\n");
  fail({"fit"}, 2, "data is required; see ample fit --help");
  fail({"fit", "data.csv", "--foo"}, 2,
       "The following argument was not expected: --foo; see ample fit --help");
  fail({"fit", "data.csv", "--batch-size", "ten"}, 2,
       "--batch-size: is 'ten', expected a whole number; see ample fit --help");
  EXPECT_EQ(run({"fit", "data.csv", "--batches", "2", "--batch-size", "10"}).code, 2);
  EXPECT_EQ(run({"fit", "data.csv", "--refit-every", "2", "--fixed-hyperparameters"}).code, 2);
  EXPECT_EQ(run({"fit", "data.csv", "--seed", "-1"}).code, 2);
  EXPECT_EQ(run({"predict", "model.ample"}).code, 2);
}

TEST_F(Cli, ValuesOutOfRangeAreUsageErrors) {
  fail({"fit", "data.csv", "--batch-size", "0"}, 2, "--batch-size is 0, expected at least 1");
  fail({"fit", "data.csv", "--batches", "0"}, 2, "--batches is 0, expected at least 1");
  fail({"fit", "data.csv", "--batches", "301"}, 2,
       "--batches is 301, expected at most 300, the rows of the data");
  fail({"fit", "data.csv", "--refit-every", "0"}, 2, "--refit-every is 0, expected at least 1");
  fail({"fit", "data.csv", "--selection", "best"}, 2,
       "selection: unknown method 'best', expected vips, cv, oips, fixed-greedy or "
       "fixed-gradient");
  fail({"fit", "data.csv", "--eta", "1"}, 2, "vips: it has no setting 'eta'");
  EXPECT_EQ(run({"fit", "data.csv", "--delta", "0"}).code, 2);
  fail({"fit", "data.csv", "--choose", "best"}, 2, "--choose is 'best', expected variance or gain");
  EXPECT_EQ(run({"fit", "data.csv", "--delta", "nan"}).code, 2);
  EXPECT_EQ(run({"fit", "data.csv", "--selection", "cv", "--eta", "-1"}).code, 2);
  EXPECT_EQ(run({"fit", "data.csv", "--selection", "oips", "--rho", "2"}).code, 2);
  EXPECT_EQ(run({"fit", "data.csv", "--selection", "fixed-greedy", "--size", "1.5"}).code, 2);
  EXPECT_EQ(run({"fit", "data.csv", "--max-inducing", "0"}).code, 2);
  fail({"fit", "data.csv", "--standardize", "most"}, 2,
       "--standardize is 'most', expected none, all or first-batch");
  fail({"fit", "data.csv", "--noise-variance", "0"}, 2,
       "--noise-variance: noise_variance is 0, but must lie in [1e-06, 100000000]");
  fail({"fit", "data.csv", "--threads", "0"}, 2,
       "--threads: is '0', expected a whole number from 1 on; see ample fit --help");
  fail({"fit", "data.csv", "--inputs", "x1,y", "--target", "y"}, 2,
       "--inputs: column 'y' is the target, expected each column once");
  fail({"fit", "data.csv", "--inputs", "x1,1"}, 2,
       "--inputs: column '1' is there twice, expected each column once");
  fail({"predict", "model.ample", "data.csv", "--level", "1"}, 2,
       "--level is 1, expected between 0 and 1");
  fail({"predict", "model.ample", "data.csv", "--samples", "-2"}, 2,
       "--samples is -2, expected at least 0");
}

TEST_F(Cli, KernelTextIsCheckedBeforeTheDataAreOpened) {
  const Result result = run({"fit", "missing.csv", "--kernel", "se(variance=)"});
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(result.err.starts_with("ample fit: kernel text, column 13:")) << result.err;
  fail({"fit", "data.csv", "--kernel", "se(dims=[2])"}, 2,
       "kernel: se looks at dimension 2, but the inputs have 2 (counted from 0)");
  EXPECT_EQ(run({"fit", "data.csv", "--kernel", "se(lengthscale=[1, 2, 3])"}).code, 2);
}

// ---- data: 3

TEST_F(Cli, FilesThatAreNoTablesAreDataErrors) {
  fail({"fit", "missing.csv"}, 3, "missing.csv: cannot open: No such file or directory");
  fail({"fit", "."}, 3, ".: cannot read: Is a directory");
  store("empty.csv", "");
  fail({"fit", "empty.csv"}, 3, "empty.csv: no rows, expected a table of numbers");
  fail({"fit", "-"}, 3, "standard input: no rows, expected a table of numbers");
  store("header.csv", "x,y\n");
  fail({"fit", "header.csv"}, 3, "header.csv: no rows after the header");
  store("one.csv", "1\n2\n");
  fail({"fit", "one.csv"}, 3, "1 column, expected at least 2: an input and the target");
}

TEST_F(Cli, BadRowsAreNamedByLineAndColumn) {
  const auto complaint = [&](const std::string& text) {
    store("bad.csv", text);
    const Result result = run({"fit", "bad.csv", "--save", "bad.ample"});
    EXPECT_EQ(result.code, 3) << text;
    EXPECT_EQ(lines_of(result.err).size(), 1U) << result.err;
    EXPECT_FALSE(fs::exists(folder_ / "bad.ample"));
    return result.err;
  };
  for (const std::string bad : {"", "NaN", "inf", "abc"}) {
    const std::string error = complaint("a,b,y\n1,2,3\n4," + bad + ",6\n");
    EXPECT_TRUE(error.starts_with("ample fit: bad.csv:3:")) << error;
    EXPECT_NE(error.find("'b'"), std::string::npos) << error;
  }
  for (const std::string row : {"1,2", "1,2,3,4"}) {
    const std::string error = complaint("a,b,y\n1,2,3\n" + row + "\n");
    EXPECT_TRUE(error.starts_with("ample fit: bad.csv:3:")) << error;
  }
}

TEST_F(Cli, BadRowsCanBeSkippedAndAreCounted) {
  store("some.csv", "x1,x2,y\n" + join(rows_, 0, 50) + "1,,2\nx\n" + join(rows_, 50, 50));
  const Result result = run({"fit", "some.csv", "--skip-bad-rows", "--json", "--save", "a.ample"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "ample fit: dropped 2 bad rows\n");
  EXPECT_EQ(json::parse(result.out).at("bad_rows"), 2);
  EXPECT_EQ(json::parse(result.out).at("rows"), 100);
  store("good.csv", "x1,x2,y\n" + join(rows_, 0, 100));
  succeed({"fit", "good.csv", "--save", "b.ample"});
  EXPECT_EQ(stored("a.ample"), stored("b.ample"));

  const Result predicted = run({"predict", "a.ample", "some.csv", "--skip-bad-rows"});
  EXPECT_EQ(predicted.code, 0);
  EXPECT_EQ(predicted.err, "ample predict: dropped 2 bad rows\n");
  EXPECT_EQ(lines_of(predicted.out).size(), 101U);
}

TEST_F(Cli, UnknownColumnsAreDataErrors) {
  const std::string expected = run({"fit", "data.csv", "--target", "z"}).err;
  EXPECT_TRUE(expected.starts_with("ample fit: unknown column 'z', expected ")) << expected;
  EXPECT_EQ(run({"fit", "data.csv", "--target", "z"}).code, 3);
  EXPECT_EQ(run({"fit", "data.csv", "--target", "4"}).code, 3);
  EXPECT_EQ(run({"fit", "data.csv", "--inputs", "x1,z"}).code, 3);
  EXPECT_EQ(run({"fit", "data.csv", "--order", "z"}).code, 3);
}

TEST_F(Cli, WidthMustFitTheModel) {
  fit_model();
  const std::string before = stored("model.ample");
  store("wide.csv", "1,2,3,4\n");
  store("narrow.csv", "1\n");
  store("other.csv", "x1,z,y\n1,2,3\n");
  fail({"predict", "model.ample", "wide.csv"}, 3,
       "wide.csv: 4 columns, expected 2 (the inputs) or 3 (as in the data of the fit)");
  fail({"predict", "model.ample", "narrow.csv"}, 3,
       "narrow.csv: 1 column, expected 2 (the inputs) or 3 (as in the data of the fit)");
  fail({"predict", "model.ample", "other.csv"}, 3,
       "other.csv: no column 'x2', expected the model's columns x1, x2, y");
  fail({"predict", "model.ample", "-"}, 3,
       "standard input: 1 column, expected 2 (the inputs) or 3 (as in the data of the fit)", "1\n");
  fail({"update", "model.ample", "wide.csv"}, 3,
       "wide.csv: 4 columns, expected 3 (as in the data of the fit)");
  fail({"update", "model.ample", "other.csv"}, 3,
       "other.csv: no column 'x2', expected the model's columns x1, x2, y");
  fail({"fit", "data.csv", "--test", "wide.csv"}, 3,
       "wide.csv: 4 columns, expected 3 (as in the data of the fit)");
  EXPECT_EQ(stored("model.ample"), before);
}

TEST_F(Cli, UnwritableReportsAndOutputsAreDataErrors) {
  fit_model();
  fail({"fit", "data.csv", "--report", "missing/report.jsonl"}, 3,
       "missing/report.jsonl: cannot write: No such file or directory");
  fail({"predict", "model.ample", "data.csv", "--output", "missing/p.csv"}, 3,
       "missing/p.csv: cannot write: No such file or directory");
  if (fs::exists("/dev/full")) {
    fail({"predict", "model.ample", "data.csv", "--output", "/dev/full"}, 3,
         "/dev/full: cannot write: No space left on device");
  }
}

// ---- numerical: 4

TEST_F(Cli, WhatCannotBeComputedIsANumericalError) {
  store("huge.csv", "x,y\n1,1e200\n2,-1e200\n3,2e200\n");
  const Result result = run({"fit", "huge.csv", "--standardize", "none", "--save", "huge.ample"});
  EXPECT_EQ(result.code, 4);
  EXPECT_TRUE(result.err.starts_with("ample fit: ")) << result.err;
  EXPECT_EQ(lines_of(result.err).size(), 1U) << result.err;
  EXPECT_FALSE(fs::exists(folder_ / "huge.ample"));
}

// ---- model files: 5

TEST_F(Cli, EveryCommandNamesWhatIsWrongWithAModelFile) {
  fit_model();
  const std::string whole = stored("model.ample");
  store("truncated.ample", whole.substr(0, whole.size() - 10));
  std::string altered = whole;
  altered[altered.size() - 20] = static_cast<char>(altered[altered.size() - 20] ^ 1);
  store("altered.ample", altered);
  store("table.csv", stored("data.csv"));
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"missing.ample", "missing.ample: cannot open: No such file or directory"},
      {".", ".: is a directory, expected a model file"},
      {"truncated.ample", "truncated.ample: truncated: the header promises"},
      {"altered.ample", "altered.ample: damaged or altered: its checksum is"},
      {"table.csv", "table.csv: not a model file"},
  };
  for (const auto& [file, message] : cases) {
    for (const Arguments& arguments : {Arguments{"inspect", file},
                                       {"predict", file, "data.csv"},
                                       {"update", file, "data.csv"}}) {
      const Result result = run(arguments);
      EXPECT_EQ(result.code, 5) << arguments[0] << ' ' << file;
      EXPECT_TRUE(result.err.starts_with("ample " + arguments[0] + ": " + message)) << result.err;
      EXPECT_EQ(lines_of(result.err).size(), 1U) << result.err;
      EXPECT_EQ(result.out, "");
    }
  }
}

TEST_F(Cli, AnUnwritableModelIsNoticedBeforeTheWork) {
  // Were the data looked at first, the missing file would be the complaint.
  fail({"fit", "missing.csv", "--save", "nowhere/model.ample"}, 5,
       "nowhere/model.ample: cannot write: No such file or directory");
  fail({"fit", "missing.csv", "--save", "."}, 5, ".: cannot write: it is not a regular file");
  fit_model();
  fail({"update", "model.ample", "missing.csv", "--save", "nowhere/model.ample"}, 5,
       "nowhere/model.ample: cannot write: No such file or directory");
}

// ---- what comes in

TEST_F(Cli, PlainGzipAndStandardInputGiveTheSameModel) {
  fit_model("file.ample");
  const std::string text = stored("data.csv");
  const gzFile file = ::gzopen((folder_ / "data.csv.gz").c_str(), "wb");
  ASSERT_EQ(::gzwrite(file, text.data(), static_cast<unsigned>(text.size())),
            static_cast<int>(text.size()));
  ::gzclose(file);
  succeed({"fit", "data.csv.gz", "--batch-size", "100", "--save", "gzip.ample"});
  succeed({"fit", "-", "--batch-size", "100", "--save", "stdin.ample"}, text);
  succeed({"fit", "-", "--batch-size", "100", "--save", "gzip_stdin.ample"}, stored("data.csv.gz"));
  EXPECT_EQ(stored("file.ample"), stored("gzip.ample"));
  EXPECT_EQ(stored("file.ample"), stored("stdin.ample"));
  EXPECT_EQ(stored("file.ample"), stored("gzip_stdin.ample"));
}

// The report of a batch is there before the next one has been written.
TEST_F(Cli, StandardInputIsLearntFromAsItComes) {
  Program program(folder_, {"fit", "-", "--batch-size", "50", "--report", "r.jsonl"});
  program.write("x1,x2,y\n");
  for (std::size_t batch = 0; batch < 4; ++batch) {
    program.write(join(rows_, 50 * batch, 50));
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (lines_of(stored("r.jsonl")).size() < batch + 1) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "batch " << batch;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  program.close_input();
  EXPECT_EQ(program.wait().code, 0);
}

TEST_F(Cli, ColumnsAreChosenByNameOrNumber) {
  store("swapped.csv", [&] {
    std::string text = "y,note,x2,x1\n";
    for (const std::string& row : rows_) {
      std::istringstream in(row);
      std::string x1;
      std::string x2;
      std::string y;
      std::getline(in, x1, ',');
      std::getline(in, x2, ',');
      std::getline(in, y, ',');
      text += fmt::format("{},not a number,{},{}\n", y, x2, x1);
    }
    return text;
  }());
  fit_model("model.ample", {"--fixed-hyperparameters"});
  succeed({"fit", "swapped.csv", "--batch-size", "100", "--target", "y", "--inputs", "x1,x2",
           "--save", "names.ample", "--fixed-hyperparameters"});
  succeed({"fit", "swapped.csv", "--batch-size", "100", "--target", "1", "--inputs", "4,3",
           "--save", "numbers.ample", "--fixed-hyperparameters"});
  EXPECT_EQ(stored("names.ample"), stored("numbers.ample"));

  // Predictions find the inputs by name in either table.
  const std::string expected = succeed({"predict", "model.ample", "data.csv"});
  EXPECT_EQ(succeed({"predict", "model.ample", "swapped.csv"}), expected);
  EXPECT_EQ(succeed({"predict", "names.ample", "data.csv"}), expected);
  EXPECT_NE(succeed({"predict", "model.ample", "-"}, "x1,x2\n1,2\n"),
            succeed({"predict", "model.ample", "-"}, "x2,x1\n1,2\n"));
  // And an update too.
  succeed({"update", "model.ample", "swapped.csv"});
  succeed({"update", "names.ample", "data.csv"});
  EXPECT_EQ(succeed({"predict", "model.ample", "data.csv"}),
            succeed({"predict", "names.ample", "data.csv"}));
}

TEST_F(Cli, WithoutAHeaderColumnsGoByPlace) {
  store("plain.txt", join(rows_));
  succeed({"fit", "plain.txt", "--target", "1", "--save", "m.ample"});
  const std::string both = succeed({"predict", "m.ample", "-"}, "0,1,2\n");
  EXPECT_EQ(succeed({"predict", "m.ample", "-"}, "7,1,2\n"), both);  // the target is not looked at
  EXPECT_EQ(succeed({"predict", "m.ample", "-"}, "1,2\n"), both);
  EXPECT_NE(succeed({"predict", "m.ample", "-"}, "2,1\n"), both);
}

TEST_F(Cli, FitSaysWhatItDidOnAPipeToo) {
  const std::string out = succeed({"fit", "data.csv", "--batch-size", "100", "--save", "m.ample"});
  for (const char* part :
       {"rows", "inducing points", "kernel", "se(", "noise variance", "m.ample"}) {
    EXPECT_NE(out.find(part), std::string::npos) << part << " in\n" << out;
  }
}

TEST_F(Cli, OrdersAndBatchesAreAsAsked) {
  const std::string fixed = "--fixed-hyperparameters";
  const auto batch_sizes = [&](Arguments more) {
    Arguments arguments{"fit", "data.csv", "--report", "r.jsonl", fixed};
    arguments.insert(arguments.end(), more.begin(), more.end());
    succeed(arguments);
    std::vector<int> sizes;
    for (const std::string& line : lines_of(stored("r.jsonl"))) {
      sizes.push_back(json::parse(line).at("rows"));
    }
    return sizes;
  };
  EXPECT_EQ(batch_sizes({}), std::vector<int>{300});
  EXPECT_EQ(batch_sizes({"--batch-size", "120"}), (std::vector<int>{120, 120, 60}));
  EXPECT_EQ(batch_sizes({"--batches", "7"}), (std::vector<int>{42, 42, 42, 42, 42, 42, 48}));
  EXPECT_EQ(batch_sizes({"--batch-size", "120", "--order", "shuffle"}),
            (std::vector<int>{120, 120, 60}));

  // Sorting by a column is the same as sorting the file by it.
  std::vector<std::string> sorted = rows_;
  std::ranges::sort(sorted, {}, [](const std::string& row) { return std::stod(row); });
  store("sorted.csv", "x1,x2,y\n" + join(sorted));
  succeed({"fit", "data.csv", "--order", "x1", "--batch-size", "100", "--save", "a.ample", fixed});
  succeed({"fit", "sorted.csv", "--batch-size", "100", "--save", "b.ample", fixed});
  EXPECT_EQ(stored("a.ample"), stored("b.ample"));
  fit_model("c.ample", {fixed});
  EXPECT_NE(stored("a.ample"), stored("c.ample"));
  // Ties stay in the order of the file.
  std::string tied = "x1,x2,y,key\n";
  for (const std::string& row : rows_) tied += row + ",7\n";
  store("tied.csv", tied);
  succeed({"fit", "tied.csv", "--inputs", "x1,x2", "--target", "y", "--order", "key",
           "--batch-size", "100", "--save", "e.ample", fixed});
  EXPECT_EQ(succeed({"predict", "e.ample", "data.csv"}),
            succeed({"predict", "c.ample", "data.csv"}));
  // Streamed or read as a whole.
  succeed({"fit", "data.csv", "--batches", "3", "--save", "d.ample", fixed});
  EXPECT_EQ(succeed({"predict", "c.ample", "data.csv"}),
            succeed({"predict", "d.ample", "data.csv"}));
}

// ---- what comes out

TEST_F(Cli, NothingButResultsOnAPipe) {
  const Result plain = run({"fit", "data.csv", "--batch-size", "100"});
  EXPECT_EQ(plain.code, 0);
  EXPECT_TRUE(plain.out.starts_with("rows ")) << plain.out;  // the summary, no progress before it
  EXPECT_EQ(plain.err, "");
  const json summary = json::parse(
      succeed({"fit", "data.csv", "--batch-size", "100", "--json", "--save", "m.ample"}));
  EXPECT_EQ(summary.at("rows"), 300);
  EXPECT_EQ(summary.at("batches"), 3);
  EXPECT_EQ(summary.at("saved"), "m.ample");
  EXPECT_EQ(summary.at("inducing"), load((folder_ / "m.ample").string()).size());
}

TEST_F(Cli, ATerminalSeesProgressAndASummary) {
  const std::string seen = seen_on_terminal({"fit", "data.csv", "--batches", "3"});
  for (const char* part : {"batch 1/3", "batch 3/3", "300 rows", "nats", "rows/s",
                           "300 in 3 batches", "inducing points", "noise variance"}) {
    EXPECT_NE(seen.find(part), std::string::npos) << part << " in\n" << seen;
  }
}

TEST_F(Cli, EveryKindOfWarningIsSaidOnce) {
  std::string table;
  for (const std::string& row : some_rows(600))
    table += "5," + row.substr(0, row.find(',')) + ",7" + row.substr(row.rfind(',')) + '\n';
  store("constant.csv", table);
  const Result result = run({"fit", "constant.csv", "--batch-size", "150"});
  EXPECT_EQ(result.code, 0);
  const auto times = [&](const std::string& text) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = result.err.find(text, at)) != std::string::npos; ++at) ++count;
    return count;
  };
  EXPECT_EQ(times("input 0 is constant so far"), 1) << result.err;
  EXPECT_EQ(times("input 2 is constant so far"), 1) << result.err;
  EXPECT_EQ(times("input 1 is constant so far"), 0) << result.err;
}

TEST_F(Cli, ReportsHaveTheirFields) {
  succeed({"fit", "data.csv", "--batch-size", "100", "--report", "r.jsonl", "--test", "data.csv"});
  const std::vector<std::string> lines = lines_of(stored("r.jsonl"));
  ASSERT_EQ(lines.size(), 3U);
  Index before = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const json line = json::parse(lines[i]);
    for (const char* field :
         {"batch", "rows", "rows_seen", "inducing", "inducing_added", "optimum", "lower_bound",
          "noise_bound", "threshold", "elbo", "noise_variance", "jitter", "evaluations",
          "seconds_select", "seconds_fit", "rmse", "nlpd"}) {
      EXPECT_TRUE(line.at(field).is_number()) << field;
    }
    EXPECT_EQ(line.at("batch"), i + 1);
    EXPECT_EQ(line.at("rows_seen"), 100 * (i + 1));
    EXPECT_EQ(line.at("inducing"), before + line.at("inducing_added").get<Index>() -
                                       line.at("inducing_removed").get<Index>());
    before = line.at("inducing");
    EXPECT_LE(line.at("optimum").get<double>() - line.at("lower_bound").get<double>(),
              line.at("threshold").get<double>());
    EXPECT_NO_THROW(static_cast<void>(Kernel::parse(line.at("kernel").get<std::string>())));
  }
  // Data of deviation 2.7 with noise 0.1, in their own units.
  EXPECT_LT(json::parse(lines.back()).at("rmse"), 0.2);
  EXPECT_GT(json::parse(lines.back()).at("rmse"), 0.05);
  EXPECT_LT(json::parse(lines.back()).at("nlpd"), 0.0);

  succeed({"fit", "data.csv", "--report", "r.jsonl"});
  EXPECT_FALSE(json::parse(stored("r.jsonl")).contains("rmse"));
}

// A pipeline reads lines; a summary after them would be no JSON line.
TEST_F(Cli, ReportsToStandardOutputAreAllThatIsThere) {
  succeed({"fit", "data.csv", "--batch-size", "100", "--report", "r.jsonl", "--save", "m.ample"});
  for (const std::string output : {"-", "/dev/stdout"}) {
    const std::vector<std::string> lines = lines_of(succeed(
        {"fit", "data.csv", "--batch-size", "100", "--report", output, "--save", "n.ample"}));
    ASSERT_EQ(lines.size(), 3U) << output;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      EXPECT_EQ(json::parse(lines[i]).at("batch"), i + 1);
    }
    EXPECT_EQ(stored("n.ample"), stored("m.ample"));
  }
  EXPECT_FALSE(fs::exists(folder_ / "-"));
  EXPECT_EQ(succeed({"predict", "m.ample", "data.csv", "--output", "-"}),
            succeed({"predict", "m.ample", "data.csv"}));
  const json merge =
      json::parse(succeed({"merge", "m.ample", "--save", "n.ample", "--report", "-"}));
  EXPECT_EQ(merge.at("models"), 1);
  for (const Arguments& command :
       {Arguments{"fit", "data.csv"}, {"merge", "m.ample", "--save", "n.ample"}}) {
    Arguments both = command;
    both.insert(both.end(), {"--json", "--report", "-"});
    fail(both, 2, "--report and --json are both for standard output, expected one of them");
  }
}

TEST_F(Cli, OptionsWithoutWhatTheyAreForAreRefused) {
  fail({"fit", "data.csv", "--save-every", "5"}, 2,
       "--save-every is given, expected --save with it: where?");
  fail({"fit", "data.csv", "--wait"}, 2, "--wait is given, expected --save with it: for what?");
  for (const Arguments& held : {Arguments{"--kernel", "se"}, {"--fixed-hyperparameters"}}) {
    for (const Arguments& option : {Arguments{"--ard"}, {"--refit-seconds", "5"}}) {
      Arguments command{"fit", "data.csv"};
      command.insert(command.end(), held.begin(), held.end());
      command.insert(command.end(), option.begin(), option.end());
      fail(command, 2,
           option.front() +
               " is given, expected with it --kernel auto, whose hyperparameters are not fixed");
    }
  }
}

TEST_F(Cli, ScoresAreInStandardisedUnitsWithStandardizeAll) {
  const auto score = [&](const std::string& file, const std::string& standardize) {
    return json::parse(
        succeed({"fit", file, "--standardize", standardize, "--test", file, "--json"}));
  };
  // The same table with the target in units a thousand times smaller.
  std::string scaled = "x1,x2,y\n";
  for (const std::string& row : rows_) scaled += row + "e3\n";
  store("scaled.csv", scaled);
  const json all = score("data.csv", "all");
  const json all_scaled = score("scaled.csv", "all");
  EXPECT_NEAR(all.at("rmse"), all_scaled.at("rmse"), 1e-4);
  EXPECT_NEAR(all.at("nlpd"), all_scaled.at("nlpd"), 1e-3);
  const json first = score("data.csv", "first-batch");
  const json first_scaled = score("scaled.csv", "first-batch");
  EXPECT_NEAR(1000.0 * first.at("rmse").get<double>(), first_scaled.at("rmse"), 0.1);
  EXPECT_NEAR(first.at("nlpd").get<double>() + std::log(1000.0), first_scaled.at("nlpd"), 1e-3);
}

TEST_F(Cli, PredictionsAreThoseOfTheLibrary) {
  fit_model();
  const ContinualGP model = load((folder_ / "model.ample").string());
  Matrix X(2, 2);
  X << 1.0, 2.0, -1.0, 0.5;
  const std::string input = "1,2\n-1,0.5\n";
  const auto numbers = [](const std::string& line) {
    std::vector<double> values;
    std::istringstream in(line);
    for (std::string field; std::getline(in, field, ',');) values.push_back(std::stod(field));
    return values;
  };
  const auto check = [&](const Arguments& more, Target target, double z) {
    Arguments arguments{"predict", "model.ample", "-"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const std::vector<std::string> lines = lines_of(succeed(arguments, input));
    ASSERT_EQ(lines.size(), 3U);
    EXPECT_EQ(lines[0], "mean,std,lower,upper");
    const Prediction p = model.predict(X, target);
    for (Index i = 0; i < 2; ++i) {
      const std::vector<double> row = numbers(lines[static_cast<std::size_t>(i) + 1]);
      ASSERT_EQ(row.size(), 4U);
      const double deviation = std::sqrt(p.variance[i]);
      EXPECT_EQ(row[0], p.mean[i]);
      EXPECT_EQ(row[1], deviation);
      EXPECT_NEAR(row[2], p.mean[i] - z * deviation, 1e-6);
      EXPECT_NEAR(row[3], p.mean[i] + z * deviation, 1e-6);
    }
  };
  check({}, Target::function, 1.959963984540054);
  check({"--observation"}, Target::observation, 1.959963984540054);
  check({"--level", "0.5"}, Target::function, 0.6744897501960817);

  const std::vector<std::string> lines =
      lines_of(succeed({"predict", "model.ample", "-", "--samples", "3", "--seed", "7"}, input));
  EXPECT_EQ(lines[0], "mean,std,lower,upper,sample_1,sample_2,sample_3");
  const Matrix samples = model.sample(X, 3, 7);
  for (Index s = 0; s < 3; ++s) {
    EXPECT_EQ(numbers(lines[1])[static_cast<std::size_t>(4 + s)], samples(0, s));
    EXPECT_EQ(numbers(lines[2])[static_cast<std::size_t>(4 + s)], samples(1, s));
  }
}

TEST_F(Cli, PredictionsAreTheSameInBlocksAndInAFile) {
  fit_model();
  std::string many;
  for (int i = 0; i < 8; ++i) many += join(rows_);  // 2400 rows: three blocks
  const std::vector<std::string> lines = lines_of(succeed({"predict", "model.ample", "-"}, many));
  ASSERT_EQ(lines.size(), 2401U);
  EXPECT_EQ(std::ranges::count(lines, lines.front()), 1);
  const auto mean = [&](std::size_t row) { return std::stod(lines[row + 1]); };
  EXPECT_NEAR(mean(2399), mean(299), 1e-9);

  EXPECT_EQ(succeed({"predict", "model.ample", "data.csv", "--output", "p.csv"}), "");
  EXPECT_EQ(stored("p.csv"), succeed({"predict", "model.ample", "data.csv"}));
  // What fails leaves the old file, and nothing else.
  const std::string before = stored("p.csv");
  store("bad.csv", "x1,x2\n" + join(std::vector<std::string>(1500, "1,2")) + "1,x\n");
  EXPECT_EQ(run({"predict", "model.ample", "bad.csv", "--output", "p.csv"}).code, 3);
  EXPECT_EQ(stored("p.csv"), before);
  EXPECT_TRUE(std::ranges::none_of(fs::directory_iterator(folder_), [](const auto& entry) {
    return entry.path().extension() == ".tmp" || entry.path().extension() == ".probe";
  }));
}

TEST_F(Cli, CompressMakesAModelSmallerForTheNatsItSays) {
  succeed({"fit", "data.csv", "--kernel", "se", "--save", "m.ample"});
  const json curve = json::parse(succeed({"compress", "m.ample", "--json"}));
  const auto M = curve.at("inducing").get<std::size_t>();
  const auto nats = curve.at("nats_by_size").get<std::vector<double>>();
  ASSERT_GT(M, 6U);
  ASSERT_EQ(nats.size(), M + 1);
  const std::string before = stored("m.ample");
  const std::string table = succeed({"compress", "m.ample"});
  EXPECT_NE(table.find("points"), std::string::npos);
  EXPECT_EQ(stored("m.ample"), before);  // to ask changes nothing

  const json done =
      json::parse(succeed({"compress", "m.ample", "--points", "5", "--save", "s.ample", "--json"}));
  EXPECT_EQ(done.at("inducing"), 5);
  EXPECT_EQ(done.at("inducing_before"), M);
  EXPECT_DOUBLE_EQ(done.at("nats").get<double>(), nats[5]);
  EXPECT_EQ(stored("m.ample"), before);
  EXPECT_EQ(json::parse(succeed({"inspect", "s.ample", "--json"})).at("inducing"), 5);

  succeed({"compress", "m.ample", "--nats", fmt::format("{}", 1.01 * nats[M - 2])});
  EXPECT_LE(json::parse(succeed({"inspect", "m.ample", "--json"})).at("inducing"), M - 2);
  succeed({"update", "m.ample", "data.csv"});  // and it goes on

  fail({"compress", "m.ample", "--nats", "1", "--points", "5"}, 2,
       "--nats and --points are two ways to say how far, expected one of them");
  fail({"compress", "m.ample", "--save", "x.ample"}, 2,
       "--save is given, expected --nats or --points with it: how small?");
  EXPECT_EQ(run({"compress", "m.ample", "--nats", "-1"}).code, 2);
  EXPECT_EQ(run({"compress", "m.ample", "--points", "0"}).code, 2);
  EXPECT_EQ(run({"compress", "nothing.ample"}).code, 5);
}

TEST_F(Cli, MergeJoinsModelsThatBeganLikeOnePilot) {
  store("pilot.csv", "x1,x2,y\n" + join(rows_, 0, 100));
  store("a.csv", "x1,x2,y\n" + join(rows_, 100, 80));
  // Columns are found by name, in any order.
  std::string other = "y,x2,x1\n";
  for (std::size_t i = 180; i < 300; ++i) {
    const std::string& row = rows_[i];
    const std::size_t first = row.find(',');
    const std::size_t last = row.rfind(',');
    other +=
        row.substr(last + 1) + row.substr(first, last - first) + "," + row.substr(0, first) + "\n";
  }
  store("b.csv", other);
  succeed({"fit", "pilot.csv", "--kernel", "se", "--save", "pilot.ample"});
  for (const std::string shard : {"a", "b"}) {
    succeed({"fit", shard + ".csv", "--like", "pilot.ample", "--fixed-hyperparameters", "--save",
             shard + ".ample"});
  }
  const ContinualGP pilot = load((folder_ / "pilot.ample").string());
  EXPECT_EQ(load((folder_ / "a.ample").string()).kernel(), pilot.kernel());

  const json report = json::parse(succeed(
      {"merge", "a.ample", "b.ample", "--save", "c.ample", "--json", "--report", "merge.json"}));
  EXPECT_EQ(report.at("models"), 2);
  EXPECT_EQ(report.at("rows"), 200);
  EXPECT_EQ(report.at("largest"), 1);
  EXPECT_EQ(report.at("carried_nats"), 0.0);
  EXPECT_LE(report.at("pruned_nats").get<double>(), report.at("allowed_nats").get<double>());
  EXPECT_EQ(json::parse(stored("merge.json")), report);
  const ContinualGP merged = load((folder_ / "c.ample").string());
  EXPECT_EQ(merged.rows_seen(), 200);
  EXPECT_EQ(merged.size(), report.at("inducing"));
  succeed({"predict", "c.ample", "data.csv"});
  succeed({"update", "c.ample", "pilot.csv"});  // and it goes on

  // Into one of the models, with hyperparameters fitted, and as a table.
  const std::string table = succeed({"merge", "a.ample", "b.ample", "--save", "a.ample", "--fit",
                                     "--max-inducing", "10", "--nats", "0"});
  EXPECT_NE(table.find("10, before"), std::string::npos) << table;
  const ContinualGP small = load((folder_ / "a.ample").string());
  EXPECT_EQ(small.size(), 10);
  EXPECT_EQ(small.rows_seen(), 200);
  EXPECT_NE(small.kernel(), pilot.kernel());
}

TEST_F(Cli, MergeRefusesWhatDoesNotFit) {
  store("a.csv", "x1,x2,y\n" + join(rows_, 0, 150));
  store("b.csv", "x1,x2,y\n" + join(rows_, 150));
  store("c.csv", "x2,x3,y\n" + join(rows_, 150));
  for (const std::string shard : {"a", "b"}) {
    succeed({"fit", shard + ".csv", "--kernel", "se", "--save", shard + ".ample"});
  }
  const std::string before = stored("a.ample");
  const Result scalings = run({"merge", "a.ample", "b.ample", "--save", "a.ample"});
  EXPECT_EQ(scalings.code, 2);
  EXPECT_NE(scalings.err.find("merge: b.ample scales input 0 by mean"), std::string::npos)
      << scalings.err;
  EXPECT_EQ(stored("a.ample"), before);
  fail({"merge", "a.ample", "a.ample", "--save", "m.ample"}, 2,
       "MODEL is 'a.ample', the same file as 'a.ample', expected another");
  fail({"merge", "a.ample", "b.ample", "--save", "m.ample", "--report", "a.ample"}, 2,
       "--report is 'a.ample', the same file as MODEL, expected another");
  succeed({"fit", "a.csv", "--kernel", "constant(100) + se", "--standardize", "none", "--save",
           "d.ample"});
  succeed({"fit", "c.csv", "--kernel", "constant(100) + se", "--standardize", "none", "--save",
           "c.ample"});
  fail({"merge", "d.ample", "c.ample", "--save", "m.ample"}, 2,
       "c.ample has the columns x2, x3, y, expected x1, x2, y as d.ample");
  EXPECT_EQ(run({"merge", "a.ample", "--save", "m.ample", "--nats", "-1"}).code, 2);
  EXPECT_EQ(run({"merge", "a.ample", "--save", "m.ample", "--max-inducing", "0"}).code, 2);
  EXPECT_EQ(run({"merge", "a.ample", "nothing.ample", "--save", "m.ample"}).code, 5);
  EXPECT_EQ(run({"merge", "a.ample", "b.ample"}).code, 2);
  EXPECT_EQ(run({"fit", "b.csv", "--like", "a.ample", "--kernel", "se"}).code, 2);
  EXPECT_EQ(run({"fit", "b.csv", "--like", "nothing.ample"}).code, 5);
  fail({"fit", "b.csv", "--like", "a.ample", "--save", "a.ample"}, 2,
       "--save is 'a.ample', the same file as --like, expected another");
  EXPECT_FALSE(fs::exists(folder_ / "m.ample"));
}

TEST_F(Cli, ForgettingIsAsAsked) {
  const auto weights = [this](const Arguments& more) {
    Arguments arguments{"fit",          "data.csv", "--kernel", "se",
                        "--batch-size", "100",      "--report", "r.jsonl"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    succeed(arguments);
    std::vector<double> found;
    for (const std::string& line : lines_of(stored("r.jsonl"))) {
      found.push_back(json::parse(line).at("past_weight"));
    }
    return found;
  };
  EXPECT_EQ(weights({}), (std::vector{1.0, 1.0, 1.0}));
  EXPECT_EQ(weights({"--forget", "never"}), (std::vector{1.0, 1.0, 1.0}));
  EXPECT_EQ(weights({"--forget", "200"}), (std::vector{1.0, std::sqrt(0.5), std::sqrt(0.5)}));
  fail({"fit", "data.csv", "--forget", "sometimes"}, 2,
       "--forget is 'sometimes', expected never, adaptive or a positive number of rows");
  for (const char* wrong : {"0", "-5", "nan", "inf", "5x", "1e999"}) {
    EXPECT_EQ(run({"fit", "data.csv", "--forget", wrong}).code, 2) << wrong;
  }
}

TEST_F(Cli, TimeIsAColumn) {
  std::string table = "t,x1,x2,y\n";
  for (int i = 0; i < 300; ++i) {
    table += fmt::format("{},{}\n", 1000 + 60 * (i / 100), rows_[static_cast<std::size_t>(i)]);
  }
  store("timed.csv", table);
  succeed({"fit", "timed.csv", "--kernel", "se", "--batch-size", "100", "--forget", "60", "--time",
           "t", "--save", "m.ample", "--report", "r.jsonl"});
  const std::vector<std::string> lines = lines_of(stored("r.jsonl"));
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(json::parse(lines[1]).at("past_weight"), 0.5);
  EXPECT_EQ(json::parse(lines[1]).at("forgot"), "half-life");
  EXPECT_EQ(json::parse(lines[1]).at("residuals").size(), 100U);
  EXPECT_EQ(json::parse(succeed({"inspect", "m.ample", "--json"})).at("dimension"), 2);
  const std::string said = succeed({"inspect", "m.ample"});
  EXPECT_TRUE(std::regex_search(said, std::regex("inputs +2: x1, x2\n"))) << said;
  EXPECT_TRUE(std::regex_search(said, std::regex("target +y\n"))) << said;
  EXPECT_TRUE(std::regex_search(said, std::regex("time +t\n"))) << said;
  // An update finds it again, by name; predictions do without.
  store("later.csv", "y,t,x2,x1\n10,1240,0.5,0.5\n");
  succeed({"update", "m.ample", "later.csv", "--report", "u.jsonl"});
  EXPECT_EQ(json::parse(stored("u.jsonl")).at("past_weight"), 0.25);
  store("new.csv", "x1,x2\n0,1\n");
  EXPECT_EQ(lines_of(succeed({"predict", "m.ample", "new.csv"})).size(), 2U);
  fail({"fit", "timed.csv", "--time", "t"}, 2,
       "--time is given, expected --forget with a half-life in its units");
  fail({"fit", "timed.csv", "--time", "y", "--target", "y", "--forget", "5"}, 2,
       "--time: column 'y' is the target, expected another");
}

TEST_F(Cli, InspectListsPointsWithTheirPrices) {
  succeed({"fit", "data.csv", "--kernel", "se", "--save", "m.ample"});
  const json what = json::parse(succeed({"inspect", "m.ample", "--json", "--points"}));
  const auto M = what.at("inducing").get<std::size_t>();
  ASSERT_EQ(what.at("points").size(), M);
  double least = what.at("points").at(0).at("price").get<double>();
  for (const json& point : what.at("points")) {
    EXPECT_EQ(point.at("inputs").size(), 2U);
    least = std::min(least, point.at("price").get<double>());
  }
  EXPECT_EQ(what.at("price_quantiles").at(0), least);
  const std::string csv = succeed({"inspect", "m.ample", "--points"});
  EXPECT_EQ(csv.substr(0, csv.find('\n')), "x1,x2,price");
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(csv, '\n')), M + 1);
  const std::string table = succeed({"inspect", "m.ample"});
  EXPECT_NE(table.find(fmt::format("inducing points   {}, worth ", M)), std::string::npos) << table;
}

TEST_F(Cli, InspectSaysWhatIsThere) {
  succeed({"fit", "data.csv", "--batch-size", "100", "--kernel",
           "matern52(variance=2 fixed, lengthscale=[1, 2])", "--selection", "cv", "--eta", "0.9",
           "--save", "m.ample", "--refit-every", "2", "--seed", "5"});
  const json what = json::parse(succeed({"inspect", "m.ample", "--json"}));
  EXPECT_EQ(what.at("format_version"), 4);
  EXPECT_EQ(what.at("ample_version"), version());
  EXPECT_EQ(what.at("checksum"), "ok");
  EXPECT_EQ(what.at("file_bytes"), stored("m.ample").size());
  EXPECT_EQ(what.at("rows_seen"), 300);
  EXPECT_EQ(what.at("batches"), 3);
  EXPECT_EQ(what.at("rows_pending"), 0);
  EXPECT_EQ(what.at("rows_in_reservoir"), 0);
  EXPECT_EQ(what.at("dimension"), 2);
  EXPECT_EQ(what.at("columns"), json({"x1", "x2", "y"}));
  EXPECT_EQ(what.at("selection"), json({{"name", "cv"}, {"eta", 0.9}}));
  EXPECT_EQ(what.at("refit_every"), 2);
  EXPECT_EQ(what.at("seed"), 5);
  EXPECT_EQ(what.at("scaling").at("standardize"), "first-batch");
  EXPECT_EQ(what.at("scaling").at("input_mean").size(), 2U);
  ASSERT_EQ(what.at("parameters").size(), 4U);
  EXPECT_EQ(what.at("parameters")[0].at("name"), "matern52.variance");
  EXPECT_EQ(what.at("parameters")[0].at("value"), 2.0);
  EXPECT_EQ(what.at("parameters")[0].at("fixed"), true);
  EXPECT_EQ(what.at("parameters")[3].at("name"), "noise_variance");
  EXPECT_EQ(what.at("parameters")[3].at("lower"), 1e-6);

  const std::string table = succeed({"inspect", "m.ample"});
  for (const char* part :
       {"checksum ok", "300 in 3 batches", "none", "2: x1, x2", "matern52.variance", "2, fixed",
        "cv, eta 0.9", "every 2 batches", "first-batch"}) {
    EXPECT_NE(table.find(part), std::string::npos) << part << " in\n" << table;
  }

  succeed({"fit", "data.csv", "--batch-size", "100", "--kernel", "se", "--reservoir", "50",
           "--save", "kept.ample"});
  const json kept = json::parse(succeed({"inspect", "kept.ample", "--json"}));
  EXPECT_EQ(kept.at("rows_in_reservoir"), 50);
  EXPECT_NE(succeed({"inspect", "kept.ample"}).find("50 in the reservoir"), std::string::npos);
}

// ---- going on

TEST_F(Cli, TheSameSeedGivesTheSameFile) {
  const auto fitted = [&](const std::string& seed, const std::string& name) {
    succeed({"fit", "data.csv", "--batch-size", "60", "--order", "shuffle", "--selection", "oips",
             "--seed", seed, "--save", name});
    return stored(name);
  };
  EXPECT_EQ(fitted("3", "a.ample"), fitted("3", "b.ample"));
  EXPECT_NE(fitted("4", "c.ample"), stored("a.ample"));
}

TEST_F(Cli, AnUpdateIsTheFitContinued) {
  store("first.csv", "x1,x2,y\n" + join(rows_, 0, 120));
  store("second.csv", "x1,x2,y\n" + join(rows_, 120));
  for (const Arguments& options :
       {Arguments{"--batch-size", "60"},
        {"--batch-size", "60", "--refit-every", "3", "--standardize", "none"},
        {"--batch-size", "60", "--selection", "oips", "--seed", "9", "--max-inducing", "20"}}) {
    const auto fit = [&](const std::string& data, const std::string& model) {
      Arguments arguments{"fit", data, "--save", model};
      arguments.insert(arguments.end(), options.begin(), options.end());
      succeed(arguments);
    };
    fit("data.csv", "whole.ample");
    fit("first.csv", "part.ample");
    const std::string part = stored("part.ample");
    succeed({"update", "part.ample", "second.csv", "--save", "other.ample", "--report", "r.jsonl"});
    EXPECT_EQ(stored("other.ample"), stored("whole.ample")) << options.back();
    EXPECT_EQ(stored("part.ample"), part);
    EXPECT_EQ(json::parse(lines_of(stored("r.jsonl")).front()).at("batch"), 3);
    succeed({"update", "part.ample", "second.csv"});
    EXPECT_EQ(stored("part.ample"), stored("whole.ample")) << options.back();
  }
}

TEST_F(Cli, AnUpdateThatLearnsNothingLeavesTheModel) {
  fit_model();
  const std::string before = stored("model.ample");
  store("bad.csv", "x1,x2,y\n" + join(rows_, 0, 50) + "1,2,x\n");
  EXPECT_EQ(run({"update", "model.ample", "bad.csv"}).code, 3);
  EXPECT_EQ(stored("model.ample"), before);
}

TEST_F(Cli, AStreamIsSavedWhileItGoesOn) {
  Program program(folder_, {"fit", "-", "--batch-size", "50", "--save", "s.ample", "--save-every",
                            "0", "--report", "r.jsonl"});
  program.write("x1,x2,y\n" + join(rows_, 0, 120));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  const auto saved_batches = [&] {
    const std::string path = (folder_ / "s.ample").string();
    return fs::exists(path) ? load(path).batches() : 0;
  };
  while (saved_batches() < 2) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  program.signal(SIGKILL);
  program.wait();
  store("part.csv", "x1,x2,y\n" + join(rows_, 0, 100));
  succeed({"fit", "part.csv", "--batch-size", "50", "--save", "part.ample"});
  EXPECT_EQ(stored("s.ample"), stored("part.ample"));
}

class Signals : public Cli, public ::testing::WithParamInterface<int> {
 protected:
  void wait_for_lines(std::size_t count) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (lines_of(stored("r.jsonl")).size() < count) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
};

TEST_P(Signals, WhileWaitingForInputKeepWhatWasLearnt) {
  Program program(folder_,
                  {"fit", "-", "--batch-size", "50", "--report", "r.jsonl", "--save", "s.ample"});
  // Two batches, and a third that ends in the middle of a number.
  program.write("x1,x2,y\n" + join(rows_, 0, 120) + "1.5,2.5,10");
  wait_for_lines(2);
  program.signal(GetParam());
  const Result result = program.wait();
  EXPECT_EQ(result.code, 128 + GetParam());
  EXPECT_EQ(result.err,
            "ample fit: stopped by a signal after 2 batches of 100 rows, saved to s.ample\n");
  store("part.csv", "x1,x2,y\n" + join(rows_, 0, 100));
  succeed({"fit", "part.csv", "--batch-size", "50", "--save", "part.ample"});
  EXPECT_EQ(stored("s.ample"), stored("part.ample"));
}

TEST_P(Signals, TwiceAtOnceAreOne) {
  Program program(folder_,
                  {"fit", "-", "--batch-size", "50", "--report", "r.jsonl", "--save", "s.ample"});
  program.write("x1,x2,y\n" + join(rows_, 0, 120));
  wait_for_lines(2);
  program.signal(GetParam());
  program.signal(SIGTERM);
  const int code = program.wait().code;  // of the one that was delivered first
  EXPECT_TRUE(code == 128 + GetParam() || code == 128 + SIGTERM) << code;
  EXPECT_EQ(load((folder_ / "s.ample").string()).batches(), 2);
}

TEST_P(Signals, WhileLearningKeepTheLastCompleteBatch) {
  const std::vector<std::string> rows = some_rows(100'000);
  store("long.csv", join(rows));
  Program program(folder_, {"fit", "long.csv", "--batch-size", "400", "--report", "r.jsonl",
                            "--save", "s.ample", "--delta", "0.001"});
  wait_for_lines(2);
  program.signal(GetParam());
  EXPECT_EQ(program.wait().code, 128 + GetParam());
  const Index batches = load((folder_ / "s.ample").string()).batches();
  EXPECT_EQ(lines_of(stored("r.jsonl")).size(), static_cast<std::size_t>(batches));
  ASSERT_LT(batches, 250);
  store("part.csv", join(rows, 0, 400 * static_cast<std::size_t>(batches)));
  succeed({"fit", "part.csv", "--batch-size", "400", "--save", "part.ample", "--delta", "0.001"});
  EXPECT_EQ(stored("s.ample"), stored("part.ample"));
}

TEST_P(Signals, BeforeTheFirstBatchSaveNothing) {
  Program program(folder_, {"fit", "-", "--report", "r.jsonl", "--save", "s.ample"});
  program.write("x1,x2,y\n" + join(rows_, 0, 10));
  while (!fs::exists(folder_ / "r.jsonl"))
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  program.signal(GetParam());
  EXPECT_EQ(program.wait().code, 128 + GetParam());
  EXPECT_FALSE(fs::exists(folder_ / "s.ample"));
}

INSTANTIATE_TEST_SUITE_P(All, Signals, ::testing::Values(SIGINT, SIGTERM, SIGHUP),
                         [](const auto& param) {
                           return std::string(::sigabbrev_np(param.param));
                         });

}  // namespace
}  // namespace ample
