#include "small_triangle.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "small_triangle.cc"
#include "simd_targets.h"

#ifndef AMPLE_SMALL_TRIANGLE_COMMON  // what all targets share
#define AMPLE_SMALL_TRIANGLE_COMMON
namespace ample::small_triangle {

/// The triangle as a solve meets it: row j holds what column j of the solution takes from the
/// columns before it.
struct Coefficients {
  alignas(64) double row[kMost][kMost];
  double inverse[kMost];  // of the diagonal
};

}  // namespace ample::small_triangle
#endif

HWY_BEFORE_NAMESPACE();
namespace ample::small_triangle::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;
constexpr D d;
constexpr Size kLanes = hn::MaxLanes(d);
static_assert(kMost % kLanes == 0);

HWY_INLINE V load(const double* p) { return hn::LoadU(d, p); }
HWY_INLINE void store(V v, double* p) { hn::StoreU(v, d, p); }

/// Columns j to j + columns − 1 of `packs` registers of rows of B: x_j = (b_j − Σ_{k<j} x_k c_jk) /
/// d_j. Column j stands at B + j·step.
template <int packs, int columns>
HWY_INLINE void solve_columns(const Coefficients& c, Size j, double* B, Size step) {
  V x[columns][packs];
  for (int q = 0; q < columns; ++q) {
    for (int p = 0; p < packs; ++p) x[q][p] = load(B + (j + q) * step + p * kLanes);
  }
  for (Size k = 0; k < j; ++k) {
    const double* before = B + k * step;
    V v[packs];
    for (int p = 0; p < packs; ++p) v[p] = load(before + p * kLanes);
    for (int q = 0; q < columns; ++q) {
      const V factor = hn::Set(d, c.row[j + q][k]);
      for (int p = 0; p < packs; ++p) x[q][p] = hn::NegMulAdd(factor, v[p], x[q][p]);
    }
  }
  for (int q = 0; q < columns; ++q) {
    for (int p = 0; p < packs; ++p) {
      for (int k = 0; k < q; ++k) {
        x[q][p] = hn::NegMulAdd(hn::Set(d, c.row[j + q][j + k]), x[k][p], x[q][p]);
      }
      x[q][p] = x[q][p] * hn::Set(d, c.inverse[j + q]);
      store(x[q][p], B + (j + q) * step + p * kLanes);
    }
  }
}

template <int packs>
HWY_INLINE void solve_rows(const Coefficients& c, Size n, double* B, Size step) {
  constexpr int kColumns = 4;
  Size j = 0;
  for (; j + kColumns <= n; j += kColumns) solve_columns<packs, kColumns>(c, j, B, step);
  for (; j < n; ++j) solve_columns<packs, 1>(c, j, B, step);
}

void solve_all_rows(const Coefficients& c, Size n, double* B, Size step, Size rows) {
  // Four columns at a time, so that each number loaded serves four products, and two registers of
  // each: eight sums hide the latency of a product. (More would be too many for AVX2.)
  constexpr int kPacks = 2;
  Size r = 0;
  for (; r + kPacks * kLanes <= rows; r += kPacks * kLanes) solve_rows<kPacks>(c, n, B + r, step);
  for (; r + kLanes <= rows; r += kLanes) solve_rows<1>(c, n, B + r, step);
  if (r == rows) return;
  // The rest, made up to a whole register.
  HWY_ALIGN double rest[kMost * kLanes];
  for (Size j = 0; j < n; ++j) {
    for (Size i = 0; i < kLanes; ++i) {
      rest[j * kLanes + i] = r + i < rows ? B[j * step + r + i] : 0.0;
    }
  }
  solve_rows<1>(c, n, rest, kLanes);
  for (Size j = 0; j < n; ++j) {
    for (Size i = 0; r + i < rows; ++i) B[j * step + r + i] = rest[j * kLanes + i];
  }
}

/// `packs` registers of rows of columns j and j + 1 of the working copy take what the columns
/// before them give.
template <int packs>
HWY_INLINE void update_two(double* A, Size j, Size row) {
  V a0[packs];
  V a1[packs];
  double* b0 = A + j * kMost + row;
  double* b1 = b0 + kMost;
  for (int p = 0; p < packs; ++p) {
    a0[p] = load(b0 + p * kLanes);
    a1[p] = load(b1 + p * kLanes);
  }
  for (Size k = 0; k < j; ++k) {
    const double* l = A + k * kMost;
    const V l0 = hn::Set(d, l[j]);
    const V l1 = hn::Set(d, l[j + 1]);
    for (int p = 0; p < packs; ++p) {
      const V v = load(l + row + p * kLanes);
      a0[p] = hn::NegMulAdd(l0, v, a0[p]);
      a1[p] = hn::NegMulAdd(l1, v, a1[p]);
    }
  }
  for (int p = 0; p < packs; ++p) {
    store(a0[p], b0 + p * kLanes);
    store(a1[p], b1 + p * kLanes);
  }
}

