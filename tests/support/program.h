// The program as its users meet it: run with arguments, judged by what it prints, writes and
// returns.
#pragma once

#include <array>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "support/paths.h"

namespace ample::testing {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

struct Result {
  int code = -1;  // exit code, or -signal
  std::string out;
  std::string err;
};

inline std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// A running program, with the test at the other end of its standard input.
class Program {
 public:
  /// Its output goes to files in the folder or, if given, to `screen`.
  Program(const fs::path& folder, const Arguments& arguments, int screen = -1,
          std::string name = paths::program())
      : folder_(folder) {
    std::array<int, 2> input{};
    if (::pipe2(input.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    std::vector<char*> argv;
    argv.push_back(name.data());
    Arguments copy = arguments;
    for (std::string& argument : copy) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(input[0], STDIN_FILENO);
      const int flags = O_WRONLY | O_CREAT | O_TRUNC;
      const auto output = [&](const char* file, int descriptor) {
        ::dup2(screen >= 0 ? screen : ::open((folder / file).c_str(), flags, 0600), descriptor);
      };
      output("stdout", STDOUT_FILENO);
      output("stderr", STDERR_FILENO);
      if (::chdir(folder.c_str()) != 0) ::_exit(126);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(input[0]);
    input_ = input[1];
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  Program(Program&&) = delete;
  Program& operator=(Program&&) = delete;
  ~Program() {
    close_input();
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }

  void write(const std::string& text) const {
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t count = ::write(input_, text.data() + done, text.size() - done);
      if (count < 0) return;  // it does not want to know
      done += static_cast<std::size_t>(count);
    }
  }
  void close_input() {
    if (input_ >= 0) ::close(input_);
    input_ = -1;
  }
  void signal(int number) const { ::kill(pid_, number); }

  Result wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status),
            bytes_of(folder_ / "stdout"), bytes_of(folder_ / "stderr")};
  }

 private:
  fs::path folder_;
  pid_t pid_ = 0;
  int input_ = -1;
};

/// A test in a folder of its own, where the program runs.
class ProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);
    std::string name = (fs::temp_directory_path() / "ample-cli-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  void store(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  [[nodiscard]] std::string stored(const std::string& name) const {
    return bytes_of(folder_ / name);
  }

  [[nodiscard]] Result run(const Arguments& arguments, const std::string& input = "") const {
    Program program(folder_, arguments, -1, program_);
    program.write(input);
    program.close_input();
    return program.wait();
  }

  /// Runs what must work, with nothing to say on standard error.
  std::string succeed(const Arguments& arguments, const std::string& input = "") const {
    const Result result = run(arguments, input);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return result.out;
  }

  /// Runs what must fail: with this code, this one line, and nothing on standard output.
  void fail(const Arguments& arguments, int code, const std::string& message,
            const std::string& input = "") const {
    const Result result = run(arguments, input);
    std::string command = fs::path(program_).filename().string();
    for (std::size_t i = 0; i < command_words_; ++i) command += " " + arguments[i];
    EXPECT_EQ(result.code, code) << fmt::format("{}", fmt::join(arguments, " "));
    EXPECT_EQ(result.err, fmt::format("{}: {}\n", command, message));
    EXPECT_EQ(result.out, "");
  }

  /// What a person at a terminal sees of a run that works.
  [[nodiscard]] std::string seen_on_terminal(const Arguments& arguments) const {
    const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0 || ::grantpt(terminal) != 0 || ::unlockpt(terminal) != 0) {
      throw std::runtime_error("no terminal");
    }
    const int screen = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
    Program program(folder_, arguments, screen, program_);
    ::close(screen);
    std::string seen;
    std::array<char, 4096> block{};
    for (ssize_t n = 0; (n = ::read(terminal, block.data(), block.size())) > 0;) {
      seen.append(block.data(), static_cast<std::size_t>(n));
    }
    ::close(terminal);
    EXPECT_EQ(program.wait().code, 0) << seen;
    return seen;
  }

  fs::path folder_;
  std::string program_ = paths::program();
  std::size_t command_words_ = 1;  // how many arguments name the command
};

}  // namespace ample::testing
