// Every function against Eigen's dense algebra, at sizes on both sides of the recursion's bases, on
// whole matrices and on parts of larger ones.
#include "linalg.h"

#include <limits>

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <gtest/gtest.h>

#include "support/check_gradient.h"
#include "support/random.h"

namespace ample {
namespace {

using testing::Random;
using testing::relative_error;

constexpr double kTolerance = 1e-12;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kOutside = 1234.5;

class Linalg : public ::testing::TestWithParam<Index> {
 protected:
  Index n() const { return GetParam(); }
  // Another size, so that no dimension is mistaken for another one.
  Index m() const { return n() / 2 + 3; }

  /// Runs `body(A)` on a copy of `start` that is part of a larger matrix, says that nothing outside
  /// of it was touched, and returns it.
  template <class Body>
  static Matrix inside_a_larger_matrix(const Matrix& start, const Body& body) {
    Matrix whole = Matrix::Constant(start.rows() + 5, start.cols() + 3, kOutside);
    auto part = whole.block(2, 1, start.rows(), start.cols());
    part = start;
    body(part);
    const Matrix result = part;
    part.setConstant(kOutside);
    EXPECT_EQ(whole, Matrix::Constant(whole.rows(), whole.cols(), kOutside));
    return result;
  }
  template <class Body>
  static void expect_result(const Matrix& start, const Matrix& expected, const Body& body) {
    EXPECT_LE(relative_error(inside_a_larger_matrix(start, body), expected), kTolerance);
    Matrix own = start;
    body(own);
    EXPECT_LE(relative_error(own, expected), kTolerance);
  }

  /// A well-conditioned factor, with rubbish above its diagonal, as a part of a larger matrix.
  struct Factor {
    Matrix storage;
    Matrix L;  // with zeros above the diagonal
    [[nodiscard]] auto stored() const { return storage.block(3, 2, L.rows(), L.cols()); }
  };
  Factor factor() {
    Matrix L = random_.normal(n(), n()) / std::sqrt(static_cast<double>(n()) + 1.0) / 2.0;
    L.diagonal() = Vector::NullaryExpr(n(), [&] { return random_.uniform(0.8, 1.6); });
    Matrix storage = Matrix::Constant(n() + 4, n() + 2, kNan);
    storage.block(3, 2, n(), n()) = L;
    storage.block(3, 2, n(), n()).triangularView<Eigen::StrictlyUpper>().setConstant(kNan);
    return {storage, L.triangularView<Eigen::Lower>()};
  }
  Matrix with_rubbish_above(Matrix A) {
    A.triangularView<Eigen::StrictlyUpper>().setConstant(kNan);
    return A;
  }
  static Matrix lower(const Matrix& A) { return A.triangularView<Eigen::Lower>(); }
  Matrix positive_definite() {
    const Matrix G = random_.normal(n(), n() + 2);
    return G * G.transpose() / static_cast<double>(n() + 1) + Matrix::Identity(n(), n());
  }

