#include "linalg.h"

#include <algorithm>
#include <cmath>

#include <cblas.h>

#include "blas.h"
#include "check.h"
#include "parallel.h"
#include "rotation.h"
#include "small_triangle.h"

namespace ample {
namespace {

int as_int(Index n) { return static_cast<int>(n); }

CBLAS_TRANSPOSE trans(Op op) { return op == Op::none ? CblasNoTrans : CblasTrans; }

// BLAS wants a leading dimension of at least one even for an empty matrix.
int ld(const MatrixRef& m) { return as_int(std::max<Index>(m.outerStride(), 1)); }

// Triangular solves and factorisations are cut in halves, whose coupling is a matrix product, down
// to small triangles. OpenBLAS's own reach a third of the product's rate at sizes of a few hundred,
// the halves nearly all of it.

using Tile = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor,
                           small_triangle::kMost, small_triangle::kMost>;

Index half(Index n) { return (n / 2 + 15) / 16 * 16; }

double flops(Index a, Index b, Index c) {
  return static_cast<double>(a) * static_cast<double>(b) * static_cast<double>(c);
}

/// Rows or columns of a result cut into pieces, one call of BLAS each. Each call packs the operand
/// they share anew, so that pieces are kept wide; how many there are depends on the shape alone.
class Pieces {
 public:
  Pieces(Index size, double work) : size_(size), work_(work) {
    constexpr double kLeastWork = 1e6;
    constexpr Index kLeastWidth = 16;
    constexpr Index kWidth = 256;
    constexpr Index kMost = 32;
    if (!inside_piece() && work >= kLeastWork && size >= 2 * kLeastWidth) {
      count_ = std::clamp<Index>((size + kWidth / 2) / kWidth, 2, kMost);
    }
  }

  /// piece(first, width) for pieces of equal width.
  template <class Piece>
  void equal(const Piece& piece) const {
    run([&](Index i) { return i == count_ ? size_ : size_ * i / count_ / 16 * 16; }, piece);
  }
  /// piece(first, width) for columns of a lower triangle, cut into pieces of equal area.
  template <class Piece>
  void triangle(const Piece& piece) const {
    const auto boundary = [&](Index i) {
      const double left = 1.0 - static_cast<double>(i) / static_cast<double>(count_);
      return static_cast<Index>(static_cast<double>(size_) * (1.0 - std::sqrt(left)));
    };
    run(boundary, piece);
  }

 private:
  template <class Boundary, class Piece>
  void run(const Boundary& boundary, const Piece& piece) const {
    const SerialBlas serial;
    if (count_ == 1) {
      piece(Index{0}, size_);
      return;
    }
    parallel_for(count_, workers_for(work_), [&](Index i) {
      const Index first = boundary(i);
      piece(first, boundary(i + 1) - first);
    });
  }

