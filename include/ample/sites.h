// The rows of a batch as the bound sees them: each has a target t_n and a precision λ_n,
//
//   log p(t | f) = Σ_n log N(t_n; f_n, 1/λ_n),   λ_n = w_n/σ²                  (derivation §16)
//
// Gaussian noise of one variance σ² has all weights w_n = 1. A row that was measured twice as
// precisely, or that stands for two rows, has the weight 2. The common factor 1/σ² is a
// hyperparameter and moves during a fit; targets and weights belong to the data.
#pragma once

#include "ample/types.h"

namespace ample {

struct Sites {
  /// All weights 1: targets as they are.
  template <class Derived>
  Sites(const Eigen::MatrixBase<Derived>& targets)  // NOLINT(*-explicit-*): the common case
      : target(targets) {}
  /// Throws std::invalid_argument unless there is one positive, finite weight for each target.
  Sites(const VectorRef& targets, const VectorRef& weights);

  [[nodiscard]] Index size() const { return target.size(); }
  [[nodiscard]] bool weighted() const { return weight.size() > 0; }

  /// ½ Σ_n log(λ_n/2π).
  [[nodiscard]] double log_constant(double noise_variance) const;

  /// √w_n t_n: in these units every row has the precision 1/σ².
  [[nodiscard]] Vector scaled_target() const;

  Vector target;  // t_n   [N]
  Vector weight;  // w_n   [N]; empty if all are 1
};

}  // namespace ample
