#include "ample/continual_gp.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ample/bound.h"
#include "ample/optimum.h"
#include "check.h"
#include "fit.h"
#include "start_search.h"
#include "stopwatch.h"

namespace ample {
namespace {

using Checkpoint = ContinualGP::Checkpoint;

// For a method that does not compute L* itself it is computed here, if that is cheap.
constexpr Index kCheapOptimum = 2000;

// Cap on the rounding allowance, as a share of α. Where θ_old leaves the bound no correct digits,
// an uncapped allowance would stop the refit, which is the only way to recover.
constexpr double kMostForRounding = 0.01;

// The share of |L* − L_noise| that stands in for α with a method that has none: the paper's δ.
constexpr double kDefaultDelta = 0.035;

/// By how much rounding may change the bound, in nats. The factor of K_bb is that of a matrix
/// whose diagonal is off by M units in the last place of the prior variance k, and each row of the
/// batch sees that over 2σ². Only data almost without noise make this worth a word: for naval, k/σ²
/// = 1e9, it is 0.1 nats at M = 2000, and the gradient has no digits left where the value has none.
double rounding_error(const State& old, const Matrix& X, Index M) {
  constexpr double kUnit = std::numeric_limits<double>::epsilon();
  return 0.5 * kUnit * static_cast<double>(M) * old.kernel.diagonal(X).sum() / old.noise_variance;
}

Scaling first_scaling(const ContinualGPOptions& options, const MatrixRef& X, const VectorRef& y) {
  if (const auto* given = std::get_if<Scaling>(&options.scaling)) return *given;
  return std::get<Standardize>(options.scaling) == Standardize::first_batch
             ? Scaling::standardize(X, y)
             : Scaling::identity(X.cols());
}

/// One batch on its way into the model. Nothing that it does is seen before it is whole.
class Update {
 public:
  Update(const Checkpoint& model, const ObserveOptions& call)
      : model_(model), options_(model.options), call_(call), theta_(model.theta) {}

  /// Checks and scales the batch, and finds where the model stands.
  void prepare(const MatrixRef& X, const VectorRef& y) {
    const Index N = X.rows();
    if (N == 0) invalid("observe: X has no rows");
    check_rows("observe", "y", y.size(), N, "the rows of X");
    check_finite("observe", "X", X);
    check_finite("observe", "y", y);
    if (model_.predictor) {
      check_columns("observe", "X", X.cols(), model_.predictor->dimension(),
                    "as in the first batch");
      scaling_ = model_.predictor->scaling();
    } else {
      theta_.kernel.check_dimension(X.cols());
      scaling_ = first_scaling(options_, X, y);
      scaling_.check(X.cols());
    }
    X_ = scaling_.inputs(X);
    const Vector targets = scaling_.targets(y);
    if (call_.weights.size() > 0) {
      sites_ = Sites(targets, call_.weights);
    } else {
      sites_ = Sites(targets);
    }
    targets_ = model_.targets;
    targets_.observe(targets);
    if (!model_.predictor) {
      if (options_.search_start) theta_ = search_lengthscales(theta_, X_, sites_);
      nothing_.emplace(State::empty(theta_.kernel, theta_.noise(), X.cols()));
    }
    report_.batch = model_.batches + 1;
    report_.rows = N;
    report_.rows_seen = targets_.count;
    report_.inducing_before = old().size();
  }

  /// Chooses the inducing points, at θ_old.
  void select() {
    const Stopwatch watch;
    const auto seed = options_.seed + static_cast<std::uint64_t>(report_.batch);
    const SelectionProblem problem{old(), X_, sites_, targets_, seed};
    selection_ = options_.selection.select(problem);
    check_columns("observe", "the selected Z", selection_.Z.cols(), X_.cols(),
                  "the input dimension");
    report_.noise_bound = selection_.noise_bound ? *selection_.noise_bound : noise_bound(problem);
    report_.threshold = selection_.threshold;
    report_.optimum = selection_.optimum;
    if (!report_.optimum && X_.rows() <= kCheapOptimum) {
      report_.optimum = optimum(old(), X_, sites_);
    }
    report_.lower_bound = selection_.lower_bound;
    report_.inducing_added = selection_.added;
    report_.inducing_removed = selection_.removed;
    report_.stop = selection_.stop;
    report_.seconds_select = watch.seconds();
  }

