#include "residual_noise.h"

#include <cmath>

#include "ample/posterior.h"
#include "check.h"

namespace ample {
namespace {

// The share of the prior's variance that is left where a model knows something.
constexpr double kKnown = 0.5;

}  // namespace

double residual_noise(const State& state, const MatrixRef& X, const VectorRef& y, double least) {
  AMPLE_ASSERT(X.rows() == y.size() && least > 0.0);
  if (y.size() == 0) return least;
  const Prediction f = Posterior(state).predict(X);
  const Eigen::ArrayXd is_known =
      (f.variance.array() < kKnown * state.kernel.diagonal(X).array()).cast<double>();
  const Eigen::ArrayXd squares = is_known * (y - f.mean).array().square();
  // The derivative of the log density by σ², of which the sign alone matters.
  const auto wants_more = [&](double noise) {
    const Eigen::ArrayXd variance = f.variance.array() + noise;
    return (squares / variance.square() - is_known / variance).sum() > 0.0;
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
