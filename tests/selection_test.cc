// The selection methods: what each promises, computed from scratch.
#include "ample/selection.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ample/bound.h"
#include "ample/continual_gp.h"
#include "ample/optimum.h"
#include "support/check_gradient.h"
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
using testing::stacked;
using testing::state_after;

/// A model that has seen one batch, and the next batch.
struct Problem {
  Twin twin = naive::twin(Matern32{1.2, 0.8});
  State old;
  Batch batch;
  TargetStatistics targets;

  explicit Problem(std::uint64_t seed = 1, Index M = 8, Index N = 25, Index D = 2)
      : old(State::empty(twin.kernel, 0.1, D)), batch(random_batch(N, D, seed + 100)) {
    if (M > 0) {
      const Batch first = random_batch(30, D, seed);
      old = state_after(twin.kernel, 0.1, first, M);
      targets.observe(first.y);
    }
    targets.observe(batch.y);
  }
  [[nodiscard]] SelectionProblem view(std::uint64_t seed = 0) const {
    return {old, batch.X, batch.y, targets, seed};
  }
};

bool has_row(const Matrix& M, const Matrix& row) {
  for (Index i = 0; i < M.rows(); ++i) {
    if (M.row(i) == row) return true;
  }
  return false;
}

/// Every row of Z is an old one or one of the batch, none twice, and the counts say so.
void expect_consistent(const Selection& s, const Problem& p) {
  Index from_old = 0;
  for (Index i = 0; i < s.Z.rows(); ++i) {
    const bool is_old = has_row(p.old.Z, s.Z.row(i));
    EXPECT_TRUE(is_old || has_row(p.batch.X, s.Z.row(i)));
    from_old += is_old ? 1 : 0;
    for (Index j = 0; j < i; ++j) EXPECT_NE(s.Z.row(i), s.Z.row(j));
  }
  EXPECT_EQ(s.removed, p.old.size() - from_old);
  EXPECT_EQ(s.added, s.Z.rows() - from_old);
}

// --- Vips: the guarantee -----------------------------------------------------------------------

struct Gaussian {
  QuadMatrix mean;
  QuadMatrix covariance;
};

double kl(const Gaussian& q, const Gaussian& p) {
  const naive::Inverse P = invert(p.covariance);
  const QuadMatrix d = p.mean - q.mean;
  return static_cast<double>(0.5 *
                             ((P.matrix * q.covariance).trace() + naive::quadratic(d, P.matrix) -
                              static_cast<double>(q.mean.rows()) + P.log_determinant -
                              invert(q.covariance).log_determinant));
}

QuadMatrix rows(const QuadMatrix& A, const std::vector<Index>& which) {
  QuadMatrix B(static_cast<Index>(which.size()), A.cols());
  for (Index i = 0; i < B.rows(); ++i) {
    for (Index j = 0; j < B.cols(); ++j) B(i, j) = A(which[static_cast<std::size_t>(i)], j);
  }
  return B;
}

/// The values u that a Gaussian over u[which] = N(m, S) gives when all else follows the prior:
/// mean K_·b K_bb⁻¹ m, covariance K − K_·b K_bb⁻¹ (K_bb − S) K_bb⁻¹ K_b·.
Gaussian extended(const QuadMatrix& K, const std::vector<Index>& which, const QuadMatrix& m,
                  const QuadMatrix& S) {
  const QuadMatrix K_b = rows(K, which);  // K_b·
  const QuadMatrix K_bb = rows(K_b.transpose(), which);
  const QuadMatrix P = K_b.transpose() * invert(K_bb).matrix;
  return {P * m, K - P * (K_bb - S) * P.transpose()};
}

std::vector<Index> range(Index first, Index count) {
  std::vector<Index> all;
  all.reserve(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i) all.push_back(first + i);
  return all;
}

QuadMatrix mean_of(const State& s) {
  const QuadMatrix D = QuadMatrix::identity(s.size()) + QuadMatrix(s.A);
  return QuadMatrix(s.L) * invert(D).matrix * QuadMatrix(s.c);
}
QuadMatrix covariance_of(const State& s) {
  const QuadMatrix D = QuadMatrix::identity(s.size()) + QuadMatrix(s.A);
  return QuadMatrix(s.L) * invert(D).matrix * QuadMatrix(s.L).transpose();
}

