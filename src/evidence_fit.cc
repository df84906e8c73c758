#include "evidence_fit.h"

#include <cmath>
#include <vector>

#include "ample/exact_gp.h"

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

EvidenceFit fit_evidence(const Hyperparameters& start, const MatrixRef& X, const VectorRef& y,
                         const MinimizeOptions& options, Curvature* curvature,
                         const ShouldStop& should_stop) {
  const std::vector<Parameter> parameters = start.parameters();
  ExactEvidence evidence(X, y);
  const Objective objective = [&](const Vector& x, double& value, Vector& gradient) {
    const Hyperparameters trial = start.unpack(x);
    if (!evidence.factorize(trial.kernel, trial.noise())) return false;
    value = -evidence.value();
    const EvidenceGradient natural = evidence.gradient();
    trial.chain(-natural.theta, -natural.noise_variance, gradient);
    add_prior(parameters, X.cols(), x, value, gradient);
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

}  // namespace ample
