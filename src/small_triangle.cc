#include "small_triangle.h"

#include <algorithm>
#include <cmath>

#include "vectorised.h"

namespace ample::small_triangle {
namespace {

/// The triangle as a solve meets it: row j holds what column j of the solution takes from the
/// columns before it.
struct Coefficients {
  alignas(64) double row[kMost][kMost];
  double inverse[kMost];  // of the diagonal
};

/// Columns j to j + columns − 1 of `packs`·width rows of B: x_j = (b_j − Σ_{k<j} x_k c_jk) / d_j.
/// Column j stands at B + j·step.
template <int width, int packs, int columns>
AMPLE_INLINE void solve_columns(const Coefficients& c, Size j, double* B, Size step) {
  typename Pack<width>::Type x[columns][packs];
  for (int q = 0; q < columns; ++q) {
    for (int p = 0; p < packs; ++p) load<width>(B + (j + q) * step + p * width, x[q][p]);
  }
  for (Size k = 0; k < j; ++k) {
    const double* before = B + k * step;
    for (int p = 0; p < packs; ++p) {
      typename Pack<width>::Type v;
      load<width>(before + p * width, v);
      for (int q = 0; q < columns; ++q) x[q][p] -= c.row[j + q][k] * v;
    }
  }
  for (int q = 0; q < columns; ++q) {
    for (int p = 0; p < packs; ++p) {
      for (int k = 0; k < q; ++k) x[q][p] -= c.row[j + q][j + k] * x[k][p];
      x[q][p] *= c.inverse[j + q];
      store<width>(x[q][p], B + (j + q) * step + p * width);
    }
  }
}

template <int width, int packs>
AMPLE_INLINE void solve_rows(const Coefficients& c, Size n, double* B, Size step) {
  constexpr int kColumns = 4;
  Size j = 0;
  for (; j + kColumns <= n; j += kColumns) solve_columns<width, packs, kColumns>(c, j, B, step);
  for (; j < n; ++j) solve_columns<width, packs, 1>(c, j, B, step);
}

template <int width>
AMPLE_INLINE void solve_all_rows_in_packs(const Coefficients& c, Size n, double* B, Size step,
                                          Size rows) {
  // Four columns at a time, so that each number loaded serves four products, and two packs of each:
  // eight sums hide the latency of a product. (More would be too many for AVX2.)
  constexpr int kPacks = 2;
  Size r = 0;
  for (; r + kPacks * width <= rows; r += kPacks * width)
    solve_rows<width, kPacks>(c, n, B + r, step);
  for (; r + width <= rows; r += width) solve_rows<width, 1>(c, n, B + r, step);
  if (r == rows) return;
  // The rest, made up to a whole pack.
  alignas(64) double rest[kMost * width];
  for (Size j = 0; j < n; ++j) {
    for (Size i = 0; i < width; ++i) rest[j * width + i] = r + i < rows ? B[j * step + r + i] : 0.0;
  }
  solve_rows<width, 1>(c, n, rest, width);
  for (Size j = 0; j < n; ++j) {
    for (Size i = 0; r + i < rows; ++i) B[j * step + r + i] = rest[j * width + i];
  }
}

AMPLE_FOR_EACH_WIDTH(void, solve_all_rows,
                     (const Coefficients& c, Size n, double* B, Size step, Size rows), c, n, B,
                     step, rows)

/// `packs`·width rows of columns j and j + 1 of the working copy take what the columns before them
/// give.
template <int width, int packs>
AMPLE_INLINE void update_two(double* A, Size j, Size row) {
  typename Pack<width>::Type a0[packs];
  typename Pack<width>::Type a1[packs];
  double* b0 = A + j * kMost + row;
  double* b1 = b0 + kMost;
  for (int p = 0; p < packs; ++p) {
    load<width>(b0 + p * width, a0[p]);
    load<width>(b1 + p * width, a1[p]);
  }
  for (Size k = 0; k < j; ++k) {
    const double* l = A + k * kMost;
    for (int p = 0; p < packs; ++p) {
      typename Pack<width>::Type v;
      load<width>(l + row + p * width, v);
      a0[p] -= l[j] * v;
      a1[p] -= l[j + 1] * v;
    }
  }
  for (int p = 0; p < packs; ++p) {
    store<width>(a0[p], b0 + p * width);
    store<width>(a1[p], b1 + p * width);
  }
}

/// Cholesky of A [kMost,kMost], of which the first `size` rows and columns count; an even number.
template <int width>
AMPLE_INLINE bool factorize_in_packs(double* A, Size size) {
  constexpr int kPacks = 4;
  for (Size j = 0; j < size; j += 2) {
    Size row = j / width * width;
    for (; row + kPacks * width <= kMost && row + (kPacks - 1) * width < size;
         row += kPacks * width) {
      update_two<width, kPacks>(A, j, row);
    }
    for (; row < size; row += width) update_two<width, 1>(A, j, row);

    double* a0 = A + j * kMost;
    double* a1 = a0 + kMost;
    if (!(a0[j] > 0.0)) return false;
    const double d0 = std::sqrt(a0[j]);
    const double l = a0[j + 1] / d0;
    const double pivot = a1[j + 1] - l * l;
    if (!(pivot > 0.0)) return false;
    const double d1 = std::sqrt(pivot);
    const double inverse0 = 1.0 / d0;
    const double inverse1 = 1.0 / d1;
    for (Size i = j + 2; i < kMost; ++i) {
      a0[i] *= inverse0;
      a1[i] = (a1[i] - l * a0[i]) * inverse1;
    }
    a0[j] = d0;
    a0[j + 1] = l;
    a1[j + 1] = d1;
  }
  return true;
}

AMPLE_FOR_EACH_WIDTH(bool, factorize, (double* A, Size size), A, size)

}  // namespace

bool cholesky(double* A, Size lda, Size n) {
  // A copy whose columns are padded to whole packs, with the identity below and to the right.
  alignas(64) double copy[kMost * kMost];
  const Size size = (n + 1) / 2 * 2;
  for (Size j = 0; j < size; ++j) {
    double* to = copy + j * kMost;
    std::fill(to, to + kMost, 0.0);
    if (j < n) std::copy(A + j * lda + j, A + j * lda + n, to + j);
  }
  if (size > n) copy[n * kMost + n] = 1.0;
  if (!factorize(copy, size)) return false;
  for (Size j = 0; j < n; ++j) {
    std::copy(copy + j * kMost + j, copy + j * kMost + n, A + j * lda + j);
  }
  return true;
}

void solve_right_transposed(const double* L, Size ldl, Size n, double* B, Size ldb, Size rows) {
  Coefficients c;  // NOLINT(*-member-init): only the part in use is filled and read
  for (Size k = 0; k < n; ++k) {
    for (Size j = k + 1; j < n; ++j) c.row[j][k] = L[j + k * ldl];
    c.inverse[k] = 1.0 / L[k + k * ldl];
  }
  solve_all_rows(c, n, B, ldb, rows);
}

void solve_right(const double* L, Size ldl, Size n, double* B, Size ldb, Size rows) {
  // From the last column to the first: the same solve with both orders reversed.
  Coefficients c;  // NOLINT(*-member-init): see above
  for (Size j = 0; j < n; ++j) {
    for (Size k = j + 1; k < n; ++k) c.row[n - 1 - j][n - 1 - k] = L[k + j * ldl];
    c.inverse[n - 1 - j] = 1.0 / L[j + j * ldl];
  }
  solve_all_rows(c, n, B + (n - 1) * ldb, -ldb, rows);
}

}  // namespace ample::small_triangle
