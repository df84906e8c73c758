// The model that explains nothing: every target is N(μ̂, σ̂²), whatever its input.
//
// It is the paper's lower reference point, L_noise = Σ_n log N(y_n; μ̂, σ̂²) with the mean and the
// unbiased variance of all targets so far, and it is how the continual model keeps those running
// statistics. Batches are merged pairwise (Chan, Golub & LeVeque 1983), with deviations from the
// batch's own mean, so a large common offset costs no digits:
//
//   mean = mean_a + δ n_b/n,   m2 = m2_a + m2_b + δ² n_a n_b/n,   δ = mean_b − mean_a, n = n_a +
//   n_b.
//
// Where the past is forgotten, n is what its rows still count. O(N) a batch, four numbers of
// memory.
#pragma once

#include "ample/types.h"

namespace ample {

/// Running mean and variance of all targets.
struct TargetStatistics {
  Index count = 0;      // targets seen
  double weight = 0.0;  // what they count in all: `count` if none is forgotten
  double mean = 0.0;
  double m2 = 0.0;  // Σ_n w_n (y_n − mean)²

  void observe(const VectorRef& y);
  void merge(const TargetStatistics& other);
  /// From now on every target seen counts γ times what it did.
  void forget(double gamma);

  /// The unbiased variance m2/(n − 1), n being the weight; 0 for fewer than two targets or all
  /// equal up to rounding.
  [[nodiscard]] double variance() const;

  /// Σ_n log N(y_n; mean, variance). With a variance of 0 there is no density, and
  /// `fallback_variance`, which must be positive, takes its place: a model's noise variance, say.
  [[nodiscard]] double log_density(const VectorRef& y, double fallback_variance = 1.0) const;

  /// The mean and the variance, n times.
  [[nodiscard]] Prediction predict(Index n) const;
};

}  // namespace ample
