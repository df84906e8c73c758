// Tempered states against their laws, and the evidence of a batch after them against textbook code.
#include "ample/forgetting.h"

#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "ample/continual_gp.h"
#include "ample/optimum.h"
#include "ample/posterior.h"
#include "ample/pruning.h"
#include "ample/reservoir.h"
#include "ample/snapshot.h"
#include "support/check_gradient.h"
#include "support/every_kernel.h"
#include "support/naive.h"
#include "support/random.h"
#include "support/streams.h"

namespace ample {
namespace {

using naive::invert;
using naive::QuadMatrix;
using naive::Twin;
using testing::absorbed;
using testing::message_of;
using testing::Random;
using testing::random_batch;
using testing::relative_error;
using testing::state_after;

constexpr double kNoise = 0.05;
const std::initializer_list<double> kGammas = {1.0, 0.8, 0.5, 0.2, 0.05, 0.001, 0.0};

State learnt(const Kernel& kernel, Index M = 9) {
  const State first = state_after(kernel, kNoise, random_batch(30, 2, 11), M);
  return absorbed(first, random_batch(25, 2, 12), first.Z);
}

// --- temper ------------------------------------------------------------------------------------

TEST_P(EveryKernel, TemperingByOneChangesNothing) {
  const State s = learnt(kernel());
  const State same = temper(s, 1.0);
  EXPECT_EQ(same.A, s.A);
  EXPECT_EQ(same.c, s.c);
  EXPECT_EQ(same.L_D, s.L_D);
  EXPECT_EQ(same.F, s.F);
}

TEST_P(EveryKernel, TemperingByZeroIsTheEmptyEvidence) {
  const State none = temper(learnt(kernel()), 0.0);
  EXPECT_EQ(none.F, 0.0);
  EXPECT_EQ(none.size(), 9);
  EXPECT_LE(prices(none).maxCoeff(), 1e-14);
  const Matrix queries = Random(3).normal(6, 2);
  const Prediction p = Posterior(none).predict(queries);
  EXPECT_EQ(p.mean.norm(), 0.0);
  EXPECT_LE(relative_error(p.variance, none.kernel.diagonal(queries)), 1e-9);
}

TEST_P(EveryKernel, TemperingTwiceMultiplies) {
  const State s = learnt(kernel());
  const State twice = temper(temper(s, 0.5), 0.3);
  const State once = temper(s, 0.15);
  EXPECT_LE(relative_error(twice.A, once.A), 1e-14);
  EXPECT_LE(relative_error(twice.c, once.c), 1e-14);
  EXPECT_LE(relative_error(twice.F, once.F), 1e-11);
  EXPECT_GT(relative_error(twice.F, temper(s, 0.16).F), 1e-11);
}

TEST_P(EveryKernel, ARowCountsGammaRows) {
  // Rows that count γ each are rows whose noise is 1/γ times as large.
  const Batch batch = random_batch(30, 2, 11);
  const double gamma = 0.37;
  const State s = state_after(twin().kernel, kNoise, batch, 9, 1e-8);
  const State noisier = state_after(twin().kernel, kNoise / gamma, batch, 9, 1e-8);
  const State tempered = temper(s, gamma);
  EXPECT_LE(relative_error(tempered.A, noisier.A), 1e-12);
  EXPECT_LE(relative_error(tempered.c, noisier.c), 1e-12);
  EXPECT_LE(relative_error(tempered.F, noisier.F), 1e-11);
}

// --- The evidence (9″) -------------------------------------------------------------------------

/// log N(y; mean_γ, Cov_γ + σ² I) with the posterior of the inducing variables formed.
double textbook_evidence(const Twin& twin, const State& s, double gamma, const Batch& batch) {
  const Vector theta = naive::theta_of(twin.kernel);
  const QuadMatrix L_inv = invert(QuadMatrix(s.L)).matrix;
  const QuadMatrix V = L_inv * QuadMatrix(naive::matrix(twin, theta, s.Z, batch.X));
  const QuadMatrix I = QuadMatrix::identity(s.size());
  const QuadMatrix S = invert(add(I, gamma, QuadMatrix(s.A))).matrix;
  const QuadMatrix past = QuadMatrix::identity(s.size(), gamma) * QuadMatrix(s.c);
  const QuadMatrix K_ff = naive::matrix(twin, theta, batch.X, batch.X);
  const QuadMatrix covariance = K_ff - V.transpose() * (I - S) * V;
  return static_cast<double>(
      log_normal(QuadMatrix(batch.y) - V.transpose() * (S * past),
                 covariance + QuadMatrix::identity(batch.X.rows(), s.noise_variance)));
}

TEST_P(EveryKernel, EvidenceIsTheLogDensityUnderTheTemperedModel) {
  const State s = learnt(kernel());
  const Batch batch = random_batch(12, 2, 21);
  const auto evidence = TemperedEvidence::of(s, batch.X, batch.y);
  ASSERT_TRUE(evidence);
  for (const double gamma : kGammas) {
    const double value = (*evidence)(gamma);
    EXPECT_LE(relative_error(value, textbook_evidence(twin(), s, gamma, batch)), 1e-8) << gamma;
    const auto direct = optimum(temper(s, gamma), batch.X, batch.y);
    ASSERT_TRUE(direct);
    EXPECT_LE(relative_error(value, *direct), 1e-8) << gamma;
  }
  // Control: another γ is another value.
  EXPECT_GT(relative_error((*evidence)(0.5), (*evidence)(0.5001)), 1e-8);
}

TEST(TemperedEvidence, OfBatchesAndModelsOfAnySize) {
  for (const Index M : {0, 1, 2, 40}) {
    for (const Index N : {0, 1, 2, 30}) {
      const State s = state_after(Matern32{1.0, 0.6}, kNoise, random_batch(40, 2, 31), M);
      const Batch batch = random_batch(N, 2, 32);
      const auto evidence = TemperedEvidence::of(s, batch.X, batch.y);
      ASSERT_TRUE(evidence);
      for (const double gamma : kGammas) {
        const double expected = N == 0 ? 0.0 : optimum(temper(s, gamma), batch.X, batch.y).value();
        EXPECT_LE(relative_error((*evidence)(gamma), expected), 1e-10) << M << ", " << N;
      }
    }
  }
}

TEST(TemperedEvidence, PrefersThePastWhereItHoldsAndNotWhereItDoesNot) {
  const State s = state_after(Matern52{1.0, 0.8}, kNoise, random_batch(80, 1, 41), 30);
  Batch next = random_batch(40, 1, 42);
  const auto holds = TemperedEvidence::of(s, next.X, next.y);
  EXPECT_GT((*holds)(1.0), (*holds)(0.2));
  next.y = -next.y;  // the function has jumped
  const auto jumped = TemperedEvidence::of(s, next.X, next.y);
  EXPECT_GT((*jumped)(0.001), (*jumped)(1.0));
}

TEST(Forgetting, RefusesWhatMakesNoSense) {
  const State s = state_after(Matern32{}, kNoise, random_batch(10, 2, 1), 4);
  const Batch batch = random_batch(5, 2, 2);
  EXPECT_EQ(message_of([&] { (void)temper(s, 1.5); }),
            "temper: gamma is 1.5, but must be from 0 to 1");
  EXPECT_EQ(message_of([&] { (void)temper(s, std::numeric_limits<double>::quiet_NaN()); }),
            "temper: gamma is nan, but must be from 0 to 1");
  const auto evidence = TemperedEvidence::of(s, batch.X, batch.y);
  EXPECT_EQ(message_of([&] { (void)(*evidence)(-0.1); }),
            "TemperedEvidence: gamma is -0.1, but must be from 0 to 1");
  EXPECT_EQ(message_of([&] { (void)TemperedEvidence::of(s, batch.X, Vector(4)); }),
            "TemperedEvidence: y has 4 rows, but must have 5 (the rows of X)");
}

// --- a half-life -------------------------------------------------------------------------------

TEST(Forgetting, HalfAfterAHalfLife) {
  const Forgetting forget = Forgetting::after_rows(100.0);
  EXPECT_EQ(forget.weight_after(0.0), 1.0);
  EXPECT_EQ(forget.weight_after(100.0), 0.5);
  EXPECT_NEAR(forget.weight_after(30.0) * forget.weight_after(70.0), 0.5, 1e-15);
  EXPECT_EQ(Forgetting::never().weight_after(1e9), 1.0);
  EXPECT_EQ(Forgetting::adaptive().weight_after(1e9), 1.0);
}

TEST(Forgetting, RefusesWhatIsNoHalfLife) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double h : {0.0, -1.0, nan, std::numeric_limits<double>::infinity()}) {
    ContinualGPOptions options;
    options.forget = Forgetting::after_rows(h);
    EXPECT_NE(message_of([&] { ContinualGP gp(options); }).find("half-life"), std::string::npos);
  }
}

