#include "foresight.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "ample/exact_gp.h"
#include "ample/target_statistics.h"
#include "thinned.h"

namespace ample {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

/// The share of values at the ends of a range or beyond them.
double share_at_the_ends(const VectorRef& values, double lowest, double highest) {
  const auto there = values.array() <= lowest || values.array() >= highest;
  return static_cast<double>(there.count()) / static_cast<double>(values.size());
}

/// Whether most new rows lie where hardly an old one did, by some input: beyond its range, or at
/// its ends as in a table that is sorted by it. Of an input with two values all rows lie at an end,
/// the old ones too.
bool is_a_new_place(const MatrixRef& X_old, const MatrixRef& X_new) {
  for (Index d = 0; d < X_new.cols(); ++d) {
    const Vector past = X_old.col(d);
    const double lowest = past.minCoeff();
    const double highest = past.maxCoeff();
    const auto beyond = X_new.col(d).array() < lowest || X_new.col(d).array() > highest;
    if (2 * beyond.count() >= X_new.rows()) return true;
    const double now = share_at_the_ends(X_new.col(d), lowest, highest);
    if (now >= 0.5 && now >= share_at_the_ends(past, lowest, highest) + 0.4) return true;
  }
  return false;
}

/// How many of these values are left at most if some go so that the others do not fall: the longest
/// subsequence in order, by Fredman's search. O(N log N).
Index longest_in_order(const VectorRef& values) {
  std::vector<double> ends;  // the least last value of such a subsequence of each length
  for (const double value : values) {
    const auto place = std::ranges::upper_bound(ends, value);
    if (place == ends.end()) {
      ends.push_back(value);
    } else {
      *place = value;
    }
  }
  return static_cast<Index>(ends.size());
}

}  // namespace

Vector foreseen(const Hyperparameters& theta, const MatrixRef& X, const VectorRef& y,
                const MatrixRef& X_test, const VectorRef& y_test) {
  ExactGP gp(theta);
  try {
    gp.condition(X, y);
  } catch (const NumericalError&) {
    return {};
  }
  const Prediction p = gp.predict(X_test, Target::observation);
  const auto squares = (y_test - p.mean).array().square() / p.variance.array();
  Vector densities = -0.5 * ((2.0 * std::numbers::pi * p.variance).array().log() + squares);
  if (!densities.allFinite()) densities.resize(0);
  return densities;
}

double foresight(const Hyperparameters& theta, const MatrixRef& X, const VectorRef& y,
                 const MatrixRef& X_test, const VectorRef& y_test) {
  const Vector densities = foreseen(theta, X, y, X_test, y_test);
  const double sum = densities.sum();
  return densities.size() > 0 && std::isfinite(sum) ? sum : kImpossible;
}

bool are_sorted(const VectorRef& y) {
  constexpr Index kFewest = 20;
  constexpr double kSteps = 0.95;
  constexpr double kInOrder = 0.75;
  if (y.size() < kFewest) return false;
  const auto earlier = y.head(y.size() - 1).array();
  const auto later = y.tail(y.size() - 1).array();
  const Index up = (later > earlier).count();
  const Index down = (later < earlier).count();
  if (static_cast<double>(std::max(up, down)) < kSteps * static_cast<double>(up + down)) {
    return false;
  }
  const Vector rising = (up >= down ? 1.0 : -1.0) * y;
  return static_cast<double>(longest_in_order(rising)) >= kInOrder * static_cast<double>(y.size());
}

bool lie_far_off(const Hyperparameters& theta, const MatrixRef& X, const VectorRef& y,
                 const MatrixRef& X_others, const VectorRef& y_others) {
  constexpr Index kMost = 1000;
  constexpr double kFar = 2.0;
  constexpr double kFarthest = 10.0;  // a few wild rows are not all
  if (is_a_new_place(X_others, X)) return false;
  const auto some = thinned(X_others.rows(), kMost);
  const auto asked = thinned(X.rows(), kMost);
  ExactGP gp(theta);
  try {
    gp.condition(X_others(some, Eigen::all), y_others(some));
  } catch (const NumericalError&) {
    return false;
  }
  const Prediction p = gp.predict(X(asked, Eigen::all), Target::observation);
  const auto squares = (y(asked) - p.mean).array().square() / p.variance.array();
  return squares.min(kFarthest * kFarthest).mean() > kFar * kFar;
}

bool contradict(std::span<const Hyperparameters> thetas, const MatrixRef& X_old,
                const VectorRef& y_old, const MatrixRef& X_new, const VectorRef& y_new, double nats,
                const ShouldStop& should_stop) {
  constexpr Index kMost = 1000;
  constexpr Index kFewest = 10;  // a stuck sensor is no change of the function
  const Index step = (X_new.rows() + kMost - 1) / kMost;
  const Index count = X_new.rows() / step;
  // The second and the fourth quarter are asked for, the others given: rows that come one after the
  // other are often alike in what no input shows, which would make each other row easy to foresee.
  std::vector<Index> given;
  std::vector<Index> asked;
  for (Index i = 0; i < count; ++i) {
    (4 * i / count % 2 == 0 ? given : asked).push_back(i * step);
  }
  const auto half = static_cast<Index>(given.size());
  if (count < 2 * kFewest || X_old.rows() == 0) return false;
  if (are_sorted(y_new) || is_a_new_place(X_old, X_new)) return false;
  Matrix X(X_old.rows() + half, X_new.cols());
  Vector y(X_old.rows() + half);
  X << X_old, X_new(given, Eigen::all);
  y << y_old, y_new(given);
  const Matrix X_test = X_new(asked, Eigen::all);
  const Vector y_test = y_new(asked);
  // Where the noise is not what it was, and where a model is a little wrong everywhere, it does
  // with more. Once more is worse, still more is no better.
  bool stopped = false;
  const auto best = [&](const MatrixRef& X_given, const VectorRef& y_given) {
    double density = kImpossible;
    for (const Hyperparameters& theta : thetas) {
      double with_less = kImpossible;
      for (const double factor : {1.0, 10.0, 100.0, 1000.0, 10000.0}) {
        stopped = stopped || (should_stop && should_stop());
        if (stopped) break;
        Hyperparameters noisier = theta;
        const double noise = factor * theta.noise();  // within whatever bounds
        noisier.noise_variance = PositiveNumber(noise).within(noise, noise);
        const double now = foresight(noisier, X_given, y_given, X_test, y_test);
        if (now < with_less) break;
        with_less = now;
        density = std::max(density, now);
      }
    }
    return density;
  };
  const double together = best(X, y);
  const double apart = best(X.bottomRows(half), y.tail(half));
  if (stopped) return false;
  TargetStatistics targets;
  targets.observe(y.tail(half));
  const double explained = apart - targets.log_density(y_test, thetas.front().noise());
  const double share = static_cast<double>(count) / static_cast<double>(X_new.rows());
  return apart - together > std::max(share * nats, 0.5 * explained);
}

}  // namespace ample
