#include "ample/target_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "check.h"

namespace ample {

void TargetStatistics::observe(const VectorRef& y) {
  check_finite("observe", "y", y);
  if (y.size() == 0) return;
  // Two passes: the sum of deviations, zero but for rounding, corrects the mean and the square.
  const auto n = static_cast<double>(y.size());
  const double guess = y.mean();
  const double rest = (y.array() - guess).sum();
  const double m2_batch = (y.array() - guess).square().sum() - rest * rest / n;
  merge({.count = y.size(), .weight = n, .mean = guess + rest / n, .m2 = std::max(m2_batch, 0.0)});
}

void TargetStatistics::forget(double gamma) {
  AMPLE_ASSERT(gamma >= 0.0 && gamma <= 1.0);
  weight *= gamma;
  m2 *= gamma;
}

void TargetStatistics::merge(const TargetStatistics& other) {
  if (other.count == 0) return;
  const double n_a = weight;
  const double n_b = other.weight;
  const double n = n_a + n_b;
  const double delta = other.mean - mean;
  count += other.count;
  weight = n;
  if (n == 0.0) return;  // all forgotten
  mean += delta * (n_b / n);
  m2 += other.m2 + delta * delta * (n_a * n_b / n);
}

double TargetStatistics::variance() const {
  if (weight < 2.0) return 0.0;
  const double unbiased = m2 / (weight - 1.0);
  // Equal targets leave, after merges, the rounding of the mean: a few (ε · mean)² each.
  const double rounding = std::numeric_limits<double>::epsilon() * mean;
  return unbiased > 16.0 * rounding * rounding ? unbiased : 0.0;
}

double TargetStatistics::log_density(const VectorRef& y, double fallback_variance) const {
  check_positive("log_density", "fallback_variance", fallback_variance);
  const double used = variance() > 0.0 ? variance() : fallback_variance;
  return -0.5 * static_cast<double>(y.size()) * std::log(2.0 * std::numbers::pi * used) -
         0.5 * (y.array() - mean).square().sum() / used;
}

Prediction TargetStatistics::predict(Index n) const {
  return {.mean = Vector::Constant(n, mean), .variance = Vector::Constant(n, variance())};
}

}  // namespace ample