/// KL[q_n(f) ‖ q*_n(f)] over u = [Z_old; X; the points of Z that are new], all variables with the
/// jitter they have in the model. q_n is what the chosen Z remembers; q*_n is the old model given
/// the whole batch, by Gaussian conditioning.
double divergence(const Problem& p, const Matrix& Z) {
  const Index M_a = p.old.size();
  const Index N = p.batch.X.rows();
  const Index M_new = Z.rows() - M_a;
  EXPECT_EQ(Z.topRows(M_a), p.old.Z);
  const Matrix points = stacked(stacked(p.old.Z, p.batch.X), Z.bottomRows(M_new));
  const double jitter = M_a > 0 ? p.old.jitter : 1e-8 * p.twin.kernel.diagonal(p.batch.X).mean();
  QuadMatrix K = naive::matrix(p.twin, naive::theta_of(p.twin.kernel), points, points);
  for (Index i = 0; i < K.rows(); ++i) {
    if (i < M_a || i >= M_a + N) K(i, i) += jitter;
  }
  const std::vector<Index> a = range(0, M_a);
  const std::vector<Index> f = range(M_a, N);
  std::vector<Index> b = a;
  for (const Index i : range(M_a + N, M_new)) b.push_back(i);

  const State now = absorbed(p.old, p.batch, Z, jitter);
  const Gaussian q = extended(K, b, mean_of(now), covariance_of(now));

  const Gaussian before = extended(K, a, mean_of(p.old), covariance_of(p.old));
  const QuadMatrix C_f = rows(before.covariance, f);
  const QuadMatrix C_ff = rows(C_f.transpose(), f);
  const QuadMatrix gain =
      C_f.transpose() * invert(C_ff + QuadMatrix::identity(N, p.old.noise_variance)).matrix;
  const Gaussian optimal{before.mean + gain * (QuadMatrix(p.batch.y) - rows(before.mean, f)),
                         before.covariance - gain * C_f};
  return kl(q, optimal);
}

TEST(Vips, TheGapIsTheDivergenceFromTheOptimalPosteriorAndWithinTheThreshold) {
  for (const Index M : {0, 8}) {
    for (const double delta : {0.5, 0.1, 0.02}) {
      for (const std::uint64_t seed : {1U, 2U, 3U}) {
        SCOPED_TRACE(::testing::Message() << M << " " << delta << " " << seed);
        const Problem p(seed, M);
        const Selection s = Vips{.delta = delta}.select(p.view());
        ASSERT_EQ(s.stop, SelectionStop::threshold);
        const double gap = s.optimum.value() - s.lower_bound.value();
        const double divergence_of_chosen = divergence(p, s.Z);
        EXPECT_NEAR(divergence_of_chosen, gap, 1e-6 * std::max(1.0, std::abs(*s.optimum)));
        EXPECT_LE(divergence_of_chosen, s.threshold.value() * (1.0 + 1e-6));
        EXPECT_GE(divergence_of_chosen, 0.0);
        // Control: with one point fewer the threshold is not met, or the selection was too large.
        if (s.added > (M == 0 ? 1 : 0)) {
          const double fewer = divergence(p, s.Z.topRows(s.Z.rows() - 1));
          EXPECT_GT(fewer, *s.threshold);
          EXPECT_GT(std::abs(fewer - gap), 1e-3);
        }
        expect_consistent(s, p);
      }
    }
  }
}

TEST(Vips, TheReportIsMadeOfTheDirectValues) {
  const Problem p;
  const Selection s = Vips{.delta = 0.1}.select(p.view());
  EXPECT_LE(relative_error(s.optimum.value(), optimum(p.old, p.batch.X, p.batch.y).value()), 1e-12);
  OnlineBound bound(p.old, p.batch.X, p.batch.y);
  ASSERT_TRUE(bound.factorize(p.old.kernel, p.old.noise_variance, s.Z, p.old.jitter));
  EXPECT_LE(relative_error(s.lower_bound.value(), bound.value()), 1e-9);
  EXPECT_EQ(s.noise_bound.value(), p.targets.log_density(p.batch.y));
  EXPECT_DOUBLE_EQ(s.threshold.value(), 0.1 * std::abs(*s.optimum - *s.noise_bound));
}

