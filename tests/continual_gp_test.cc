// The model as a user meets it: batches in, reports and predictions out.
#include "ample/continual_gp.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ample/bound.h"
#include "ample/metrics.h"
#include "ample/optimum.h"
#include "ample/threads.h"
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

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// y = sin 3x + noise of deviation 0.1 on [0, 3].
Batch wave(Index N, std::uint64_t seed, double low = 0.0, double high = 3.0) {
  Random random(seed);
  Batch batch{random.uniform(N, 1, low, high), Vector(N)};
  for (Index i = 0; i < N; ++i) {
    batch.y[i] = std::sin(3.0 * batch.X(i, 0)) + 0.1 * random.normal();
  }
  return batch;
}

ContinualGPOptions frozen(Kernel kernel, double noise_variance) {
  ContinualGPOptions options;
  options.start = {.kernel = std::move(kernel), .noise_variance = noise_variance};
  options.refit_every = 0;
  return options;
}

/// Inducing inputs chosen beforehand.
struct Given {
  Matrix Z;
  [[nodiscard]] Selection select(const SelectionProblem& p) const {
    Selection s;
    s.Z = Z;
    s.added = Z.rows() - p.old.size();
    return s;
  }
  [[nodiscard]] static std::string name() { return "given"; }
};

void expect_same(const Prediction& a, const Prediction& b, double tolerance) {
  EXPECT_LE(relative_error(a.mean, b.mean), tolerance);
  EXPECT_LE(relative_error(a.variance, b.variance), tolerance);
}

const Matrix& grid() {
  static const Matrix X = Vector::LinSpaced(50, -1.0, 4.0);
  return X;
}

// --- Learning ----------------------------------------------------------------------------------

// A kernel that grows with its inputs knows no bound. Control: nearer, all is finite.
TEST(ContinualGP, WhatOverflowsIsAnErrorAndNoNumber) {
  ContinualGP gp(frozen(Linear{}, 0.1));
  gp.observe(Matrix::Random(30, 1), Vector::Random(30));
  const auto at = [](double x) { return Matrix::Constant(1, 1, x); };
  EXPECT_TRUE(gp.predict(at(1e100)).variance.allFinite());
  EXPECT_THROW(static_cast<void>(gp.predict(at(1e200))), NumericalError);
  EXPECT_THROW(static_cast<void>(gp.predict_joint(at(1e200))), NumericalError);
  EXPECT_THROW(static_cast<void>(gp.sample(at(1e200), 2, 0)), NumericalError);
}

TEST(ContinualGP, APriorThatOverflowsIsRefused) {
  const auto with = [](const Kernel& kernel, double unit) {
    ContinualGPOptions options = frozen(kernel, 0.1);
    options.scaling = Scaling{Vector::Zero(2), Vector::Ones(2), 0.0, unit};
    return ContinualGP(options);
  };
  EXPECT_NO_THROW(with(1e300 * SquaredExponential{}, 1.0));
  EXPECT_THROW(with(1e300 * SquaredExponential{}, 1e10), std::invalid_argument);
  EXPECT_THROW(with(SquaredExponential{.lengthscale = {1.0, 2.0, 3.0}}, 1.0),
               std::invalid_argument);
  EXPECT_THROW(ContinualGP(frozen(1e308 * SquaredExponential{.dims = {4}}, 0.1)),
               std::invalid_argument);
}

TEST(ContinualGP, StartsEmptyAndPredictsThePrior) {
  const ContinualGP gp(frozen(SquaredExponential{2.0, 0.5}, 0.3));
  EXPECT_EQ(gp.size(), 0);
  EXPECT_EQ(gp.rows_seen(), 0);
  EXPECT_EQ(gp.batches(), 0);
  EXPECT_EQ(gp.dimension(), 0);
  EXPECT_EQ(gp.inducing_inputs().rows(), 0);
  const Matrix X = Random(1).normal(4, 3);
  const Prediction p = gp.predict(X);
  EXPECT_EQ(p.mean, Vector::Zero(4));
  EXPECT_EQ(p.variance, Vector::Constant(4, 2.0));
  EXPECT_LE(relative_error(gp.predict(X, Target::observation).variance, Vector::Constant(4, 2.3)),
            1e-15);
  EXPECT_TRUE(gp.sample(X, 2, 0).allFinite());
  EXPECT_EQ(gp.gradient(X).mean, Matrix::Zero(4, 3));
}

TEST(ContinualGP, LearnsAFunctionFromAStream) {
  ContinualGP gp;
  for (std::uint64_t b = 0; b < 5; ++b) {
    const Batch batch = wave(60, b);
    gp.observe(batch.X, batch.y);
  }
  const Batch test = wave(300, 99);
  const Prediction p = gp.predict(test.X, Target::observation);
  EXPECT_LT(rmse(test.y, p.mean), 0.12);
  EXPECT_NEAR(std::sqrt(gp.noise_variance()), 0.1, 0.02);
  EXPECT_NEAR(coverage(test.y, p, 0.95), 0.95, 0.05);
  EXPECT_LT(gp.size(), 30);
  EXPECT_GT(rmse(test.y, Vector::Zero(300)), 0.5);  // control: there is something to learn
}

TEST(ContinualGP, ABatchMayBeOneRow) {
  ContinualGP gp;
  const Batch all = wave(40, 1);
  for (Index i = 0; i < 40; ++i) {
    const BatchReport r = gp.observe(all.X.row(i), all.y.segment(i, 1));
    ASSERT_EQ(r.rows, 1);
    ASSERT_EQ(r.rows_seen, i + 1);
    ASSERT_EQ(r.batch, i + 1);
    ASSERT_GE(r.inducing, 1);
    ASSERT_LE(r.inducing, i + 1);
    const Prediction p = gp.predict(grid());
    ASSERT_TRUE(p.mean.allFinite());
    ASSERT_TRUE(p.variance.allFinite());
  }
}

