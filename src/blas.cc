#include "blas.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <sched.h>

#include "ample/threads.h"
#include "check.h"

// OpenBLAS's own entry points, declared here rather than through its cblas.h so that they may be
// absent: another BLAS then runs with its own defaults.
extern "C" {
__attribute__((weak)) void openblas_set_num_threads(int count);
__attribute__((weak)) int openblas_get_num_threads(void);
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

// Before main, while no other thread can be inside BLAS.
[[maybe_unused]] const bool core_chosen = (choose_core(), true);

}  // namespace

void set_threads(int count) {
  if (count < 1) invalid("set_threads: got {}, but must be at least 1", count);
  limit() = count;
}

int threads() { return limit(); }

BlasThreads::BlasThreads(double flops) : before_(0) {
  if (openblas_set_num_threads == nullptr || openblas_get_num_threads == nullptr) return;
  // A second thread costs some 10 µs to wake; below a few million operations it is slower.
  constexpr double kFlopsPerThread = 2e6;
  const double useful = flops / kFlopsPerThread;
  before_ = openblas_get_num_threads();
  openblas_set_num_threads(
      static_cast<int>(std::clamp(useful, 1.0, static_cast<double>(threads()))));
}

BlasThreads::~BlasThreads() {
  if (before_ > 0) openblas_set_num_threads(before_);
}

const char* blas_core() {
  return openblas_get_corename != nullptr ? openblas_get_corename() : "unknown";
}

}  // namespace ample
