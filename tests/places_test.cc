// Values of places: what rows at the same inputs have in common, and the kernel's part for it.
#include "places.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/LU>
#include <gtest/gtest.h>

#include "support/random.h"

namespace ample {
namespace {

using testing::Random;

struct Rows {
  Matrix X;
  Vector residuals;
};

/// Of variance 1, of which rows at the same inputs share so much. A place has from one to `most`
/// rows, anywhere among the others.
Rows shared(Index places, Index most, double share, std::uint64_t seed) {
  Random random(seed);
  const Matrix where = random.normal(places, 2);
  std::vector<std::pair<Index, double>> rows;
  for (Index p = 0; p < places; ++p) {
    const double value = std::sqrt(share) * random.normal();
    const auto count = static_cast<Index>(random.uniform(1.0, static_cast<double>(most) + 1.0));
    for (Index i = 0; i < count; ++i) {
      rows.emplace_back(p, value + std::sqrt(1.0 - share) * random.normal());
    }
  }
  const auto N = static_cast<Index>(rows.size());
  const std::vector<Index> order = random.permutation(N);
  Rows all{Matrix(N, 2), Vector(N)};
  for (Index i = 0; i < N; ++i) {
    const auto& [place, residual] =
        rows[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])];
    all.X.row(i) = where.row(place);
    all.residuals[i] = residual;
  }
  return all;
}

/// The share by analysis of variance, for places with n rows each: (B − W)/(B + (n − 1) W), with B
/// and W the mean squares between places and within them.
double by_analysis_of_variance(const Matrix& residuals) {
  const auto n = static_cast<double>(residuals.cols());
  const auto places = static_cast<double>(residuals.rows());
  const Vector means = residuals.rowwise().mean();
  const double between = n * means.squaredNorm() / places;  // the mean of all is 0
  const double within = (residuals.colwise() - means).squaredNorm() / (places * (n - 1.0));
  return (between - within) / (between + (n - 1.0) * within);
}

TEST(Agreement, IsTheShareThatRowsOfAPlaceHaveInCommon) {
  for (const double share : {0.1, 0.4, 0.8}) {
    const Rows rows = shared(3000, 6, share, 1);
    const auto found = agreement(rows.X, rows.residuals, rows.residuals, 1.0);
    ASSERT_TRUE(found);
    EXPECT_NEAR(found->share, share, 0.03);
    EXPECT_LT(std::abs(found->share - share), 4.0 * found->error);
    EXPECT_LT(found->error, 0.02);
  }
}

TEST(Agreement, IsThatOfTheAnalysisOfVariance) {
  Random random(2);
  Matrix residuals = 0.3 * random.normal(200, 3);
  residuals.colwise() += 0.2 * random.normal(200);
  Matrix X(600, 1);
  Vector r(600);
  for (Index i = 0; i < 600; ++i) {
    X(i, 0) = static_cast<double>(i % 200);
    r[i] = residuals(i % 200, i / 200);
  }
  const auto found = agreement(X, r, r, 1.0);  // so that nothing is beyond three deviations
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->share, by_analysis_of_variance(residuals), 1e-12);
}

TEST(Agreement, IsWithinItsErrorWhereThereIsNone) {
  int beyond = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Rows rows = shared(200, 4, 0.0, seed);
    const auto found = agreement(rows.X, rows.residuals, rows.residuals, 1.0);
    ASSERT_TRUE(found);
    beyond += std::abs(found->share) > 2.0 * found->error ? 1 : 0;
  }
  EXPECT_LE(beyond, 12);  // of some five
  EXPECT_GE(beyond, 1);
}

TEST(Agreement, AFewWildRowsDoNotDecide) {
  Rows rows = shared(500, 4, 0.0, 3);
  rows.residuals[0] = 1e6;
  const auto found = agreement(rows.X, rows.residuals, rows.residuals, 1.0);
  ASSERT_TRUE(found);
  EXPECT_LT(std::abs(found->share), 0.1);
}

TEST(Agreement, CopiesSayNothing) {
  Random random(4);
  const Matrix once = random.normal(300, 2);
  const Vector r = random.normal(300);
  Matrix X(600, 2);
  X << once, once;
  Vector twice(600);
  twice << r, r;
  EXPECT_FALSE(agreement(X, twice, twice, 1.0));
  twice.tail(300) += 0.5 * random.normal(300);
  EXPECT_TRUE(agreement(X, twice, twice, 1.0));
}