TEST(ContinualGP, OneByOneAtFixedHyperparametersIsAllAtOnce) {
  const Batch all = wave(25, 2);
  ContinualGPOptions options = frozen(Matern12{1.0, 1.0}, 0.01);
  options.selection = Vips{.delta = 1e-15};  // every point
  ContinualGP one_by_one(options);
  for (Index i = 0; i < 25; ++i) one_by_one.observe(all.X.row(i), all.y.segment(i, 1));
  ContinualGP at_once(options);
  at_once.observe(all.X, all.y);
  ASSERT_EQ(at_once.size(), 25);
  expect_same(one_by_one.predict(grid()), at_once.predict(grid()), 1e-5);
  // Control: without the last row it is another posterior.
  ContinualGP without(options);
  without.observe(all.X.topRows(24), all.y.head(24));
  EXPECT_GT(relative_error(without.predict(grid()).mean, at_once.predict(grid()).mean), 1e-3);
}

TEST(ContinualGP, TwoBatchesAtFixedHyperparametersAndInducingPointsAreOneBatch) {
  const Batch all = wave(80, 3);
  ContinualGPOptions options = frozen(SquaredExponential{1.0, 0.4}, 0.02);
  options.selection = Given{Matrix(Vector::LinSpaced(15, -0.2, 3.2))};
  ContinualGP two(options);
  const double first = two.observe(all.X.topRows(30), all.y.head(30)).elbo;
  const double second = two.observe(all.X.bottomRows(50), all.y.tail(50)).elbo;
  ContinualGP one(options);
  const double whole = one.observe(all.X, all.y).elbo;
  expect_same(two.predict(grid()), one.predict(grid()), 1e-9);
  EXPECT_LE(relative_error(first + second, whole), 1e-9);
}

TEST(ContinualGP, TheOrderOfRowsInABatchDoesNotMatterForFixedInducingPoints) {
  const Batch batch = wave(50, 4);
  const std::vector<Index> order = Random(5).permutation(50);
  ContinualGPOptions options;
  options.selection = Given{Matrix(Vector::LinSpaced(12, 0.0, 3.0))};
  ContinualGP a(options);
  ContinualGP b(options);
  a.observe(batch.X, batch.y);
  b.observe(batch.X(order, Eigen::all), batch.y(order));
  expect_same(b.predict(grid()), a.predict(grid()), 1e-5);
  options.refit_every = 0;
  ContinualGP c(options);
  ContinualGP d(options);
  c.observe(batch.X, batch.y);
  d.observe(batch.X(order, Eigen::all), batch.y(order));
  expect_same(d.predict(grid()), c.predict(grid()), 1e-10);
}

TEST(ContinualGP, InducingInputsAreRowsOfTheData) {
  ContinualGPOptions options;
  options.scaling = Standardize::first_batch;
  ContinualGP gp(options);
  Matrix seen(0, 2);
  for (const std::uint64_t seed : {1U, 2U}) {
    Batch batch = random_batch(40, 2, seed);
    batch.X.col(1) = (batch.X.col(1) * 300.0).array() + 5000.0;
    gp.observe(batch.X, batch.y);
    seen = stacked(seen, batch.X);
  }
  const Matrix Z = gp.inducing_inputs();
  ASSERT_EQ(Z.rows(), gp.size());
  ASSERT_GT(Z.rows(), 1);
  for (Index i = 0; i < Z.rows(); ++i) {
    double nearest = std::numeric_limits<double>::infinity();
    for (Index j = 0; j < seen.rows(); ++j) {
      nearest = std::min(nearest, relative_error(Matrix(Z.row(i)), Matrix(seen.row(j))));
    }
    EXPECT_LE(nearest, 1e-12);
  }
}

TEST(ContinualGP, DataAreNotKept) {
  // After batches that differ only in size, what is held is the same.
  const auto numbers = [](const ContinualGP& gp) {
    const ContinualGP::Checkpoint& c = *gp.checkpoint();
    const State& s = c.predictor->state();
    Index n = s.Z.size() + s.L.size() + s.A.size() + s.c.size() + s.L_D.size() + s.w.size();
    for (const Curvature::Pair& pair : c.curvature.pairs) n += pair.s.size() + pair.y.size();
    return n;
  };
  ContinualGPOptions options;
  options.selection = Given{Matrix(Vector::LinSpaced(9, 0.0, 3.0))};
  for (const Index rows : {20, 2000}) {
    ContinualGP gp(options);
    for (std::uint64_t b = 0; b < 3; ++b) {
      const Batch batch = wave(rows, b);
      gp.observe(batch.X, batch.y);
    }
    const Index M = 9;
    EXPECT_LE(numbers(gp), M + 3 * M * M + 2 * M + 2 * 10 * 3);
  }
}

TEST(ContinualGP, ASearchedStartFindsAFunctionThatIsShorterThanTheStart) {
  // sin 2x + cos 5x on [0, 10]: in deviations of x the start's lengthscale is five times too long.
  Index flat_without = 0;
  for (const std::uint64_t seed : {0U, 1U, 2U, 3U}) {
    for (const Index rows : {25, 50, 100}) {
      for (const bool search : {false, true}) {
        Random random(seed);
        ContinualGPOptions options;
        options.scaling = Standardize::first_batch;
        options.search_start = search;
        ContinualGP gp(options);
        for (Index seen = 0; seen < 500; seen += rows) {
          const Matrix X = random.uniform(rows, 1, 0.0, 10.0);
          const Vector noise = random.normal(rows);
          const Vector y =
              (2.0 * X.col(0)).array().sin() + (5.0 * X.col(0)).array().cos() + 0.2 * noise.array();
          gp.observe(X, y);
        }
        const Matrix X = Vector::LinSpaced(200, 0.2, 9.8);
        const Vector truth = (2.0 * X.col(0)).array().sin() + (5.0 * X.col(0)).array().cos();
        const double error = rmse(truth, gp.predict(X).mean);
        if (search) {
          EXPECT_LT(error, 0.3) << "seed " << seed << ", batches of " << rows;
        } else if (error > 0.5) {
          ++flat_without;
        }
      }
    }
  }
  EXPECT_GE(flat_without, 1) << "the search is no longer needed, or no longer tested";
}

