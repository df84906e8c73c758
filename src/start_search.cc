#include "start_search.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "ample/optimum.h"
#include "ample/state.h"

namespace ample {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Kernel scale_lengthscales(const Kernel& kernel, double factor) {
  const std::vector<Parameter> parameters = kernel.parameters();
  Vector values(static_cast<Index>(parameters.size()));
  for (Index p = 0; p < values.size(); ++p) {
    const Parameter& parameter = parameters[static_cast<std::size_t>(p)];
    const bool scaled = !parameter.fixed && parameter.kind == Parameter::Kind::lengthscale;
    values[p] = scaled ? std::clamp(factor * parameter.value, parameter.lower, parameter.upper)
                       : parameter.value;
  }
  return kernel.with_values(values);
}

}  // namespace

Hyperparameters search_lengthscales(const Hyperparameters& start, const Matrix& X,
                                    const Sites& sites) {
  // Some hundred rows tell a lengthscale, and cost nothing beside the first fit. Every k-th, since
  // neighbours in a stream are often neighbours in space.
  constexpr Index kRows = 400;
  const Index step = (X.rows() + kRows - 1) / kRows;
  const auto every = Eigen::seq(Index{0}, X.rows() - 1, step);
  const Matrix some_X = X(every, Eigen::all);
  const Sites some = sites.weighted()
                         ? Sites(Vector(sites.target(every)), Vector(sites.weight(every)))
                         : Sites(Vector(sites.target(every)));

  Hyperparameters best = start;
  double best_density = -kInfinity;
  for (const double factor : {1.0, 1.0 / 3.0, 0.1, 1.0 / 30.0}) {
    Hyperparameters trial = start;
    trial.kernel = scale_lengthscales(start.kernel, factor);
    const State prior = State::empty(trial.kernel, trial.noise(), X.cols());
    // With no past, L* is the log density of the batch.
    const double density = optimum(prior, some_X, some).value_or(-kInfinity);
    if (density > best_density) {
      best = std::move(trial);
      best_density = density;
    }
  }
  return best;
}

}  // namespace ample
