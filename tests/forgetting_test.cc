// Tempered states against their laws, and the evidence of a batch after them against textbook code.
#include "ample/forgetting.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "ample/optimum.h"
#include "ample/posterior.h"
#include "ample/pruning.h"
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

}  // namespace
}  // namespace ample
