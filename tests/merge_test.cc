// Models that learnt apart, as one: what merging must not change, and what it refuses.
#include "ample/merge.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ample/bound.h"
#include "ample/exact_gp.h"
#include "ample/metrics.h"
#include "ample/snapshot.h"
#include "ample/threads.h"
#include "support/check_gradient.h"
#include "support/naive.h"
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

/// Every row of a batch becomes an inducing point, once.
struct EveryRow {
  [[nodiscard]] static Selection select(const SelectionProblem& p) {
    Selection s;
    s.Z = stacked(p.old.Z, p.X);
    s.added = p.X.rows();
    return s;
  }
  [[nodiscard]] static std::string name() { return "every-row"; }
};

ContinualGPOptions held(Kernel kernel, double noise_variance = 0.05) {
  ContinualGPOptions options;
  options.start = {.kernel = std::move(kernel), .noise_variance = noise_variance};
  options.refit_every = 0;
  return options;
}

/// A model of some batches of 60 rows in two dimensions.
ContinualGP learnt(const ContinualGPOptions& options, std::uint64_t seed, int batches = 2) {
  ContinualGP gp(options);
  for (int b = 0; b < batches; ++b) {
    const Batch batch = random_batch(60, 2, 100 * seed + static_cast<std::uint64_t>(b));
    gp.observe(batch.X, batch.y);
  }
  return gp;
}

const Matrix& queries() {
  static const Matrix X = Random(9).normal(80, 2);
  return X;
}

double difference(const ContinualGP& a, const ContinualGP& b) {
  const Prediction p = a.predict(queries());
  const Prediction q = b.predict(queries());
  return std::max(relative_error(p.mean, q.mean), relative_error(p.variance, q.variance));
}

ContinualGP merged(const std::vector<ContinualGP>& models, const MergeOptions& options) {
  return merge(models, options).model;
}

const MergeOptions kNoPruning{.nats = 0.0};

// --- Laws --------------------------------------------------------------------------------------

class MergeKernels : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static Kernel kernel() {
    return naive::make_twin(GetParam(), 2, naive::Layout::isotropic).kernel;
  }
};
INSTANTIATE_TEST_SUITE_P(Merge, MergeKernels, ::testing::ValuesIn(naive::kernel_names()),
                         [](const auto& test) { return test.param; });

TEST_P(MergeKernels, OrderAndBracketsChangeOnlyDigits) {
  const ContinualGPOptions options = held(kernel());
  const ContinualGP a = learnt(options, 1);
  const ContinualGP b = learnt(options, 2, 3);
  const ContinualGP c = learnt(options, 3);
  const ContinualGP all = merged({a, b, c}, kNoPruning);
  EXPECT_LE(difference(merged({c, a, b}, kNoPruning), all), 1e-9);
  EXPECT_LE(difference(merged({b, c, a}, kNoPruning), all), 1e-9);
  EXPECT_LE(difference(merged({merged({a, b}, kNoPruning), c}, kNoPruning), all), 1e-9);
  EXPECT_LE(difference(merged({a, merged({b, c}, kNoPruning)}, kNoPruning), all), 1e-9);
  EXPECT_GT(difference(merged({a, b}, kNoPruning), all), 1e-4);  // control: each of them counts
}

TEST_P(MergeKernels, ShardsOfWhichEveryRowIsAPointAreTheExactModel) {
  ContinualGPOptions options = held(kernel());
  options.selection = EveryRow{};
  std::vector<ContinualGP> shards;
  Batch all{Matrix(0, 2), Vector(0)};
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const Batch batch = random_batch(15, 2, seed);
    shards.emplace_back(options);
    shards.back().observe(batch.X, batch.y);
    all = {stacked(all.X, batch.X), stacked(all.y, batch.y)};
  }
  ExactGP exact(options.start);
  exact.condition(all.X, all.y);
  const Prediction expected = exact.predict(queries());
  const Merged done = merge(shards, kNoPruning);
  const Prediction p = done.model.predict(queries());
  // What jitter, which separates points from the function, adds to the noise of the rows.
  const double tolerance = 45.0 * done.report.jitter / options.start.noise();
  EXPECT_LE(relative_error(p.mean, expected.mean), tolerance);
  EXPECT_LE(relative_error(p.variance, expected.variance), tolerance);
  EXPECT_EQ(done.report.inducing, 45);
  EXPECT_GT(relative_error(shards[0].predict(queries()).mean, expected.mean), 1e-3);  // control
}

