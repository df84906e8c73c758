#include "input.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "errors.h"
#include "interrupt.h"

namespace ample::cli {
namespace {

bool is_regular(int descriptor) {
  struct stat status = {};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

Input::Input(const std::string& path)
    : descriptor_(path == "-" ? STDIN_FILENO
                              : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)),
      owned_(path != "-"),
      name_(path == "-" ? "standard input" : path) {
  if (descriptor_ < 0) fail("open");
  is_file_ = is_regular(descriptor_);
}

Input::Input(int descriptor, std::string name)
    : descriptor_(descriptor),
      owned_(false),
      name_(std::move(name)),
      is_file_(is_regular(descriptor)) {}

Input::~Input() {
  if (owned_) ::close(descriptor_);
}

void Input::wait_for_bytes() const {
  std::array<pollfd, 2> both{{{descriptor_, POLLIN, 0}, {signal_descriptor(), POLLIN, 0}}};
  while (::poll(both.data(), both.size(), -1) < 0 && errno == EINTR) stop_if_interrupted();
}

std::size_t Input::read(char* into, std::size_t size) {
  for (;;) {
    stop_if_interrupted();
    if (!is_file_) {
      wait_for_bytes();
      stop_if_interrupted();
    }
    const ssize_t count = ::read(descriptor_, into, size);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR && errno != EAGAIN) fail("read");
  }
}

void Input::fail(const char* what) const {
  throw DataError(fmt::format("{}: cannot {}: {}", name_, what, std::strerror(errno)));
}

}  // namespace ample::cli
