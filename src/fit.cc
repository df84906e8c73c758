#include "fit.h"

#include <limits>
#include <utility>

namespace ample {

Fitted fit(OnlineBound& bound, bool started, const Hyperparameters& start, const Matrix& Z_start,
           bool moving, const MinimizeOptions& options, Curvature& curvature,
           const ShouldStop& should_stop) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Index n = start.size();
  const Index in_Z = moving ? Z_start.size() : 0;
  Vector x0(n + in_Z);
  Vector lower(n + in_Z);
  Vector upper(n + in_Z);
  x0.head(n) = start.pack();
  lower.head(n) = start.lower();
  upper.head(n) = start.upper();
  x0.tail(in_Z) = Z_start.reshaped().head(in_Z);
  lower.tail(in_Z).setConstant(-kInfinity);
  upper.tail(in_Z).setConstant(kInfinity);

  Matrix Z = Z_start;
  Vector log_gradient(n);
  Vector last;  // where the bound was evaluated last
  const Objective objective = [&](const Vector& x, double& value, Vector& gradient) {
    const bool is_there = std::exchange(started, false);  // the first evaluation is at the start
    last.resize(0);
    const Hyperparameters theta = start.unpack(x.head(n));
    if (in_Z > 0) Z.reshaped() = x.tail(in_Z);
    if (!is_there && !bound.factorize(theta.kernel, theta.noise(), Z)) return false;
    value = -bound.value();
    const BoundGradient& g = bound.gradient();
    theta.chain(g.theta, g.noise_variance, log_gradient);
    gradient.head(n) = -log_gradient;
    if (in_Z > 0) gradient.tail(in_Z) = -g.Z.reshaped();
    last = x;
    return true;
  };
  Fitted result{start, Z_start,
                minimize(objective, x0, lower, upper, options, &curvature, should_stop), false};
  if (!result.summary.usable()) return result;
  result.theta = start.unpack(result.summary.x.head(n));
  if (in_Z > 0) result.Z.reshaped() = result.summary.x.tail(in_Z);
  result.bound_is_there = last.size() > 0 && last == result.summary.x;
  return result;
}

}  // namespace ample
