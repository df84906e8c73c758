// Files that the program writes: complete or not at all.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "file_replacement.h"

namespace ample::cli {

/// To standard output. Throws DataError if it cannot be written, Interrupted if nobody reads it.
void print(std::string_view text);
template <class First, class... Rest>
void print(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest) {
  print(std::string_view(
      fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...)));
}

/// Whether a path is "-" or another name of standard output, such as /dev/stdout.
bool is_standard_output(const std::string& path);

/// Throws UsageError if a report to standard output would be mixed with a summary that is asked
/// for.
void check_report(const std::string& path, bool json);

/// Throws ModelFileError if a model could not be saved there; leaves no trace.
void check_can_save(const std::string& path);

/// Text to a file, which appears with finish(), or, as it comes, to standard output, a pipe or a
/// device. Throws DataError if it cannot be written.
class TextOutput {
 public:
  /// An empty path is standard output too.
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
  std::optional<FileReplacement> file_;  // else:
  std::FILE* stream_ = nullptr;
};

}  // namespace ample::cli
