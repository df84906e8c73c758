#include "visible_text.h"

#include <fmt/format.h>

namespace ample {
namespace {

/// A character of UTF-8, or one byte that is none.
struct Character {
  std::size_t bytes;
  char32_t code;
  bool valid;
};

Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {1, lead, true};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {1, 0, false};
  char32_t code = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {1, 0, false};
    code = (code << 6) | (byte(i) & 0x3FU);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (overlong || surrogate || code > 0x10FFFF) return {1, 0, false};
  return {bytes, code, true};
}

bool is_harmless(char32_t code) {
  const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0);
  const bool line_end = code == 0x2028 || code == 0x2029;
  const bool direction = code == 0x061C || code == 0x200E || code == 0x200F ||
                         (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  return !control && !line_end && !direction;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Character character = first_character(text);
    if (!character.valid) return false;
    text.remove_prefix(character.bytes);
  }
  return true;
}

std::string visible(std::string_view text, std::size_t longest) {
  std::string line;
  while (!text.empty()) {
    const Character character = first_character(text);
    const std::string_view bytes = text.substr(0, character.bytes);
    std::string shown(bytes);
    if (!character.valid || !is_harmless(character.code)) {
      shown.clear();
      for (const char c : bytes) {
        shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      }
    }
    if (longest != std::string_view::npos && line.size() + shown.size() > longest) {
      return line + "...";
    }
    line += shown;
    text.remove_prefix(character.bytes);
  }
  return line;
}

}  // namespace ample
