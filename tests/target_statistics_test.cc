#include "ample/target_statistics.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <stdexcept>

#include <gtest/gtest.h>

namespace ample {
namespace {

Vector random_targets(Index n, double offset, double scale, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<double> normal(0.0, scale);
  return Vector::NullaryExpr(n, [&] { return offset + normal(rng); });
}

TargetStatistics observed(const VectorRef& y) {
  TargetStatistics model;
  model.observe(y);
  return model;
}

// The textbook in extended precision.
struct Direct {
  double mean;
  double variance;

  explicit Direct(const Vector& y) {
    long double sum = 0;
    for (const double v : y) sum += v;
    const long double mean_l = sum / static_cast<long double>(y.size());
    long double squares = 0;
    for (const double v : y) squares += (v - mean_l) * (v - mean_l);
    mean = static_cast<double>(mean_l);
    variance = static_cast<double>(squares / static_cast<long double>(y.size() - 1));
  }
};

void expect_relative(double got, double expected, double tolerance) {
  EXPECT_NEAR(got, expected, tolerance * std::max(1.0, std::abs(expected)));
}

TEST(TargetStatistics, BatchesInAnyCutGiveTheStatisticsOfTheWhole) {
  for (const double offset : {0.0, -3.0, 1e6, 1e9}) {
    const Vector y = random_targets(1000, offset, 2.0, 1);
    const Direct direct(y);
    for (const Index size : {1, 7, 100, 999, 1000}) {
      TargetStatistics model;
      for (Index first = 0; first < y.size(); first += size) {
        model.observe(y.segment(first, std::min(size, y.size() - first)));
      }
      EXPECT_EQ(model.count, 1000);
      expect_relative(model.mean, direct.mean, 1e-12);
      // Every merge rounds the mean by ε·|offset|; one batch alone is not merged with anything.
      const double rounding =
          size < y.size() ? std::numeric_limits<double>::epsilon() * std::abs(offset) : 0.0;
      expect_relative(model.variance(), direct.variance, 1e-12 + rounding);
    }
  }
}

TEST(TargetStatistics, SumsOfSquaresWouldFailOnAHugeOffset) {  // the negative control
  const Vector y = random_targets(1000, 1e9, 2.0, 1);
  const double naive = (y.squaredNorm() - 1000.0 * y.mean() * y.mean()) / 999.0;
  EXPECT_GT(std::abs(naive - Direct(y).variance), 1.0);
}

TEST(TargetStatistics, MergeOfTwoIsOneOfBoth) {
  const Vector a = random_targets(30, 5.0, 1.0, 2);
  const Vector b = random_targets(500, -5.0, 3.0, 3);
  Vector both(530);
  both << a, b;
  TargetStatistics left = observed(a);
  left.merge(observed(b));
  TargetStatistics right = observed(b);
  right.merge(observed(a));
  for (const TargetStatistics& model : {left, right}) {
    EXPECT_EQ(model.count, 530);
    expect_relative(model.mean, Direct(both).mean, 1e-14);
    expect_relative(model.variance(), Direct(both).variance, 1e-14);
  }
}

TEST(TargetStatistics, MergingNothingChangesNothing) {
  TargetStatistics model = observed(random_targets(5, 0.0, 1.0, 4));
  const TargetStatistics before = model;
  model.merge({});
  model.observe(Vector(0));
  EXPECT_EQ(model.count, before.count);
  EXPECT_EQ(model.mean, before.mean);
  EXPECT_EQ(model.m2, before.m2);
  TargetStatistics empty;
  empty.merge(before);
  EXPECT_EQ(empty.mean, before.mean);
  EXPECT_EQ(empty.m2, before.m2);
}

TEST(TargetStatistics, LogDensityIsTheGaussianOne) {
  const Vector y = random_targets(50, 2.0, 0.5, 5);
  const Vector other = random_targets(20, 1.0, 1.0, 6);
  const Direct direct(y);
  double expected = 0.0;
  for (const double v : other) {
    expected += -0.5 * std::log(2.0 * std::numbers::pi * direct.variance) -
                0.5 * (v - direct.mean) * (v - direct.mean) / direct.variance;
  }
  expect_relative(observed(y).log_density(other), expected, 1e-12);
}

TEST(TargetStatistics, WithoutAVarianceTheFallbackIsUsed) {
  const Vector y = Vector::Constant(3, 2.5);
  const double expected = -1.5 * std::log(2.0 * std::numbers::pi * 0.25);
  EXPECT_EQ(TargetStatistics{}.variance(), 0.0);
  EXPECT_TRUE(std::isfinite(TargetStatistics{}.log_density(y)));
  const TargetStatistics one = observed(y.head(1));
  EXPECT_EQ(one.variance(), 0.0);
  EXPECT_NEAR(one.log_density(y, 0.25), expected, 1e-12);
  EXPECT_NEAR(observed(y).log_density(y, 0.25), expected, 1e-12);

  // A constant that no binary fraction holds, in many batches: rounding is not a variance either.
  TargetStatistics merged;
  for (int i = 1; i < 200; ++i) merged.observe(Vector::Constant(i, 1e5 / 3.0));
  EXPECT_EQ(merged.variance(), 0.0);
  EXPECT_NEAR(merged.log_density(Vector::Constant(3, 1e5 / 3.0), 0.25), expected, 1e-9);
}

TEST(TargetStatistics, ATinyButRealVarianceIsUsed) {
  const TargetStatistics model = observed(Vector{{1.0, 1.0 + 1e-9, 1.0 - 1e-9}});
  EXPECT_NEAR(model.log_density(Vector::Ones(1)), -0.5 * std::log(2.0 * std::numbers::pi * 1e-18),
              1e-3);
}

TEST(TargetStatistics, PredictsItsConstants) {
  const TargetStatistics model = observed(random_targets(9, 0.0, 1.0, 7));
  const Prediction p = model.predict(4);
  EXPECT_EQ(p.mean, Vector::Constant(4, model.mean));
  EXPECT_EQ(p.variance, Vector::Constant(4, model.variance()));
  EXPECT_EQ(model.predict(0).mean.size(), 0);
}

TEST(TargetStatistics, WhatCannotBeMeantIsRefused) {
  TargetStatistics model;
  EXPECT_THROW(model.observe(Vector::Constant(2, std::nan(""))), std::invalid_argument);
  EXPECT_EQ(model.count, 0);
  EXPECT_THROW((void)model.log_density(Vector::Zero(1), 0.0), std::invalid_argument);
}

}  // namespace
}  // namespace ample
