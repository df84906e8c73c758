#include "evidence_fit.h"

#include <cmath>
#include <vector>

namespace ample {
namespace {

constexpr double kPriorDeviation = 3.0;

/// Adds the prior to −log p(y) and its gradient, both in the logarithms x of the free parameters.
void add_prior(const std::vector<Parameter>& parameters, Index D, const Vector& x, double& value,
               Vector& gradient) {
  const double centre = 0.5 * std::log(static_cast<double>(D));
  Index i = 0;
  for (const Parameter& p : parameters) {
    if (p.fixed) continue;
    if (p.kind == Parameter::Kind::lengthscale) {
      const double u = (x[i] - centre) / kPriorDeviation;
      value += 0.5 * u * u;
      gradient[i] += u / kPriorDeviation;
    }
    ++i;
  }
}

}  // namespace

EvidenceFit maximize_evidence(const Evidence& evidence, Index D, const Hyperparameters& start,
                              const MinimizeOptions& options, Curvature* curvature,
                              const ShouldStop& should_stop) {
  const std::vector<Parameter> parameters = start.parameters();
  EvidenceGradient natural;
  const Objective objective = [&](const Vector& x, double& value, Vector& gradient) {
    const Hyperparameters trial = start.unpack(x);
    if (!evidence(trial, value, natural)) return false;
    value = -value;
    trial.chain(-natural.theta, -natural.noise_variance, gradient);
    add_prior(parameters, D, x, value, gradient);
    return true;
  };
  EvidenceFit fit{start, 0.0,
                  minimize(objective, start.pack(), start.lower(), start.upper(), options,
                           curvature, should_stop)};
  if (!fit.summary.usable()) return fit;
  fit.theta = start.unpack(fit.summary.x);
  fit.log_evidence = -fit.summary.value;
  return fit;
}

EvidenceFit fit_evidence(const Hyperparameters& start, const MatrixRef& X, const VectorRef& y,
                         const MinimizeOptions& options, Curvature* curvature,
                         const ShouldStop& should_stop) {
  ExactEvidence exact(X, y);
  const Evidence evidence = [&](const Hyperparameters& theta, double& value,
                                EvidenceGradient& gradient) {
    if (!exact.factorize(theta.kernel, theta.noise())) return false;
    value = exact.value();
    gradient = exact.gradient();
    return true;
  };
  return maximize_evidence(evidence, X.cols(), start, options, curvature, should_stop);
}

}  // namespace ample
