#include "residual_noise.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "ample/posterior.h"
#include "check.h"

namespace ample {
namespace {

// The share of the prior's variance that is left where a model knows something.
constexpr double kKnown = 0.5;

// Deviations beyond which a row is an outlier.
constexpr double kFar = 10.0;

// The share of all rows that outliers may be: of more it is the model that is wrong. One may be
// where the others are enough to tell.
constexpr double kFewOutliers = 0.01;
constexpr Index kEnoughForOne = 20;

/// How many deviations each row is off where the state knows something, and by more than `least`; 0
/// elsewhere. Nothing if none is an outlier.
std::optional<Vector> deviations_with_outliers(const State& state, const MatrixRef& X,
                                               const VectorRef& y, double least) {
  AMPLE_ASSERT(X.rows() == y.size());
  if (y.size() < kEnoughForOne) return std::nullopt;
  const Prediction f = Posterior(state).predict(X);
  const Vector prior = state.kernel.diagonal(X);
  const Eigen::ArrayXd distance = (y - f.mean).array().abs();
  const auto counts = f.variance.array() < kKnown * prior.array() && distance > least;
  const auto deviation = (f.variance.array() + state.noise_variance).sqrt();
  Vector off = counts.select(distance / deviation, 0.0);
  const auto outliers = (off.array() > kFar).count();
  const double most = std::max(1.0, kFewOutliers * static_cast<double>(y.size()));
  if (outliers == 0 || static_cast<double>(outliers) > most) return std::nullopt;
  return off;
}

}  // namespace

std::vector<Index> without_outliers(const State& state, const MatrixRef& X, const VectorRef& y,
                                    double least) {
  std::vector<Index> rows(static_cast<std::size_t>(y.size()));
  std::iota(rows.begin(), rows.end(), 0);
  if (const std::optional<Vector> off = deviations_with_outliers(state, X, y, least)) {
    std::erase_if(rows, [&](Index i) { return (*off)[i] > kFar; });
  }
  return rows;
}

Vector outlier_weights(const State& state, const MatrixRef& X, const VectorRef& y, double least) {
  const std::optional<Vector> off = deviations_with_outliers(state, X, y, least);
  return off ? Vector(kFar / off->array().max(kFar)) : Vector();
}

double residual_noise(const State& state, const MatrixRef& X, const VectorRef& y, double least) {
  AMPLE_ASSERT(X.rows() == y.size() && least > 0.0);
  if (y.size() == 0) return least;
  const Prediction f = Posterior(state).predict(X);
  const Eigen::ArrayXd is_known =
      (f.variance.array() < kKnown * state.kernel.diagonal(X).array()).cast<double>();
  const Eigen::ArrayXd squares = is_known * (y - f.mean).array().square();
  // The derivative of the log density by σ², of which the sign alone matters. No row counts for
  // more than one at kFar deviations: a single wild target of a thousand is not the noise of all.
  const auto wants_more = [&](double noise) {
    const Eigen::ArrayXd variance = f.variance.array() + noise;
    return ((squares / variance).min(kFar * kFar) - is_known).cwiseQuotient(variance).sum() > 0.0;
  };
  double low = least;
  if (!wants_more(low)) return least;
  double high = 2.0 * low;
  const double most = squares.maxCoeff();
  while (high < most && wants_more(high)) {
    low = high;
    high *= 2.0;
  }
  constexpr int kHalvings = 10;  // to a thousandth
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = std::sqrt(low * high);
    (wants_more(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace ample
