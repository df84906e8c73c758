#include "interrupt.h"

#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <unistd.h>

namespace ample::cli {
namespace {

volatile std::sig_atomic_t signal_received = 0;
volatile std::sig_atomic_t time_of_signal = 0;  // when the first came, in seconds
int nothing_to_read = -1;

// Of one and the same wish to stop: timeout(1) sends its signal to the program and to its group.
constexpr std::time_t kSameWishSeconds = 2;

std::time_t now() {
  timespec time = {};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec;
}

// A blocked read of standard input returns with EINTR and is tried again: now it finds the end.
extern "C" void note_signal(int signal) {
  if (signal_received == 0) {
    signal_received = signal;
    time_of_signal = static_cast<std::sig_atomic_t>(now());
    ::dup2(nothing_to_read, STDIN_FILENO);
  } else if (now() - time_of_signal >= kSameWishSeconds) {
    std::signal(signal, SIG_DFL);
    ::raise(signal);
  }
}

}  // namespace

void watch_for_signals() {
  nothing_to_read = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  struct sigaction action = {};
  action.sa_handler = note_signal;
  // Without SA_RESTART, so that a blocked read returns.
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

int interrupted() { return signal_received; }

void stop_if_interrupted() {
  if (signal_received != 0) throw Interrupted{signal_received};
}

bool stop_on_signal() {
  stop_if_interrupted();
  return false;
}

}  // namespace ample::cli
