#include "update.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "ample/bound.h"
#include "ample/exact_gp.h"
#include "ample/forgetting.h"
#include "ample/optimum.h"
#include "ample/posterior.h"
#include "ample/pruning.h"
#include "check.h"
#include "fit.h"
#include "foresight.h"
#include "places.h"
#include "residual_noise.h"
#include "sample_fit.h"
#include "start_search.h"
#include "stopwatch.h"
#include "thinned.h"

namespace ample {
namespace {

// For a method that does not compute L* itself it is computed here, if that is cheap.
constexpr Index kCheapOptimum = 2000;

// Cap on the rounding allowance, as a share of α. Where θ_old leaves the bound no correct digits,
// an uncapped allowance would stop the refit, which is the only way to recover.
constexpr double kMostForRounding = 0.01;

// The share of |L* − L_noise| that stands in for α with a method that has none: the paper's δ.
constexpr double kDefaultDelta = 0.035;

// The log density of what cannot be computed.
constexpr double kNoDensity = -std::numeric_limits<double>::infinity();

// Evaluations of the reservoir's evidence in the first fit to it, and in a refit: θ moves little
// from one to the next.
constexpr int kFirstEvaluations = 15;
constexpr int kReplayEvaluations = 10;

// The share of all rows, by what they count, that has come since the last fit to the reservoir when
// another is worth while: they have then grown by a third.
constexpr double kShareToRefit = 0.25;
// The same where the rows that come speak against the model: in a stream that is sorted by
// something that the noise grows with, σ² would otherwise lag behind to the end. (With a tenth it
// still does.) A sample that has changed less gives the θ that is there.
constexpr double kShareIfInDoubt = 0.07;

// γ, how much a past row counts, is taken from these.
constexpr std::array kPastWeights = {0.8, 0.5, 0.2, 0.05, 0.01, 0.001, 0.0};
constexpr double kHalf = 0.5;          // asked first
constexpr Index kMostEvidence = 2000;  // rows of a batch that are asked

// What a batch must gain, in all and for each of its rows, if the past is to count less or to be
// learnt again.
constexpr double kNatsToForget = 3.0;
constexpr double kNatsARowToForget = 0.1;

// What a sample that takes the place of the past may lose of itself by pruning, where points are
// removed by their price at all: of hundreds that θ was fitted with, most say next to nothing.
constexpr double kNatsARowToPrune = 1e-3;

// How much larger the noise may have been instead.
constexpr std::array kNoiseFactors = {1.0, 1.5, 2.5, 5.0};

// Where batches are small, so many of a full model's points are new ones that stay until the next
// refit, however little they are worth yet: one of ten. A larger batch tells what its points are.
constexpr Index kShareOfNewest = 10;
constexpr Index kRowsThatTell = 100;
// And one of twenty goes at a time, if the batch is smaller than that.
constexpr Index kShareOfRoom = 20;

// σ²_old/σ² below which the noise is not what it was taken for.
constexpr double kOtherNoise = 0.5;

// How many deviations of all targets so far a wild one is off.
constexpr double kWild = 5.0;

// From here on the past is dropped with its reservoir.
constexpr double kNextToNothing = 0.01;

/// By how much rounding may change the bound, in nats. The factor of K_bb is that of a matrix
/// whose diagonal is off by M units in the last place of the prior variance k, and each row of the
/// batch sees that over 2σ². Only data almost without noise make this worth a word: for naval, k/σ²
/// = 1e9, it is 0.1 nats at M = 2000, and the gradient has no digits left where the value has none.
double fit_rounding(const State& old, const Matrix& X, Index M) {
  constexpr double kUnit = std::numeric_limits<double>::epsilon();
  return 0.5 * kUnit * static_cast<double>(M) * old.kernel.diagonal(X).sum() / old.noise_variance;
}

/// The rows with the weight that the points chosen can bear. Of row n a variance of
/// r_n = k_nn − ‖v_n‖² is beyond them; within the guarantee that is next to nothing, but a cap may
/// leave much. The bound would raise the noise for that; the reservoir's evidence, which knows no
/// inducing points, does not. So such rows count as rows whose noise is σ² + r_n.
Sites sites_that_count(const Selection& selection, const State& old, const Matrix& X,
                       const Sites& sites) {
  if (selection.stop != SelectionStop::cap) return sites;
  const double noise = old.noise_variance;
  Vector known;
  if (selection.factors) {
    known = selection.factors->Vt.rowwise().squaredNorm();
  } else {
    OnlineBound bound(old, X, sites);
    if (!bound.factorize(old.kernel, noise, selection.Z)) return sites;
    known = bound.factors().Vt.rowwise().squaredNorm();
  }
  if (sites.weighted()) known.array() /= sites.weight.array();
  const Vector missing = (old.kernel.diagonal(X) - known).cwiseMax(0.0);
  Vector weight = noise / (noise + missing.array());
  if (sites.weighted()) weight.array() *= sites.weight.array();
  return {sites.target, weight};
}

/// What so many rows must gain if the past is to count less or to be learnt again.
double nats_to_drop(Index rows) {
  return kNatsToForget + kNatsARowToForget * static_cast<double>(rows);
}

/// Whether there is a power of two times kMostExactRows between them. The rows double from one to
/// the next.
bool has_doubled(Index before, Index now) {
  const auto steps = [](Index rows) {
    return std::bit_width(static_cast<std::uint64_t>(rows / kMostExactRows));
  };
  return steps(now) > steps(before);
}

/// What a past row counts at another σ². A and c were made of rows of precision 1/σ²_old. Where σ²
/// turns out to be more than twice as large, the rows of the past know no more than those to come:
/// they count σ²_old/σ² of what they did. Fits move σ² up and down a little, and what a rise took
/// away no fall would give back: those do not count.
double weight_at_noise(double noise, double noise_old) {
  return noise_old < kOtherNoise * noise ? noise_old / noise : 1.0;
}

/// The log density of rows, each by itself, with the noise that suits them. None counts for more
/// than one that is ten deviations off.
double density_row_by_row(const State& state, const MatrixRef& X, const VectorRef& y) {
  constexpr double kFar = 10.0;
  const Prediction f = Posterior(state).predict(X);
  const Eigen::ArrayXd squares = (y - f.mean).array().square();
  double best = kNoDensity;
  for (const double factor : kNoiseFactors) {
    const Eigen::ArrayXd variance = f.variance.array() + factor * state.noise_variance;
    best = std::max(best, -0.5 * (variance.log() + (squares / variance).min(kFar * kFar)).sum());
  }
  return best;
}

/// The log density of rows under a state whose noise may be up to five times what it says, or
/// `also` times: a model that is a little wrong everywhere makes do with that.
double density_with_more_noise(const State& state, const MatrixRef& X, const Sites& sites,
                               double also = 1.0) {
  std::array<double, kNoiseFactors.size() + 1> factors{};
  *std::ranges::copy(kNoiseFactors, factors.begin()).out = also;
  return optimum_with_noise(state, X, sites, factors).value_or(kNoDensity);
}

/// Whether predictions are farther off the targets than those of a state, on average or in the mean
/// square, by more than a tenth.
bool are_farther_off(const VectorRef& mean, const State& than, const Rows& rows) {
  const Vector error = rows.sites.target - mean;
  const Vector other = rows.sites.target - Posterior(than).mean(rows.X);
  constexpr double kFarther = 1.1;
  return error.lpNorm<1>() > kFarther * other.lpNorm<1>() || error.norm() > kFarther * other.norm();
}

}  // namespace

Scaling first_scaling(const ContinualGPOptions& options, const MatrixRef& X, const VectorRef& y) {
  if (const auto* given = std::get_if<Scaling>(&options.scaling)) return *given;
  if (std::get<Standardize>(options.scaling) == Standardize::none) {
    return Scaling::identity(X.cols());
  }
  try {
    Scaling scaling = Scaling::standardize(X, y);
    scaling.check(X.cols());
    return scaling;
  } catch (const std::invalid_argument& error) {  // of these data, not of what the caller asked
    throw NumericalError(fmt::format("observe: {}; rescale the data", error.what()));
  }
}

Index rows_of_youth(const ContinualGPOptions& options) {
  return std::min(options.reservoir, kMostExactRows);
}

Update::Update(const ContinualGP::Checkpoint& model, std::shared_ptr<const Predictor> base,
               const TargetStatistics& base_targets, double past_weight,
               const ShouldStop& should_stop)
    : model_(model),
      options_(model.options),
      should_stop_(should_stop),
      base_(std::move(base)),
      sites_(Vector()),
      base_targets_(base_targets),
      targets_(base_targets),
      theta_(base_ ? model.theta : model.options.start),
      reservoir_(base_ ? model.reservoir : Reservoir{}),
      curvature_(base_ ? model.curvature : Curvature{}),
      fitted_rows_(base_ ? model.fitted_rows : 0) {
  report_.past_weight = past_weight;
  if (past_weight < 1.0) report_.forgot = to_string(Forgetting::Rule::half_life);
}

const State& Update::old() const { return own_old_ ? *own_old_ : base_->state(); }

void Update::prepare(const MatrixRef& X, const VectorRef& y, const VectorRef& weights) {
  if (base_) {
    scaling_ = base_->scaling();
  } else {
    if (!options_.find_kernel) theta_.kernel.check_dimension(X.cols());
    scaling_ = first_scaling(options_, X, y);
    scaling_.check(X.cols());
  }
  X_ = scaling_.inputs(X);
  const Vector targets = scaling_.targets(y);
  if (!X_.allFinite() || !targets.allFinite()) {
    throw NumericalError("observe: scaled as the first batch, the data overflow");
  }
  sites_ = weights.size() > 0 ? Sites(targets, weights) : Sites(targets);
  targets_.forget(report_.past_weight);
  targets_.observe(targets);
  if (!(targets_.m2 + targets_.mean * targets_.mean <= kMostTargetSquares)) {
    throw NumericalError(
        "observe: the squares of the targets overflow; standardise the data, or rescale them");
  }
  if (!base_) own_old_.emplace(State::empty(SquaredExponential{}, 1.0, X.cols()));
  report_.inducing_before = base_ ? base_->size() : 0;
}

void Update::replay(bool intervals_fail) {
  const Stopwatch watch;
  // After a change that may not be forgotten, a θ of both sides would only be found the sooner.
  intervals_fail_ = intervals_fail && may_relearn();
  forget_by_age();
  if (options_.reservoir > 0) {
    reservoir_.offer(X_, sites_.target, options_.reservoir, options_.seed);
    reservoir_.weighted = reservoir_.weighted || sites_.weighted();
  }
  if (!base_) {
    begin(Roughness::any);
  } else if (may_relearn()) {
    forget_by_evidence();
  } else if (reservoir_is_due(false)) {
    refit_to_reservoir();
  }
  const bool is_doubted =
      report_.relearnt || report_.forgot == to_string(Forgetting::Rule::adaptive);
  if (base_ && report_.refitted && !is_doubted) raise_noise();
  if (may_relearn() && !is_doubted) bound_outliers();
  report_.seconds_fit += watch.seconds();
}

/// Where a model starts that has learnt nothing.
void Update::begin(Roughness roughness) {
  if (options_.find_kernel) {
    FoundKernel found =
        find_kernel(options_.start, X_, sites_.target, roughness, lengthscales(), should_stop_);
    theta_ = std::move(found.theta);
    report_.found_kernel = std::move(found.comparison);
    curvature_ = {};
    fitted_rows_ = X_.rows();
  } else if (options_.search_start) {
    theta_ = search_lengthscales(theta_, X_, sites_);
  }
  own_old_.emplace(State::empty(theta_.kernel, theta_.noise(), X_.cols()));
  if (options_.reservoir > 0 && may_refit()) refit_to_reservoir();
}

Lengthscales Update::lengthscales() const {
  return options_.ard ? Lengthscales::each : Lengthscales::any;
}

bool Update::may_refit() const {
  return options_.refit_every > 0 && model_.batches % options_.refit_every == 0 &&
         theta_.size() > 0;
}

/// Whether the rows seen have grown enough since the last fit for another to tell more.
bool Update::reservoir_is_due(bool in_doubt) const {
  const auto since = static_cast<double>(reservoir_.seen - reservoir_.fitted);
  const double share = in_doubt || intervals_fail_ ? kShareIfInDoubt : kShareToRefit;
  return options_.reservoir > 0 && may_refit() && since >= share * reservoir_.weight;
}

void Update::refit_to_reservoir() {
  const Index fitted_before = std::exchange(reservoir_.fitted, reservoir_.seen);
  report_.refitted = true;
  double share = share_of_places();
  const auto with_its_places = [&](const Hyperparameters& theta) {
    if (!options_.find_kernel) return theta;
    return share > 0.0 ? with_places(theta, share) : without_places(theta);
  };
  const Hyperparameters known = with_its_places(theta_);
  if (base_ && options_.find_kernel && explains_nothing(without_places(theta_), X_)) {
    FoundKernel now = find_kernel(options_.start, reservoir_.X, reservoir_.y, Roughness::any,
                                  lengthscales(), should_stop_);
    share = std::max(share, place_share(now.theta));
    if (!carry_to(with_its_places(now.theta))) return;
    report_.found_kernel = std::move(now.comparison);
    curvature_ = {};
    fitted_rows_ = std::min(reservoir_.size(), kMostExactRows);
    return;
  }
  MinimizeOptions fit = options_.fit;
  fit.max_evaluations =
      std::min(fit.max_evaluations, base_ ? kReplayEvaluations : kFirstEvaluations);
  fit.absolute_value_tolerance = std::max(fit.absolute_value_tolerance, 0.05);
  // The evidence would explain a wild target by noise or a bump, and all others with it.
  std::vector<Index> rows(static_cast<std::size_t>(reservoir_.size()));
  std::iota(rows.begin(), rows.end(), 0);
  if (base_) rows = without_outliers(old(), reservoir_.X, reservoir_.y);
  const Matrix X = reservoir_.X(rows, Eigen::all);
  const Vector y = reservoir_.y(rows);
  Hyperparameters start = known;
  Curvature curvature = curvature_;
  std::string comparison;
  // Where the past cannot be learnt again, it would have to follow to a kernel that it was not made
  // for.
  if (options_.find_kernel && may_relearn() && has_doubled(fitted_before, reservoir_.seen)) {
    if (auto better = find_better_kernel(known, X, y, should_stop_)) {
      start = std::move(better->theta);
      share = std::max(share, place_share(start));
      comparison = std::move(better->comparison);
      curvature = {};
    }
  }
  const bool had_places = options_.find_kernel && place_share(theta_) > 0.0;
  SampleFit fitted = fit_to_sample(start, X, y, fit, curvature, should_stop_);
  if (fitted.summary.usable() && carry_to(with_its_places(fitted.theta))) {
    curvature_ = std::move(curvature);
    fitted_rows_ = fitted.rows;
    if (!had_places && share > 0.0 && place_share(theta_) > 0.0) {
      comparison += fmt::format("{}rows at the same inputs share {:.2g} of the noise",
                                comparison.empty() ? "" : "; ", share);
    }
    if (!comparison.empty()) report_.found_kernel = std::move(comparison);
    sample_points_ = std::move(fitted.Z);
  }
  report_.fit = std::move(fitted.summary);
}

/// The share of the noise that rows of the past have in common with others at the same inputs; 0
/// while that is not worth points.
double Update::share_of_places() const {
  const double known_share = options_.find_kernel ? place_share(theta_) : 0.0;
  const Reservoir& past = model_.reservoir;
  if (!base_ || !options_.find_kernel || theta_.noise_variance.is_fixed || past.size() == 0 ||
      past.weighted || report_.past_weight <= kNextToNothing) {
    return known_share;
  }
  const Hyperparameters known = without_places(theta_);
  State function = old();
  function.kernel = known.kernel;  // of f + p, what is known of f
  const Vector residuals = past.y - Posterior(std::move(function)).mean(past.X);
  const std::optional<Agreement> found = agreement(past.X, past.y, residuals, known.noise());
  if (!found) return 0.0;
  const bool is_theirs =
      known_share > 0.0 ||
      is_worth_points(*found, static_cast<Index>(past.weight), options_.selection.most_points());
  return is_theirs ? std::max(found->share, 0.0) : 0.0;
}

// Whether the past could be carried to θ; if not, θ_old stays.
// With no new data and the same inducing points the trace term of (6) is zero: (8) carries A and c.
bool Update::carry_to(const Hyperparameters& theta) {
  OnlineBound bound(old(), Matrix(0, X_.cols()), Vector());
  if (!bound.factorize(theta.kernel, theta.noise(), old().Z)) return false;
  try {
    own_old_.emplace(temper(bound.absorb(), weight_at_noise(theta.noise(), old().noise_variance)));
  } catch (const NumericalError&) {
    return false;
  }
  theta_ = theta;
  return true;
}

/// A short lengthscale explains outliers of a sample, each by a bump of its own; it is only beside
/// a model of many more rows that they are noise. So σ² is at least what the model leaves of the
/// reservoir, unless learning the reservoir again, where that is allowed, shows the model wrong.
void Update::raise_noise() {
  if (theta_.noise_variance.is_fixed) return;
  const double found = theta_.noise();
  // A single wild row, which no longer bends the model, is not the noise of all.
  const auto rows = without_outliers(old(), reservoir_.X, reservoir_.y, least_wild());
  const bool has_one = std::ssize(rows) == reservoir_.size() - 1;
  // Where each place has a value, what is predicted for a row is its own target in good part.
  const Own own = place_share(theta_) > 0.0 ? Own::left_out : Own::included;
  const double left = has_one ? residual_noise(old(), reservoir_.X(rows, Eigen::all),
                                               reservoir_.y(rows), found, own)
                              : residual_noise(old(), reservoir_.X, reservoir_.y, found, own);
  const double noise = std::min(left, theta_.noise_variance.upper);
  if (noise <= found) return;
  if (found < kOtherNoise * noise && may_relearn()) {
    relearn(model_.reservoir, noise / found);
    if (report_.relearnt) return;
  }
  State noisier = old();
  noisier.noise_variance = noise;
  const double before = base_->state().noise_variance;
  own_old_.emplace(
      temper(noisier, weight_at_noise(noise, before) / weight_at_noise(found, before)));
  theta_.noise_variance.value = noise;
}

/// How far off a wild target is at least. Where there is next to no noise, ten deviations are no
/// more than the model may be wrong by.
double Update::least_wild() const { return kWild * std::sqrt(base_targets_.variance()); }

/// A wild target among rows that the model foresaw well would bend it, and what is bent finds all
/// other rows wild. Where outliers stay, many together still have their way.
void Update::bound_outliers() {
  const Vector weight = outlier_weights(old(), X_, sites_.target, least_wild());
  if (weight.size() == 0) return;
  report_.outliers = (weight.array() < 1.0).count();
  sites_ = {sites_.target, weight};
}

/// Whether the batch may say that the past is not what it was. The evidence of a tempered past does
/// not know weights.
bool Update::may_relearn() const {
  return base_ && options_.forget.rule == Forgetting::Rule::adaptive && !sites_.weighted();
}

void Update::forget_by_age() {
  if (report_.past_weight == 1.0 || !base_) return;
  reservoir_.forget(report_.past_weight, options_.seed);
  own_old_.emplace(temper(old(), report_.past_weight));
}

void Update::forget_by_evidence() {
  choose_past_weight();
  const Reservoir& past = model_.reservoir;
  // Perhaps it is only θ that no longer holds. But if the function has changed, a θ of old and new
  // rows together suits neither, and the past that is carried to it has nothing left to forget:
  // what there was is kept until the rows have decided.
  std::vector<Hyperparameters> thetas{theta_};
  const std::optional<State> old_before = own_old_;
  const Curvature curvature_before = curvature_;
  const Index fitted_before = fitted_rows_;
  const double weight_before = report_.past_weight;
  if (reservoir_is_due(weight_before < 1.0 && past.size() > 0)) {
    const State before = old();
    refit_to_reservoir();
    choose_past_weight();
    thetas.push_back(theta_);
    if (std::min(report_.past_weight, weight_before) == 1.0) replace_past_by_sample(before);
  }
  if (std::min(report_.past_weight, weight_before) == 1.0) return;
  const auto some = thinned(past.size(), kMostExactRows);
  if (past.size() > 0 && !contradict(thetas, past.X(some, Eigen::all), past.y(some), X_,
                                     sites_.target, nats_to_drop(X_.rows()), should_stop_)) {
    // The rows hold. If it is what was made of them, at another θ, that does not, they are learnt
    // again.
    if (std::exchange(report_.past_weight, 1.0) < 1.0) relearn(past, 1.0);
    return;
  }
  if (weight_before < 1.0 && thetas.size() > 1) {
    theta_ = thetas.front();
    own_old_ = old_before;
    curvature_ = curvature_before;
    fitted_rows_ = fitted_before;
    report_.refitted = false;
    report_.fit = {};
    report_.found_kernel.clear();
    report_.past_weight = weight_before;
  }
  report_.forgot = to_string(Forgetting::Rule::adaptive);
  if (report_.past_weight <= kNextToNothing) {
    drop_reservoir();
  } else if (options_.reservoir > 0) {
    const Index fitted = reservoir_.fitted;
    reservoir_ = model_.reservoir;
    reservoir_.forget(report_.past_weight, options_.seed);
    reservoir_.offer(X_, sites_.target, options_.reservoir, options_.seed);
    reservoir_.fitted = fitted;
  }
  // Like the sample, without this batch, which is not forgotten.
  targets_ = base_targets_;
  targets_.forget(report_.past_weight);
  targets_.observe(sites_.target);
  own_old_.emplace(temper(old(), report_.past_weight));
}

/// The rows of the past go with it.
void Update::drop_reservoir() {
  if (options_.reservoir == 0) return;
  reservoir_ = {};
  reservoir_.offer(X_, sites_.target, options_.reservoir, options_.seed);
  if (may_refit()) refit_to_reservoir();
}

/// Of many rows some tell enough, and all would cost O(N³).
Rows Update::rows_to_ask() const {
  const Index step = (X_.rows() + kMostEvidence - 1) / kMostEvidence;
  const auto some = Eigen::seq(Index{0}, X_.rows() - 1, step);
  return {X_(some, Eigen::all), Sites(sites_.target(some))};
}

/// γ is less than 1 only if no larger noise explains the batch nearly as well: outliers are no
/// reason to forget.
void Update::choose_past_weight() {
  report_.past_weight = 1.0;
  const Rows asked = rows_to_ask();
  const auto evidence = TemperedEvidence::of(old(), asked.X, asked.sites.target);
  if (!evidence) return;
  const double as_it_is = (*evidence)(1.0);
  // Each γ costs O(M³). As a function of γ the evidence has one maximum, as a rule: where half the
  // weight explains the batch no better than all of it, no γ gains what forgetting takes, and where
  // less explains it worse, still less does not explain it better.
  const double at_half = (*evidence)(kHalf);
  if (at_half <= as_it_is) return;
  double best = std::max(as_it_is, density_with_more_noise(old(), asked.X, asked.sites));
  best += nats_to_drop(asked.X.rows());
  double before = kNoDensity;
  for (const double gamma : kPastWeights) {
    const double value = gamma == kHalf ? at_half : (*evidence)(gamma);
    if (value < before) return;
    before = value;
    if (value > best) {
      best = value;
      report_.past_weight = gamma;
    }
  }
}

/// What a sample of so many rows says, without the points that are next to nothing to it.
State Update::without_cheapest(const State& sample, Index rows) const {
  const double nats = kNatsARowToPrune * static_cast<double>(rows);
  return ample::prune(sample, {.nats = options_.prune > 0.0 ? nats : 0.0,
                               .points = 1,
                               .most = options_.selection.most_points()})
      .state;
}

/// What these rows alone say at θ, with the points that a selection chooses. Where a full model
/// will need most of them again, all at once take less time than one after the other.
std::optional<State> Update::learnt_alone(const Matrix& X, const Vector& y) const {
  const State nothing = State::empty(theta_.kernel, theta_.noise(), X.cols());
  const Sites sites(y);
  const auto learn = [&](const Sites& rows, const Matrix& Z) -> std::optional<State> {
    OnlineBound bound(nothing, X, rows);
    if (!bound.factorize(theta_.kernel, theta_.noise(), Z)) return std::nullopt;
    return bound.absorb();
  };
  const Index most_points = options_.selection.most_points();
  if (base_->size() >= most_points && 2 * std::min(most_points, X.rows()) > X.rows()) {
    if (const auto all = learn(sites, X)) {
      State most = without_cheapest(*all, X.rows());
      if (2 * most.size() > X.rows()) return most;
    }
  }
  const Selection selection =
      options_.selection.select({nothing, X, sites, targets_, options_.seed});
  return learn(sites_that_count(selection, nothing, X, sites), selection.Z);
}

/// Puts what these rows say at θ in the place of the past, if that explains the batch better, each
/// with the noise that suits it.
void Update::relearn(const Reservoir& rows, double noise_factor) {
  if (rows.size() == 0 || rows.weighted) return;
  const auto some = thinned(rows.size(), kMostExactRows);
  const Matrix some_X = rows.X(some, Eigen::all);
  const Vector some_y = rows.y(some);
  const auto sound = without_outliers(old(), some_X, some_y, least_wild());
  const Matrix X = some_X(sound, Eigen::all);
  const Vector y = some_y(sound);
  const Rows asked = rows_to_ask();
  // Of targets with heavy tails a few rows would decide. An exact model of the rows, which is had
  // at once, says how far off the new one would be.
  ExactGP exact(theta_);
  try {
    exact.condition(X, y);
  } catch (const NumericalError&) {
    return;  // the past will do
  }
  if (are_farther_off(exact.predict(asked.X).mean, old(), asked)) return;
  std::optional<State> again = learnt_alone(X, y);
  if (!again) return;
  const auto explained = [&](const State& by) {
    return density_with_more_noise(by, asked.X, asked.sites, noise_factor);
  };
  if (explained(*again) <= explained(old()) + nats_to_drop(asked.X.rows())) return;
  own_old_ = std::move(again);
  report_.relearnt = true;
}

/// Puts what the sample of the past says at θ, with the points that θ was fitted with, in the place
/// of what was made of all rows at earlier θ, if its rows speak for it by far: against the past as
/// it was `before` the fit, and as it is now. The batch, which neither has learnt, must not speak
/// against it.
void Update::replace_past_by_sample(const State& before) {
  const Reservoir& past = model_.reservoir;
  if (!sample_points_ || past.size() == 0 || past.weighted) return;
  try {
    const auto sound = without_outliers(before, past.X, past.y, least_wild());
    const Matrix sound_X = past.X(sound, Eigen::all);
    OnlineBound bound(std::vector<const State*>{}, sound_X, Sites(Vector(past.y(sound))));
    if (!bound.factorize(theta_.kernel, theta_.noise(), *sample_points_)) return;
    State sample = without_cheapest(bound.absorb(), past.size());
    const auto some = thinned(past.size(), kMostExactRows);
    const Matrix X = past.X(some, Eigen::all);
    const Vector y = past.y(some);
    // M weights explain that many of the nats of all rows by chance.
    const double by_chance = static_cast<double>(sample.size()) * static_cast<double>(y.size()) /
                             static_cast<double>(past.size());
    const double least =
        std::max(density_row_by_row(before, X, y), density_row_by_row(old(), X, y)) +
        nats_to_drop(y.size()) + by_chance;
    if (!(density_row_by_row(sample, X, y) > least)) return;
    const Rows asked = rows_to_ask();
    if (density_with_more_noise(sample, asked.X, asked.sites) <
        density_with_more_noise(old(), asked.X, asked.sites) - nats_to_drop(asked.X.rows())) {
      return;
    }
    if (are_farther_off(Posterior(sample).mean(asked.X), old(), asked)) return;
    own_old_.emplace(std::move(sample));
    report_.relearnt = true;
  } catch (const NumericalError&) {
    return;  // the past will do
  }
}

/// Whether a kernel that was found takes so many points of the first rows that those to come will
/// find no room: rough functions without noise need points in proportion to their rows. With fewer
/// points than that a smooth kernel does better. A model that is still to see all of its rows anew
/// can wait.
bool Update::is_crowded() const {
  if (base_ || !options_.find_kernel || X_.rows() < rows_of_youth(options_)) return false;
  return selection_.stop == SelectionStop::cap || 2 * selection_.Z.rows() > X_.rows();
}

void Update::select(bool refit) {
  const Stopwatch watch;
  refit_ = refit;
  const auto seed = options_.seed + static_cast<std::uint64_t>(model_.batches) + 1;
  // A full model would learn nothing of small batches until the next refit.
  const bool is_full = old().size() > options_.selection.most_points() - X_.rows();
  is_pruned_after_ = options_.prune > 0.0 && (refit || is_full);
  const auto choose = [&] {
    return options_.selection.select({old(), X_, sites_, targets_, seed, is_pruned_after_});
  };
  selection_ = choose();
  if (is_crowded()) {
    begin(Roughness::smooth);
    selection_ = choose();
  }
  check_columns("observe", "the selected Z", selection_.Z.cols(), X_.cols(), "the input dimension");
  const SelectionProblem problem{old(), X_, sites_, targets_, seed};
  report_.noise_bound = selection_.noise_bound ? *selection_.noise_bound : noise_bound(problem);
  report_.threshold = selection_.threshold;
  report_.optimum = selection_.optimum;
  if (!report_.optimum && X_.rows() <= kCheapOptimum) {
    selection_.density = predictive_density(old(), X_, sites_);
    if (selection_.density) report_.optimum = selection_.density->log_density;
  }
  report_.lower_bound = selection_.lower_bound;
  report_.rounding = rounding_error(problem);
  report_.inducing_added = selection_.added;
  report_.inducing_removed = selection_.removed;
  report_.stop = selection_.stop;
  report_.seconds_select = watch.seconds();
}

void Update::absorb(bool refit) {
  const Stopwatch watch;
  if (options_.reservoir > 0 && selection_.stop == SelectionStop::cap) {
    sites_ = sites_that_count(selection_, old(), X_, sites_);
    selection_.factors.reset();  // of the rows as they were
  }
  OnlineBound bound(
      old(), X_, sites_,
      selection_.moving ? OnlineBound::Inducing::moving : OnlineBound::Inducing::fixed);
  const bool started = selection_.factors.has_value() &&
                       bound.start_from(selection_.Z, *std::exchange(selection_.factors, {}));
  Matrix Z = std::move(selection_.Z);
  bool is_there = started;
  if (refit && options_.reservoir == 0 && options_.refit_every > 0 &&
      model_.batches % options_.refit_every == 0 && (theta_.size() > 0 || selection_.moving)) {
    report_.refitted = true;
    fitted_rows_ = X_.rows();
    Fitted fitted = fit(bound, started, theta_, Z, selection_.moving, fit_options(Z.rows()),
                        curvature_, should_stop_);
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
        model_.batches + 1, theta_.kernel.to_string(), theta_.noise()));
  }
  report_.elbo = bound.value();
  if (!report_.lower_bound) report_.lower_bound = bound.value();
  state_.emplace(bound.absorb());
  // The very kernel of the state, not one of equal value: the bound knows by it that θ has not
  // moved.
  theta_.kernel = state_->kernel;
  theta_.noise_variance.value = state_->noise_variance;
  if (is_pruned_after_) prune();
  report_.seconds_fit += watch.seconds();
}