// A table that is sampled with replacement has rows twice, which agree with themselves.
TEST(Agreement, IsNotThatOfCopies) {
  const Rows once = shared(800, 4, 0.0, 7);
  Random random(8);
  std::vector<Index> drawn;
  for (Index i = 0; i < 2 * once.X.rows(); ++i) {
    drawn.push_back(static_cast<Index>(random.uniform(0.0, static_cast<double>(once.X.rows()))));
  }
  const Vector r = once.residuals(drawn);
  const auto found = agreement(once.X(drawn, Eigen::all), r, r, 1.0);
  ASSERT_TRUE(found);
  EXPECT_LT(std::abs(found->share), 3.0 * found->error);
}

// Ratings, counts, yes and no: that two are equal is nothing special.
TEST(Agreement, OfAFewValuesCountsThemAll) {
  Random random(9);
  Matrix X(6000, 1);
  Vector y(6000);
  Vector level(300);
  for (Index p = 0; p < 300; ++p) level[p] = p % 2 == 0 ? 0.8 : 0.2;
  for (Index i = 0; i < 6000; ++i) {
    X(i, 0) = static_cast<double>(i % 300);
    y[i] = random.uniform(0.0, 1.0) < level[i % 300] ? 1.0 : 0.0;
  }
  const auto found = agreement(X, y, Vector(y.array() - 0.5), 0.25);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->share, 0.36, 0.03);  // 0.09 of 0.25
}

TEST(SharedPlaces, AreNumberedAsTheyCome) {
  Matrix X(90, 2);
  for (Index i = 0; i < 90; ++i) X.row(i) << -static_cast<double>(i % 40), 1.0;
  const auto places = shared_places(X);
  ASSERT_TRUE(places);
  for (Index i = 0; i < 90; ++i) EXPECT_EQ((*places)[static_cast<std::size_t>(i)], i % 40);
}

TEST(Agreement, OfFewPlacesWithSeveralRowsSaysNothing) {
  Random random(5);
  Matrix X = random.normal(400, 2);
  const Vector r = random.normal(400);
  EXPECT_FALSE(agreement(X, r, r, 1.0));
  X.bottomRows(40) = X.topRows(40);
  EXPECT_FALSE(agreement(X, r, r, 1.0));
  EXPECT_FALSE(shared_places(X));
  X.bottomRows(80) = X.topRows(80);
  EXPECT_TRUE(agreement(X, r, r, 1.0));
  EXPECT_TRUE(shared_places(X));
  EXPECT_FALSE(agreement(Matrix(0, 2), Vector(), Vector(), 1.0));
  // Of a few places the function knows all that there is.
  for (Index i = 0; i < 400; ++i) X.row(i) = X.row(i % 29);
  EXPECT_FALSE(shared_places(X));
}

TEST(Agreement, TellsHowManyRowsAPlaceHas) {
  Random random(6);
  const Matrix where = random.normal(100, 2);
  Matrix X(1000, 2);
  for (Index i = 0; i < 1000; ++i) X.row(i) = where.row(i % 100);
  const Vector r = random.normal(1000);
  const auto found = agreement(X, r, r, 1.0);
  ASSERT_TRUE(found);
  EXPECT_NEAR(found->together, 9.0 / 999.0, 1e-15);
}

TEST(IsWorthPoints, AsksForCertaintyForRowsAndForPoints) {
  // A hundred places.
  const Agreement found{.share = 0.3, .error = 0.02, .together = 0.01};
  EXPECT_TRUE(is_worth_points(found, 1000, 1000));
  EXPECT_FALSE(is_worth_points({.share = 0.3, .error = 0.07, .together = 0.01}, 1000, 1000));
  EXPECT_FALSE(is_worth_points({.share = -0.3, .error = 0.01, .together = 0.01}, 1000, 1000));
  EXPECT_FALSE(is_worth_points(found, 200, 1000));  // three rows each
  EXPECT_TRUE(is_worth_points({.share = 0.8, .error = 0.02, .together = 0.01}, 200, 1000));
  EXPECT_TRUE(is_worth_points(found, 1000, 25));
  EXPECT_FALSE(is_worth_points(found, 1000, 24));
  EXPECT_TRUE(is_worth_points({.share = 1.1, .error = 0.02, .together = 0.01}, 1000, 1000));
}

// What a place gains is the logarithm of how much more probable its rows are together.
TEST(IsWorthPoints, ByTheDensityOfItsRows) {
  const double share = 0.4;
  for (const Index n : {2, 3, 4, 5, 6, 8}) {
    Matrix C = Matrix::Constant(n, n, share);
    C.diagonal().setOnes();
    const double nats = -0.5 * std::log(C.determinant());  // on average, of rows that are so
    const Agreement found{.share = share, .error = 0.01, .together = 1e-3};
    EXPECT_EQ(is_worth_points(found, 1000 * (n - 1), 1000), nats >= 0.25) << n << " " << nats;
  }
}

