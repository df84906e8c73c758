#include "ample/continual_gp.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ample/bound.h"
#include "check.h"
#include "start_search.h"
#include "update.h"
#include "warnings.h"

namespace ample {
namespace {

using Checkpoint = ContinualGP::Checkpoint;
using Pending = ContinualGP::Pending;

// How many times `warm_up` rows a model waits for targets that vary. Each batch of a warm-up costs
// an exact model of all rows held.
constexpr Index kLongestWarmUp = 5;

void check_batch(const Checkpoint& model, const MatrixRef& X, const VectorRef& y,
                 const VectorRef& weights) {
  if (X.rows() == 0) invalid("observe: X has no rows");
  check_rows("observe", "y", y.size(), X.rows(), "the rows of X");
  check_finite("observe", "X", X);
  check_finite("observe", "y", y);
  if (model.predictor) {
    check_columns("observe", "X", X.cols(), model.predictor->dimension(), "as in the first batch");
  }
  if (weights.size() > 0) static_cast<void>(Sites(y, weights));
  if (const double most = X.size() > 0 ? X.cwiseAbs().maxCoeff() : 0.0; most > kMostInput) {
    throw NumericalError(fmt::format(
        "observe: an input is {}, expected at most {}; rescale the data", most, kMostInput));
  }
}

/// The rows that wait, and those of a batch.
Pending with_batch(const Checkpoint& model, const MatrixRef& X, const VectorRef& y,
                   const VectorRef& weights) {
  Pending all = model.pending;
  const Index before = all.X.rows();
  if (before == 0) {
    // What the model is now is what these rows come on top of.
    all.base = model.predictor;
    all.base_targets = model.targets;
  }
  const bool weighted = weights.size() > 0 || all.weights.size() > 0;
  if (weighted && all.weights.size() == 0) all.weights = Vector::Ones(before);
  all.X.conservativeResize(before + X.rows(), X.cols());
  all.y.conservativeResize(before + X.rows());
  all.X.bottomRows(X.rows()) = X;
  all.y.tail(X.rows()) = y;
  if (weighted) {
    all.weights.conservativeResize(before + X.rows());
    all.weights.tail(X.rows()) = weights.size() > 0 ? Vector(weights) : Vector::Ones(X.rows());
  }
  return all;
}

bool is_constant(const Vector& y) { return (y.array() == y[0]).all(); }

/// Whether a model that has not begun should wait for more than these rows.
bool should_wait(const ContinualGPOptions& options, const Pending& rows) {
  const Index enough = options.warm_up;
  if (rows.X.rows() < enough) return true;
  return enough > 0 && is_constant(rows.y) && rows.X.rows() < kLongestWarmUp * enough;
}

/// An exact model of the rows held, every one an inducing point.
Checkpoint hold(const Checkpoint& model, Pending rows) {
  Checkpoint held = model;
  const Index D = rows.X.cols();
  const Scaling scaling = first_scaling(model.options, rows.X, rows.y);
  scaling.check(D);
  const Matrix X = scaling.inputs(rows.X);
  const Vector targets = scaling.targets(rows.y);
  const Sites sites = rows.weights.size() > 0 ? Sites(targets, rows.weights) : Sites(targets);
  Hyperparameters theta = model.options.start;
  if (model.options.find_kernel) {
    theta.kernel = SquaredExponential{.lengthscale = std::sqrt(static_cast<double>(D))};
    theta = search_lengthscales(theta, X, sites);
  }
  OnlineBound bound(std::vector<const State*>{}, X, sites);
  if (!bound.factorize(theta.kernel, theta.noise(), X)) {
    throw NumericalError("observe: the rows held cannot be factorised; standardise the data");
  }
  held.theta = theta;
  held.targets = {};
  held.targets.observe(targets);
  held.predictor = std::make_shared<const Predictor>(bound.absorb(), scaling);
  held.batches = model.batches + 1;
  held.pending = std::move(rows);
  held.pending.base = nullptr;
  held.pending.base_targets = {};
  return held;
}

BatchReport report_of_waiting(const Checkpoint& held, Index rows) {
  BatchReport report;
  report.batch = held.batches;
  report.rows = rows;
  report.rows_seen = held.pending.X.rows();
  report.inducing = held.predictor->size();
  report.stop = SelectionStop::warm_up;
  const State& state = held.predictor->state();
  report.kernel = state.kernel.to_string();
  report.noise_variance = state.noise_variance;
  report.jitter = state.jitter;
  return report;
}

}  // namespace

ContinualGPOptions ContinualGPOptions::out_of_the_box() {
  ContinualGPOptions options;
  options.find_kernel = true;
  options.scaling = Standardize::first_batch;
  options.warm_up = 100;
  options.refit_rows = 500;
  options.reservoir = 500;
  options.weigh_past = true;
  options.prune = 0.05;
  options.selection = Vips{.floor = 1e-3, .max_inducing = 1000};
  return options;
}

void ContinualGPOptions::validate() const {
  constexpr std::string_view kWhere = "ContinualGP";
  start.check(kWhere);
  selection.validate();
  fit.validate(kWhere);
  if (refit_every < 0) {
    invalid("{}: refit_every is {}, but must be 0 (never) or more", kWhere, refit_every);
  }
  for (const auto& [name, value] :
       {std::pair{"warm_up", warm_up}, {"refit_rows", refit_rows}, {"reservoir", reservoir}}) {
    if (value < 0) invalid("{}: {} is {}, but must be 0 or more", kWhere, name, value);
  }
  if (!(prune >= 0.0) || !std::isfinite(prune)) {
    invalid("{}: prune is {}, but must be 0 or more, and finite", kWhere, prune);
  }
  if (!(fit_tolerance >= 0.0) || !std::isfinite(fit_tolerance)) {
    invalid("{}: fit_tolerance is {}, but must be 0 or more, and finite", kWhere, fit_tolerance);
  }
  if (const auto* given = std::get_if<Scaling>(&scaling)) given->check(given->input_mean.size());
}

ContinualGP::ContinualGP(const ContinualGPOptions& options)
    : ContinualGP(Checkpoint{.options = options,
                             .theta = options.start,
                             .predictor = nullptr,
                             .targets = {},
                             .batches = 0,
                             .curvature = {},
                             .reservoir = {},
                             .pending = {}}) {}

ContinualGP::ContinualGP(Checkpoint checkpoint) {
  const bool warming_up = checkpoint.pending.X.rows() > 0 && !checkpoint.pending.base;
  if (warming_up && !checkpoint.predictor) {
    Pending rows = std::move(checkpoint.pending);
    --checkpoint.batches;  // which hold() counts again
    checkpoint = hold(checkpoint, std::move(rows));
  }
  checkpoint.validate();
  model_ = std::make_shared<const Checkpoint>(std::move(checkpoint));
}

ContinualGP& ContinualGP::operator=(const ContinualGP& other) {
  if (this == &other) return *this;
  std::shared_ptr<const Checkpoint> model = other.checkpoint();
  const std::lock_guard lock(mutex_);
  model_ = std::move(model);
  return *this;
}

BatchReport ContinualGP::observe(const MatrixRef& X, const VectorRef& y,
                                 const ObserveOptions& call) {
  const std::shared_ptr<const Checkpoint> before = checkpoint();
  const ContinualGPOptions& options = before->options;
  check_batch(*before, X, y, call.weights);
  Pending rows = with_batch(*before, X, y, call.weights);
  BatchReport report;
  std::shared_ptr<const Checkpoint> after;
  if (!rows.base && should_wait(options, rows)) {
    after = std::make_shared<const Checkpoint>(hold(*before, std::move(rows)));
    report = report_of_waiting(*after, X.rows());
  } else {
    // Few rows are learnt on top of the model as it is, with θ held; many, together with those that
    // waited for it, on top of the model before the first of them.
    const auto learn = [&](bool few) {
      Update update(*before, few ? before->predictor : rows.base,
                    few ? before->targets : rows.base_targets, call.should_stop);
      if (few) {
        update.prepare(X, y, call.weights);
      } else {
        update.prepare(rows.X, rows.y, rows.weights);
        update.replay();
      }
      update.select();
      update.absorb(!few);
      report = update.report(before->batches + 1, X.rows());
      report.warnings = warnings(*before, report, rows);
      return update.commit();
    };
    const bool few = rows.base && rows.X.rows() < options.refit_rows;
    try {
      Checkpoint next = learn(few);
      if (few) next.pending = std::move(rows);
      after = std::make_shared<const Checkpoint>(std::move(next));
    } catch (const NumericalError& error) {
      // Rows that cannot be learnt anew, all at once, must not block those that come: what the
      // model already knows of them stays.
      if (few || !rows.base || before->pending.X.rows() == 0) throw;
      after = std::make_shared<const Checkpoint>(learn(true));
      report.warnings.push_back(fmt::format("no refit after this batch: {}", error.what()));
    }
  }
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
