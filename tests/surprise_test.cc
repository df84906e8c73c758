// How surprising a batch is: the distribution behind p-values, their rate on streams that do not
// change, and what a stream does about rows that it cannot have foreseen.
#include "surprise.h"

#include <cmath>
#include <vector>

#include <Eigen/Cholesky>
#include <gtest/gtest.h>

#include "ample/continual_gp.h"
#include "ample/exact_gp.h"
#include "ample/optimum.h"
#include "ample/snapshot.h"
#include "support/random.h"
#include "support/streams.h"

namespace ample {
namespace {

using testing::absorbed;
using testing::message_of;
using testing::Random;
using testing::random_batch;
using testing::state_after;

/// The upper tail of Fisher's F by Simpson's rule, in t = x/(1 + x), where it has no infinite end.
double tail_by_quadrature(double x, double d1, double d2) {
  const double a = 0.5 * d1;
  const double b = 0.5 * d2;
  const double log_beta = std::lgamma(a) + std::lgamma(b) - std::lgamma(a + b);
  const auto density = [&](double t) {  // of d1 x/(d1 x + d2), which is Beta(a, b)
    return std::exp((a - 1.0) * std::log(t) + (b - 1.0) * std::log1p(-t) - log_beta);
  };
  const double from = d1 * x / (d1 * x + d2);
  constexpr int kSteps = 200'000;
  const double h = (1.0 - from) / kSteps;
  double sum = 0.0;
  for (int i = 0; i < kSteps; ++i) {
    const double t = from + h * i;
    const double end = std::min(t + h, 1.0 - 1e-12);
    sum += h / 6.0 * (density(t) + 4.0 * density(t + 0.5 * h) + density(end));
  }
  return sum;
}

TEST(PValue, IsTheTailOfFishersDistribution) {
  for (const Index N : {4, 20, 500}) {
    for (const Index n : {6, 100, 1000}) {
      for (const double mean : {0.7, 1.0, 1.2, 2.0}) {
        const auto rows = static_cast<double>(N);
        const double expected = tail_by_quadrature(mean, rows, static_cast<double>(n));
        EXPECT_NEAR(p_value(mean * rows, N, n), expected, 1e-7) << N << " " << n << " " << mean;
      }
    }
  }
}

TEST(PValue, OfAKnownNoiseIsThatOfChiSquared) {
  // Two degrees of freedom: exp(−χ²/2).
  for (const double x : {0.1, 1.0, 5.0, 20.0}) {
    EXPECT_NEAR(p_value(x, 2, 0), std::exp(-0.5 * x), 1e-6) << x;
  }
  EXPECT_EQ(p_value(0.0, 10, 0), 1.0);
  EXPECT_EQ(p_value(0.0, 10, 50), 1.0);
  EXPECT_LT(p_value(1e6, 10, 50), 1e-30);
}

TEST(PValue, FallsAsRowsLieFartherAndRisesWhereTheNoiseIsLessCertain) {
  double last = 1.0;
  for (double x = 50.0; x < 400.0; x += 10.0) {
    const double p = p_value(x, 100, 200);
    EXPECT_LT(p, last);
    last = p;
  }
  EXPECT_GT(p_value(130.0, 100, 50), p_value(130.0, 100, 5000));
}

TEST(PredictiveDensity, IsTheGaussianOfTheOldModel) {
  const Kernel kernel = Matern52{.lengthscale = 1.5};
  const State first = state_after(kernel, 0.05, random_batch(30, 2, 1), 8);
  const Batch batch = random_batch(12, 2, 2);
  const PredictiveDensity density = predictive_density(first, batch.X, batch.y).value();
  // Textbook: mean and covariance of the old model, with noise.
  const Predictor old(first, Scaling::identity(2));
  const JointPrediction joint = old.predict_joint(batch.X, Target::observation);
  const Vector e = batch.y - joint.mean;
  const Vector solved = joint.covariance.ldlt().solve(e);
  EXPECT_NEAR(density.chi_squared, e.dot(solved), 1e-8 * density.chi_squared);
  for (Index i = 0; i < 12; ++i) {
    EXPECT_NEAR(density.residual[i], e[i] / std::sqrt(joint.covariance(i, i)), 1e-9);
  }
  EXPECT_EQ(density.log_density, optimum(first, batch.X, batch.y).value());
}

Batch wave(Random& random, Index N, double sign = 1.0) {
  Batch b{random.uniform(N, 1, -3.0, 3.0), Vector(N)};
  for (Index i = 0; i < N; ++i) {
    b.y[i] = sign * std::sin(2.0 * b.X(i, 0)) + 0.2 * random.normal();
  }
  return b;
}

/// As out of the box, with fewer rows of everything.
ContinualGPOptions quick_options() {
  ContinualGPOptions options = ContinualGPOptions::out_of_the_box();
  options.warm_up = 60;
  options.refit_rows = 160;
  options.reservoir = 240;
  return options;
}

// Of 480 batches: the share below 0.05 is 5 %, give or take three deviations of 1 %.
TEST(Surprise, FalseAlarmsComeAtTheirRate) {
  Index batches = 0;
  Index at_five = 0;
  Index at_one = 0;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Random random(seed);
    ContinualGP gp(quick_options());
    for (int b = 0; b < 48; ++b) {
      const Batch next = wave(random, 40);
      const BatchReport r = gp.observe(next.X, next.y);
      if (b < 8) continue;
      ++batches;
      at_five += r.p_value.value() < 0.05 ? 1 : 0;
      at_one += r.p_value.value() < 0.01 ? 1 : 0;
      EXPECT_EQ(r.past_weight, 1.0);
    }
  }
  EXPECT_LT(static_cast<double>(at_five), 0.08 * static_cast<double>(batches));
  EXPECT_GT(static_cast<double>(at_five), 0.02 * static_cast<double>(batches));
  EXPECT_LT(static_cast<double>(at_one), 0.025 * static_cast<double>(batches));
}

TEST(Surprise, TellsWhichRowIsWrong) {
  Random random(3);
  ContinualGP gp(quick_options());
  const Batch first = wave(random, 400);
  gp.observe(first.X, first.y);
  Batch next = wave(random, 30);
  EXPECT_GT(gp.observe(next.X, next.y).p_value.value(), 1e-4);
  next = wave(random, 30);
  next.y[17] += 3.0;
  const BatchReport r = gp.observe(next.X, next.y);
  Index worst = 0;
  EXPECT_GT(r.residuals.cwiseAbs().maxCoeff(&worst), 8.0);
  EXPECT_EQ(worst, 17);
  EXPECT_EQ(r.residuals.size(), 30);
  EXPECT_LT(r.p_value.value(), 1e-6);
}

TEST(Surprise, TheFirstBatchSurprisesNobody) {
  Random random(4);
  const Batch first = wave(random, 200);
  for (const ContinualGPOptions& options :
       {ContinualGPOptions{}, ContinualGPOptions::out_of_the_box()}) {
    ContinualGP gp(options);
    const BatchReport r = gp.observe(first.X, first.y);
    EXPECT_FALSE(r.p_value.has_value());
    EXPECT_EQ(r.residuals.size(), 0);
    EXPECT_FALSE(r.coverage.has_value());
  }
}

/// How many rows of the changed function it takes until half of its error is gone; batches of n.
Index rows_until_changed(ContinualGPOptions options, Index rows_before, Index n) {
  Random random(5);
  ContinualGP gp(options);
  for (Index i = 0; i < rows_before; i += n) {
    const Batch next = wave(random, n);
    gp.observe(next.X, next.y);
  }
  Random other(6);
  const Batch test = wave(other, 200, -1.0);
  for (Index rows = n; rows <= 1500; rows += n) {
    const Batch next = wave(random, n, -1.0);
    gp.observe(next.X, next.y);
    const double error = (gp.predict(test.X).mean - test.y).norm() / test.y.norm();
    if (error < 1.0) return rows;
  }
  return 1500;
}

// A change does not wait for the next regular refit, nor until a young model has seen as many rows
// as it keeps. Control: a model that forgets nothing takes as many new rows as it had old ones.
TEST(Surprise, AChangeIsNoticedWithinSomeTensOfRows) {
  ContinualGPOptions options = quick_options();
  EXPECT_LE(rows_until_changed(options, 120, 20), 60);  // young
  EXPECT_LE(rows_until_changed(options, 400, 20), 60);  // pending rows on top of a base
  EXPECT_LE(rows_until_changed(options, 400, 1), 60);   // one by one
  EXPECT_LE(rows_until_changed(options, 480, 160), 160);
  options.forget = Forgetting::never();
  EXPECT_GT(rows_until_changed(options, 400, 20), 300);
}

TEST(Surprise, IntervalsThatDoNotHoldAreWarnedOf) {
  ContinualGPOptions options = quick_options();
  options.forget = Forgetting::never();
  ContinualGP gp(options);
  Random random(10);
  const auto warned = [&](double sign) {
    const Batch next = wave(random, 80, sign);
    for (const std::string& warning : gp.observe(next.X, next.y).warnings) {
      if (warning.find("95 % intervals") != std::string::npos) return true;
    }
    return false;
  };
  for (int b = 0; b < 6; ++b) EXPECT_FALSE(warned(1.0)) << b;
  EXPECT_TRUE(warned(-1.0));
}

TEST(Surprise, WaitingRowsAreSavedWithWhatTheyTold) {
  Random random(7);
  ContinualGP gp(quick_options());
  for (int b = 0; b < 40; ++b) {
    const Batch next = wave(random, 13);
    gp.observe(next.X, next.y);
  }
  ASSERT_GT(gp.checkpoint()->pending.recent, 0);
  ContinualGP again = from_bytes(to_bytes(gp));
  for (int b = 0; b < 6; ++b) {
    const Batch next = wave(random, 13, -1.0);
    const BatchReport r = gp.observe(next.X, next.y);
    const BatchReport s = again.observe(next.X, next.y);
    EXPECT_EQ(r.past_weight, s.past_weight);
    EXPECT_EQ(r.p_value, s.p_value);
  }
  const Batch test = wave(random, 20);
  EXPECT_EQ(gp.predict(test.X).mean, again.predict(test.X).mean);
}

TEST(Surprise, ARefitComesWhenItsTimeHasPassed) {
  ContinualGPOptions options = quick_options();
  const auto refits = [&](double seconds) {
    options.refit_seconds = seconds;
    ContinualGP gp(options);
    Random rows(9);
    const Batch first = wave(rows, 300);
    gp.observe(first.X, first.y);
    Index count = 0;
    for (int b = 0; b < 4; ++b) {
      const Batch next = wave(rows, 10);
      // A refit of so few rows keeps θ; what tells is that none of them waits any more.
      gp.observe(next.X, next.y);
      count += gp.checkpoint()->pending.X.rows() == 0 ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(refits(1e-9), 4);
  EXPECT_EQ(refits(0.0), 0);
  options.refit_seconds = -1.0;
  EXPECT_NE(message_of([&] { ContinualGP gp(options); }).find("refit_seconds is -1"),
            std::string::npos);
}

}  // namespace
}  // namespace ample
