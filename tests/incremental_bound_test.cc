// The bound that grows point by point against the bound factorised from scratch at every step: to
// 1e-9, for every kernel, first batch and later ones, with the old points kept or chosen anew.
//
// Errors are relative to the larger of the bound and its term yᵀy/(2σ²). The bound is a difference
// of terms of that size and may be zero.
#include "incremental_bound.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "ample/bound.h"
#include "greedy_variance.h"
#include "protocol.h"
#include "support/check_gradient.h"
#include "support/data.h"
#include "support/every_kernel.h"
#include "support/naive.h"
#include "support/random.h"
#include "support/streams.h"

namespace ample {
namespace {

using testing::absorbed;
using testing::random_batch;
using testing::relative_error;
using testing::stacked;
using testing::state_after;

constexpr double kTolerance = 1e-9;

/// L̂ from scratch.
double direct(const State& old, const Batch& batch, const Matrix& Z, double jitter) {
  OnlineBound bound(old, batch.X, batch.y);
  EXPECT_TRUE(bound.factorize(old.kernel, old.noise_variance, Z, jitter));
  return bound.value();
}

/// As selection chooses it.
double jitter_for(const State& old, const Batch& batch) {
  return old.size() > 0 ? old.jitter : 1e-8 * old.kernel.diagonal(batch.X).mean();
}

struct Compared {
  double worst = 0.0;       // of the incremental value against the direct one
  double control = 0.0;     // the same against the direct one for targets off by 1e-6
  double worst_fall = 0.0;  // adding a point never lowers the bound
  Index steps = 0;
};

double bound_error(double value, double expected, const State& old, const Batch& batch) {
  const double data_term = 0.5 * batch.y.squaredNorm() / old.noise_variance;
  return std::abs(value - expected) / std::max({1.0, std::abs(expected), data_term});
}

void compare(double incremental, const State& old, const Batch& batch, const Matrix& Z,
             double jitter, double& before, Compared& all) {
  const double expected = direct(old, batch, Z, jitter);
  all.worst = std::max(all.worst, bound_error(incremental, expected, old, batch));
  if (all.steps == 0) {
    const Batch off{batch.X, (1.0 + 1e-6) * batch.y};
    all.control = bound_error(incremental, direct(old, off, Z, jitter), old, batch);
  } else {
    all.worst_fall = std::max(all.worst_fall, before - expected);
  }
  before = expected;
  ++all.steps;
}

/// The old points are kept, points of the batch are added.
Compared keep_old(const State& old, const Batch& batch, Index steps) {
  const double jitter = jitter_for(old, batch);
  GreedyVariance greedy(old.kernel, batch.X, jitter);
  if (old.size() > 0) greedy.start_from(old.Z, old.L);
  auto bound = IncrementalBound::from_old(old, batch.y, greedy.Vt());
  EXPECT_TRUE(bound.has_value());
  Compared all;
  double before = 0.0;
  for (Index step = 0; step <= steps; ++step) {
    const Matrix Z = stacked(old.Z, batch.X(greedy.taken(), Eigen::all));
    EXPECT_EQ(bound->size(), Z.rows());
    if (Z.rows() > 0) {
      compare(bound->value(greedy.residual().sum()), old, batch, Z, jitter, before, all);
    }
    if (!greedy.take_next()) break;
    bound->append(greedy.Vt(), Vector());
  }
  return all;
}

/// Old points and points of the batch are chosen from nothing.
Compared choose_anew(const State& old, const Batch& batch, Index steps) {
  const double jitter = jitter_for(old, batch);
  const Matrix pool = stacked(old.Z, batch.X);
  GreedyVariance greedy(old.kernel, pool, jitter, old.size());
  IncrementalBound bound(old, batch.y);
  Compared all;
  double before = 0.0;
  for (Index step = 0; step < steps; ++step) {
    if (!greedy.take_next()) break;
    bound.append(greedy.Vt().bottomRows(batch.X.rows()),
                 greedy.Vt().col(bound.size()).head(old.size()));
    const Matrix Z = pool(greedy.taken(), Eigen::all);
    compare(bound.value(greedy.residual().tail(batch.X.rows()).sum()), old, batch, Z, jitter,
            before, all);
  }
  return all;
}

void expect_equal(const Compared& c, Index at_least) {
  EXPECT_LE(c.worst, kTolerance);
  EXPECT_LE(c.worst_fall, 1e-6);
  EXPECT_GE(c.steps, at_least);
  EXPECT_GT(c.control, 10.0 * kTolerance);
}

TEST_P(EveryKernel, EqualsTheDirectBoundInTheFirstBatch) {
  for (const Index D : {1, 3, 19}) {
    SCOPED_TRACE(D);
    const Batch batch = random_batch(40, D, 1);
    const State nothing = State::empty(kernel(D), 0.05, D);
    expect_equal(keep_old(nothing, batch, 40), 2);
    expect_equal(choose_anew(nothing, batch, 40), 2);
  }
}

TEST_P(EveryKernel, EqualsTheDirectBoundInLaterBatches) {
  for (const Index D : {1, 3, 19}) {
    SCOPED_TRACE(D);
    State old = state_after(kernel(D), 0.05, random_batch(30, D, 2), 8);
    const Batch second = random_batch(30, D, 3);
    expect_equal(keep_old(old, second, 15), 2);
    expect_equal(choose_anew(old, second, 20), 2);
    old = absorbed(old, second, stacked(old.Z, second.X.topRows(4)));
    const Batch third = random_batch(25, D, 4);
    expect_equal(keep_old(old, third, 25), 2);
    expect_equal(choose_anew(old, third, 37), 2);
  }
}

TEST_P(EveryKernel, EqualsTheDirectBoundOnRealData) {
  if (!testing::has_data()) GTEST_SKIP() << testing::no_data();
  const experiments::Stream data = experiments::load_uci(testing::data_dir(), "concrete", 0);
  State old = State::empty(kernel(8), 0.1, 8);
  for (Index b = 0; b < 3; ++b) {
    SCOPED_TRACE(b);
    const Batch batch = data.train(b, 0);
    expect_equal(keep_old(old, batch, 25), 2);
    expect_equal(choose_anew(old, batch, 25), 2);
    old = absorbed(old, batch, stacked(old.Z, batch.X.topRows(12)));
  }
}

TEST(IncrementalBound, EqualsTheDirectBoundAtTheHyperparametersOfAFittedModel) {
  if (!testing::has_data()) GTEST_SKIP() << testing::no_data();
  const experiments::Stream data = experiments::load_uci(testing::data_dir(), "concrete", 0);
  State old = State::empty(SquaredExponential{10.0, 3.0}, 0.07, 8);
  for (Index b = 0; b < 5; ++b) {
    const Batch batch = data.train(b, 0);
    expect_equal(keep_old(old, batch, 41), 10);
    expect_equal(choose_anew(old, batch, 60), 10);
    old = absorbed(old, batch, stacked(old.Z, batch.X.topRows(20)));
  }
}

TEST(IncrementalBound, OldPointsAloneAreTheBoundWithoutNewOnes) {
  const Batch second = random_batch(30, 2, 6);
  const State old = state_after(Matern32{1.0, 0.7}, 0.1, random_batch(30, 2, 5), 12);
  GreedyVariance greedy(old.kernel, second.X, old.jitter);
  greedy.start_from(old.Z, old.L);
  const auto bound = IncrementalBound::from_old(old, second.y, greedy.Vt());
  ASSERT_TRUE(bound.has_value());
  const double expected = direct(old, second, old.Z, old.jitter);
  EXPECT_LE(relative_error(bound->value(greedy.residual().sum()), expected), kTolerance);
  // Control: the residual variance is part of the bound.
  EXPECT_GT(relative_error(bound->value(0.0), expected), 1e-3);
}

TEST(IncrementalBound, ChoosingEveryPointAnewIsKeepingThemAll) {
  const Batch second = random_batch(10, 2, 8);
  const State old = state_after(Matern32{1.0, 0.7}, 0.1, random_batch(20, 2, 7), 6);
  GreedyVariance kept(old.kernel, second.X, old.jitter);
  kept.start_from(old.Z, old.L);
  auto a = IncrementalBound::from_old(old, second.y, kept.Vt());
  ASSERT_TRUE(a.has_value());
  while (kept.take_next()) a->append(kept.Vt(), Vector());
  const Matrix pool = stacked(old.Z, second.X);
  GreedyVariance chosen(old.kernel, pool, old.jitter, 6);
  IncrementalBound b(old, second.y);
  while (chosen.take_next()) {
    b.append(chosen.Vt().bottomRows(10), chosen.Vt().col(b.size()).head(6));
  }
  ASSERT_EQ(a->size(), 16);
  ASSERT_EQ(b.size(), 16);
  EXPECT_LE(
      relative_error(b.value(chosen.residual().tail(10).sum()), a->value(kept.residual().sum())),
      kTolerance);
}

}  // namespace
}  // namespace ample