/// A model with everything held but what it remembers.
ContinualGPOptions held(const Forgetting& forget) {
  ContinualGPOptions options;
  options.start = {.kernel = SquaredExponential{.lengthscale = 1.0}, .noise_variance = 0.05};
  options.refit_every = 0;
  options.forget = forget;
  return options;
}

TEST(Forgetting, AHalfLifeTempersThePastBeforeEachBatch) {
  const Batch first = random_batch(40, 2, 31);
  const Batch second = random_batch(20, 2, 32);
  ContinualGP gp(held(Forgetting::after_rows(20.0)));
  gp.observe(first.X, first.y);
  const State past = gp.predictor()->state();
  const BatchReport r = gp.observe(second.X, second.y);
  EXPECT_EQ(r.past_weight, 0.5);
  EXPECT_EQ(r.forgot, "half-life");
  const State now = gp.predictor()->state();
  const State expected = absorbed(temper(past, 0.5), second, now.Z);
  EXPECT_LE(relative_error(now.A.norm(), expected.A.norm()), 1e-10);
  EXPECT_LE((now.c - expected.c).norm(), 1e-8 * expected.c.norm());
  // The targets count alike: 40 rows for half, 20 in full.
  EXPECT_EQ(gp.checkpoint()->targets.weight, 40.0);
  EXPECT_EQ(gp.rows_seen(), 60);
  // Control: without forgetting, the past is whole.
  ContinualGP whole(held(Forgetting::never()));
  whole.observe(first.X, first.y);
  EXPECT_EQ(whole.observe(second.X, second.y).past_weight, 1.0);
  EXPECT_EQ(whole.checkpoint()->targets.weight, 60.0);
}

