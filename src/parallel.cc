#include "parallel.h"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <unistd.h>
#include <vector>

#include "ample/threads.h"

namespace ample {
namespace {

/// Threads that wait for work. Starting one costs as much as a small kernel matrix, so they are
/// started once and never end: at exit they are simply gone, which no destructor could do better
/// while other static objects are being destroyed.
class Pool {
 public:
  /// Runs work(1) … work(count−1) on the pool's threads and work(0) on the caller's. False, with
  /// nothing done, if the pool is at work for another caller.
  bool run(int count, const std::function<void(int)>& work) {
    const std::unique_lock<std::mutex> mine(in_use_, std::try_to_lock);
    if (!mine.owns_lock()) return false;
    {
      const std::lock_guard lock(mutex_);
      while (started_ < count) std::thread(&Pool::wait_for_work, this, started_++).detach();
      work_ = &work;
      count_ = count;
      unfinished_ = count - 1;
      ++round_;
    }
    wake_.notify_all();
    work(0);
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] { return unfinished_ == 0; });
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
    std::uint64_t seen = 0;
    for (;;) {
      const std::function<void(int)>* work = nullptr;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [&] { return round_ != seen; });
        seen = round_;
        if (worker >= count_) continue;
        work = work_;
      }
      (*work)(worker);
      const std::lock_guard lock(mutex_);
      if (--unfinished_ == 0) finished_.notify_one();
    }
  }

  std::mutex in_use_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable finished_;
  const std::function<void(int)>* work_ = nullptr;
  int count_ = 0;
  int started_ = 1;  // worker 0 is the caller
  int unfinished_ = 0;
  std::uint64_t round_ = 0;
};

}  // namespace

void parallel_for(Index pieces, int workers, const std::function<void(Index, int)>& job) {
  const auto count = static_cast<int>(std::min<Index>(workers, pieces));
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(std::max(count, 1)));
  const std::function<void(int)> run = [&](int worker) {
    try {
      const Index first = pieces * worker / count;
      const Index last = pieces * (worker + 1) / count;
      for (Index i = first; i < last; ++i) job(i, worker);
    } catch (...) {
      errors[static_cast<std::size_t>(worker)] = std::current_exception();
    }
  };
  if (count <= 1 || !Pool::instance().run(count, run)) {
    for (Index i = 0; i < pieces; ++i) job(i, 0);
    return;
  }
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

int workers_for(double work) {
  // Waking a thread costs some 10 µs, in which one core does about 10⁵ such operations; below a few
  // times that the second thread gains nothing worth its noise.
  constexpr double kWorkPerThread = 3e5;
  return static_cast<int>(std::clamp(work / kWorkPerThread, 1.0, static_cast<double>(threads())));
}

}  // namespace ample
