// Choosing by gain: a gain is the step of the bound, and the search takes the largest.
#include "greedy_gain.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ample/bound.h"
#include "ample/greedy_search.h"
#include "ample/selection.h"
#include "support/every_kernel.h"
#include "support/naive.h"
#include "support/random.h"
#include "support/streams.h"

namespace ample {
namespace {

using testing::Random;
using testing::random_batch;
using testing::stacked;
using testing::state_after;

double jitter_for(const State& old, const Matrix& X) {
  return old.size() > 0 ? old.jitter : 1e-8 * old.kernel.diagonal(X).mean();
}

/// L̂ from scratch.
double direct(const State& old, const Matrix& X, const Sites& sites, const Matrix& Z) {
  OnlineBound bound(old, X, sites);
  EXPECT_TRUE(bound.factorize(old.kernel, old.noise_variance, Z, jitter_for(old, X)));
  return bound.value();
}

/// A search as GreedySearch makes it, with its parts in view.
struct Parts {
  Parts(const State& state, const Batch& data, const Sites& rows, bool anew)
      : old(state),
        batch(data),
        sites(rows),
        keep_old(!anew),
        pool(anew ? stacked(old.Z, batch.X) : batch.X),
        greedy(old.kernel, pool, jitter_for(old, batch.X), anew ? old.size() : 0),
        bound(begin()) {}

  IncrementalBound begin() {
    if (!keep_old) return {old, sites};
    if (old.size() > 0) greedy.start_from(old.Z, old.L);
    return IncrementalBound::from_old(old, sites, greedy.Vt()).value();
  }
  [[nodiscard]] Index past() const { return keep_old ? 0 : old.size(); }
  void take(Index j) {
    greedy.take(j);
    bound.append(greedy.Vt().bottomRows(batch.X.rows()),
                 greedy.Vt().col(bound.size()).head(past()));
  }
  [[nodiscard]] Vector gains(const std::vector<Index>& points) {
    const Matrix columns = greedy.columns(points);
    const Index N = batch.X.rows();
    return bound.gains(greedy.Vt().bottomRows(N), columns.bottomRows(N), columns.topRows(past()));
  }
  [[nodiscard]] Matrix Z() const {
    const Matrix chosen = pool(greedy.taken(), Eigen::all);
    return keep_old ? stacked(old.Z, chosen) : chosen;
  }
  [[nodiscard]] std::vector<Index> open() const {
    std::vector<Index> points;
    for (Index j = 0; j < pool.rows(); ++j) {
      if (greedy.is_open(j)) points.push_back(j);
    }
    return points;
  }

