// What a user can get wrong, told apart because the program answers each with its own exit code.
// The message is one line: what, got, expected.
#pragma once

#include <stdexcept>

namespace ample::cli {

/// An option, method or value on the command line that does not make sense.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A data file that is missing, unreadable or not the table of numbers it should be.
struct DataError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace ample::cli