  /// Fits the hyperparameters to the bound, and makes the state that remembers the batch too.
  void fit() {
    const Stopwatch watch;
    OnlineBound bound(
        old(), X_, sites_,
        selection_.moving ? OnlineBound::Inducing::moving : OnlineBound::Inducing::fixed);
    const bool started = selection_.factors.has_value() &&
                         bound.start_from(selection_.Z, *std::exchange(selection_.factors, {}));
    Matrix Z = std::move(selection_.Z);
    bool is_there = started;
    report_.refitted = options_.refit_every > 0 && model_.batches % options_.refit_every == 0 &&
                       (theta_.size() > 0 || selection_.moving);
    curvature_ = model_.curvature;
    if (report_.refitted) {
      Fitted fitted = ample::fit(bound, started, theta_, Z, selection_.moving,
                                 fit_options(Z.rows()), curvature_, call_.should_stop);
      is_there = fitted.bound_is_there;
      if (fitted.summary.usable()) {
        theta_ = std::move(fitted.theta);
        Z = std::move(fitted.Z);
        if (!report_.lower_bound) report_.lower_bound = -fitted.summary.initial_value;
      }
      report_.fit = std::move(fitted.summary);
    }
    if (!is_there && !bound.factorize(theta_.kernel, theta_.noise(), Z)) {
      throw NumericalError(fmt::format(
          "observe: batch {} cannot be factorised at {} and noise variance {}; standardise the "
          "data, or raise the lower bound of the noise variance",
          report_.batch, theta_.kernel.to_string(), theta_.noise()));
    }
    report_.elbo = bound.value();
    if (!report_.lower_bound) report_.lower_bound = bound.value();
    state_.emplace(bound.absorb());
    // The very kernel of the state, not one of equal value: the bound knows by it that θ has not
    // moved.
    theta_.kernel = state_->kernel;
    theta_.noise_variance.value = state_->noise_variance;
    report_.seconds_fit = watch.seconds();
  }

  /// The model after the batch.
  [[nodiscard]] std::shared_ptr<const Checkpoint> commit() {
    return std::make_shared<const Checkpoint>(Checkpoint{
        .options = options_,
        .theta = std::move(theta_),
        .predictor = std::make_shared<const Predictor>(*std::move(state_), std::move(scaling_)),
        .targets = targets_,
        .batches = report_.batch,
        .curvature = std::move(curvature_)});
  }

  [[nodiscard]] BatchReport report() {
    report_.inducing = state_->size();
    if (report_.optimum && report_.lower_bound) {
      report_.gap = *report_.optimum - *report_.lower_bound;
    }
    report_.kernel = theta_.kernel.to_string();
    report_.noise_variance = theta_.noise();
    report_.jitter = state_->jitter;
    return report_;
  }

 private:
  [[nodiscard]] const State& old() const {
    return model_.predictor ? model_.predictor->state() : *nothing_;
  }

  [[nodiscard]] MinimizeOptions fit_options(Index M) const {
    MinimizeOptions fit = options_.fit;
    std::optional<double> alpha = report_.threshold;
    if (!alpha && report_.optimum) {
      alpha = kDefaultDelta * std::abs(*report_.optimum - *report_.noise_bound);
    }
    if (!alpha || !(options_.fit_tolerance > 0.0)) return fit;
    // Under a θ_old that is all wrong, α is astronomical; a nat a row is as much as it may count.
    const double nats = std::min(*alpha, static_cast<double>(X_.rows()));
    const double rounding = std::min(rounding_error(old(), X_, M), kMostForRounding * nats);
    fit.absolute_value_tolerance =
        std::max({fit.absolute_value_tolerance, options_.fit_tolerance * nats, rounding});
    return fit;
  }

