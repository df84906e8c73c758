#include "file_replacement.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace ample {
namespace {

namespace fs = std::filesystem;

class FileReplacements : public ::testing::Test {
 protected:
  FileReplacements() {
    std::string name = (fs::temp_directory_path() / "ample-files-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    path_ = (folder_ / "model.ample").string();
  }
  ~FileReplacements() override { fs::remove_all(folder_); }

  static std::string bytes_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void store(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  static void replace(const std::string& path, const std::string& bytes) {
    FileReplacement file(path);
    file.write(bytes);
    file.commit();
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  /// The message without the path, or "" if nothing is wrong.
  static std::string error_of(const std::function<void()>& action, const std::string& path) {
    try {
      action();
      return "";
    } catch (const FileError& error) {
      const std::string message = error.what();
      EXPECT_TRUE(message.starts_with(path + ": ")) << message;
      return message.substr(path.size() + 2);
    }
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(FileReplacements, NothingIsThereBeforeItIsWhole) {
  {
    FileReplacement file(path_);
    file.write("one ");
    file.write("two");
    EXPECT_FALSE(fs::exists(path_));
    EXPECT_EQ(file.size(), 7U);
    file.commit();
    EXPECT_EQ(bytes_of(path_), "one two");
  }
  {
    FileReplacement file(path_);
    file.write("other");
    EXPECT_EQ(bytes_of(path_), "one two");
  }
  EXPECT_EQ(bytes_of(path_), "one two");
  EXPECT_EQ(files(), 1U);
  replace(path_, "new");
  EXPECT_EQ(bytes_of(path_), "new");
}

TEST_F(FileReplacements, FailedWriteLeavesTheOldFileAndNothingElse) {
  replace(path_, "old");
  rlimit old_limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit = {4096, old_limit.rlim_max};  // as if the disk were full after a page
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const std::string large(10'000, 'x');
  const std::string error = error_of([&] { replace(path_, large); }, path_);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(error, "cannot write: File too large");
  EXPECT_EQ(bytes_of(path_), "old");
  EXPECT_EQ(files(), 1U);
  replace(path_, large);  // and without the limit it is written
  EXPECT_EQ(bytes_of(path_), large);
}

TEST_F(FileReplacements, NeedAFolderAndAPlainFile) {
  const std::string nowhere = (folder_ / "missing" / "model.ample").string();
  EXPECT_EQ(error_of([&] { check_replaceable(nowhere); }, nowhere),
            "cannot write: No such file or directory");
  EXPECT_EQ(error_of([&] { check_replaceable(folder_.string()); }, folder_.string()),
            "cannot write: it is not a regular file");
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { check_replaceable(path_); }, path_),
            "cannot write: it is not a regular file");
  EXPECT_TRUE(fs::is_fifo(path_));
  EXPECT_EQ(files(), 1U);
  fs::remove(path_);
  check_replaceable(path_);
  EXPECT_EQ(files(), 0U);
}

TEST_F(FileReplacements, PermissionIsNeeded) {
  if (::geteuid() == 0) GTEST_SKIP() << "everything is permitted to this user";
  replace(path_, "old");
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(error_of([&] { replace(path_, "new"); }, path_), "cannot write: Permission denied");
  EXPECT_EQ(bytes_of(path_), "old");
  fs::permissions(folder_, fs::perms::owner_all);
}

TEST_F(FileReplacements, KeepModeAndLinks) {
  replace(path_, "old");
  const auto mode = fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read;
  fs::permissions(path_, mode);
  fs::create_symlink("model.ample", folder_ / "latest");
  fs::create_symlink(folder_ / "latest", folder_ / "absolute");
  replace((folder_ / "absolute").string(), "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "latest"));
  EXPECT_TRUE(fs::is_symlink(folder_ / "absolute"));
  EXPECT_EQ(bytes_of(path_), "new");
  EXPECT_EQ(fs::status(path_).permissions(), mode);

  // To a file that is not there yet.
  fs::create_symlink("later.ample", folder_ / "next");
  replace((folder_ / "next").string(), "first");
  EXPECT_TRUE(fs::is_symlink(folder_ / "next"));
  EXPECT_EQ(bytes_of(folder_ / "later.ample"), "first");

  fs::create_symlink("circle", folder_ / "circle");
  const std::string circle = (folder_ / "circle").string();
  EXPECT_EQ(error_of([&] { check_replaceable(circle); }, circle),
            "cannot write: Too many levels of symbolic links");
}

TEST_F(FileReplacements, KeepTheOwner) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can have files of others";
  replace(path_, "old");
  ASSERT_EQ(::chown(path_.c_str(), 12345, 54321), 0);
  ASSERT_EQ(::chmod(path_.c_str(), 04640), 0);
  replace(path_, "new");
  struct stat status = {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_uid, 12345U);
  EXPECT_EQ(status.st_gid, 54321U);
  EXPECT_EQ(status.st_mode & 07777U, 04640U);
}

TEST_F(FileReplacements, WhatTheOldFileKeptSecretIsSecretWhileItIsWritten) {
  replace(path_, "old");
  fs::permissions(path_, fs::perms::owner_read | fs::perms::owner_write);
  FileReplacement file(path_);
  struct stat status = {};
  ASSERT_EQ(::stat(file.temporary().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 077U, 0U);
}

TEST_F(FileReplacements, NamesCannotBeForeseen) {
  const FileReplacement one(path_);
  const FileReplacement two(path_);
  EXPECT_NE(one.temporary(), two.temporary());
  EXPECT_TRUE(one.temporary().starts_with(path_ + "."));
  EXPECT_EQ(one.temporary().size(), path_.size() + 21);
  EXPECT_TRUE(fs::exists(one.temporary()));  // the second did not take it for a leftover
}

TEST_F(FileReplacements, LeftoversOfKilledProgramsAreRemovedAndNothingElse) {
  std::string killed;
  {
    FileReplacement file(path_);
    killed = file.temporary();
    file.write("half");
    fs::create_hard_link(killed, folder_ / "kept");
  }
  fs::rename(folder_ / "kept", killed);  // as kill -9 would have left it
  const fs::path victim = folder_ / "victim";
  store(victim, "dear");
  const std::string link = path_ + ".0123456789abcdef.tmp";
  fs::create_symlink(victim, link);
  const std::string similar = path_ + ".0123456789abcdeX.tmp";
  store(similar, "mine");
  const std::string other = (folder_ / "other.ample.0123456789abcdef.tmp").string();
  store(other, "of another target");
  replace(path_, "new");
  EXPECT_FALSE(fs::exists(killed));
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(bytes_of(victim), "dear");
  EXPECT_EQ(bytes_of(similar), "mine");
  EXPECT_EQ(bytes_of(other), "of another target");
  EXPECT_EQ(bytes_of(path_), "new");
}

TEST_F(FileReplacements, ResumeWhereTheLastStopped) {
  {
    FileReplacement file = FileReplacement::resume(path_);
    file.write("half ");
    EXPECT_EQ(error_of([&] { FileReplacement::resume(path_); }, path_),
              "cannot write: another program is writing it");
  }
  EXPECT_FALSE(fs::exists(path_));
  {
    FileReplacement file = FileReplacement::resume(path_);
    EXPECT_EQ(file.size(), 5U);
    file.write("whole");
    file.commit();
  }
  EXPECT_EQ(bytes_of(path_), "half whole");
  {
    FileReplacement file = FileReplacement::resume(path_);
    file.write("wrong");
    file.clear();
    file.write("right");
    file.commit();
  }
  EXPECT_EQ(bytes_of(path_), "right");
  {
    const FileReplacement nothing = FileReplacement::resume(path_);
  }
  EXPECT_EQ(files(), 1U);
}

TEST_F(FileReplacements, ResumeFollowsNoLinkAndNoSecondName) {
  const fs::path victim = folder_ / "victim";
  store(victim, "dear");
  const std::string part = path_ + ".part";
  fs::create_symlink(victim, part);
  EXPECT_EQ(error_of([&] { FileReplacement::resume(path_); }, path_),
            "cannot write: Too many levels of symbolic links");
  fs::remove(part);
  fs::create_hard_link(victim, part);
  EXPECT_EQ(error_of([&] { FileReplacement::resume(path_); }, path_),
            "cannot write: " + part + " is not a plain file");
  EXPECT_EQ(bytes_of(victim), "dear");
}

}  // namespace
}  // namespace ample
