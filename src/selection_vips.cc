#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "ample/greedy_search.h"
#include "ample/optimum.h"
#include "ample/selection.h"
#include "check.h"

namespace ample {
namespace {

// Up to here L* takes seconds and less than a gigabyte, and nothing else is tried: Û′ is loose, and
// what it adds in points is paid for in every evaluation of the fit. On a path of 8875 positions L*
// asks for 107 points and Û′ for 1113.
constexpr Index kSmallBatch = 10'000;

// Evaluations of the bound that a fit takes.
constexpr double kFitEvaluations = 20.0;

// Of α, what jitter may use without being made up for.
constexpr double kShareForJitter = 0.25;

// Û′ is evaluated anew each time M has grown by this factor, so that all of its evaluations
// together cost about three times the last.
constexpr double kScheduleRatio = 1.25;

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

/// The optimum of the bound, or an upper bound on it that gets tighter as points are added.
class ReferenceValue {
 public:
  ReferenceValue(const SelectionProblem& problem, const Vips& vips, const GreedySearch& search)
      : p_(problem),
        pool_(vips.pool),
        search_(search),
        schedule_(vips.reference != Vips::Reference::optimum) {
    // Û′ needs the old points to be kept, so a pool that may drop some is measured against L*.
    if (pool_ == Vips::Pool::old_and_batch) schedule_ = false;
    const auto N = static_cast<double>(p_.X.rows());
    const auto M = static_cast<double>(p_.old.size());
    optimum_cost_ = vips.reference == Vips::Reference::upper_bound
                        ? kUnbounded
                        : N * N * N / 3.0 + 4.0 * N * N * M;
    const bool automatic = vips.reference == Vips::Reference::automatic;
    if (automatic && p_.X.rows() <= kSmallBatch) schedule_ = false;
    if (!schedule_) use_optimum();
  }

  /// The value at the inducing points chosen so far.
  double now() {
    const Index M = search_.size();
    if (!schedule_ || M < next_) return value_;
    const auto N = static_cast<double>(p_.X.rows());
    const auto m = static_cast<double>(M);
    // Beyond what L* costs, a fit with ever more points is not worth avoiding it.
    if (kFitEvaluations * 4.0 * N * m * m > optimum_cost_) {
      use_optimum();
      return value_;
    }
    next_ = std::max(M + 1, static_cast<Index>(kScheduleRatio * m));
    if (const auto u = upper_bound(UpperBound::tight, p_.old, search_.scaled_Vt(), search_.L_D(),
                                   search_.residual(), p_.sites)) {
      value_ = std::min(value_, *u);  // each is an upper bound, so the least of them is
    }
    return value_;
  }

  [[nodiscard]] bool is_optimum() const { return !schedule_ && std::isfinite(value_); }
  /// Of the batch, if L* was computed.
  [[nodiscard]] const std::optional<PredictiveDensity>& density() const { return density_; }

  /// L*_ε (9′), what every point of the batch reaches.
  [[nodiscard]] std::optional<double> with_jitter() const {
    if (pool_ == Vips::Pool::old_and_batch) {
      return optimum_with_jitter(p_.old, p_.X, p_.sites, search_.jitter());
    }
    return optimum_with_jitter(p_.old, p_.X, p_.sites, search_.jitter(), search_.Vt_old());
  }

 private:
  void use_optimum() {
    schedule_ = false;
    density_ = pool_ == Vips::Pool::batch
                   ? predictive_density(p_.old, p_.X, p_.sites, search_.Vt_old())
                   : predictive_density(p_.old, p_.X, p_.sites);
    if (density_) {
      value_ = density_->log_density;
    } else if (pool_ == Vips::Pool::batch) {
      // K_ff + σ² I is beyond Cholesky; Û′ factorises only matrices with eigenvalues from 1 up.
      schedule_ = true;
      optimum_cost_ = kUnbounded;
    }
  }

