// Triangles of up to 64 columns, where the recursions of linalg end. LAPACK's and BLAS's own code
// reaches a fifth of the machine's rate at this size; here everything runs along rows, in
// registers.
#pragma once

#include <cstddef>

namespace ample::small_triangle {

using Size = std::ptrdiff_t;

constexpr Size kMost = 64;

/// The lower triangle of A [n,n], column-major with leading dimension lda, becomes its Cholesky
/// factor; the upper one is left alone. False, with A spoilt or not, if a pivot is not positive.
[[nodiscard]] bool cholesky(double* A, Size lda, Size n);

/// B ← B L⁻ᵀ and B ← B L⁻¹ for a lower triangle L [n,n] and B [rows,n].
void solve_right_transposed(const double* L, Size ldl, Size n, double* B, Size ldb, Size rows);
void solve_right(const double* L, Size ldl, Size n, double* B, Size ldb, Size rows);

/// The lower triangle of X [n,n] becomes that of XᵀX, X being lower triangular.
void square(double* X, Size ldx, Size n);

}  // namespace ample::small_triangle
