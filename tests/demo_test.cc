// The program's demo: what it writes, what it says, and that both follow from the seed alone.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "ample/snapshot.h"
#include "support/paths.h"

namespace ample::cli {
namespace {

using Json = nlohmann::json;

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Runs the program in a folder of the test's own.
class Demo : public testing::Test {
 protected:
  struct Result {
    int code;
    std::string out;
    std::string err;
  };

  static void SetUpTestSuite() {
    std::string name = testing::TempDir() + "ample-demo-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }

  /// Runs `ample demo --output <folder>/<output>` with further arguments.
  static Result run(const std::string& output, const std::string& arguments) {
    const std::string out = folder_ / "out";
    const std::string err = folder_ / "err";
    const int status =
        std::system((std::string(paths::program()) + " demo " + arguments + " --output '" +
                     (folder_ / output).string() + "' >'" + out + "' 2>'" + err + "'")
                        .c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(out), read(err)};
  }

  /// What `--seed 1` says, and writes to first/demo.
  static const Result& first() {
    static const Result result = run("first/demo", "--seed 1");
    EXPECT_EQ(result.code, 0) << result.err;
    return result;
  }

  static Json demo(const std::string& output) {
    return Json::parse(read(folder_ / output / "demo.json"));
  }

  static inline std::filesystem::path folder_;
};

std::ptrdiff_t lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST_F(Demo, WritesWhatItTakesToDrawAndToGoOn) {
  first();
  const Json result = demo("first/demo");
  EXPECT_EQ(result.at("seed"), 1);
  EXPECT_EQ(result.at("delta"), 0.05);
  ASSERT_EQ(result.at("scenarios").size(), 4U);
  for (const Json& scenario : result.at("scenarios")) {
    SCOPED_TRACE(scenario.at("title"));
    ASSERT_EQ(scenario.at("batches").size(), 10U);
    std::size_t rows = 0;
    for (const Json& batch : scenario.at("batches")) {
      rows += batch.at("x").size();
      EXPECT_EQ(batch.at("y").size(), batch.at("x").size());
      EXPECT_EQ(batch.at("rows_seen"), rows);
      EXPECT_LE(batch.at("gap").get<double>(), batch.at("threshold").get<double>());
    }
    const auto M = scenario.at("batches").back().at("inducing").get<std::size_t>();
    EXPECT_EQ(scenario.at("inducing_inputs").size(), M);
    EXPECT_EQ(scenario.at("ample").at("points"), M);
    const bool changes = scenario.contains("without_forgetting");
    EXPECT_EQ(scenario.at("exact").at("points"), changes ? rows / 2 : rows);
    for (const char* name : {"truth", "mean", "std"}) {
      EXPECT_EQ(scenario.at("grid").at(name).size(), scenario.at("grid").at("x").size());
    }
    for (const char* model : {"ample", "exact"}) {  // both find the noise, 0.2
      EXPECT_NEAR(std::sqrt(scenario.at(model).at("noise_variance").get<double>()), 0.2, 0.06);
    }
  }
  const ContinualGP model = load((folder_ / "first/demo/model.ample").string());
  EXPECT_EQ(model.rows_seen(), 500);
  EXPECT_EQ(static_cast<std::size_t>(model.size()),
            result.at("scenarios")[0].at("inducing_inputs").size());
}

TEST_F(Demo, TheNumbersDecideTheSummary) {
  const std::vector<std::string> words = {"linearly", "halted", "until batch 8",
                                          "forgot at batch 6"};
  const auto expect_words = [&](const Json& result) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      const auto summary = result.at("scenarios")[i].at("summary").get<std::string>();
      for (std::size_t j = 0; j < words.size(); ++j) {
        EXPECT_EQ(summary.find(words[j]) != std::string::npos, i == j) << summary;
      }
    }
  };
  first();
  expect_words(demo("first/demo"));
  ASSERT_EQ(run("second", "--seed 2").code, 0);
  expect_words(demo("second"));
  EXPECT_NE(demo("first/demo").at("scenarios")[0].at("batches"),
            demo("second").at("scenarios")[0].at("batches"));
}

TEST_F(Demo, OfTheSameSeedTheFilesAreTheSameAndWithJsonEveryLineIsAnObject) {
  first();
  const Result again = run("again", "--seed 1 --json");
  ASSERT_EQ(again.code, 0);
  for (const char* file : {"demo.json", "model.ample", "stream.csv", "new.csv"}) {
    EXPECT_EQ(read(folder_ / "first/demo" / file), read(folder_ / "again" / file)) << file;
  }
  std::istringstream stream(again.out);
  std::size_t batches = 0;
  std::size_t comparisons = 0;
  for (std::string line; std::getline(stream, line);) {
    const Json object = Json::parse(line);
    EXPECT_TRUE(object.contains("scenario"));
    batches += object.contains("batch") ? 1 : 0;
    comparisons += object.contains("exact") ? 1 : 0;
  }
  EXPECT_EQ(batches, 40U);
  EXPECT_EQ(comparisons, 4U);
}

TEST_F(Demo, WhereTheFunctionChangesForgettingIsBetterAndSmaller) {
  first();
  const Json scenario = demo("first/demo").at("scenarios")[3];
  const Json& kept = scenario.at("without_forgetting");
  ASSERT_EQ(kept.at("inducing").size(), scenario.at("batches").size());
  EXPECT_EQ(kept.at("inducing").back(), kept.at("points"));
  EXPECT_EQ(kept.at("mean").size(), scenario.at("grid").at("x").size());
  EXPECT_LT(scenario.at("ample").at("rmse").get<double>(), 0.5 * kept.at("rmse").get<double>());
  EXPECT_LT(scenario.at("ample").at("points").get<int>(), kept.at("points").get<int>());
}

TEST_F(Demo, ALargerDeltaMakesASmallerModel) {
  first();
  ASSERT_EQ(run("coarse", "--seed 1 --delta 0.5").code, 0);
  EXPECT_LT(demo("coarse").at("scenarios")[0].at("inducing_inputs").size(),
            demo("first/demo").at("scenarios")[0].at("inducing_inputs").size());
}

TEST_F(Demo, APipeGetsPlainText) {
  EXPECT_EQ(first().err, "");
  for (const char c : first().out) ASSERT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << int{c};
}

TEST_F(Demo, WhatItSuggestsWorks) {
  std::istringstream stream(first().out.substr(first().out.find("Try next")));
  std::size_t commands = 0;
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with("  ample ")) continue;
    ++commands;
    const std::string command = "cd '" + folder_.string() + "' && " +
                                std::string(paths::program()) +
                                line.substr(std::string("  ample").size());
    EXPECT_EQ(std::system(("{ " + command + "\n} >/dev/null").c_str()), 0) << line;
  }
  EXPECT_EQ(commands, 3U);
}

