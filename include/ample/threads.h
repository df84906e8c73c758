// How many threads the library may use, its BLAS included.
#pragma once

namespace ample {

/// Sets the limit (≥ 1; throws otherwise). It applies to the whole process, as BLAS's own does.
void set_threads(int count);

/// The limit in force; by default the number of processors this process may run on.
int threads();

}  // namespace ample
