// What a refusal says.
#pragma once

#include <stdexcept>
#include <string>

namespace ample::testing {

/// The message of the invalid_argument that `body` throws.
template <class Body>
std::string message(const Body& body) {
  try {
    body();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace ample::testing
