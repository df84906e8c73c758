#include "blas.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sched.h>

#include "ample/threads.h"
#include "check.h"

// OpenBLAS's own entry points, declared here rather than through its cblas.h so that they may be
// absent: another BLAS then runs with its own defaults.
extern "C" {
__attribute__((weak)) void openblas_set_num_threads(int count);
__attribute__((weak)) int openblas_get_num_threads(void);
__attribute__((weak)) extern int blas_cpu_number;  // what openblas_set_num_threads sets
__attribute__((weak)) int blas_thread_shutdown_(void);
__attribute__((weak)) char* openblas_get_corename(void);
__attribute__((weak)) void gotoblas_dynamic_init(void);
__attribute__((weak)) void gotoblas_dynamic_quit(void);
}

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

// An OpenBLAS older than the processor it runs on does not know its name and falls back to kernels
// of 2004 ("Prescott"), five to ten times slower. It reads OPENBLAS_CORETYPE only when it is
// loaded, before any of our code, so it is made to choose once more, by what the processor can do.
// A choice of the user's is left alone.
void choose_core() {
#if defined(__x86_64__)
  if (openblas_get_corename == nullptr || gotoblas_dynamic_init == nullptr ||
      gotoblas_dynamic_quit == nullptr || std::getenv("OPENBLAS_CORETYPE") != nullptr) {
    return;
  }
  if (std::strcmp(openblas_get_corename(), "Prescott") != 0) return;
  const char* core = nullptr;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    core = "SkylakeX";
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    core = "Haswell";
  }
  if (core == nullptr) return;
  setenv("OPENBLAS_CORETYPE", core, 1);
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  unsetenv("OPENBLAS_CORETYPE");  // a child process chooses for itself
#endif
}

// OpenBLAS's own threads, which we do not use, stay awake for some 30 ms after they were started,
// that is when the library was loaded: on two cores they take one of ours for as long as a short
// program runs. If the program wants them, OpenBLAS starts them again by itself.
void stop_idle_threads() {
  if (blas_thread_shutdown_ != nullptr && &blas_cpu_number != nullptr) blas_thread_shutdown_();
}

// Before main, while no other thread can be inside BLAS.
[[maybe_unused]] const bool prepared = (choose_core(), stop_idle_threads(), true);

}  // namespace

void set_threads(int count) {
  if (count < 1) invalid("set_threads: got {}, but must be at least 1", count);
  limit() = count;
}

int threads() { return limit(); }

namespace {

std::mutex serial_mutex;
int serial_users = 0;
int threads_before = 0;

bool has_threads() {
  return openblas_set_num_threads != nullptr && openblas_get_num_threads != nullptr;
}

void set_blas_threads(int count) {
  // The function would start the threads that stop_idle_threads() has stopped.
  if (&blas_cpu_number != nullptr) {
    blas_cpu_number = count;
  } else {
    openblas_set_num_threads(count);
  }
}

}  // namespace

SerialBlas::SerialBlas() {
  if (!has_threads()) return;
  const std::lock_guard lock(serial_mutex);
  if (serial_users++ > 0) return;
  threads_before = openblas_get_num_threads();
  set_blas_threads(1);
}

SerialBlas::~SerialBlas() {
  if (!has_threads()) return;
  const std::lock_guard lock(serial_mutex);
  if (--serial_users == 0) set_blas_threads(threads_before);
}

const char* blas_core() {
  return openblas_get_corename != nullptr ? openblas_get_corename() : "unknown";
}

}  // namespace ample
