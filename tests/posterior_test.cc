// Predictions against dense Gaussian conditioning (support/naive.h) and against their own laws.
#include "ample/posterior.h"

#include <cmath>
#include <limits>
#include <string>

#include <Eigen/LU>
#include <gtest/gtest.h>

#include "ample/threads.h"
#include "support/check_gradient.h"
#include "support/every_kernel.h"
#include "support/naive.h"
#include "support/random.h"
#include "support/streams.h"

namespace ample {
namespace {

using naive::invert;
using naive::QuadMatrix;
using naive::theta_of;
using naive::Twin;
using testing::message_of;
using testing::Random;
using testing::random_batch;
using testing::relative_error;
using testing::stacked;
using testing::state_after;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Posterior example(Index D = 2, Index N = 30, Index M = 12) {
  return Posterior(state_after(Matern52{1.3, 0.8}, 0.05, random_batch(N, D, 1), M));
}

/// f at the queries given y, as textbooks have it for inducing variables b = f(Z) + √ε noise:
/// mean K_*b Σ K_bf y/σ², covariance K_** − K_*b (K_bb⁻¹ − Σ) K_b*, Σ = (K_bb + K_bf K_fb/σ²)⁻¹.
JointPrediction conditioned(const Twin& twin, double noise_variance, const Batch& batch,
                            const Matrix& Z, double jitter, const Matrix& queries) {
  const Vector theta = theta_of(twin.kernel);
  const QuadMatrix K_bb =
      QuadMatrix(naive::matrix(twin, theta, Z, Z)) + QuadMatrix::identity(Z.rows(), jitter);
  const QuadMatrix K_bf = naive::matrix(twin, theta, Z, batch.X);
  const QuadMatrix K_sb = naive::matrix(twin, theta, queries, Z);
  const QuadMatrix K_ss = naive::matrix(twin, theta, queries, queries);
  const QuadMatrix per_noise = QuadMatrix::identity(Z.rows(), 1.0 / noise_variance);
  const QuadMatrix Sigma = invert(K_bb + per_noise * (K_bf * K_bf.transpose())).matrix;
  const QuadMatrix mean = K_sb * Sigma * per_noise * K_bf * QuadMatrix(batch.y);
  const QuadMatrix covariance = K_ss - K_sb * (invert(K_bb).matrix - Sigma) * K_sb.transpose();
  return {mean.rounded().col(0), covariance.rounded()};
}

// --- Values ------------------------------------------------------------------------------------

TEST_P(EveryKernel, PredictionsAreThoseOfDenseConditioning) {
  const Twin k = twin(3);
  const Batch batch = random_batch(25, 3, 2);
  const State state = state_after(k.kernel, 0.1, batch, 10);
  const Matrix queries = Random(3).normal(7, 3);
  const JointPrediction expected = conditioned(k, 0.1, batch, state.Z, state.jitter, queries);
  const Posterior posterior(state);
  const Prediction p = posterior.predict(queries);
  EXPECT_LE(relative_error(p.mean, expected.mean), 1e-9);
  EXPECT_LE(relative_error(p.variance, expected.covariance.diagonal()), 1e-9);
  const JointPrediction joint = posterior.predict_joint(queries);
  EXPECT_LE(relative_error(joint.mean, expected.mean), 1e-9);
  EXPECT_LE(relative_error(joint.covariance, expected.covariance), 1e-9);
  // Control: a noise variance off by 1e-5 is seen.
  const JointPrediction off = conditioned(k, 0.1 + 1e-6, batch, state.Z, state.jitter, queries);
  EXPECT_GT(relative_error(p.mean, off.mean), 1e-9);
}

TEST_P(EveryKernel, PredictionAtTheInducingInputsIsQ) {
  // b is f(Z) up to its jitter, which moves nothing by more than its own size.
  const Twin k = twin(2);
  const State s = state_after(k.kernel, 0.1, random_batch(30, 2, 4), 8);
  const Matrix D_inv = (Matrix::Identity(8, 8) + s.A).inverse();
  const Vector m = s.L * D_inv * s.c;
  const Matrix S = s.L * D_inv * s.L.transpose();
  const Prediction p = Posterior(s).predict(s.Z);
  EXPECT_LE((p.mean - m).cwiseAbs().maxCoeff(), 1e-5);
  EXPECT_LE((p.variance - S.diagonal()).cwiseAbs().maxCoeff(), 1e-5);
  // Control: q(b) is not the prior.
  EXPECT_GT((k.kernel.diagonal(s.Z) - S.diagonal()).cwiseAbs().maxCoeff(), 1e-2);
}

TEST_P(EveryKernel, AnEmptyModelPredictsThePrior) {
  const Twin k = twin(3);
  const Posterior posterior(State::empty(k.kernel, 0.3, 3));
  const Matrix X = Random(5).normal(6, 3);
  const Prediction p = posterior.predict(X);
  EXPECT_EQ(p.mean, Vector::Zero(6));
  EXPECT_LE(relative_error(p.variance, k.kernel.diagonal(X)), 1e-14);
  const JointPrediction joint = posterior.predict_joint(X);
  EXPECT_EQ(joint.mean, Vector::Zero(6));
  EXPECT_LE(relative_error(joint.covariance, k.kernel(X, X)), 1e-14);
}

TEST(Posterior, WithInducingPointsAtAllDataItIsTheExactGP) {
  const Twin k = naive::twin(Matern12{1.2, 0.7});
  const Batch batch = random_batch(20, 2, 6);
  const Posterior posterior(state_after(k.kernel, 0.1, batch, 20, 1e-13));
  const Matrix queries = Random(7).normal(9, 2);
  const Vector theta = theta_of(k.kernel);
  const QuadMatrix K_sf = naive::matrix(k, theta, queries, batch.X);
  const QuadMatrix inverse =
      invert(QuadMatrix(naive::matrix(k, theta, batch.X, batch.X)) + QuadMatrix::identity(20, 0.1))
          .matrix;
  const QuadMatrix covariance =
      QuadMatrix(naive::matrix(k, theta, queries, queries)) - K_sf * inverse * K_sf.transpose();
  const Prediction p = posterior.predict(queries);
  EXPECT_LE(relative_error(p.mean, (K_sf * inverse * QuadMatrix(batch.y)).rounded()), 1e-9);
  EXPECT_LE(relative_error(p.variance, covariance.rounded().diagonal()), 1e-9);
  // Control: with half of the points it is not.
  const Posterior fewer(state_after(k.kernel, 0.1, batch, 10, 1e-13));
  EXPECT_GT(relative_error(fewer.predict(queries).mean, p.mean), 1e-3);
}

TEST(Posterior, BlocksOfQueriesAreTheQueriesOneByOne) {
  const Posterior posterior = example();
  const Matrix X = Random(8).normal(3000, 2);  // three blocks, the last not full
  const Prediction all = posterior.predict(X);
  const PredictionGradient slopes = posterior.gradient(X);
  ASSERT_EQ(all.mean.size(), 3000);
  for (Index i = 0; i < 3000; i += 7) {
    const Prediction one = posterior.predict(X.row(i));
    ASSERT_LE(relative_error(one.mean[0], all.mean[i]), 1e-12) << i;
    ASSERT_LE(relative_error(one.variance[0], all.variance[i]), 1e-12) << i;
    const PredictionGradient slope = posterior.gradient(X.row(i));
    ASSERT_LE(relative_error(slope.mean, slopes.mean.row(i)), 1e-11) << i;
    ASSERT_LE(relative_error(slope.variance, slopes.variance.row(i)), 1e-11) << i;
  }
  EXPECT_GT((all.mean.head(1024) - all.mean.segment(1024, 1024)).norm(), 1.0);  // control
}

// Many queries go another way: with one factor for the variance instead of two.
TEST_P(EveryKernel, ManyQueriesArePredictedLikeFew) {
  const Twin k = twin(3);
  const Posterior posterior(state_after(k.kernel, 0.1, random_batch(80, 3, 2), 30));
  const Matrix X = Random(9).normal(1500, 3);
  const Prediction many = posterior.predict(X);
  const double prior = k.kernel.diagonal(X).maxCoeff();
  for (const Index first : {0, 600, 1400}) {
    const Prediction few = posterior.predict(X.middleRows(first, 100));
    EXPECT_LE(relative_error(many.mean.segment(first, 100), few.mean), 1e-9);
    EXPECT_LE((many.variance.segment(first, 100) - few.variance).cwiseAbs().maxCoeff(),
              1e-11 * prior);
  }
}

TEST(Posterior, WhereNothingIsKnownManyQueriesHaveThePriorsVariance) {
  State state = example().state();
  state.A.setZero();
  state.c.setZero();
  state.w.setZero();
  state.L_D.setIdentity();
  const Prediction p = Posterior(state).predict(Random(9).normal(1500, 2));
  EXPECT_EQ(p.mean, Vector::Zero(1500));
  EXPECT_LE((p.variance.array() - 1.3).abs().maxCoeff(), 1e-12);
}

TEST(Posterior, MeansAloneAreThoseWithVariances) {
  const Posterior posterior = example(2, 200, 40);
  Random random(19);
  for (const Index N : {0, 1, 2, 700, 1500}) {
    const Matrix X = random.normal(N, 2);
    EXPECT_LE(relative_error(posterior.mean(X), posterior.predict(X).mean), 1e-10);
  }
  const Matrix X = random.normal(5, 2);
  EXPECT_GT(relative_error(posterior.mean(X.array() + 1e-3), posterior.predict(X).mean), 1e-8);
  EXPECT_EQ(Posterior(State::empty(Matern52{}, 0.1, 2)).mean(X), Vector::Zero(5));
}

TEST(Posterior, NoQueriesGiveNoPredictions) {
  const Posterior posterior = example();
  const Matrix none(0, 2);
  EXPECT_EQ(posterior.predict(none).mean.size(), 0);
  EXPECT_EQ(posterior.predict_joint(none).covariance.size(), 0);
  EXPECT_EQ(posterior.gradient(none).mean.rows(), 0);
  EXPECT_EQ(posterior.sample(none, 3, 1).size(), 0);
}

TEST(Posterior, TheJointDiagonalIsTheMarginals) {
  const Posterior posterior = example();
  const Matrix X = Random(9).normal(40, 2);
  for (const Target target : {Target::function, Target::observation}) {
    const Prediction p = posterior.predict(X, target);
    const JointPrediction joint = posterior.predict_joint(X, target);
    EXPECT_LE(relative_error(joint.mean, p.mean), 1e-12);
    EXPECT_LE(relative_error(joint.covariance.diagonal(), p.variance), 1e-12);
    EXPECT_EQ(joint.covariance, joint.covariance.transpose());
  }
}

TEST(Posterior, AnObservationHasTheNoiseOnTop) {
  const Posterior posterior = example();
  const Matrix X = Random(10).normal(15, 2);
  const Prediction f = posterior.predict(X);
  const Prediction y = posterior.predict(X, Target::observation);
  EXPECT_EQ(y.mean, f.mean);
  EXPECT_LE(relative_error(y.variance, (f.variance.array() + 0.05).matrix()), 1e-14);
  const Matrix difference = posterior.predict_joint(X, Target::observation).covariance -
                            posterior.predict_joint(X).covariance;
  EXPECT_LE(relative_error(difference, 0.05 * Matrix::Identity(15, 15)), 1e-14);
}

TEST(Posterior, ScalingTargetsAndHyperparametersScalesPredictions) {
  constexpr double s = 37.0;
  const Kernel k = Matern52{1.3, 0.8};
  Batch batch = random_batch(30, 2, 11);
  const Posterior small(state_after(k, 0.05, batch, 12));
  batch.y *= s;
  const Posterior large(state_after(s * s * k, s * s * 0.05, batch, 12));
  const Matrix X = Random(12).normal(20, 2);
  const Prediction a = small.predict(X, Target::observation);
  const Prediction b = large.predict(X, Target::observation);
  EXPECT_LE(relative_error(b.mean, s * a.mean), 1e-11);
  EXPECT_LE(relative_error(b.variance, s * s * a.variance), 1e-11);
  // Control: the targets alone do not scale the variance.
  const Posterior neither(state_after(k, 0.05, batch, 12));
  EXPECT_GT(relative_error(neither.predict(X).variance, b.variance), 1.0 / s);
}

TEST(Posterior, OneAndTwoThreadsAgree) {
  const Posterior posterior = example(2, 400, 300);
  const Matrix X = Random(13).normal(3000, 2);
  const int before = threads();
  set_threads(1);
  const Prediction one = posterior.predict(X);
  set_threads(2);
  const Prediction two = posterior.predict(X);
  set_threads(before);
  EXPECT_EQ(two.mean, one.mean);
  EXPECT_EQ(two.variance, one.variance);
}

// --- Samples -----------------------------------------------------------------------------------

TEST(Posterior, SamplesHaveTheMeanAndTheCovarianceOfTheJoint) {
  const Posterior posterior = example();
  const Matrix X = Random(14).normal(4, 2);
  constexpr Index count = 40'000;
  for (const Target target : {Target::function, Target::observation}) {
    const JointPrediction joint = posterior.predict_joint(X, target);
    const Matrix samples = posterior.sample(X, count, 15, target);
    ASSERT_EQ(samples.rows(), 4);
    ASSERT_EQ(samples.cols(), count);
    const Vector mean = samples.rowwise().mean();
    const Matrix centred = samples.colwise() - mean;
    const Matrix covariance = centred * centred.transpose() / static_cast<double>(count - 1);
    // Five standard errors: of a mean √(v/n), of a covariance at most √(2 v_i v_j/n).
    for (Index i = 0; i < 4; ++i) {
      const double v_i = joint.covariance(i, i);
      EXPECT_LE(std::abs(mean[i] - joint.mean[i]), 5.0 * std::sqrt(v_i / count));
      for (Index j = 0; j < 4; ++j) {
        EXPECT_LE(std::abs(covariance(i, j) - joint.covariance(i, j)),
                  5.0 * std::sqrt(2.0 * v_i * joint.covariance(j, j) / count));
      }
    }
  }
  // Control: the bound tells function from observation.
  EXPECT_GT(0.05, 5.0 * std::sqrt(2.0 / count) *
                      posterior.predict(X, Target::observation).variance.maxCoeff());
}

TEST(Posterior, TheSameSeedGivesTheSameSamples) {
  const Posterior posterior = example();
  const Matrix X = Random(16).normal(10, 2);
  const Matrix samples = posterior.sample(X, 5, 17);
  EXPECT_EQ(posterior.sample(X, 5, 17), samples);
  EXPECT_NE(posterior.sample(X, 5, 18), samples);
  EXPECT_EQ(posterior.sample(X, 0, 17).cols(), 0);
}

TEST(Posterior, SamplesOfASingularCovarianceAreFinite) {
  const Posterior posterior = example();
  Matrix X(60, 2);
  X.topRows(30) = Random(19).normal(30, 2);
  X.bottomRows(30) = X.topRows(30);  // every query twice
  const Matrix samples = posterior.sample(X, 4, 20);
  ASSERT_TRUE(samples.allFinite());
  EXPECT_LE((samples.topRows(30) - samples.bottomRows(30)).cwiseAbs().maxCoeff(), 1e-3);
}

// --- Derivatives -------------------------------------------------------------------------------

TEST_P(EveryKernel, GradientIsThatOfCentralDifferences) {
  for (const Index D : {1, 3}) {
    const Twin k = twin(D);
    const Posterior posterior(state_after(k.kernel, 0.2, random_batch(25, D, 21), 8));
    const Matrix X = Random(22).normal(5, D);
    const PredictionGradient g = posterior.gradient(X);
    ASSERT_EQ(g.mean.rows(), 5);
    ASSERT_EQ(g.mean.cols(), D);
    for (Index i = 0; i < 5; ++i) {
      const auto mean = [&](const Vector& x) { return posterior.predict(x.transpose()).mean[0]; };
      const auto variance = [&](const Vector& x) {
        return posterior.predict(x.transpose()).variance[0];
      };
      const Vector x = X.row(i);
      EXPECT_LE(testing::gradient_error(mean, x, g.mean.row(i)), 1e-6);
      EXPECT_LE(testing::gradient_error(variance, x, g.variance.row(i)), 1e-6);
      // Control: the gradient of the mean is not that of the variance.
      if (GetParam() == "constant") continue;
      EXPECT_GT(testing::gradient_error(mean, x, g.variance.row(i)), 1e-6);
    }
  }
}

TEST_P(EveryKernel, GradientOfThePriorIsThatOfItsVariance) {
  const Twin k = twin(2);
  const Posterior posterior(State::empty(k.kernel, 0.2, 2));
  const Matrix X = Random(23).normal(3, 2);
  const PredictionGradient g = posterior.gradient(X);
  EXPECT_EQ(g.mean, Matrix::Zero(3, 2));
  for (Index i = 0; i < 3; ++i) {
    const auto variance = [&](const Vector& x) {
      return posterior.predict(x.transpose()).variance[0];
    };
    EXPECT_LE(testing::gradient_error(variance, X.row(i), g.variance.row(i)), 1e-6);
  }
}

// --- Hard cases --------------------------------------------------------------------------------

struct Hard {
  const char* name;
  double variance;
  double lengthscale;
  double noise_variance;
  double spacing;  // between neighbouring inputs
};

class HardCase : public ::testing::TestWithParam<Hard> {};
INSTANTIATE_TEST_SUITE_P(Posterior, HardCase,
                         ::testing::Values(Hard{"duplicates", 1.0, 1.0, 1e-2, 0.0},
                                           Hard{"close", 1.0, 1.0, 1e-2, 1e-9},
                                           Hard{"long_lengthscale", 1.0, 1e4, 1e-2, 0.1},
                                           Hard{"short_lengthscale", 1.0, 1e-4, 1e-2, 0.1},
                                           Hard{"noise_floor", 2000.0, 1.0, 1e-6, 0.05},
                                           Hard{"noise_floor_duplicates", 2000.0, 1.0, 1e-6, 0.0},
                                           Hard{"huge_variance", 1e8, 10.0, 1e-6, 0.1},
                                           Hard{"tiny_variance", 1e-6, 1.0, 1.0, 0.1}),
                         [](const auto& test) { return test.param.name; });

TEST_P(HardCase, PredictionsAreFiniteAndVariancesNotNegative) {
  const Hard& h = GetParam();
  Batch batch{Matrix(40, 1), Vector(40)};
  Random random(24);
  for (Index i = 0; i < 40; ++i) {
    batch.X(i, 0) = h.spacing * static_cast<double>(i);
    batch.y[i] = std::sin(batch.X(i, 0)) + 0.01 * random.normal();
  }
  const Kernel k = SquaredExponential{h.variance, h.lengthscale};
  const Posterior posterior(state_after(k, h.noise_variance, batch, 40));
  Matrix queries = stacked(batch.X, Matrix(random.uniform(100, 1, -10.0, 10.0)));
  const Prediction p = posterior.predict(queries);
  EXPECT_TRUE(p.mean.allFinite());
  EXPECT_TRUE(p.variance.allFinite());
  EXPECT_GE(p.variance.minCoeff(), 0.0);
  EXPECT_LE(p.variance.maxCoeff(), h.variance * (1.0 + 1e-6));
  // Many queries, by another way, are as good.
  const Prediction many = posterior.predict(queries.replicate(10, 1));
  EXPECT_LE((many.mean.tail(140) - p.mean).cwiseAbs().maxCoeff(), 1e-6);
  EXPECT_GE(many.variance.minCoeff(), 0.0);
  EXPECT_LE((many.variance.tail(140) - p.variance).cwiseAbs().maxCoeff(), 1e-9 * h.variance);
  const JointPrediction joint = posterior.predict_joint(queries);
  EXPECT_TRUE(joint.covariance.allFinite());
  EXPECT_GE(joint.covariance.diagonal().minCoeff(), 0.0);
  const PredictionGradient g = posterior.gradient(queries);
  EXPECT_TRUE(g.mean.allFinite());
  EXPECT_TRUE(g.variance.allFinite());
  EXPECT_TRUE(posterior.sample(queries, 2, 25).allFinite());
}

// --- Mistakes ----------------------------------------------------------------------------------

TEST(Posterior, SaysWhatIsWrongWithQueries) {
  const Posterior posterior = example();
  const Matrix wide = Matrix::Zero(4, 3);
  Matrix hole = Matrix::Zero(4, 2);
  hole(2, 1) = kNan;
  EXPECT_EQ(message_of([&] { (void)posterior.predict(wide); }),
            "predict: X has 3 columns, but must have 2 (the model's input dimension)");
  EXPECT_EQ(message_of([&] { (void)posterior.predict_joint(wide); }),
            "predict_joint: X has 3 columns, but must have 2 (the model's input dimension)");
  EXPECT_EQ(message_of([&] { (void)posterior.gradient(wide); }),
            "gradient: X has 3 columns, but must have 2 (the model's input dimension)");
  EXPECT_EQ(message_of([&] { (void)posterior.predict(hole); }),
            "predict: X holds nan in row 2, column 1, but every value must be finite");
  EXPECT_NE(message_of([&] { (void)posterior.gradient(hole); }), "");
  EXPECT_NE(message_of([&] { (void)posterior.sample(hole, 1, 0); }), "");
  EXPECT_EQ(message_of([&] { (void)posterior.sample(Matrix::Zero(1, 2), -1, 0); }),
            "sample: count is -1, but must not be negative");
}

}  // namespace
}  // namespace ample