TEST_F(Demo, WhatCannotBeDoneIsSaidInOneLine) {
  std::ofstream(folder_ / "file") << "not a folder";
  const Result blocked = run("file/demo", "");
  EXPECT_EQ(blocked.code, 3);
  EXPECT_NE(blocked.err.find("file/demo: cannot make the folder"), std::string::npos)
      << blocked.err;
  EXPECT_EQ(lines(blocked.err), 1);
  EXPECT_EQ(blocked.out, "");

  std::filesystem::create_directories(folder_ / "taken/demo.json");
  const Result taken = run("taken", "");
  EXPECT_EQ(taken.code, 3);
  EXPECT_NE(taken.err.find("demo.json: cannot write"), std::string::npos) << taken.err;
  EXPECT_EQ(taken.out, "");

  for (const char* arguments : {"--delta -1", "--delta nan", "--seed x", "--unknown"}) {
    SCOPED_TRACE(arguments);
    const Result refused = run("refused", arguments);
    EXPECT_EQ(refused.code, 2);
    EXPECT_EQ(lines(refused.err), 1) << refused.err;
    EXPECT_EQ(refused.out, "");
    EXPECT_FALSE(std::filesystem::exists(folder_ / "refused"));
  }
}

}  // namespace
}  // namespace ample::cli