TEST(Vips, AgainstTheUpperBoundTheGuaranteeHoldsAndNotFewerPointsAreTaken) {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    for (const Index M : {0, 8}) {
      for (const double delta : {0.5, 0.1}) {
        SCOPED_TRACE(::testing::Message() << M << " " << delta << " " << seed);
        const Problem p(seed, M);
        const Selection exact =
            Vips{.delta = delta, .reference = Vips::Reference::optimum}.select(p.view());
        const Selection upper =
            Vips{.delta = delta, .reference = Vips::Reference::upper_bound}.select(p.view());
        EXPECT_GE(upper.Z.rows(), exact.Z.rows());
        EXPECT_GE(*upper.optimum, *exact.optimum - 1e-9);
        if (upper.stop == SelectionStop::threshold) {
          EXPECT_LE(divergence(p, upper.Z), upper.threshold.value() * (1.0 + 1e-6));
        }
        expect_consistent(upper, p);
      }
    }
  }
}

TEST(Vips, OnLargeBatchesTheCheaperReferenceIsStillOne) {
  // Beyond the size up to which L* is always computed.
  const Problem p(5, 8, 2300, 1);
  const Selection chosen = Vips{.delta = 0.05}.select(p.view());
  const Selection exact =
      Vips{.delta = 0.05, .reference = Vips::Reference::optimum}.select(p.view());
  EXPECT_GE(*chosen.optimum, *exact.optimum - 1e-6);
  EXPECT_GE(chosen.Z.rows(), exact.Z.rows());
  EXPECT_LE(*exact.optimum - *chosen.lower_bound, *chosen.threshold);
  EXPECT_LT(chosen.Z.rows(), 2300);
}

TEST(Vips, ASmallerDeltaDoesNotTakeFewerPoints) {
  for (const Vips::Pool pool : {Vips::Pool::batch, Vips::Pool::old_and_batch}) {
    const Problem p(2, 8, 40);
    Index before = 0;
    for (const double delta : {2.0, 0.5, 0.2, 0.1, 0.05, 0.01, 1e-3}) {
      const Selection s = Vips{.delta = delta, .pool = pool}.select(p.view());
      EXPECT_GE(s.Z.rows(), before) << delta;
      before = s.Z.rows();
    }
    EXPECT_GT(before, 20);  // control: it does take more
  }
}

TEST(Vips, AtTheCapTheReportSaysWhatItCosts) {
  for (const Vips::Pool pool : {Vips::Pool::batch, Vips::Pool::old_and_batch}) {
    const Problem p(3, 8, 40);
    const Selection free = Vips{.delta = 0.01, .pool = pool}.select(p.view());
    ASSERT_GT(free.Z.rows(), 15);
    const Selection s = Vips{.delta = 0.01, .pool = pool, .max_inducing = 12}.select(p.view());
    EXPECT_EQ(s.stop, SelectionStop::cap);
    EXPECT_EQ(s.Z.rows(), 12);
    EXPECT_GT(s.optimum.value() - s.lower_bound.value(), s.threshold.value());
    EXPECT_LE(free.optimum.value() - free.lower_bound.value(), free.threshold.value());
    if (pool == Vips::Pool::batch) {
      EXPECT_NEAR(divergence(p, s.Z), *s.optimum - *s.lower_bound, 1e-6);
    }
  }
}

TEST(Vips, ChoosingAnewDropsOldPointsThatNoLongerHelp) {
  // The past was remembered with far more points than it needs.
  const Kernel k = SquaredExponential{1.0, 3.0};
  const Batch first = random_batch(60, 1, 6);
  Problem p;
  p.twin = naive::twin(SquaredExponential{1.0, 3.0});
  p.old = state_after(k, 0.1, first, 40);
  p.batch = random_batch(30, 1, 7);
  p.targets = {};
  p.targets.observe(first.y);
  p.targets.observe(p.batch.y);
  const Selection kept = Vips{.delta = 0.05}.select(p.view());
  EXPECT_GE(kept.Z.rows(), 40);
  EXPECT_EQ(kept.removed, 0);
  const Selection anew = Vips{.delta = 0.05, .pool = Vips::Pool::old_and_batch}.select(p.view());
  EXPECT_GT(anew.removed, 20);
  EXPECT_LT(anew.Z.rows(), 20);
  EXPECT_LE(*anew.optimum - *anew.lower_bound, *anew.threshold);
  EXPECT_LE(relative_error(*anew.optimum, *kept.optimum), 1e-12);
  expect_consistent(anew, p);
  // What it says is what it costs.
  OnlineBound bound(p.old, p.batch.X, p.batch.y);
  ASSERT_TRUE(bound.factorize(k, 0.1, anew.Z, p.old.jitter));
  EXPECT_LE(relative_error(*anew.lower_bound, bound.value()), 1e-9);
}