TEST(ContinualGP, ASearchedStartKeepsWhatIsFixedAndWhatIsBestAlready) {
  const Batch batch = wave(60, 1);
  ContinualGPOptions options;
  options.refit_every = 0;
  options.search_start = true;
  options.start.kernel = SquaredExponential{.lengthscale = Positive(5.0).fixed()};
  ContinualGP fixed(options);
  fixed.observe(batch.X, batch.y);
  EXPECT_EQ(fixed.kernel().to_string(), options.start.kernel.to_string());
  options.start.kernel = SquaredExponential{.lengthscale = 0.5};
  ContinualGP best(options);
  best.observe(batch.X, batch.y);
  EXPECT_EQ(best.kernel().to_string(), options.start.kernel.to_string());
}

TEST(ContinualGP, TargetsOfAnotherSizeDoNotEndTheFitEarly) {
  // At the start the batch is so improbable that α is millions of nats; the fit must not take its
  // gains for nothing beside that.
  for (const std::uint64_t seed : {0U, 1U, 2U}) {
    Batch batch = wave(200, seed);
    batch.y *= 1e3;
    ContinualGP gp;
    ContinualGPOptions to_the_end;
    to_the_end.fit_tolerance = 0.0;
    const BatchReport report = gp.observe(batch.X, batch.y);
    EXPECT_GT(*report.threshold, 1e6);
    EXPECT_NEAR(report.elbo, ContinualGP(to_the_end).observe(batch.X, batch.y).elbo, 0.1) << seed;
  }
}

TEST(ContinualGP, AnyNumberOfThreadsGivesTheSameBits) {
  const int before = threads();
  for (const SelectionMethod& selection :
       {SelectionMethod(Vips{}), SelectionMethod(FixedGradient{.size = 40})}) {
    std::vector<Prediction> predictions;
    for (const int count : {1, 2, 3}) {
      set_threads(count);
      ContinualGPOptions options;
      options.start.kernel =
          Kernel(SquaredExponential{.lengthscale = Positive({1.0, 1.0, 1.0})}) + Kernel(Matern32{});
      options.selection = selection;
      options.fit.max_evaluations = 20;
      ContinualGP gp(options);
      for (std::uint64_t b = 0; b < 2; ++b) {
        const Batch batch = random_batch(600, 3, b);
        gp.observe(batch.X, batch.y);
      }
      predictions.push_back(gp.predict(Random(6).normal(500, 3)));
    }
    for (const Prediction& other : predictions) {
      EXPECT_EQ(other.mean, predictions[0].mean);
      EXPECT_EQ(other.variance, predictions[0].variance);
    }
  }
  set_threads(before);
}

TEST(ContinualGP, ARunIsReproducible) {
  std::vector<Prediction> predictions;
  for (int run = 0; run < 2; ++run) {
    ContinualGPOptions options;
    options.selection = Oips{.rho = 0.9, .max_inducing = 12};
    options.seed = 4;
    ContinualGP gp(options);
    for (std::uint64_t b = 0; b < 3; ++b) {
      const Batch batch = wave(40, b);
      gp.observe(batch.X, batch.y);
    }
    predictions.push_back(gp.predict(grid()));
  }
  EXPECT_EQ(predictions[0].mean, predictions[1].mean);
  EXPECT_EQ(predictions[0].variance, predictions[1].variance);
}

TEST(ContinualGP, GoesOnFromACheckpointAsIfItHadNeverStopped) {
  ContinualGP gp;
  const Batch first = wave(40, 1);
  const Batch second = wave(40, 2, 2.0, 5.0);
  gp.observe(first.X, first.y);
  ContinualGP copy(*gp.checkpoint());
  const BatchReport a = gp.observe(second.X, second.y);
  const BatchReport b = copy.observe(second.X, second.y);
  EXPECT_EQ(a.elbo, b.elbo);
  EXPECT_EQ(a.inducing, b.inducing);
  EXPECT_EQ(gp.predict(grid()).mean, copy.predict(grid()).mean);
}

// --- The report --------------------------------------------------------------------------------

class EveryMethod : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static SelectionMethod method() {
    const std::string& name = GetParam();
    if (name == "vips_anew") return Vips{.delta = 0.05, .pool = Vips::Pool::old_and_batch};
    if (name == "cv") return ConditionalVariance{.eta = 0.1, .max_inducing = 40};
    if (name == "oips") return Oips{.rho = 0.9, .max_inducing = 30};
    if (name == "fixed_greedy") return FixedGreedy{.size = 10};
    if (name == "fixed_gradient") return FixedGradient{.size = 10};
    return Vips{.delta = 0.05};
  }
};
INSTANTIATE_TEST_SUITE_P(Methods, EveryMethod,
                         ::testing::Values("vips", "vips_anew", "cv", "oips", "fixed_greedy",
                                           "fixed_gradient"),
                         [](const auto& test) { return test.param; });

