// Seconds since it was made, on a clock that never goes back.
#pragma once

#include <chrono>

namespace ample {

class Stopwatch {
 public:
  /// `before`: seconds that count already.
  explicit Stopwatch(double before = 0.0) : before_(before) {}

  [[nodiscard]] double seconds() const {
    return before_ + std::chrono::duration<double>(Clock::now() - start_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  double before_;
  Clock::time_point start_ = Clock::now();
};

}  // namespace ample