TEST(Vips, WithoutAnOptimumItTurnsToTheUpperBound) {
  // Against this variance the noise is less than a rounding: K_ff + σ² I has no Cholesky factor.
  Problem p(8, 0, 100, 1);
  p.twin = naive::twin(SquaredExponential{1e8, 5.0});
  p.old = State::empty(p.twin.kernel, 1e-10, 1);
  ASSERT_FALSE(optimum(p.old, p.batch.X, p.batch.y).has_value());
  const Selection s = Vips{.delta = 0.05, .max_inducing = 100}.select(p.view());
  EXPECT_GT(s.Z.rows(), 1);
  if (s.stop == SelectionStop::threshold) {
    ASSERT_TRUE(s.optimum.has_value());
    EXPECT_LE(*s.optimum - s.lower_bound.value(), s.threshold.value());
  }
}

TEST(Vips, TakesOnePointAtLeast) {
  // Targets that the noise model explains at least as well.
  Problem p(9, 0, 20);
  p.batch.y.setConstant(2.0);
  p.targets = {};
  p.targets.observe(p.batch.y);
  EXPECT_GE(Vips{.delta = 1e6}.select(p.view()).Z.rows(), 1);
}

TEST(Vips, EveryPointOfTheBatchIsTakenWhenTheThresholdIsOutOfReach) {
  const Problem p(10, 0, 12);
  const Selection s = Vips{.delta = 1e-15}.select(p.view());
  EXPECT_EQ(s.stop, SelectionStop::pool_used_up);
  EXPECT_EQ(s.Z.rows(), 12);
}

/// A batch almost without noise under a prior of large variance: the jitter is as large as σ².
struct NoiselessProblem {
  static constexpr double kNoise = 1e-6;
  Kernel kernel = SquaredExponential{1e2, 0.3};
  State old;
  Batch batch;
  TargetStatistics targets;

  explicit NoiselessProblem(Index M)
      : old(State::empty(kernel, kNoise, 1)), batch(wave(2.0 * Random(1).normal(120, 1))) {
    if (M > 0) {
      // Close enough to each other to predict between them, not so close as to lose digits.
      const Batch first = wave(Vector::LinSpaced(M, -2.0, 2.0));
      old = state_after(kernel, kNoise, first, M);
      targets.observe(first.y);
    }
    targets.observe(batch.y);
  }
  static Batch wave(const Matrix& X) {
    const Vector noise = std::sqrt(kNoise) * Random(2).normal(X.rows(), 1);
    return {X, (6.0 * X.col(0).array()).sin() + noise.array()};
  }
  [[nodiscard]] SelectionProblem view() const { return {old, batch.X, batch.y, targets, 0}; }
  [[nodiscard]] double lower_bound(const Matrix& Z, double jitter) const {
    OnlineBound bound(old, batch.X, batch.y);
    EXPECT_TRUE(bound.factorize(kernel, kNoise, Z, jitter));
    return bound.value();
  }
};

TEST(Vips, WhatJitterTakesIsNotPaidForInPoints) {
  for (const Index M : {0, 40}) {
    const NoiselessProblem p(M);
    const double jitter = M > 0 ? p.old.jitter : NoiselessProblem::kNoise;
    const double best = optimum(p.old, p.batch.X, p.batch.y).value();
    const double reach = p.lower_bound(stacked(p.old.Z, p.batch.X), jitter);
    const double noise = noise_bound(p.view());
    const double J = best - reach;
    ASSERT_GT(J, 5.0);
    Index before = p.batch.X.rows() + 1;
    for (const double share : {0.2, 0.5, 0.95, 1.05, 1.5, 2.0, 2.9, 3.1, 3.5, 4.1, 6.0}) {
      const double alpha = share * J;
      const double delta = alpha / std::abs(best - noise);
      const double allowed = std::max(alpha, std::min(alpha + J, 4.0 * J));
      for (const Vips::Pool pool : {Vips::Pool::batch, Vips::Pool::old_and_batch}) {
        const Selection s = Vips{.delta = delta, .pool = pool}.select(p.view());
        const double slack = 1e-4;  // rounding: values of 1e2 from terms of 1e8
        // In between α may be met before jitter is suspected.
        if (share <= 2.0 || share > 4.0) {
          EXPECT_EQ(s.stop, share < 4.0 ? SelectionStop::jitter : SelectionStop::threshold);
        }
        EXPECT_NEAR(*s.threshold, alpha, slack);
        EXPECT_NEAR(*s.lower_bound, p.lower_bound(s.Z, jitter), slack);
        EXPECT_LE(best - *s.lower_bound, allowed + slack);
        EXPECT_LT(s.added, p.batch.X.rows());
        if (pool == Vips::Pool::batch && share <= 2.0) {
          // No more than it takes; the points stand in the order they were taken in.
          EXPECT_GT(best - p.lower_bound(s.Z.topRows(s.Z.rows() - 1), jitter), allowed) << share;
          EXPECT_LE(s.added, before) << share;  // a larger δ never takes more
          before = s.added;
        }
      }
    }

    const double delta = 0.5 * J / std::abs(best - noise);
    const Selection capped = Vips{.delta = delta, .max_inducing = M + 10}.select(p.view());
    EXPECT_EQ(capped.stop, SelectionStop::cap);
    EXPECT_EQ(capped.Z.rows(), M + 10);
  }
}