  Index size_;
  double work_;
  Index count_ = 1;
};

// The calls of BLAS; each works on one piece, on one thread.

void gemm(double alpha, const MatrixRef& A, Op op_a, const MatrixRef& B, Op op_b, double beta,
          Eigen::Ref<Matrix> C) {
  const Index k = op_a == Op::none ? A.cols() : A.rows();
  cblas_dgemm(CblasColMajor, trans(op_a), trans(op_b), as_int(C.rows()), as_int(C.cols()),
              as_int(k), alpha, A.data(), ld(A), B.data(), ld(B), beta, C.data(), ld(C));
}

void syrk(double alpha, const MatrixRef& A, Op op, double beta, Eigen::Ref<Matrix> C) {
  const Index k = op == Op::none ? A.cols() : A.rows();
  cblas_dsyrk(CblasColMajor, CblasLower, trans(op), as_int(C.rows()), as_int(k), alpha, A.data(),
              ld(A), beta, C.data(), ld(C));
}

// Lower triangle of C ← α AᵀB + β C; blocks on its diagonal are computed whole.
void gemm_lower(double alpha, const MatrixRef& A, const MatrixRef& B, double beta,
                Eigen::Ref<Matrix> C) {
  constexpr Index kWhole = 96;
  const Index n = C.rows();
  if (n <= kWhole) return gemm(alpha, A, Op::transpose, B, Op::none, beta, C);
  const Index h = half(n);
  const auto A2 = A.rightCols(n - h);
  const auto B1 = B.leftCols(h);
  gemm_lower(alpha, A.leftCols(h), B1, beta, C.topLeftCorner(h, h));
  gemm(alpha, A2, Op::transpose, B1, Op::none, beta, C.bottomLeftCorner(n - h, h));
  gemm_lower(alpha, A2, B.rightCols(n - h), beta, C.bottomRightCorner(n - h, n - h));
}

void syr2k(double alpha, const MatrixRef& A, const MatrixRef& B, Eigen::Ref<Matrix> C) {
  cblas_dsyr2k(CblasColMajor, CblasLower, CblasTrans, as_int(C.rows()), as_int(A.rows()), alpha,
               A.data(), ld(A), B.data(), ld(B), 1.0, C.data(), ld(C));
}

void symm(double alpha, const MatrixRef& S, const MatrixRef& B, double beta, Eigen::Ref<Matrix> C) {
  cblas_dsymm(CblasColMajor, CblasLeft, CblasLower, as_int(C.rows()), as_int(C.cols()), alpha,
              S.data(), ld(S), B.data(), ld(B), beta, C.data(), ld(C));
}

void trmm(CBLAS_SIDE side, const MatrixRef& L, Op op, Eigen::Ref<Matrix> B) {
  cblas_dtrmm(CblasColMajor, side, CblasLower, trans(op), CblasNonUnit, as_int(B.rows()),
              as_int(B.cols()), 1.0, L.data(), ld(L), B.data(), ld(B));
}

void trsv(const MatrixRef& L, Op op, double* x, Index step) {
  const SerialBlas serial;
  cblas_dtrsv(CblasColMajor, CblasLower, trans(op), CblasNonUnit, as_int(L.rows()), L.data(), ld(L),
              x, as_int(std::max<Index>(step, 1)));
}

void solve_right_small(const MatrixRef& L, Op op, Eigen::Ref<Matrix> B) {
  const auto solve =
      op == Op::none ? small_triangle::solve_right : small_triangle::solve_right_transposed;
  solve(L.data(), L.outerStride(), L.rows(), B.data(), B.outerStride(), B.rows());
}

// op(L)⁻¹ B = (Bᵀ op(L)⁻ᵀ)ᵀ, some columns of B at a time.
void solve_left_small(const MatrixRef& L, Op op, Eigen::Ref<Matrix> B) {
  constexpr Index kTile = small_triangle::kMost;
  Eigen::Matrix<double, kTile, kTile> storage;
  for (Index first = 0; first < B.cols(); first += kTile) {
    auto columns = B.middleCols(first, std::min(kTile, B.cols() - first));
    auto tile = storage.topLeftCorner(columns.cols(), columns.rows());
    tile = columns.transpose();
    solve_right_small(L, op == Op::none ? Op::transpose : Op::none, tile);
    columns = tile.transpose();
  }
}

void solve_left_piece(const MatrixRef& L, Op op, Eigen::Ref<Matrix> B) {
  const Index n = L.rows();
  if (n <= small_triangle::kMost) {
    solve_left_small(L, op, B);
    return;
  }
  const Index h = half(n);
  const auto L11 = L.topLeftCorner(h, h);
  const auto L21 = L.bottomLeftCorner(n - h, h);
  const auto L22 = L.bottomRightCorner(n - h, n - h);
  auto B1 = B.topRows(h);
  auto B2 = B.bottomRows(n - h);
  if (op == Op::none) {
    solve_left_piece(L11, op, B1);
    gemm(-1.0, L21, Op::none, B1, Op::none, 1.0, B2);
    solve_left_piece(L22, op, B2);
  } else {
    solve_left_piece(L22, op, B2);
    gemm(-1.0, L21, Op::transpose, B2, Op::none, 1.0, B1);
    solve_left_piece(L11, op, B1);
  }
}

void solve_right_piece(const MatrixRef& L, Op op, Eigen::Ref<Matrix> B) {
  const Index n = L.rows();
  if (n <= small_triangle::kMost) {
    solve_right_small(L, op, B);
    return;
  }
  const Index h = half(n);
  const auto L11 = L.topLeftCorner(h, h);
  const auto L21 = L.bottomLeftCorner(n - h, h);
  const auto L22 = L.bottomRightCorner(n - h, n - h);
  auto B1 = B.leftCols(h);
  auto B2 = B.rightCols(n - h);
  if (op == Op::transpose) {
    solve_right_piece(L11, op, B1);
    gemm(-1.0, B1, Op::none, L21, Op::transpose, 1.0, B2);
    solve_right_piece(L22, op, B2);
  } else {
    solve_right_piece(L22, op, B2);
    gemm(-1.0, B2, Op::none, L21, Op::none, 1.0, B1);
    solve_right_piece(L11, op, B1);
  }
}

}  // namespace

void multiply(double alpha, const MatrixRef& A, Op op_a, const MatrixRef& B, Op op_b, double beta,
              Eigen::Ref<Matrix> C) {
  const Index k = op_a == Op::none ? A.cols() : A.rows();
  AMPLE_ASSERT(C.rows() == (op_a == Op::none ? A.rows() : A.cols()));
  AMPLE_ASSERT(C.cols() == (op_b == Op::none ? B.cols() : B.rows()));
  AMPLE_ASSERT(k == (op_b == Op::none ? B.rows() : B.cols()));
  if (C.size() == 0) return;
  const double work = 2.0 * flops(C.rows(), C.cols(), k);
  // Along the longer side of C, so that what every piece packs anew is the smaller operand.
  if (C.cols() >= C.rows()) {
    Pieces(C.cols(), work).equal([&](Index first, Index width) {
      auto piece = C.middleCols(first, width);
      if (op_b == Op::none) {
        gemm(alpha, A, op_a, B.middleCols(first, width), op_b, beta, piece);
      } else {
        gemm(alpha, A, op_a, B.middleRows(first, width), op_b, beta, piece);
      }
    });
  } else {
    Pieces(C.rows(), work).equal([&](Index first, Index width) {
      auto piece = C.middleRows(first, width);
      if (op_a == Op::none) {
        gemm(alpha, A.middleRows(first, width), op_a, B, op_b, beta, piece);
      } else {
        gemm(alpha, A.middleCols(first, width), op_a, B, op_b, beta, piece);
      }
    });
  }
}

namespace {

// Of a tall A, pieces of a small triangle are too narrow for BLAS's full rate. It is cut along its
// rows instead, each part with a sum of its own.
void gram_tall(double alpha, const MatrixRef& A, double beta, Eigen::Ref<Matrix> C) {
  constexpr Index kParts = 4;
  const Index n = C.rows();
  const double work = flops(A.rows(), n, n);
  Matrix sums(n, n * (kParts - 1));
  {
    const SerialBlas serial;
    parallel_for(kParts, workers_for(work), [&](Index i) {
      const Index first = A.rows() * i / kParts / 16 * 16;
      const Index last = i + 1 == kParts ? A.rows() : A.rows() * (i + 1) / kParts / 16 * 16;
      const auto rows = A.middleRows(first, last - first);
      if (i == 0) {
        syrk(alpha, rows, Op::transpose, beta, C);
      } else {
        syrk(alpha, rows, Op::transpose, 0.0, sums.middleCols(n * (i - 1), n));
      }
    });
  }
  for_columns(n, flops(n, n, kParts), [&](Index j) {
    for (Index i = 0; i < kParts - 1; ++i) {
      C.col(j).tail(n - j) += sums.col(n * i + j).tail(n - j);
    }
  });
}

}  // namespace

void gram(double alpha, const MatrixRef& A, double beta, Eigen::Ref<Matrix> C) {
  AMPLE_ASSERT(C.rows() == A.cols() && C.cols() == A.cols());
  if (C.size() == 0) return;
  const Index n = C.rows();
  constexpr Index kNarrow = 512;
  if (n <= kNarrow && A.rows() >= 4 * n && A.rows() >= 1024) {
    return gram_tall(alpha, A, beta, C);
  }
  Pieces(n, flops(A.rows(), n, n)).triangle([&](Index first, Index width) {
    const Index below = n - first - width;
    const auto columns = A.middleCols(first, width);
    syrk(alpha, columns, Op::transpose, beta, C.block(first, first, width, width));
    if (below == 0) return;
    gemm(alpha, A.rightCols(below), Op::transpose, columns, Op::none, beta,
         C.block(first + width, first, below, width));
  });
}

void outer(double alpha, const MatrixRef& A, double beta, Eigen::Ref<Matrix> C) {
  AMPLE_ASSERT(C.rows() == A.rows() && C.cols() == A.rows());
  if (C.size() == 0) return;
  const Index n = C.rows();
  Pieces(n, flops(A.cols(), n, n)).triangle([&](Index first, Index width) {
    const Index below = n - first - width;
    const auto rows = A.middleRows(first, width);
    syrk(alpha, rows, Op::none, beta, C.block(first, first, width, width));
    if (below == 0) return;
    gemm(alpha, A.bottomRows(below), Op::none, rows, Op::transpose, beta,
         C.block(first + width, first, below, width));
  });
}

void multiply_lower(double alpha, const MatrixRef& A, const MatrixRef& B, double beta,
                    Eigen::Ref<Matrix> C) {
  AMPLE_ASSERT(A.rows() == B.rows() && C.rows() == A.cols() && C.cols() == B.cols());
  if (C.size() == 0) return;
  const Index n = C.rows();
  Pieces(n, flops(A.rows(), n, n)).triangle([&](Index first, Index width) {
    const Index below = n - first - width;
    const auto columns = B.middleCols(first, width);
    gemm_lower(alpha, A.middleCols(first, width), columns, beta,
               C.block(first, first, width, width));
    if (below == 0) return;
    gemm(alpha, A.rightCols(below), Op::transpose, columns, Op::none, beta,
         C.block(first + width, first, below, width));
  });
}

void multiply_symmetric(double alpha, const MatrixRef& S, const MatrixRef& B, double beta,
                        Eigen::Ref<Matrix> C) {
  AMPLE_ASSERT(S.rows() == S.cols() && S.cols() == B.rows());
  AMPLE_ASSERT(C.rows() == B.rows() && C.cols() == B.cols());
  if (C.size() == 0) return;
  Pieces(C.cols(), 2.0 * flops(S.rows(), B.rows(), B.cols())).equal([&](Index first, Index width) {
    symm(alpha, S, B.middleCols(first, width), beta, C.middleCols(first, width));
  });
}

void multiply_triangle_left(const MatrixRef& L, Op op, Eigen::Ref<Matrix> B) {
  AMPLE_ASSERT(L.rows() == L.cols() && L.cols() == B.rows());
  if (B.size() == 0) return;
  Pieces(B.cols(), flops(L.rows(), B.rows(), B.cols())).equal([&](Index first, Index width) {
    trmm(CblasLeft, L, op, B.middleCols(first, width));
  });
}

void multiply_triangle_right(const MatrixRef& L, Op op, Eigen::Ref<Matrix> B) {
  AMPLE_ASSERT(L.rows() == L.cols() && L.rows() == B.cols());
  if (B.size() == 0) return;
  Pieces(B.rows(), flops(L.rows(), B.rows(), B.cols())).equal([&](Index first, Index width) {
    trmm(CblasRight, L, op, B.middleRows(first, width));
  });
}

void solve_left(const MatrixRef& L, Op op, Eigen::Ref<Matrix> B) {
  AMPLE_ASSERT(L.rows() == L.cols() && L.cols() == B.rows());
  if (B.size() == 0) return;
  Pieces(B.cols(), flops(L.rows(), B.rows(), B.cols())).equal([&](Index first, Index width) {
    solve_left_piece(L, op, B.middleCols(first, width));
  });
}

void solve_right(const MatrixRef& L, Op op, Eigen::Ref<Matrix> B) {
  AMPLE_ASSERT(L.rows() == L.cols() && L.rows() == B.cols());
  if (B.size() == 0) return;
  if (B.rows() == 1) {  // as a column, it is a solve from the left
    trsv(L, op == Op::none ? Op::transpose : Op::none, B.data(), B.outerStride());
    return;
  }
  Pieces(B.rows(), flops(L.rows(), B.rows(), B.cols())).equal([&](Index first, Index width) {
    solve_right_piece(L, op, B.middleRows(first, width));
  });
}

void solve_left_triangle(const MatrixRef& L, Eigen::Ref<Matrix> B) {
  AMPLE_ASSERT(L.rows() == L.cols() && L.cols() == B.rows() && B.rows() == B.cols());
  const Index n = L.rows();
  if (n <= small_triangle::kMost) return solve_left(L, Op::none, B);
  // [L11 0; L21 L22]⁻¹ [B11 0; B21 B22] = [X11 0; L22⁻¹(B21 − L21 X11)  L22⁻¹ B22]
  const Index h = half(n);
  const auto L22 = L.bottomRightCorner(n - h, n - h);
  auto B11 = B.topLeftCorner(h, h);
  auto B21 = B.bottomLeftCorner(n - h, h);
  solve_left_triangle(L.topLeftCorner(h, h), B11);
  multiply(-1.0, L.bottomLeftCorner(n - h, h), Op::none, B11, Op::none, 1.0, B21);
  solve_left(L22, Op::none, B21);
  solve_left_triangle(L22, B.bottomRightCorner(n - h, n - h));
}

void solve(const MatrixRef& L, Op op, Eigen::Ref<Vector> x) {
  AMPLE_ASSERT(L.rows() == L.cols() && L.cols() == x.size());
  if (x.size() == 0) return;
  trsv(L, op, x.data(), 1);
}

bool cholesky(Eigen::Ref<Matrix> A) {
  AMPLE_ASSERT(A.rows() == A.cols());
  const Index n = A.rows();
  if (n == 0) return true;
  if (n <= small_triangle::kMost) {
    // A bad entry ends on the diagonal: as no pivot, or as an infinite one.
    return small_triangle::cholesky(A.data(), A.outerStride(), n) && A.diagonal().allFinite();
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
      const double r = std::sqrt(L(k, k) * L(k, k) + x[k] * x[k]);
      const double cosine = L(k, k) / r;
      const double sine = x[k] / r;
      L(k, k) = r;
      rotate(L.col(k).data() + k + 1, x.data() + k + 1, M - k - 1, cosine, sine);
    }
  }
}