TEST(Forgetting, TimeIsThatOfTheBatches) {
  const Batch rows = random_batch(10, 2, 33);
  ContinualGP gp(held(Forgetting::after_time(60.0)));
  const auto observe = [&](double time) {
    return gp.observe(rows.X, rows.y, {.time = time}).past_weight;
  };
  observe(1000.0);
  EXPECT_EQ(observe(1060.0), 0.5);
  EXPECT_EQ(observe(1060.0), 1.0);
  EXPECT_EQ(observe(1000.0), 1.0);  // late rows do not turn the clock back
  EXPECT_EQ(observe(1180.0), 0.25);
  EXPECT_NE(message_of([&] { gp.observe(rows.X, rows.y); }).find("no time is given"),
            std::string::npos);
  ContinualGP other(held(Forgetting::after_rows(60.0)));
  EXPECT_NE(message_of([&] { other.observe(rows.X, rows.y, {.time = 1.0}); }).find("left out"),
            std::string::npos);
}

// A model whose rows would all be learnt anew does not take those of long ago for new ones, and
// what is due when points are removed is not forgotten to be forgotten.
TEST(Forgetting, AGapInTimeCountsForYoungModelsToo) {
  Random random(36);
  const auto rows = [&](double sign) {
    Batch b{random.uniform(100, 1, -3.0, 3.0), Vector(100)};
    for (Index i = 0; i < 100; ++i) {
      b.y[i] = sign * std::sin(2.0 * b.X(i, 0)) + 0.1 * random.normal();
    }
    return b;
  };
  ContinualGPOptions options = ContinualGPOptions::out_of_the_box();
  options.forget = Forgetting::after_time(60.0);
  ContinualGP gp(options);
  const Batch first = rows(1.0);
  gp.observe(first.X, first.y, {.time = 0.0});
  const Batch later = rows(-1.0);
  const BatchReport r = gp.observe(later.X, later.y, {.time = 1200.0});
  EXPECT_NEAR(r.past_weight, std::exp2(-20.0), 1e-9);
  EXPECT_EQ(gp.rows_seen(), 200);
  const Batch test = rows(-1.0);
  EXPECT_LT((gp.predict(test.X).mean - test.y).norm() / test.y.norm(), 0.4);
}