// --- Conditional variance ----------------------------------------------------------------------

double trace_left(const Problem& p, const Matrix& Z) {
  const Matrix pool = stacked(p.old.Z, p.batch.X);
  const Vector theta = naive::theta_of(p.twin.kernel);
  const double jitter = p.old.size() > 0 ? p.old.jitter : 1e-8 * 1.2;
  const QuadMatrix K = naive::matrix(p.twin, theta, pool, pool);
  const QuadMatrix K_pz = naive::matrix(p.twin, theta, pool, Z);
  const QuadMatrix K_zz =
      QuadMatrix(naive::matrix(p.twin, theta, Z, Z)) + QuadMatrix::identity(Z.rows(), jitter);
  return static_cast<double>((K - K_pz * invert(K_zz).matrix * K_pz.transpose()).trace());
}

TEST(ConditionalVariance, StopsAtTheFirstSizeWithATraceBelowEta) {
  for (const Index M : {0, 8}) {
    for (const double eta : {10.0, 2.0, 0.5}) {
      const Problem p(11, M, 30);
      const Selection s = ConditionalVariance{.eta = eta}.select(p.view());
      ASSERT_EQ(s.stop, SelectionStop::threshold);
      EXPECT_LE(trace_left(p, s.Z), eta + 1e-6);
      expect_consistent(s, p);
      // Control: one point fewer, chosen in the same way, leaves more.
      const Selection fewer = FixedGreedy{.size = s.Z.rows() - 1}.select(p.view());
      EXPECT_GT(trace_left(p, fewer.Z), eta);
    }
  }
}

TEST(ConditionalVariance, KeepsToItsCap) {
  const Problem p(11, 8, 30);
  const Selection s = ConditionalVariance{.eta = 1e-3, .max_inducing = 7}.select(p.view());
  EXPECT_EQ(s.stop, SelectionStop::cap);
  EXPECT_EQ(s.Z.rows(), 7);
}

TEST(Selection, AModelThatIsPrunedAfterwardsMayTakeMoreThanTheCap) {
  const Problem p(11, 16, 30);
  SelectionProblem problem = p.view();
  for (const SelectionMethod& method :
       {SelectionMethod(Vips{.delta = 1e-4, .max_inducing = 16}),
        SelectionMethod(ConditionalVariance{.eta = 1e-4, .max_inducing = 16}),
        SelectionMethod(Oips{.rho = 0.999, .max_inducing = 16})}) {
    SCOPED_TRACE(method.name());
    problem.pruned_after = true;
    const Selection more = method.select(problem);
    EXPECT_GT(more.Z.rows(), 16);
    EXPECT_LE(more.Z.rows(), 24);
    EXPECT_EQ(more.most, 16);
    EXPECT_EQ(more.stop, SelectionStop::cap);
    problem.pruned_after = false;  // control
    const Selection capped = method.select(problem);
    EXPECT_LE(capped.Z.rows(), 16);
    EXPECT_EQ(capped.most, 16);
  }
  EXPECT_EQ(Vips{}.select(problem).most, kNoCap);
  problem.pruned_after = true;
  EXPECT_EQ(problem.limit(3), 11);
  EXPECT_EQ(problem.limit(160), 180);    // an eighth
  EXPECT_EQ(problem.limit(1000), 1030);  // no more than the batch has rows
  EXPECT_EQ(problem.limit(kNoCap), kNoCap);
}

