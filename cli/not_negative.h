// A number from 0 on, as the check of an option. CLI11's own answers with the largest number there
// is, in three hundred digits.
#pragma once

#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace ample::cli {

inline CLI::Validator not_negative() {
  const auto check = [](const std::string& text) {
    double value = 0.0;
    const bool fine = CLI::detail::lexical_cast(text, value) && value >= 0.0;
    return fine ? std::string() : fmt::format("is '{}', expected a number from 0 on", text);
  };
  return CLI::Validator(check, "");
}

}  // namespace ample::cli
