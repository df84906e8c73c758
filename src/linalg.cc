#include "linalg.h"

#include <algorithm>
#include <cmath>

#include <cblas.h>
#include <lapacke.h>

#include "blas.h"
#include "check.h"

namespace ample {
namespace {

int as_int(Index n) { return static_cast<int>(n); }

CBLAS_TRANSPOSE trans(Op op) { return op == Op::none ? CblasNoTrans : CblasTrans; }

// BLAS wants a leading dimension of at least one even for an empty matrix.
template <class M>
int ld(const M& m) {
  return as_int(std::max<Index>(m.outerStride(), 1));
}

// Triangular solves and factorisations below this size go to BLAS as they are; above, they are cut
// in halves, whose coupling is a matrix product. OpenBLAS's own kernels reach a third of the
// product's rate at sizes of a few hundred, the halves nearly all of it.
constexpr Index kSolveBase = 64;
constexpr Index kCholeskyBase = 96;

Index half(Index n) { return (n / 2 + 15) / 16 * 16; }

}  // namespace

void multiply(double alpha, const MatrixRef& A, Op op_a, const MatrixRef& B, Op op_b, double beta,
              Eigen::Ref<Matrix> C) {
  const Index k = op_a == Op::none ? A.cols() : A.rows();
  AMPLE_ASSERT(C.rows() == (op_a == Op::none ? A.rows() : A.cols()));
  AMPLE_ASSERT(C.cols() == (op_b == Op::none ? B.cols() : B.rows()));
  AMPLE_ASSERT(k == (op_b == Op::none ? B.rows() : B.cols()));
  if (C.size() == 0) return;
  const BlasThreads use(2.0 * static_cast<double>(C.size()) * static_cast<double>(k));
  cblas_dgemm(CblasColMajor, trans(op_a), trans(op_b), as_int(C.rows()), as_int(C.cols()),
              as_int(k), alpha, A.data(), ld(A), B.data(), ld(B), beta, C.data(), ld(C));
}

void gram(double alpha, const MatrixRef& A, double beta, Eigen::Ref<Matrix> C) {
  AMPLE_ASSERT(C.rows() == A.cols() && C.cols() == A.cols());
  if (C.size() == 0) return;
  const BlasThreads use(static_cast<double>(A.size()) * static_cast<double>(C.rows()));
  cblas_dsyrk(CblasColMajor, CblasLower, CblasTrans, as_int(C.rows()), as_int(A.rows()), alpha,
              A.data(), ld(A), beta, C.data(), ld(C));
}

void outer(double alpha, const MatrixRef& A, double beta, Eigen::Ref<Matrix> C) {
  AMPLE_ASSERT(C.rows() == A.rows() && C.cols() == A.rows());
  if (C.size() == 0) return;
  const BlasThreads use(static_cast<double>(A.size()) * static_cast<double>(C.rows()));
  cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, as_int(C.rows()), as_int(A.cols()), alpha,
              A.data(), ld(A), beta, C.data(), ld(C));
}

void multiply_symmetric(double alpha, const MatrixRef& S, const MatrixRef& B, double beta,
                        Eigen::Ref<Matrix> C) {
  AMPLE_ASSERT(S.rows() == S.cols() && S.cols() == B.rows());
  AMPLE_ASSERT(C.rows() == B.rows() && C.cols() == B.cols());
  if (C.size() == 0) return;
  const BlasThreads use(2.0 * static_cast<double>(B.size()) * static_cast<double>(S.rows()));
  cblas_dsymm(CblasColMajor, CblasLeft, CblasLower, as_int(C.rows()), as_int(C.cols()), alpha,
              S.data(), ld(S), B.data(), ld(B), beta, C.data(), ld(C));
}

void multiply_triangle_left(const MatrixRef& L, Op op, Eigen::Ref<Matrix> B) {
  AMPLE_ASSERT(L.rows() == L.cols() && L.cols() == B.rows());
  if (B.size() == 0) return;
  const BlasThreads use(static_cast<double>(B.size()) * static_cast<double>(L.rows()));
  cblas_dtrmm(CblasColMajor, CblasLeft, CblasLower, trans(op), CblasNonUnit, as_int(B.rows()),
              as_int(B.cols()), 1.0, L.data(), ld(L), B.data(), ld(B));
}

void multiply_triangle_right(const MatrixRef& L, Op op, Eigen::Ref<Matrix> B) {
  AMPLE_ASSERT(L.rows() == L.cols() && L.rows() == B.cols());
  if (B.size() == 0) return;
  const BlasThreads use(static_cast<double>(B.size()) * static_cast<double>(L.rows()));
  cblas_dtrmm(CblasColMajor, CblasRight, CblasLower, trans(op), CblasNonUnit, as_int(B.rows()),
              as_int(B.cols()), 1.0, L.data(), ld(L), B.data(), ld(B));
}

