// The standard normal distribution: what intervals are made of.
#pragma once

namespace ample {

/// Φ(x) of the standard normal distribution.
double normal_cdf(double x);

/// Φ⁻¹(p) for p in (0, 1), to a relative 1e-15: Halley's iteration on erf near the median and on
/// erfc in the tails, where each is accurate.
double normal_quantile(double p);

}  // namespace ample
