#include "model_file.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "file_replacement.h"
#include "interrupt.h"
#include "output.h"

namespace ample::cli {
namespace {

// flock(2) can wait by itself, but not together with a signal that came just before.
constexpr std::chrono::milliseconds kBetweenTries{20};

}  // namespace

ModelFile::ModelFile(std::string path, bool wait) : path_(std::move(path)) { lock(wait); }

ModelFile::~ModelFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void ModelFile::lock(bool wait) {
  for (;;) {
    const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) {
      absent_ = errno == ENOENT;
      return;
    }
    if (::flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
      remember(file);
      if (is_as_before()) return;
      ::close(std::exchange(descriptor_, -1));  // whoever had it put a new one in its place
      continue;
    }
    ::close(file);
    if (!wait) {
      throw ModelFileError(fmt::format(
          "{}: another program is updating it; --wait waits until it has finished", path_));
    }
    stop_if_interrupted();
    std::this_thread::sleep_for(kBetweenTries);
  }
}

void ModelFile::check_can_save() const { cli::check_can_save(path_); }

void ModelFile::remember(int descriptor) {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = descriptor;
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) return;
  device_ = status.st_dev;
  number_ = status.st_ino;
  changed_ = status.st_mtim;
}

bool ModelFile::is_as_before() const {
  struct stat status = {};
  if (::stat(path_.c_str(), &status) != 0) return true;  // gone: nothing would be overwritten
  if (descriptor_ < 0) return !absent_;
  return status.st_dev == device_ && status.st_ino == number_ &&
         status.st_mtim.tv_sec == changed_.tv_sec && status.st_mtim.tv_nsec == changed_.tv_nsec;
}

void ModelFile::save(const ContinualGP& model, const Notes& notes) {
  const std::string bytes = to_bytes(model, notes);
  try {
    FileReplacement file(path_);
    file.write(bytes);
    if (!is_as_before()) {
      throw ModelFileError(fmt::format(
          "{}: changed by another program meanwhile, expected it as it was; not overwritten",
          path_));
    }
    file.commit();
    remember(file.release());
  } catch (const FileError& error) {
    throw ModelFileError(error.what());
  }
}

}  // namespace ample::cli
