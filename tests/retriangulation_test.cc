#include "retriangulation.h"

#include <utility>

#include <Eigen/Cholesky>
#include <gtest/gtest.h>

#include "support/random.h"

namespace ample {
namespace {

using testing::Random;

struct Problem {
  Matrix L;   // [m,m]
  Matrix Gt;  // [k,m]
};

Problem random_problem(Index m, Index k) {
  Random random(3);
  Matrix L = random.normal(m, m).triangularView<Eigen::Lower>();
  L.diagonal() = L.diagonal().cwiseAbs().array() + 5.0;
  return {std::move(L), random.normal(k, m)};
}

// Below, at and above the width of a panel; more columns than rows; none at all.
class Sizes : public ::testing::TestWithParam<std::pair<Index, Index>> {
 protected:
  Index m = GetParam().first;
  Index k = GetParam().second;
  Problem p = random_problem(m, k);
  Retriangulation triangle{p.L, p.Gt};

  [[nodiscard]] Matrix Q() const {
    Matrix all = Matrix::Identity(m + k, m + k);
    triangle.multiply_right(all.leftCols(m), all.rightCols(k));
    return all;
  }
};

TEST_P(Sizes, TheFactorIsThatOfTheSum) {
  const Matrix sum = p.L * p.L.transpose() + p.Gt.transpose() * p.Gt;
  const Matrix expected = sum.llt().matrixL();
  EXPECT_LT((triangle.factor() - expected).norm(), 1e-12 * (1.0 + expected.norm()));
}

TEST_P(Sizes, QIsOrthogonalAndLeavesNothingBesideTheFactor) {
  EXPECT_LT((Q().transpose() * Q() - Matrix::Identity(m + k, m + k)).norm(), 1e-10);
  Matrix stay = p.L;
  Matrix go = p.Gt.transpose();
  triangle.multiply_right(stay, go);
  EXPECT_LT((stay - triangle.factor()).norm(), 1e-12 * (1.0 + stay.norm()));
  EXPECT_LT(go.norm(), 1e-12 * (1.0 + stay.norm()));
}

TEST_P(Sizes, FromTheLeftItIsTheTranspose) {
  const Matrix C = Random(4).normal(m + k, 3);
  Matrix out = C;
  triangle.multiply_left(out.topRows(m), out.bottomRows(k));
  EXPECT_LT((out - Q().transpose() * C).norm(), 1e-12 * (1.0 + C.norm()));
}

INSTANTIATE_TEST_SUITE_P(Retriangulation, Sizes,
                         ::testing::Values(std::pair<Index, Index>{1, 1}, std::pair{5, 2},
                                           std::pair{64, 10}, std::pair{65, 1}, std::pair{150, 40},
                                           std::pair{20, 90}, std::pair{30, 0}));

// Two points that are nearly one leave a pivot of next to nothing.
TEST(Retriangulation, TinyPivotsLoseNoDigits) {
  Problem p = random_problem(80, 20);
  p.L.row(40) = p.L.row(39);
  p.L(40, 40) = 1e-9;
  p.Gt.col(40) = p.Gt.col(39);
  const Retriangulation triangle(p.L, p.Gt);
  const Matrix sum = p.L * p.L.transpose() + p.Gt.transpose() * p.Gt;
  const Matrix& L = triangle.factor();
  EXPECT_NEAR(L(40, 40), 1e-9, 1e-13);
  EXPECT_LT((L * L.transpose() - sum).norm(), 1e-13 * sum.norm());
}

}  // namespace
}  // namespace ample
