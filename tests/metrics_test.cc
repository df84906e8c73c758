#include "ample/metrics.h"

#include <cmath>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <random>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "support/message.h"

namespace ample {
namespace {

using testing::message;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

Vector vector(std::initializer_list<double> values) {
  return Eigen::Map<const Vector>(values.begin(), static_cast<Index>(values.size()));
}

const Vector y = vector({1, 2, 4, 5});
const Prediction predicted{vector({1, 3, 2, 5}), vector({1, 4, 1, 0.25})};

// Gaussian targets of known mean and variance, both different for each.
struct Sample {
  Vector y;
  Prediction truth;
};

Sample gaussian_sample(Index n) {
  std::mt19937 rng(1);
  std::normal_distribution<double> normal;
  Sample s{Vector(n), {Vector(n), Vector(n)}};
  for (Index i = 0; i < n; ++i) {
    s.truth.mean[i] = 10 * normal(rng);
    s.truth.variance[i] = std::exp(normal(rng));
    s.y[i] = s.truth.mean[i] + std::sqrt(s.truth.variance[i]) * normal(rng);
  }
  return s;
}

TEST(Errors, AgreeWithHandComputation) {
  // residuals 0, −1, 2, 0; ȳ = 3 and Σ(y − ȳ)² = 4 + 1 + 1 + 4
  EXPECT_DOUBLE_EQ(rmse(y, predicted.mean), std::sqrt(5.0 / 4));
  EXPECT_DOUBLE_EQ(mae(y, predicted.mean), 3.0 / 4);
  EXPECT_DOUBLE_EQ(r2(y, predicted.mean), 0.5);
}

TEST(Errors, VanishForAPerfectPredictionOnly) {
  EXPECT_EQ(rmse(y, y), 0);
  EXPECT_EQ(mae(y, y), 0);
  EXPECT_EQ(r2(y, y), 1);
  const Vector off = y + Vector::Unit(4, 2) * 1e-6;
  EXPECT_GT(rmse(y, off), 0);
  EXPECT_GT(mae(y, off), 0);
  EXPECT_LT(r2(y, off), 1);
}

TEST(Errors, OfTheMeanTargetHaveAnR2OfZero) {
  EXPECT_DOUBLE_EQ(r2(y, Vector::Constant(4, 3)), 0);
  EXPECT_LT(r2(y, Vector::Constant(4, 3.1)), 0);
}

TEST(Errors, HaveAnR2ForConstantTargets) {
  const Vector constant = Vector::Constant(3, 0.1);  // whose mean is not exactly 0.1
  EXPECT_EQ(r2(constant, constant), 1);
  EXPECT_EQ(r2(constant, vector({0.1, 0.1, 0.2})), 0);
}

TEST(Errors, DoNotOverflow) {
  EXPECT_DOUBLE_EQ(rmse(vector({1e200, 0}), vector({0, 1e200})), 1e200);
}

TEST(Nlpd, AgreesWithHandComputation) {
  // log densities: N(0; 1), N(−1; 4), N(2; 1), N(0; ¼)
  const double expected = 0.5 * std::log(2 * std::numbers::pi) +
                          0.5 * (0 + (std::log(4.0) + 0.25) + 4 + std::log(0.25)) / 4;
  EXPECT_DOUBLE_EQ(nlpd(y, predicted), expected);
}

TEST(Nlpd, IsLeastAtTheTrueVariance) {
  const Sample s = gaussian_sample(100000);
  const double best = nlpd(s.y, s.truth);
  for (const double factor : {0.9, 1.1}) {
    EXPECT_GT(nlpd(s.y, {s.truth.mean, factor * s.truth.variance}), best) << factor;
  }
  EXPECT_GT(nlpd(s.y, {s.truth.mean.array() + 0.1, s.truth.variance}), best);
  // its expectation is the entropy, ½ log 2πe v
  const double entropy =
      0.5 * (1 + std::log(2 * std::numbers::pi) + s.truth.variance.array().log().mean());
  EXPECT_NEAR(best, entropy, 0.01);
}

TEST(Nlpd, ShiftsByTheLogarithmOfAChangeOfUnits) {
  const double before = nlpd(y, predicted);
  const Prediction scaled{100 * predicted.mean, 1e4 * predicted.variance};
  EXPECT_NEAR(nlpd(100 * y, scaled), before + std::log(100.0), 1e-12);
}

TEST(Coverage, AgreesWithHandComputation) {
  // deviations in standard deviations: 0, ½, 2, 0; half widths 1.960 (95 %), 2.576 (99 %), 0.385
  // (30 %)
  EXPECT_DOUBLE_EQ(coverage(y, predicted, 0.95), 0.75);
  EXPECT_DOUBLE_EQ(coverage(y, predicted, 0.99), 1);
  EXPECT_DOUBLE_EQ(coverage(y, predicted, 0.3), 0.5);
  EXPECT_NEAR(interval_width(predicted, 0.95), 2 * 1.959963984540054 * (1 + 2 + 1 + 0.5) / 4,
              1e-12);
}

TEST(Coverage, IsTheLevelForTheTrueDistribution) {
  const Sample s = gaussian_sample(100000);
  for (const double level : {0.05, 0.5, 0.9, 0.99}) {
    const double three_sigma = 3 * std::sqrt(level * (1 - level) / 100000);
    EXPECT_NEAR(coverage(s.y, s.truth, level), level, three_sigma);
    const Prediction timid{s.truth.mean, 1.2 * s.truth.variance};
    const Prediction bold{s.truth.mean, 0.8 * s.truth.variance};
    EXPECT_GT(coverage(s.y, timid, level), level + three_sigma);
    EXPECT_LT(coverage(s.y, bold, level), level - three_sigma);
  }
}

TEST(Calibration, IsTheCoverageAtEachLevel) {
  const Sample s = gaussian_sample(1000);
  const Vector levels = vector({0.9, 0.1, 0.5});  // in any order
  const Calibration curve = calibration_curve(s.y, s.truth, levels);
  EXPECT_EQ(curve.levels, levels);
  double error = 0;
  for (Index i = 0; i < 3; ++i) {
    EXPECT_EQ(curve.coverage[i], coverage(s.y, s.truth, levels[i]));
    error += std::abs(curve.coverage[i] - levels[i]) / 3;
  }
  EXPECT_DOUBLE_EQ(curve.error, error);
}

TEST(Calibration, ErrorIsSmallForTheTrueDistributionOnly) {
  const Sample s = gaussian_sample(100000);
  const Vector levels = Vector::LinSpaced(19, 0.05, 0.95);
  EXPECT_LT(calibration_curve(s.y, s.truth, levels).error, 0.003);
  const Prediction bold{s.truth.mean, s.truth.variance / 4};
  EXPECT_GT(calibration_curve(s.y, bold, levels).error, 0.1);
}

TEST(RelativeToExact, IsAPercentageBetweenExactAndNoise) {
  EXPECT_EQ(relative_to_exact(2, 2, 4), 0);
  EXPECT_EQ(relative_to_exact(4, 2, 4), 100);
  EXPECT_EQ(relative_to_exact(2.5, 2, 4), 25);
  EXPECT_EQ(relative_to_exact(1, 2, 4), -50);
  // the modulus keeps "larger is worse" if the exact model is the worse of the two
  EXPECT_EQ(relative_to_exact(5, 4, 2), 50);
}

TEST(NormalQuantile, AgreesWithTables) {
  EXPECT_EQ(normal_quantile(0.5), 0);
  EXPECT_NEAR(normal_quantile(0.75), 0.674489750196081743, 1e-15);
  EXPECT_NEAR(normal_quantile(0.975), 1.95996398454005423, 4e-15);
  EXPECT_NEAR(normal_quantile(0.001), -3.09023230616781354, 4e-15);
  EXPECT_NEAR(normal_quantile(1e-20), -9.26234008979840757, 2e-14);
}

TEST(NormalQuantile, InvertsTheDistributionFunction) {
  // x → p rounds p, which near 1 moves x by epsilon/density; the lower tail has no such loss.
  for (double x = -37.5; x < 0; x += 0.0137) {
    EXPECT_NEAR(normal_quantile(normal_cdf(x)), x, 1e-13 * std::max(1.0, -x)) << x;
  }
  for (double p = std::numeric_limits<double>::min(); p < 1; p *= 1.37) {
    EXPECT_NEAR(normal_cdf(normal_quantile(p)) / p, 1, 1e-12) << p;
  }
}

TEST(NormalQuantile, IsAccurateRelativelyAtTheMedian) {
  for (double x = 1e-15; x < 0.5; x *= 3) {
    const double distance = (0.5 + x) - 0.5;  // exact, unlike x
    // Φ⁻¹(½ + d) = √2π d + (√2π)³ d³/6 + O(d⁵)
    const double r = std::sqrt(2 * std::numbers::pi) * distance;
    if (r < 1e-3) {
      EXPECT_NEAR(normal_quantile(0.5 + x) / (r + r * r * r / 6), 1, 1e-12) << x;
    }
    EXPECT_EQ(normal_quantile(0.5 + x), -normal_quantile(0.5 - distance)) << x;
  }
}

TEST(NormalQuantile, IsFiniteAndMonotoneToTheEnds) {
  const double least = std::numeric_limits<double>::denorm_min();
  EXPECT_NEAR(normal_quantile(least), -38.47, 0.01);
  EXPECT_NEAR(normal_quantile(std::nextafter(1.0, 0.0)), 8.21, 0.01);
  double last = normal_quantile(1e-310);
  for (const double p :
       {1e-300, 1e-5, 0.2499999, 0.25, 0.2500001, 0.4999, 0.5, 0.5001, 0.75, 0.9}) {
    EXPECT_GT(normal_quantile(p), last) << p;
    last = normal_quantile(p);
  }
}

TEST(Metrics, RejectWrongShapes) {
  const Vector three = Vector::Ones(3), four = Vector::Ones(4);
  EXPECT_EQ(message([&] { rmse(four, three); }),
            "rmse: mean has 3 entries, but must have 4 (the size of y)");
  const Prediction uneven{four, three};
  EXPECT_EQ(message([&] { nlpd(four, uneven); }),
            "nlpd: variance has 3 entries, but must have 4 (the size of y)");
  EXPECT_EQ(message([&] { mae(Vector(), Vector()); }), "mae: y is empty, but must have an entry");
  EXPECT_THROW(r2(three, four), std::invalid_argument);
  EXPECT_THROW(coverage(four, {three, four}, 0.5), std::invalid_argument);
  EXPECT_THROW(interval_width({three, Vector()}, 0.5), std::invalid_argument);
  EXPECT_THROW(calibration_curve(four, {four, four}, Vector()), std::invalid_argument);
}

TEST(Metrics, RejectWrongValues) {
  const Vector good = Vector::Ones(2);
  const Prediction certain{good, vector({1, 0})}, fine{good, good};
  const Vector unknown = vector({1, nan});
  EXPECT_EQ(message([&] { nlpd(good, certain); }), "nlpd: variance[1] is 0, but must be positive");
  EXPECT_EQ(message([&] { rmse(unknown, good); }), "rmse: y[1] is nan, but must be finite");
  EXPECT_EQ(message([&] { coverage(good, fine, 1); }),
            "coverage: the level is 1, but must be between 0 and 1");
  EXPECT_EQ(message([&] { relative_to_exact(1, 2, 2); }),
            "relative_to_exact: noise is 2, but must differ from exact");
  EXPECT_THROW(nlpd(good, {good, vector({1, -1})}), std::invalid_argument);
  EXPECT_THROW(nlpd(good, {good, vector({1, inf})}), std::invalid_argument);
  EXPECT_THROW(nlpd(good, {good, vector({1, nan})}), std::invalid_argument);
  EXPECT_THROW(mae(good, vector({inf, 1})), std::invalid_argument);
  EXPECT_THROW(interval_width({good, vector({1, -1})}, 0.5), std::invalid_argument);
  EXPECT_THROW(calibration_curve(good, {good, good}, vector({0.5, nan})), std::invalid_argument);
  EXPECT_THROW(relative_to_exact(nan, 1, 2), std::invalid_argument);
  for (const double p : {0.0, 1.0, -0.1, 1.1, nan}) {
    EXPECT_THROW(normal_quantile(p), std::invalid_argument) << p;
  }
}

TEST(Metrics, TakeColumnsOfAMatrix) {
  Matrix columns(4, 2);
  columns << y, predicted.mean;
  EXPECT_EQ(rmse(columns.col(0), columns.col(1)), rmse(y, predicted.mean));
}

}  // namespace
}  // namespace ample
