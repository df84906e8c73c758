// A download is complete and right, or not there; and it asks for no byte twice.
#include "download.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "download.h"
#include "errors.h"
#include "sha256.h"
#include "support/http_server.h"
#include "support/program.h"

namespace ample::experiments {
namespace {

namespace fs = std::filesystem;
using ample::testing::HttpServer;
using Answer = HttpServer::Answer;

class Downloads : public ample::testing::ProgramTest {
 protected:
  void SetUp() override {
    ProgramTest::SetUp();
    ::setenv("no_proxy", "*", 1);
    for (int i = 0; i < 5000; ++i) content_ += fmt::format("{},{}\n", i, i * i % 97);
    store("original", content_);
    what_ = {.url = server_.url("/file"),
             .target = folder_ / "data" / "file",
             .bytes = content_.size(),
             .sha256 = sha256_of(folder_ / "original")};
    options_.pause = std::chrono::milliseconds(1);
  }

  void store_part(const std::string& text) const {
    fs::create_directories(folder_ / "data");
    store("data/file.part", text);
  }

  /// What is in the data folder must be the file and nothing else.
  void expect_fetched() const {
    EXPECT_EQ(stored("data/file"), content_);
    EXPECT_FALSE(fs::exists(folder_ / "data/file.part"));
  }

  /// The message of a download that must fail, and leave no file in place.
  std::string failure() const {
    try {
      download(what_, options_);
    } catch (const cli::DataError& error) {
      EXPECT_FALSE(fs::exists(what_.target));
      return error.what();
    }
    return "nothing was thrown";
  }

  [[nodiscard]] std::vector<std::string> ranges() const {
    std::vector<std::string> all;
    for (const auto& request : server_.requests()) all.push_back(request.range);
    return all;
  }

