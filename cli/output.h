// Files that the program writes: complete or not at all.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace ample::cli {

/// Throws ModelFileError if a model could not be saved there; leaves no trace.
void check_can_save(const std::string& path);

/// Text to a file, which appears with finish(), or to standard output, as it comes. Throws
/// DataError if it cannot be written.
class TextOutput {
 public:
  /// An empty path is standard output.
  explicit TextOutput(const std::string& path);
  TextOutput(const TextOutput&) = delete;
  TextOutput& operator=(const TextOutput&) = delete;
  TextOutput(TextOutput&&) = delete;
  TextOutput& operator=(TextOutput&&) = delete;
  ~TextOutput();

  void write(std::string_view text);
  void finish();

 private:
  [[noreturn]] void fail() const;

  std::string path_;
  std::string temporary_;  // beside the file, until it is renamed to it
  std::FILE* file_;
};

}  // namespace ample::cli
