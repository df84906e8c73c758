#include "output.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "ample/model_file_error.h"
#include "errors.h"
#include "interrupt.h"

namespace ample::cli {
namespace {

/// A pipe or a device, which is written to rather than replaced.
bool is_special(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

}  // namespace

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size()) return;
  if (errno == EPIPE) throw Interrupted{SIGPIPE};
  throw DataError(fmt::format("standard output: cannot write: {}", std::strerror(errno)));
}

bool is_standard_output(const std::string& path) {
  if (path == "-") return true;
  struct stat output = {};
  struct stat status = {};
  if (::fstat(STDOUT_FILENO, &output) != 0 || ::stat(path.c_str(), &status) != 0) return false;
  if (S_ISCHR(output.st_mode) && ::isatty(STDOUT_FILENO) == 0) return false;  // /dev/null
  return status.st_dev == output.st_dev && status.st_ino == output.st_ino;
}

void check_report(const std::string& path, bool json) {
  if (json && is_standard_output(path)) {
    throw UsageError("--report and --json are both for standard output, expected one of them");
  }
}

void check_can_save(const std::string& path) {
  try {
    check_replaceable(path);
  } catch (const FileError& error) {
    throw ModelFileError(error.what());
  }
}

TextOutput::TextOutput(const std::string& path) : path_(path) {
  if (path.empty() || is_standard_output(path)) {
    stream_ = stdout;
  } else if (is_special(path)) {
    stream_ = std::fopen(path.c_str(), "we");
    if (stream_ == nullptr) fail();
  } else {
    try {
      file_.emplace(path);
    } catch (const FileError& error) {
      throw DataError(error.what());
    }
  }
}

TextOutput::~TextOutput() {
  if (stream_ != nullptr && stream_ != stdout) std::fclose(stream_);
}

void TextOutput::write(std::string_view text) {
  if (file_) {
    try {
      file_->write(text);
    } catch (const FileError& error) {
      throw DataError(error.what());
    }
  } else if (std::fwrite(text.data(), 1, text.size(), stream_) != text.size()) {
    fail();
  }
}

void TextOutput::finish() {
  if (file_) {
    try {
      file_->commit();
    } catch (const FileError& error) {
      throw DataError(error.what());
    }
  } else if (std::fflush(stream_) != 0) {
    fail();
  }
}

void TextOutput::fail() const {
  if (errno == EPIPE) throw Interrupted{SIGPIPE};
  throw DataError(fmt::format("{}: cannot write: {}", path_.empty() ? "standard output" : path_,
                              std::strerror(errno)));
}

}  // namespace ample::cli
