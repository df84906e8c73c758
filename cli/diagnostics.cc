#include "diagnostics.h"

#include <cerrno>
#include <string>
#include <unistd.h>

#include <fmt/format.h>

#include "visible_text.h"

namespace ample::cli {

void write_to_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count < 0 && errno != EINTR) return;
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
  }
}

void say(std::string_view who, std::string_view message) {
  write_to_stderr(fmt::format("{}: {}\n", who, visible(message)));
}

}  // namespace ample::cli
