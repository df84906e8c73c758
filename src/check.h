// Checks of a caller's arguments, in one form: "predict: X has 3 columns, but must have 5 (…)".
#pragma once

#include <cmath>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include "ample/types.h"

namespace ample {

/// A bug in the library itself; checked in every build, because a silent one costs a user's data.
#define AMPLE_ASSERT(condition)                                                                  \
  do {                                                                                           \
    if (!(condition)) {                                                                          \
      throw std::logic_error(fmt::format("internal error: {} does not hold ({}:{})", #condition, \
                                         __FILE__, __LINE__));                                   \
    }                                                                                            \
  } while (false)

template <class... Args>
[[noreturn]] void invalid(fmt::format_string<Args...> format, Args&&... args) {
  throw std::invalid_argument(fmt::format(format, std::forward<Args>(args)...));
}

inline void check_columns(std::string_view where, std::string_view what, Index got, Index expected,
                          std::string_view why) {
  if (got != expected) {
    invalid("{}: {} has {} column{}, but must have {} ({})", where, what, got, got == 1 ? "" : "s",
            expected, why);
  }
}

inline void check_rows(std::string_view where, std::string_view what, Index got, Index expected,
                       std::string_view why) {
  if (got != expected) {
    invalid("{}: {} has {} row{}, but must have {} ({})", where, what, got, got == 1 ? "" : "s",
            expected, why);
  }
}

inline void check_finite(std::string_view where, std::string_view what, const MatrixRef& values) {
  // One pass with a sum is several times faster than a test per entry; only a bad sum is searched.
  if (std::isfinite(values.sum())) return;
  for (Index j = 0; j < values.cols(); ++j) {
    for (Index i = 0; i < values.rows(); ++i) {
      if (!std::isfinite(values(i, j))) {
        invalid("{}: {} holds {} in row {}, column {}, but every value must be finite", where, what,
                values(i, j), i, j);
      }
    }
  }
}

inline void check_positive(std::string_view where, std::string_view what, double value) {
  if (!(value > 0.0) || !std::isfinite(value)) {
    invalid("{}: {} is {}, but must be positive and finite", where, what, value);
  }
}

}  // namespace ample