TEST_P(EveryMethod, ReportsAreConsistent) {
  ContinualGPOptions options;
  options.start.kernel = SquaredExponential{1.0, 0.5};
  options.selection = method();
  ContinualGP gp(options);
  Index M = 0;
  Index rows_seen = 0;
  for (Index b = 0; b < 6; ++b) {
    SCOPED_TRACE(b);
    const auto shift = static_cast<double>(b);
    const Batch batch = wave(30 + b, static_cast<std::uint64_t>(b), shift, shift + 2.0);
    const State before = b == 0 ? State::empty(gp.kernel(), gp.noise_variance(), 1)
                                : gp.checkpoint()->predictor->state();
    const BatchReport r = gp.observe(batch.X, batch.y);
    rows_seen += batch.X.rows();
    EXPECT_EQ(r.batch, b + 1);
    EXPECT_EQ(r.rows, batch.X.rows());
    EXPECT_EQ(r.rows_seen, rows_seen);
    EXPECT_EQ(r.inducing_before, M);
    EXPECT_EQ(r.inducing, r.inducing_before + r.inducing_added - r.inducing_removed);
    EXPECT_EQ(r.inducing, gp.size());
    EXPECT_EQ(r.kernel, gp.kernel().to_string());
    EXPECT_EQ(r.noise_variance, gp.noise_variance());
    EXPECT_TRUE(r.refitted);
    EXPECT_TRUE(r.fit.usable());
    EXPECT_GT(r.fit.evaluations, 0);
    EXPECT_GT(r.jitter, 0.0);
    EXPECT_GE(r.seconds_select, 0.0);
    EXPECT_GE(r.seconds_fit, 0.0);
    // The fit never lowers the bound, and the bound at θ_old never exceeds its optimum.
    ASSERT_TRUE(r.lower_bound.has_value());
    ASSERT_TRUE(r.optimum.has_value());
    ASSERT_TRUE(r.gap.has_value());
    EXPECT_GE(r.elbo, *r.lower_bound - 1e-6 * std::max(1.0, std::abs(*r.lower_bound)));
    EXPECT_DOUBLE_EQ(*r.gap, *r.optimum - *r.lower_bound);
    EXPECT_GE(*r.gap, -1e-6);
    const auto best = optimum(before, batch.X, batch.y);
    ASSERT_TRUE(best.has_value());
    EXPECT_LE(relative_error(*r.optimum, *best), 1e-9);
    if (r.threshold && r.stop == SelectionStop::threshold) {
      EXPECT_LE(*r.gap, *r.threshold);
    }
    M = r.inducing;
  }
  EXPECT_EQ(gp.batches(), 6);
  EXPECT_EQ(gp.rows_seen(), rows_seen);
}

TEST(ContinualGP, AtTheCapTheReportSaysWhatItCosts) {
  ContinualGPOptions options = frozen(SquaredExponential{1.0, 0.2}, 0.01);
  options.selection = Vips{.delta = 0.01, .max_inducing = 6};
  ContinualGP gp(options);
  for (std::uint64_t b = 0; b < 3; ++b) {
    const Batch batch = wave(40, b);
    const BatchReport r = gp.observe(batch.X, batch.y);
    EXPECT_EQ(r.stop, SelectionStop::cap);
    EXPECT_EQ(r.inducing, 6);
    EXPECT_GT(r.gap.value(), r.threshold.value());
  }
}

/// A stream that moves on by one unit a batch: the RMSE over the latest unit, on average over the
/// second half of the stream.
double error_where_it_is(const ContinualGPOptions& options, Index cap) {
  ContinualGP gp(options);
  constexpr int kBatches = 60;
  double sum = 0.0;
  for (int b = 0; b < kBatches; ++b) {
    const Batch batch = wave(60, static_cast<std::uint64_t>(b), b, b + 1.0);
    const BatchReport r = gp.observe(batch.X, batch.y);
    EXPECT_LE(r.inducing, cap);
    EXPECT_EQ(r.inducing, r.inducing_before + r.inducing_added - r.inducing_removed);
    if (b < kBatches / 2) continue;
    const Batch test = wave(200, static_cast<std::uint64_t>(1000 + b), b, b + 1.0);
    sum += rmse(test.y, gp.predict(test.X).mean);
  }
  return sum / (kBatches - kBatches / 2);
}

TEST(ContinualGP, AFullModelThatIsPrunedGoesOnLearning) {
  ContinualGPOptions options = frozen(SquaredExponential{1.0, 0.4}, 0.01);
  for (const SelectionMethod& method :
       {SelectionMethod(Vips{.max_inducing = 50}),
        SelectionMethod(ConditionalVariance{.eta = 0.05, .max_inducing = 50}),
        SelectionMethod(Oips{.rho = 0.9, .max_inducing = 50})}) {
    SCOPED_TRACE(method.name());
    options.selection = method;
    options.prune = 0.05;
    EXPECT_LT(error_where_it_is(options, 50), 0.22);  // noise has 0.1, the signal 0.7
  }
  // Without pruning a full model that keeps its points learns nothing where it has none.
  options.selection = Vips{.max_inducing = 50};
  options.prune = 0.0;
  EXPECT_GT(error_where_it_is(options, 50), 0.6);
}

TEST(ContinualGP, NatsLostAreWhatTheBoundLosesWithThePointsThatAreLeft) {
  ContinualGPOptions options = frozen(SquaredExponential{1.0, 0.3}, 0.01);
  options.selection = Vips{.delta = 0.02, .max_inducing = 12};
  options.prune = 0.2;
  ContinualGP gp(options);
  bool pruned = false;
  for (int b = 0; b < 6; ++b) {
    const auto before = gp.predictor();
    const Batch batch = wave(40, static_cast<std::uint64_t>(b), b, b + 1.5);
    const BatchReport r = gp.observe(batch.X, batch.y);
    EXPECT_DOUBLE_EQ(r.lost_nats.value(), *r.gap + r.pruned_nats);
    pruned = pruned || r.pruned_nats > 0.01;
    if (r.stop == SelectionStop::threshold) {
      EXPECT_LE(*r.lost_nats, 1.2 * *r.threshold);
    }
    if (!before) continue;
    OnlineBound bound(before->state(), batch.X, batch.y);
    const State& after = gp.predictor()->state();
    ASSERT_TRUE(bound.factorize(after.kernel, after.noise_variance, after.Z, after.jitter));
    EXPECT_NEAR(*r.optimum - bound.value(), *r.lost_nats, 1e-5 * std::max(1.0, *r.lost_nats));
  }
  EXPECT_TRUE(pruned);
}

