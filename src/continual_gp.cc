#include "ample/continual_gp.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "check.h"
#include "observation.h"
#include "stopwatch.h"

namespace ample {
namespace {

using Checkpoint = ContinualGP::Checkpoint;
using Pending = ContinualGP::Pending;

}  // namespace

ContinualGPOptions ContinualGPOptions::out_of_the_box() {
  ContinualGPOptions options;
  options.find_kernel = true;
  options.scaling = Standardize::first_batch;
  options.warm_up = 100;
  options.refit_rows = 500;
  options.reservoir = 4000;
  options.forget = Forgetting::adaptive();
  options.prune = 0.05;
  options.selection =
      Vips{.delta = 0.005, .floor = 1e-3, .choose = Vips::Choose::gain, .max_inducing = 1000};
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
  if (!(refit_seconds >= 0.0) || !std::isfinite(refit_seconds)) {
    invalid("{}: refit_seconds is {}, but must be 0 or more, and finite", kWhere, refit_seconds);
  }
  forget.validate(kWhere);
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
                             .pending = {},
                             .fitted_rows = 0,
                             .time = {}}) {}

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
  if (call.weights.size() > 0 && call.weights.size() == y.size() && call.weights.isOnes(0.0)) {
    ObserveOptions alike = call;
    alike.weights = {};
    return observe(X, y, alike);
  }
  const std::shared_ptr<const Checkpoint> before = checkpoint();
  const Stopwatch watch;
  bool late = false;
  const ShouldStop should_stop = [&] {
    late = late || watch.seconds() > call.max_seconds;
    return late || (call.should_stop && call.should_stop());
  };
  auto [model, report] = Observation(*before, X, y, call, should_stop).learn();
  if (late) {
    report.warnings.push_back(
        fmt::format("the fit ended at its limit of {} seconds", call.max_seconds));
  }
  auto after = std::make_shared<const Checkpoint>(std::move(model));
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
  // A refit from the model before the rows pending would bring the points back.
  Checkpoint settled = settle(*before);
  Pruned pruned = prune(settled.predictor->state(), limits);
  const Compression done{before->predictor->size(), pruned.state.size(), pruned.nats};
  if (pruned.removed.empty()) return done;
  settled.predictor =
      std::make_shared<const Predictor>(std::move(pruned.state), before->predictor->scaling());
  auto after = std::make_shared<const Checkpoint>(std::move(settled));
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
