#include "ample/continual_gp.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ample/bound.h"
#include "ample/metrics.h"
#include "check.h"
#include "start_search.h"
#include "stopwatch.h"
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

/// Whether a batch that brings the rows pending to `rows` is learnt on top of the model as it is,
/// with θ held. If not, all rows pending are learnt anew, on top of the model before the first.
bool is_few(const Checkpoint& model, const Pending& rows) {
  const Index before = model.pending.X.rows();
  const Index refit_rows = model.options.refit_rows;
  if (refit_rows == 0) return false;
  if (rows.base) return rows.X.rows() < refit_rows;
  if (!model.predictor || model.warming_up()) return false;
  return rows.X.rows() < model.options.reservoir &&
         before / refit_rows == rows.X.rows() / refit_rows;
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
    theta.kernel = ContinualGPOptions::default_kernel(D);
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
  options.reservoir = 1000;
  options.weigh_past = true;
  options.prune = 0.05;
  options.selection = Vips{.floor = 1e-3, .choose = Vips::Choose::gain, .max_inducing = 1000};
  return options;
}

Kernel ContinualGPOptions::default_kernel(Index D) {
  return SquaredExponential{.lengthscale = std::sqrt(static_cast<double>(D))};
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

bool ContinualGP::Checkpoint::warming_up() const {
  return pending.X.rows() > 0 && !pending.base && should_wait(options, pending);
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
  if (checkpoint.warming_up() && !checkpoint.predictor) {
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
  if (!(call.max_seconds > 0.0)) {
    invalid("observe: max_seconds is {}, but must be positive", call.max_seconds);
  }
  const Stopwatch watch;
  bool late = false;
  const ShouldStop should_stop = [&] {
    late = late || watch.seconds() > call.max_seconds;
    return late || (call.should_stop && call.should_stop());
  };
  Pending rows = with_batch(*before, X, y, call.weights);
  BatchReport report;
  std::shared_ptr<const Checkpoint> after;
  if (!rows.base && should_wait(options, rows)) {
    after = std::make_shared<const Checkpoint>(hold(*before, std::move(rows)));
    report = report_of_waiting(*after, X.rows());
  } else {
    const auto learn = [&](bool few) {
      Update update(*before, few ? before->predictor : rows.base,
                    few ? before->targets : rows.base_targets, should_stop);
      if (few) {
        update.prepare(X, y, call.weights);
      } else {
        update.prepare(rows.X, rows.y, rows.weights);
        update.replay();
      }
      update.select(!few);
      update.absorb(!few);
      report = update.report(before->batches + 1, X.rows());
      if (options.reservoir > 0 && before->predictor) {
        report.coverage = coverage(y, before->predictor->predict(X, Target::observation), 0.95);
      }
      report.warnings = warnings(*before, report, rows);
      if (late) {
        report.warnings.push_back(
            fmt::format("the fit ended at its limit of {} seconds", call.max_seconds));
      }
      return update.commit();
    };
    const bool few = is_few(*before, rows);
    try {
      Checkpoint next = learn(few);
      const bool young = !rows.base && rows.X.rows() < options.reservoir;
      if (young) next.reservoir = {};  // every row is pending
      if (few || young) next.pending = std::move(rows);
      after = std::make_shared<const Checkpoint>(std::move(next));
    } catch (const NumericalError& error) {
      // Rows that cannot be learnt anew, all at once, must not block those that come: what the
      // model already knows of them stays.
      if (few || before->pending.X.rows() == 0 || before->warming_up()) throw;
      after = std::make_shared<const Checkpoint>(learn(true));
      report.warnings.push_back(fmt::format("no refit after this batch: {}", error.what()));
    }
  }
  const std::lock_guard lock(mutex_);
  model_ = std::move(after);
  return report;
}

Compression ContinualGP::compress(double nats) {
  if (!(nats >= 0.0)) invalid("compress: nats is {}, but must be 0 or more", nats);
  return compress_within({.nats = nats, .points = 1});
}

Compression ContinualGP::compress_to(Index points) {
  if (points < 1) invalid("compress_to: points is {}, but must be at least 1", points);
  return compress_within({.points = points});
}

Compression ContinualGP::compress_within(const PruneLimits& limits) {
  const std::shared_ptr<const Checkpoint> before = checkpoint();
  if (!before->predictor) return {};
  if (before->warming_up()) {
    invalid("compress: the model warms up and holds {} of {} rows, but must have begun",
            before->pending.X.rows(), before->options.warm_up);
  }
  Pruned pruned = prune(before->predictor->state(), limits);
  const Compression done{before->predictor->size(), pruned.state.size(), pruned.nats};
  if (pruned.removed.empty()) return done;
  auto after = std::make_shared<Checkpoint>(*before);
  after->predictor =
      std::make_shared<const Predictor>(std::move(pruned.state), before->predictor->scaling());
  // A refit from the model before the rows pending would bring the points back. If there is none
  // before, these rows are all there are, and hyperparameters are fitted to them.
  if (const Pending& rows = before->pending; rows.X.rows() > 0 && !rows.base) {
    const Scaling& scaling = before->predictor->scaling();
    after->reservoir.offer(scaling.inputs(rows.X), scaling.targets(rows.y),
                           before->options.reservoir, before->options.seed);
  }
  after->pending = {};
  const std::lock_guard lock(mutex_);
  model_ = std::move(after);
  return done;
}

Vector ContinualGP::prices() const {
  const auto now = predictor();
  return now ? ample::prices(now->state()) : Vector(0);
}

Vector ContinualGP::compression_curve() const {
  const auto now = predictor();
  if (!now) return Vector::Zero(1);
  Vector nats = Vector::Zero(now->size() + 1);
  Index m = now->size();
  for (const Removal& removal : removal_order(now->state())) {
    nats[m - 1] = nats[m] + removal.price;
    --m;
  }
  return nats;
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