TEST(ContinualGP, SmallBatchesKeepToTheCapToo) {
  ContinualGPOptions options = frozen(SquaredExponential{1.0, 0.4}, 0.01);
  options.selection = Vips{.max_inducing = 20};
  options.prune = 0.05;
  options.refit_rows = 60;
  ContinualGP gp(options);
  for (int b = 0; b < 120; ++b) {
    const double place = std::floor(b / 6.0);
    const Batch batch = wave(10, static_cast<std::uint64_t>(b), place, place + 1.0);
    EXPECT_LE(gp.observe(batch.X, batch.y).inducing, 20);
  }
  const Batch test = wave(200, 1000, 19.0, 20.0);
  EXPECT_LT(rmse(test.y, gp.predict(test.X).mean), 0.3);  // after the last refit
}

// --- Prices and compression --------------------------------------------------------------------

ContinualGP after_waves(ContinualGPOptions options, int batches = 4) {
  ContinualGP gp(options);
  for (int b = 0; b < batches; ++b) {
    const Batch batch = wave(50, static_cast<std::uint64_t>(b), b, b + 1.5);
    gp.observe(batch.X, batch.y);
  }
  return gp;
}

TEST(ContinualGP, CompressesForTheNatsItSays) {
  const ContinualGP gp = after_waves(frozen(SquaredExponential{1.0, 0.5}, 0.01));
  const Vector prices = gp.prices();
  const Vector curve = gp.compression_curve();
  ASSERT_EQ(prices.size(), gp.size());
  ASSERT_EQ(curve.size(), gp.size() + 1);
  EXPECT_EQ(prices, ample::prices(gp.predictor()->state()));
  EXPECT_EQ(curve[gp.size()], 0.0);
  EXPECT_EQ(curve[gp.size() - 1], prices.minCoeff());
  for (Index m = 0; m < gp.size(); ++m) EXPECT_GE(curve[m], curve[m + 1]);

  ContinualGP small = gp;
  const Compression to = small.compress_to(7);
  EXPECT_EQ(small.size(), 7);
  EXPECT_EQ(to.inducing, 7);
  EXPECT_EQ(to.inducing_before, gp.size());
  EXPECT_DOUBLE_EQ(to.nats, curve[7]);
  EXPECT_EQ(small.rows_seen(), gp.rows_seen());
  EXPECT_EQ(small.compress_to(7).nats, 0.0);

  ContinualGP within = gp;
  const double budget = 0.5 * (curve[8] + curve[7]);
  const Compression paid = within.compress(budget);
  EXPECT_EQ(within.size(), 8);
  EXPECT_LE(paid.nats, budget);
  // KL of predictions is bounded by the nats: here between marginals.
  const Prediction p = within.predict(grid());
  const Prediction q = gp.predict(grid());
  for (Index i = 0; i < p.mean.size(); ++i) {
    const double ratio = p.variance[i] / q.variance[i];
    const double distance = p.mean[i] - q.mean[i];
    EXPECT_LE(0.5 * (ratio - 1.0 - std::log(ratio) + distance * distance / q.variance[i]),
              paid.nats + 1e-9);
  }

  ContinualGP same = gp;
  EXPECT_EQ(same.compress(0.0).nats, 0.0);
  EXPECT_EQ(same.size(), gp.size());
  // What was removed can be learnt again.
  const Batch again = wave(200, 77, 0.0, 4.5);
  small.observe(again.X, again.y);
  EXPECT_GT(small.size(), 7);
  EXPECT_LT(rmse(again.y, small.predict(again.X).mean), 0.12);
}

TEST(ContinualGP, ARefitDoesNotBringBackWhatWasCompressed) {
  ContinualGPOptions options = frozen(SquaredExponential{1.0, 0.5}, 0.01);
  options.refit_rows = 1000;
  ContinualGP gp = after_waves(options);
  const Index rows = gp.rows_seen();
  EXPECT_GT(gp.checkpoint()->pending.X.rows(), 0);
  gp.compress_to(3);
  EXPECT_EQ(gp.checkpoint()->pending.X.rows(), 0);
  EXPECT_EQ(gp.rows_seen(), rows);
  const Batch one = wave(1, 5, 0.0, 0.1);
  gp.observe(one.X, one.y);
  EXPECT_LE(gp.size(), 4);
}

TEST(ContinualGP, CompressionSaysWhatIsWrong) {
  ContinualGP gp;
  EXPECT_EQ(gp.prices().size(), 0);
  EXPECT_EQ(gp.compression_curve(), Vector::Zero(1));
  EXPECT_EQ(gp.compress_to(5).inducing, 0);
  EXPECT_EQ(message_of([&] { gp.compress(-1.0); }), "compress: nats is -1, but must be 0 or more");
  EXPECT_EQ(message_of([&] { gp.compress(kNan); }), "compress: nats is nan, but must be 0 or more");
  EXPECT_EQ(message_of([&] { gp.compress_to(0); }),
            "compress_to: points is 0, but must be at least 1");
  ContinualGPOptions options;
  options.warm_up = 100;
  ContinualGP waiting(options);
  const Batch few = wave(20, 1);
  waiting.observe(few.X, few.y);
  EXPECT_EQ(message_of([&] { waiting.compress(1.0); }),
            "compress: the model warms up and holds 20 of 100 rows, but must have begun");
}