// --- OIPS --------------------------------------------------------------------------------------

/// The rule as the paper has it, from given inducing inputs.
Matrix oips_loop(const Twin& without_constant, const Matrix& start, const Matrix& X, double rho) {
  const Vector theta = naive::theta_of(without_constant.kernel);
  Matrix Z = start;
  for (Index n = 0; n < X.rows(); ++n) {
    const Matrix x = X.row(n);
    const double largest =
        Z.rows() > 0 ? naive::matrix(without_constant, theta, x, Z).maxCoeff() : 0.0;
    const double variance = naive::matrix(without_constant, theta, x, x)(0, 0);
    if (largest < rho * variance) Z = stacked(Z, x);
  }
  return Z;
}

TEST(Oips, AddsEveryPointThatIsNotLikeOneBefore) {
  for (const bool constant : {false, true}) {
    for (const double rho : {0.3, 0.8, 0.93, 0.99}) {
      Problem p(12, 0, 60);
      const Twin plain = naive::twin(Matern32{1.2, 0.8});
      p.twin = constant ? naive::twin(Constant{50.0}) + plain : plain;
      p.old = state_after(p.twin.kernel, 0.1, random_batch(30, 2, 13), 6);
      const Selection s = Oips{.rho = rho}.select(p.view());
      EXPECT_EQ(s.Z, oips_loop(plain, p.old.Z, p.batch.X, rho)) << constant << " " << rho;
      EXPECT_EQ(s.stop, SelectionStop::threshold);
      expect_consistent(s, p);
      // Control: at another threshold it is another selection.
      EXPECT_NE(s.Z.rows(), oips_loop(plain, p.old.Z, p.batch.X, 0.6 * rho).rows());
      // Nor is it that of the kernel with its constant, to which all points are alike.
      if (constant) {
        EXPECT_LT(oips_loop(p.twin, p.old.Z, p.batch.X, rho).rows(), s.Z.rows());
      }
    }
  }
}

TEST(Oips, TheFirstBatchStartsFromRandomPoints) {
  const Problem p(14, 0, 30);
  // From one random point: the result is that of the rule from one of the 30.
  const Selection s = Oips{.rho = 0.7, .k_min = 1}.select(p.view(3));
  bool found = false;
  for (Index i = 0; i < 30; ++i) {
    const Matrix Z = oips_loop(p.twin, p.batch.X.row(i), p.batch.X, 0.7);
    bool same = Z.rows() == s.Z.rows();
    for (Index j = 0; same && j < Z.rows(); ++j) same = has_row(s.Z, Z.row(j));
    found = found || same;
  }
  EXPECT_TRUE(found);
  // With at least ten to start from there are at least ten; with fewer data, all of them.
  EXPECT_GE(Oips{.rho = 0.01}.select(p.view()).Z.rows(), 10);
  const Problem few(14, 0, 4);
  EXPECT_EQ(Oips{.rho = 0.01}.select(few.view()).Z.rows(), 4);
  expect_consistent(s, p);
}

TEST(Oips, TheSameSeedGivesTheSameSelection) {
  const Problem p(15, 0, 60);
  const Oips method{.rho = 0.8, .max_inducing = 20};
  const Matrix Z = method.select(p.view(7)).Z;
  EXPECT_EQ(method.select(p.view(7)).Z, Z);
  const auto other = method.select(p.view(8)).Z;
  EXPECT_TRUE(other.rows() != Z.rows() || other != Z);
}

TEST(Oips, NeverExceedsItsCap) {
  struct Case {
    const char* name;
    Kernel kernel;
  };
  // Points may be alike, not at all alike, or of variance zero.
  const std::vector<Case> cases{{"matern32", Matern32{1.2, 0.8}},
                                {"with constant", Constant{50.0} + Kernel(Matern32{1.2, 0.8})},
                                {"unlike", SquaredExponential{1.0, 1e-4}},
                                {"constant", Constant{1.0}},
                                {"linear", Linear{1.0}}};
  for (const Case& c : cases) {
    for (const Index cap : {1, 2, 12, 25}) {
      for (const Index M : {0, 12}) {
        SCOPED_TRACE(::testing::Message() << c.name << " " << cap << " " << M);
        Problem p(16, 0, 60);
        p.batch.X.row(17).setZero();
        if (M > 0) p.old = state_after(c.kernel, 0.1, random_batch(30, 2, 17), M);
        if (M == 0) p.old = State::empty(c.kernel, 0.1, 2);
        const Selection s = Oips{.rho = 0.95, .max_inducing = cap}.select(p.view());
        EXPECT_LE(s.Z.rows(), std::max(cap, s.added == 0 ? M : 0));
        EXPECT_GE(s.Z.rows(), 1);
        expect_consistent(s, p);
      }
    }
  }
}