TEST(Forgetting, CompressingDoesNotKeepWhatIsDueToGo) {
  ContinualGPOptions options = ContinualGPOptions::out_of_the_box();
  options.forget = Forgetting::after_rows(1000.0);
  ContinualGP gp(options);
  const Batch first = random_batch(1200, 2, 37);
  gp.observe(first.X, first.y);
  const Batch next = random_batch(100, 2, 38);
  gp.observe(next.X, next.y);
  ASSERT_EQ(gp.checkpoint()->pending.X.rows(), 100);
  const double before = gp.checkpoint()->targets.weight;
  gp.compress_to(gp.size() - 1);
  EXPECT_EQ(gp.checkpoint()->pending.X.rows(), 0);
  EXPECT_NEAR(gp.checkpoint()->targets.weight, before * std::exp2(-0.1), 1e-6);
  static_cast<void>(to_bytes(gp));  // which checks that all parts fit
}

TEST(Forgetting, IsSavedWithTheModel) {
  const Batch rows = random_batch(30, 2, 34);
  ContinualGP gp(held(Forgetting::after_time(60.0)));
  gp.observe(rows.X, rows.y, {.time = 5.0});
  gp.observe(rows.X, rows.y, {.time = 35.0});
  ContinualGP again = from_bytes(to_bytes(gp));
  EXPECT_EQ(again.checkpoint()->options.forget, gp.checkpoint()->options.forget);
  EXPECT_EQ(again.observe(rows.X, rows.y, {.time = 95.0}).past_weight,
            gp.observe(rows.X, rows.y, {.time = 95.0}).past_weight);
  EXPECT_EQ(again.checkpoint()->targets.weight, gp.checkpoint()->targets.weight);
  EXPECT_EQ(again.predict(rows.X).mean, gp.predict(rows.X).mean);
}

/// M at the end of a stream whose places wander.
Index size_after_wandering(const Forgetting& forget, int batches) {
  ContinualGPOptions options;
  options.start.kernel = SquaredExponential{};
  options.prune = 0.05;
  options.forget = forget;
  ContinualGP gp(options);
  Random random(35);
  for (int b = 0; b < batches; ++b) {
    Batch batch{random.uniform(30, 1, b, b + 2.0), Vector(30)};
    for (Index i = 0; i < 30; ++i) batch.y[i] = std::sin(batch.X(i, 0)) + 0.1 * random.normal();
    gp.observe(batch.X, batch.y);
  }
  return gp.size();
}

TEST(Forgetting, WithPruningAModelOfAWanderingStreamStaysSmall) {
  const auto grown = [](const Forgetting& forget) {
    return static_cast<double>(size_after_wandering(forget, 160)) /
           static_cast<double>(size_after_wandering(forget, 80));
  };
  EXPECT_LT(grown(Forgetting::after_rows(60.0)), 1.25);
  EXPECT_GT(grown(Forgetting::never()), 1.6);
}

TEST(Forgetting, AReservoirKeepsTheLatestRowsLonger) {
  Reservoir rows;
  Index old_rows = 0;
  for (Index b = 0; b < 40; ++b) {
    const Matrix X = Matrix::Constant(50, 1, static_cast<double>(b));
    rows.forget(Forgetting::after_rows(200.0).weight_after(50.0), 1);
    rows.offer(X, Vector::Zero(50), 500, 1);
  }
  // All count 50/(1 − 2^(−1/4)) = 314 rows, a tenth of them for the 13 oldest half-lives.
  EXPECT_NEAR(rows.weight, 314.0, 1.0);
  EXPECT_LE(rows.size(), 315);
  EXPECT_GE(rows.size(), 250);
  for (Index i = 0; i < rows.size(); ++i) old_rows += rows.X(i, 0) < 27.0 ? 1 : 0;
  EXPECT_LT(old_rows, rows.size() / 5);
  EXPECT_GT(old_rows, 0);
}

}  // namespace
}  // namespace ample
