#include "parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "ample/threads.h"

namespace ample {
namespace {

// True on a thread that runs one of several pieces: what it calls in turn it runs alone.
thread_local bool inside_a_piece = false;

struct InsideAPiece {
  bool already = std::exchange(inside_a_piece, true);
  InsideAPiece() = default;
  InsideAPiece(const InsideAPiece&) = delete;
  InsideAPiece& operator=(const InsideAPiece&) = delete;
  ~InsideAPiece() { inside_a_piece = already; }
};

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// Waits until `value` is no longer `old`: awake at first, since the next job of a fit comes within
/// microseconds and waking a thread takes as long as a small job; then asleep.
template <class T>
T wait_for_change(const std::atomic<T>& value, T old) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kAwake = std::chrono::microseconds(200);
  const auto start = Clock::now();
  do {
    for (int i = 0; i < 32; ++i) {
      if (const T now = value.load(std::memory_order_acquire); now != old) return now;
      pause();
    }
    std::this_thread::yield();  // the thread waited for may be on this very core
  } while (Clock::now() - start < kAwake);
  T now = old;
  while (now == old) {
    value.wait(old, std::memory_order_acquire);
    now = value.load(std::memory_order_acquire);
  }
  return now;
}

/// Threads that wait for work. Starting one costs as much as a small kernel matrix, so they are
/// started once and never end: at exit they are simply gone, which no destructor could do better
/// while other static objects are being destroyed.
class Pool {
 public:
  static constexpr int kMostWorkers = 255;

  /// Runs work(1) … work(count−1) on the pool's threads and work(0) on the caller's. False, with
  /// nothing done, if the pool is at work for another caller.
  bool run(int count, const std::function<void(int)>& work) {
    const std::unique_lock<std::mutex> mine(in_use_, std::try_to_lock);
    if (!mine.owns_lock()) return false;
    while (started_ < count) std::thread(&Pool::wait_for_work, this, started_++).detach();
    work_ = &work;
    unfinished_.store(count - 1, std::memory_order_relaxed);
    // The number of workers travels with the number of the round: a worker that is not called must
    // not look at anything else, since nobody waits for it.
    const std::uint64_t round = (ticket_.load(std::memory_order_relaxed) >> 8U) + 1;
    ticket_.store((round << 8U) | static_cast<std::uint64_t>(count), std::memory_order_release);
    ticket_.notify_all();
    work(0);
    for (int left = unfinished_.load(std::memory_order_acquire); left != 0;) {
      left = wait_for_change(unfinished_, left);
    }
    return true;
  }

  /// The pool of this process: threads do not survive a fork, so a child makes its own.
  static Pool& instance() {
    static std::mutex mutex;
    static Pool* pool = nullptr;
    static pid_t owner = 0;
    const std::lock_guard lock(mutex);
    if (pool == nullptr || owner != getpid()) {
      pool = new Pool;  // NOLINT(*-owning-memory): see the class comment
      owner = getpid();
    }
    return *pool;
  }

 private:
  void wait_for_work(int worker) {
    inside_a_piece = true;
    // Started before the first round that calls it.
    for (std::uint64_t seen = 0;;) {
      seen = wait_for_change(ticket_, seen);
      if (worker >= static_cast<int>(seen & 255U)) continue;
      (*work_)(worker);
      if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished_.notify_one();
    }
  }

  std::mutex in_use_;
  const std::function<void(int)>* work_ = nullptr;
  std::atomic<std::uint64_t> ticket_{0};  // round · 256 + workers of the round
  std::atomic<int> unfinished_{0};
  int started_ = 1;  // worker 0 is the caller
};

/// The pieces dealt to one worker, and the first of them that nobody has taken.
struct alignas(64) Range {
  std::atomic<Index> next;
  Index last = 0;
};

/// Each worker begins with its own range, so that a piece meets the same cache in one job after
/// another, and then helps with those of the others: a core may be busy with something else.
/// False, with nothing done, if the pool is at work for another caller.
bool run_shared(Index pieces, Index workers, const std::function<void(Index)>& job) {
  std::vector<Range> ranges(static_cast<std::size_t>(workers));
  for (Index w = 0; w < workers; ++w) {
    Range& range = ranges[static_cast<std::size_t>(w)];
    range.next.store(pieces * w / workers, std::memory_order_relaxed);
    range.last = pieces * (w + 1) / workers;
  }
  constexpr Index kTurns = 16;  // in which a worker takes its range
  const Index stride = std::max<Index>(1, pieces / (workers * kTurns));
  // Of several failures that of the first piece is passed on, as without threads.
  std::mutex failing;
  std::exception_ptr error;
  Index failed = pieces;
  const std::function<void(int)> share = [&](int worker) {
    Index piece = 0;
    try {
      for (std::size_t k = 0; k < ranges.size(); ++k) {
        Range& range = ranges[(static_cast<std::size_t>(worker) + k) % ranges.size()];
        for (;;) {
          piece = range.next.fetch_add(stride, std::memory_order_relaxed);
          if (piece >= range.last) break;
          for (const Index end = std::min(piece + stride, range.last); piece < end; ++piece) {
            job(piece);
          }
        }
      }
    } catch (...) {
      const std::lock_guard lock(failing);
      if (piece < failed) {
        failed = piece;
        error = std::current_exception();
      }
    }
  };
  if (!Pool::instance().run(static_cast<int>(workers), share)) return false;
  if (error) std::rethrow_exception(error);
  return true;
}

}  // namespace

bool inside_piece() { return inside_a_piece; }

void parallel_for(Index pieces, int workers, const std::function<void(Index)>& job) {
  if (pieces == 1) return job(0);
  const Index count = std::min<Index>({workers, pieces, Pool::kMostWorkers});
  const InsideAPiece here;
  if (!here.already && count > 1 && run_shared(pieces, count, job)) return;
  for (Index i = 0; i < pieces; ++i) job(i);
}

int workers_for(double work) {
  // A second thread is at work within some microseconds, in which one core does about 10⁴ such
  // operations.
  constexpr double kWorkPerThread = 1e5;
  return static_cast<int>(std::clamp(work / kWorkPerThread, 1.0, static_cast<double>(threads())));
}

}  // namespace ample
