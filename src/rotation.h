// Plane rotations of two arrays, of which the update of a Cholesky factor by a row is made.
#pragma once

#include <cstddef>

namespace ample {

/// (a_i, b_i) ← (cosine · a_i + sine · b_i, cosine · b_i − sine · a_i) for i = 0 … n−1.
void rotate(double* a, double* b, std::ptrdiff_t n, double cosine, double sine);

}  // namespace ample
