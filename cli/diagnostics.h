// What the program says of itself on standard error. A standard error that is full, closed or a
// broken pipe never ends it.
#pragma once

#include <string_view>

namespace ample::cli {

/// The line "WHO: MESSAGE", in one write and with nothing in it that could act on a terminal.
void say(std::string_view who, std::string_view message);

/// As it is, for what was made for a terminal.
void write_to_stderr(std::string_view text);

}  // namespace ample::cli
