#include "residual_noise.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <vector>

#include "ample/posterior.h"
#include "check.h"

namespace ample {
namespace {

// The share of the prior's variance that is left where a model knows something.
constexpr double kKnown = 0.5;

// Deviations beyond which a row is an outlier.
constexpr double kFar = 10.0;

// The share of all rows that outliers may be: of more it is the model that is wrong.
constexpr double kFewOutliers = 0.01;

}  // namespace

std::vector<Index> without_outliers(const State& state, const MatrixRef& X, const VectorRef& y) {
  AMPLE_ASSERT(X.rows() == y.size());
  std::vector<Index> all(static_cast<std::size_t>(y.size()));
  std::iota(all.begin(), all.end(), 0);
  if (y.size() == 0) return all;
  const Prediction f = Posterior(state).predict(X);
  const Vector k = state.kernel.diagonal(X);
  const auto is_outlier = [&](Index i) {
    const double variance = f.variance[i] + state.noise_variance;
    const double off = y[i] - f.mean[i];
    return f.variance[i] < kKnown * k[i] && off * off > kFar * kFar * variance;
  };
  std::vector<Index> rest;
  std::ranges::remove_copy_if(all, std::back_inserter(rest), is_outlier);
  const auto outliers = static_cast<double>(all.size() - rest.size());
  return outliers <= kFewOutliers * static_cast<double>(all.size()) ? rest : all;
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