  Random random_{17};
};

INSTANTIATE_TEST_SUITE_P(Sizes, Linalg,
                         ::testing::Values<Index>(0, 1, 2, 31, 32, 33, 63, 64, 65, 96, 97, 100,
                                                  300),
                         ::testing::PrintToStringParamName());

TEST_P(Linalg, MultiplyIsTheProduct) {
  const Matrix C = random_.normal(n(), m());
  for (const Index k : {Index{0}, Index{1}, n() + 1}) {
    const Matrix A = random_.normal(n(), k);
    const Matrix B = random_.normal(k, m());
    const Matrix At = A.transpose();
    const Matrix Bt = B.transpose();
    const Matrix expected = 1.5 * A * B - 0.5 * C;
    expect_result(C, expected, [&](auto&& X) { multiply(1.5, A, Op::none, B, Op::none, -0.5, X); });
    expect_result(C, expected,
                  [&](auto&& X) { multiply(1.5, At, Op::transpose, B, Op::none, -0.5, X); });
    expect_result(C, expected,
                  [&](auto&& X) { multiply(1.5, A, Op::none, Bt, Op::transpose, -0.5, X); });
    expect_result(C, expected,
                  [&](auto&& X) { multiply(1.5, At, Op::transpose, Bt, Op::transpose, -0.5, X); });
    // β = 0 overwrites whatever was there.
    expect_result(Matrix::Constant(n(), m(), kNan), A * B,
                  [&](auto&& X) { multiply(1.0, A, Op::none, B, Op::none, 0.0, X); });
    // Control.
    if (C.size() > 0 && k > 0) {
      Matrix off = C;
      multiply(1.5 + 1e-6, A, Op::none, B, Op::none, -0.5, off);
      EXPECT_GT(relative_error(off, expected), kTolerance);
    }
  }
}

TEST_P(Linalg, GramAndOuterAreProductsWithTheTransposeAndLeaveTheUpperTriangleAlone) {
  for (const Index k : {Index{0}, Index{1}, m()}) {
    const Matrix A = random_.normal(k, n());
    const Matrix At = A.transpose();
    const Matrix S = positive_definite();
    Matrix expected = 0.5 * A.transpose() * A + 2.0 * S;
    expected.triangularView<Eigen::StrictlyUpper>() = S;
    expect_result(S, expected, [&](auto&& C) { gram(0.5, A, 2.0, C); });
    expect_result(S, expected, [&](auto&& C) { outer(0.5, At, 2.0, C); });
    Matrix fresh = Matrix::Constant(n(), n(), kNan);
    gram(1.0, A, 0.0, fresh);
    EXPECT_LE(relative_error(lower(fresh), lower(A.transpose() * A)), kTolerance);
    fresh.setConstant(kNan);
    outer(1.0, At, 0.0, fresh);
    EXPECT_LE(relative_error(lower(fresh), lower(A.transpose() * A)), kTolerance);
  }
}

TEST(LinalgShapes, GramOfATallMatrix) {
  Random random(3);
  const Matrix A = random.normal(1501, 70);
  const Matrix S = random.normal(70, 70);
  Matrix expected = 0.5 * A.transpose() * A + 2.0 * S;
  expected.triangularView<Eigen::StrictlyUpper>() = S;
  Matrix C = S;
  gram(0.5, A, 2.0, C);
  EXPECT_LE(relative_error(C, expected), kTolerance);
}

TEST_P(Linalg, MultiplySymmetricReadsTheLowerTriangleOnly) {
  const Matrix S = positive_definite();
  const Matrix half = with_rubbish_above(S);
  const Matrix B = random_.normal(n(), m());
  const Matrix C = random_.normal(n(), m());
  expect_result(C, 0.7 * S * B + 1.1 * C,
                [&](auto&& X) { multiply_symmetric(0.7, half, B, 1.1, X); });
  expect_result(Matrix::Constant(n(), m(), kNan), S * B,
                [&](auto&& X) { multiply_symmetric(1.0, half, B, 0.0, X); });
}

TEST_P(Linalg, TriangularProductsReadTheLowerTriangleOnly) {
  const Factor f = factor();
  const Matrix B = random_.normal(n(), m());
  const Matrix Bt = B.transpose();
  expect_result(B, f.L * B, [&](auto&& X) { multiply_triangle_left(f.stored(), Op::none, X); });
  expect_result(B, f.L.transpose() * B,
                [&](auto&& X) { multiply_triangle_left(f.stored(), Op::transpose, X); });
  expect_result(Bt, Bt * f.L, [&](auto&& X) { multiply_triangle_right(f.stored(), Op::none, X); });
  expect_result(Bt, Bt * f.L.transpose(),
                [&](auto&& X) { multiply_triangle_right(f.stored(), Op::transpose, X); });
}

TEST_P(Linalg, SolvesUndoTriangularProducts) {
  const Factor f = factor();
  const Matrix B = random_.normal(n(), m());
  const Matrix Bt = B.transpose();
  expect_result(f.L * B, B, [&](auto&& X) { solve_left(f.stored(), Op::none, X); });
  expect_result(f.L.transpose() * B, B,
                [&](auto&& X) { solve_left(f.stored(), Op::transpose, X); });
  expect_result(Bt * f.L, Bt, [&](auto&& X) { solve_right(f.stored(), Op::none, X); });
  expect_result(Bt * f.L.transpose(), Bt,
                [&](auto&& X) { solve_right(f.stored(), Op::transpose, X); });
  const Vector b = random_.normal(n());
  Vector x = f.L * b;
  solve(f.stored(), Op::none, x);
  EXPECT_LE(relative_error(x, b), kTolerance);
  x = f.L.transpose() * b;
  solve(f.stored(), Op::transpose, x);
  EXPECT_LE(relative_error(x, b), kTolerance);
  // Control: the other side of the equation is another problem.
  if (n() > 1) {
    x = f.L * b;
    solve(f.stored(), Op::transpose, x);
    EXPECT_GT(relative_error(x, b), 1e-6);
  }
}

TEST_P(Linalg, CholeskyFactorisesAndLeavesTheUpperTriangleAlone) {
  const Matrix S = positive_definite();
  const Matrix expected = S.llt().matrixL();
  Matrix start = S;
  start.triangularView<Eigen::StrictlyUpper>().setConstant(kOutside);
  Matrix full = expected;
  full.triangularView<Eigen::StrictlyUpper>().setConstant(kOutside);
  expect_result(start, full, [&](auto&& A) { EXPECT_TRUE(cholesky(A)); });
  // Not read either.
  Matrix half = with_rubbish_above(S);
  ASSERT_TRUE(cholesky(half));
  EXPECT_LE(relative_error(lower(half), expected), kTolerance);
}

TEST_P(Linalg, InvertFromCholeskyIsTheInverse) {
  if (n() == 0) {
    Matrix none(0, 0);
    invert_from_cholesky(none);
    return;  // Eigen itself cannot invert it
  }
  const Matrix S = positive_definite();
  const Matrix L = S.llt().matrixL();
  const Matrix inverse = S.inverse();
  const Matrix result =
      inside_a_larger_matrix(with_rubbish_above(L), [](auto&& A) { invert_from_cholesky(A); });
  EXPECT_LE(relative_error(lower(result), lower(inverse)), kTolerance);
  EXPECT_LE(relative_error(result.selfadjointView<Eigen::Lower>() * S, Matrix::Identity(n(), n())),
            kTolerance);
}

TEST_P(Linalg, UpdateCholeskyIsTheFactorOfTheSum) {
  const Matrix S = positive_definite();
  const Matrix L = S.llt().matrixL();
  for (const Index rows : {Index{0}, Index{1}, Index{5}}) {
    const Matrix R = random_.normal(rows, n());
    const Matrix expected = (S + R.transpose() * R).llt().matrixL();
    const Matrix result =
        inside_a_larger_matrix(with_rubbish_above(L), [&](auto&& A) { update_cholesky(A, R); });
    EXPECT_LE(relative_error(lower(result), expected), kTolerance);
    if (rows > 0 && n() > 0) {
      EXPECT_GT(relative_error(L, expected), 1e-6);
    }
  }
}

TEST_P(Linalg, BothSidesAreMultipliedAndSolvedByTheLowerTriangleOnly) {
  const Factor f = factor();
  const Matrix S = positive_definite();
  const Matrix product = f.L.transpose() * S * f.L;
  const Matrix multiplied = inside_a_larger_matrix(
      with_rubbish_above(S), [&](auto&& A) { multiply_both_sides(f.stored(), A); });
  EXPECT_LE(relative_error(lower(multiplied), lower(product)), kTolerance);
  const Matrix solved = inside_a_larger_matrix(with_rubbish_above(product),
                                               [&](auto&& A) { solve_both_sides(f.stored(), A); });
  EXPECT_LE(relative_error(lower(solved), lower(S)), kTolerance);
}

TEST_P(Linalg, LowerTriangleOfASymmetricProduct) {
  const Matrix C = positive_definite();
  for (const Index k : {Index{0}, Index{1}, m()}) {
    const Matrix A = random_.normal(k, n());
    const Matrix R = random_.normal(k, k);
    const Matrix SA = (R + R.transpose()) * A;
    const Matrix result = inside_a_larger_matrix(
        with_rubbish_above(C), [&](auto&& X) { multiply_lower(0.5, A, SA, 2.0, X); });
    EXPECT_LE(relative_error(lower(result), lower(0.5 * A.transpose() * SA + 2.0 * C)), kTolerance);
    const Matrix fresh = inside_a_larger_matrix(
        Matrix::Constant(n(), n(), kNan), [&](auto&& X) { multiply_lower(1.0, A, SA, 0.0, X); });
    EXPECT_LE(relative_error(lower(fresh), lower(A.transpose() * SA)), kTolerance);
  }
}

TEST_P(Linalg, InnerProductByTheLowerTriangles) {
  const Matrix A = positive_definite();
  const Matrix B = positive_definite();
  const double expected = A.cwiseProduct(B).sum();
  EXPECT_NEAR(inner_lower(with_rubbish_above(A), with_rubbish_above(B)), expected,
              kTolerance * std::abs(expected));
}

TEST_P(Linalg, CholeskyOfAnIndefiniteMatrixFails) {
  if (n() == 0) return;
  // One bad direction, first, last and in the middle, however large the rest.
  for (const Index bad : {Index{0}, n() / 2, n() - 1}) {
    Matrix S = positive_definite();
    S(bad, bad) = -1e-3;
    EXPECT_FALSE(cholesky(S)) << bad;
    S = positive_definite();
    const Vector v = random_.normal(n());
    S -= 1.1 / v.dot(S.llt().solve(v)) * (v * v.transpose());
    EXPECT_FALSE(cholesky(S)) << bad;
  }
  Matrix zero = Matrix::Zero(n(), n());
  EXPECT_FALSE(cholesky(zero));
}

TEST_P(Linalg, SolveOfATriangleIsTheSolve) {
  const Factor L = factor();
  const Matrix B = lower(random_.normal(n(), n()));
  const Matrix expected = L.L.triangularView<Eigen::Lower>().solve(B);
  const Matrix X = inside_a_larger_matrix(B, [&](auto&& Y) { solve_left_triangle(L.stored(), Y); });
  EXPECT_LE(relative_error(X, expected), kTolerance);
  EXPECT_EQ(X, lower(X));
}

TEST_P(Linalg, CholeskyOfAMatrixWithOneValueThatIsNotFiniteFails) {
  if (n() == 0) return;
  const Matrix S = positive_definite();
  std::vector<std::pair<Index, Index>> places;
  if (n() <= 2) {
    for (Index j = 0; j < n(); ++j) {
      for (Index i = j; i < n(); ++i) places.emplace_back(i, j);
    }
  } else {
    for (const Index i : {Index{0}, Index{1}, n() / 2 - 1, n() / 2, n() - 2, n() - 1}) {
      for (const Index j : {Index{0}, Index{1}, n() / 2 - 1, n() / 2, n() - 2, n() - 1}) {
        if (j <= i) places.emplace_back(i, j);
      }
    }
    for (int extra = 0; extra < 20; ++extra) {
      const auto i = static_cast<Index>(random_.uniform(0.0, static_cast<double>(n())));
      const auto j = static_cast<Index>(random_.uniform(0.0, static_cast<double>(i + 1)));
      places.emplace_back(i, j);
    }
  }
  for (const auto& [i, j] : places) {
    for (const double bad : {kNan, kInfinity, -kInfinity}) {
      Matrix A = S;
      A(i, j) = bad;
      EXPECT_FALSE(cholesky(A)) << bad << " at " << i << ", " << j;
    }
  }
  Matrix all = Matrix::Constant(n(), n(), kNan);
  EXPECT_FALSE(cholesky(all));
  all.setConstant(kInfinity);
  EXPECT_FALSE(cholesky(all));
  Matrix good = S;
  EXPECT_TRUE(cholesky(good));
}

TEST_P(Linalg, MirrorAndClearActOnTheUpperTriangleOnly) {
  const Matrix A = random_.normal(n(), n());
  const Matrix mirrored = A.selfadjointView<Eigen::Lower>();
  EXPECT_EQ(inside_a_larger_matrix(A, [](auto&& X) { mirror_lower(X); }), mirrored);
  EXPECT_EQ(inside_a_larger_matrix(A, [](auto&& X) { clear_upper(X); }), lower(A));
}

TEST_P(Linalg, CopyLowerLeavesTheUpperTriangleAlone) {
  const Matrix A = random_.normal(n(), n());
  const Matrix B = random_.normal(n(), n());
  Matrix expected = B;
  expected.triangularView<Eigen::Lower>() = A;
  EXPECT_EQ(inside_a_larger_matrix(B, [&](auto&& X) { copy_lower(A, X); }), expected);
}

TEST_P(Linalg, SumLogDiagonalIsHalfTheLogDeterminant) {
  const Matrix S = positive_definite();
  const Matrix L = S.llt().matrixL();
  double expected = 0.0;
  for (Index i = 0; i < n(); ++i) expected += std::log(L(i, i));
  EXPECT_LE(relative_error(sum_log_diagonal(L), expected), kTolerance);
}

TEST(LinalgShapes, ShapesThatDoNotFitAreABug) {
  Matrix C(2, 3);
  EXPECT_THROW(multiply(1.0, Matrix(2, 4), Op::none, Matrix(3, 3), Op::none, 0.0, C),
               std::logic_error);
  EXPECT_THROW(solve_left(Matrix(3, 3), Op::none, C), std::logic_error);
  EXPECT_THROW(solve_right(Matrix(2, 2), Op::none, C), std::logic_error);
  EXPECT_THROW(gram(1.0, Matrix(2, 2), 0.0, C), std::logic_error);
  EXPECT_THROW((void)cholesky(C), std::logic_error);
}

}  // namespace
}  // namespace ample
