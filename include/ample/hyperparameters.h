// A model's free hyperparameters as one flat vector for the optimiser, and back.
//
// Models hold typed parameters; the optimiser needs x ∈ ℝⁿ in a box. They meet only here:
// x_i = log of the i-th free parameter, kernel parameters first, the noise variance last, fixed
// ones left out. Logarithms remove the units of positive parameters, so that a step of one size
// suits a lengthscale in metres as well as one in microns. By the chain rule
//
//   dF/dx_i = θ_i dF/dθ_i.
#pragma once

#include <string_view>
#include <vector>

#include "ample/kernel.h"
#include "ample/types.h"

namespace ample {

/// A positive that is one number. It is written as one: `Positive(0.1).within(1e-6, 1)`.
struct PositiveNumber {
  PositiveNumber(double number) : value(number) {}  // NOLINT(*-explicit-*)
  /// Throws std::invalid_argument unless it holds one number.
  PositiveNumber(const Positive& positive);  // NOLINT(*-explicit-*)

  [[nodiscard]] PositiveNumber within(double lower_bound, double upper_bound) const {
    PositiveNumber copy = *this;
    copy.lower = lower_bound;
    copy.upper = upper_bound;
    return copy;
  }
  [[nodiscard]] PositiveNumber fixed() const {
    PositiveNumber copy = *this;
    copy.is_fixed = true;
    return copy;
  }

  double value;
  double lower = Positive::kDefaultLower;
  double upper = Positive::kDefaultUpper;
  bool is_fixed = false;
};

/// θ: a kernel and a noise variance, with their bounds.
struct Hyperparameters {
  Kernel kernel;
  /// σ². 1e-6 is the floor of the paper's experiments: on standardised targets a smaller noise only
  /// makes factorisations fail.
  PositiveNumber noise_variance = Positive(0.1).within(1e-6, 1e8);

  /// Throws std::invalid_argument unless the noise variance lies within positive, finite bounds; a
  /// kernel has checked its own parameters. `where` begins the message.
  void check(std::string_view where) const;

  [[nodiscard]] double noise() const { return noise_variance.value; }

  /// Every hyperparameter, fixed ones too: the kernel's, then "noise_variance".
  [[nodiscard]] std::vector<Parameter> parameters() const;

  /// Number of free parameters, the length of x.
  [[nodiscard]] Index size() const;

  /// x, and the box it may move in.
  [[nodiscard]] Vector pack() const;
  [[nodiscard]] Vector lower() const;
  [[nodiscard]] Vector upper() const;

  /// These hyperparameters with the free ones at exp(x), clamped to their bounds: exp(log(bound))
  /// may miss the bound by a rounding.
  [[nodiscard]] Hyperparameters unpack(const Vector& x) const;

  /// dF/dx from dF/dθ for all P kernel parameters, fixed ones too, and dF/dσ².
  void chain(const Vector& theta_gradient, double noise_gradient, Vector& out) const;
};

}  // namespace ample
