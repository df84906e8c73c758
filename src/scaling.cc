#include "ample/scaling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "check.h"

namespace ample {
namespace {

// Their squares are far from underflow and overflow.
constexpr double kLeastTargetScale = 1e-140;
constexpr double kMostTargetScale = 1e140;
constexpr double kMostMean = 1e300;

struct Spread {
  double mean;
  double deviation;  // 1 where there is none to speak of
};

/// Mean and sample deviation by differences from the first value, which are exact where values are
/// close, in units of the largest, so that squares do not overflow.
Spread spread(const VectorRef& values) {
  const double first = values[0];
  const Eigen::ArrayXd differences = values.array() - first;
  const double largest = differences.abs().maxCoeff();
  // A constant in floating point varies by a few units in its last place.
  constexpr double kUnits = 4.0 * std::numeric_limits<double>::epsilon();
  if (!(largest > kUnits * values.cwiseAbs().maxCoeff())) return {first, 1.0};
  if (!std::isfinite(largest)) {
    invalid("Scaling: values from {} to {} are too far apart to be standardised", values.minCoeff(),
            values.maxCoeff());
  }
  const Eigen::ArrayXd units = differences / largest;
  const double mean = units.mean();
  const double variance = (units - mean).square().sum() / static_cast<double>(values.size() - 1);
  return {first + largest * mean, largest * std::sqrt(variance)};
}

}  // namespace

Scaling Scaling::identity(Index D) { return {Vector::Zero(D), Vector::Ones(D), 0.0, 1.0}; }

Scaling Scaling::standardize(const MatrixRef& X, const VectorRef& y) {
  Scaling s = identity(X.cols());
  if (X.rows() == 0) return s;
  for (Index d = 0; d < X.cols(); ++d) {
    const Spread input = spread(X.col(d));
    s.input_mean[d] = input.mean;
    s.input_scale[d] = input.deviation;
  }
  const Spread target = spread(y);
  s.target_mean = target.mean;
  s.target_scale = target.deviation;
  return s;
}

void Scaling::check(Index D) const {
  check_rows("Scaling", "input_mean", input_mean.size(), D, "the input dimension");
  check_rows("Scaling", "input_scale", input_scale.size(), D, "the input dimension");
  check_finite("Scaling", "input_mean", input_mean);
  for (const double scale : input_scale) check_positive("Scaling", "an input_scale", scale);
  for (Index d = 0; d < D; ++d) {
    if (const double most = std::max(std::abs(input_mean[d]), input_scale[d]); most > kMostMean) {
      invalid("Scaling: input {} has a mean or scale of {}, but must have at most {}", d, most,
              kMostMean);
    }
  }
  if (!std::isfinite(target_mean)) {
    invalid("Scaling: target_mean is {}, but must be finite", target_mean);
  }
  if (std::abs(target_mean) > kMostMean) {
    invalid("Scaling: target_mean is {}, but must be at most {}", target_mean, kMostMean);
  }
  check_positive("Scaling", "target_scale", target_scale);
  if (!(target_scale >= kLeastTargetScale && target_scale <= kMostTargetScale)) {
    invalid("Scaling: target_scale is {}, but must be from {} to {}: variances have its square",
            target_scale, kLeastTargetScale, kMostTargetScale);
  }
}

Matrix Scaling::inputs(const MatrixRef& X) const {
  return (X.rowwise() - input_mean.transpose()).array().rowwise() / input_scale.transpose().array();
}

Vector Scaling::targets(const VectorRef& y) const {
  return (y.array() - target_mean) / target_scale;
}

Prediction Scaling::restore(Prediction p) const {
  p.mean = (p.mean.array() * target_scale + target_mean).matrix();
  p.variance *= target_scale * target_scale;
  return p;
}

}  // namespace ample
