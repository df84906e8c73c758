// Prices and removals against the general bound, against textbook code in quadruple precision, and
// against the divergence between the two Gaussians.
#include "ample/pruning.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ample/bound.h"
#include "ample/posterior.h"
#include "ample/threads.h"
#include "support/check_gradient.h"
#include "support/every_kernel.h"
#include "support/naive.h"
#include "support/random.h"
#include "support/streams.h"

namespace ample {
namespace {

using naive::Inverse;
using naive::invert;
using naive::Quad;
using naive::QuadMatrix;
using testing::absorbed;
using testing::message_of;
using testing::Random;
using testing::random_batch;
using testing::relative_error;
using testing::state_after;

using Points = std::vector<Index>;

// --- Textbook code -----------------------------------------------------------------------------

/// All rows of Z but these.
Points others(const State& state, const Points& gone) {
  Points rest;
  for (Index i = 0; i < state.size(); ++i) {
    if (std::ranges::find(gone, i) == gone.end()) rest.push_back(i);
  }
  return rest;
}

QuadMatrix columns(const QuadMatrix& A, const Points& chosen) {
  QuadMatrix out(A.rows(), static_cast<Index>(chosen.size()));
  for (Index i = 0; i < out.rows(); ++i) {
    for (Index j = 0; j < out.cols(); ++j) {
      out(i, j) = A(i, chosen[static_cast<std::size_t>(j)]);
    }
  }
  return out;
}

/// The old and the new posterior over all old inducing variables, and the bound between them. The
/// old prior is L Lᵀ as the state has it.
struct Textbook {
  Textbook(const State& state, const Points& rest)
      : K(QuadMatrix(state.L) * QuadMatrix(state.L).transpose()),
        L_inv(invert(QuadMatrix(state.L)).matrix),
        P(L_inv.transpose() * QuadMatrix(state.A) * L_inv),
        p(L_inv.transpose() * QuadMatrix(state.c)),
        K_ab(columns(K, rest)),
        K_bb(columns(K_ab.transpose(), rest)),
        W(K_ab * invert(K_bb).matrix) {}

  /// F (1) of a pseudo-precision P and evidence p, both in weights, for the prior K.
  static Quad F(const QuadMatrix& K, const QuadMatrix& P, const QuadMatrix& p) {
    if (K.rows() == 0) return 0;
    const Inverse prior = invert(K);
    const Inverse posterior = invert(prior.matrix + P);
    return Quad(0.5) * (posterior_log(posterior, prior) + quadratic(p, posterior.matrix));
  }
  static Quad posterior_log(const Inverse& posterior, const Inverse& prior) {
    return -(posterior.log_determinant + prior.log_determinant);
  }

  /// −L̂ (6) with no data and the rest as Z_b.
  [[nodiscard]] double loss() const {
    const QuadMatrix P_b = W.transpose() * P * W;
    const QuadMatrix p_b = W.transpose() * p;
    const Quad trace = (P * (K - W * K_ab.transpose())).trace();
    return static_cast<double>(F(K, P, p) - F(K_bb, P_b, p_b) + Quad(0.5) * trace);
  }

  /// KL[q without the others ‖ q], both over all old inducing variables.
  [[nodiscard]] double divergence() const {
    const QuadMatrix P_b = W.transpose() * P * W;
    const QuadMatrix S_old = invert(invert(K).matrix + P).matrix;
    const QuadMatrix S_b = invert(invert(K_bb).matrix + P_b).matrix;
    const QuadMatrix m_old = S_old * p;
    const QuadMatrix m_new = W * (S_b * (W.transpose() * p));
    const QuadMatrix S_new = K - W * (K_bb - S_b) * W.transpose();
    const Inverse old = invert(S_old);
    const Quad log_ratio = old.log_determinant - invert(S_new).log_determinant;
    return static_cast<double>(Quad(0.5) * ((old.matrix * S_new).trace() - Quad(K.rows()) +
                                            log_ratio + quadratic(m_new - m_old, old.matrix)));
  }

