#include "ample/exact_gp.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>

#include <Eigen/Cholesky>
#include <gtest/gtest.h>

#include "support/check_gradient.h"
#include "support/every_kernel.h"
#include "support/naive.h"
#include "support/random.h"

namespace ample {
namespace {

using naive::Layout;
using naive::Twin;
using testing::central_differences;
using testing::Random;
using testing::relative_error;

Batch random_batch(Index N, Index D, std::uint64_t seed) {
  Random random(seed);
  Batch batch{random.normal(N, D), Vector(N)};
  for (Index i = 0; i < N; ++i) {
    batch.y[i] = std::sin(2.0 * batch.X(i, 0)) + 0.5 * batch.X(i, D - 1) + 0.3 * random.normal();
  }
  return batch;
}

double evidence_of(const Kernel& kernel, double noise_variance, const Batch& batch) {
  ExactEvidence evidence(batch.X, batch.y);
  EXPECT_TRUE(evidence.factorize(kernel, noise_variance));
  return evidence.value();
}

// mean = K_*f K⁻¹ y,   var = diag(K_** − K_*f K⁻¹ K_f*), in quadruple precision
Prediction naive_predict(const Twin& twin, double noise_variance, const Batch& batch,
                         const Matrix& X) {
  const Vector theta = naive::theta_of(twin.kernel);
  const naive::QuadMatrix K = naive::matrix(twin, theta, batch.X, batch.X);
  const naive::QuadMatrix K_inv =
      naive::invert(K + naive::QuadMatrix::identity(K.rows(), noise_variance)).matrix;
  const naive::QuadMatrix K_sf = naive::matrix(twin, theta, X, batch.X);
  const naive::QuadMatrix prior = naive::matrix(twin, theta, X, X);
  return {.mean = (K_sf * K_inv * naive::QuadMatrix(batch.y)).rounded().col(0),
          .variance = (prior - K_sf * K_inv * K_sf.transpose()).rounded().diagonal()};
}

ExactGP conditioned(const Kernel& kernel, double noise_variance, const Batch& batch) {
  ExactGP gp({.kernel = kernel, .noise_variance = noise_variance});
  gp.condition(batch.X, batch.y);
  return gp;
}

TEST_P(EveryKernel, EvidenceIsTheTextbooks) {
  for (const Index D : {1, 3, 19}) {
    for (const Layout layout : {Layout::isotropic, Layout::ard, Layout::subset}) {
      for (const Index N : {1, 2, 33}) {
        const Twin twin = naive::make_twin(GetParam(), D, layout);
        const Batch batch = random_batch(N, D, 1);
        const double expected = naive::evidence(twin, naive::theta_of(twin.kernel), 0.13, batch);
        EXPECT_LT(relative_error(evidence_of(twin.kernel, 0.13, batch), expected), 1e-9)
            << "N " << N << ", D " << D;
        // The negative control: a noise variance that is a little off is seen.
        EXPECT_GT(relative_error(evidence_of(twin.kernel, 0.13 * (1.0 + 1e-4), batch), expected),
                  1e-9);
      }
    }
  }
}

TEST_P(EveryKernel, GradientIsThatOfTheEvidence) {
  for (const Index D : {1, 4}) {
    for (const Layout layout : {Layout::isotropic, Layout::ard}) {
      const Twin twin = naive::make_twin(GetParam(), D, layout);
      const Batch batch = random_batch(40, D, 2);
      const Index P = twin.kernel.num_parameters();
      Vector u(P + 1);
      u << naive::theta_of(twin.kernel), 0.2;
      ExactEvidence evidence(batch.X, batch.y);
      const auto f = [&](const Vector& at) {
        EXPECT_TRUE(evidence.factorize(twin.kernel.with_values(at.head(P)), at[P]));
        return evidence.value();
      };
      const Vector slopes = central_differences(f, u);
      f(u);
      const EvidenceGradient gradient = evidence.gradient();
      Vector exact(P + 1);
      exact << gradient.theta, gradient.noise_variance;
      EXPECT_LT(relative_error(exact, slopes), 1e-6) << "D " << D;
      // The negative control: without α αᵀ in K̄ the slopes are others.
      exact[P] -= 0.5 * evidence.weights().squaredNorm();
      EXPECT_GT(relative_error(exact, slopes), 1e-6);
    }
  }
}

TEST_P(EveryKernel, PredictionsAreTheTextbooks) {
  const Twin twin = naive::make_twin(GetParam(), 3, Layout::ard);
  const Batch batch = random_batch(30, 3, 3);
  const Matrix X = random_batch(11, 3, 4).X;
  const ExactGP gp = conditioned(twin.kernel, 0.1, batch);
  const Prediction expected = naive_predict(twin, 0.1, batch, X);
  const Prediction function = gp.predict(X);
  EXPECT_LT(relative_error(function.mean, expected.mean), 1e-9);
  EXPECT_LT(relative_error(function.variance, expected.variance), 1e-9);
  const Prediction observation = gp.predict(X, Target::observation);
  EXPECT_EQ(observation.mean, function.mean);
  EXPECT_LT(relative_error(observation.variance, expected.variance.array() + 0.1), 1e-9);
}

TEST(ExactGP, QueriesInBlocksAreQueriesOneByOne) {
  const Batch batch = random_batch(50, 2, 5);
  const ExactGP gp = conditioned(Matern32{.variance = 2}, 0.05, batch);
  const Matrix X = random_batch(1300, 2, 6).X;  // more than two blocks
  const Prediction all = gp.predict(X);
  for (const Index i : {0, 511, 512, 1023, 1024, 1299}) {
    const Prediction one = gp.predict(X.row(i));
    EXPECT_NEAR(all.mean[i], one.mean[0], 1e-12);
    EXPECT_NEAR(all.variance[i], one.variance[0], 1e-12);
  }
  EXPECT_EQ(gp.predict(Matrix(0, 2)).mean.size(), 0);
}

TEST(ExactGP, BeforeAnyDataItPredictsThePrior) {
  const ExactGP gp({.kernel = SquaredExponential{.variance = 3}, .noise_variance = 0.5});
  const Prediction p = gp.predict(Matrix::Zero(2, 4), Target::observation);
  EXPECT_EQ(p.mean, Vector::Zero(2));
  EXPECT_EQ(p.variance, Vector::Constant(2, 3.5));
  EXPECT_EQ(gp.log_evidence(), 0.0);
  const ExactGP none = conditioned(SquaredExponential{}, 0.1, {Matrix(0, 2), Vector(0)});
  EXPECT_EQ(none.predict(Matrix::Zero(1, 2)).variance[0], 1.0);
}

TEST(ExactGP, OneDatumHasTheScalarFormulas) {
  const Batch batch{Matrix::Constant(1, 2, 0.3), Vector::Constant(1, 1.7)};
  ExactGP gp({.kernel = SquaredExponential{.variance = 2}, .noise_variance = 0.5});
  gp.condition(batch.X, batch.y);
  EXPECT_NEAR(gp.log_evidence(),
              -0.5 * std::log(2.0 * std::numbers::pi * 2.5) - 0.5 * 1.7 * 1.7 / 2.5, 1e-14);
  const Prediction p = gp.predict(batch.X);
  EXPECT_NEAR(p.mean[0], 1.7 * 2.0 / 2.5, 1e-14);
  EXPECT_NEAR(p.variance[0], 2.0 - 4.0 / 2.5, 1e-14);
  EXPECT_TRUE(gp.fit(batch.X, batch.y).usable());
  EXPECT_TRUE(std::isfinite(gp.predict(batch.X).mean[0]));
}

TEST(ExactGP, RepeatedInputsAreAveraged) {
  // n observations of one point with noise σ² tell of f what their mean with noise σ²/n does.
  Batch repeated = random_batch(5, 2, 7);
  const Batch once = repeated;
  repeated.X = once.X.replicate(20, 1);
  repeated.y = once.y.replicate(20, 1);
  const Kernel kernel = SquaredExponential{.variance = 1.5};
  const Matrix X = random_batch(9, 2, 8).X;
  const Prediction many = conditioned(kernel, 0.4, repeated).predict(X);
  const Prediction few = conditioned(kernel, 0.4 / 20.0, once).predict(X);
  EXPECT_LT(relative_error(many.mean, few.mean), 1e-10);
  EXPECT_LT(relative_error(many.variance, few.variance), 1e-10);
}

TEST(ExactGP, SmallNoiseUnderALargeVarianceIsFactorised) {
  // Condition about 1e11, with every input twice, 1e-9 apart.
  Batch batch = random_batch(60, 2, 9);
  batch.X.bottomRows(30) = batch.X.topRows(30).array() + 1e-9;
  batch.y.tail(30) = batch.y.head(30);
  const Twin twin = naive::twin(SquaredExponential{.variance = 2000});
  const double value = evidence_of(twin.kernel, 1e-6, batch);
  EXPECT_LT(relative_error(value, naive::evidence(twin, naive::theta_of(twin.kernel), 1e-6, batch)),
            1e-5);
  const Prediction p = conditioned(twin.kernel, 1e-6, batch).predict(batch.X);
  EXPECT_LT(relative_error(p.mean, batch.y), 1e-4);
  EXPECT_GE(p.variance.minCoeff(), 0.0);
  EXPECT_LT(p.variance.maxCoeff(), 1e-4);
}

TEST(ExactGP, ExtremeLengthscalesAndAConstantTargetStayFinite) {
  Batch batch = random_batch(80, 3, 10);
  for (const double lengthscale : {1e-4, 1e4}) {
    for (const bool constant : {false, true}) {
      if (constant) batch.y.setConstant(4.0);
      ExactGP gp({.kernel = SquaredExponential{.lengthscale = lengthscale}});
      const MinimizeSummary summary = gp.fit(batch.X, batch.y);
      EXPECT_TRUE(summary.usable()) << summary.message;
      EXPECT_LE(summary.value, summary.initial_value);
      const Prediction p = gp.predict(batch.X, Target::observation);
      EXPECT_TRUE(p.mean.allFinite() && p.variance.allFinite());
      EXPECT_GT(p.variance.minCoeff(), 0.0);
    }
  }
}

TEST(ExactGP, FitEndsAtAStationaryPointNoWorseThanItsStart) {
  const Batch batch = random_batch(120, 2, 11);
  for (const Kernel& kernel :
       {Kernel(SquaredExponential{}), Kernel(Matern52{.lengthscale = {1, 1}}),
        Constant{2} + Matern32{} * Linear{}}) {
    const Hyperparameters start{.kernel = kernel};
    ExactGP gp(start);
    const MinimizeSummary summary = gp.fit(batch.X, batch.y);
    EXPECT_NEAR(summary.initial_value, -evidence_of(kernel, 0.1, batch), 1e-9);
    EXPECT_LT(summary.value, summary.initial_value);
    EXPECT_NEAR(gp.log_evidence(), -summary.value, 1e-9 * std::abs(summary.value));
    EXPECT_EQ(gp.size(), 120);
    EXPECT_LT(summary.gradient_norm, 0.01);
    // The model is the one of the summary, and conditioned on the data.
    const ExactGP again =
        conditioned(gp.hyperparameters().kernel, gp.hyperparameters().noise(), batch);
    EXPECT_EQ(again.log_evidence(), gp.log_evidence());
    EXPECT_EQ(again.predict(batch.X).mean, gp.predict(batch.X).mean);
  }
}

TEST(ExactGP, FitFindsTheHyperparametersOfItsOwnPrior) {
  Random random(12);
  const Index N = 400;
  const Matrix X = random.uniform(N, 1, 0.0, 60.0);
  Matrix K = Kernel(Matern32{.variance = 2, .lengthscale = 0.8})(X, X);
  K.diagonal().array() += 0.05;
  const Vector y = K.llt().matrixL() * random.normal(N);
  ExactGP gp({.kernel = Matern32{}});
  gp.fit(X, y);
  const Vector theta = naive::theta_of(gp.hyperparameters().kernel);
  EXPECT_NEAR(std::log(theta[0] / 2.0), 0.0, 0.5);
  EXPECT_NEAR(std::log(theta[1] / 0.8), 0.0, 0.3);
  EXPECT_NEAR(std::log(gp.hyperparameters().noise() / 0.05), 0.0, 0.4);
}

TEST(ExactGP, FixedParametersAndBoundsHold) {
  const Batch batch = random_batch(60, 2, 13);
  ExactGP gp({.kernel = SquaredExponential{.variance = Positive(0.7).fixed(),
                                           .lengthscale = Positive(0.2).within(0.1, 0.25)},
              .noise_variance = Positive(0.3).fixed()});
  gp.fit(batch.X, batch.y);
  const Vector theta = naive::theta_of(gp.hyperparameters().kernel);
  EXPECT_EQ(theta[0], 0.7);
  EXPECT_EQ(theta[1], 0.25);
  EXPECT_EQ(gp.hyperparameters().noise(), 0.3);

  ExactGP nothing_free(
      {.kernel = Constant{Positive(1).fixed()}, .noise_variance = Positive(0.3).fixed()});
  EXPECT_TRUE(nothing_free.fit(batch.X, batch.y).usable());
  EXPECT_EQ(nothing_free.size(), 60);
}

TEST(ExactGP, AFailedFactorisationThrowsAndLeavesTheModel) {
  // Equal inputs: K has one eigenvalue 2e21, and σ² = 1e-6 is lost in the rounding of all others.
  const Batch batch{Matrix::Zero(20, 1), Vector::Ones(20)};
  const Kernel kernel = Constant{Positive(1e20).within(1e19, 1e21)};
  ExactEvidence evidence(batch.X, batch.y);
  EXPECT_FALSE(evidence.factorize(kernel, 1e-6));

  ExactGP gp({.kernel = kernel, .noise_variance = Positive(1e-6).fixed()});
  gp.condition(batch.X.topRows(1), batch.y.head(1));
  const double log_evidence = gp.log_evidence();
  EXPECT_THROW(gp.condition(batch.X, batch.y), NumericalError);
  EXPECT_THROW(gp.fit(batch.X, batch.y), NumericalError);
  EXPECT_EQ(gp.size(), 1);
  EXPECT_EQ(gp.log_evidence(), log_evidence);
  EXPECT_EQ(naive::theta_of(gp.hyperparameters().kernel)[0], 1e20);
}

TEST(ExactGP, FitBacksAwayFromWhatCannotBeFactorised) {
  // Noiseless equal targets at equal inputs want a noise of 0, where K is singular.
  const Batch batch{Matrix::Zero(50, 1), Vector::Constant(50, 1e6)};
  ExactGP gp({.kernel = Constant{Positive(1).within(1e-6, 1e20)},
              .noise_variance = Positive(0.1).within(1e-30, 1e8)});
  const MinimizeSummary summary = gp.fit(batch.X, batch.y);
  EXPECT_TRUE(summary.usable()) << summary.message;
  EXPECT_LT(summary.value, summary.initial_value);
  EXPECT_TRUE(gp.predict(batch.X).mean.allFinite());
}

TEST(ExactGP, WrongArgumentsAreRefused) {
  const Batch batch = random_batch(5, 2, 15);
  EXPECT_THROW(ExactGP({.kernel = SquaredExponential{}, .noise_variance = Positive{0.1, 0.2}}),
               std::invalid_argument);
  ExactGP gp({.kernel = SquaredExponential{}});
  EXPECT_THROW(gp.condition(batch.X, batch.y.head(4)), std::invalid_argument);
  Vector bad = batch.y;
  bad[2] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(gp.condition(batch.X, bad), std::invalid_argument);
  EXPECT_THROW(gp.fit(batch.X, bad), std::invalid_argument);
  EXPECT_EQ(gp.size(), 0);
  gp.condition(batch.X, batch.y);
  EXPECT_THROW((void)gp.predict(Matrix::Zero(1, 3)), std::invalid_argument);
  EXPECT_THROW((void)gp.predict(Matrix::Constant(1, 2, bad[2])), std::invalid_argument);
  ExactGP ard({.kernel = SquaredExponential{.lengthscale = {1, 2, 3}}});
  EXPECT_THROW(ard.condition(batch.X, batch.y), std::invalid_argument);
}

}  // namespace
}  // namespace ample
