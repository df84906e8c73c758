#include "blas.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <link.h>
#include <mutex>
#include <unistd.h>
#include <vector>

// OpenBLAS's own entry points, declared here rather than through its cblas.h so that they may be
// absent: another BLAS then runs with its own defaults.
extern "C" {
__attribute__((weak)) void openblas_set_num_threads(int count);
__attribute__((weak)) int openblas_get_num_threads(void);
__attribute__((weak)) extern int blas_cpu_number;    // what openblas_set_num_threads sets
__attribute__((weak)) extern int blas_num_threads;   // how many it has, the caller's included,
__attribute__((weak)) extern int blas_server_avail;  // if this says that they run
__attribute__((weak)) int blas_thread_shutdown_(void);
__attribute__((weak)) char* openblas_get_corename(void);
__attribute__((weak)) void gotoblas_dynamic_init(void);
__attribute__((weak)) void gotoblas_dynamic_quit(void);
}

namespace ample {
namespace {

// --- Whether BLAS may be changed ----------------------------------------------------------------

/// Which of two addresses belongs to the object of the process (program or shared library) that was
/// loaded first.
struct LoadOrder {
  std::uintptr_t ours;
  std::uintptr_t theirs;
  enum class First { neither, ours, theirs } first = First::neither;
};

int look_for_either(dl_phdr_info* object, std::size_t /*size*/, void* order_of) {
  auto& order = *static_cast<LoadOrder*>(order_of);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    const auto holds = [&](std::uintptr_t p) { return p >= begin && p < begin + part.p_memsz; };
    if (holds(order.ours)) order.first = LoadOrder::First::ours;
    if (holds(order.theirs)) order.first = LoadOrder::First::theirs;
    if (order.first != LoadOrder::First::neither) return 1;
  }
  return 0;
}

/// A library's dependencies are loaded after itself; what was there before it is somebody else's
/// too.
bool blas_was_loaded_for_us() {
  LoadOrder order{reinterpret_cast<std::uintptr_t>(&look_for_either),
                  reinterpret_cast<std::uintptr_t>(openblas_get_num_threads)};
  dl_iterate_phdr(look_for_either, &order);
  return order.first == LoadOrder::First::ours;
}

/// Whether there is no thread but this one and BLAS's own.
bool this_is_the_only_thread() {
  std::error_code error;
  const std::filesystem::directory_iterator threads("/proc/self/task", error);
  if (error) return false;
  const bool known = &blas_server_avail != nullptr && &blas_num_threads != nullptr;
  const int of_blas = known && blas_server_avail != 0 ? blas_num_threads - 1 : 0;
  return std::distance(begin(threads), end(threads)) <= 1 + of_blas;
}

// --- What is changed ----------------------------------------------------------------------------

/// The best kernels for this processor that an OpenBLAS of the last ten years has; null if it
/// chooses well by itself.
const char* better_core() {
#if defined(__x86_64__)
  if (openblas_get_corename == nullptr || std::strcmp(openblas_get_corename(), "Prescott") != 0) {
    return nullptr;
  }
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    return "OPENBLAS_CORETYPE=SkylakeX";
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return "OPENBLAS_CORETYPE=Haswell";
  }
#endif
  return nullptr;
}

// An OpenBLAS older than the processor it runs on does not know its name and falls back to kernels
// of 2004 ("Prescott"), five to ten times slower. It reads OPENBLAS_CORETYPE only when it is
// loaded, before any of our code, so it is made to choose once more, by what the processor can do.
// A choice of the user's is left alone.
void choose_core() {
  if (gotoblas_dynamic_init == nullptr || gotoblas_dynamic_quit == nullptr) return;
  const char* core = better_core();
  if (core == nullptr || std::getenv("OPENBLAS_CORETYPE") != nullptr) return;
  // Another environment for a moment rather than setenv, which would move the one that other
  // threads may be reading.
  std::vector<char*> with_core;
  for (char** variable = environ; *variable != nullptr; ++variable) with_core.push_back(*variable);
  with_core.push_back(const_cast<char*>(core));
  with_core.push_back(nullptr);
  char** const before = environ;
  environ = with_core.data();
  gotoblas_dynamic_quit();
  gotoblas_dynamic_init();
  environ = before;
}

// OpenBLAS's own threads, which we do not use, stay awake for some 30 ms after they were started,
// that is when the library was loaded: on two cores they take one of ours for as long as a short
// program runs. If the program wants them, OpenBLAS starts them again by itself.
void stop_idle_threads() {
  if (blas_thread_shutdown_ != nullptr && &blas_cpu_number != nullptr) blas_thread_shutdown_();
}

/// Both would pull the ground from under a thread that is inside BLAS, so they are done only where
/// there can be none.
bool prepare() {
  if (openblas_get_num_threads == nullptr) return false;
  if (!blas_was_loaded_for_us() && !this_is_the_only_thread()) return false;
  choose_core();
  stop_idle_threads();
  return true;
}

const bool prepared = prepare();

// --- One thread ---------------------------------------------------------------------------------

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

bool blas_is_prepared() { return prepared; }

}  // namespace ample
