#include "residual_noise.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "ample/posterior.h"
#include "check.h"
#include "linalg.h"

namespace ample {
namespace {

// The share of the prior's variance that is left where a model knows something.
constexpr double kKnown = 0.5;

// Deviations beyond which a row is an outlier.
constexpr double kFar = 10.0;

// The share that a row's own target may have in what is predicted for it.
constexpr double kMostOwn = 0.5;

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
  const Posterior posterior(state);
  const Vector distance = (y - posterior.mean(X)).cwiseAbs();
  // The mean costs O(M) a row, the variance O(M²): it is asked for only where it can matter.
  const double near = std::max(least, kFar * std::sqrt(state.noise_variance));
  std::vector<Index> rows;
  for (Index i = 0; i < y.size(); ++i) {
    if (distance[i] > near) rows.push_back(i);
  }
  if (rows.empty()) return std::nullopt;
  const Matrix there = X(rows, Eigen::all);
  const Eigen::ArrayXd variance = posterior.predict(there).variance.array();
  const Eigen::ArrayXd prior = state.kernel.diagonal(there);
  const Eigen::ArrayXd distances = distance(rows);
  Vector off = Vector::Zero(y.size());
  off(rows) =
      (variance < kKnown * prior).select(distances / (variance + state.noise_variance).sqrt(), 0.0);
  const auto outliers = (off.array() > kFar).count();
  const double most = std::max(1.0, kFewOutliers * static_cast<double>(y.size()));
  if (outliers == 0 || static_cast<double>(outliers) > most) return std::nullopt;
  return off;
}

/// The prior's variance at each row that the inducing points do not determine [N].
Vector beyond_points(const State& state, const MatrixRef& X) {
  Matrix Vt = state.kernel(X, state.Z);
  solve_right(state.L, Op::transpose, Vt);
  return (state.kernel.diagonal(X) - Vt.rowwise().squaredNorm()).cwiseMax(0.0);
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

double residual_noise(const State& state, const MatrixRef& X, const VectorRef& y, double least,
                      Own own) {
  AMPLE_ASSERT(X.rows() == y.size() && least > 0.0);
  if (y.size() == 0) return least;
  const Prediction f = Posterior(state).predict(X);
  const Eigen::ArrayXd is_known =
      (f.variance.array() < kKnown * state.kernel.diagonal(X).array()).cast<double>();
  Eigen::ArrayXd unknown = f.variance;
  Eigen::ArrayXd squares = (y - f.mean).array().square();
  if (own == Own::left_out) {
    // Had a row not been learnt, the state would be 1/(1 − h) times as far off and as uncertain of
    // what its points can know, h being the share of its own target in what is predicted for it.
    const Eigen::ArrayXd beyond = beyond_points(state, X).array().min(unknown);
    const Eigen::ArrayXd learnt = unknown - beyond;
    const Eigen::ArrayXd rest = 1.0 - (learnt / (state.noise_variance + beyond)).min(kMostOwn);
    unknown = beyond + learnt / rest;
    squares /= rest.square();
  }
  squares *= is_known;
  // The derivative of the log density by σ², of which the sign alone matters. No row counts for
  // more than one at kFar deviations: a single wild target of a thousand is not the noise of all.
  const auto wants_more = [&](double noise) {
    const Eigen::ArrayXd variance = unknown + noise;
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
