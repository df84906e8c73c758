// Exact gradients against central differences.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "ample/types.h"

namespace ample::testing {

/// |value − expected| / max(1, |expected|); infinite if either is not a finite number.
inline double relative_error(double value, double expected) {
  if (!std::isfinite(value) || !std::isfinite(expected)) {
    return std::numeric_limits<double>::infinity();
  }
  return std::abs(value - expected) / std::max(1.0, std::abs(expected));
}

/// The worst entry. A difference in shape is infinite.
inline double relative_error(const MatrixRef& value, const MatrixRef& expected) {
  if (value.rows() != expected.rows() || value.cols() != expected.cols()) {
    return std::numeric_limits<double>::infinity();
  }
  double worst = 0.0;
  for (Index j = 0; j < value.cols(); ++j) {
    for (Index i = 0; i < value.rows(); ++i) {
      worst = std::max(worst, relative_error(value(i, j), expected(i, j)));
    }
  }
  return worst;
}

using Objective = std::function<double(const Vector&)>;

/// (f(u + h e_i) − f(u − h e_i)) / 2h.
inline double central_difference(const Objective& f, const Vector& u, Index i, double h) {
  Vector v = u;
  v[i] = u[i] + h;
  const double right = v[i];
  const double above = f(v);
  v[i] = u[i] - h;
  return (above - f(v)) / (right - v[i]);
}

/// With the step that balances truncation and rounding of a function of size one.
inline Vector central_differences(const Objective& f, const Vector& u) {
  const double step = std::cbrt(std::numeric_limits<double>::epsilon());
  return Vector::NullaryExpr(u.size(), [&](Index i) {
    return central_difference(f, u, i, step * std::max(1.0, std::abs(u[i])));
  });
}

/// A derivative and what it may be wrong by.
struct Slope {
  double value;
  double error;
};

/// Richardson extrapolation over halved steps, as deep as it pays (Ridders 1982): for functions
/// that curve strongly or carry rounding noise, at ten times the cost.
inline Slope extrapolated_slope(const Objective& f, const Vector& u, Index i) {
  constexpr int kLevels = 10;
  std::vector<double> previous;
  Slope best{0.0, std::numeric_limits<double>::infinity()};
  double h = 0.005 * std::max(1.0, std::abs(u[i]));
  for (int level = 0; level < kLevels; ++level, h /= 2.0) {
    std::vector<double> row{central_difference(f, u, i, h)};
    double power = 4.0;
    for (std::size_t k = 0; k < previous.size(); ++k, power *= 4.0) {
      row.push_back((power * row[k] - previous[k]) / (power - 1.0));
      const double error =
          std::max(std::abs(row[k + 1] - row[k]), std::abs(row[k + 1] - previous[k]));
      if (error < best.error) best = {row[k + 1], error};
    }
    previous = row;
  }
  return best;
}

/// The worst relative error of `gradient` as the gradient of f at u. Where the plain difference
/// does not confirm an entry, the extrapolated one decides.
inline double gradient_error(const Objective& f, const Vector& u, const Vector& gradient) {
  constexpr double kConfirmed = 1e-7;
  Vector slopes = central_differences(f, u);
  if (gradient.size() != u.size()) return std::numeric_limits<double>::infinity();
  for (Index i = 0; i < u.size(); ++i) {
    if (relative_error(gradient[i], slopes[i]) > kConfirmed) {
      slopes[i] = extrapolated_slope(f, u, i).value;
    }
  }
  return relative_error(gradient, slopes);
}

}  // namespace ample::testing