// --- Fixed size --------------------------------------------------------------------------------

TEST(FixedGreedy, KeepsItsSize) {
  const Problem p(18, 8, 30);
  for (const Index size : {1, 5, 8, 20}) {
    const Selection s = FixedGreedy{.size = size}.select(p.view());
    EXPECT_EQ(s.Z.rows(), size);
    EXPECT_EQ(s.stop, SelectionStop::size);
    EXPECT_FALSE(s.moving);
    expect_consistent(s, p);
  }
  const Selection all = FixedGreedy{.size = 100}.select(p.view());
  EXPECT_EQ(all.Z.rows(), 38);
  EXPECT_EQ(all.stop, SelectionStop::pool_used_up);
}

TEST(FixedGradient, StartsFromTheGreedyPointsAndLetsThemMove) {
  const Problem p(19, 8, 30);
  const Selection greedy = FixedGreedy{.size = 10}.select(p.view());
  const Selection s = FixedGradient{.size = 10}.select(p.view());
  EXPECT_EQ(s.Z, greedy.Z);
  EXPECT_TRUE(s.moving);
}

TEST(FixedGradient, EndsWithABoundNoLowerThanFixedGreedy) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    ContinualGPOptions options;
    options.start.kernel = SquaredExponential{1.0, 0.7};
    options.selection = FixedGreedy{.size = 6};
    ContinualGP greedy(options);
    options.selection = FixedGradient{.size = 6};
    ContinualGP gradient(options);
    const Batch first = random_batch(60, 1, seed);
    const double a = greedy.observe(first.X, first.y).elbo;
    const double b = gradient.observe(first.X, first.y).elbo;
    EXPECT_GT(b, a);
    EXPECT_EQ(gradient.size(), 6);
    const Batch second = random_batch(60, 1, seed + 10);
    const BatchReport r = gradient.observe(second.X, second.y);
    EXPECT_EQ(r.inducing, 6);
    EXPECT_GE(r.elbo, r.lower_bound.value() - 1e-6);
  }
}

// --- Methods as values -------------------------------------------------------------------------

TEST(MakeSelection, MakesTheSameMethodAgainFromItsSettings) {
  const std::vector<SelectionMethod> methods{Vips{.delta = 0.07,
                                                  .pool = Vips::Pool::old_and_batch,
                                                  .reference = Vips::Reference::upper_bound,
                                                  .max_inducing = 77},
                                             Vips{.choose = Vips::Choose::gain},
                                             Vips{},
                                             ConditionalVariance{.eta = 0.3, .max_inducing = 50},
                                             ConditionalVariance{},
                                             Oips{.rho = 0.8, .k_min = 3, .max_inducing = 20},
                                             Oips{},
                                             FixedGreedy{.size = 17},
                                             FixedGradient{.size = 18}};
  const Problem p(20, 8, 40);
  for (const SelectionMethod& method : methods) {
    const SelectionMethod again = make_selection(method.name(), method.settings());
    EXPECT_EQ(again.name(), method.name());
    EXPECT_EQ(again.settings(), method.settings());
    EXPECT_EQ(again.select(p.view(4)).Z, method.select(p.view(4)).Z);
  }
  EXPECT_EQ(make_selection("vips").settings(), Vips{}.settings());
  EXPECT_NE(make_selection("vips", {{"delta", 0.1}}).settings(), Vips{}.settings());  // control
}

