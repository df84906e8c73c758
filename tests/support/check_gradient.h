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
/// that curve strongly or carry rounding noise, at ten times the cost. The noise is measured, by
/// arguments that are all but equal, and is part of the error.
inline Slope extrapolated_slope(const Objective& f, const Vector& u, Index i) {
  constexpr int kLevels = 10;
  const double size = std::max(1.0, std::abs(u[i]));
  double noise = 0.0;
  const double here = f(u);
  for (int k = 1; k <= 4; ++k) {
    Vector v = u;
    v[i] += k * 1e-13 * size;
    noise = std::max(noise, std::abs(f(v) - here));
  }
  std::vector<double> previous;
  Slope best{0.0, std::numeric_limits<double>::infinity()};
  double h = 0.005 * size;
  for (int level = 0; level < kLevels; ++level, h /= 2.0) {
    std::vector<double> row{central_difference(f, u, i, h)};
    double power = 4.0;
    for (std::size_t k = 0; k < previous.size(); ++k, power *= 4.0) {
      row.push_back((power * row[k] - previous[k]) / (power - 1.0));
      const double truncation =
          std::max(std::abs(row[k + 1] - row[k]), std::abs(row[k + 1] - previous[k]));
      const double error = std::max(truncation, noise / h);
      if (error < best.error) best = {row[k + 1], error};
    }
    previous = row;
  }
  return best;
}

/// The relative error of `slope` as entry i of the gradient of f at u. Where the plain difference
/// does not confirm it, the extrapolated one decides, as far as it is itself exact; one that is not
/// good to four digits decides nothing, and the error is infinite.
inline double slope_error(const Objective& f, const Vector& u, Index i, double slope) {
  constexpr double kConfirmed = 1e-7;
  const double step = std::cbrt(std::numeric_limits<double>::epsilon());
  const double plain = central_difference(f, u, i, step * std::max(1.0, std::abs(u[i])));
  const double error = relative_error(slope, plain);
  if (error <= kConfirmed) return error;
  const Slope exact = extrapolated_slope(f, u, i);
  const double size = std::max(1.0, std::abs(exact.value));
  if (!(exact.error <= 1e-4 * size)) return std::numeric_limits<double>::infinity();
  return std::max(0.0, relative_error(slope, exact.value) - exact.error / size);
}

/// The worst of all entries.
inline double gradient_error(const Objective& f, const Vector& u, const Vector& gradient) {
  if (gradient.size() != u.size()) return std::numeric_limits<double>::infinity();
  double worst = 0.0;
  for (Index i = 0; i < u.size(); ++i) worst = std::max(worst, slope_error(f, u, i, gradient[i]));
  return worst;
}

}  // namespace ample::testing