// --- Refitting ---------------------------------------------------------------------------------

TEST(ContinualGP, FrozenHyperparametersStay) {
  ContinualGP gp(frozen(SquaredExponential{1.5, 0.6}, 0.05));
  const std::string before = gp.kernel().to_string();
  for (std::uint64_t b = 0; b < 3; ++b) {
    const Batch batch = wave(30, b);
    const BatchReport r = gp.observe(batch.X, batch.y);
    EXPECT_FALSE(r.refitted);
    EXPECT_EQ(r.fit.evaluations, 0);
    EXPECT_EQ(r.kernel, before);
    EXPECT_EQ(r.noise_variance, 0.05);
    EXPECT_LE(relative_error(r.elbo, r.lower_bound.value()), 1e-8);
  }
}

TEST(ContinualGP, RefitsEveryKthBatchBeginningWithTheFirst) {
  ContinualGPOptions options;
  options.refit_every = 3;
  ContinualGP gp(options);
  std::vector<bool> refitted;
  for (std::uint64_t b = 0; b < 7; ++b) {
    const std::string before = gp.kernel().to_string();
    const Batch batch = wave(30, b);
    const BatchReport r = gp.observe(batch.X, batch.y);
    refitted.push_back(r.refitted);
    EXPECT_EQ(r.kernel != before, r.refitted);
  }
  EXPECT_EQ(refitted, (std::vector<bool>{true, false, false, true, false, false, true}));
}

TEST(ContinualGP, FixedParametersAreNotFitted) {
  ContinualGPOptions options;
  options.start.kernel = SquaredExponential{Positive(1.0).fixed(), 0.5};
  options.start.noise_variance = Positive(0.02).fixed();
  ContinualGP gp(options);
  const Batch batch = wave(50, 1);
  gp.observe(batch.X, batch.y);
  EXPECT_EQ(gp.noise_variance(), 0.02);
  EXPECT_EQ(gp.kernel().parameters()[0].value, 1.0);
  EXPECT_NE(gp.kernel().parameters()[1].value, 0.5);
}

// --- Scaling -----------------------------------------------------------------------------------

/// The wave in other units.
Batch in_units(Batch batch) {
  batch.X = (batch.X * 40.0).array() + 1000.0;
  batch.y = (batch.y * 300.0).array() - 7000.0;
  return batch;
}

TEST(ContinualGP, StandardizingByTheFirstBatchIsAModelOfTheStandardizedData) {
  const Batch first = in_units(wave(60, 1));
  const Batch second = in_units(wave(40, 2, 1.0, 4.0));
  ContinualGPOptions options;
  ContinualGP plain(options);
  options.scaling = Standardize::first_batch;
  ContinualGP scaled(options);
  const Scaling s = Scaling::standardize(first.X, first.y);
  for (const Batch& batch : {first, second}) {
    const BatchReport a = plain.observe(s.inputs(batch.X), s.targets(batch.y));
    const BatchReport b = scaled.observe(batch.X, batch.y);
    EXPECT_EQ(a.elbo, b.elbo);  // in the model's own units
    EXPECT_EQ(a.inducing, b.inducing);
  }
  const Matrix X = (grid() * 40.0).array() + 1000.0;
  for (const Target target : {Target::function, Target::observation}) {
    const Prediction own = plain.predict(s.inputs(X), target);
    expect_same(scaled.predict(X, target), s.restore(own), 1e-12);
    const JointPrediction joint = scaled.predict_joint(X, target);
    EXPECT_LE(relative_error(joint.mean, s.restore(own).mean), 1e-12);
    EXPECT_LE(relative_error(joint.covariance.diagonal(), s.restore(own).variance), 1e-9);
    const Matrix samples = plain.sample(s.inputs(X), 3, 5, target);
    EXPECT_LE(relative_error(scaled.sample(X, 3, 5, target),
                             ((samples * s.target_scale).array() + s.target_mean).matrix()),
              1e-12);
  }
  EXPECT_LE(relative_error(scaled.predictor()->scaling().input_scale, s.input_scale), 0.0);
  // Control: they are in other units.
  EXPECT_GT((scaled.predict(X).mean - plain.predict(s.inputs(X)).mean).norm(), 1000.0);
}

TEST(ContinualGP, AGivenScalingIsUsedAsItIs) {
  const Batch batch = in_units(wave(60, 3));
  ContinualGPOptions options;
  const Scaling given{Vector::Constant(1, 1000.0), Vector::Constant(1, 40.0), -7000.0, 300.0};
  options.scaling = given;
  ContinualGP gp(options);
  // Before the first batch, too: the prior's mean is the target's.
  EXPECT_EQ(gp.predict(batch.X).mean, Vector::Constant(60, -7000.0));
  gp.observe(batch.X, batch.y);
  ContinualGP plain;
  const Batch own = wave(60, 3);
  plain.observe(own.X, own.y);
  const Matrix X = (grid() * 40.0).array() + 1000.0;
  const Prediction expected = given.restore(plain.predict(grid()));
  expect_same(gp.predict(X), expected, 1e-4);  // the fit sees inputs that differ by roundings
}

TEST(ContinualGP, GradientIsInTheUnitsOfTheData) {
  const Batch batch = in_units(wave(60, 4));
  ContinualGPOptions options;
  options.scaling = Standardize::first_batch;
  ContinualGP gp(options);
  gp.observe(batch.X, batch.y);
  const Matrix X = (Vector::LinSpaced(5, 0.2, 2.9) * 40.0).array() + 1000.0;
  const PredictionGradient g = gp.gradient(X);
  for (Index i = 0; i < 5; ++i) {
    const Vector x = X.row(i);
    const auto mean = [&](const Vector& u) { return gp.predict(u.transpose()).mean[0]; };
    const auto variance = [&](const Vector& u) { return gp.predict(u.transpose()).variance[0]; };
    EXPECT_LE(testing::gradient_error(mean, x, g.mean.row(i)), 1e-5);
    EXPECT_LE(testing::gradient_error(variance, x, g.variance.row(i)), 1e-4);
  }
}

