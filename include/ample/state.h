// What a model remembers of all the data it has seen: whitened pseudo-data.
//
//   L Lᵀ = K_bb(θ)                        [M,M]  prior covariance of the inducing variables b
//   A    = L⁻¹ (K_bf̂ Σ_ŷ⁻¹ K_f̂b) L⁻ᵀ      [M,M]  ⪰ 0, the precision the data added, whitened
//   c    = L⁻¹ (K_bf̂ Σ_ŷ⁻¹ ŷ)             [M]    the evidence, whitened
//   F    = −½ log|I + A| + ½ cᵀ(I + A)⁻¹c                                              (1)
//
// so that q(b) = N(m, S) with S = L D⁻¹ Lᵀ, m = L D⁻¹ c, D = I + A                      (2).
// The paper (Pescador-Barrios, Filippi & van der Wilk, ICML 2025) carries m, S and the old prior
// instead and subtracts their inverses; here nothing is subtracted. Memory O(M²).
#pragma once

#include "ample/kernel.h"
#include "ample/types.h"

namespace ample {

/// The state, with the factors that predictions need.
struct State {
  Kernel kernel;          // θ
  double noise_variance;  // σ²
  Matrix Z;               // [M,D] inducing inputs
  Matrix L;               // [M,M] lower Cholesky factor of K_bb with jitter; upper triangle zero
  Matrix A;               // [M,M] symmetric
  Vector c;               // [M]
  Matrix L_D;             // [M,M] lower Cholesky factor of D = I + A; upper triangle zero
  Vector w;               // [M]   L_D⁻¹ c
  double F = 0.0;
  double jitter = 0.0;  // ε, the variance of the noise that separates b from f(Z)

  [[nodiscard]] Index size() const { return Z.rows(); }
  [[nodiscard]] Index dimension() const { return Z.cols(); }

  /// A model of inputs of dimension D that has seen nothing: it predicts the prior.
  [[nodiscard]] static State empty(Kernel kernel, double noise_variance, Index D);

  /// Fills L_D, w and F from A and c. False if I + A cannot be factorised.
  [[nodiscard]] bool factorize();
};

}  // namespace ample
