// How good predictions are: errors of the mean, density and calibration of the distribution, and
// the paper's percentage between the exact and the noise model. O(N) each, or O(N log N) for a
// curve.
//
// y [N] are the targets that were observed. A Prediction is here of the observation, not of the
// function: its variance includes the noise variance. Arguments of unequal size, empty, not
// finite, or with a variance that is not positive throw std::invalid_argument.
//
//   Vector y(2);
//   y << 1, 3;
//   Prediction p{Vector::Constant(2, 1), Vector::Constant(2, 4)};
//   rmse(y, p.mean);       // √((0² + 2²)/2) = 1.414…
//   nlpd(y, p);            // ½ log 2π·4 + ½ · mean(0, 2²)/4 = 1.862…
//   coverage(y, p, 0.95);  // both lie within 1 ± 1.96·2: 1
#pragma once

#include "ample/normal.h"
#include "ample/types.h"

namespace ample {

/// Root mean squared error.
double rmse(const VectorRef& y, const VectorRef& mean);

/// Mean absolute error.
double mae(const VectorRef& y, const VectorRef& mean);

/// Coefficient of determination, 1 − Σ(y − mean)² / Σ(y − ȳ)²: 1 is perfect, 0 as good as the
/// constant ȳ. For constant y it is not defined; then, as in scikit-learn, 1 if perfect, else 0.
double r2(const VectorRef& y, const VectorRef& mean);

/// Mean negative log predictive density, mean of ½ log 2πv + ½ (y − m)²/v.
double nlpd(const VectorRef& y, const Prediction& predicted);

/// Fraction of the targets inside the central interval m ± z√v of probability `level` in (0, 1).
double coverage(const VectorRef& y, const Prediction& predicted, double level);

/// Mean width 2z√v of the central intervals of probability `level`: of two calibrated models the
/// one with narrower intervals knows more.
double interval_width(const Prediction& predicted, double level);

/// Coverage against level; a calibrated model has equal ones.
struct Calibration {
  Vector levels;
  Vector coverage;
  double error;  // mean of |coverage − level|
};

/// The coverage at each of `levels`.
Calibration calibration_curve(const VectorRef& y, const Prediction& predicted,
                              const VectorRef& levels);

/// The paper's percentage, (method − exact)/|noise − exact| · 100, of any metric: 0 is as good as
/// the exact GP, and 100 as bad as the noise model, which knows only mean and variance of y (if
/// the metric is one that is better when lower). Not defined if noise and exact are equal.
double relative_to_exact(double method, double exact, double noise);

}  // namespace ample
