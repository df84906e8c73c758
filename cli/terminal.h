// What a person at a terminal sees: progress while waiting, tables at the end. On a pipe, nothing.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ample/batch_report.h"
#include "stopwatch.h"

namespace ample::cli {

[[nodiscard]] bool is_terminal(std::FILE* stream);

/// One line on standard error that is rewritten, and cleared at the end.
class StatusLine {
 public:
  StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  StatusLine(StatusLine&&) = delete;
  StatusLine& operator=(StatusLine&&) = delete;
  ~StatusLine();

  [[nodiscard]] bool visible() const { return visible_; }
  void show(std::string_view text) const;

 private:
  bool visible_;
};

/// A status line that changes after each batch.
class Progress {
 public:
  /// `total`: batches to come, 0 if not known.
  explicit Progress(Index total);

  void show(const BatchReport& report);

 private:
  StatusLine line_;
  Index total_;
  Index batches_ = 0;
  Index rows_ = 0;
  Stopwatch watch_;
};

/// Names and values, one pair a line, the values aligned; made visible, whatever they hold.
using Pairs = std::vector<std::pair<std::string, std::string>>;
void print_pairs(const Pairs& pairs);

}  // namespace ample::cli