/// Cholesky of A [kMost,kMost], of which the first `size` rows and columns count; an even number.
bool factorize(double* A, Size size) {
  constexpr int kPacks = 4;
  for (Size j = 0; j < size; j += 2) {
    Size row = j / kLanes * kLanes;
    for (; row + kPacks * kLanes <= kMost && row + (kPacks - 1) * kLanes < size;
         row += kPacks * kLanes) {
      update_two<kPacks>(A, j, row);
    }
    for (; row < size; row += kLanes) update_two<1>(A, j, row);

    double* a0 = A + j * kMost;
    double* a1 = a0 + kMost;
    if (!(a0[j] > 0.0)) return false;
    const double d0 = std::sqrt(a0[j]);
    const double l = a0[j + 1] / d0;
    const double pivot = a1[j + 1] - l * l;
    if (!(pivot > 0.0)) return false;
    const double d1 = std::sqrt(pivot);
    const V inverse0 = hn::Set(d, 1.0 / d0);
    const V inverse1 = hn::Set(d, 1.0 / d1);
    // What stands above row j + 2 is set right after.
    for (Size i = j / kLanes * kLanes; i < size; i += kLanes) {
      const V scaled = load(a0 + i) * inverse0;
      store(scaled, a0 + i);
      store(hn::NegMulAdd(hn::Set(d, l), scaled, load(a1 + i)) * inverse1, a1 + i);
    }
    a0[j] = d0;
    a0[j + 1] = l;
    a1[j + 1] = d1;
  }
  return true;
}

/// Columns j to j + columns − 1 of XᵀX, rows from `row` on, `packs` registers of them, to out
/// [kMost,columns]: Σ_k X_kj Xᵀ_·k, where Xᵀ [kMost,kMost] has zeros below its diagonal, so that k
/// begins at the first of the rows.
template <int packs, int columns>
HWY_INLINE void multiply_columns(const double* Xt, Size n, const double (*x)[columns], Size row,
                                 double* out) {
  V sum[columns][packs];
  for (int q = 0; q < columns; ++q) {
    for (int p = 0; p < packs; ++p) sum[q][p] = hn::Zero(d);
  }
  for (Size k = row; k < n; ++k) {
    const double* column = Xt + k * kMost + row;
    V v[packs];
    for (int p = 0; p < packs; ++p) v[p] = load(column + p * kLanes);
    for (int q = 0; q < columns; ++q) {
      const V factor = hn::Set(d, x[k][q]);
      for (int p = 0; p < packs; ++p) sum[q][p] = hn::MulAdd(factor, v[p], sum[q][p]);
    }
  }
  for (int q = 0; q < columns; ++q) {
    for (int p = 0; p < packs; ++p) store(sum[q][p], out + q * kMost + row + p * kLanes);
  }
}

void square_lower(const double* Xt, double* X, Size ldx, Size n) {
  constexpr int kColumns = 4;
  constexpr int kPacks = 2;
  HWY_ALIGN double out[kColumns * kMost];
  double x[kMost][kColumns];
  for (Size j = 0; j < n; j += kColumns) {
    const Size columns = std::min<Size>(kColumns, n - j);
    for (Size k = j; k < n; ++k) {
      for (Size q = 0; q < kColumns; ++q) {
        x[k][q] = q < columns && k >= j + q ? X[k + (j + q) * ldx] : 0.0;
      }
    }
    // From a multiple of the registers' length below j, where x is not set and Xᵀ meets nothing.
    for (Size k = j / kLanes * kLanes; k < j; ++k) std::fill_n(x[k], kColumns, 0.0);
    Size row = j / kLanes * kLanes;
    for (; row + kPacks * kLanes <= kMost && row + kLanes < n; row += kPacks * kLanes) {
      multiply_columns<kPacks, kColumns>(Xt, n, x, row, out);
    }
    for (; row < n; row += kLanes) multiply_columns<1, kColumns>(Xt, n, x, row, out);
    for (Size q = 0; q < columns; ++q) {
      std::copy(out + q * kMost + j + q, out + q * kMost + n, X + (j + q) * ldx + j + q);
    }
  }
}

}  // namespace ample::small_triangle::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ample::small_triangle {
namespace {
HWY_EXPORT(solve_all_rows);
HWY_EXPORT(factorize);
HWY_EXPORT(square_lower);
}  // namespace

bool cholesky(double* A, Size lda, Size n) {
  // A copy whose columns are padded to whole registers, with the identity below and to the right.
  alignas(64) double copy[kMost * kMost];
  const Size size = (n + 1) / 2 * 2;
  for (Size j = 0; j < size; ++j) {
    double* to = copy + j * kMost;
    std::fill(to, to + kMost, 0.0);
    if (j < n) std::copy(A + j * lda + j, A + j * lda + n, to + j);
  }
  if (size > n) copy[n * kMost + n] = 1.0;
  if (!AMPLE_DISPATCH(factorize)(copy, size)) return false;
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
  AMPLE_DISPATCH(solve_all_rows)(c, n, B, ldb, rows);
}

void solve_right(const double* L, Size ldl, Size n, double* B, Size ldb, Size rows) {
  // From the last column to the first: the same solve with both orders reversed.
  Coefficients c;  // NOLINT(*-member-init): see above
  for (Size j = 0; j < n; ++j) {
    for (Size k = j + 1; k < n; ++k) c.row[n - 1 - j][n - 1 - k] = L[k + j * ldl];
    c.inverse[n - 1 - j] = 1.0 / L[j + j * ldl];
  }
  AMPLE_DISPATCH(solve_all_rows)(c, n, B + (n - 1) * ldb, -ldb, rows);
}

void square(double* X, Size ldx, Size n) {
  alignas(64) double transposed[kMost * kMost];
  for (Size k = 0; k < n; ++k) {
    double* column = transposed + k * kMost;
    for (Size i = 0; i <= k; ++i) column[i] = X[k + i * ldx];
    std::fill(column + k + 1, column + kMost, 0.0);
  }
  AMPLE_DISPATCH(square_lower)(transposed, X, ldx, n);
}

}  // namespace ample::small_triangle
#endif