/// y = sin 3x on one shard's stretch of [0, 4].
ContinualGP stretch(const ContinualGPOptions& options, int shard, Index rows = 100) {
  Random random(static_cast<std::uint64_t>(shard) + 7);
  const Matrix X = random.uniform(rows, 1, shard, shard + 1.0);
  ContinualGP gp(options);
  gp.observe(X, (3.0 * X.col(0)).array().sin().matrix() + 0.1 * random.normal(rows));
  return gp;
}

TEST(Merge, AtOneThetaTheUnionLosesNothing) {
  const ContinualGPOptions options = held(SquaredExponential{1.0, 0.7});
  const std::vector<ContinualGP> shards{learnt(options, 1), learnt(options, 2)};
  const Merged done = merge(shards, kNoPruning);
  EXPECT_EQ(done.report.inducing, shards[0].size() + shards[1].size());
  EXPECT_EQ(done.report.inducing_before, done.report.inducing);
  EXPECT_EQ(done.report.carried_nats, 0.0);
  EXPECT_EQ(done.report.pruned_nats, 0.0);
  EXPECT_FALSE(done.report.fitted);

  // No further point could say more of what the two remember, and none of theirs is superfluous.
  const State& one = done.model.predictor()->state();
  std::vector<const State*> pasts;
  for (const ContinualGP& shard : shards) pasts.push_back(&shard.predictor()->state());
  const Matrix no_rows(0, 2);
  OnlineBound bound(pasts, no_rows, Vector());
  const auto at = [&](const Matrix& Z) {
    EXPECT_TRUE(bound.factorize(one.kernel, one.noise_variance, Z));
    return bound.value();
  };
  EXPECT_NEAR(at(one.Z), done.report.bound, 1e-6);
  EXPECT_NEAR(at(stacked(one.Z, Random(5).normal(40, 2))), done.report.bound, 1e-6);
  EXPECT_LT(at(one.Z.bottomRows(one.size() - 1)), done.report.bound - 1e-5);  // control
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

/// Points a little over a lengthscale apart, so that their prior is far from singular.
Matrix lattice() {
  Matrix Z(25, 2);
  for (Index i = 0; i < 25; ++i) {
    const auto [row, column] = std::div(i, Index{5});
    Z(i, 0) = static_cast<double>(column) - 2.0;
    Z(i, 1) = static_cast<double>(row) - 2.0;
  }
  return Z;
}

ContinualGP with_points(const Matrix& Z, const std::vector<std::uint64_t>& batches) {
  ContinualGPOptions options = held(SquaredExponential{1.0, 0.7});
  options.selection = Given{Z};
  ContinualGP gp(options);
  for (const std::uint64_t seed : batches) {
    const Batch batch = random_batch(100, 2, seed);
    gp.observe(batch.X, batch.y);
  }
  return gp;
}

TEST(Merge, ShardsOfTheSamePointsAreTheModelThatSawAllRows) {
  const ContinualGP one = with_points(lattice(), {1, 2, 3});
  const ContinualGP both =
      merged({with_points(lattice(), {1, 3}), with_points(lattice(), {2})}, kNoPruning);
  EXPECT_EQ(both.size(), 25);
  EXPECT_LE(difference(both, one), 1e-9);
  EXPECT_GT(difference(with_points(lattice(), {1, 3}), one), 1e-3);  // control
  EXPECT_NEAR(both.checkpoint()->targets.mean, one.checkpoint()->targets.mean, 1e-14);
  EXPECT_NEAR(both.checkpoint()->targets.m2, one.checkpoint()->targets.m2, 1e-10);
}

TEST(Merge, PointsThatAreNearlyEqualBreakNothing) {
  const Matrix Z = lattice();
  const Merged same = merge(std::vector{with_points(Z, {1}), with_points(Z, {2})}, kNoPruning);
  EXPECT_EQ(same.report.inducing_before, 50);
  EXPECT_EQ(same.report.inducing, 25);  // once
  for (const double distance : {1e-15, 1e-12, 1e-9, 1e-6, 1e-4}) {
    const std::vector<ContinualGP> shards{with_points(Z, {1}),
                                          with_points(Z.array() + distance, {2})};
    const Merged nearly = merge(shards, kNoPruning);
    EXPECT_LE(nearly.report.jitter, 1.01e-8) << distance;  // no more than ever
    EXPECT_LE(difference(nearly.model, same.model), 1e-5 + 20.0 * distance) << distance;
    // And the copies go for next to nothing.
    const Merged pruned = merge(shards, {.nats = 0.0, .max_inducing = 25});
    EXPECT_LE(pruned.report.pruned_nats, 1e-3) << distance;
    EXPECT_LE(difference(pruned.model, same.model), 1e-3) << distance;
  }
}

TEST(Merge, AnEmptyModelChangesNothing) {
  const ContinualGP gp = learnt(held(SquaredExponential{1.0, 0.7}), 1);
  const ContinualGP empty(held(Matern32{}));
  for (const auto& models :
       {std::vector{gp, empty}, std::vector{empty, gp, empty}, std::vector{gp}}) {
    EXPECT_EQ(to_bytes(merge(models).model), to_bytes(gp));
  }
  const Merged nothing = merge(std::vector{empty, empty});
  EXPECT_EQ(nothing.model.rows_seen(), 0);
  EXPECT_EQ(nothing.report.inducing, 0);
}

TEST(Merge, PrunesForTheNatsItIsAllowed) {
  const ContinualGPOptions options = held(SquaredExponential{1.0, 0.7});
  const std::vector<ContinualGP> shards{learnt(options, 1), learnt(options, 2), learnt(options, 3)};
  const ContinualGP all = merged(shards, kNoPruning);
  const Vector curve = all.compression_curve();

  const MergeReport usual = merge(shards).report;
  EXPECT_DOUBLE_EQ(usual.allowed_nats, 1e-3 * 240.0);
  EXPECT_LE(usual.pruned_nats, usual.allowed_nats);
  EXPECT_LT(usual.inducing, all.size());
  EXPECT_EQ(usual.inducing_union, all.size());

  const Merged small = merge(shards, {.nats = 0.0, .max_inducing = 25});
  EXPECT_EQ(small.model.size(), 25);
  EXPECT_NEAR(small.report.pruned_nats, curve[25], 1e-6 * curve[25]);
  // A cap of the method is kept too.
  ContinualGPOptions capped = options;
  capped.selection = Vips{.max_inducing = 40};
  EXPECT_EQ(merged({learnt(capped, 1), learnt(capped, 2)}, kNoPruning).size(), 40);
}

TEST(Merge, ALargeUnionIsTakenInPieces) {
  const ContinualGPOptions options = held(SquaredExponential{1.0, 0.7});
  std::vector<ContinualGP> shards;
  for (std::uint64_t i = 0; i < 6; ++i) shards.push_back(learnt(options, i));
  const ContinualGP whole = merged(shards, kNoPruning);
  Index steps = 0;
  const Merged pieces =
      merge(shards, {.largest_union = 100, .progress = [&](Index done, Index all) {
                       ++steps;
                       EXPECT_LE(done, all);
                     }});
  EXPECT_GE(steps, 2);
  EXPECT_EQ(pieces.report.rows, 720);
  EXPECT_LE(pieces.report.pruned_nats, pieces.report.allowed_nats);
  EXPECT_LT(pieces.report.inducing_union, whole.size());
  EXPECT_LE(pieces.model.size(), pieces.report.inducing_union);
  // Within the nats paid of the whole: KL between marginals is at most that.
  const Prediction p = pieces.model.predict(queries());
  const Prediction q = whole.predict(queries());
  for (Index i = 0; i < p.mean.size(); ++i) {
    const double ratio = p.variance[i] / q.variance[i];
    const double distance = p.mean[i] - q.mean[i];
    EXPECT_LE(0.5 * (ratio - 1.0 - std::log(ratio) + distance * distance / q.variance[i]),
              pieces.report.pruned_nats);
  }
  // Where no point may go there are no pieces.
  EXPECT_EQ(merge(shards, {.nats = 0.0, .largest_union = 100}).report.inducing, whole.size());
}

TEST(Merge, AFitRaisesTheBoundOfAllModels) {
  const std::vector<ContinualGP> shards{learnt(held(SquaredExponential{1.0, 1.1}, 0.3), 1),
                                        learnt(held(SquaredExponential{1.0, 0.9}, 0.2), 2)};
  const Merged before = merge(shards, kNoPruning);
  const Merged after = merge(shards, {.fit = true, .nats = 0.0});
  ASSERT_TRUE(after.report.fitted);
  EXPECT_GT(after.report.bound, before.report.bound + 1.0);
  EXPECT_NEAR(-after.report.fit.initial_value, before.report.bound, 1e-6);
  EXPECT_NE(before.report.carried_nats, 0.0);

  // No step from there raises (21).
  std::vector<const State*> pasts;
  for (const ContinualGP& shard : shards) pasts.push_back(&shard.predictor()->state());
  const State& fitted = after.model.predictor()->state();
  const Matrix no_rows(0, 2);
  OnlineBound bound(pasts, no_rows, Vector());
  const auto at = [&](double factor, double noise_factor) {
    Vector values = naive::theta_of(fitted.kernel);
    values[1] *= factor;
    EXPECT_TRUE(bound.factorize(fitted.kernel.with_values(values),
                                fitted.noise_variance * noise_factor, fitted.Z));
    return bound.value();
  };
  EXPECT_NEAR(at(1.0, 1.0), after.report.bound, 1e-6);
  for (const double factor : {0.8, 1.25}) EXPECT_LT(at(factor, 1.0), after.report.bound);
}

TEST(Merge, ThetaIsTheLargestModelsUnlessItIsGiven) {
  const ContinualGP small = learnt(held(SquaredExponential{1.0, 0.5}, 0.02), 1);
  const ContinualGP large = learnt(held(SquaredExponential{2.0, 0.9}, 0.07), 2, 4);
  const Merged usual = merge(std::vector{small, large}, kNoPruning);
  EXPECT_EQ(usual.report.largest, 1);
  EXPECT_EQ(usual.report.kernel, large.kernel().to_string());
  EXPECT_EQ(usual.report.noise_variance, 0.07);
  const Merged given =
      merge(std::vector{small, large}, {.kernel = Matern52{1.5, 0.8}, .noise_variance = 0.04});
  EXPECT_EQ(given.model.kernel(), Kernel(Matern52{1.5, 0.8}));
  EXPECT_EQ(given.model.noise_variance(), 0.04);
  EXPECT_EQ(naive::theta_of(given.model.kernel())[1], 0.8);
}

TEST(Merge, ResultsDoNotDependOnThreads) {
  const ContinualGPOptions options = held(Matern32{1.0, 0.7});
  const std::vector<ContinualGP> shards{learnt(options, 1), learnt(options, 2)};
  const int before = threads();
  set_threads(1);
  const ContinualGP one = merged(shards, {.fit = true});
  set_threads(4);
  const ContinualGP four = merged(shards, {.fit = true});
  set_threads(before);
  EXPECT_EQ(one.size(), four.size());
  EXPECT_LE(difference(one, four), 1e-6);
}

// --- The rest of a model -----------------------------------------------------------------------

TEST(Merge, TheMergedModelGoesOnLearningAndIsSaved) {
  ContinualGPOptions options = held(SquaredExponential{1.0, 0.5}, 0.01);
  options.refit_every = 1;
  const std::vector<ContinualGP> shards{stretch(options, 0), stretch(options, 1),
                                        stretch(options, 2)};
  ContinualGP gp = merged(shards, {.kernel = SquaredExponential{1.0, 0.5}});
  EXPECT_EQ(gp.rows_seen(), 300);
  EXPECT_EQ(gp.batches(), 3);
  const Batch more{stretch(options, 3).inducing_inputs(), Vector()};
  const Vector y = (3.0 * more.X.col(0)).array().sin();
  ContinualGP again = from_bytes(to_bytes(gp));
  gp.observe(more.X, y);
  again.observe(more.X, y);
  EXPECT_EQ(to_bytes(gp), to_bytes(again));
  EXPECT_EQ(gp.rows_seen(), 300 + more.X.rows());
  const Matrix X = Vector::LinSpaced(200, 0.0, 4.0);
  EXPECT_LT(rmse((3.0 * X.col(0)).array().sin(), gp.predict(X).mean), 0.1);
  EXPECT_GT(rmse((3.0 * X.col(0)).array().sin(), shards[0].predict(X).mean), 0.4);  // control
}

TEST(Merge, ModelsThatHoldTheirRowsGiveThem) {
  ContinualGPOptions options = ContinualGPOptions::out_of_the_box();
  const auto model_of = [&](std::uint64_t seed, Index rows, int batches = 1) {
    ContinualGP gp(options);
    for (int b = 0; b < batches; ++b) {
      const Batch batch = random_batch(rows, 2, 50 * seed + static_cast<std::uint64_t>(b));
      gp.observe(batch.X, batch.y);
    }
    return gp;
  };
  const ContinualGP waiting = model_of(1, 30);
  const ContinualGP young = model_of(2, 300);
  const ContinualGP settled = model_of(3, 600, 2);
  ASSERT_TRUE(waiting.checkpoint()->warming_up());
  ASSERT_FALSE(settled.checkpoint()->pending.X.rows() > 0);

  // Different scalings are no reason to refuse: the rows are in the units of the data.
  const Merged done = merge(std::vector{waiting, settled, young});
  EXPECT_EQ(done.report.rows, 1530);
  EXPECT_EQ(done.report.rows_learnt, 330);
  EXPECT_EQ(done.model.rows_seen(), 1530);
  EXPECT_EQ(done.model.batches(), 4);
  EXPECT_EQ(done.report.largest, 1);
  EXPECT_EQ(done.model.kernel(), settled.kernel());
  EXPECT_EQ(done.model.noise_variance(), settled.noise_variance());
  const auto after = done.model.checkpoint();
  EXPECT_EQ(after->reservoir.size(), 1530);
  EXPECT_EQ(after->reservoir.seen, 1530);
  EXPECT_EQ(after->options.refit_every, options.refit_every);
  EXPECT_EQ(after->options.forget, options.forget);

  // All of them young: one stream.
  const Merged begun = merge(std::vector{waiting, young});
  EXPECT_EQ(begun.model.rows_seen(), 330);
  EXPECT_FALSE(begun.model.checkpoint()->warming_up());
  const Merged still = merge(std::vector{waiting, model_of(4, 20)});
  EXPECT_TRUE(still.model.checkpoint()->warming_up());
  EXPECT_EQ(still.model.rows_seen(), 50);
  ContinualGP goes_on = still.model;
  const Batch more = random_batch(100, 2, 5);
  goes_on.observe(more.X, more.y);
  EXPECT_EQ(goes_on.rows_seen(), 150);
}

TEST(Merge, RowsThatWaitForARefitStayLearnt) {
  ContinualGPOptions options = held(SquaredExponential{1.0, 0.7});
  options.refit_rows = 100;
  const std::vector<ContinualGP> shards{learnt(options, 1), learnt(options, 2)};
  ASSERT_GT(shards[0].checkpoint()->pending.X.rows(), 0);
  const ContinualGP gp = merged(shards, kNoPruning);
  EXPECT_EQ(gp.rows_seen(), 240);
  EXPECT_EQ(gp.checkpoint()->pending.X.rows(), 0);
  EXPECT_EQ(gp.size(), shards[0].size() + shards[1].size());
}

TEST(Merge, AReservoirOfBothHoldsEachRowWithTheSameProbability) {
  // Rows 0 … 29 were offered to one, 30 … 99 to the other; each keeps 20.
  constexpr Index kFirst = 30;
  constexpr Index kAll = 100;
  constexpr Index kKept = 20;
  constexpr int kTrials = 20000;
  Vector times = Vector::Zero(kAll);
  for (int trial = 0; trial < kTrials; ++trial) {
    const auto seed = static_cast<std::uint64_t>(trial);
    const Vector numbers = Vector::LinSpaced(kAll, 0.0, kAll - 1.0);
    Reservoir a;
    Reservoir b;
    a.offer(numbers.head(kFirst), numbers.head(kFirst), kKept, seed);
    b.offer(numbers.tail(kAll - kFirst), numbers.tail(kAll - kFirst), kKept, seed + kTrials);
    const Reservoir both = sample_of_both(a, b, kKept, seed);
    ASSERT_EQ(both.size(), kKept);
    ASSERT_EQ(both.seen, kAll);
    ASSERT_EQ(both.X.col(0), both.y);
    for (const double row : both.y) times[static_cast<Index>(row)] += 1.0;
  }
  const double expected = kTrials * static_cast<double>(kKept) / kAll;
  const double deviation = std::sqrt(expected * (1.0 - static_cast<double>(kKept) / kAll));
  EXPECT_LE((times.array() - expected).abs().maxCoeff(), 5.0 * deviation);
  // Nothing is drawn twice, and what fits is kept whole.
  Reservoir a;
  Reservoir b;
  a.offer(Vector::Ones(3), Vector::Ones(3), 10, 0);
  b.offer(Vector::Zero(4), Vector::Zero(4), 10, 0);
  EXPECT_EQ(sample_of_both(a, b, 10, 0).y.sum(), 3.0);
  EXPECT_EQ(sample_of_both(a, b, 10, 0).size(), 7);
  EXPECT_EQ(sample_of_both(a, Reservoir{}, 10, 0).size(), 3);
}

TEST(Merge, AModelLikeAPilotHasItsScalingAndNothingElse) {
  ContinualGPOptions options;
  options.scaling = Standardize::first_batch;
  ContinualGP pilot(options);
  const Batch batch = random_batch(100, 2, 1);
  pilot.observe(3.0 * batch.X, 5.0 * batch.y);
  const ContinualGP fresh = empty_like(pilot, true);
  EXPECT_EQ(fresh.rows_seen(), 0);
  EXPECT_EQ(fresh.kernel(), pilot.kernel());
  EXPECT_EQ(fresh.noise_variance(), pilot.noise_variance());

  std::vector<ContinualGP> shards(2, fresh);
  std::vector<ContinualGP> apart(2, ContinualGP(options));
  for (std::uint64_t i = 0; i < 2; ++i) {
    const Batch rows = random_batch(80, 2, 10 + i);
    shards[i].observe(3.0 * rows.X, 5.0 * rows.y);
    apart[i].observe(3.0 * rows.X, 5.0 * rows.y);
    EXPECT_EQ(shards[i].kernel(), pilot.kernel());
  }
  EXPECT_EQ(merge(shards).report.carried_nats, 0.0);
  EXPECT_NE(message_of([&] { static_cast<void>(merge(apart)); }), "");  // control: own scalings
  ContinualGP moves = empty_like(pilot);
  moves.observe(3.0 * batch.X, 5.0 * batch.y);
  EXPECT_NE(moves.kernel(), pilot.kernel());
  EXPECT_EQ(message_of([&] { static_cast<void>(empty_like(ContinualGP(options))); }),
            "empty_like: the pilot has seen 0 rows, but must have begun, which takes 1");
}

TEST(Merge, ShardsHoldWhatThePilotFittedAndTheResultGoesOnLikeIt) {
  ContinualGPOptions options;
  options.forget = Forgetting::adaptive();
  ContinualGP pilot(options);
  const Batch batch = random_batch(100, 2, 1);
  pilot.observe(batch.X, batch.y);
  std::vector<ContinualGP> shards(2, empty_like(pilot, true));
  for (std::uint64_t i = 0; i < 2; ++i) {
    const Batch rows = random_batch(80, 2, 10 + i);
    shards[i].observe(rows.X, rows.y);
    // What contradicts all before is no reason to forget it: rows of a shard have no order.
    EXPECT_EQ(shards[i].observe(rows.X, Vector::Constant(80, 9.0)).past_weight, 1.0);
  }
  const Batch more = random_batch(80, 2, 20);
  ContinualGP held = merge(shards).model;
  EXPECT_FALSE(held.observe(more.X, more.y).refitted);  // control
  MergeOptions like;
  like.like = options;
  ContinualGP merged = merge(shards, like).model;
  EXPECT_EQ(merged.rows_seen(), 320);
  EXPECT_EQ(merged.kernel(), pilot.kernel());
  EXPECT_TRUE(merged.observe(more.X, more.y).refitted);
}

TEST(Merge, AKernelThatIsGivenIsNotLookedForAgain) {
  std::vector<ContinualGP> shards(2);
  for (std::uint64_t i = 0; i < 2; ++i) {
    const Batch rows = random_batch(80, 2, 10 + i);
    shards[i].observe(rows.X, rows.y);
  }
  MergeOptions options;
  options.like = ContinualGPOptions::out_of_the_box();
  EXPECT_TRUE(merge(shards, options).model.checkpoint()->options.find_kernel);  // control
  options.kernel = SquaredExponential{.lengthscale = 2.0};
  EXPECT_FALSE(merge(shards, options).model.checkpoint()->options.find_kernel);
}

// --- Refusals ----------------------------------------------------------------------------------

TEST(Merge, SaysWhichModelsDifferAndInWhat) {
  const auto refusal = [](const std::vector<ContinualGP>& models,
                          const MergeOptions& options = {}) {
    return message_of([&] { static_cast<void>(merge(models, options)); });
  };
  const ContinualGP gp = learnt(held(SquaredExponential{1.0, 0.7}), 1, 3);
  EXPECT_EQ(refusal({}), "merge: no models are given, but there must be one or more");
  EXPECT_EQ(refusal({gp, gp}), "merge: model 2 is model 1 again; its rows would count twice");
  EXPECT_EQ(refusal({gp, stretch(held(SquaredExponential{}), 0)}, {.names = {"a", "b"}}),
            "merge: b has 1 inputs, but must have 2 as a");

  const ContinualGP matern = learnt(held(Matern52{1.0, 0.7}), 2);
  EXPECT_EQ(refusal({matern, gp}),
            "merge: model 1 has the kernel matern52(variance, lengthscale), but must have "
            "se(variance, lengthscale) as model 2; or give a kernel for all");
  EXPECT_EQ(refusal({matern, gp}, {.kernel = SquaredExponential{}}), "");
  const ContinualGP ard = learnt(held(SquaredExponential{1.0, {0.7, 0.8}}), 2);
  EXPECT_EQ(refusal({gp, ard}),
            "merge: the kernel of model 2 has 3 parameters, but must have 2 as that of model 1; or "
            "give a kernel for all");
  // Values, bounds and what is fixed are no part of the form; a factor, an order and inputs are.
  const Kernel other = SquaredExponential{Positive(2.0).within(0.1, 9.0), Positive(0.5).fixed()};
  EXPECT_EQ(refusal({gp, learnt(held(other), 2)}), "");
  EXPECT_NE(refusal({gp, learnt(held(2.0 * Kernel(SquaredExponential{})), 2)}), "");
  EXPECT_NE(refusal({gp, learnt(held(SquaredExponential{1.0, 0.7, {0}}), 2)}), "");
  EXPECT_NE(
      refusal({learnt(held(ArcCosine{.order = 1}), 1), learnt(held(ArcCosine{.order = 2}), 2)}),
      "");

  ContinualGPOptions scaled = held(SquaredExponential{1.0, 0.7});
  scaled.scaling = Scaling{Vector::Zero(2), Vector{{1.0, 2.0}}, 0.0, 1.0};
  EXPECT_EQ(
      refusal({gp, learnt(scaled, 2)}),
      "merge: model 2 scales input 1 by mean 0 and deviation 2, but must by 0 and 1 as model 1; "
      "begin all of them like one pilot");
  scaled.scaling = Scaling{Vector::Zero(2), Vector::Ones(2), 3.0, 1.0};
  EXPECT_EQ(
      refusal({gp, learnt(scaled, 2)}),
      "merge: model 2 scales the target by mean 3 and deviation 1, but must by 0 and 1 as model "
      "1; begin all of them like one pilot");
  EXPECT_EQ(refusal({gp}, {.nats = -1.0}), "merge: nats is -1, but must be 0 or more");
  EXPECT_EQ(refusal({gp}, {.nats = kNan}), "merge: nats is nan, but must be 0 or more");
  EXPECT_EQ(refusal({gp}, {.max_inducing = 0}), "merge: max_inducing is 0, but must be at least 1");
  EXPECT_NE(refusal({gp}, {.noise_variance = -1.0}), "");
}

}  // namespace
}  // namespace ample