bool update_is_cheaper(Index rows, Index M) {
  // A rotation runs at about a tenth of the rate of a blocked factorisation and does nine times
  // M²/3 of its work for each row.
  return rows * 64 < M;
}

namespace {

// Up to here the halves of a triangle are worked on side by side; larger ones have pieces of their
// own to share out.
constexpr Index kHalves = 512;

int workers_for_halves(Index n) { return workers_for(flops(n, n, n) / 12.0); }

// L ← L⁻¹:  [L11 0; L21 L22]⁻¹ = [X11 0; −X22 L21 X11  X22]
void invert_triangle(Eigen::Ref<Matrix> L) {
  const Index n = L.rows();
  if (n <= small_triangle::kMost) {
    Tile inverse = Tile::Identity(n, n);
    solve_right_small(L, Op::none, inverse);
    L.triangularView<Eigen::Lower>() = inverse;
    return;
  }
  const Index h = half(n);
  auto L11 = L.topLeftCorner(h, h);
  auto L21 = L.bottomLeftCorner(n - h, h);
  auto L22 = L.bottomRightCorner(n - h, n - h);
  if (inside_piece() || n > kHalves) {
    invert_triangle(L11);
    invert_triangle(L22);
  } else {
    parallel_for(2, workers_for_halves(n), [&](Index i) { invert_triangle(i == 0 ? L11 : L22); });
  }
  multiply_triangle_right(L11, Op::none, L21);
  multiply_triangle_left(L22, Op::none, L21);
  L21 = -L21;
}

// X ← lower triangle of XᵀX for a lower triangular X
void square_triangle(Eigen::Ref<Matrix> X) {
  const Index n = X.rows();
  if (n <= small_triangle::kMost) {
    small_triangle::square(X.data(), X.outerStride(), n);
    return;
  }
  const Index h = half(n);
  auto X11 = X.topLeftCorner(h, h);
  auto X21 = X.bottomLeftCorner(n - h, h);
  auto X22 = X.bottomRightCorner(n - h, n - h);
  if (inside_piece() || n > kHalves) {
    square_triangle(X11);
    gram(1.0, X21, 1.0, X11);
    multiply_triangle_left(X22, Op::transpose, X21);
    square_triangle(X22);
    return;
  }
  Matrix squared = X22;  // X21 still needs X22 as it is
  parallel_for(2, workers_for_halves(n), [&](Index i) {
    if (i == 1) return square_triangle(squared);
    square_triangle(X11);
    gram(1.0, X21, 1.0, X11);
  });
  multiply_triangle_left(X22, Op::transpose, X21);
  X22.triangularView<Eigen::Lower>() = squared;
}

}  // namespace