// --- Mistakes ----------------------------------------------------------------------------------

TEST(ContinualGP, AMistakeLeavesTheModelAsItWas) {
  for (const Standardize standardize : {Standardize::none, Standardize::first_batch}) {
    ContinualGPOptions options;
    options.scaling = standardize;
    ContinualGP gp(options);
    const Batch batch = wave(30, 1);
    Batch bad = wave(30, 2);
    bad.X(7, 0) = kNan;
    // Before the first batch.
    EXPECT_EQ(message_of([&] { gp.observe(bad.X, bad.y); }),
              "observe: X holds nan in row 7, column 0, but every value must be finite");
    EXPECT_EQ(gp.batches(), 0);
    gp.observe(batch.X, batch.y);
    const Prediction before = gp.predict(grid());
    const std::string kernel = gp.kernel().to_string();
    bad = wave(30, 2);
    bad.y[3] = std::numeric_limits<double>::infinity();
    EXPECT_EQ(message_of([&] { gp.observe(bad.X, bad.y); }),
              "observe: y holds inf in row 3, column 0, but every value must be finite");
    EXPECT_EQ(message_of([&] { gp.observe(bad.X.topRows(20), batch.y); }),
              "observe: y has 30 rows, but must have 20 (the rows of X)");
    EXPECT_EQ(message_of([&] { gp.observe(Matrix::Zero(30, 2), batch.y); }),
              "observe: X has 2 columns, but must have 1 (as in the first batch)");
    EXPECT_EQ(message_of([&] { gp.observe(Matrix(0, 1), Vector(0)); }), "observe: X has no rows");
    EXPECT_EQ(gp.predict(grid()).mean, before.mean);
    EXPECT_EQ(gp.predict(grid()).variance, before.variance);
    EXPECT_EQ(gp.kernel().to_string(), kernel);
    EXPECT_EQ(gp.batches(), 1);
    EXPECT_EQ(gp.rows_seen(), 30);
    // And it goes on as one that was never disturbed.
    ContinualGP undisturbed(options);
    undisturbed.observe(batch.X, batch.y);
    const Batch next = wave(30, 3);
    EXPECT_EQ(gp.observe(next.X, next.y).elbo, undisturbed.observe(next.X, next.y).elbo);
    EXPECT_EQ(gp.predict(grid()).mean, undisturbed.predict(grid()).mean);
  }
}

TEST(ContinualGP, AMethodThatThrowsLeavesTheModelAsItWas) {
  struct Throws {
    [[nodiscard]] static Selection select(const SelectionProblem& p) {
      if (p.old.size() > 0) throw std::runtime_error("no");
      return Vips{}.select(p);
    }
    [[nodiscard]] static std::string name() { return "throws"; }
  };
  ContinualGPOptions options;
  options.selection = Throws{};
  ContinualGP gp(options);
  const Batch batch = wave(30, 1);
  gp.observe(batch.X, batch.y);
  const Prediction before = gp.predict(grid());
  EXPECT_EQ(message_of<std::runtime_error>([&] { gp.observe(batch.X, batch.y); }), "no");
  EXPECT_EQ(gp.predict(grid()).mean, before.mean);
  EXPECT_EQ(gp.rows_seen(), 30);
}

TEST(ContinualGP, SaysWhatIsWrongWithItsOptions) {
  const auto error = [](auto change) {
    ContinualGPOptions options;
    change(options);
    return message_of([&] { const ContinualGP gp(options); });
  };
  EXPECT_EQ(error([](ContinualGPOptions&) {}), "");
  EXPECT_EQ(error([](ContinualGPOptions& o) { o.refit_every = -1; }),
            "ContinualGP: refit_every is -1, but must be 0 (never) or more");
  EXPECT_EQ(error([](ContinualGPOptions& o) {
              o.scaling = Scaling{Vector::Zero(1), Vector::Zero(1), 0.0, 1.0};
            }),
            "Scaling: an input_scale is 0, but must be positive and finite");
  EXPECT_EQ(error([](ContinualGPOptions& o) { o.selection = Vips{.delta = 0.0}; }),
            "vips: delta is 0, but must be positive and finite");
  EXPECT_EQ(error([](ContinualGPOptions& o) { o.fit.memory = 0; }),
            "ContinualGP: memory is 0, but must be at least 1");
  EXPECT_EQ(error([](ContinualGPOptions& o) { o.fit_tolerance = -1.0; }),
            "ContinualGP: fit_tolerance is -1, but must be 0 or more, and finite");
  EXPECT_NE(error([](ContinualGPOptions& o) { o.start.noise_variance = -1.0; }), "");
}

TEST(ContinualGP, SaysWhatIsWrongWithQueries) {
  ContinualGP gp;
  Matrix hole = Matrix::Zero(2, 1);
  hole(1, 0) = kNan;
  EXPECT_NE(message_of([&] { (void)gp.predict(hole); }), "");  // also before the first batch
  const Batch batch = wave(30, 1);
  gp.observe(batch.X, batch.y);
  EXPECT_EQ(message_of([&] { (void)gp.predict(Matrix::Zero(2, 3)); }),
            "predict: X has 3 columns, but must have 1 (the model's input dimension)");
  EXPECT_EQ(message_of([&] { (void)gp.gradient(hole); }),
            "gradient: X holds nan in row 1, column 0, but every value must be finite");
}

