#include "interrupt.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <memory>
#include <poll.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace ample::cli {
namespace {

// Of a kind that a handler and any thread may use.
std::atomic<int> signal_received = 0;
std::atomic<std::time_t> time_of_signal = 0;  // when the first came, in seconds
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<std::time_t>::is_always_lock_free);
std::array<int, 2> wake_pipe{-1, -1};

// Of one and the same wish to stop: timeout(1) sends its signal to the program and to its group.
constexpr std::time_t kSameWishSeconds = 2;

constexpr int kPatienceMilliseconds = 500;

std::time_t now() {
  timespec time = {};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec;
}

extern "C" void note_signal(int signal) {
  const int saved_errno = errno;
  if (signal_received == 0) {
    signal_received = signal;
    time_of_signal = now();
    // Whoever waits is woken; the byte is never taken out.
    const ssize_t ignored = ::write(wake_pipe[1], "!", 1);
    static_cast<void>(ignored);
  } else if (now() - time_of_signal >= kSameWishSeconds) {
    std::signal(signal, SIG_DFL);
    ::raise(signal);
  }
  errno = saved_errno;
}

}  // namespace

void watch_for_signals() {
  if (wake_pipe[0] < 0 && ::pipe2(wake_pipe.data(), O_CLOEXEC | O_NONBLOCK) != 0) return;
  struct sigaction action = {};
  action.sa_handler = note_signal;
  // Without SA_RESTART, so that what blocks returns.
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction hangup = {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
}

int interrupted() { return signal_received; }

void stop_if_interrupted() {
  if (signal_received != 0) throw Interrupted{signal_received};
}

bool stop_on_signal() {
  stop_if_interrupted();
  return false;
}

int signal_descriptor() { return wake_pipe[0]; }

std::thread without_signals(std::function<void()> work) {
  sigset_t all = {};
  sigset_t before = {};
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(work));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

// --- Deadline -----------------------------------------------------------------------------------

struct Deadline::Watch {
  std::array<int, 2> done{-1, -1};  // closed at its writing end when the work is over
  std::function<bool(int)> last;
  std::thread thread;

  void wait() const {
    std::array<pollfd, 2> both{{{signal_descriptor(), POLLIN, 0}, {done[0], POLLIN, 0}}};
    while (::poll(both.data(), both.size(), -1) < 0 && errno == EINTR) {
    }
    if (both[1].revents != 0) return;
    pollfd over{done[0], POLLIN, 0};
    while (::poll(&over, 1, kPatienceMilliseconds) < 0 && errno == EINTR) {
    }
    if (over.revents != 0) return;
    if (last(interrupted())) ::_exit(128 + interrupted());
  }
};

Deadline::Deadline(std::function<bool(int signal)> last) {
  auto watch = std::make_unique<Watch>();
  if (signal_descriptor() < 0 || ::pipe2(watch->done.data(), O_CLOEXEC) != 0) return;
  watch->last = std::move(last);
  watch->thread = without_signals([watch = watch.get()] { watch->wait(); });
  watch_ = std::move(watch);
}

Deadline::~Deadline() {
  if (!watch_) return;
  ::close(watch_->done[1]);
  watch_->thread.join();
  ::close(watch_->done[0]);
}

}  // namespace ample::cli