/// How many of the last points have come since the model that the rows which wait come on top of.
Index Update::recent_points() const {
  const ContinualGP::Pending& rows = model_.pending;
  if (refit_ || !rows.base || X_.rows() >= kRowsThatTell) return 0;
  const Matrix& before = rows.base->state().Z;
  const Matrix& Z = state_->Z;
  const auto is_old = [&](Index point) {
    return (before.rowwise() - Z.row(point)).cwiseAbs().rowwise().sum().minCoeff() == 0.0;
  };
  Index recent = 0;
  while (recent < Z.rows() && before.rows() > 0 && !is_old(Z.rows() - 1 - recent)) ++recent;
  return recent;
}

void Update::prune() {
  if (!refit_ && state_->size() <= selection_.most) return;
  // Each time costs O(M³), so where rows come alone there is room for some more afterwards.
  const Index room = refit_ ? 0 : std::max(Index{0}, selection_.most / kShareOfRoom - X_.rows());
  const Index most = selection_.most - room;
  const bool is_small = !refit_ && X_.rows() < kRowsThatTell;
  const Index newest = is_small ? selection_.most / kShareOfNewest : 0;
  // A method without a threshold has no nats to spend, but may have a cap.
  Pruned pruned = ample::prune(*state_, {.nats = options_.prune * report_.threshold.value_or(0.0),
                                         .points = 1,
                                         .most = most,
                                         .recent = std::max(selection_.added, recent_points()),
                                         .newest = newest});
  report_.inducing_removed += static_cast<Index>(pruned.removed.size());
  report_.pruned_nats = pruned.nats;
  state_.emplace(std::move(pruned.state));
}