  const Checkpoint& model_;
  const ContinualGPOptions& options_;
  const ObserveOptions& call_;
  Scaling scaling_;
  Matrix X_;                       // [N,D] in scaled units
  Sites sites_ = Sites(Vector());  // likewise
  TargetStatistics targets_;       // this batch's included
  Hyperparameters theta_;          // θ_old, then θ
  std::optional<State> nothing_;   // before the first batch
  Selection selection_;
  Curvature curvature_;
  std::optional<State> state_;
  BatchReport report_;
};

}  // namespace

void ContinualGPOptions::validate() const {
  constexpr std::string_view kWhere = "ContinualGP";
  start.check(kWhere);
  selection.validate();
  fit.validate(kWhere);
  if (refit_every < 0) {
    invalid("{}: refit_every is {}, but must be 0 (never) or more", kWhere, refit_every);
  }
  if (!(fit_tolerance >= 0.0) || !std::isfinite(fit_tolerance)) {
    invalid("{}: fit_tolerance is {}, but must be 0 or more, and finite", kWhere, fit_tolerance);
  }
  if (const auto* given = std::get_if<Scaling>(&scaling)) given->check(given->input_mean.size());
}

void ContinualGP::Checkpoint::validate() const {
  options.validate();
  theta.check("ContinualGP");
  if (batches > targets.count || (batches > 0) != (predictor != nullptr) ||
      (batches == 0 && targets.count > 0)) {
    invalid("ContinualGP: {} batches of {} rows, but must have at least a row in each batch",
            batches, targets.count);
  }
  if (predictor && theta.kernel.num_parameters() != predictor->state().kernel.num_parameters()) {
    invalid("ContinualGP: the kernel has {} parameters, but must have {} as that of the state",
            theta.kernel.num_parameters(), predictor->state().kernel.num_parameters());
  }
}

ContinualGP::ContinualGP(ContinualGPOptions options)
    : ContinualGP(Checkpoint{.options = options,
                             .theta = options.start,
                             .predictor = nullptr,
                             .targets = {},
                             .batches = 0,
                             .curvature = {}}) {}

ContinualGP::ContinualGP(Checkpoint checkpoint) {
  checkpoint.validate();
  model_ = std::make_shared<const Checkpoint>(std::move(checkpoint));
}

ContinualGP& ContinualGP::operator=(const ContinualGP& other) {
  std::shared_ptr<const Checkpoint> model = other.checkpoint();
  const std::lock_guard lock(mutex_);
  model_ = std::move(model);
  return *this;
}

BatchReport ContinualGP::observe(const MatrixRef& X, const VectorRef& y,
                                 const ObserveOptions& options) {
  const std::shared_ptr<const Checkpoint> before = checkpoint();
  Update update(*before, options);
  update.prepare(X, y);
  update.select();
  update.fit();
  BatchReport report = update.report();
  std::shared_ptr<const Checkpoint> after = update.commit();
  const std::lock_guard lock(mutex_);
  model_ = std::move(after);
  return report;
}

Index ContinualGP::size() const {
  const auto now = predictor();
  return now ? now->size() : 0;
}

Index ContinualGP::dimension() const {
  const auto now = predictor();
  return now ? now->dimension() : 0;
}

Matrix ContinualGP::inducing_inputs() const {
  const auto now = predictor();
  return now ? now->inducing_inputs() : Matrix(0, 0);
}

// Before the first batch: the prior, for inputs of whatever dimension is asked about.
std::shared_ptr<const Predictor> ContinualGP::predictor_for(const MatrixRef& X) const {
  const auto model = checkpoint();
  if (model->predictor) return model->predictor;
  const auto* given = std::get_if<Scaling>(&model->options.scaling);
  return std::make_shared<const Predictor>(
      State::empty(model->theta.kernel, model->theta.noise(), X.cols()),
      given != nullptr ? *given : Scaling::identity(X.cols()));
}

Prediction ContinualGP::predict(const MatrixRef& X, Target target) const {
  return predictor_for(X)->predict(X, target);
}

JointPrediction ContinualGP::predict_joint(const MatrixRef& X, Target target) const {
  return predictor_for(X)->predict_joint(X, target);
}

Matrix ContinualGP::sample(const MatrixRef& X, Index count, std::uint64_t seed,
                           Target target) const {
  return predictor_for(X)->sample(X, count, seed, target);
}

PredictionGradient ContinualGP::gradient(const MatrixRef& X) const {
  return predictor_for(X)->gradient(X);
}

}  // namespace ample
