// What a model knows at one moment, in the units of the data. Immutable and shared: any number of
// threads may ask it at once, also while the model goes on learning.
//
//   std::shared_ptr<const Predictor> now = gp.predictor();   // O(1)
//   Prediction p = now->predict(X);                          // whatever gp.observe() does
//   meanwhile
#pragma once

#include <cstdint>

#include "ample/posterior.h"
#include "ample/scaling.h"
#include "ample/types.h"

namespace ample {

class Predictor {
 public:
  /// `state` is in scaled units. Throws std::invalid_argument if the scaling does not suit it.
  Predictor(State state, Scaling scaling);

  [[nodiscard]] Prediction predict(const MatrixRef& X, Target target = Target::function) const;
  [[nodiscard]] JointPrediction predict_joint(const MatrixRef& X,
                                              Target target = Target::function) const;
  /// Joint samples, one a column   [N,count].
  [[nodiscard]] Matrix sample(const MatrixRef& X, Index count, std::uint64_t seed,
                              Target target = Target::function) const;
  /// Derivatives of mean and variance with respect to the query points.
  [[nodiscard]] PredictionGradient gradient(const MatrixRef& X) const;

  /// M, and the inducing inputs in the units of the data   [M,D].
  [[nodiscard]] Index size() const { return state().size(); }
  [[nodiscard]] Matrix inducing_inputs() const;
  [[nodiscard]] Index dimension() const { return state().dimension(); }

  /// In scaled units.
  [[nodiscard]] const State& state() const { return posterior_.state(); }
  [[nodiscard]] const Posterior& posterior() const { return posterior_; }
  [[nodiscard]] const Scaling& scaling() const { return scaling_; }

 private:
  void check_queries(const char* where, const MatrixRef& X) const;

  Posterior posterior_;
  Scaling scaling_;
};

}  // namespace ample