void invert_from_cholesky(Eigen::Ref<Matrix> L) {
  AMPLE_ASSERT(L.rows() == L.cols());
  if (L.size() == 0) return;
  invert_triangle(L);
  square_triangle(L);
}

namespace {

/// Lower triangle of C ← C + α(AᵀB + BᵀA).
void add_gram(double alpha, const MatrixRef& A, const MatrixRef& B, Eigen::Ref<Matrix> C) {
  const Index n = C.rows();
  Pieces(n, 2.0 * flops(A.rows(), n, n)).triangle([&](Index first, Index width) {
    const Index below = n - first - width;
    const auto A_columns = A.middleCols(first, width);
    const auto B_columns = B.middleCols(first, width);
    syr2k(alpha, A_columns, B_columns, C.block(first, first, width, width));
    if (below == 0) return;
    auto rest = C.block(first + width, first, below, width);
    gemm(alpha, A.rightCols(below), Op::transpose, B_columns, Op::none, 1.0, rest);
    gemm(alpha, B.rightCols(below), Op::transpose, A_columns, Op::none, 1.0, rest);
  });
}

// [L11 0; L21 L22]ᵀ [S11 ·; S21 S22] [L11 0; L21 L22] = [X11 ·; X21 X22], with F = S22 L21 and
// G = S21 L11:
//   X22 = L22ᵀ S22 L22,   X21 = L22ᵀ (G + F),   X11 = L11ᵀ S11 L11 + (G + F/2)ᵀL21 + L21ᵀ(G + F/2)
void multiply_both_sides(const MatrixRef& L, Eigen::Ref<Matrix> S, Matrix& storage) {
  const Index n = L.rows();
  if (n <= small_triangle::kMost) {
    const SerialBlas serial;
    Tile X = S.selfadjointView<Eigen::Lower>();
    trmm(CblasRight, L, Op::none, X);
    trmm(CblasLeft, L, Op::transpose, X);
    S.triangularView<Eigen::Lower>() = X;
    return;
  }
  const Index h = half(n);
  const auto L11 = L.topLeftCorner(h, h);
  const auto L21 = L.bottomLeftCorner(n - h, h);
  const auto L22 = L.bottomRightCorner(n - h, n - h);
  auto S11 = S.topLeftCorner(h, h);
  auto S21 = S.bottomLeftCorner(n - h, h);
  auto S22 = S.bottomRightCorner(n - h, n - h);
  multiply_both_sides(L11, S11, storage);
  multiply_triangle_right(L11, Op::none, S21);
  auto F = storage.topLeftCorner(n - h, h);
  multiply_symmetric(0.5, S22, L21, 0.0, F);
  S21 += F;
  add_gram(1.0, S21, L21, S11);
  S21 += F;
  multiply_triangle_left(L22, Op::transpose, S21);
  multiply_both_sides(L22, S22, storage);
}

// Lower triangle of X ← L⁻ᵀ X. What stands above the diagonal of X is needed for nothing else.
void solve_left_lower(const MatrixRef& L, Eigen::Ref<Matrix> X) {
  const Index n = L.rows();
  if (n <= small_triangle::kMost) return solve_left(L, Op::transpose, X);
  const Index h = half(n);
  const auto L22 = L.bottomRightCorner(n - h, n - h);
  auto X11 = X.topLeftCorner(h, h);
  auto X21 = X.bottomLeftCorner(n - h, h);
  solve_left(L22, Op::transpose, X21);
  multiply_lower(-1.0, L.bottomLeftCorner(n - h, h), X21, 1.0, X11);
  solve_left_lower(L.topLeftCorner(h, h), X11);
  solve_left_lower(L22, X.bottomRightCorner(n - h, n - h));
}

}  // namespace

