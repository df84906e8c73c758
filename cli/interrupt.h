// Stopping on SIGINT, SIGTERM and SIGHUP without losing what was learnt: the signal is noted, and
// the program asks for it where it can stop. Another signal, two seconds later or more, ends it at
// once.
#pragma once

#include <functional>
#include <memory>
#include <thread>

namespace ample::cli {

/// Thrown to leave a command that was told to stop, by a signal or by a closed pipe.
struct Interrupted {
  int signal;
};

/// From here on the signals are noted. A SIGHUP that is ignored, by nohup(1), stays ignored.
void watch_for_signals();

/// The signal that came, or 0.
[[nodiscard]] int interrupted();

/// Throws Interrupted if a signal came.
void stop_if_interrupted();

/// For whoever asks whether to stop, a fit say: throws Interrupted if a signal came, else false.
bool stop_on_signal();

/// Readable once a signal came, for poll(2) beside what is waited for. -1 before
/// watch_for_signals().
[[nodiscard]] int signal_descriptor();

/// A thread that no signal interrupts: they go to the thread that works, where what blocks is to
/// return.
[[nodiscard]] std::thread without_signals(std::function<void()> work);

/// For work that cannot ask: while it lives, a signal that was not heeded within half a second
/// calls `last` from another thread, and if that returns true the program ends with 128 + the
/// signal.
class Deadline {
 public:
  explicit Deadline(std::function<bool(int signal)> last);
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  Deadline(Deadline&&) = delete;
  Deadline& operator=(Deadline&&) = delete;
  /// Waits for `last` if it is at work.
  ~Deadline();

 private:
  struct Watch;
  std::unique_ptr<Watch> watch_;
};

}  // namespace ample::cli
