// Text from elsewhere, a file, a path, a name, made fit to be shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ample {

[[nodiscard]] bool is_utf8(std::string_view text);

/// On one line of any terminal, with no power over it: control characters (C0, DEL and C1), marks
/// that change the direction of writing and bytes that are not UTF-8 become \xNN. More than
/// `longest` bytes are cut, between characters, and end in "...". What is visible already stays as
/// it is.
[[nodiscard]] std::string visible(std::string_view text,
                                  std::size_t longest = std::string_view::npos);

}  // namespace ample
