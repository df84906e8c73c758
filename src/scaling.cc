#include "ample/scaling.h"

#include <cmath>

#include "check.h"

namespace ample {
namespace {

/// The sample standard deviation, or 1 where there is none to speak of.
double spread(const VectorRef& values, double mean) {
  if (values.size() < 2) return 1.0;
  const double sd =
      std::sqrt((values.array() - mean).square().sum() / static_cast<double>(values.size() - 1));
  // A constant column in floating point has a spread of a few units in its last place.
  const double rounding = 1e-12 * std::max(std::abs(mean), values.cwiseAbs().maxCoeff());
  return sd > rounding && std::isfinite(sd) ? sd : 1.0;
}

}  // namespace

Scaling Scaling::identity(Index D) { return {Vector::Zero(D), Vector::Ones(D), 0.0, 1.0}; }

Scaling Scaling::standardize(const MatrixRef& X, const VectorRef& y) {
  Scaling s = identity(X.cols());
  if (X.rows() == 0) return s;
  for (Index d = 0; d < X.cols(); ++d) {
    s.input_mean[d] = X.col(d).mean();
    s.input_scale[d] = spread(X.col(d), s.input_mean[d]);
  }
  s.target_mean = y.mean();
  s.target_scale = spread(y, s.target_mean);
  return s;
}

void Scaling::check(Index D) const {
  check_rows("Scaling", "input_mean", input_mean.size(), D, "the input dimension");
  check_rows("Scaling", "input_scale", input_scale.size(), D, "the input dimension");
  check_finite("Scaling", "input_mean", input_mean);
  for (const double scale : input_scale) check_positive("Scaling", "an input_scale", scale);
  if (!std::isfinite(target_mean)) {
    invalid("Scaling: target_mean is {}, but must be finite", target_mean);
  }
  check_positive("Scaling", "target_scale", target_scale);
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
