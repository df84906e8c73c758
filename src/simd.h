// The vectorised loops exist once for each instruction set (Highway's targets), and the widest that
// the processor has is used. This is where the choice is made, can be asked for, and be changed.
//
// A file of such loops includes itself once for each target:
//
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "this_file.cc"
//   #include "simd_targets.h"
//
//   HWY_BEFORE_NAMESPACE();
//   namespace ample::HWY_NAMESPACE { … the loops … }
//   HWY_AFTER_NAMESPACE();
//
//   #if HWY_ONCE
//   HWY_EXPORT(loop);
//   void loop(…) { AMPLE_DISPATCH(loop)(…); }
//   #endif
#pragma once

#include <string>
#include <vector>

namespace ample::simd {

/// The environment variable that names the widest target to use, for measurements.
constexpr const char* kVariable = "AMPLE_SIMD";

/// The targets that are compiled in and that the processor has, widest first: "avx512", "avx2",
/// "sse4" and "baseline" on x86, "neon" on ARM.
std::vector<std::string> targets();

/// The target in use.
std::string target();

/// From now on the loops of the whole process use this target. For tests; not while a loop runs.
void use_target(const std::string& name);

/// Uses the target that the environment names, if it does; throws std::invalid_argument if that is
/// not one of targets().
void choose_by_environment();

/// The same, once in the life of the process: every loop calls this first.
void choose();

}  // namespace ample::simd
