// Characters, names and near misses in the text form of kernels.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ample {

constexpr std::string_view kDims = "dims";
constexpr std::string_view kIn = "in";
constexpr std::string_view kFixed = "fixed";

// The functions of <cctype> depend on the locale.
constexpr bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool is_word(char c) { return is_letter(c) || is_digit(c); }
constexpr bool starts_number(char c) { return is_digit(c) || c == '.' || c == '-'; }

std::string lower_case(std::string_view text);

/// A piece of the text for a message, which stays one short line whatever the piece.
std::string quoted(std::string_view piece);

/// "variance, lengthscale or dims".
std::string alternatives(const std::vector<std::string_view>& names);

/// " (did you mean lengthscale?)", or nothing when no candidate is near.
std::string suggestion(std::string_view name, const std::vector<std::string_view>& candidates);

}  // namespace ample