  const SelectionProblem& p_;
  Vips::Pool pool_;
  const GreedySearch& search_;
  bool schedule_;
  double optimum_cost_;
  Index next_ = 0;
  double value_ = kUnbounded;
  std::optional<PredictiveDensity> density_;
};

/// Takes points while the gap exceeds α.
///
/// Jitter keeps L̂ below L* whatever is taken, by some ε/2σ² nats for a new inducing variable, and
/// more points are no remedy. Once those taken may have left a quarter of α that way, or none is
/// left to take, its cost J is computed, L* less what all points reach, and a gap of min(α + J, 4J)
/// will do: jitter may use a quarter of α, what it takes beyond that is added to α (decision 0004).
class Growth {
 public:
  Growth(const Vips& vips, const SelectionProblem& p)
      : vips_(vips),
        p_(p),
        limit_(p.limit(vips.max_inducing)),
        noise_(noise_bound(p)),
        search_(p, vips.pool, vips.choose),
        reference_(p, vips, search_),
        rounding_(rounding_error(p)) {}

  Selection run() {
    for (;;) {
      best_ = reference_.now();
      alpha_ = std::max(vips_.delta * std::abs(best_ - noise_),
                        vips_.floor * static_cast<double>(p_.X.rows()));
      if (const auto stop = enough(search_.taken())) return result(search_.taken(), *stop);
      const bool more = search_.take_next();
      if (const auto ended = make_up_for_jitter(more)) return *ended;
      if (!more) return result(search_.taken(), search_.why_exhausted());
    }
  }

 private:
  /// Why the first `taken` points suffice, if they do.
  [[nodiscard]] std::optional<SelectionStop> enough(Index taken) const {
    const Index M = search_.size() - search_.taken() + taken;
    // A model needs one point to remember anything at all.
    if (M > 0 && std::isfinite(best_)) {
      const double gap = best_ - search_.lower_bound(taken);
      if (gap <= alpha_) {
        // A certificate needs digits: a gap that is only rounding proves nothing.
        const bool sound = gap >= -rounding_ && rounding_ <= alpha_;
        return sound ? SelectionStop::threshold : SelectionStop::rounding;
      }
      const double J = jitter_cost_.value_or(0.0);
      if (J > rounding_ && taken < search_.candidates() &&
          gap <= std::min(alpha_ + J, J / kShareForJitter)) {
        return SelectionStop::jitter;
      }
    }
    if (M >= limit_) return SelectionStop::cap;
    return std::nullopt;
  }

  /// Computes J once there is reason to, and looks whether fewer points would have done.
  std::optional<Selection> make_up_for_jitter(bool more) {
    const Index before = search_.taken() - (more ? 1 : 0);
    const double left =
        static_cast<double>(added_) * 0.5 * search_.jitter() / p_.old.noise_variance;
    added_ = search_.added();
    const bool suspected = !more || left > kShareForJitter * alpha_;
    if (!suspected || jitter_cost_ || !reference_.is_optimum()) return std::nullopt;
    const auto reach = more ? reference_.with_jitter() : search_.lower_bound();
    jitter_cost_ = best_ - reach.value_or(best_);
    for (Index fewer = 0; fewer <= before; ++fewer) {
      if (const auto stop = enough(fewer)) return result(fewer, *stop);
    }
    return std::nullopt;
  }

  [[nodiscard]] Selection result(Index taken, SelectionStop stop) {
    Selection selection = std::move(search_).selection(taken, stop);
    selection.keep_to(vips_.max_inducing);
    selection.noise_bound = noise_;
    selection.density = reference_.density();
    // Else neither L* nor a bound on it could be computed: the gap is unknown, every point was
    // taken.
    if (std::isfinite(best_)) {
      selection.optimum = best_;
      selection.threshold = alpha_;
    }
    return selection;
  }

  const Vips& vips_;
  const SelectionProblem& p_;
  Index limit_;
  double noise_;
  GreedySearch search_;
  ReferenceValue reference_;
  double rounding_;
  double best_ = 0.0;
  double alpha_ = 0.0;
  Index added_ = 0;                    // new points before the last one taken
  std::optional<double> jitter_cost_;  // J, once there was reason to compute it
};

}  // namespace

Selection Vips::select(const SelectionProblem& p) const {
  validate();
  return Growth(*this, p).run();
}

}  // namespace ample
