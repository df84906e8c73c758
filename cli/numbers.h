// Numbers of options, read as they are written: 010 is ten, and a number that does not fit is
// refused, not bent until it does. Given to an option's transform().
#pragma once

#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace ample::cli {

namespace detail {

/// Parses the whole text; "" or what is wrong with it.
template <class Number>
std::string read_number(std::string_view text, Number lowest, const char* kind, Number& value) {
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const char* const end = digits.data() + digits.size();
  const auto [stop, problem] = std::from_chars(digits.data(), end, value);
  const bool is_number = problem != std::errc::invalid_argument && stop == end;
  if (is_number && problem == std::errc::result_out_of_range) {
    return fmt::format("is '{}', expected a {} from {} to {}", text, kind, lowest,
                       std::numeric_limits<Number>::max());
  }
  const bool good = is_number && std::isfinite(static_cast<double>(value)) && value >= lowest;
  if (good) return {};
  return std::is_signed_v<Number> && lowest == std::numeric_limits<Number>::lowest()
             ? fmt::format("is '{}', expected a {}", text, kind)
             : fmt::format("is '{}', expected a {} from {} on", text, kind, lowest);
}

}  // namespace detail

/// Of the option's type. CLI11 takes a leading 0 for octal, so it gets the number without it.
template <class Integer>
CLI::Validator whole_number(Integer lowest = std::numeric_limits<Integer>::lowest()) {
  return CLI::Validator(
      [lowest](std::string& text) {
        Integer value = 0;
        std::string problem = detail::read_number(text, lowest, "whole number", value);
        if (problem.empty()) text = fmt::format("{}", value);
        return problem;
      },
      "");
}

inline CLI::Validator real_number(double lowest = std::numeric_limits<double>::lowest()) {
  return CLI::Validator(
      [lowest](std::string& text) {
        double value = 0.0;
        std::string problem = detail::read_number(text, lowest, "number", value);
        if (problem.empty() && text.starts_with('+')) text.erase(0, 1);
        return problem;
      },
      "");
}

}  // namespace ample::cli
