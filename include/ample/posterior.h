// Predictions from a state: marginals, covariances, samples and derivatives.
//
//   v = L⁻¹ k(Z, x*),  u = L_D⁻¹ v,  mean = uᵀw,  var = k** − vᵀv + uᵀu                  (3)
//
// O(M²) a query. Of many queries at once, four for each inducing point or more, the two solves are
// joined into one product for O(M³) beforehand, which changes results by rounding. Memory is O(M)
// per row of a block, however many queries there are.
#pragma once

#include <cstdint>

#include "ample/state.h"
#include "ample/types.h"

namespace ample {

/// What is predicted: the function f(x), or a new observation y = f(x) + noise of it.
enum class Target { function, observation };

/// Derivatives of the marginals with respect to each query point.
struct PredictionGradient {
  Matrix mean;      // [N,D]
  Matrix variance;  // [N,D]
};

/// A joint Gaussian over N query points.
struct JointPrediction {
  Vector mean;        // [N]
  Matrix covariance;  // [N,N]
};

/// What a state predicts, in its own scaled units.
class Posterior {
 public:
  explicit Posterior(State state);

  [[nodiscard]] const State& state() const { return state_; }

  [[nodiscard]] Prediction predict(const MatrixRef& X, Target target = Target::function) const;
  /// The means alone [N], at O(M) a query.
  [[nodiscard]] Vector mean(const MatrixRef& X) const;
  [[nodiscard]] JointPrediction predict_joint(const MatrixRef& X,
                                              Target target = Target::function) const;

  /// `count` joint samples, one a column [N,count]; the same seed gives the same samples. Throws
  /// NumericalError if the covariance cannot be factorised even with jitter.
  [[nodiscard]] Matrix sample(const MatrixRef& X, Index count, std::uint64_t seed,
                              Target target = Target::function) const;

  [[nodiscard]] PredictionGradient gradient(const MatrixRef& X) const;

 private:
  void check_queries(const char* where, const MatrixRef& X) const;
  void predict_blocks(const MatrixRef& X, Prediction& p) const;
  [[nodiscard]] Vector weights() const;

  State state_;
};

}  // namespace ample
