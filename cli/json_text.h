// JSON as the program prints it: valid whatever its texts hold, and harmless on a terminal.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace ample::cli {

/// DEL and C1, which JSON allows to stand as they are and terminals obey, become \u00NN. Texts that
/// may not be UTF-8 go through visible() first; what slips through becomes U+FFFD.
template <class Json>
[[nodiscard]] std::string to_text(const Json& json, int indent = -1) {
  const std::string raw = json.dump(indent, ' ', false, Json::error_handler_t::replace);
  std::string text;
  text.reserve(raw.size());
  constexpr const char* kHex = "0123456789abcdef";
  const auto escape = [&](unsigned char byte) {
    text += "\\u00";
    text += kHex[byte >> 4];
    text += kHex[byte & 0xF];
  };
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const auto byte = static_cast<unsigned char>(raw[i]);
    const auto next = static_cast<unsigned char>(i + 1 < raw.size() ? raw[i + 1] : 0);
    if (byte == 0x7F) {
      escape(byte);
    } else if (byte == 0xC2 && next < 0xA0) {
      escape(next);
      ++i;
    } else {
      text += raw[i];
    }
  }
  return text;
}

}  // namespace ample::cli
