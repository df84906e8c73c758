// Rows that are foreseen from others, and pasts that contradict what comes.
#include "foresight.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "ample/kernel.h"
#include "support/random.h"
#include "support/streams.h"

namespace ample {
namespace {

using testing::Random;

// One row and one asked: the density of a normal distribution, by hand.
TEST(Foresight, IsALogDensity) {
  const Hyperparameters theta{.kernel = SquaredExponential{.variance = 2.0, .lengthscale = 1.0},
                              .noise_variance = 0.5};
  const Matrix x = Matrix::Zero(1, 1);
  const Matrix x_test = Matrix::Constant(1, 1, 0.7);
  const Vector y = Vector::Constant(1, 0.9);
  const Vector y_test = Vector::Constant(1, -0.2);
  const double k = 2.0 * std::exp(-0.5 * 0.7 * 0.7);
  const double mean = k / 2.5 * 0.9;
  const double variance = 2.5 - k * k / 2.5;
  const double expected =
      -0.5 * std::log(2.0 * M_PI * variance) - 0.5 * std::pow(-0.2 - mean, 2) / variance;
  EXPECT_NEAR(foresight(theta, x, y, x_test, y_test), expected, 1e-12);
}

TEST(AreSorted, TargetsInTheirOrderAreAndOthersAreNot) {
  const Vector up = Vector::LinSpaced(100, 0.0, 1.0);
  EXPECT_TRUE(are_sorted(up));
  EXPECT_TRUE(are_sorted(up.reverse()));
  EXPECT_TRUE(are_sorted((3.0 * up).array().floor().matrix()));  // many are equal
  EXPECT_TRUE(are_sorted(Vector::Constant(100, 2.0)));
  EXPECT_FALSE(are_sorted(up.head(19)));  // so few may be by chance
  EXPECT_FALSE(are_sorted(Random(3).normal(100)));
  Vector some_off = up;
  for (const Index i : {20, 40, 60, 80}) some_off[i] = 0.0;
  EXPECT_TRUE(are_sorted(some_off));
  for (const Index i : {30, 50, 70, 90}) some_off[i] = 0.0;
  EXPECT_FALSE(are_sorted(some_off));
  // What begins again and again is no table that was sorted, nor are rare events.
  Vector sweeps(120);
  sweeps << up.head(40), up.head(40), up.head(40);
  EXPECT_FALSE(are_sorted(sweeps));
  Vector events = Vector::Zero(100);
  for (const Index i : {7, 30, 66}) events[i] = 1.0;
  EXPECT_FALSE(are_sorted(events));
}

TEST(Contradict, AChangedFunctionDoesAndANewPlaceDoesNot) {
  Random random(9);
  const auto rows = [&](double from, double to, double sign) {
    Batch b{random.uniform(100, 1, from, to), Vector(100)};
    for (Index i = 0; i < 100; ++i) b.y[i] = sign * std::sin(2 * b.X(i, 0)) + 0.1 * random.normal();
    return b;
  };
  const Hyperparameters theta{.kernel = SquaredExponential{.variance = 0.5, .lengthscale = 0.7},
                              .noise_variance = 0.01};
  const Batch past = rows(-3.0, 0.0, 1.0);
  const auto contradicts = [&](const Batch& b) {
    return contradict(std::span(&theta, 1), past.X, past.y, b.X, b.y, 3.0);
  };
  EXPECT_TRUE(contradicts(rows(-3.0, 0.0, -1.0)));
  EXPECT_FALSE(contradicts(rows(-3.0, 0.0, 1.0)));
  EXPECT_FALSE(contradicts(rows(0.0, 3.0, 1.0)));
  Batch outliers = rows(-3.0, 0.0, 1.0);
  for (Index i = 0; i < 100; i += 25) outliers.y[i] += 3.0;
  EXPECT_FALSE(contradicts(outliers));
  // A table that is sorted by its target has another level in each batch, whatever the function.
  const Batch changed = rows(-3.0, 0.0, -1.0);
  std::vector<Index> order(100);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](Index row) { return changed.y[row]; });
  const Batch in_order{changed.X(order, Eigen::all), changed.y(order)};
  EXPECT_FALSE(contradicts(in_order));
  // Asked before each of at most ten exact models, it goes on with none of them.
  int asked = 0;
  const auto after = [&](int most) {
    asked = 0;
    return contradict(std::span(&theta, 1), past.X, past.y, changed.X, changed.y, 3.0,
                      [&] { return ++asked > most; });
  };
  EXPECT_FALSE(after(3));
  EXPECT_EQ(asked, 4);
  EXPECT_TRUE(after(10));
  const int models = asked;
  EXPECT_LE(models, 10);
  EXPECT_TRUE(after(models));
  EXPECT_FALSE(after(models - 1));
  EXPECT_EQ(asked, models);
  // One row has no other to be foreseen from.
  EXPECT_FALSE(
      contradict(std::span(&theta, 1), past.X, past.y, past.X.topRows(1), past.y.head(1), 3.0));
}

// A smooth model cannot bend as this function does, so with the old rows it foresees the new ones
// badly; but nothing is known of the new place that could be wrong. Control: were the same rows
// where the old ones are, they would contradict them.
TEST(Contradict, NothingIsWrongWithThePastAtANewPlace) {
  const Hyperparameters theta{.kernel = SquaredExponential{.variance = 4.0, .lengthscale = 5.0},
                              .noise_variance = 1e-4};
  // In an order that is not that of the targets: 37 steps at a time.
  const Vector mixed =
      Vector::NullaryExpr(100, [](Index i) { return static_cast<double>(37 * i % 100) / 99.0; });
  const Vector x = 3.0 * mixed.array() - 3.0;
  const Vector beyond = 0.01 + 2.99 * mixed.array();
  const Vector y = 5.0 - 2.0 * beyond.array();
  EXPECT_FALSE(contradict(std::span(&theta, 1), x, x, beyond, y, 3.0));
  EXPECT_TRUE(contradict(std::span(&theta, 1), x, x, x, y, 3.0));
  // An input of two values has no ends.
  Matrix X(100, 2);
  X << x, Vector::LinSpaced(100, 0.0, 99.0).unaryExpr([](double i) { return std::fmod(i, 2.0); });
  EXPECT_TRUE(contradict(std::span(&theta, 1), X, x, X, y, 3.0));
}

}  // namespace
}  // namespace ample