  using Ranges = std::vector<std::string>;
  HttpServer server_;
  std::string content_;
  Download what_;
  DownloadOptions options_;
};

TEST_F(Downloads, CheckSumIsTheStandards) {  // FIPS 180-2, appendix B.1
  store("abc", "abc");
  EXPECT_EQ(sha256_of(folder_ / "abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_F(Downloads, AFileArrives) {
  server_.answer("/file", {{.body = content_}});
  std::uintmax_t last = 0;
  options_.progress = [&](std::uintmax_t bytes) {
    EXPECT_GT(bytes, last);
    last = bytes;
  };
  download(what_, options_);
  expect_fetched();
  EXPECT_EQ(last, content_.size());
  EXPECT_EQ(ranges(), Ranges{""});
  EXPECT_TRUE(server_.requests().front().agent.starts_with("ample/"));
}

TEST_F(Downloads, OnlyTheMissingBytesAreAskedFor) {
  store_part(content_.substr(0, 1234));
  server_.answer("/file", {{.body = content_}});
  download(what_, options_);
  expect_fetched();
  EXPECT_EQ(ranges(), Ranges{"bytes=1234-"});
}

TEST_F(Downloads, ACompletePartNeedsNoServer) {
  store_part(content_);
  download(what_, options_);
  expect_fetched();
  EXPECT_EQ(ranges(), Ranges{});
}

TEST_F(Downloads, AServerWithoutRangesSendsEverything) {
  store_part(content_.substr(0, 1234));
  server_.answer("/file", {{.body = content_, .ranges = false}});
  download(what_, options_);
  expect_fetched();
  EXPECT_EQ(ranges(), Ranges{"bytes=1234-"});
}

TEST_F(Downloads, APartOfAnotherFileIsBegunAnew) {
  server_.answer("/file", {{.body = content_}});
  for (const std::size_t size : {std::size_t{100}, content_.size(), content_.size() + 7}) {
    store_part(std::string(size, '?'));
    download(what_, options_);
    expect_fetched();
  }
  EXPECT_EQ(ranges(), (Ranges{"bytes=100-", "", "", ""}));
}

TEST_F(Downloads, ARangeThatIsRefusedIsBegunAnew) {
  store_part(content_.substr(0, 1234));
  server_.answer("/file", {{.status = 416}, {.body = content_}});
  download(what_, options_);
  expect_fetched();
  EXPECT_EQ(ranges(), (Ranges{"bytes=1234-", ""}));
}

TEST_F(Downloads, WhatIsWrongIsNotKept) {
  std::string altered = content_;
  altered[content_.size() / 2] ^= 1;
  store("altered", altered);
  server_.answer("/file", {{.body = altered}});
  EXPECT_EQ(failure(), fmt::format("{}: got SHA-256 {}, expected SHA-256 {}; nothing of it is kept",
                                   what_.url, sha256_of(folder_ / "altered"), what_.sha256));
  server_.answer("/file", {{.body = "<html>"}});
  EXPECT_EQ(failure(), fmt::format("{}: got 6 bytes, expected {} bytes; nothing of it is kept",
                                   what_.url, content_.size()));
  server_.answer("/file", {{.body = content_ + content_}});
  EXPECT_EQ(failure(), fmt::format("{}: got more, expected {} bytes; nothing of it is kept",
                                   what_.url, content_.size()));
  EXPECT_TRUE(fs::is_empty(folder_ / "data"));
}

TEST_F(Downloads, AFailureLeavesTheFileThatIsThere) {
  fs::create_directories(folder_ / "data");
  store("data/file", "old");
  server_.answer("/file", {{.body = "<html>"}});
  EXPECT_THROW(download(what_, options_), cli::DataError);
  EXPECT_EQ(stored("data/file"), "old");
  server_.answer("/file", {{.body = content_}});
  download(what_, options_);
  expect_fetched();
}

TEST_F(Downloads, ABrokenTransferGoesOn) {
  server_.answer("/file", {{.body = content_, .only = 1000}, {.body = content_}});
  download(what_, options_);
  expect_fetched();
  EXPECT_EQ(ranges(), (Ranges{"", "bytes=1000-"}));
}

TEST_F(Downloads, ABrokenTransferGoesOnInTheNextRun) {
  for (const bool length : {true, false}) {
    fs::remove_all(folder_ / "data");
    options_.attempts = 2;
    server_.answer("/file", {{.body = content_, .length = length, .only = 1000}});
    const std::string message = failure();
    EXPECT_TRUE(message.starts_with(
        fmt::format("{}: the transfer broke after 2000 of {} bytes (", what_.url, content_.size())))
        << message;
    EXPECT_TRUE(message.ends_with("); run the command again to go on")) << message;
    EXPECT_EQ(stored("data/file.part"), content_.substr(0, 2000));
    server_.answer("/file", {{.body = content_}});
    download(what_, options_);
    expect_fetched();
  }
  const Ranges once{"", "bytes=1000-", "bytes=2000-"};
  Ranges twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  EXPECT_EQ(ranges(), twice);
}

TEST_F(Downloads, AStalledTransferIsGivenUp) {
  options_.stall_timeout = std::chrono::seconds(1);
  server_.answer("/file",
                 {{.body = content_, .only = 50, .then = Answer::Then::stall}, {.body = content_}});
  download(what_, options_);
  expect_fetched();
  EXPECT_EQ(ranges(), (Ranges{"", "bytes=50-"}));
}

TEST_F(Downloads, WhatPassesIsTriedAgainAndWhatDoesNotIsNot) {
  server_.answer("/file", {{.status = 503}, {.status = 429}, {.body = content_}});
  download(what_, options_);
  expect_fetched();
  EXPECT_EQ(server_.requests().size(), 3U);

  fs::remove(what_.target);
  server_.answer("/file", {{.status = 503}});
  EXPECT_EQ(failure(), what_.url + ": HTTP 503, expected 200");
  EXPECT_EQ(server_.requests().size(), 3U + static_cast<std::size_t>(options_.attempts));

  server_.answer("/file", {{.status = 403}});
  EXPECT_EQ(failure(), what_.url + ": HTTP 403, expected 200");
  server_.answer("/file", {});
  EXPECT_EQ(failure(), what_.url + ": not found (HTTP 404)");
  EXPECT_EQ(server_.requests().size(), 5U + static_cast<std::size_t>(options_.attempts));
  EXPECT_TRUE(fs::is_empty(folder_ / "data"));
}

TEST_F(Downloads, RedirectsAreFollowedToTheWebOnly) {
  server_.answer("/file", {{.status = 302, .location = server_.url("/there")}});
  server_.answer("/there", {{.body = content_}});
  download(what_, options_);
  expect_fetched();
  fs::remove(what_.target);
  server_.answer("/file",
                 {{.status = 302, .location = "file://" + (folder_ / "original").string()}});
  EXPECT_NE(failure().find("rotocol"), std::string::npos);
}

TEST_F(Downloads, AServerThatIsNotThere) {
  std::string url;
  {
    const HttpServer gone;
    url = gone.url("/file");
  }
  what_.url = url;
  EXPECT_TRUE(failure().starts_with(url + ": server not reachable: ")) << failure();
}

TEST_F(Downloads, AFolderThatCannotBeWritten) {
  server_.answer("/file", {{.body = content_}});
  what_.target = folder_ / "original" / "sub" / "file";
  EXPECT_EQ(failure(), (folder_ / "original/sub").string() + ": cannot write: Not a directory");
  EXPECT_EQ(ranges(), Ranges{});
}

TEST_F(Downloads, ADiskThatIsFull) {
  server_.answer("/file", {{.body = content_}});
  rlimit old_limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit = {1000, old_limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::string error = failure();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(error, what_.target.string() + ": cannot write: File too large");
  EXPECT_EQ(stored("data/file.part"),
            content_.substr(0, 1000));  // what came is not asked for again
}

TEST_F(Downloads, TwoProgramsDoNotFetchTheSameFile) {
  server_.answer("/file", {{.body = content_}});
  store_part(content_.substr(0, 10));
  const std::string part = (folder_ / "data/file.part").string();
  const int other = ::open(part.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  EXPECT_EQ(failure(), what_.target.string() + ": cannot write: another program is writing it");
  ::close(other);
  download(what_, options_);
  expect_fetched();
}

}  // namespace
}  // namespace ample::experiments
