#include "ample/threads.h"

#include <algorithm>
#include <atomic>
#include <sched.h>

#include "check.h"

namespace ample {
namespace {

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(CPU_COUNT(&set), 1);
}

std::atomic<int>& limit() {
  static std::atomic<int> value{available_processors()};
  return value;
}

}  // namespace

void set_threads(int count) {
  if (count < 1) invalid("set_threads: got {}, but must be at least 1", count);
  limit() = count;
}

int threads() { return limit(); }

}  // namespace ample
