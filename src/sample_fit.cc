#include "sample_fit.h"

#include <iterator>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "ample/bound.h"
#include "ample/exact_gp.h"
#include "evidence_fit.h"
#include "greedy_variance.h"
#include "jitter.h"
#include "thinned.h"

namespace ample {
namespace {

// Points of the bound. With 300 the errors of Electricity and Chicago (docs/defaults.md) are 2 to
// 8 % larger, with 600 a fit takes half as long again for 1 %.
constexpr Index kPoints = 500;

// What the points leave of a row, ½ r_n/σ² in nats: if it is less than the first, more points
// change nothing; if it is more than the second, the bound is too far below the evidence.
constexpr double kNatsThatMatter = 1e-4;
constexpr double kNatsTooMany = 0.04;

// What the evidence of a part of the rows may fall by, in nats a row. A fit to more rows costs some
// of it; a bound that gives up on short lengthscales costs far more.
constexpr double kNatsToLose = 0.1;

/// The points that leave least of the rows at θ, by variance; nothing if that is still much.
std::optional<Matrix> points_for(const Hyperparameters& theta, const Matrix& X) {
  const auto left_a_row = [&](const GreedyVariance& greedy) {
    return greedy.residual().mean() / (2.0 * theta.noise());
  };
  const double variance = theta.kernel.diagonal(X).mean();
  const double jitter = first_jitter(variance, theta.noise()).value(variance, theta.noise());
  GreedyVariance greedy(theta.kernel, X, jitter);
  while (greedy.size() < kPoints && left_a_row(greedy) > kNatsThatMatter) {
    if (!greedy.take_next()) break;
  }
  if (greedy.size() == 0 || !(left_a_row(greedy) <= kNatsTooMany)) return std::nullopt;
  return X(greedy.taken(), Eigen::all);
}

/// Whether moving to θ lowers the exact evidence of some of the rows by more than a fit to all of
/// them may.
bool loses_evidence(const Hyperparameters& start, const Hyperparameters& theta, const Matrix& X,
                    const Vector& y) {
  const auto some = thinned(X.rows(), kMostExactRows);
  const Matrix some_X = X(some, Eigen::all);
  const Vector some_y = y(some);
  ExactEvidence evidence(some_X, some_y);
  const auto log_evidence = [&](const Hyperparameters& at) {
    return evidence.factorize(at.kernel, at.noise()) ? evidence.value()
                                                     : -std::numeric_limits<double>::infinity();
  };
  return log_evidence(theta) <
         log_evidence(start) - kNatsToLose * static_cast<double>(some_y.size());
}

/// Nothing if θ is not to be told by the bound.
std::optional<SampleFit> fit_bound(const Hyperparameters& start, const Matrix& X, const Vector& y,
                                   const MinimizeOptions& options, Curvature& curvature,
                                   const ShouldStop& should_stop) {
  std::optional<Matrix> Z = points_for(start, X);
  if (!Z) return std::nullopt;
  OnlineBound bound(std::vector<const State*>{}, X, Sites(y));
  const Evidence of_all = [&](const Hyperparameters& theta, double& value,
                              EvidenceGradient& gradient) {
    if (!bound.factorize(theta.kernel, theta.noise(), *Z)) return false;
    value = bound.value();
    const BoundGradient& natural = bound.gradient();
    gradient.theta = natural.theta;
    gradient.noise_variance = natural.noise_variance;
    return true;
  };
  Curvature after = curvature;
  EvidenceFit fitted = maximize_evidence(of_all, X.cols(), start, options, &after, should_stop);
  const Hyperparameters& theta = fitted.theta;
  if (!fitted.summary.usable() || !bound.factorize(theta.kernel, theta.noise(), *Z)) {
    return std::nullopt;
  }
  // θ may have moved to where the points, chosen for the start, are too few.
  const double left =
      bound.factors().residual / (2.0 * theta.noise() * static_cast<double>(X.rows()));
  if (!(left <= kNatsTooMany) || loses_evidence(start, theta, X, y)) return std::nullopt;
  curvature = std::move(after);
  return SampleFit{std::move(fitted.theta), std::move(fitted.summary), X.rows(), std::move(Z)};
}

}  // namespace

SampleFit fit_to_sample(const Hyperparameters& start, const MatrixRef& X, const VectorRef& y,
                        const MinimizeOptions& options, Curvature& curvature,
                        const ShouldStop& should_stop) {
  if (X.rows() > kMostExactRows) {
    if (auto fitted = fit_bound(start, X, y, options, curvature, should_stop)) {
      return *std::move(fitted);
    }
  }
  const auto some = thinned(X.rows(), kMostExactRows);
  EvidenceFit fitted =
      fit_evidence(start, X(some, Eigen::all), y(some), options, &curvature, should_stop);
  return {std::move(fitted.theta), std::move(fitted.summary), std::ssize(some), std::nullopt};
}

}  // namespace ample
