// Work that runs ahead of whoever uses its results: reading while the last rows are learnt.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "interrupt.h"

namespace ample::cli {

/// Calls `produce` on a thread of its own until it returns none, at most `most` results ahead. It
/// must not block for ever: the destructor waits for the call at hand.
template <class Result>
class Ahead {
 public:
  explicit Ahead(std::function<std::optional<Result>()> produce, std::size_t most = 2)
      : produce_(std::move(produce)), most_(most), thread_(without_signals([this] { run(); })) {}
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;
  Ahead(Ahead&&) = delete;
  Ahead& operator=(Ahead&&) = delete;
  ~Ahead() {
    {
      const std::lock_guard lock(mutex_);
      abandoned_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  /// The next result; none at the end. Throws what `produce` threw, after the results before it.
  std::optional<Result> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !ready_.empty() || ended_; });
    if (ready_.empty()) {
      if (failure_) std::rethrow_exception(failure_);
      return std::nullopt;
    }
    Result result = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    changed_.notify_all();
    return result;
  }

 private:
  void run() {
    for (;;) {
      std::optional<Result> result;
      std::exception_ptr failure;
      try {
        result = produce_();
      } catch (...) {
        failure = std::current_exception();
      }
      std::unique_lock lock(mutex_);
      if (result) ready_.push_back(std::move(*result));
      failure_ = failure;
      ended_ = !result;
      changed_.notify_all();
      changed_.wait(lock, [this] { return ended_ || abandoned_ || ready_.size() < most_; });
      if (ended_ || abandoned_) return;
    }
  }

  std::function<std::optional<Result>()> produce_;
  std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Result> ready_;
  bool ended_ = false;
  bool abandoned_ = false;
  std::exception_ptr failure_;
  std::thread thread_;  // last, so that it finds the rest made
};

}  // namespace ample::cli