TEST(ContinualGP, SaysWhichKernelDoesNotSuitTheData) {
  ContinualGPOptions options;
  options.start.kernel = SquaredExponential{1.0, {1.0, 2.0}};
  ContinualGP gp(options);
  const Batch batch = wave(10, 1);
  EXPECT_NE(message_of([&] { gp.observe(batch.X, batch.y); }), "");
  EXPECT_EQ(gp.batches(), 0);
}

// --- Hard streams ------------------------------------------------------------------------------

struct HardStream {
  std::string name;
  ContinualGPOptions options;
  std::vector<Batch> batches;
};

std::vector<HardStream> hard_streams() {
  std::vector<HardStream> all;
  const auto add = [&](std::string name, const std::function<void(Batch&, Index)>& change,
                       const std::function<void(ContinualGPOptions&)>& configure) {
    HardStream s{std::move(name), {}, {}};
    configure(s.options);
    for (Index b = 0; b < 4; ++b) {
      Batch batch = wave(30, static_cast<std::uint64_t>(b));
      change(batch, b);
      s.batches.push_back(std::move(batch));
    }
    all.push_back(std::move(s));
  };
  const auto nothing = [](ContinualGPOptions&) {};
  const auto kernel = [](double variance, double lengthscale, double noise_variance) {
    return [=](ContinualGPOptions& o) {
      o.start.kernel = SquaredExponential{variance, lengthscale};
      o.start.noise_variance.value = noise_variance;
    };
  };
  const auto same = [](Batch&, Index) {};
  const auto standardized = [](ContinualGPOptions& o) { o.scaling = Standardize::first_batch; };
  const auto constant = [](Batch& b, Index) { b.y.setConstant(3.7); };
  add("constant_target", constant, nothing);
  add("constant_target_standardized", constant, standardized);
  const auto zero = [](Batch& b, Index) { b.y.setZero(); };
  add("zero_target", zero, nothing);
  add(
      "duplicated_rows",
      [](Batch& b, Index) {
        b.X.bottomRows(15) = b.X.topRows(15);
        b.y.tail(15) = b.y.head(15);
      },
      nothing);
  add(
      "one_point_again_and_again",
      [](Batch& b, Index) {
        b.X.setConstant(1.25);
        b.y.setConstant(0.5);
      },
      nothing);
  const auto one_point = [](Batch& b, Index) { b.X.setConstant(1.25); };
  add("one_point_with_noise", one_point, nothing);
  add(
      "one_data_point",
      [](Batch& b, Index) {
        b.X = Matrix(b.X.topRows(1));
        b.y = Vector(b.y.head(1));
      },
      nothing);
  add(
      "no_noise", [](Batch& b, Index) { b.y = b.X.col(0).array().sin(); },
      kernel(2000.0, 1.0, 1e-6));
  add(
      "time_stamps", [](Batch& b, Index) { b.X = (b.X * 100.0).array() + 1.7e9; },
      kernel(1.0, 30.0, 0.1));
  add(
      "time_stamps_standardized", [](Batch& b, Index) { b.X = (b.X * 100.0).array() + 1.7e9; },
      standardized);
  add(
      "time_stamps_growing",
      [](Batch& b, Index i) {
        b.X = (b.X * 3600.0).array() + 1.7e9 + 1e5 * static_cast<double>(i);
      },
      standardized);
  add("long_lengthscale", same, kernel(1.0, 1e4, 0.1));
  add("short_lengthscale", same, kernel(1.0, 1e-4, 0.1));
  add("huge_variance", same, kernel(1e8, 1.0, 1e-6));
  add("tiny_variance", same, kernel(1e-6, 1.0, 1e8));
  const auto huge = [](Batch& b, Index) { b.y *= 1e8; };
  add("huge_target", huge, nothing);
  const auto offset = [](Batch& b, Index) { b.y.array() += 1e9; };
  add("huge_target_offset", offset, nothing);
  const auto tiny = [](Batch& b, Index) { b.y *= 1e-8; };
  add("tiny_target", tiny, nothing);
  const auto outlier = [](Batch& b, Index i) { b.X(0, 0) = 1e6 * static_cast<double>(i); };
  add("outlier", outlier, nothing);
  return all;
}

class HardStreams : public ::testing::TestWithParam<HardStream> {};
INSTANTIATE_TEST_SUITE_P(Streams, HardStreams, ::testing::ValuesIn(hard_streams()),
                         [](const auto& test) { return test.param.name; });

TEST_P(HardStreams, PredictionsStayFinite) {
  for (const Index refit_every : {1, 0}) {
    for (const SelectionMethod& method :
         {SelectionMethod(Vips{}), SelectionMethod(Vips{.pool = Vips::Pool::old_and_batch}),
          SelectionMethod(ConditionalVariance{.max_inducing = 40}),
          SelectionMethod(Oips{.max_inducing = 40}), SelectionMethod(FixedGreedy{.size = 20}),
          SelectionMethod(FixedGradient{.size = 8})}) {
      SCOPED_TRACE(::testing::Message() << method.name() << ", refit_every " << refit_every);
      ContinualGPOptions options = GetParam().options;
      options.refit_every = refit_every;
      options.selection = method;
      ContinualGP gp(options);
      for (const Batch& batch : GetParam().batches) {
        BatchReport r;
        ASSERT_NO_THROW(r = gp.observe(batch.X, batch.y));
        EXPECT_TRUE(std::isfinite(r.elbo));
        const Matrix queries = stacked(batch.X, Matrix((batch.X.array() * 1.1 + 0.3).matrix()));
        const Prediction p = gp.predict(queries);
        ASSERT_TRUE(p.mean.allFinite());
        ASSERT_TRUE(p.variance.allFinite());
        ASSERT_GE(p.variance.minCoeff(), 0.0);
        ASSERT_TRUE(gp.gradient(queries).variance.allFinite());
      }
    }
  }
}

}  // namespace
}  // namespace ample
