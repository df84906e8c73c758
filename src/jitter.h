// ε, the variance of the noise that separates inducing variables from the function, b = f(Z) + √ε·
// noise (derivation §1, decision 0004): σ², but at most 1e-8 and at least 5e-10 times the
// mean prior variance.
//
// At its most it carries a Cholesky factorisation of a thousand nearly dependent points and moves
// no prediction. For data almost without noise that is too much: where data points are inducing
// points the bound stays up to ε/2σ² nats each below its optimum, and a threshold below that sum
// cannot be met by any number of points.
#pragma once

namespace ample {

struct Jitter {
  double factor;  // multiplier of σ² if `follows_noise`, otherwise of the mean prior variance
  bool follows_noise;

  [[nodiscard]] double value(double mean_prior_variance, double noise_variance) const {
    return factor * (follows_noise ? noise_variance : mean_prior_variance);
  }
};

inline Jitter first_jitter(double mean_prior_variance, double noise_variance) {
  constexpr double kMostOfPrior = 1e-8;
  constexpr double kLeastOfPrior = 5e-10;
  if (noise_variance >= kMostOfPrior * mean_prior_variance) return {kMostOfPrior, false};
  if (noise_variance <= kLeastOfPrior * mean_prior_variance) return {kLeastOfPrior, false};
  return {1.0, true};
}

}  // namespace ample
