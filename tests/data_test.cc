// `ample-reproduce data`: where the data sets are kept, what is missing, and the command as its
// users meet it.
#include "support/data.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "data_files.h"
#include "errors.h"
#include "protocol.h"
#include "support/http_server.h"
#include "support/program.h"

namespace ample::experiments {
namespace {

namespace fs = std::filesystem;
using ample::testing::bytes_of;
using ample::testing::HttpServer;
using ample::testing::lines_of;
using ample::testing::Program;
using ample::testing::Result;
using nlohmann::json;

class Data : public ample::testing::ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    program_ = paths::reproduce();
    command_words_ = 2;
    static const fs::path found = ample::testing::data_dir();  // before AMPLE_DATA is changed
    original_ = found;
    ::unsetenv("AMPLE_DATA");
    ::setenv("XDG_CACHE_HOME", (folder_ / "cache").c_str(), 1);
    ::setenv("no_proxy", "*", 1);
  }

  [[nodiscard]] std::string concrete_on_server(HttpServer::Answer answer = {}) {
    answer.body = bytes_of(original_ / concrete_.path);
    server_.answer("/mirror/" + concrete_.path, {answer});
    return server_.url("/mirror");
  }

  const DataFile& concrete_ = data_set("concrete").files.front();
  const std::string cached_ = "cache/ample/data/" + concrete_.path;
  fs::path original_;  // the real data, if there are any
  HttpServer server_;
};

// ---- the table and the folder

TEST_F(Data, TheTableIsComplete) {
  std::set<std::string> paths;
  std::set<std::string> addresses;
  std::set<std::string> sums;
  std::size_t files = 0;
  for (const DataSet& set : data_sets()) {
    EXPECT_EQ(&data_set(set.name), &set);
    for (const DataFile& file : set.files) {
      ++files;
      paths.insert(file.path);
      addresses.insert(file.address);
      sums.insert(file.sha256);
      EXPECT_TRUE(file.address.starts_with("https://raw.githubusercontent.com/"));
      EXPECT_EQ(file.sha256.size(), 64U);
      EXPECT_GT(file.bytes, 0U);
    }
  }
  EXPECT_EQ(files, 16U);
  EXPECT_EQ(paths.size(), files);
  EXPECT_EQ(addresses.size(), files);
  EXPECT_EQ(sums.size(), files);
  for (const std::string& name : uci_names()) EXPECT_EQ(data_set(name).files.size(), 1U);
  EXPECT_EQ(data_set("magnetic").files.size(), 10U);
}

TEST_F(Data, TheTableIsThatOfTheFiles) {
  if (!fs::is_directory(original_ / "uci")) GTEST_SKIP() << "no data in " << original_;
  for (const DataSet& set : data_sets()) {
    EXPECT_NO_THROW(require_data(original_, set.name));
    for (const DataFile& file : set.files) {
      EXPECT_EQ(state_of(file, original_), FileState::intact) << file.path;
    }
  }
}

TEST_F(Data, TheFolderIsTheOptionOrTheVariableOrInTheCache) {
  EXPECT_EQ(data_folder(""), folder_ / "cache/ample/data");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  ::setenv("HOME", "/home/someone", 1);
  EXPECT_EQ(data_folder(""), "/home/someone/.cache/ample/data");
  ::unsetenv("HOME");
  EXPECT_THROW(static_cast<void>(data_folder("")), cli::UsageError);
  ::setenv("AMPLE_DATA", "/some/data", 1);
  EXPECT_EQ(data_folder(""), "/some/data");
  EXPECT_EQ(data_folder("here"), "here");
}

