#include "ample/metrics.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <sstream>
#include <stdexcept>
#include <string>

namespace ample {
namespace {

const double kRootTwoPi = std::sqrt(2 * std::numbers::pi);

template <typename... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  std::ostringstream message;
  (message << ... << parts);
  throw std::invalid_argument(message.str());
}

void check_entries(const char* function, const char* name, const VectorRef& v) {
  for (Index i = 0; i < v.size(); ++i) {
    if (!std::isfinite(v[i])) {
      refuse(function, ": ", name, '[', i, "] is ", v[i], ", but must be finite");
    }
  }
}

void check_size(const char* function, const char* name, Index size, Index expected,
                const char* of) {
  if (size != expected) {
    refuse(function, ": ", name, " has ", size, " entries, but must have ", expected,
           " (the size of ", of, ')');
  }
}

void check_mean(const char* function, const VectorRef& y, const VectorRef& mean) {
  if (y.size() == 0) {
    refuse(function, ": y is empty, but must have an entry");
  }
  check_size(function, "mean", mean.size(), y.size(), "y");
  check_entries(function, "y", y);
  check_entries(function, "mean", mean);
}

void check_variance(const char* function, const Vector& variance) {
  check_entries(function, "variance", variance);
  for (Index i = 0; i < variance.size(); ++i) {
    if (!(variance[i] > 0)) {
      refuse(function, ": variance[", i, "] is ", variance[i], ", but must be positive");
    }
  }
}

void check_prediction(const char* function, const VectorRef& y, const Prediction& predicted) {
  check_mean(function, y, predicted.mean);
  check_size(function, "variance", predicted.variance.size(), y.size(), "y");
  check_variance(function, predicted.variance);
}

// Half the width of a central interval of the standard normal distribution.
double half_width(const char* function, double level) {
  if (!(level > 0) || !(level < 1)) {
    refuse(function, ": the level is ", level, ", but must be between 0 and 1");
  }
  return -normal_quantile((1 - level) / 2);
}

// |y − m|/√v, in ascending order
Vector sorted_deviations(const VectorRef& y, const Prediction& predicted) {
  Vector z = (y - predicted.mean).array().abs() / predicted.variance.array().sqrt();
  std::sort(z.begin(), z.end());
  return z;
}

double coverage_of(const Vector& sorted, double half_width) {
  const auto inside = std::upper_bound(sorted.begin(), sorted.end(), half_width) - sorted.begin();
  return static_cast<double>(inside) / static_cast<double>(sorted.size());
}

}  // namespace

double rmse(const VectorRef& y, const VectorRef& mean) {
  check_mean("rmse", y, mean);
  return (y - mean).stableNorm() / std::sqrt(static_cast<double>(y.size()));
}

double mae(const VectorRef& y, const VectorRef& mean) {
  check_mean("mae", y, mean);
  return (y - mean).cwiseAbs().mean();
}

double r2(const VectorRef& y, const VectorRef& mean) {
  check_mean("r2", y, mean);
  const double residual = (y - mean).squaredNorm();
  // Compared exactly: the mean of equal numbers may be off by a rounding error.
  if ((y.array() == y[0]).all()) {
    return residual == 0 ? 1 : 0;
  }
  return 1 - residual / (y.array() - y.mean()).matrix().squaredNorm();
}

double nlpd(const VectorRef& y, const Prediction& predicted) {
  check_prediction("nlpd", y, predicted);
  const auto v = predicted.variance.array();
  const auto squared = (y - predicted.mean).array().square();
  return std::log(kRootTwoPi) + 0.5 * (v.log() + squared / v).mean();
}

double coverage(const VectorRef& y, const Prediction& predicted, double level) {
  check_prediction("coverage", y, predicted);
  return coverage_of(sorted_deviations(y, predicted), half_width("coverage", level));
}

double interval_width(const Prediction& predicted, double level) {
  if (predicted.variance.size() == 0) {
    refuse("interval_width: variance is empty, but must have an entry");
  }
  check_variance("interval_width", predicted.variance);
  return 2 * half_width("interval_width", level) * predicted.variance.cwiseSqrt().mean();
}

Calibration calibration_curve(const VectorRef& y, const Prediction& predicted,
                              const VectorRef& levels) {
  check_prediction("calibration_curve", y, predicted);
  if (levels.size() == 0) {
    refuse("calibration_curve: levels is empty, but must have an entry");
  }
  const Vector sorted = sorted_deviations(y, predicted);
  Calibration curve{levels, Vector(levels.size()), 0};
  for (Index i = 0; i < levels.size(); ++i) {
    curve.coverage[i] = coverage_of(sorted, half_width("calibration_curve", levels[i]));
  }
  curve.error = (curve.coverage - curve.levels).cwiseAbs().mean();
  return curve;
}

double relative_to_exact(double method, double exact, double noise) {
  if (!std::isfinite(method) || !std::isfinite(exact) || !std::isfinite(noise)) {
    refuse("relative_to_exact: method, exact and noise are ", method, ", ", exact, " and ", noise,
           ", but must be finite");
  }
  if (noise == exact) {
    refuse("relative_to_exact: noise is ", noise, ", but must differ from exact");
  }
  return (method - exact) / std::abs(noise - exact) * 100;
}

}  // namespace ample