void solve_left(const MatrixRef& L, Op op, Eigen::Ref<Matrix> B) {
  AMPLE_ASSERT(L.rows() == L.cols() && L.cols() == B.rows());
  if (B.size() == 0) return;
  const Index n = L.rows();
  if (n <= kSolveBase) {
    const BlasThreads use(static_cast<double>(B.size()) * static_cast<double>(n));
    cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, trans(op), CblasNonUnit, as_int(B.rows()),
                as_int(B.cols()), 1.0, L.data(), ld(L), B.data(), ld(B));
    return;
  }
  const Index h = half(n);
  const auto L11 = L.topLeftCorner(h, h);
  const auto L21 = L.bottomLeftCorner(n - h, h);
  const auto L22 = L.bottomRightCorner(n - h, n - h);
  auto B1 = B.topRows(h);
  auto B2 = B.bottomRows(n - h);
  if (op == Op::none) {
    solve_left(L11, op, B1);
    multiply(-1.0, L21, Op::none, B1, Op::none, 1.0, B2);
    solve_left(L22, op, B2);
  } else {
    solve_left(L22, op, B2);
    multiply(-1.0, L21, Op::transpose, B2, Op::none, 1.0, B1);
    solve_left(L11, op, B1);
  }
}

void solve_right(const MatrixRef& L, Op op, Eigen::Ref<Matrix> B) {
  AMPLE_ASSERT(L.rows() == L.cols() && L.rows() == B.cols());
  if (B.size() == 0) return;
  const Index n = L.rows();
  if (n <= kSolveBase) {
    const BlasThreads use(static_cast<double>(B.size()) * static_cast<double>(n));
    cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, trans(op), CblasNonUnit, as_int(B.rows()),
                as_int(B.cols()), 1.0, L.data(), ld(L), B.data(), ld(B));
    return;
  }
  const Index h = half(n);
  const auto L11 = L.topLeftCorner(h, h);
  const auto L21 = L.bottomLeftCorner(n - h, h);
  const auto L22 = L.bottomRightCorner(n - h, n - h);
  auto B1 = B.leftCols(h);
  auto B2 = B.rightCols(n - h);
  if (op == Op::transpose) {
    solve_right(L11, op, B1);
    multiply(-1.0, B1, Op::none, L21, Op::transpose, 1.0, B2);
    solve_right(L22, op, B2);
  } else {
    solve_right(L22, op, B2);
    multiply(-1.0, B2, Op::none, L21, Op::none, 1.0, B1);
    solve_right(L11, op, B1);
  }
}

void solve(const MatrixRef& L, Op op, Eigen::Ref<Vector> x) {
  AMPLE_ASSERT(L.rows() == L.cols() && L.cols() == x.size());
  if (x.size() == 0) return;
  const BlasThreads use(static_cast<double>(L.size()));
  cblas_dtrsv(CblasColMajor, CblasLower, trans(op), CblasNonUnit, as_int(L.rows()), L.data(), ld(L),
              x.data(), 1);
}

bool cholesky(Eigen::Ref<Matrix> A) {
  AMPLE_ASSERT(A.rows() == A.cols());
  const Index n = A.rows();
  if (n == 0) return true;
  if (n <= kCholeskyBase) {
    const BlasThreads use(0.0);
    const auto info = LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', as_int(n), A.data(), ld(A));
    // dpotrf may call a NaN success; it then stands on the diagonal, as any bad entry ends there.
    return info == 0 && A.diagonal().allFinite();
  }
  const Index h = half(n);
  auto A11 = A.topLeftCorner(h, h);
  auto A21 = A.bottomLeftCorner(n - h, h);
  auto A22 = A.bottomRightCorner(n - h, n - h);
  if (!cholesky(A11)) return false;
  solve_right(A11, Op::transpose, A21);
  outer(-1.0, A21, 1.0, A22);
  return cholesky(A22);
}

void update_cholesky(Eigen::Ref<Matrix> L, const MatrixRef& R) {
  AMPLE_ASSERT(L.rows() == L.cols() && R.cols() == L.cols());
  if (L.size() == 0) return;
  const Index M = L.rows();
  for (Index n = 0; n < R.rows(); ++n) {
    // Plane rotations turn [L x] into a lower triangle, column by column.
    Vector x = R.row(n);
    for (Index k = 0; k < M; ++k) {
      const double r = std::hypot(L(k, k), x[k]);
      const double cosine = L(k, k) / r;
      const double sine = x[k] / r;
      L(k, k) = r;
      const Index below = M - k - 1;
      auto column = L.col(k).tail(below);
      auto rest = x.tail(below);
      for (Index i = 0; i < below; ++i) {
        const double l = column[i];
        column[i] = cosine * l + sine * rest[i];
        rest[i] = cosine * rest[i] - sine * l;
      }
    }
  }
}