TEST_F(Data, WhatIsMissingIsNamedWithTheCommandThatGetsIt) {
  const auto message = [&](const std::string& name) -> std::string {
    try {
      require_data(folder_, name);
    } catch (const cli::DataError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(
      message("concrete"),
      fmt::format("uci/concrete.csv.gz is missing in {0}; get it with: ample-reproduce data fetch "
                  "concrete --data-dir {0}",
                  folder_.string()));
  EXPECT_EQ(
      message("magnetic"),
      fmt::format(
          "magnetic/1-loc.csv and 9 more are missing in {0}; get them with: ample-reproduce data "
          "fetch magnetic --data-dir {0}",
          folder_.string()));
  fs::create_directory(folder_ / "uci");
  store(concrete_.path, "altered");
  EXPECT_EQ(message("concrete"),
            fmt::format("uci/concrete.csv.gz in {0} is altered: its check sum is not the published "
                        "one; get it with: ample-reproduce data fetch concrete --data-dir {0}",
                        folder_.string()));
}

// ---- the command

TEST_F(Data, HelpHasAnExample) {
  for (const std::string command : {"fetch", "list"}) {
    const std::string help = succeed({"data", command, "--help"});
    EXPECT_NE(help.find("Example"), std::string::npos) << command;
    EXPECT_NE(help.find("ample-reproduce data " + command + " "), std::string::npos) << command;
  }
}

TEST_F(Data, WhatMakesNoSenseIsAUsageError) {
  fail({"data", "fetch", "concrete", "iris"}, 2,
       "unknown data set 'iris', expected concrete, skillcraft, kin8nm, naval, elevators, bike, "
       "magnetic");
  fail({"data", "fetch", "--base-url", "ftp://127.0.0.1"}, 2,
       "--base-url is 'ftp://127.0.0.1', expected http://… or https://…");
  EXPECT_EQ(run({"data"}).code, 2);
  EXPECT_FALSE(fs::exists(folder_ / "cache"));
}

TEST_F(Data, WhatGoesWrongIsADataError) {
  const std::string url = server_.url("/" + concrete_.path);
  const std::vector<std::string> fetch{"data", "fetch", "concrete", "--base-url", server_.url("/")};
  fail(fetch, 3, url + ": not found (HTTP 404)");
  server_.answer("/" + concrete_.path, {{.body = std::string(concrete_.bytes, '0')}});
  const Result wrong = run(fetch);
  EXPECT_EQ(wrong.code, 3);
  EXPECT_TRUE(
      wrong.err.starts_with(fmt::format("ample-reproduce data fetch: {}: got SHA-256 ", url)));
  EXPECT_TRUE(wrong.err.ends_with(
      fmt::format(", expected SHA-256 {}; nothing of it is kept\n", concrete_.sha256)));
  EXPECT_TRUE(fs::is_empty(folder_ / "cache/ample/data/uci"));
  store("file", "");
  fail({"data", "fetch", "concrete", "--data-dir", "file"}, 3,
       "file/uci: cannot write: Not a directory");
}

TEST_F(Data, ListSaysWhatIsHere) {
  const auto listed = [&] { return json::parse(succeed({"data", "list", "--json"})); };
  const auto states = [&] {
    std::set<std::string> all;
    const json list = listed();
    for (const json& set : list.at("sets")) all.insert(set.at("state"));
    return all;
  };
  EXPECT_EQ(states(), std::set<std::string>{"missing"});
  EXPECT_EQ(listed().at("folder"), (folder_ / "cache/ample/data").string());
  EXPECT_FALSE(fs::exists(folder_ / "cache"));  // looking leaves no trace

  fs::create_directories(folder_ / "cache/ample/data/uci");
  store(cached_, std::string(concrete_.bytes, '0'));
  EXPECT_EQ(states(), (std::set<std::string>{"missing", "altered"}));
  const json concrete = listed().at("sets").at(0);
  EXPECT_EQ(concrete.at("name"), "concrete");
  EXPECT_EQ(concrete.at("rows"), 1030);
  EXPECT_EQ(concrete.at("inputs"), 8);
  EXPECT_EQ(concrete.at("files").at(0).at("sha256"), concrete_.sha256);

  const auto lines = lines_of(succeed({"data", "list"}));
  ASSERT_EQ(lines.size(), 1 + data_sets().size() + 2);
  EXPECT_TRUE(lines[1].starts_with("concrete "));
  EXPECT_NE(lines[1].find("1030 x 8 "), std::string::npos);
  EXPECT_NE(lines[1].find(" altered "), std::string::npos);
  EXPECT_NE(lines[2].find(" missing "), std::string::npos);
  EXPECT_EQ(lines.back(), "in " + (folder_ / "cache/ample/data").string());
}

TEST_F(Data, ASignalKeepsThePart) {
  server_.answer("/" + concrete_.path, {{.body = std::string(concrete_.bytes, '0'),
                                         .only = 5000,
                                         .then = HttpServer::Answer::Then::stall}});
  Program program(folder_, {"data", "fetch", "concrete", "--base-url", server_.url()}, -1,
                  program_);
  const fs::path part = folder_ / (cached_ + ".part");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  while (bytes_of(part).size() < 5000) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  program.signal(SIGINT);
  const Result result = program.wait();
  EXPECT_EQ(result.code, 128 + SIGINT);
  EXPECT_EQ(result.err,
            "ample-reproduce data fetch: stopped by a signal; run the command again to go on\n");
  EXPECT_EQ(bytes_of(part).size(), 5000U);
  EXPECT_FALSE(fs::exists(folder_ / cached_));
}

// ---- with the real data, from a server on this machine

class RealData : public Data {
 protected:
  void SetUp() override {
    Data::SetUp();
    if (!fs::exists(original_ / concrete_.path)) GTEST_SKIP() << "no data in " << original_;
  }
};

TEST_F(RealData, AreFetchedOnce) {
  const std::vector<std::string> fetch{"data", "fetch", "concrete", "--base-url",
                                       concrete_on_server()};
  const std::string where = (folder_ / cached_).string();
  EXPECT_EQ(succeed(fetch), where + "  12 kB  fetched\n");
  EXPECT_EQ(stored(cached_), bytes_of(original_ / concrete_.path));
  EXPECT_EQ(succeed(fetch), where + "  12 kB  already there\n");
  EXPECT_EQ(server_.requests().size(), 1U);

  std::vector<std::string> force = fetch;
  force.emplace_back("--force");
  EXPECT_EQ(succeed(force), where + "  12 kB  fetched\n");
  EXPECT_EQ(server_.requests().size(), 2U);

  store(cached_, "altered");
  EXPECT_EQ(succeed(fetch), where + "  12 kB  fetched\n");
  EXPECT_EQ(stored(cached_), bytes_of(original_ / concrete_.path));
}

TEST_F(RealData, GoOnAfterABrokenRun) {
  const std::vector<std::string> fetch{"data", "fetch", "concrete", "--base-url",
                                       concrete_on_server()};
  fs::create_directories(folder_ / "cache/ample/data/uci");
  store(cached_ + ".part", bytes_of(original_ / concrete_.path).substr(0, 10'000));
  succeed(fetch);
  EXPECT_EQ(stored(cached_), bytes_of(original_ / concrete_.path));
  ASSERT_EQ(server_.requests().size(), 1U);
  EXPECT_EQ(server_.requests().front().range, "bytes=10000-");
}

TEST_F(RealData, GoWhereTheyAreTold) {
  const std::string base = concrete_on_server();
  ::setenv("AMPLE_DATA", (folder_ / "named").c_str(), 1);
  succeed({"data", "fetch", "concrete", "--base-url", base});
  EXPECT_TRUE(fs::exists(folder_ / "named" / concrete_.path));
  succeed({"data", "fetch", "concrete", "--base-url", base, "--data-dir", "given"});
  EXPECT_TRUE(fs::exists(folder_ / "given" / concrete_.path));
  EXPECT_FALSE(fs::exists(folder_ / "cache"));
  const json list = json::parse(succeed({"data", "list", "--json", "--data-dir", "given"}));
  EXPECT_EQ(list.at("sets").at(0).at("state"), "intact");
}

TEST_F(RealData, MayStayWhereTheyCannotBeWritten) {
  if (!fs::exists(original_ / "magnetic")) GTEST_SKIP() << "no magnetic data in " << original_;
  const fs::path copy = folder_ / "copy";
  fs::copy(original_, copy, fs::copy_options::recursive);
  const auto writable = [&](bool yes) {
    const auto how = yes ? fs::perm_options::add : fs::perm_options::remove;
    for (const fs::path& folder : {copy, copy / "uci", copy / "magnetic"}) {
      fs::permissions(folder, fs::perms::owner_write, how);
    }
  };
  writable(false);
  const std::string out =
      succeed({"data", "fetch", "--data-dir", "copy", "--base-url", server_.url()});
  EXPECT_EQ(lines_of(out).size(), 16U);
  for (const std::string& line : lines_of(out)) {
    EXPECT_TRUE(line.ends_with("already there")) << line;
  }
  EXPECT_EQ(server_.requests().size(), 0U);
  writable(true);
}

TEST_F(RealData, ATerminalSeesProgress) {
  const std::string seen =
      seen_on_terminal({"data", "fetch", "concrete", "--base-url", concrete_on_server()});
  EXPECT_NE(seen.find("uci/concrete.csv.gz · 100 % of 12 kB"), std::string::npos) << seen;
  EXPECT_NE(seen.find("fetched"), std::string::npos) << seen;
}

}  // namespace
}  // namespace ample::experiments
