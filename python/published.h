// A model that some threads read while another changes it. The bindings release Python's lock, so
// nothing else keeps threads apart.
//
// A change is made to a copy, which then replaces the model; a reader keeps the model it started
// with. So no reader waits for a change or sees part of one, and a change that throws leaves the
// model as it was.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <utility>

#include "bindings.h"

namespace ample::python {

template <class Value>
class Published {
 public:
  explicit Published(Value value) : value_(std::make_shared<const Value>(std::move(value))) {}
  Published(const Published& other) : value_(other.now()) {}
  Published& operator=(const Published&) = delete;

  /// As it is at this moment; it stays so for whoever holds it.
  [[nodiscard]] std::shared_ptr<const Value> now() const {
    const std::lock_guard lock(pointer_);
    return value_;
  }

  /// Returns change(copy) and publishes the copy. One change at a time: others wait, and Ctrl-C
  /// ends the waiting. To be called without Python's lock.
  template <class Change>
  auto change(const Change& change) {
    const Turn turn(*this);
    auto next = std::make_shared<Value>(*now());
    if constexpr (std::is_void_v<decltype(change(*next))>) {
      change(*next);
      publish(std::move(next));
    } else {
      auto result = change(*next);
      publish(std::move(next));
      return result;
    }
  }

 private:
  /// The right to change.
  class Turn {
   public:
    explicit Turn(Published& of) : of_(of) {
      // A selection method written in Python may call its own model.
      if (of.changing_ == std::this_thread::get_id()) {
        throw std::runtime_error(
            "the model is learning already, in a call that waits for this one");
      }
      // Long enough to cost nothing, short enough for someone who pressed Ctrl-C.
      constexpr auto kPatience = std::chrono::milliseconds(50);
      while (!of.turn_.try_lock_for(kPatience)) stop_on_signal();
      of.changing_ = std::this_thread::get_id();
    }
    ~Turn() {
      of_.changing_ = std::thread::id();
      of_.turn_.unlock();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Published& of_;
  };

  void publish(std::shared_ptr<const Value> next) {
    const std::lock_guard lock(pointer_);
    value_.swap(next);
  }

  std::timed_mutex turn_;
  std::atomic<std::thread::id> changing_;
  mutable std::mutex pointer_;
  std::shared_ptr<const Value> value_;
};

}  // namespace ample::python
