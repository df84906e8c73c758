#include "interrupt.h"

#include <csignal>
#include <fcntl.h>
#include <unistd.h>

namespace ample::cli {
namespace {

volatile std::sig_atomic_t signal_received = 0;
int nothing_to_read = -1;

// A blocked read of standard input returns with EINTR and is tried again: now it finds the end.
extern "C" void note_signal(int signal) {
  signal_received = signal;
  ::dup2(nothing_to_read, STDIN_FILENO);
}

}  // namespace

void watch_for_signals() {
  nothing_to_read = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  struct sigaction action = {};
  action.sa_handler = note_signal;
  // Without SA_RESTART, so that a blocked read returns.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

int interrupted() { return signal_received; }

void stop_if_interrupted() {
  if (signal_received != 0) throw Interrupted{signal_received};
}

}  // namespace ample::cli