bool update_is_cheaper(Index rows, Index M) {
  // A rotation runs at about a tenth of the rate of a blocked factorisation and does nine times
  // M²/3 of its work for each row.
  return rows * 64 < M;
}

namespace {

// L ← L⁻¹:  [L11 0; L21 L22]⁻¹ = [X11 0; −X22 L21 X11  X22]
void invert_triangle(Eigen::Ref<Matrix> L) {
  const Index n = L.rows();
  if (n <= kSolveBase) {
    const auto info = LAPACKE_dtrtri_work(LAPACK_COL_MAJOR, 'L', 'N', as_int(n), L.data(), ld(L));
    AMPLE_ASSERT(info == 0);
    return;
  }
  const Index h = half(n);
  auto L11 = L.topLeftCorner(h, h);
  auto L21 = L.bottomLeftCorner(n - h, h);
  auto L22 = L.bottomRightCorner(n - h, n - h);
  invert_triangle(L11);
  invert_triangle(L22);
  multiply_triangle_right(L11, Op::none, L21);
  multiply_triangle_left(L22, Op::none, L21);
  L21 = -L21;
}

// X ← lower triangle of XᵀX for a lower triangular X
void square_triangle(Eigen::Ref<Matrix> X) {
  const Index n = X.rows();
  if (n <= kSolveBase) {
    const auto info = LAPACKE_dlauum_work(LAPACK_COL_MAJOR, 'L', as_int(n), X.data(), ld(X));
    AMPLE_ASSERT(info == 0);
    return;
  }
  const Index h = half(n);
  auto X11 = X.topLeftCorner(h, h);
  auto X21 = X.bottomLeftCorner(n - h, h);
  auto X22 = X.bottomRightCorner(n - h, n - h);
  square_triangle(X11);
  gram(1.0, X21, 1.0, X11);
  multiply_triangle_left(X22, Op::transpose, X21);
  square_triangle(X22);
}

}  // namespace

void invert_from_cholesky(Eigen::Ref<Matrix> L) {
  AMPLE_ASSERT(L.rows() == L.cols());
  if (L.size() == 0) return;
  invert_triangle(L);
  square_triangle(L);
}

void congruence(const MatrixRef& L, Eigen::Ref<Matrix> S) {
  // (S L⁻¹)ᵀ L⁻¹: both solves from the right, where BLAS is fastest.
  solve_right(L, Op::none, S);
  transpose_in_place(S);
  solve_right(L, Op::none, S);
}

void mirror_lower(Eigen::Ref<Matrix> A) {
  // In tiles, so that the strided side stays in cache.
  constexpr Index kTile = 64;
  for (Index j = 0; j < A.cols(); j += kTile) {
    const Index w = std::min(kTile, A.cols() - j);
    for (Index i = j; i < A.rows(); i += kTile) {
      const Index h = std::min(kTile, A.rows() - i);
      if (i == j) {
        for (Index c = 0; c < w; ++c) {
          for (Index r = c + 1; r < h; ++r) A(j + c, i + r) = A(i + r, j + c);
        }
      } else {
        A.block(j, i, w, h) = A.block(i, j, h, w).transpose();
      }
    }
  }
}

void transpose_in_place(Eigen::Ref<Matrix> A) {
  AMPLE_ASSERT(A.rows() == A.cols());
  constexpr Index kTile = 32;
  Eigen::Matrix<double, kTile, kTile> tile;
  const Index n = A.rows();
  for (Index j = 0; j < n; j += kTile) {
    const Index w = std::min(kTile, n - j);
    A.block(j, j, w, w).transposeInPlace();
    for (Index i = j + kTile; i < n; i += kTile) {
      const Index h = std::min(kTile, n - i);
      tile.topLeftCorner(h, w) = A.block(i, j, h, w);
      A.block(i, j, h, w) = A.block(j, i, w, h).transpose();
      A.block(j, i, w, h) = tile.topLeftCorner(h, w).transpose();
    }
  }
}

void clear_upper(Eigen::Ref<Matrix> A) {
  for (Index j = 1; j < A.cols(); ++j) A.col(j).head(std::min(j, A.rows())).setZero();
}

double sum_log_diagonal(const MatrixRef& L) {
  return L.rows() == 0 ? 0.0 : L.diagonal().array().log().sum();
}

}  // namespace ample