MinimizeOptions Update::fit_options(Index M) const {
  MinimizeOptions fit = options_.fit;
  std::optional<double> alpha = report_.threshold;
  if (!alpha && report_.optimum) {
    alpha = kDefaultDelta * std::abs(*report_.optimum - *report_.noise_bound);
  }
  if (!alpha || !(options_.fit_tolerance > 0.0)) return fit;
  // Under a θ_old that is all wrong, α is astronomical; a nat a row is as much as it may count.
  const double nats = std::min(*alpha, static_cast<double>(X_.rows()));
  const double rounding = std::min(fit_rounding(old(), X_, M), kMostForRounding * nats);
  fit.absolute_value_tolerance =
      std::max({fit.absolute_value_tolerance, options_.fit_tolerance * nats, rounding});
  return fit;
}

std::optional<PredictiveDensity> Update::density() const {
  const bool is_of_these_rows = base_ && !own_old_ && report_.outliers == 0;
  return is_of_these_rows ? selection_.density : std::nullopt;
}

BatchReport Update::report(Index batch, Index rows) const {
  BatchReport report = report_;
  report.batch = batch;
  report.rows = rows;
  report.rows_seen = targets_.count;
  report.inducing = state_->size();
  // A gap below −ε has no digits: it is not reported.
  if (report.optimum && report.lower_bound &&
      *report.optimum - *report.lower_bound >= -report.rounding) {
    report.gap = *report.optimum - *report.lower_bound;
    report.lost_nats = *report.gap + report.pruned_nats;
  }
  report.kernel = theta_.kernel.to_string();
  report.noise_variance = theta_.noise();
  report.jitter = state_->jitter;
  return report;
}

ContinualGP::Checkpoint Update::commit() {
  return {.options = options_,
          .theta = std::move(theta_),
          .predictor = std::make_shared<const Predictor>(*std::move(state_), std::move(scaling_)),
          .targets = targets_,
          .batches = model_.batches + 1,
          .curvature = std::move(curvature_),
          .reservoir = std::move(reservoir_),
          .pending = {},
          .fitted_rows = fitted_rows_,
          .time = {}};
}

}  // namespace ample
