#include "ample/continual_gp.h"

#include <chrono>
#include <cmath>

#include "ample/bound.h"
#include "check.h"

namespace ample {
namespace {

// For a method that does not compute L* itself it is computed here, if that is cheap.
constexpr Index kCheapOptimum = 2000;

// A fit may end this share of α early because of rounding, and no more: at a θ_old without any
// digits it is the way out.
constexpr double kMostForRounding = 0.01;

class Timer {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// What the fit found.
struct Fitted {
  Hyperparameters theta;
  Matrix Z;
  MinimizeSummary summary;
};

/// Maximises the bound over the free hyperparameters, and over Z too if the selection says so.
Fitted fit(OnlineBound& bound, const Hyperparameters& start, const Selection& selection,
           const MinimizeOptions& options, Curvature& curvature) {
  const Index n = start.size();
  const Index in_Z = selection.moving ? selection.Z.size() : 0;
  Vector x0(n + in_Z);
  Vector lower(n + in_Z);
  Vector upper(n + in_Z);
  x0.head(n) = start.pack();
  lower.head(n) = start.lower();
  upper.head(n) = start.upper();
  x0.tail(in_Z) = selection.Z.reshaped().head(in_Z);
  lower.tail(in_Z).setConstant(-std::numeric_limits<double>::infinity());
  upper.tail(in_Z).setConstant(std::numeric_limits<double>::infinity());

  Matrix Z = selection.Z;
  Vector log_gradient(n);
  const Objective objective = [&](const Vector& x, double& value, Vector& gradient) {
    const Hyperparameters theta = start.unpack(x.head(n));
    if (in_Z > 0) Z.reshaped() = x.tail(in_Z);
    if (!bound.factorize(theta.kernel, theta.noise(), Z)) return false;
    value = -bound.value();
    const BoundGradient& g = bound.gradient();
    theta.chain(g.theta, g.noise_variance, log_gradient);
    gradient.head(n) = -log_gradient;
    if (in_Z > 0) gradient.tail(in_Z) = -g.Z.reshaped();
    return true;
  };
  Fitted result{start, selection.Z, minimize(objective, x0, lower, upper, options, &curvature)};
  if (!result.summary.usable()) return result;
  result.theta = start.unpack(result.summary.x.head(n));
  if (in_Z > 0) result.Z.reshaped() = result.summary.x.tail(in_Z);
  return result;
}

/// By how much rounding may change the bound, in nats. The factor of K_bb is that of a matrix
/// whose diagonal is off by M units in the last place of the prior variance k, and each row of the
/// batch sees that over 2σ². Only data almost without noise make this worth a word: for naval, k/σ²
/// = 1e9, it is 0.1 nats at M = 2000, and the gradient has no digits left where the value has none.
double rounding_error(const State& old, const Matrix& X, Index M) {
  constexpr double kUnit = std::numeric_limits<double>::epsilon();
  return 0.5 * kUnit * static_cast<double>(M) * old.kernel.diagonal(X).sum() / old.noise_variance;
}

/// The start under which the batch is most probable (search_start).
Hyperparameters search(const Hyperparameters& start, const Matrix& X, const Vector& y) {
  // Some hundred rows tell a lengthscale, and cost nothing beside the first fit. Every k-th, since
  // neighbours in a stream are often neighbours in space.
  constexpr Index kRows = 400;
  const Index step = (X.rows() + kRows - 1) / kRows;
  const auto every = Eigen::seq(Index{0}, X.rows() - 1, step);
  const Matrix some_X = X(every, Eigen::all);
  const Vector some_y = y(every);

  const std::vector<Parameter> parameters = start.kernel.parameters();
  Hyperparameters best = start;
  double best_density = -std::numeric_limits<double>::infinity();
  for (const double factor : {1.0, 1.0 / 3.0, 0.1, 1.0 / 30.0}) {
    Vector values(static_cast<Index>(parameters.size()));
    for (Index p = 0; p < values.size(); ++p) {
      const Parameter& parameter = parameters[static_cast<std::size_t>(p)];
      const bool scaled =
          !parameter.fixed && parameter.name.find(".lengthscale") != std::string::npos;
      values[p] = scaled ? std::clamp(factor * parameter.value, parameter.lower, parameter.upper)
                         : parameter.value;
    }
    Hyperparameters trial = start;
    trial.kernel = start.kernel.with_values(values);
    const State prior = State::empty(trial.kernel, trial.noise(), X.cols());
    // With no past, L* is the log density of the batch.
    const double density =
        optimum(prior, some_X, some_y).value_or(-std::numeric_limits<double>::infinity());
    if (density > best_density) {
      best = std::move(trial);
      best_density = density;
    }
  }
  return best;
}

}  // namespace

ContinualGP::ContinualGP(ContinualGPOptions options)
    : model_{.options = options,
             .theta = options.start,
             .posterior = std::nullopt,
             .scaling = {},
             .targets = {},
             .batches = 0,
             .curvature = {}} {
  options.start.check("ContinualGP");
  if (options.refit_every < 0) {
    invalid("ContinualGP: refit_every is {}, but must be 0 (never) or more", options.refit_every);
  }
  const bool given = options.standardize == ContinualGPOptions::Standardize::given;
  if (given != options.scaling.has_value()) {
    invalid("ContinualGP: a scaling must be given with Standardize::given, and only then");
  }
  if (given) options.scaling->check(options.scaling->input_mean.size());
}

ContinualGP::ContinualGP(Checkpoint checkpoint) : model_(std::move(checkpoint)) {}

Index ContinualGP::size() const { return model_.posterior ? model_.posterior->state().size() : 0; }

Index ContinualGP::dimension() const {
  return model_.posterior ? model_.posterior->state().dimension() : 0;
}

BatchReport ContinualGP::observe(const MatrixRef& X_data, const VectorRef& y_data) {
  // Check.
  const Index N = X_data.rows();
  if (N == 0) invalid("observe: X has no rows");
  check_rows("observe", "y", y_data.size(), N, "the rows of X");
  check_finite("observe", "X", X_data);
  check_finite("observe", "y", y_data);
  const ContinualGPOptions& options = model_.options;
  const Index D = X_data.cols();
  Scaling scaling = model_.scaling;
  if (model_.posterior) {
    check_columns("observe", "X", D, dimension(), "as in the first batch");
  } else {
    kernel().check_dimension(D);
    using Standardize = ContinualGPOptions::Standardize;
    if (options.standardize == Standardize::first_batch) {
      scaling = Scaling::standardize(X_data, y_data);
    } else if (options.standardize == Standardize::given) {
      scaling = *options.scaling;
    } else {
      scaling = Scaling::identity(D);
    }
    scaling.check(D);
  }
  const Matrix X = scaling.inputs(X_data);
  const Vector y = scaling.targets(y_data);
  NoiseModel targets = model_.targets;
  targets.observe(y);
  const bool first = !model_.posterior;
  const Hyperparameters theta_old =
      first && options.search_start ? search(model_.theta, X, y) : model_.theta;
  const State nothing = State::empty(theta_old.kernel, theta_old.noise(), D);
  const State& old = first ? nothing : model_.posterior->state();

  BatchReport report;
  report.batch = model_.batches + 1;
  report.rows = N;
  report.rows_seen = targets.count;
  report.inducing_before = old.size();

  // Select.
  const Timer select_timer;
  const auto batch_seed = options.seed + static_cast<std::uint64_t>(report.batch);
  const Selection selection = options.selection.select({old, X, y, targets, batch_seed});
  report.seconds_select = select_timer.seconds();
  check_columns("observe", "the selected Z", selection.Z.cols(), D, "the input dimension");
  report.noise_bound = noise_bound(old, X, y, targets);
  report.threshold = selection.threshold;
  report.optimum = selection.optimum;
  if (!report.optimum && N <= kCheapOptimum) report.optimum = optimum(old, X, y);

  // Fit.
  const Timer fit_timer;
  OnlineBound bound(
      old, X, y, selection.moving ? OnlineBound::Inducing::moving : OnlineBound::Inducing::fixed);
  Hyperparameters theta = theta_old;
  Matrix Z = selection.Z;
  Curvature curvature = model_.curvature;
  report.lower_bound = selection.lower_bound;
  report.refitted = options.refit_every > 0 && model_.batches % options.refit_every == 0 &&
                    (theta.size() > 0 || selection.moving);
  if (report.refitted) {
    MinimizeOptions fit_options = options.fit;
    // A method without a threshold of its own is held to that of VIPS at its default.
    std::optional<double> alpha = report.threshold;
    if (!alpha && report.optimum) {
      alpha = Vips{}.delta * std::abs(*report.optimum - *report.noise_bound);
    }
    if (alpha && options.fit_tolerance > 0.0) {
      // Under a θ_old that is all wrong, α is astronomical; a nat a row is as much as it may count.
      const double nats = std::min(*alpha, static_cast<double>(N));
      const double rounding = std::min(rounding_error(old, X, Z.rows()), kMostForRounding * nats);
      fit_options.absolute_value_tolerance =
          std::max({fit_options.absolute_value_tolerance, options.fit_tolerance * nats, rounding});
    }
    Fitted fitted = fit(bound, theta, selection, fit_options, curvature);
    if (fitted.summary.usable()) {
      theta = std::move(fitted.theta);
      Z = std::move(fitted.Z);
      if (!report.lower_bound) report.lower_bound = -fitted.summary.initial_value;
    }
    report.fit = std::move(fitted.summary);
  }

  // Absorb.
  if (!bound.factorize(theta.kernel, theta.noise(), Z)) {
    throw NumericalError(fmt::format(
        "observe: batch {} cannot be factorised at {} and noise variance {}; standardise the data, "
        "or raise the lower bound of the noise variance",
        report.batch, theta.kernel.to_string(), theta.noise()));
  }
  report.elbo = bound.value();
  if (!report.lower_bound) report.lower_bound = bound.value();
  State state = bound.absorb();
  report.seconds_fit = fit_timer.seconds();

  // Report.
  report.inducing_added = selection.added;
  report.inducing_removed = selection.removed;
  report.inducing = state.size();
  report.stop = selection.stop;
  if (report.optimum && report.lower_bound) report.gap = *report.optimum - *report.lower_bound;
  report.kernel = theta.kernel.to_string();
  report.noise_variance = theta.noise();
  report.jitter = state.jitter;

  model_.posterior.emplace(std::move(state));
  model_.theta = std::move(theta);
  model_.scaling = std::move(scaling);
  model_.targets = targets;
  model_.curvature = std::move(curvature);
  ++model_.batches;
  return report;
}

namespace {

/// Calls `use(posterior, scaling)`; before the first batch, with the prior.
template <class Use>
auto with_posterior(const ContinualGP::Checkpoint& model, Index D, const Use& use) {
  if (model.posterior) return use(*model.posterior, model.scaling);
  const Scaling scaling = model.options.scaling.value_or(Scaling::identity(D));
  scaling.check(D);
  return use(Posterior(State::empty(model.theta.kernel, model.theta.noise(), D)), scaling);
}

void check_queries(const ContinualGP& gp, const char* where, const MatrixRef& X) {
  if (gp.batches() > 0) {
    check_columns(where, "X", X.cols(), gp.dimension(), "the model's input dimension");
  }
  check_finite(where, "X", X);
}

}  // namespace

Prediction ContinualGP::predict(const MatrixRef& X, Target target) const {
  check_queries(*this, "predict", X);
  return with_posterior(model_, X.cols(), [&](const Posterior& posterior, const Scaling& scaling) {
    return scaling.restore(posterior.predict(scaling.inputs(X), target));
  });
}

JointPrediction ContinualGP::predict_joint(const MatrixRef& X, Target target) const {
  check_queries(*this, "predict_joint", X);
  return with_posterior(model_, X.cols(), [&](const Posterior& posterior, const Scaling& scaling) {
    JointPrediction p = posterior.predict_joint(scaling.inputs(X), target);
    p.mean = (p.mean.array() * scaling.target_scale + scaling.target_mean).matrix();
    p.covariance *= scaling.target_scale * scaling.target_scale;
    return p;
  });
}

Matrix ContinualGP::sample(const MatrixRef& X, Index count, std::uint64_t seed,
                           Target target) const {
  check_queries(*this, "sample", X);
  return with_posterior(model_, X.cols(), [&](const Posterior& posterior, const Scaling& scaling) {
    Matrix samples = posterior.sample(scaling.inputs(X), count, seed, target);
    samples = (samples.array() * scaling.target_scale + scaling.target_mean).matrix();
    return samples;
  });
}

PredictionGradient ContinualGP::gradient(const MatrixRef& X) const {
  check_queries(*this, "gradient", X);
  return with_posterior(model_, X.cols(), [&](const Posterior& posterior, const Scaling& scaling) {
    PredictionGradient g = posterior.gradient(scaling.inputs(X));
    const auto per_input = scaling.input_scale.cwiseInverse().transpose().array();
    g.mean = (g.mean.array().rowwise() * per_input * scaling.target_scale).matrix();
    g.variance =
        (g.variance.array().rowwise() * per_input * (scaling.target_scale * scaling.target_scale))
            .matrix();
    return g;
  });
}

Matrix ContinualGP::inducing_inputs() const {
  if (!model_.posterior) return Matrix(0, 0);
  const Matrix& Z = model_.posterior->state().Z;
  return (Z.array().rowwise() * model_.scaling.input_scale.transpose().array()).rowwise() +
         model_.scaling.input_mean.transpose().array();
}

}  // namespace ample
