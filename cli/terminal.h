// What a person at a terminal sees: progress while waiting, tables at the end. On a pipe, nothing.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "ample/continual_gp.h"

namespace ample::cli {

[[nodiscard]] bool is_terminal(std::FILE* stream);

/// One line on standard error, rewritten after each batch.
class Progress {
 public:
  /// `total`: batches to come, 0 if not known.
  explicit Progress(Index total);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  Progress(Progress&&) = delete;
  Progress& operator=(Progress&&) = delete;
  ~Progress();  // clears the line

  void show(const BatchReport& report);

 private:
  bool visible_;
  Index total_;
  Index batches_ = 0;
  Index rows_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Names and values, one pair a line, the values aligned.
using Pairs = std::vector<std::pair<std::string, std::string>>;
void print_pairs(const Pairs& pairs);

}  // namespace ample::cli
