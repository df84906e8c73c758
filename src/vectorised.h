// For loops that are worth a copy for each instruction set.
#pragma once

#include <cstddef>

// One copy of a function for AVX-512, AVX2 and the baseline, chosen when the program starts. The
// sanitizers cannot run code before they are set up, and that is when the choice is made.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define AMPLE_SANITIZED 1
#endif
#endif
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(AMPLE_SANITIZED) && \
    !defined(__SANITIZE_ADDRESS__)
#define AMPLE_VECTORISED \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define AMPLE_VECTORISED
#endif

// A part of such a function; it must become part of every copy.
#define AMPLE_INLINE inline __attribute__((always_inline))

namespace ample {

/// Eight numbers: one register of AVX-512 or two of AVX2; the compiler sees to that. A few of them
/// in a local array stay in registers, which it does not grant an array of numbers.
typedef double Pack __attribute__((vector_size(64)));                                 // NOLINT
typedef double PackInMemory __attribute__((vector_size(64), aligned(8), may_alias));  // NOLINT
constexpr std::ptrdiff_t kPack = 8;

// By reference: how a vector is passed or returned depends on the instruction set.
AMPLE_INLINE void load(const double* p, Pack& to) {
  to = *reinterpret_cast<const PackInMemory*>(p);
}
AMPLE_INLINE void store(const Pack& from, double* p) { *reinterpret_cast<PackInMemory*>(p) = from; }

}  // namespace ample