void multiply_both_sides(const MatrixRef& L, Eigen::Ref<Matrix> S) {
  AMPLE_ASSERT(L.rows() == L.cols() && S.rows() == L.rows() && S.cols() == L.cols());
  if (S.size() == 0) return;
  Matrix storage(L.rows() / 2 + 1, half(L.rows()));
  multiply_both_sides(L, S, storage);
}

// One side after the other. Taken together in halves, as above, it would be a quarter less work;
// but then L⁻ᵀ and L⁻¹ of an ill-conditioned L meet in differences, which lose twice the digits.
void solve_both_sides(const MatrixRef& L, Eigen::Ref<Matrix> S) {
  AMPLE_ASSERT(L.rows() == L.cols() && S.rows() == L.rows() && S.cols() == L.cols());
  mirror_lower(S);
  solve_right(L, Op::none, S);
  solve_left_lower(L, S);
}

void copy_lower(const MatrixRef& from, Eigen::Ref<Matrix> to) {
  AMPLE_ASSERT(from.rows() == from.cols() && to.rows() == from.rows() && to.cols() == from.cols());
  const Index n = from.rows();
  for_columns(n, flops(n, n, 1), [&](Index j) { to.col(j).tail(n - j) = from.col(j).tail(n - j); });
}

void mirror_lower(Eigen::Ref<Matrix> A) {
  AMPLE_ASSERT(A.rows() == A.cols());
  // In tiles, so that the strided side stays in cache.
  constexpr Index kTile = 64;
  const Index n = A.rows();
  for_columns((n + kTile - 1) / kTile, flops(n, n, 1), [&](Index tile) {
    const Index j = tile * kTile;
    const Index w = std::min(kTile, n - j);
    for (Index c = 0; c < w; ++c) {
      for (Index r = c + 1; r < w; ++r) A(j + c, j + r) = A(j + r, j + c);
    }
    for (Index i = j + kTile; i < n; i += kTile) {
      const Index h = std::min(kTile, n - i);
      A.block(j, i, w, h) = A.block(i, j, h, w).transpose();
    }
  });
}

void clear_upper(Eigen::Ref<Matrix> A) {
  for (Index j = 1; j < A.cols(); ++j) A.col(j).head(std::min(j, A.rows())).setZero();
}

double inner_lower(const MatrixRef& A, const MatrixRef& B) {
  AMPLE_ASSERT(A.rows() == A.cols() && B.rows() == A.rows() && B.cols() == A.cols());
  const Index n = A.rows();
  Vector columns(n);
  for_columns(n, flops(n, n, 1), [&](Index j) {
    const Index below = n - j - 1;
    columns[j] = A(j, j) * B(j, j) + 2.0 * A.col(j).tail(below).dot(B.col(j).tail(below));
  });
  return columns.sum();
}

double sum_log_diagonal(const MatrixRef& L) {
  return L.rows() == 0 ? 0.0 : L.diagonal().array().log().sum();
}

}  // namespace ample
