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
// The same for a function written as a template over the numbers in a register. clang has no
// versions by level, but splits what is too wide for a register by itself.
#if defined(__clang__)
#define AMPLE_FOR_EACH_WIDTH(result, name, parameters, ...) \
  AMPLE_VECTORISED result name parameters { return name##_in_packs<8>(__VA_ARGS__); }
#else
#define AMPLE_FOR_EACH_WIDTH(result, name, parameters, ...)          \
  __attribute__((target("arch=x86-64-v4"))) result name parameters { \
    return name##_in_packs<8>(__VA_ARGS__);                          \
  }                                                                  \
  __attribute__((target("arch=x86-64-v3"))) result name parameters { \
    return name##_in_packs<4>(__VA_ARGS__);                          \
  }                                                                  \
  __attribute__((target("default"))) result name parameters {        \
    return name##_in_packs<2>(__VA_ARGS__);                          \
  }
#endif
#else
#define AMPLE_VECTORISED
#define AMPLE_FOR_EACH_WIDTH(result, name, parameters, ...) \
  result name parameters { return name##_in_packs<2>(__VA_ARGS__); }
#endif

// A part of such a function; it must become part of every copy.
#define AMPLE_INLINE inline __attribute__((always_inline))

namespace ample {

/// As many numbers as a register of the instruction set holds: of wider ones the compiler keeps
/// most in memory. A few packs in a local array stay in registers, which it does not grant an array
/// of numbers.
template <int width>
struct Pack;
// NOLINTBEGIN(modernize-use-using): an attribute of a typedef
template <>
struct Pack<2> {
  typedef double Type __attribute__((vector_size(16)));
  typedef double InMemory __attribute__((vector_size(16), aligned(8), may_alias));
};
template <>
struct Pack<4> {
  typedef double Type __attribute__((vector_size(32)));
  typedef double InMemory __attribute__((vector_size(32), aligned(8), may_alias));
};
template <>
struct Pack<8> {
  typedef double Type __attribute__((vector_size(64)));
  typedef double InMemory __attribute__((vector_size(64), aligned(8), may_alias));
};
// NOLINTEND(modernize-use-using)

// By reference: how a vector is passed or returned depends on the instruction set.
template <int width>
AMPLE_INLINE void load(const double* p, typename Pack<width>::Type& to) {
  to = *reinterpret_cast<const typename Pack<width>::InMemory*>(p);
}
template <int width>
AMPLE_INLINE void store(const typename Pack<width>::Type& from, double* p) {
  *reinterpret_cast<typename Pack<width>::InMemory*>(p) = from;
}

}  // namespace ample
