// Which of Highway's targets the loops are compiled for; see simd.h. Included once for each target,
// so that it has no guard.

// SSSE3 alone is too old to be worth a copy. Of SVE the length of a register is not known when the
// loops are compiled, so that no array of registers can be made of them; every processor with SVE
// has NEON.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif

#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "simd.h"

/// The loop for the target in use.
#define AMPLE_DISPATCH(loop) (::ample::simd::choose(), HWY_DYNAMIC_DISPATCH(loop))
