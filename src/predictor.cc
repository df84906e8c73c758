#include "ample/predictor.h"

#include "check.h"

namespace ample {

Predictor::Predictor(State state, Scaling scaling)
    : posterior_(std::move(state)), scaling_(std::move(scaling)) {
  scaling_.check(dimension());
}

// Before scaling: a value that is not finite is reported as it was given.
void Predictor::check_queries(const char* where, const MatrixRef& X) const {
  check_columns(where, "X", X.cols(), dimension(), "the model's input dimension");
  check_finite(where, "X", X);
}

namespace {

/// What is not finite does not leave the library. Only a kernel that grows with its inputs, or that
/// was made enormous, comes so far.
void check_results(const char* where, const MatrixRef& X, bool are_finite) {
  if (are_finite) return;
  const double most = X.size() > 0 ? X.cwiseAbs().maxCoeff() : 0.0;
  throw NumericalError(fmt::format(
      "{}: the results overflow at inputs of up to {:.3g}; ask for inputs nearer to those learnt, "
      "or rescale the data",
      where, most));
}

}  // namespace

Prediction Predictor::predict(const MatrixRef& X, Target target) const {
  check_queries("predict", X);
  Prediction p = scaling_.restore(posterior_.predict(scaling_.inputs(X), target));
  check_results("predict", X, p.mean.allFinite() && p.variance.allFinite());
  return p;
}

JointPrediction Predictor::predict_joint(const MatrixRef& X, Target target) const {
  check_queries("predict_joint", X);
  JointPrediction p = posterior_.predict_joint(scaling_.inputs(X), target);
  p.mean = (p.mean.array() * scaling_.target_scale + scaling_.target_mean).matrix();
  p.covariance *= scaling_.target_scale * scaling_.target_scale;
  check_results("predict_joint", X, p.mean.allFinite() && p.covariance.allFinite());
  return p;
}

Matrix Predictor::sample(const MatrixRef& X, Index count, std::uint64_t seed, Target target) const {
  check_queries("sample", X);
  Matrix samples = posterior_.sample(scaling_.inputs(X), count, seed, target);
  samples = (samples.array() * scaling_.target_scale + scaling_.target_mean).matrix();
  check_results("sample", X, samples.allFinite());
  return samples;
}

PredictionGradient Predictor::gradient(const MatrixRef& X) const {
  check_queries("gradient", X);
  PredictionGradient g = posterior_.gradient(scaling_.inputs(X));
  const auto per_input = scaling_.input_scale.cwiseInverse().transpose().array();
  const double target_scale = scaling_.target_scale;
  g.mean = (g.mean.array().rowwise() * per_input * target_scale).matrix();
  g.variance = (g.variance.array().rowwise() * per_input * (target_scale * target_scale)).matrix();
  check_results("gradient", X, g.mean.allFinite() && g.variance.allFinite());
  return g;
}

Matrix Predictor::inducing_inputs() const {
  return (state().Z.array().rowwise() * scaling_.input_scale.transpose().array()).rowwise() +
         scaling_.input_mean.transpose().array();
}

}  // namespace ample
