// Stopping on SIGINT and SIGTERM without losing what was learnt: the signal is noted, and the
// program asks for it where it can stop. Another signal, two seconds later or more, ends it at
// once.
#pragma once

namespace ample::cli {

/// Thrown to leave a command that was told to stop.
struct Interrupted {
  int signal;
};

/// From here on the two signals are noted. A program that waits for standard input sees its end, so
/// whoever reads it must ask `interrupted()` before using what came last.
void watch_for_signals();

/// The signal that came, or 0.
[[nodiscard]] int interrupted();

/// Throws Interrupted if a signal came.
void stop_if_interrupted();

/// For whoever asks whether to stop, a fit say: throws Interrupted if a signal came, else false.
bool stop_on_signal();

}  // namespace ample::cli
