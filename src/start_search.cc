#include "start_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "ample/optimum.h"
#include "ample/state.h"
#include "check.h"
#include "evidence_fit.h"

namespace ample {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Every k-th row, so that at most `most` are left: neighbours in a stream are often neighbours in
/// space.
auto thinned(Index rows, Index most) {
  return Eigen::seq(Index{0}, rows - 1, (rows + most - 1) / most);
}

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
  // Some hundred rows tell a lengthscale, and cost nothing beside the first fit.
  constexpr Index kRows = 400;
  const auto every = thinned(X.rows(), kRows);
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

namespace {

enum class Family { squared_exponential, matern52, matern32 };

Kernel make_kernel(Family family, double variance, const Positive& lengthscale) {
  switch (family) {
    case Family::squared_exponential:
      return SquaredExponential{.variance = variance, .lengthscale = lengthscale};
    case Family::matern52:
      return Matern52{.variance = variance, .lengthscale = lengthscale};
    case Family::matern32:
      return Matern32{.variance = variance, .lengthscale = lengthscale};
  }
  AMPLE_ASSERT(false);
}

/// The free parameters of a stationary kernel with one lengthscale for each of D inputs.
struct Shape {
  double variance;
  std::vector<double> lengthscale;
};

Shape shape_of(const Kernel& kernel, Index D) {
  Shape shape{1.0, {}};
  for (const Parameter& p : kernel.parameters()) {
    if (p.kind == Parameter::Kind::variance) shape.variance = p.value;
    if (p.kind == Parameter::Kind::lengthscale) shape.lengthscale.push_back(p.value);
  }
  if (shape.lengthscale.size() == 1) {
    shape.lengthscale.assign(static_cast<std::size_t>(D), shape.lengthscale.front());
  }
  return shape;
}

/// Candidates one after the other, each beginning where a simpler one ended.
class KernelSearch {
 public:
  KernelSearch(const Hyperparameters& start, const MatrixRef& X, const VectorRef& y,
               const ShouldStop& should_stop)
      : start_(start), X_(X), y_(y), should_stop_(should_stop) {}

  FoundKernel run() {
    const Index D = X_.cols();
    const double root = std::sqrt(static_cast<double>(D));
    // A start that is far too long sees only noise, one far too short only noise-free data.
    std::optional<EvidenceFit> one;
    for (const double lengthscale : {root, root / 3.0}) {
      EvidenceFit fit = evaluate(Family::squared_exponential, {1.0, {lengthscale}}, 0.1, 40);
      if (fit.summary.usable() && (!one || fit.log_evidence > one->log_evidence)) one = fit;
    }
    if (!one) return {start_, "no candidate could be evaluated"};
    consider("se", *one);
    std::optional<EvidenceFit> each;
    if (D > 1) {
      each = evaluate(Family::squared_exponential, shape_of(one->theta.kernel, D),
                      one->theta.noise(), 60);
      if (each->summary.usable()) consider("se, a lengthscale each", *each);
    }
    try_family(Family::matern52, "matern52", *one, each);
    try_family(Family::matern32, "matern32", *one, each);
    return {best_->theta, text_};
  }

 private:
  void try_family(Family family, const std::string& name, const EvidenceFit& one,
                  const std::optional<EvidenceFit>& each) {
    // From the better of the two squared exponentials, with its number of lengthscales.
    const bool many = each && each->summary.usable() && score(*each) > score(one);
    const EvidenceFit& from = many ? *each : one;
    const Shape shape = many ? shape_of(from.theta.kernel, X_.cols())
                             : Shape{shape_of(from.theta.kernel, 1).variance,
                                     {shape_of(from.theta.kernel, 1).lengthscale.front()}};
    const EvidenceFit fit = evaluate(family, shape, from.theta.noise(), 30);
    if (fit.summary.usable()) consider(many ? name + ", a lengthscale each" : name, fit);
  }

  EvidenceFit evaluate(Family family, const Shape& shape, double noise, int evaluations) {
    Hyperparameters theta = start_;
    theta.kernel = make_kernel(family, shape.variance, Positive(shape.lengthscale));
    theta.noise_variance.value =
        std::clamp(noise, theta.noise_variance.lower, theta.noise_variance.upper);
    MinimizeOptions options;
    options.max_evaluations = evaluations;
    options.absolute_value_tolerance = 0.05;  // nats: far below what the choice turns on
    return fit_evidence(theta, X_, y_, options, nullptr, should_stop_);
  }

  /// Schwarz's criterion: log evidence less ½ log N for each free parameter.
  [[nodiscard]] double score(const EvidenceFit& fit) const {
    return fit.log_evidence -
           0.5 * std::log(static_cast<double>(y_.size())) * static_cast<double>(fit.theta.size());
  }

  void consider(const std::string& name, const EvidenceFit& fit) {
    text_ += fmt::format("{}{}: {:.1f}", text_.empty() ? "" : "; ", name, score(fit));
    if (!best_ || score(fit) > score(*best_)) best_ = fit;
  }

  const Hyperparameters& start_;
  MatrixRef X_;
  VectorRef y_;
  const ShouldStop& should_stop_;
  std::optional<EvidenceFit> best_;
  std::string text_;
};

}  // namespace

FoundKernel find_kernel(const Hyperparameters& start, const Matrix& X, const Vector& y,
                        const ShouldStop& should_stop) {
  constexpr Index kRows = 500;
  const auto every = thinned(X.rows(), kRows);
  const Matrix some_X = X(every, Eigen::all);
  const Vector some_y = y(every);
  return KernelSearch(start, some_X, some_y, should_stop).run();
}

}  // namespace ample
