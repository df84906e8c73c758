#include "kernel_words.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ample {
namespace {

/// Levenshtein's distance: the fewest insertions, deletions and substitutions from a to b.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string quoted(std::string_view piece) {
  constexpr std::size_t kLongest = 40;
  if (piece.size() <= kLongest) return fmt::format("'{}'", piece);
  return fmt::format("'{}...'", piece.substr(0, kLongest));
}

std::string alternatives(const std::vector<std::string_view>& names) {
  if (names.size() == 1) return std::string(names.front());
  return fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

std::string suggestion(std::string_view name, const std::vector<std::string_view>& candidates) {
  std::size_t best = std::max<std::size_t>(1, name.size() / 3) + 1;
  std::string_view nearest;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest);
}

}  // namespace ample
