// Text of unknown encoding as UTF-8. Names go into model files and reports, which are JSON.
#pragma once

#include <string>
#include <string_view>

#include "visible_text.h"

namespace ample::cli {

/// What is not UTF-8 is taken for Latin-1: spreadsheets that do not write the one write the other,
/// or something that is at least still readable as such.
inline std::string to_utf8(std::string_view text) {
  if (is_utf8(text)) return std::string(text);
  std::string utf8;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      utf8 += c;
    } else {
      utf8 += static_cast<char>(0xC0 | (byte >> 6));
      utf8 += static_cast<char>(0x80 | (byte & 0x3F));
    }
  }
  return utf8;
}

}  // namespace ample::cli
