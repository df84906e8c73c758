#include "observation.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>
#include <vector>

#include "ample/bound.h"
#include "ample/optimum.h"
#include "check.h"
#include "evidence_fit.h"
#include "foresight.h"
#include "start_search.h"
#include "surprise.h"
#include "update.h"
#include "warnings.h"

namespace ample {
namespace {

using Checkpoint = ContinualGP::Checkpoint;
using Pending = ContinualGP::Pending;

// Of more rows at once the joint density costs too much to be had besides.
constexpr Index kMostForesee = 2000;

// So many rows tell whether the model still holds; of small batches, this many to twice as many are
// looked at together.
constexpr Index kRowsToJudge = 20;

// A refit that lets the past count less is not put off until it has lost more than this.
constexpr double kFreshEnough = 0.7;
// A model whose first rows count less than this has left its youth.
constexpr double kYoung = 0.5;

// The normal distribution's 95 % lie within this many deviations.
constexpr double kInterval95 = 1.959963984540054;

// What a change must explain, in nats and in nats a row, before the rows that knew none of it go:
// more than in an older model, since so few rows are easily of one kind, and the next of another.
constexpr double kNatsForChange = 3.0;
constexpr double kNatsARowForChange = 0.25;

// Evaluations of the evidence of old and new rows together before the old ones go.
constexpr int kEvaluationsToJudge = 30;

// Rows beyond this are as surprising as can be, and sums of them do not overflow.
constexpr double kMostSurprise = 1e200;

void check_batch(const Checkpoint& model, const MatrixRef& X, const VectorRef& y,
                 const ObserveOptions& call) {
  if (X.rows() == 0) invalid("observe: X has no rows");
  check_rows("observe", "y", y.size(), X.rows(), "the rows of X");
  check_finite("observe", "X", X);
  check_finite("observe", "y", y);
  if (model.predictor) {
    check_columns("observe", "X", X.cols(), model.predictor->dimension(), "as in the first batch");
  }
  if (call.weights.size() > 0) static_cast<void>(Sites(y, call.weights));
  if (const double most = X.size() > 0 ? X.cwiseAbs().maxCoeff() : 0.0; most > kMostInput) {
    throw NumericalError(fmt::format(
        "observe: an input is {}, expected at most {}; rescale the data", most, kMostInput));
  }
  if (!(call.max_seconds > 0.0)) {
    invalid("observe: max_seconds is {}, but must be positive", call.max_seconds);
  }
  const bool by_time = model.options.forget.by_time();
  if (by_time && !call.time) {
    invalid("observe: no time is given, but there must be one: the model forgets by time");
  }
  if (!by_time && call.time) {
    invalid("observe: the time is {}, but must be left out: the model does not forget by time",
            *call.time);
  }
  if (call.time && !std::isfinite(*call.time)) {
    invalid("observe: the time is {}, but must be finite", *call.time);
  }
}

bool is_constant(const Vector& y) { return (y.array() == y[0]).all(); }

/// The rows from `first` on, of `count`.
Pending part_of(const Pending& rows, Index first, Index count) {
  Pending part;
  part.X = rows.X.middleRows(first, count);
  part.y = rows.y.segment(first, count);
  if (rows.weights.size() > 0) part.weights = rows.weights.segment(first, count);
  part.base = rows.base;
  part.base_targets = rows.base_targets;
  part.since = rows.since;
  return part;
}

// As many first rows as can hardly have one target, or all inputs equal, by chance.
constexpr Index kFewestStuck = 10;

/// How many of the first rows have one target or are at one place: those of a sensor that is stuck,
/// or of a function that is flat there.
Index first_alike(const Pending& rows) {
  const Index N = rows.X.rows();
  Index targets = 1;
  while (targets < N && rows.y[targets] == rows.y[0]) ++targets;
  Index places = 1;
  while (places < N && (rows.X.row(places).array() == rows.X.row(0).array()).all()) ++places;
  const Index alike = std::max(targets, places);
  return alike < kFewestStuck ? 0 : alike;
}

/// Rows that those before do not bear on any more: they come on top of a model that has seen
/// `known` others and believes none of them.
Pending without_known(const Checkpoint& model, const Pending& rows) {
  Pending rest = part_of(rows, rows.known, rows.X.rows() - rows.known);
  rest.base = std::make_shared<const Predictor>(
      State::empty(model.theta.kernel, model.theta.noise(), rows.X.cols()),
      model.predictor->scaling());
  rest.base_targets = {.count = rows.known, .weight = 0.0, .mean = 0.0, .m2 = 0.0};
  return rest;
}

/// The share of rows within their 95 % intervals.
double share_within(const Vector& residuals) {
  const auto within = (residuals.array().abs() <= kInterval95).count();
  return static_cast<double>(within) / static_cast<double>(residuals.size());
}

std::string no_refit(const NumericalError& error) {
  return fmt::format("no refit after this batch: {}", error.what());
}

/// What the rows before the surprising ones did, in the report of both.
void add_first_part(const BatchReport& first, BatchReport& report) {
  report.past_weight *= first.past_weight;
  if (report.forgot.empty()) report.forgot = first.forgot;
  report.refitted = report.refitted || first.refitted;
  report.relearnt = report.relearnt || first.relearnt;
  report.outliers += first.outliers;
  if (report.found_kernel.empty()) report.found_kernel = first.found_kernel;
  report.seconds_select += first.seconds_select;
  report.seconds_fit += first.seconds_fit;
}

/// Whether a model that has seen these rows should wait for more before it begins.
bool is_too_few_to_begin(const ContinualGPOptions& options, const Pending& rows) {
  // How many times `warm_up` rows a model waits for rows that vary. Each batch of a warm-up
  // costs an exact model of all rows held, and a fit to them once their targets vary.
  constexpr Index kLongestWarmUp = 5;
  const Index N = rows.X.rows();
  if (N == 0 || rows.base || rows.known > 0) return false;
  if (N < options.warm_up) return true;
  return N < kLongestWarmUp * options.warm_up && N - first_alike(rows) < options.warm_up;
}

// Fewer rows hardly tell three hyperparameters.
constexpr Index kFewestToFit = 30;

/// Variance, noise and the one lengthscale of rows that are held. It has to be quick: a row that
/// comes alone brings a fit.
Hyperparameters fitted_to_few(const Hyperparameters& start, const Matrix& X, const Vector& y) {
  MinimizeOptions options;
  options.max_evaluations = 20;
  options.absolute_value_tolerance = 0.05;
  EvidenceFit fit = fit_evidence(start, X, y, options, nullptr, {});
  if (!fit.summary.usable()) return start;
  return std::move(fit.theta);
}

}  // namespace

bool Checkpoint::warming_up() const { return is_too_few_to_begin(options, pending); }

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
    // The evidence does not know weights, and has no optimum where all targets are one.
    if (X.rows() >= kFewestToFit && !sites.weighted() && !is_constant(rows.y)) {
      theta = fitted_to_few(theta, X, targets);
    }
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

Checkpoint settle(const Checkpoint& model) {
  const Pending& rows = model.pending;
  Checkpoint out = model;
  out.pending = {};
  out.settled = std::chrono::steady_clock::now();
  if (rows.X.rows() == 0) return out;
  const Scaling& scaling = model.predictor->scaling();
  const Forgetting& forget = model.options.forget;
  double elapsed = static_cast<double>(rows.X.rows());
  if (forget.by_time()) elapsed = model.time && rows.since ? *model.time - *rows.since : 0.0;
  if (const double gamma = rows.base ? forget.weight_after(elapsed) : 1.0; gamma < 1.0) {
    out.predictor =
        std::make_shared<const Predictor>(temper(model.predictor->state(), gamma), scaling);
    out.targets.forget(gamma);
    out.reservoir.forget(gamma, model.options.seed);
  }
  if (model.options.reservoir > 0) {
    out.reservoir.offer(scaling.inputs(rows.X), scaling.targets(rows.y), model.options.reservoir,
                        model.options.seed);
    out.reservoir.weighted = out.reservoir.weighted || rows.weights.size() > 0;
  }
  return out;
}

Observation::Observation(const Checkpoint& before, const MatrixRef& X, const VectorRef& y,
                         const ObserveOptions& call, const ShouldStop& should_stop)
    : before_(before),
      options_(before.options),
      X_(X),
      y_(y),
      call_(call),
      should_stop_(should_stop),
      time_(before.time) {
  check_batch(before, X, y, call);
  if (call.time) time_ = std::max(time_.value_or(*call.time), *call.time);
}

Learnt Observation::learn() {
  if (is_late_for_youth()) {
    const Checkpoint settled = settle(before_);
    return Observation(settled, X_, y_, call_, should_stop_).learn();
  }
  Pending rows = with_batch(before_, X_, y_, call_.weights);
  Learnt learnt = learn(std::move(rows));
  learnt.model.batches = before_.batches + 1;
  learnt.model.time = time_;
  learnt.report.batch = learnt.model.batches;
  learnt.report.inducing_before = before_.predictor ? before_.predictor->size() : 0;
  return learnt;
}

Learnt Observation::learn(Pending rows) {
  if (is_too_few_to_begin(options_, rows)) return learn_held(std::move(rows));
  if (is_few(rows)) {
    Learnt few = learn_few(std::move(rows));
    if (!surprised_) return few;
    try {
      return learn_surprising(few.model.pending);
    } catch (const NumericalError& error) {
      few.report.warnings.push_back(no_refit(error));
      few.model.pending.recent = 0;
      few.model.pending.recent_chi_squared = 0.0;
      return few;
    }
  }
  if (options_.refit_rows > 0) foresee();
  judge(rows);
  return surprised_ ? learn_surprising(rows) : learn_anew_or_go_on(rows);
}

/// The rows that wait, and those of a batch.
Pending Observation::with_batch(const Checkpoint& model, const MatrixRef& X, const VectorRef& y,
                                const VectorRef& weights) const {
  Pending all = model.pending;
  const Index before = all.X.rows();
  if (before == 0) {
    // What the model is now is what these rows come on top of.
    all.base = model.predictor;
    all.base_targets = model.targets;
    all.since = model.time ? model.time : time_;
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

/// By the clock of the half-life, since the model that these rows come on top of.
double Observation::elapsed(const Pending& rows) const {
  if (!options_.forget.by_time()) return static_cast<double>(rows.X.rows());
  return *time_ - rows.since.value_or(*time_);
}

/// Whether all rows so far can be learnt anew at every refit.
bool Observation::is_young(const Pending& rows) const {
  return !rows.base && rows.X.rows() < rows_of_youth(options_) &&
         options_.forget.weight_after(elapsed(rows)) > kYoung;
}

/// Whether so much has passed since the last batch of a model whose rows would all be learnt anew
/// that they should not count like the new ones.
bool Observation::is_late_for_youth() const {
  const Pending& rows = before_.pending;
  if (rows.X.rows() == 0 || rows.base || before_.warming_up()) return false;
  const double gap = options_.forget.by_time() ? *time_ - before_.time.value_or(*time_)
                                               : static_cast<double>(X_.rows());
  return options_.forget.weight_after(gap) <= kFreshEnough;
}

bool Observation::is_overdue() const {
  const std::chrono::duration<double> most(options_.refit_seconds);
  return most.count() > 0.0 && std::chrono::steady_clock::now() - before_.settled > most;
}

/// Whether the batch that is the last of these rows is learnt on top of the model as it is, with θ
/// held. If not, all rows are learnt anew, on top of the model before the first.
bool Observation::is_few(const Pending& rows) const {
  const Index refit_rows = options_.refit_rows;
  if (refit_rows == 0 || is_overdue()) return false;
  if (!rows.base) {
    if (!before_.predictor || before_.warming_up()) return false;
    // Half as many rows again tell more, however few they are.
    const Index enough = rows.known + std::min(refit_rows, rows.known / 2);
    return is_young(rows) && rows.X.rows() < enough;
  }
  return rows.X.rows() < refit_rows && options_.forget.weight_after(elapsed(rows)) > kFreshEnough;
}

/// Adds the batch to the latest rows, which are judged together.
void Observation::judge(Pending& rows) {
  if (!density_ || rows.recent >= kRowsToJudge) {
    rows.recent = 0;
    rows.recent_chi_squared = 0.0;
  }
  if (!density_) return;
  rows.recent += X_.rows();
  rows.recent_chi_squared += std::min(density_->chi_squared, kMostSurprise);
  surprised_ = rows.recent >= kRowsToJudge &&
               is_surprising(rows.recent_chi_squared, rows.recent, before_.fitted_rows);
}

Learnt Observation::learn_held(Pending rows) const {
  Learnt held{hold(before_, std::move(rows)), {}};
  const State& state = held.model.predictor->state();
  held.report.rows = X_.rows();
  held.report.rows_seen = held.model.pending.X.rows();
  held.report.inducing = state.size();
  held.report.stop = SelectionStop::warm_up;
  held.report.kernel = state.kernel.to_string();
  held.report.noise_variance = state.noise_variance;
  held.report.jitter = state.jitter;
  const Pending& all = held.model.pending;
  // Enough rows to begin with, but for that.
  if (all.X.rows() >= options_.warm_up && is_constant(all.y)) {
    held.report.warnings.emplace_back("the target is constant so far");
  }
  return held;
}

Learnt Observation::learn_few(Pending rows) {
  Update update(before_, before_.predictor, before_.targets, 1.0, should_stop_);
  update.prepare(X_, y_, call_.weights);
  update.select(false);
  density_ = update.density();
  update.absorb(false);
  BatchReport report = update.report(before_.batches + 1, X_.rows());
  judge(rows);
  report_surprise(report);
  report.warnings = warnings(before_, report, rows);
  Learnt learnt{update.commit(), std::move(report)};
  learnt.model.time = time_;
  learnt.model.pending = std::move(rows);
  learnt.model.settled = before_.settled;
  return learnt;
}

/// Rows that nothing could have foreseen are no part of the batch that those before them make: it
/// is learnt first, and then these as one of their own, so that the evidence can tell them apart.
Learnt Observation::learn_surprising(const Pending& rows) {
  const Index before = rows.X.rows() - rows.recent;
  if (before <= rows.known) return learn_anew_or_go_on(rows);
  Pending earlier = part_of(rows, 0, before);
  earlier.known = rows.known;
  try {
    const Learnt middle = learn_anew(before_, std::move(earlier));
    const Pending recent = part_of(rows, before, rows.recent);
    Learnt learnt =
        learn_anew(middle.model, with_batch(middle.model, recent.X, recent.y, recent.weights));
    add_first_part(middle.report, learnt.report);
    return learnt;
  } catch (const NumericalError&) {
    return learn_anew_or_go_on(rows);
  }
}

/// Learns all of these rows at once, with a refit.
Learnt Observation::learn_anew(const Checkpoint& model, Pending rows) {
  const Index stuck = stuck_rows(model, rows);
  if (stuck > 0) {
    Pending rest = part_of(rows, stuck, rows.X.rows() - stuck);
    rest.base_targets.count += stuck;
    rows = std::move(rest);
  }
  bool changed = stuck > 0;
  if (!changed && surprised_ && has_changed(model, rows)) {
    rows = without_known(model, rows);
    changed = true;
  }
  const double past_weight = options_.forget.weight_after(elapsed(rows));
  Update update(model, rows.base, rows.base_targets, rows.base ? past_weight : 1.0, should_stop_);
  update.prepare(rows.X, rows.y, rows.weights);
  update.replay(intervals_fail());
  update.select(true);
  if (!density_ && rows.base && rows.base == before_.predictor) density_ = update.density();
  update.absorb(true);
  BatchReport report = update.report(before_.batches + 1, X_.rows());
  if (!density_ && report.outliers > 0) foresee();
  // All of its points are chosen anew.
  if (!rows.base && model.predictor) report.inducing_removed += model.predictor->size();
  if (changed) {
    report.past_weight = 0.0;
    report.forgot = to_string(Forgetting::Rule::adaptive);
  }
  report_surprise(report);
  report.warnings = warnings(before_, report, rows);
  if (stuck > 0) {
    report.warnings.push_back(fmt::format(
        "the first {} rows, which have one target or all inputs equal, lie far off what "
        "those after them say: they are not believed",
        stuck));
  }
  Learnt learnt{update.commit(), std::move(report)};
  if (is_young(rows)) {
    learnt.model.reservoir = {};  // every row is pending
    rows.known = rows.X.rows();
    rows.recent = 0;
    rows.recent_chi_squared = 0.0;
    learnt.model.pending = std::move(rows);
  }
  return learnt;
}

/// Rows that cannot be learnt anew, all at once, must not block those that come: what the model
/// already knows of them stays.
Learnt Observation::learn_anew_or_go_on(const Pending& rows) {
  try {
    return learn_anew(before_, rows);
  } catch (const NumericalError& error) {
    if (before_.pending.X.rows() == 0 || before_.warming_up()) throw;
    Learnt learnt = learn_few(rows);
    learnt.model = settle(learnt.model);
    learnt.report.warnings.push_back(no_refit(error));
    return learnt;
  }
}

/// Whether, in a model that is still young, the rows since the last refit contradict those that it
/// knew, at its own θ and at one that is fitted to all of them.
bool Observation::has_changed(const Checkpoint& model, const Pending& rows) const {
  const bool asked = options_.forget.rule == Forgetting::Rule::adaptive;
  if (!asked || rows.base || rows.known == 0 || rows.weights.size() > 0) return false;
  const Scaling& scaling = model.predictor->scaling();
  const Matrix X = scaling.inputs(rows.X);
  const Vector y = scaling.targets(rows.y);
  const Index later = X.rows() - rows.known;
  const double nats = kNatsForChange + kNatsARowForChange * static_cast<double>(later);
  std::vector<Hyperparameters> thetas{model.theta};
  const auto contradicted = [&] {
    return contradict(thetas, X.topRows(rows.known), y.head(rows.known), X.bottomRows(later),
                      y.tail(later), nats, should_stop_);
  };
  if (!contradicted()) return false;
  if (options_.refit_every == 0 || model.theta.size() == 0) return true;
  // Perhaps it is only θ, of so few rows, that does not hold for more of them.
  thetas.push_back(theta_of(model, X, y));
  return contradicted();
}

/// How many of the first rows are those of a sensor that was stuck, by what the others say: asked
/// once there are enough of those to begin with.
Index Observation::stuck_rows(const Checkpoint& model, const Pending& rows) const {
  const bool asked = options_.forget.rule == Forgetting::Rule::adaptive && options_.warm_up > 0;
  if (!asked || rows.base || rows.weights.size() > 0) return 0;
  const Index alike = first_alike(rows);
  const Index others = rows.X.rows() - alike;
  if (alike == 0 || others < kRowsToJudge || rows.known - alike >= options_.warm_up) return 0;
  const Scaling scaling = first_scaling(options_, rows.X.bottomRows(others), rows.y.tail(others));
  const Matrix X = scaling.inputs(rows.X);
  const Vector y = scaling.targets(rows.y);
  const Vector y_others = y.tail(others);
  if (!X.allFinite() || !y.allFinite() || is_constant(y_others) || are_sorted(y)) return 0;
  const Matrix X_others = X.bottomRows(others);
  const Hyperparameters theta = theta_of(model, X_others, y_others);
  return lie_far_off(theta, X.topRows(alike), y.head(alike), X_others, y_others) ? alike : 0;
}

/// Hyperparameters of all these rows, where those of the model are of some.
Hyperparameters Observation::theta_of(const Checkpoint& model, const Matrix& X,
                                      const Vector& y) const {
  if (options_.find_kernel) {
    const auto lengthscales = options_.ard ? Lengthscales::each : Lengthscales::any;
    return find_kernel(options_.start, X, y, Roughness::any, lengthscales, should_stop_).theta;
  }
  MinimizeOptions fit = options_.fit;
  fit.max_evaluations = std::min(fit.max_evaluations, kEvaluationsToJudge);
  return fit_evidence(model.theta, X, y, fit, nullptr, should_stop_).theta;
}

/// Whether the intervals do not hold for the rows that surprise, and not only for a few outliers
/// among them, which say nothing about the others.
bool Observation::intervals_fail() const {
  constexpr double kLeastWithin = 0.9;
  if (!surprised_ || X_.rows() < kRowsToJudge) return surprised_;
  return density_ && share_within(density_->residual) < kLeastWithin;
}

/// Where the batch lies in what the model predicts for it.
void Observation::foresee() {
  if (!before_.predictor || before_.warming_up() || X_.rows() > kMostForesee) return;
  const Scaling& scaling = before_.predictor->scaling();
  const Vector targets = scaling.targets(y_);
  const Sites sites = call_.weights.size() > 0 ? Sites(targets, call_.weights) : Sites(targets);
  density_ = predictive_density(before_.predictor->state(), scaling.inputs(X_), sites);
}

void Observation::report_surprise(BatchReport& report) const {
  if (density_) {
    report.chi_squared = density_->chi_squared;
    report.p_value = p_value(density_->chi_squared, X_.rows(), before_.fitted_rows);
    report.residuals = density_->residual;
  } else if (before_.predictor && !before_.warming_up()) {
    const Prediction p = before_.predictor->predict(X_, Target::observation);
    report.residuals = (y_ - p.mean).array() / p.variance.array().sqrt();
  } else {
    return;
  }
  report.coverage = share_within(report.residuals);
}

}  // namespace ample