  const State& old;
  const Batch& batch;
  Sites sites;
  bool keep_old;
  Matrix pool;
  GreedyVariance greedy;
  IncrementalBound bound;
};

/// The largest difference between a gain and the step of the bound from scratch, relative to the
/// largest term of the bound, over all open points at several sizes. `control` is the largest gain.
struct Compared {
  double worst = 0.0;
  double control = 0.0;
};
Compared compare(Parts& parts, Index steps, bool keep_covariance) {
  const double unit =
      std::max(1.0, 0.5 * parts.sites.scaled_target().squaredNorm() / parts.old.noise_variance);
  if (keep_covariance) parts.greedy.keep_covariance();
  Compared all;
  for (Index step = 0; step < steps; ++step) {
    const std::vector<Index> points = parts.open();
    if (points.empty()) break;
    const Vector gains = parts.gains(points);
    const Matrix Z = parts.Z();
    // Without any inducing point the bound is that of noise alone, and the past is lost.
    const double before =
        Z.rows() > 0
            ? direct(parts.old, parts.batch.X, parts.sites, Z)
            : parts.bound.value(
                  parts.greedy.residual().tail(parts.batch.X.rows()).dot(parts.sites.weight));
    for (std::size_t b = 0; b < points.size(); b += 3) {
      const double after =
          direct(parts.old, parts.batch.X, parts.sites, stacked(Z, parts.pool.row(points[b])));
      const double gain = gains[static_cast<Index>(b)];
      EXPECT_GE(gain, -1e-9 * unit);
      all.worst = std::max(all.worst, std::abs(gain - (after - before)) / unit);
      all.control = std::max(all.control, std::abs(gain) / unit);
    }
    parts.take(points[static_cast<std::size_t>(step) % points.size()]);
  }
  return all;
}

TEST_P(EveryKernel, AGainIsTheStepOfTheBound) {
  for (const Index D : {1, 3}) {
    const State nothing = State::empty(kernel(D), 0.05, D);
    const State old = state_after(kernel(D), 0.05, random_batch(30, D, 2), 8);
    // More points than the batch has rows: gains then come from the precision of the rows.
    const State larger = state_after(kernel(D), 0.05, random_batch(30, D, 2), 24);
    const Batch batch = random_batch(20, D, 3);
    for (const bool weighted : {false, true}) {
      Random random(4);
      const Sites sites(batch.y, weighted ? random.uniform(20, 1, 0.2, 3.0) : Matrix::Ones(20, 1));
      for (const bool anew : {false, true}) {
        for (const bool keep : {false, true}) {
          SCOPED_TRACE(::testing::Message() << "D " << D << ", weights " << weighted
                                            << ", chosen anew " << anew << ", kept " << keep);
          for (const State* state : {&nothing, &old, &larger}) {
            Parts parts(*state, batch, sites, anew);
            const Compared c = compare(parts, 6, keep);
            EXPECT_LE(c.worst, 1e-8);
            // Where a kernel of few functions has its points, nothing is left to gain.
            if (state == &nothing) {
              EXPECT_GT(c.control, 1e-5);
            }
          }
        }
      }
    }
  }
}

TEST(GreedyGain, IsNearlyAsGoodAsAllGainsAtEveryStepAndComputesFew) {
  const Batch batch = random_batch(300, 2, 5);
  const State nothing = State::empty(SquaredExponential{1.0, 0.7}, 0.05, 2);
  const Sites sites(batch.y);
  Parts all(nothing, batch, sites, false);
  Parts few(nothing, batch, sites, false);
  Parts by_variance(nothing, batch, sites, false);
  const auto value = [](const Parts& parts) {
    return parts.bound.value(parts.greedy.residual().sum());
  };
  const double start = value(all);
  GreedyGain gain(300, 0);
  constexpr Index kSteps = 40;
  for (Index step = 0; step < kSteps; ++step) {
    const std::vector<Index> points = all.open();
    Index best = 0;
    all.gains(points).maxCoeff(&best);
    all.take(points[static_cast<std::size_t>(best)]);
    by_variance.take(*by_variance.greedy.most_uncertain());

    const std::vector<Index> open = few.open();
    const Vector gains = few.gains(open);
    const auto next = gain.next(few.greedy, few.bound);
    ASSERT_TRUE(next);
    // A gain that has risen since it was computed may be overlooked for a while.
    const auto place = std::find(open.begin(), open.end(), *next) - open.begin();
    EXPECT_GE(gains[place], 0.5 * gains.maxCoeff()) << "step " << step;
    few.take(*next);
  }
  EXPECT_GE(value(few) - start, 0.99 * (value(all) - start));
  EXPECT_LT(value(by_variance) - start, 0.99 * (value(all) - start));  // control
  EXPECT_LT(gain.computed(), 300 + kSteps * 300 / 4);
}

TEST(GreedyGain, OfALargeBatchItComparesRowsAtEvenDistances) {
  const Matrix X = Vector::LinSpaced(12'000, 0.0, 1.0);
  const Vector y = (20.0 * X.array()).sin();
  const State nothing = State::empty(SquaredExponential{1.0, 0.1}, 0.01, 1);
  GreedyVariance greedy(nothing.kernel, X, 1e-8);
  auto bound = IncrementalBound::from_old(nothing, y, greedy.Vt());
  GreedyGain gain(12'000, 0);
  ASSERT_TRUE(gain.next(greedy, *bound));
  EXPECT_EQ(gain.computed(), 10'000);
}

struct Problem {
  explicit Problem(std::uint64_t seed)
      : old(state_after(SquaredExponential{1.0, 0.6}, 0.05, random_batch(60, 2, seed), 20)),
        batch(random_batch(150, 2, seed + 50)) {
    targets.observe(batch.y);
  }
  [[nodiscard]] SelectionProblem view() const { return {old, batch.X, batch.y, targets, 0}; }

  State old;
  Batch batch;
  TargetStatistics targets;
};

TEST(GreedyGain, TheSearchRisesByTheGainOfEachPoint) {
  const Problem problem(7);
  const SelectionProblem view = problem.view();
  for (const auto pool : {Vips::Pool::batch, Vips::Pool::old_and_batch}) {
    GreedySearch by_gain(view, pool, Vips::Choose::gain);
    GreedySearch by_variance(view, pool);
    double last = by_gain.lower_bound();
    for (int i = 0; i < 25; ++i) {
      ASSERT_TRUE(by_gain.take_next());
      ASSERT_TRUE(by_variance.take_next());
      EXPECT_GE(by_gain.lower_bound(), last - 1e-9);
      last = by_gain.lower_bound();
    }
    EXPECT_GT(by_gain.lower_bound(), by_variance.lower_bound() + 1.0);
    const Selection selection = by_gain.selection();
    EXPECT_NEAR(direct(problem.old, problem.batch.X, problem.batch.y, selection.Z), last, 1e-6);
  }
}

TEST(GreedyGain, VipsKeepsItsGuaranteeWithFewerPoints) {
  Index by_variance = 0;
  Index by_gain = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const Problem problem(seed);
    const Selection variance = Vips{}.select(problem.view());
    const Selection gain = Vips{.choose = Vips::Choose::gain}.select(problem.view());
    EXPECT_EQ(gain.stop, SelectionStop::threshold);
    EXPECT_EQ(*gain.threshold, *variance.threshold);
    EXPECT_LE(*gain.optimum - *gain.lower_bound, *gain.threshold);
    by_variance += variance.added;
    by_gain += gain.added;
  }
  EXPECT_LT(by_gain, by_variance);
}

TEST(GreedyGain, EndsWhenThePoolIsUsedUp) {
  const Batch batch = random_batch(12, 2, 9);
  const State nothing = State::empty(Matern12{1.0, 0.5}, 0.05, 2);
  TargetStatistics targets;
  targets.observe(batch.y);
  GreedySearch search({nothing, batch.X, batch.y, targets, 0}, Vips::Pool::batch,
                      Vips::Choose::gain);
  while (search.take_next()) {
  }
  EXPECT_EQ(search.taken(), 12);
  EXPECT_EQ(search.why_exhausted(), SelectionStop::pool_used_up);
}

}  // namespace
}  // namespace ample
