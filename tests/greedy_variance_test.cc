// Greedy variance selection against conditional variances computed from scratch at every step.
#include "greedy_variance.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "linalg.h"
#include "support/check_gradient.h"
#include "support/every_kernel.h"
#include "support/naive.h"
#include "support/random.h"
#include "support/streams.h"

namespace ample {
namespace {

using naive::QuadMatrix;
using naive::Twin;
using testing::Random;
using testing::relative_error;
using testing::stacked;

/// var[f(x_i) | b] for all points of the pool, b = f(Z) + √ε noise.
Vector conditional_variance(const Twin& k, const Matrix& pool, const Matrix& Z, double jitter) {
  const Vector theta = naive::theta_of(k.kernel);
  Vector variance = naive::matrix(k, theta, pool, pool).diagonal();
  if (Z.rows() == 0) return variance;
  const QuadMatrix K_pz = naive::matrix(k, theta, pool, Z);
  const QuadMatrix K_zz =
      QuadMatrix(naive::matrix(k, theta, Z, Z)) + QuadMatrix::identity(Z.rows(), jitter);
  const Matrix explained = (K_pz * naive::invert(K_zz).matrix * K_pz.transpose()).rounded();
  return variance - explained.diagonal();
}

Matrix taken_rows(const GreedyVariance& greedy, const Matrix& pool) {
  return pool(greedy.taken(), Eigen::all);
}

/// Takes `steps` points and checks each choice and all residuals against scratch.
void expect_greedy(const Twin& k, GreedyVariance& greedy, const Matrix& pool, const Matrix& Z,
                   double jitter, Index steps) {
  for (Index step = 0; step < steps; ++step) {
    const Vector before =
        conditional_variance(k, pool, stacked(Z, taken_rows(greedy, pool)), jitter);
    const auto j = greedy.take_next();
    if (!j) {
      EXPECT_TRUE(greedy.stopped_by_rounding());
      EXPECT_LE(before.maxCoeff(), 1e-10);
      return;
    }
    double largest = 0.0;
    for (Index i = 0; i < pool.rows(); ++i) {
      const auto& taken = greedy.taken();
      const bool was_taken = std::find(taken.begin(), taken.end() - 1, i) != taken.end() - 1;
      if (!was_taken) largest = std::max(largest, before[i]);
    }
    EXPECT_GE(before[*j], largest - 1e-9) << "step " << step;
    const Matrix all = stacked(Z, taken_rows(greedy, pool));
    EXPECT_LE(relative_error(greedy.residual(), conditional_variance(k, pool, all, jitter)), 1e-9)
        << "step " << step;
    EXPECT_GE(greedy.residual().minCoeff(), 0.0);
    EXPECT_EQ(greedy.size(), all.rows());
  }
}

TEST_P(EveryKernel, TakesThePointOfLargestConditionalVariance) {
  // A jitter this large is seen in every residual.
  constexpr double jitter = 1e-3;
  const Twin k = twin();
  const Matrix pool = Random(1).normal(25, 2);
  GreedyVariance greedy(k.kernel, pool, jitter);
  expect_greedy(k, greedy, pool, Matrix(0, 2), jitter, 12);
  // Control: at another jitter the residuals are others.
  const Matrix Z = taken_rows(greedy, pool);
  EXPECT_GT(relative_error(greedy.residual(), conditional_variance(k, pool, Z, 1.1 * jitter)),
            1e-9);
}

TEST_P(EveryKernel, GoesOnFromInducingInputsOutsideThePool) {
  constexpr double jitter = 1e-3;
  const Twin k = twin();
  const Matrix pool = Random(2).normal(20, 2);
  const Matrix Z = Random(3).normal(5, 2);
  Matrix L = k.kernel(Z, Z);
  L.diagonal().array() += jitter;
  ASSERT_TRUE(cholesky(L));
  GreedyVariance greedy(k.kernel, pool, jitter);
  greedy.start_from(Z, L);
  EXPECT_EQ(greedy.size(), 5);
  EXPECT_LE(relative_error(greedy.residual(), conditional_variance(k, pool, Z, jitter)), 1e-9);
  expect_greedy(k, greedy, pool, Z, jitter, 8);
  EXPECT_EQ(greedy.taken().size(), 8U);
}

TEST_P(EveryKernel, VtIsTheWhitenedCrossCovariance) {
  const Twin k = twin();
  const Matrix pool = Random(4).normal(15, 2);
  GreedyVariance greedy(k.kernel, pool, 1e-6);
  for (int i = 0; i < 6; ++i) {
    if (!greedy.take_next()) break;
  }
  const Matrix Z = taken_rows(greedy, pool);
  Matrix L = k.kernel(Z, Z);
  L.diagonal().array() += 1e-6;
  ASSERT_TRUE(cholesky(L));
  Matrix Vt = k.kernel(pool, Z);
  solve_right(L, Op::transpose, Vt);
  EXPECT_LE(relative_error(Matrix(greedy.Vt()), Vt), 1e-8);
}

TEST(GreedyVariance, AnInducingVariableOfThePoolBringsItsJitterWithIt) {
  // The first four points are variables b = f + √ε noise. Once taken, they are known without it.
  constexpr double jitter = 1e-2;
  const Kernel k = SquaredExponential{1.0, 0.5};
  const Matrix pool = Random(5).normal(10, 2);
  GreedyVariance greedy(k, pool, jitter, 4);
  while (greedy.take_next()) {
  }
  ASSERT_EQ(greedy.size(), 10);
  Matrix K = k(pool, pool);
  Matrix K_bb = K;
  K_bb.diagonal().array() += jitter;
  const Matrix L = greedy.Vt();
  // L Lᵀ restricted to the inducing ones is their own covariance; to the others, less than theirs.
  const Matrix product = L * L.transpose();
  EXPECT_LE(relative_error(product.topLeftCorner(4, 4), K_bb.topLeftCorner(4, 4)), 1e-12);
  EXPECT_LE(greedy.residual().head(4).maxCoeff(), 1e-12);
  EXPECT_GT(greedy.residual().tail(6).minCoeff(), 1e-4);
}

TEST(GreedyVariance, OfManyPointsIsAsGoodAsOfFew) {
  // Beyond some size the covariance that is left is kept and brought up to date in blocks.
  constexpr double jitter = 1e-6;
  const Kernel k = SquaredExponential{2.0, 0.3};
  const Matrix pool = Random(8).normal(1100, 3);
  const auto factor = [&](const Matrix& Z) {
    Matrix L = k(Z, Z);
    L.diagonal().array() += jitter;
    EXPECT_TRUE(cholesky(L));
    return L;
  };
  for (const Index outside : {0, 40}) {
    const Matrix Z = Random(9).normal(outside, 3);
    GreedyVariance greedy(k, pool, jitter);
    if (outside > 0) greedy.start_from(Z, factor(Z));
    double last = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 900; ++i) {
      const Vector before = greedy.residual();
      const auto j = greedy.take_next();
      ASSERT_TRUE(j);
      EXPECT_LE(before[*j], last) << "point " << i;  // what is left can only fall
      last = before[*j];
    }
    const Matrix all = stacked(Z, taken_rows(greedy, pool));
    Matrix Vt = k(pool, all);
    solve_right(factor(all), Op::transpose, Vt);
    EXPECT_LE(relative_error(Matrix(greedy.Vt()), Vt), 1e-9);
    EXPECT_LE(
        (greedy.residual() - k.diagonal(pool) + Vt.rowwise().squaredNorm()).cwiseAbs().maxCoeff(),
        1e-12);
  }
}

TEST(GreedyVariance, StopsByRoundingWhenOnlyDuplicatesAreLeft) {
  const Kernel k = SquaredExponential{2.0, 0.5};
  const Matrix points = Random(6).normal(4, 2);
  Matrix pool(12, 2);
  pool << points, points, points;
  GreedyVariance greedy(k, pool, 0.0);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(greedy.take_next().has_value());
  EXPECT_FALSE(greedy.take_next().has_value());
  EXPECT_TRUE(greedy.stopped_by_rounding());
  // No point was taken in two copies.
  std::vector<Index> which;
  for (const Index i : greedy.taken()) which.push_back(i % 4);
  std::sort(which.begin(), which.end());
  EXPECT_EQ(which, (std::vector<Index>{0, 1, 2, 3}));
}

TEST(GreedyVariance, WithJitterDuplicatesComeLast) {
  const Kernel k = SquaredExponential{2.0, 0.5};
  const Matrix points = Random(6).normal(4, 2);
  Matrix pool(8, 2);
  pool << points, points;
  GreedyVariance greedy(k, pool, 1e-8);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(greedy.take_next().has_value());
  EXPECT_LE(greedy.residual().maxCoeff(), 1.01e-8);
}

TEST(GreedyVariance, EndsWhenThePoolIsUsedUp) {
  const Matrix pool = Random(7).normal(6, 2);
  GreedyVariance greedy(Matern12{}, pool, 1e-8);
  std::vector<char> seen(6, 0);
  for (int i = 0; i < 6; ++i) {
    const std::optional<Index> j = greedy.take_next();
    ASSERT_TRUE(j.has_value());
    EXPECT_EQ(seen[static_cast<std::size_t>(*j)]++, 0);  // each once
  }
  EXPECT_FALSE(greedy.take_next().has_value());
  EXPECT_FALSE(greedy.stopped_by_rounding());
}

TEST(GreedyVariance, LeavesLessThanPointsTakenAtRandom) {
  const Twin k = naive::twin(SquaredExponential{1.0, 0.7});
  const Matrix pool = Random(8).uniform(60, 1, 0.0, 5.0);
  GreedyVariance greedy(k.kernel, pool, 1e-8);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(greedy.take_next().has_value());
  const Vector at_random = conditional_variance(k, pool, pool.topRows(8), 1e-8);
  EXPECT_LT(greedy.residual().sum(), at_random.sum());
}

TEST(GreedyVariance, APoolThatOutgrowsItsReserveKeepsItsPast) {
  const Twin k = naive::twin(Matern12{1.0, 0.2});
  const Matrix pool = Random(9).normal(150, 2);
  GreedyVariance greedy(k.kernel, pool, 1e-6);
  while (greedy.take_next()) {
  }
  ASSERT_EQ(greedy.size(), 150);
  const Matrix Z = taken_rows(greedy, pool);
  Matrix K = k.kernel(Z, Z);
  K.diagonal().array() += 1e-6;
  Matrix L = greedy.Vt()(greedy.taken(), Eigen::all);  // its lower triangle is the factor of K
  L = L.triangularView<Eigen::StrictlyLower>();
  const Matrix lower = Matrix(L * L.transpose());
  L.diagonal() = (K.diagonal() - lower.diagonal()).cwiseSqrt();
  EXPECT_LE(relative_error(L * L.transpose(), K), 1e-10);
}

}  // namespace
}  // namespace ample