TEST(WithPlaces, MovesAShareOfTheNoiseToThePlacesAndBack) {
  const Hyperparameters theta{Matern52{.variance = 2.0, .lengthscale = {1.0, 3.0}},
                              Positive(0.5).within(1e-6, 10.0)};
  EXPECT_EQ(place_share(theta), 0.0);
  const Hyperparameters given = with_places(theta, 0.3);
  EXPECT_NEAR(place_share(given), 0.3, 1e-15);
  EXPECT_DOUBLE_EQ(given.noise(), 0.35);
  EXPECT_EQ(given.size(), theta.size());  // no more to be fitted
  Matrix X(3, 2);
  X << 1.0, 2.0, 1.0, 2.0, 1.0, 2.1;
  const Matrix more = given.kernel(X, X) - theta.kernel(X, X);
  EXPECT_NEAR(more(0, 0), 0.15, 1e-14);
  EXPECT_NEAR(more(0, 1), 0.15, 1e-7);  // the same inputs
  EXPECT_EQ(more(0, 2), 0.0);           // others
  const Hyperparameters back = without_places(given);
  EXPECT_EQ(back.kernel, theta.kernel);
  EXPECT_DOUBLE_EQ(back.noise(), theta.noise());
  EXPECT_EQ(without_places(theta).kernel, theta.kernel);
}

// The noise was fitted, beside values that are there: it is theirs that are measured.
TEST(WithPlaces, ChangesTheirShareAndNotTheNoise) {
  const Hyperparameters theta{SquaredExponential{}, Positive(0.2)};
  for (const Hyperparameters& given : {with_places(theta, 0.25), with_free_places(theta, 0.25)}) {
    for (const double share : {0.1, 0.25, 0.999}) {
      const Hyperparameters changed = with_places(given, share);
      EXPECT_DOUBLE_EQ(changed.noise(), 0.15);
      EXPECT_EQ(changed.size(), theta.size());
      const double u = share * 0.2;
      EXPECT_NEAR(place_share(changed), u / (u + 0.15), 1e-14);
    }
    EXPECT_EQ(with_places(given, 0.0).kernel, theta.kernel);
    EXPECT_DOUBLE_EQ(with_places(given, 0.0).noise(), 0.2);
  }
}

TEST(WithPlaces, IsKnownAgainFromItsText) {
  Hyperparameters given = with_places({SquaredExponential{}, Positive(0.2)}, 0.25);
  given.kernel = Kernel::parse(given.kernel.to_string());
  EXPECT_NEAR(place_share(given), 0.25, 1e-15);
  EXPECT_EQ(without_places(given).kernel, Kernel(SquaredExponential{}));
}

TEST(WithPlaces, MayLeaveTheShareToBeFitted) {
  const Hyperparameters theta{SquaredExponential{}, Positive(0.2)};
  const Hyperparameters free = with_free_places(theta, 0.25);
  EXPECT_EQ(free.size(), theta.size() + 1);
  EXPECT_NEAR(place_share(free), 0.25, 1e-15);
  EXPECT_EQ(without_places(free).kernel, theta.kernel);
}

TEST(WithPlaces, LeavesATenthOfTheNoiseAndNoLessThanItsBound) {
  EXPECT_NEAR(place_share(with_places({SquaredExponential{}, Positive(0.2)}, 1.0)), 0.9, 1e-15);
  const Hyperparameters given =
      with_places({SquaredExponential{}, Positive(0.2).within(0.15, 1.0)}, 0.5);
  EXPECT_EQ(given.noise(), 0.15);
  EXPECT_NEAR(place_share(given), 0.25, 1e-15);
  const Hyperparameters tiny{SquaredExponential{}, Positive(1e-6).within(1e-8, 1.0)};
  EXPECT_EQ(place_share(with_places(tiny, 0.5)), 0.0);
}

TEST(PlaceShare, IsNotOfAKernelThatSomebodyElseMade) {
  for (const char* text : {
           "se(variance=1, lengthscale=0.001)",
           "se() + se(variance=0.1 in [1e-9, 1], lengthscale=0.001 fixed)",
           "se() + se(variance=0.1 fixed, lengthscale=0.002 fixed)",
           "se() + matern32(variance=0.1 fixed, lengthscale=0.001 fixed)",
           "se() + se(variance=1e-9 in [1e-12, 1] fixed, lengthscale=0.001 fixed)",
           "se() * se(variance=0.1 fixed, lengthscale=0.001 fixed)",
           "se(variance=0.1 fixed, lengthscale=0.001 fixed) + se()",
           "se() + constant(0.1 fixed)",
       }) {
    const Hyperparameters theta{Kernel::parse(text), Positive(0.1)};
    EXPECT_EQ(place_share(theta), 0.0) << text;
    EXPECT_EQ(without_places(theta).kernel, theta.kernel) << text;
  }
}

}  // namespace
}  // namespace ample