  QuadMatrix K, L_inv, P, p, K_ab, K_bb, W;
};

double textbook_loss(const State& state, const Points& gone) {
  return Textbook(state, others(state, gone)).loss();
}

/// −L̂ by the general bound, with no data and Z without these points.
double bound_loss(const State& state, const Points& gone) {
  const Matrix X(0, state.dimension());
  const Vector y(0);
  OnlineBound bound(state, X, y);
  const Points rest = others(state, gone);
  const Matrix Z = state.Z(rest, Eigen::all);
  EXPECT_TRUE(bound.factorize(state.kernel, state.noise_variance, Z, state.jitter));
  return -bound.value();
}

Points points_of(const std::vector<Removal>& removed) {
  Points points;
  for (const Removal& removal : removed) points.push_back(removal.point);
  return points;
}

/// Two batches, so that A is no longer that of data at the inducing points.
State learnt(const Kernel& kernel, Index M = 10, Index D = 2, double noise_variance = 0.05) {
  const State first = state_after(kernel, noise_variance, random_batch(30, D, 11), M);
  return absorbed(first, random_batch(25, D, 12), first.Z);
}

// --- Prices (18) -------------------------------------------------------------------------------

TEST_P(EveryKernel, APriceIsWhatTheBoundLoses) {
  const State s = learnt(kernel());
  const Vector price = prices(s);
  ASSERT_EQ(price.size(), s.size());
  EXPECT_GE(price.minCoeff(), 0.0);
  for (Index j = 0; j < s.size(); ++j) {
    EXPECT_LE(relative_error(price[j], textbook_loss(s, {j})), 1e-11) << j;
    EXPECT_LE(relative_error(price[j], bound_loss(s, {j})), 1e-6) << j;
  }
  // Control: the price of another point, or of two.
  EXPECT_GT(relative_error(price[0], textbook_loss(s, {0, 1})), 1e-9);
}

TEST_P(EveryKernel, PricesFollowTheirPoints) {
  const State s = learnt(kernel());
  const Batch first = random_batch(30, 2, 11);
  const Points order = Random(5).permutation(s.size());
  const Matrix Z = s.Z(order, Eigen::all);
  const State shuffled =
      absorbed(absorbed(State::empty(s.kernel, s.noise_variance, 2), first, Z, s.jitter),
               random_batch(25, 2, 12), Z, s.jitter);
  const Vector price = prices(s);
  const Vector other = prices(shuffled);
  for (Index j = 0; j < s.size(); ++j) {
    EXPECT_LE(relative_error(other[j], price[order[static_cast<std::size_t>(j)]]), 1e-7);
  }
}

TEST(Prices, OfAModelThatHasSeenNothingAreZero) {
  State s = learnt(Matern52{}, 6);
  s.A.setZero();
  s.c.setZero();
  ASSERT_TRUE(s.factorize());
  EXPECT_LE(prices(s).maxCoeff(), 1e-14);
  EXPECT_GE(prices(s).minCoeff(), 0.0);
  EXPECT_EQ(prices(State::empty(Matern52{}, 0.1, 2)).size(), 0);
}

// --- Removal (19) ------------------------------------------------------------------------------

TEST_P(EveryKernel, InSequenceIsAtOnce) {
  const State s = learnt(kernel());
  for (const Index left : {7, 4, 1, 0}) {
    const Pruned pruned = prune(s, {.points = left});
    const Points gone = points_of(pruned.removed);
    ASSERT_EQ(pruned.state.size(), left);
    double sum = 0.0;
    for (const Removal& removal : pruned.removed) sum += removal.price;
    EXPECT_EQ(pruned.nats, sum);
    EXPECT_LE(relative_error(pruned.nats, textbook_loss(s, gone)), 1e-10) << left;
    if (left > 0) {
      EXPECT_LE(relative_error(pruned.nats, bound_loss(s, gone)), 1e-6) << left;
    }
  }
}

TEST_P(EveryKernel, EveryStepTakesTheCheapestOfWhatIsLeft) {
  const State s = learnt(kernel());
  Points gone;
  for (const Removal& removal : removal_order(s)) {
    const Points rest = others(s, gone);
    const double before = textbook_loss(s, gone);
    double cheapest = std::numeric_limits<double>::infinity();
    for (const Index j : rest) {
      Points more = gone;
      more.push_back(j);
      cheapest = std::min(cheapest, textbook_loss(s, more) - before);
    }
    EXPECT_LE(relative_error(removal.price, cheapest), 1e-10) << gone.size();
    gone.push_back(removal.point);
    EXPECT_LE(relative_error(removal.price, textbook_loss(s, gone) - before), 1e-10);
  }
  EXPECT_EQ(static_cast<Index>(gone.size()), s.size());
}

TEST_P(EveryKernel, WhatIsLeftIsTheStateThatTheBoundLeaves) {
  const State s = learnt(kernel());
  const Points gone{1, 4, 8};
  const State left = without_points(s, gone);
  const Textbook textbook(s, others(s, gone));
  const Matrix K_bb = textbook.K_bb.rounded();
  EXPECT_LE(relative_error(left.L * left.L.transpose(), K_bb), 1e-12);
  EXPECT_EQ(Matrix(left.L.triangularView<Eigen::StrictlyUpper>()).norm(), 0.0);
  EXPECT_EQ(left.A, left.A.transpose());
  EXPECT_EQ(left.jitter, s.jitter);
  EXPECT_TRUE(left.kernel.same_instance(s.kernel));
  // A = Lᵀ P L and c = Lᵀ p for the P and p of the textbook.
  const QuadMatrix L = left.L;
  const Matrix A = (L.transpose() * textbook.W.transpose() * textbook.P * textbook.W * L).rounded();
  const Matrix c = (L.transpose() * textbook.W.transpose() * textbook.p).rounded();
  EXPECT_LE((left.A - A).norm(), 1e-13 * A.norm());
  EXPECT_LE((left.c - c).norm(), 1e-13 * c.norm());
  State again = left;
  ASSERT_TRUE(again.factorize());
  EXPECT_EQ(again.F, left.F);
  EXPECT_EQ(again.L_D, left.L_D);
}

TEST_P(EveryKernel, APrunedStateGoesOnLikeTheOneThatTheBoundLeaves) {
  const State s = learnt(kernel());
  const Points gone{0, 5};
  const State left = without_points(s, gone);
  const State expected = absorbed(s, Batch{Matrix(0, 2), Vector(0)}, left.Z, s.jitter);
  const Batch next = random_batch(20, 2, 13);
  const State a = absorbed(left, next, left.Z);
  const State b = absorbed(expected, next, left.Z);
  const Matrix queries = Random(3).normal(9, 2);
  EXPECT_LE(relative_error(Posterior(a).predict(queries).mean, Posterior(b).predict(queries).mean),
            1e-6);
  EXPECT_LE(relative_error(Posterior(a).predict(queries).variance,
                           Posterior(b).predict(queries).variance),
            1e-6);
}

// --- The guarantee -----------------------------------------------------------------------------

TEST_P(EveryKernel, NatsAreTheDivergenceOfTheResultFromTheStart) {
  const State s = learnt(kernel());
  const Pruned pruned = prune(s, {.points = 6});
  const Textbook textbook(s, others(s, points_of(pruned.removed)));
  EXPECT_LE(relative_error(pruned.nats, textbook.divergence()), 1e-10);
}

TEST_P(EveryKernel, PredictionsDifferByNoMoreThanTheNatsPaid) {
  const State s = learnt(kernel());
  const Matrix queries = Random(8).normal(6, 2);
  for (const Index left : {8, 5, 2}) {
    const Pruned pruned = prune(s, {.points = left});
    const JointPrediction before = Posterior(s).predict_joint(queries, Target::observation);
    const JointPrediction after =
        Posterior(pruned.state).predict_joint(queries, Target::observation);
    const Inverse old = invert(QuadMatrix(before.covariance));
    const QuadMatrix shift = after.mean - before.mean;
    const Quad divergence =
        Quad(0.5) *
        ((old.matrix * QuadMatrix(after.covariance)).trace() - Quad(6) + old.log_determinant -
         invert(QuadMatrix(after.covariance)).log_determinant + quadratic(shift, old.matrix));
    EXPECT_LE(static_cast<double>(divergence), pruned.nats * (1.0 + 1e-9) + 1e-9) << left;
    EXPECT_GE(static_cast<double>(divergence), -1e-9);
  }
}

// --- Limits ------------------------------------------------------------------------------------

TEST_P(EveryKernel, NoBudgetChangesNothing) {
  const State s = learnt(kernel());
  for (const PruneLimits limits : {PruneLimits{.nats = 0.0}, PruneLimits{.points = s.size()},
                                   PruneLimits{.nats = 0.0, .points = 2}}) {
    const Pruned pruned = prune(s, limits);
    EXPECT_TRUE(pruned.removed.empty());
    EXPECT_EQ(pruned.nats, 0.0);
    EXPECT_EQ(pruned.state.Z, s.Z);
    EXPECT_EQ(pruned.state.A, s.A);
    EXPECT_EQ(pruned.state.L, s.L);
    EXPECT_EQ(pruned.state.F, s.F);
  }
}

TEST(Pruning, StopsBeforeTheBudgetIsExceeded) {
  const State s = learnt(Matern32{}, 14);
  const std::vector<Removal> all = removal_order(s);
  ASSERT_EQ(static_cast<Index>(all.size()), s.size());
  double sum = 0.0;
  for (std::size_t n = 0; n < all.size(); ++n) {
    sum += all[n].price;
    // With just enough for n + 1 points, and with a little less.
    EXPECT_EQ(removal_order(s, {.nats = sum}).size(), n + 1);
    EXPECT_EQ(removal_order(s, {.nats = sum * (1.0 - 1e-12)}).size(), n);
    // Both limits hold.
    EXPECT_EQ(removal_order(s, {.nats = sum, .points = s.size() - 1}).size(), 1U);
  }
}

TEST(Pruning, NoMoreThanTheMostAreLeftWhateverItCosts) {
  const State state = state_after(SquaredExponential{1.0, 0.5}, 0.05, random_batch(60, 2, 31), 30);
  const std::vector<Removal> curve = removal_order(state);
  const auto left = [&](const PruneLimits& limits) { return prune(state, limits).state.size(); };
  EXPECT_EQ(left({.nats = 0.0, .most = 12}), 12);
  EXPECT_EQ(left({.nats = 0.0, .most = 30}), 30);
  EXPECT_EQ(left({.nats = 1e-12, .points = 1, .most = 12}), 12);
  // With nats to spare it goes on.
  const Pruned more = prune(state, {.nats = 1e9, .points = 5, .most = 12});
  EXPECT_EQ(more.state.size(), 5);
  // What the most costs counts against the nats.
  double to_12 = 0.0;
  for (std::size_t i = 0; i < 18; ++i) to_12 += curve[i].price;
  EXPECT_EQ(left({.nats = to_12 + 0.5 * curve[18].price, .points = 1, .most = 12}), 12);
  EXPECT_EQ(left({.nats = to_12 + 1.5 * curve[18].price, .points = 1, .most = 12}), 11);
  // A recent point goes only where no other costs less than twice its price.
  const Vector all = prices(state);
  for (Index recent = 0; recent <= 30; ++recent) {
    Vector worth = all;
    worth.tail(recent) *= 2.0;
    Index first = 0;
    worth.minCoeff(&first);
    EXPECT_EQ(prune(state, {.nats = 0.0, .most = 29, .recent = recent}).removed[0].point, first);
    // Within the nats all count alike.
    EXPECT_EQ(prune(state, {.nats = 1e9, .points = 29, .recent = recent}).removed[0].point,
              curve[0].point);
  }
  EXPECT_EQ(message_of([&] { (void)left({.points = 5, .most = 4}); }),
            "prune: most is 4, but must be at least points, 5");
}

TEST(Pruning, OrderOfZDoesNotMatter) {
  const Batch batch = random_batch(40, 2, 21);
  const Points order = Random(6).permutation(14);
  const Matrix Z = batch.X.topRows(14);
  const State empty = State::empty(Matern52{1.3, 0.9}, 0.05, 2);
  const State s = absorbed(empty, batch, Z);
  const State shuffled = absorbed(empty, batch, Z(order, Eigen::all));
  const Pruned a = prune(s, {.points = 6});
  const Pruned b = prune(shuffled, {.points = 6});
  EXPECT_LE(relative_error(a.nats, b.nats), 1e-9);
  for (std::size_t n = 0; n < a.removed.size(); ++n) {
    EXPECT_EQ(a.removed[n].point, order[static_cast<std::size_t>(b.removed[n].point)]);
  }
  const Matrix queries = Random(3).normal(9, 2);
  EXPECT_LE(relative_error(Posterior(a.state).predict(queries).mean,
                           Posterior(b.state).predict(queries).mean),
            1e-8);
}

TEST(Pruning, OfEqualPricesTheFirstGoesFirst) {
  State s = State::empty(SquaredExponential{}, 0.1, 1);
  s.Z = 100.0 * Vector::LinSpaced(6, 0.0, 5.0);
  s.L = Matrix::Identity(6, 6);
  s.A = 2.0 * Matrix::Identity(6, 6);
  s.c = Vector::Ones(6);
  ASSERT_TRUE(s.factorize());
  EXPECT_EQ(points_of(removal_order(s)), (Points{0, 1, 2, 3, 4, 5}));
}

TEST(Pruning, ThreadsDoNotChangeABit) {
  const State s = state_after(Matern32{1.0, 0.3}, 0.01, random_batch(300, 2, 31), 200);
  const int before = threads();
  set_threads(1);
  const Pruned one = prune(s, {.points = 60});
  set_threads(3);
  const Pruned three = prune(s, {.points = 60});
  set_threads(before);
  EXPECT_EQ(points_of(one.removed), points_of(three.removed));
  EXPECT_EQ(one.nats, three.nats);
  EXPECT_EQ(one.state.A, three.state.A);
}

// --- Hard cases --------------------------------------------------------------------------------

TEST(Pruning, OfNothingOfOneAndOfAll) {
  const State empty = State::empty(Matern52{}, 0.1, 2);
  EXPECT_EQ(prune(empty, {}).state.size(), 0);
  EXPECT_TRUE(removal_order(empty).empty());

  const State one = learnt(Matern52{}, 1);
  EXPECT_LE(relative_error(prices(one)[0], textbook_loss(one, {0})), 1e-11);
  const Pruned none = prune(one, {});
  EXPECT_EQ(none.state.size(), 0);
  EXPECT_EQ(none.state.F, 0.0);
  EXPECT_EQ(none.state.dimension(), 2);
  // What is left predicts the prior.
  const Prediction p = Posterior(none.state).predict(Random(1).normal(4, 2));
  EXPECT_EQ(p.mean.norm(), 0.0);
  EXPECT_EQ(p.variance, Vector::Ones(4));
  // And learns again.
  EXPECT_EQ(absorbed(none.state, random_batch(9, 2, 2), one.Z).size(), 1);

  const State s = learnt(Matern52{}, 9);
  EXPECT_EQ(prune(s, {}).state.size(), 0);
  EXPECT_LE(relative_error(prune(s, {}).nats, s.F + 0.5 * s.A.trace()), 1e-10);
}

TEST(Pruning, TwinsCostNothingUntilOneIsLeft) {
  // Every point twice: one of a pair is free but for jitter, in any order.
  for (const double noise_variance : {0.05, 1e-6}) {
    const Batch batch = random_batch(40, 2, 41);
    const Matrix Z = testing::stacked(batch.X.topRows(8), batch.X.topRows(8));
    const State s = absorbed(State::empty(Matern52{1.0, 0.8}, noise_variance, 2), batch, Z);
    const Pruned pruned = prune(s, {.points = 8});
    Points left = others(s, points_of(pruned.removed));
    for (Index& i : left) i %= 8;
    std::ranges::sort(left);
    EXPECT_EQ(left, (Points{0, 1, 2, 3, 4, 5, 6, 7})) << noise_variance;
    EXPECT_LE(relative_error(pruned.nats, textbook_loss(s, points_of(pruned.removed))), 1e-7);
    // The next one is not free.
    EXPECT_GT(prices(pruned.state).minCoeff(), 100.0 * pruned.nats);
    // Prices along the way agree with prices of the smaller state, made anew.
    const double next = removal_order(s)[8].price;
    EXPECT_LE(relative_error(next, prices(pruned.state).minCoeff()), 1e-6) << noise_variance;
  }
}

TEST(Pruning, KeepsItsDigitsWherePointsAreNearlyDependent) {
  // A smooth kernel on a short interval: K_bb is singular but for its jitter, data are precise.
  Batch batch{Matrix(120, 1), Vector(120)};
  batch.X.col(0).setLinSpaced(0.0, 1.0);
  batch.y = (6.0 * batch.X.col(0).array()).sin();
  for (const double noise_variance : {1e-2, 1e-5}) {
    const Matrix Z = batch.X(Eigen::seqN(0, 24, 5), Eigen::all);
    const State s =
        absorbed(State::empty(SquaredExponential{1.0, 0.4}, noise_variance, 1), batch, Z);
    Points gone;
    double paid = 0.0;
    for (const Removal& removal : removal_order(s)) {
      paid += removal.price;
      gone.push_back(removal.point);
      EXPECT_LE(relative_error(paid, textbook_loss(s, gone)), 1e-9)
          << noise_variance << ": " << gone.size();
    }
    // Nor does the state lose any: T is orthonormal to the last digits.
    const Points third{0, 3, 6, 9, 12, 15, 18, 21};
    const State left = without_points(s, third);
    const Textbook textbook(s, others(s, third));
    const QuadMatrix WL = textbook.W * QuadMatrix(left.L);
    const Matrix A = (WL.transpose() * textbook.P * WL).rounded();
    EXPECT_LE((left.A - A).norm(), 1e-14 * A.norm());
  }
}

TEST(Pruning, RefusesWhatMakesNoSense) {
  const State s = learnt(Matern52{}, 4);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(message_of([&] { (void)prune(s, {.nats = -1.0}); }),
            "prune: nats is -1, but must be 0 or more");
  EXPECT_EQ(message_of([&] { (void)prune(s, {.nats = nan}); }),
            "prune: nats is nan, but must be 0 or more");
  EXPECT_EQ(message_of([&] { (void)prune(s, {.points = -2}); }),
            "prune: points is -2, but must be 0 or more");
  EXPECT_EQ(message_of([&] { (void)without_points(s, Points{4}); }),
            "without_points: point 4 is not there, the state has 4 (counted from 0)");
  EXPECT_EQ(message_of([&] { (void)without_points(s, Points{1, 1}); }),
            "without_points: point 1 is given twice");
}

}  // namespace
}  // namespace ample
