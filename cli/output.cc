#include "output.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "ample/model_file_error.h"
#include "errors.h"

namespace ample::cli {
namespace {

/// The file itself if the path is a link to one: a link stays a link.
std::string target_of(const std::string& path) {
  std::error_code error;
  const std::filesystem::path existing = std::filesystem::canonical(path, error);
  return error ? path : existing.string();
}

/// A pipe or a device, which is written to rather than replaced.
bool is_special(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

}  // namespace

void check_can_save(const std::string& path) {
  if (is_special(path)) {
    throw ModelFileError(fmt::format("{}: cannot write: it is not a regular file", path));
  }
  // A model is written beside its file and renamed, so it is the folder that must let us.
  const std::string probe = fmt::format("{}.{}.probe", target_of(path), ::getpid());
  const int descriptor = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    throw ModelFileError(fmt::format("{}: cannot write: {}", path, std::strerror(errno)));
  }
  ::close(descriptor);
  ::unlink(probe.c_str());
}

TextOutput::TextOutput(const std::string& path) : path_(path), file_(stdout) {
  if (path.empty()) return;
  if (!is_special(path)) temporary_ = fmt::format("{}.{}.tmp", target_of(path), ::getpid());
  file_ = std::fopen((temporary_.empty() ? path : temporary_).c_str(), "we");
  if (file_ == nullptr) {
    temporary_.clear();
    fail();
  }
}

TextOutput::~TextOutput() {
  if (file_ != nullptr && file_ != stdout) std::fclose(file_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void TextOutput::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) fail();
}

void TextOutput::finish() {
  if (std::fflush(file_) != 0) fail();
  if (temporary_.empty()) return;
  if (std::rename(temporary_.c_str(), target_of(path_).c_str()) != 0) fail();
  temporary_.clear();
}

void TextOutput::fail() const {
  throw DataError(fmt::format("{}: cannot write: {}", path_.empty() ? "standard output" : path_,
                              std::strerror(errno)));
}

}  // namespace ample::cli
