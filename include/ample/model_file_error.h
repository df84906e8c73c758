// What is wrong with a model file, as one line: the file, what is wrong, got, expected.
#pragma once

#include <stdexcept>

namespace ample {

/// A model file that is missing, damaged, not in the expected format, or cannot be written.
struct ModelFileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace ample