TEST(MakeSelection, SaysWhatIsWrong) {
  const auto error = [](const std::string& name, const SelectionSettings& settings) {
    return message_of([&] { (void)make_selection(name, settings); });
  };
  EXPECT_EQ(error("vip", {}),
            "selection: unknown method 'vip', expected vips, cv, oips, fixed-greedy or "
            "fixed-gradient");
  EXPECT_EQ(error("vips", {{"eta", 1.0}}), "vips: it has no setting 'eta'");
  EXPECT_EQ(error("vips", {{"delta", 0.0}}), "vips: delta is 0, but must be positive and finite");
  EXPECT_EQ(error("vips", {{"delta", -1.0}}), "vips: delta is -1, but must be positive and finite");
  EXPECT_EQ(error("vips", {{"delta", std::nan("")}}),
            "vips: delta is nan, but must be positive and finite");
  EXPECT_EQ(error("vips", {{"pool", 2.0}}), "vips: pool is 2, but must be from 0 to 1");
  EXPECT_EQ(error("vips", {{"choose", 0.5}}), "vips: choose is 0.5, but must be from 0 to 1");
  EXPECT_EQ(error("vips", {{"max_inducing", 0.0}}),
            "vips: max_inducing is 0, but must be a whole number from 1");
  EXPECT_EQ(error("cv", {{"max_inducing", 2.5}}),
            "cv: max_inducing is 2.5, but must be a whole number from 1");
  EXPECT_EQ(error("oips", {{"rho", 1.5}}), "oips: rho is 1.5, but must be in (0, 1]");
  EXPECT_EQ(error("fixed-greedy", {{"size", -3.0}}),
            "fixed-greedy: size is -3, but must be a whole number from 1");
  EXPECT_EQ(error("oips", {{"rho", 1.0}}), "");  // control: the end of the range is in it
}

/// The example of selection.h.
struct EveryTenth {
  [[nodiscard]] static Selection select(const SelectionProblem& p) {
    Selection s;
    s.added = (p.X.rows() + 9) / 10;
    s.Z = Matrix(p.old.size() + s.added, p.X.cols());
    s.Z.topRows(p.old.size()) = p.old.Z;
    for (Index i = 0; i < s.added; ++i) s.Z.row(p.old.size() + i) = p.X.row(10 * i);
    return s;
  }
  [[nodiscard]] static std::string name() { return "every-tenth"; }
};

TEST(SelectionMethod, AUsersOwnMethodWorksInAModel) {
  ContinualGPOptions options;
  options.selection = EveryTenth{};
  EXPECT_EQ(options.selection.name(), "every-tenth");
  EXPECT_TRUE(options.selection.settings().empty());
  ContinualGP gp(options);
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const Batch batch = random_batch(40, 1, seed);
    const BatchReport r = gp.observe(batch.X, batch.y);
    EXPECT_EQ(r.inducing_added, 4);
    EXPECT_EQ(r.inducing, 4 * r.batch);
    // A method that knows nothing of the bound still gets what it cost.
    ASSERT_TRUE(r.gap.has_value());
    EXPECT_GE(*r.gap, -1e-6);
    EXPECT_FALSE(r.threshold.has_value());
  }
  EXPECT_TRUE(gp.predict(Matrix::Zero(1, 1)).mean.allFinite());
}

TEST(SelectionStop, HasAName) {
  EXPECT_EQ(to_string(SelectionStop::threshold), "threshold");
  EXPECT_EQ(to_string(SelectionStop::pool_used_up), "pool used up");
  EXPECT_EQ(to_string(SelectionStop::no_variance), "no variance left");
  EXPECT_EQ(to_string(SelectionStop::jitter), "jitter");
  EXPECT_EQ(to_string(SelectionStop::cap), "cap");
  EXPECT_EQ(to_string(SelectionStop::size), "size");
}

// A bound of 1e20 nats has no digits for a gap of some: that it seems to be small proves nothing.
TEST(Vips, WhatIsOnlyRoundingIsNoCertificate) {
  const Batch wave = testing::random_batch(60, 1, 5);
  ContinualGP plain;
  const BatchReport sound = plain.observe(wave.X, wave.y);
  EXPECT_EQ(sound.stop, SelectionStop::threshold);
  ContinualGP gp;
  const Vector far = wave.y.array() + 1e9;
  for (int b = 0; b < 3; ++b) {
    const BatchReport r = gp.observe(wave.X, far);
    if (r.stop == SelectionStop::threshold) {
      EXPECT_GE(r.gap.value(), -1e-3 * r.threshold.value());
      EXPECT_LE(r.gap.value(), r.threshold.value());
    }
    // At the first batch α itself is of that size, and the gap is within it.
    if (b > 0) {
      EXPECT_NE(r.stop, SelectionStop::threshold) << b << ": gap " << r.gap.value();
    }
  }
}

}  // namespace
}  // namespace ample
