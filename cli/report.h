// One JSON object a batch, one line each, as they happen; docs/cli.md lists the fields.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "ample/continual_gp.h"

namespace ample::cli {

/// How well the observations of a test file are predicted.
struct Score {
  double rmse;
  double nlpd;
};

class Report {
 public:
  /// Replaces the file, unless it is standard output. Throws DataError if it cannot be written.
  explicit Report(const std::string& path);
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;
  Report(Report&&) = delete;
  Report& operator=(Report&&) = delete;
  ~Report();

  /// Writes the line through, so that others can follow it.
  void add(const BatchReport& batch, const std::optional<Score>& score);

 private:
  std::string path_;
  std::FILE* file_;
};

/// The line, without its end.
[[nodiscard]] std::string to_json_line(const BatchReport& batch, const std::optional<Score>& score);

}  // namespace ample::cli
