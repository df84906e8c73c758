#include "surprise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "check.h"

namespace ample {
namespace {

/// The continued fraction of the regularised incomplete beta function I_x(a, b), by Lentz's
/// algorithm as Thompson and Barnett modified it; for x < (a + 1)/(a + b + 2).
double beta_fraction(double x, double a, double b) {
  constexpr double kTiny = std::numeric_limits<double>::min();
  constexpr double kUnit = std::numeric_limits<double>::epsilon();
  constexpr int kMostTerms = 100'000;  // some √(a + b) are taken
  const auto away_from_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1.0;
  double d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
  double value = d;
  for (int i = 1; i < kMostTerms; ++i) {
    const double m = i;
    const double even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
    d = 1.0 / away_from_zero(1.0 + even * d);
    c = away_from_zero(1.0 + even / c);
    value *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
    d = 1.0 / away_from_zero(1.0 + odd * d);
    c = away_from_zero(1.0 + odd / c);
    const double step = d * c;
    value *= step;
    if (std::abs(step - 1.0) < kUnit) break;
  }
  return value;
}

/// I_x(a, b), given x and 1 − x.
double incomplete_beta(double x, double rest, double a, double b) {
  if (x <= 0.0) return 0.0;
  if (rest <= 0.0) return 1.0;
  const double factor = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                 a * std::log(x) + b * std::log(rest));
  if (x < (a + 1.0) / (a + b + 2.0)) return factor * beta_fraction(x, a, b) / a;
  return 1.0 - factor * beta_fraction(rest, b, a) / b;
}

}  // namespace

double p_value(double chi_squared, Index rows, Index fitted_rows) {
  AMPLE_ASSERT(rows > 0 && fitted_rows >= 0);
  // Beyond these the distribution is that of a known σ², to more digits than matter.
  constexpr double kKnown = 1e7;
  const auto N = static_cast<double>(rows);
  const double n = fitted_rows > 0 ? std::min(static_cast<double>(fitted_rows), kKnown) : kKnown;
  const double sum = n + chi_squared;
  const double p = incomplete_beta(n / sum, chi_squared / sum, 0.5 * n, 0.5 * N);
  return std::clamp(p, 0.0, 1.0);
}

bool is_surprising(double chi_squared, Index rows, Index fitted_rows) {
  constexpr double kFalseAlarms = 1e-6;
  constexpr double kFar = 2.0;
  return chi_squared > kFar * static_cast<double>(rows) &&
         p_value(chi_squared, rows, fitted_rows) < kFalseAlarms;
}

}  // namespace ample
