#include "foresight.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ample/exact_gp.h"
#include "ample/metrics.h"
#include "ample/target_statistics.h"

namespace ample {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

}  // namespace

double foresight(const Hyperparameters& theta, const MatrixRef& X, const VectorRef& y,
                 const MatrixRef& X_test, const VectorRef& y_test) {
  ExactGP gp(theta);
  try {
    gp.condition(X, y);
  } catch (const NumericalError&) {
    return kImpossible;
  }
  const double mean = -nlpd(y_test, gp.predict(X_test, Target::observation));
  const double sum = mean * static_cast<double>(y_test.size());
  return std::isfinite(sum) ? sum : kImpossible;
}

bool contradict(const Hyperparameters& theta, const MatrixRef& X_old, const VectorRef& y_old,
                const MatrixRef& X_new, const VectorRef& y_new, double nats) {
  constexpr Index kMost = 1000;
  const Index step = (X_new.rows() + kMost - 1) / kMost;
  const Index half = X_new.rows() / (2 * step);
  if (half == 0) return false;
  const auto given = Eigen::seqN(Index{0}, half, 2 * step);
  const auto asked = Eigen::seqN(step, half, 2 * step);
  Matrix X(X_old.rows() + half, X_new.cols());
  Vector y(X_old.rows() + half);
  X << X_old, X_new(given, Eigen::all);
  y << y_old, y_new(given);
  const Matrix X_test = X_new(asked, Eigen::all);
  const Vector y_test = y_new(asked);
  const double apart = foresight(theta, X.bottomRows(half), y.tail(half), X_test, y_test);
  TargetStatistics targets;
  targets.observe(y.tail(half));
  const double explained = apart - targets.log_density(y_test, theta.noise());
  // A model that is a little wrong everywhere does with more noise.
  double together = kImpossible;
  for (const double factor : {1.0, 10.0, 100.0}) {
    Hyperparameters noisier = theta;
    noisier.noise_variance = factor * theta.noise();
    together = std::max(together, foresight(noisier, X, y, X_test, y_test));
  }
  return apart - together > std::max(nats, 0.5 * explained);
}

}  // namespace ample
