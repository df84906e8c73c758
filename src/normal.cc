#include "ample/normal.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "check.h"

namespace ample {
namespace {

const double kSlopeAtMedian = std::sqrt(2 * std::numbers::pi);

}  // namespace

double normal_cdf(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double normal_quantile(double p) {
  if (!(p > 0) || !(p < 1)) {
    invalid("normal_quantile: p is {}, but must be between 0 and 1", p);
  }
  // 1 − p and p − ½ are exact where they are used.
  if (p > 0.5) {
    return -normal_quantile(1 - p);
  }
  const bool central = p > 0.25;
  double x = (p - 0.5) * kSlopeAtMedian;
  if (!central) {
    // Abramowitz & Stegun 26.2.23, absolute error 4.5e-4
    const double t = std::sqrt(-2 * std::log(p));
    x = (2.515517 + t * (0.802853 + t * 0.010328)) /
            (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) -
        t;
  }
  // Halley's iteration triples the correct digits: three times from 0.05 are more than all. The
  // error over the density is formed by one exponential that overflows for subnormal p only,
  // which have too few digits to be worth more than the start.
  for (int i = 0; i < 3 && p >= std::numeric_limits<double>::min(); ++i) {
    const double error =
        central ? 0.5 * std::erf(x / std::numbers::sqrt2) - (p - 0.5) : normal_cdf(x) - p;
    const double step = error * kSlopeAtMedian * std::exp(0.5 * x * x);
    x -= step / (1 + 0.5 * x * step);
  }
  return x;
}

}  // namespace ample
