// The noise of rows beside what a model predicts for them.
#include "residual_noise.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "ample/bound.h"
#include "ample/metrics.h"
#include "ample/posterior.h"
#include "support/random.h"

namespace ample {
namespace {

using testing::Random;

Vector sines(const Matrix& X, double deviation, Random& random) {
  return X.col(0).array().sin() + deviation * random.normal(X.rows()).array();
}

/// What 200 rows of noise 0.1 say.
State learnt() {
  Random random(1);
  const Matrix X = random.uniform(200, 1, -3.0, 3.0);
  const Vector y = sines(X, 0.1, random);
  const State nothing = State::empty(SquaredExponential{}, 0.01, 1);
  OnlineBound bound(nothing, X, y);
  EXPECT_TRUE(
      bound.factorize(SquaredExponential{}, 0.01, Matrix(Vector::LinSpaced(12, -3.0, 3.0))));
  return bound.absorb();
}

TEST(ResidualNoise, IsThatOfTheRows) {
  const State state = learnt();
  Random random(2);
  for (const double deviation : {0.1, 0.3, 2.0}) {
    const Matrix X = random.uniform(4000, 1, -3.0, 3.0);
    const Vector y = sines(X, deviation, random);
    EXPECT_NEAR(residual_noise(state, X, y, 1e-4, Own::included) / (deviation * deviation), 1.0,
                0.06)
        << deviation;
  }
}

TEST(ResidualNoise, MakesTheRowsMostProbable) {
  const State state = learnt();
  Random random(3);
  const Matrix X = random.uniform(50, 1, -4.0, 4.0);  // beyond what is known too
  const Vector y = sines(X, 0.3, random);
  const double noise = residual_noise(state, X, y, 1e-4, Own::included);
  const auto density = [&](double variance) {
    Prediction p = Posterior(state).predict(X);
    p.variance.array() += variance;
    return -nlpd(y, p);
  };
  EXPECT_GT(density(noise), density(1.1 * noise));
  EXPECT_GT(density(noise), density(noise / 1.1));
}

TEST(ResidualNoise, IsNotOfRowsThatTheModelKnowsNothingOf) {
  const State state = learnt();
  Random random(5);
  const Matrix far = random.uniform(100, 1, 30.0, 40.0);
  EXPECT_EQ(residual_noise(state, far, Vector::Constant(100, 50.0), 0.5, Own::included), 0.5);
  const State nothing = State::empty(SquaredExponential{}, 0.01, 1);
  EXPECT_EQ(residual_noise(nothing, far, Vector::Constant(100, 50.0), 0.5, Own::included), 0.5);
}

TEST(ResidualNoise, OneWildTargetIsNotTheNoiseOfAll) {
  const State state = learnt();
  Random random(6);
  const Matrix X = random.uniform(1000, 1, -3.0, 3.0);
  Vector y = sines(X, 0.3, random);
  const double noise = residual_noise(state, X, y, 1e-4, Own::included);
  y[500] = 1e6;
  EXPECT_LT(residual_noise(state, X, y, 1e-4, Own::included), 1.3 * noise);
}

TEST(WithoutOutliers, LeavesOutAFewAndNoMore) {
  const State state = learnt();
  Random random(7);
  const Matrix X = random.uniform(300, 1, -3.0, 3.0);
  Vector y = sines(X, 0.1, random);
  EXPECT_EQ(without_outliers(state, X, y).size(), 300);
  for (const Index i : {10, 20, 30}) y[i] = 5.0;
  const std::vector<Index> rest = without_outliers(state, X, y);
  EXPECT_EQ(rest.size(), 297);
  EXPECT_EQ(std::ranges::count(rest, 20), 0);
  y[40] = 5.0;  // more than one in a hundred: then it is the model that is wrong
  EXPECT_EQ(without_outliers(state, X, y).size(), 300);
  EXPECT_EQ(without_outliers(state, Matrix(0, 1), Vector()).size(), 0);
}

TEST(OutlierWeights, BoundWhatAFewCanDoAndLetManyHaveTheirWay) {
  const State state = learnt();
  Random random(8);
  const Matrix X = random.uniform(100, 1, -3.0, 3.0);
  Vector y = sines(X, 0.1, random);
  EXPECT_EQ(outlier_weights(state, X, y, 2.0).size(), 0);
  y[30] = -999.0;
  const Vector weight = outlier_weights(state, X, y, 2.0);
  ASSERT_EQ(weight.size(), 100);
  EXPECT_EQ((weight.array() == 1.0).count(), 99);
  // What pulls is weight times distance: as much as at ten deviations of a little over 0.1.
  EXPECT_NEAR(weight[30] * 999.0, 1.0, 0.1);
  EXPECT_EQ(outlier_weights(state, X.topRows(19), y.head(19), 2.0).size(), 0);
  const auto twenty = Eigen::seq(20, 39);
  EXPECT_EQ(outlier_weights(state, X(twenty, Eigen::all), y(twenty), 2.0).size(), 20);
  EXPECT_EQ(outlier_weights(state, X, y, 2000.0).size(), 0);
  y[31] = -999.0;
  EXPECT_EQ(outlier_weights(state, X, y, 2.0).size(), 0);
}

/// Places with one to four rows each, and the value of each place beside a function.
struct Panel {
  Kernel kernel = SquaredExponential{} + SquaredExponential{.variance = 0.3, .lengthscale = 1e-3};
  Matrix X;
  Vector y;
};
Panel panel(Index places) {
  Random random(9);
  Panel panel;
  std::vector<Index> place;
  for (Index p = 0; p < places; ++p) {
    place.insert(place.end(), static_cast<std::size_t>(1 + p % 4), p);
  }
  const Matrix where = random.uniform(places, 1, -3.0, 3.0);
  const Vector value = std::sqrt(0.3) * random.normal(places);
  panel.X = where(place, Eigen::all);
  panel.y = sines(panel.X, 0.5, random) + value(place);
  return panel;
}

State state_of(const Kernel& kernel, const Matrix& X, const Vector& y, const Matrix& Z) {
  OnlineBound bound(std::vector<const State*>{}, X, y);
  EXPECT_TRUE(bound.factorize(kernel, 0.25, Z));
  return bound.absorb();
}

// What is left out is compared with states that never saw the row, one for each.
TEST(ResidualNoise, WithoutARowsOwnTargetIsThatOfStatesThatNeverSawIt) {
  const auto [kernel, X, y] = panel(60);
  const Index N = y.size();
  Vector squares(N);
  Vector variance(N);
  Vector counts(N);
  const Prediction with_it = Posterior(state_of(kernel, X, y, X)).predict(X);
  for (Index n = 0; n < N; ++n) {
    std::vector<Index> others;
    for (Index i = 0; i < N; ++i) {
      if (i != n) others.push_back(i);
    }
    const Prediction p =
        Posterior(state_of(kernel, X(others, Eigen::all), y(others), X)).predict(X.row(n));
    squares[n] = (y[n] - p.mean[0]) * (y[n] - p.mean[0]);
    variance[n] = p.variance[0];
    // Where a row is more than half of what is known, no more than half is made up for.
    counts[n] = with_it.variance[n] <= 0.5 * 0.25 ? 1.0 : 0.0;
  }
  std::vector<Index> some;
  for (Index n = 0; n < N; ++n) {
    if (counts[n] == 1.0) some.push_back(n);
  }
  ASSERT_GT(some.size(), 100U);
  double best = 0.0;
  double highest = -1e300;
  for (double noise = 0.01; noise < 1.0; noise *= 1.001) {
    const Eigen::ArrayXd total = variance(some).array() + noise;
    const double density = -(total.log() + squares(some).array() / total).sum();
    if (density > highest) highest = density, best = noise;
  }
  const double noise =
      residual_noise(state_of(kernel, X, y, X), X(some, Eigen::all), y(some), 1e-4, Own::left_out);
  EXPECT_NEAR(noise / best, 1.0, 0.003);
  EXPECT_NEAR(noise, 0.25, 0.06);
  EXPECT_LT(residual_noise(state_of(kernel, X, y, X), X, y, 1e-4, Own::included), 0.15);
}

// Of places without a point of their own nothing is learnt: they do not explain themselves.
TEST(ResidualNoise, OfWhatThePointsCannotKnowNothingIsARowsOwn) {
  const auto [kernel, X, y] = panel(1500);
  const State elsewhere = state_of(kernel, X, y, Matrix(Vector::LinSpaced(200, -3.05, 3.05)));
  EXPECT_NEAR(residual_noise(elsewhere, X, y, 1e-4, Own::left_out), 0.25, 0.03);
}

TEST(ResidualNoise, IsNoLessThanAsked) {
  const State state = learnt();
  Random random(4);
  const Matrix X = random.uniform(100, 1, -3.0, 3.0);
  EXPECT_EQ(residual_noise(state, X, sines(X, 0.1, random), 0.5, Own::included), 0.5);
  EXPECT_EQ(residual_noise(state, Matrix(0, 1), Vector(), 0.5, Own::included), 0.5);
}

}  // namespace
}  // namespace ample
