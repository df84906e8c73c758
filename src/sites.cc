#include "ample/sites.h"

#include <cmath>
#include <numbers>

#include "check.h"

namespace ample {

Sites::Sites(const VectorRef& targets, const VectorRef& weights)
    : target(targets), weight(weights) {
  check_rows("Sites", "weights", weight.size(), target.size(), "the targets");
  for (const double w : weight) check_positive("Sites", "a weight", w);
}

double Sites::log_constant(double noise_variance) const {
  const double all_one =
      -0.5 * static_cast<double>(size()) * std::log(2.0 * std::numbers::pi * noise_variance);
  return weighted() ? all_one + 0.5 * weight.array().log().sum() : all_one;
}

Vector Sites::scaled_target() const {
  if (!weighted()) return target;
  return target.array() * weight.array().sqrt();
}

}  // namespace ample
