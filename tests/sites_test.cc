// Rows of different precision (derivation §16): in the bound, its gradient, L*, the upper bounds
// and the search for inducing points.
#include "ample/sites.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include <Eigen/Cholesky>
#include <gtest/gtest.h>

#include "ample/bound.h"
#include "ample/continual_gp.h"
#include "ample/greedy_search.h"
#include "ample/optimum.h"
#include "support/check_gradient.h"
#include "support/random.h"
#include "support/streams.h"

namespace ample {
namespace {

using testing::message_of;
using testing::Random;
using testing::random_batch;
using testing::relative_error;
using testing::stacked;

constexpr double kNoise = 0.05;

Vector random_weights(Index n, std::uint64_t seed) {
  Random random(seed);
  return Vector::NullaryExpr(n, [&] { return random.uniform(0.2, 5.0); });
}

struct Problem {
  Kernel kernel = Matern52{.variance = 1.3, .lengthscale = {0.9, 1.4}};
  Batch first = random_batch(40, 2, 1);
  Batch batch = random_batch(30, 2, 2);
  Vector weights = random_weights(30, 3);
  State old = testing::state_after(kernel, kNoise, first, 12);
  Matrix Z = stacked(old.Z, batch.X.topRows(6));
};

/// log N(y; mean, covariance), with nothing but Eigen.
double log_density(const Vector& y, const Vector& mean, const Matrix& covariance) {
  const Eigen::LLT<Matrix> llt(covariance);
  const Matrix L = llt.matrixL();
  const Vector e = llt.matrixL().solve(y - mean);
  return -0.5 * e.squaredNorm() - L.diagonal().array().log().sum() -
         0.5 * static_cast<double>(y.size()) * std::log(2.0 * std::numbers::pi);
}

TEST(Sites, AWeightOfTwoIsTheRowTwice) {
  const Problem p;
  Vector weights = Vector::Ones(30);
  Batch doubled = p.batch;
  for (const Index n : {3, 7, 29}) {
    weights[n] = 2.0;
    doubled.X.conservativeResize(doubled.X.rows() + 1, 2);
    doubled.y.conservativeResize(doubled.y.size() + 1);
    doubled.X.bottomRows(1) = p.batch.X.row(n);
    doubled.y.tail(1)[0] = p.batch.y[n];
  }
  OnlineBound weighted(p.old, p.batch.X, Sites(p.batch.y, weights));
  OnlineBound twice(p.old, doubled.X, doubled.y);
  OnlineBound plain(p.old, p.batch.X, p.batch.y);
  for (OnlineBound* bound : {&weighted, &twice, &plain}) {
    ASSERT_TRUE(bound->factorize(p.kernel, kNoise, p.Z, 1e-8));
  }
  EXPECT_LE(relative_error(weighted.gradient().theta, twice.gradient().theta), 1e-9);
  EXPECT_GT(relative_error(plain.gradient().theta, twice.gradient().theta), 1e-3);
  const State a = weighted.absorb();
  const State b = twice.absorb();
  EXPECT_LE(relative_error(a.A, b.A), 1e-10);
  EXPECT_LE(relative_error(a.c, b.c), 1e-10);
}

TEST(Sites, EqualWeightsAreAnotherNoiseVariance) {
  const Problem p;
  const double w = 2.5;
  OnlineBound weighted(p.old, p.batch.X, Sites(p.batch.y, Vector::Constant(30, w)));
  OnlineBound plain(p.old, p.batch.X, p.batch.y);
  ASSERT_TRUE(weighted.factorize(p.kernel, kNoise, p.Z, 1e-8));
  ASSERT_TRUE(plain.factorize(p.kernel, kNoise / w, p.Z, 1e-8));
  EXPECT_LE(relative_error(weighted.value(), plain.value()), 1e-11);
  EXPECT_LE(relative_error(weighted.gradient().theta, plain.gradient().theta), 1e-9);
  EXPECT_LE(relative_error(weighted.gradient().noise_variance * kNoise,
                           plain.gradient().noise_variance * kNoise / w),
            1e-9);
}

TEST(Sites, WeightsOfOneChangeNoBitOfTheValue) {
  const Problem p;
  OnlineBound weighted(p.old, p.batch.X, Sites(p.batch.y, Vector::Ones(30)));
  OnlineBound plain(p.old, p.batch.X, p.batch.y);
  ASSERT_TRUE(weighted.factorize(p.kernel, kNoise, p.Z));
  ASSERT_TRUE(plain.factorize(p.kernel, kNoise, p.Z));
  EXPECT_EQ(weighted.value(), plain.value());
}

/// The bound's gradient in θ, σ² and Z against central differences.
void check_gradient(const std::vector<const State*>& pasts, const Batch& batch, const Sites& sites,
                    const Kernel& kernel, const Matrix& Z, OnlineBound::Inducing inducing) {
  const Index P = kernel.num_parameters();
  const bool moving = inducing == OnlineBound::Inducing::moving;
  Vector u(P + 1 + (moving ? Z.size() : 0));
  const std::vector<Parameter> parameters = kernel.parameters();
  for (Index i = 0; i < P; ++i) u[i] = parameters[static_cast<std::size_t>(i)].value;
  u[P] = kNoise;
  if (moving) u.tail(Z.size()) = Z.reshaped();
  OnlineBound bound(pasts, batch.X, sites, inducing);
  const auto factorize = [&](const Vector& x) {
    Matrix at = Z;
    if (moving) at.reshaped() = x.tail(Z.size());
    ASSERT_TRUE(bound.factorize(kernel.with_values(x.head(P)), x[P], at, 1e-6));
  };
  factorize(u);
  Vector gradient(u.size());
  const BoundGradient& g = bound.gradient();
  gradient.head(P) = g.theta;
  gradient[P] = g.noise_variance;
  if (moving) gradient.tail(Z.size()) = g.Z.reshaped();
  const auto value = [&](const Vector& x) {
    factorize(x);
    return bound.value();
  };
  EXPECT_LE(testing::gradient_error(value, u, gradient), 1e-6);
}

TEST(Sites, TheGradientOfTheBoundKnowsTheWeights) {
  const Problem p;
  const Sites sites(p.batch.y, p.weights);
  const Kernel other = p.kernel.with_values(Vector{{1.1, 1.2, 1.0}});
  using Inducing = OnlineBound::Inducing;
  check_gradient({&p.old}, p.batch, sites, other, p.Z, Inducing::fixed);
  check_gradient({&p.old}, p.batch, sites, other, p.batch.X.topRows(9), Inducing::fixed);
  check_gradient({&p.old}, p.batch, sites, other, p.batch.X.topRows(9), Inducing::moving);
  // More inducing points than rows take another form of the gradient.
  const Matrix many = stacked(p.old.Z, random_batch(40, 2, 9).X);
  check_gradient({&p.old}, p.batch, sites, other, many, Inducing::fixed);
}

TEST(Sites, TheOptimumIsThePredictiveDensityOfTheRows) {
  const Problem p;
  const Sites sites(p.batch.y, p.weights);
  const JointPrediction joint = Posterior(p.old).predict_joint(p.batch.X);
  Matrix covariance = joint.covariance;
  covariance.diagonal().array() += kNoise / p.weights.array();
  const double expected = log_density(p.batch.y, joint.mean, covariance);
  const double best = optimum(p.old, p.batch.X, sites).value();
  EXPECT_LE(relative_error(best, expected), 1e-9);
  EXPECT_GT(relative_error(optimum(p.old, p.batch.X, p.batch.y).value(), expected), 1e-2);

  // L̂ ≤ L* ≤ Û′ ≤ Û, and every row an inducing point reaches L*_ε.
  OnlineBound bound(p.old, p.batch.X, sites);
  ASSERT_TRUE(bound.factorize(p.kernel, kNoise, p.Z));
  const double tight = upper_bound(UpperBound::tight, p.old, bound.factors(), sites).value();
  const double paper = upper_bound(UpperBound::paper, p.old, bound.factors(), sites).value();
  EXPECT_LE(bound.value(), best);
  EXPECT_LE(best, tight);
  EXPECT_LE(tight, paper);
  const double jitter = 1e-3;
  State rough = testing::state_after(p.kernel, kNoise, p.first, 12, jitter);
  OnlineBound all(rough, p.batch.X, sites);
  ASSERT_TRUE(all.factorize(p.kernel, kNoise, stacked(rough.Z, p.batch.X), jitter));
  EXPECT_LE(
      relative_error(all.value(), optimum_with_jitter(rough, p.batch.X, sites, jitter).value()),
      1e-9);
}

TEST(Sites, TheSearchKeepsTheBoundOfTheRowsAndHandsItOn) {
  const Problem p;
  for (const Sites& sites : {Sites(p.batch.y), Sites(p.batch.y, p.weights)}) {
    TargetStatistics targets;
    targets.observe(p.batch.y);
    GreedySearch search({p.old, p.batch.X, sites, targets, 0});
    for (int i = 0; i < 9; ++i) ASSERT_TRUE(search.take_next());
    for (const Index taken : {0, 4, 9}) {
      const Selection s = search.selection(taken, SelectionStop::threshold);
      ASSERT_EQ(s.Z.rows(), p.old.size() + taken);
      OnlineBound anew(p.old, p.batch.X, sites);
      ASSERT_TRUE(anew.factorize(p.old.kernel, kNoise, s.Z));
      OnlineBound handed(p.old, p.batch.X, sites);
      ASSERT_TRUE(handed.start_from(s.Z, s.factors.value()));
      EXPECT_LE(relative_error(s.lower_bound.value(), anew.value()), 1e-10);
      EXPECT_LE(relative_error(handed.value(), anew.value()), 1e-10);
      EXPECT_LE(relative_error(handed.gradient().theta, anew.gradient().theta), 1e-7);
      EXPECT_LE(relative_error(handed.gradient().noise_variance, anew.gradient().noise_variance),
                1e-7);
      const State a = handed.absorb();
      const State b = anew.absorb();
      EXPECT_LE(relative_error(a.L, b.L), 1e-8);
      EXPECT_LE(relative_error(a.A, b.A), 1e-7);
      EXPECT_LE(relative_error(a.c, b.c), 1e-7);
    }
  }
}

TEST(Sites, ASearchAtItsEndHandsOnWhatItWouldCopy) {
  const Problem p;
  TargetStatistics targets;
  targets.observe(p.batch.y);
  for (const Index taken : {0, 3, 5}) {
    GreedySearch search({p.old, p.batch.X, Sites(p.batch.y), targets, 0});
    for (Index i = 0; i < std::min<Index>(taken, 4); ++i) ASSERT_TRUE(search.take_next());
    const Index first = std::min(taken, search.taken());
    const Selection copied = search.selection(first, SelectionStop::threshold);
    const Selection moved = std::move(search).selection(first, SelectionStop::threshold);
    EXPECT_EQ(moved.Z, copied.Z);
    EXPECT_EQ(moved.lower_bound, copied.lower_bound);
    const auto state = [&](const Selection& s) {
      OnlineBound bound(p.old, p.batch.X, Sites(p.batch.y));
      EXPECT_TRUE(bound.start_from(s.Z, s.factors.value()));
      return bound.absorb();
    };
    const State a = state(moved);
    const State b = state(copied);
    EXPECT_EQ(a.L, b.L);
    EXPECT_EQ(a.A, b.A);
    EXPECT_EQ(a.L_D, b.L_D);
    EXPECT_EQ(a.w, b.w);
    EXPECT_EQ(a.c, b.c);
  }
}

TEST(Sites, AModelBelievesAPreciseRowMore) {
  const Matrix X = Matrix::Zero(2, 1);
  const Vector y{{1.0, -1.0}};
  ContinualGPOptions options;
  options.refit_every = 0;
  ContinualGP even(options);
  ContinualGP uneven(options);
  even.observe(X, y);
  uneven.observe(X, y, {.weights = Vector{{4.0, 1.0}}});
  EXPECT_NEAR(even.predict(X).mean[0], 0.0, 1e-12);
  // Posterior of f(0): precision 1 + 5/σ², evidence (4 − 1)/σ².
  EXPECT_NEAR(uneven.predict(X).mean[0], 3.0 / 0.1 / (1.0 + 5.0 / 0.1), 1e-6);
}

TEST(Sites, SayWhatIsWrongWithWeights) {
  EXPECT_EQ(message_of([] { Sites(Vector::Ones(3), Vector::Ones(2)); }),
            "Sites: weights has 2 rows, but must have 3 (the targets)");
  EXPECT_EQ(message_of([] { Sites(Vector::Ones(2), Vector{{1.0, 0.0}}); }),
            "Sites: a weight is 0, but must be positive and finite");
}

// --- Several pasts -------------------------------------------------------------------------------

TEST(Pasts, ShardsWithEveryRowInducingAreTheExactModelOfTheUnion) {
  const Kernel kernel = SquaredExponential{.variance = 1.2, .lengthscale = 0.8};
  const Batch a = random_batch(12, 2, 4);
  const Batch b = random_batch(9, 2, 5);
  const double jitter = 1e-10;
  const State past_a = testing::state_after(kernel, kNoise, a, 12, jitter);
  const State past_b = testing::state_after(kernel, kNoise, b, 9, jitter);
  const Matrix Z = stacked(a.X, b.X);
  const Batch none{Matrix(0, 2), Vector(0)};
  OnlineBound merged({&past_a, &past_b}, none.X, none.y);
  ASSERT_TRUE(merged.factorize(kernel, kNoise, Z, jitter));
  const State both = merged.absorb();
  const State at_once =
      testing::state_after(kernel, kNoise, {Z, (Vector(21) << a.y, b.y).finished()}, 21, jitter);
  const Matrix X = random_batch(25, 2, 6).X;
  const Prediction got = Posterior(both).predict(X);
  const Prediction expected = Posterior(at_once).predict(X);
  EXPECT_LE(relative_error(got.mean, expected.mean), 1e-6);
  EXPECT_LE(relative_error(got.variance, expected.variance), 1e-6);
  EXPECT_GT(relative_error(Posterior(past_a).predict(X).mean, expected.mean), 1e-2);

  // In any order.
  OnlineBound other({&past_b, &past_a}, none.X, none.y);
  ASSERT_TRUE(other.factorize(kernel, kNoise, Z, jitter));
  EXPECT_LE(relative_error(other.value(), merged.value()), 1e-6);
}

TEST(Pasts, TheGradientSumsOverThem) {
  const Problem p;
  const State second = testing::state_after(p.kernel, 0.2, random_batch(25, 2, 11), 8);
  const State third = State::empty(p.kernel, kNoise, 2);
  const Kernel other = p.kernel.with_values(Vector{{1.1, 1.2, 1.0}});
  using Inducing = OnlineBound::Inducing;
  const Sites sites(p.batch.y);
  // One of them nested, none of them, moving inducing inputs; an empty one changes nothing.
  check_gradient({&p.old, &second}, p.batch, sites, other, p.Z, Inducing::fixed);
  check_gradient({&second, &third, &p.old}, p.batch, sites, other, p.Z, Inducing::fixed);
  check_gradient({&p.old, &second}, p.batch, sites, other, p.batch.X.topRows(9), Inducing::moving);
  check_gradient({}, p.batch, sites, other, p.batch.X.topRows(9), Inducing::fixed);
}

TEST(Pasts, NoneIsTheSameAsAnEmptyOne) {
  const Problem p;
  const State nothing = State::empty(p.kernel, kNoise, 2);
  OnlineBound none(std::vector<const State*>{}, p.batch.X, p.batch.y);
  OnlineBound empty(nothing, p.batch.X, p.batch.y);
  ASSERT_TRUE(none.factorize(p.kernel, kNoise, p.Z));
  ASSERT_TRUE(empty.factorize(p.kernel, kNoise, p.Z));
  EXPECT_EQ(none.value(), empty.value());
  EXPECT_EQ(none.gradient().theta, empty.gradient().theta);
}

}  // namespace
}  // namespace ample
