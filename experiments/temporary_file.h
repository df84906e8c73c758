// A file that is gone when it is no longer needed.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <unistd.h>

#include "errors.h"

namespace ample::experiments {

class TemporaryFile {
 public:
  TemporaryFile() : path_((std::filesystem::temp_directory_path() / "ample-XXXXXX").string()) {
    const int file = ::mkstemp(path_.data());
    if (file < 0) throw cli::DataError("cannot make a temporary file " + path_);
    ::close(file);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  TemporaryFile(TemporaryFile&&) = delete;
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace ample::experiments
