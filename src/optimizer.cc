#include "ample/optimizer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace ample {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double epsilon = std::numeric_limits<double>::epsilon();

// Wolfe conditions with the constants that Nocedal & Wright recommend for quasi-Newton methods.
constexpr double sufficient_decrease = 1e-4;
constexpr double sufficient_curvature = 0.9;

// Shrinking tenfold, these reach 1e-20 of the first trial: past rounding for any step.
constexpr int max_trials = 20;

// A pair whose s and y are closer than this to orthogonal says nothing of positive curvature. Any
// Hessian of condition below 1e16 gives more, and unlike a bound on sᵀy/yᵀy it has no units.
constexpr double min_cosine = 1e-8;

// A variable this near to a bound (and near to optimality) that the gradient pushes against it is
// sent there, so that its clamping does not cut the quasi-Newton step of the others short.
constexpr double bound_margin = 1e-3;

struct Point {
  Vector x;
  double value = 0;
  Vector gradient;
};

// The line search's view of a point: f and its derivative along the path at t.
struct Sample {
  double t, value, slope;
};

// Where a direction comes from.
enum class DirectionFrom {
  own_curvature,
  carried_curvature,  // of another problem: this run has made no pair yet
  probe,              // own curvature, with long steps where it knows nothing
  gradient,
};

enum class Search { wolfe, decrease, stalled, failure };

// Minimiser of the cubic through both samples, kept off the ends. A non-finite one becomes the
// shortest step allowed, for it stems from an enormous value at `hi`.
double interpolate(const Sample& lo, const Sample& hi) {
  const double width = hi.t - lo.t;
  const double a = lo.slope + hi.slope - 3 * (hi.value - lo.value) / width;
  const double b = std::sqrt(std::max(0.0, a * a - lo.slope * hi.slope));
  const double t = hi.t - width * (hi.slope + b - a) / (hi.slope - lo.slope + 2 * b);
  return t > lo.t + 0.1 * width ? std::min(t, lo.t + 0.9 * width) : lo.t + 0.1 * width;
}

// Where the secant of the slopes vanishes, at least twice and at most ten times as far.
double extrapolate(const Sample& previous, const Sample& last) {
  const double rise = last.slope - previous.slope;
  const double t = last.t - last.slope * (last.t - previous.t) / rise;
  return rise > 0 ? std::clamp(t, 2 * last.t, 10 * last.t) : 10 * last.t;
}

class Minimizer {
 public:
  Minimizer(const Objective& objective, const Vector& x0, const Vector& lower, const Vector& upper,
            const MinimizeOptions& options, Curvature& curvature, const ShouldStop& should_stop)
      : objective_(objective),
        lower_(lower),
        upper_(upper),
        options_(options),
        should_stop_(should_stop),
        pairs_(curvature.pairs) {
    current_.x = x0.cwiseMax(lower).cwiseMin(upper);
    for (Point* point : {&current_, &best_, &trial_}) {
      point->gradient = Vector::Zero(x0.size());
    }
    const auto misfit = [n = x0.size()](const Curvature::Pair& pair) {
      return pair.s.size() != n || pair.y.size() != n;
    };
    if (std::any_of(pairs_.begin(), pairs_.end(), misfit)) {
      pairs_.clear();
    }
    const auto memory = static_cast<std::size_t>(options.memory);
    if (pairs_.size() > memory) {
      pairs_.erase(pairs_.begin(), pairs_.end() - options.memory);
    }
    telling_.assign(pairs_.size(), true);
  }

  MinimizeSummary run() {
    if (!evaluate(current_)) {
      current_.value = 0;
      return finish(Termination::failed_start, "the starting point cannot be evaluated");
    }
    summary_.initial_value = current_.value;
    int flatness = 0;  // evidence that f does not change any more; 2 is a case for a probe

    for (;;) {
      summary_.gradient_norm = projected_gradient_norm();
      if (summary_.gradient_norm <= options_.gradient_tolerance) {
        return finish(Termination::gradient, "the projected gradient is within its tolerance");
      }
      const bool probing = flatness >= 2;
      DirectionFrom origin = set_direction(probing);
      Search search = line_search(origin);
      if (search == Search::stalled) {
        flatness = 2;
        continue;
      }
      if (search == Search::failure && probing && !halt_) {
        return finish_flat();
      }
      if (search == Search::failure && origin != DirectionFrom::gradient && !halt_) {
        pairs_.clear();
        telling_.clear();
        origin = set_direction(false);
        search = line_search(origin);
      }
      if (search == Search::failure) {
        if (halt_ == Termination::interrupted) {
          return finish(Termination::interrupted, "interrupted");
        }
        if (halt_ == Termination::max_evaluations) {
          return finish(Termination::max_evaluations, "the budget of evaluations is spent");
        }
        return finish(Termination::no_progress, "no step decreases f sufficiently");
      }

      const double decrease = current_.value - best_.value;
      const double tolerance = relative_tolerance();
      accept_best(decrease > tolerance);
      if (probing && decrease <= std::max(tolerance, options_.absolute_value_tolerance)) {
        return finish_flat();
      }
      // Only a step of natural length shows that f is flat here; others are short for a reason.
      const bool full_step = search == Search::wolfe && origin != DirectionFrom::gradient;
      if (full_step && origin != DirectionFrom::carried_curvature && decrease <= tolerance) {
        flatness = 2;
      } else if (full_step && decrease <= options_.absolute_value_tolerance) {
        ++flatness;
      } else {
        flatness = 0;
      }
    }
  }

 private:
  // A change of f that is as good as none.
  double relative_tolerance() const {
    const double magnitude = std::abs(current_.value);
    return std::max(options_.relative_value_tolerance * std::max(magnitude, 1.0),
                    10 * epsilon * magnitude);
  }

  bool may_evaluate() {
    if (summary_.evaluations >= options_.max_evaluations) {
      halt_ = Termination::max_evaluations;
    } else if (should_stop_ && should_stop_()) {
      halt_ = Termination::interrupted;
    }
    return !halt_;
  }

  bool evaluate(Point& point) {
    ++summary_.evaluations;
    bool good = objective_(point.x, point.value, point.gradient);
    if (point.gradient.size() != point.x.size()) {
      std::ostringstream message;
      message << "minimize: the gradient has " << point.gradient.size()
              << " entries, but must have " << point.x.size() << " (the size of x0)";
      throw std::invalid_argument(message.str());
    }
    good = good && std::isfinite(point.value) && point.gradient.allFinite();
    summary_.failed_evaluations += good ? 0 : 1;
    return good;
  }

  double projected_gradient_norm() const {
    const Point& p = current_;
    return ((p.x - p.gradient).cwiseMax(lower_).cwiseMin(upper_) - p.x).lpNorm<Eigen::Infinity>();
  }

  // Moving on along d_i would leave the box.
  bool blocked(const Vector& x, Index i) const {
    return direction_[i] < 0 ? x[i] <= lower_[i] : x[i] >= upper_[i];
  }

  // A probe, before a run ends because f no longer changes, asks whether it does anywhere: where
  // no pair has been, γ may be far too short. The noise variance is the case in point. While it is
  // tiny, f is flat in its logarithm and steep in all else; unit steps there find the way out.
  DirectionFrom set_direction(bool probing) {
    if (set_quasi_newton_direction(probing ? 1 : 0)) {
      return probing     ? DirectionFrom::probe
             : own_pair_ ? DirectionFrom::own_curvature
                         : DirectionFrom::carried_curvature;
    }
    set_steepest_descent_direction();
    return DirectionFrom::gradient;
  }

  // d = −H g over the free variables; false if no pair is of use there.
  bool set_quasi_newton_direction(double min_gamma) {
    const Vector& x = current_.x;
    const Vector& g = current_.gradient;
    const double margin = std::min(bound_margin, summary_.gradient_norm);
    to_bound_ = (g.array() > 0).select(lower_ - x, upper_ - x);
    free_ = (to_bound_.array().abs() > margin || g.array() == 0).cast<double>();

    Vector& d = direction_;
    d = -free_ * g.array();
    double gamma = 0;  // H₀ = γ I with γ = sᵀy/yᵀy of the latest pair
    weights_.assign(pairs_.size(), {});
    for (std::size_t i = pairs_.size(); i-- > 0;) {
      const auto& [s, y] = pairs_[i];
      auto& [rho, alpha] = weights_[i];
      const double sy = (free_ * s.array() * y.array()).sum();
      const double ss = (free_ * s.array().square()).sum();
      const double yy = (free_ * y.array().square()).sum();
      if (!(sy > min_cosine * std::sqrt(ss) * std::sqrt(yy))) {
        continue;
      }
      rho = 1 / sy;
      alpha = rho * s.dot(d);
      d.array() -= alpha * free_ * y.array();
      gamma = gamma > 0 ? gamma : sy / yy;
    }
    d *= std::max(gamma, min_gamma);
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      const auto& [s, y] = pairs_[i];
      const auto& [rho, alpha] = weights_[i];
      if (rho > 0) {
        d.array() += (alpha - rho * y.dot(d)) * free_ * s.array();
      }
    }
    if (!(gamma > 0) || !d.allFinite()) {
      return false;
    }
    d = (free_ > 0).select(d, to_bound_);
    finish_direction(options_.max_step);
    return path_slope(current_) < 0;
  }

  // d = −g, of max-norm 1 at most: a factor of e for a parameter given by its logarithm.
  void set_steepest_descent_direction() {
    direction_ = -current_.gradient;
    finish_direction(std::min(1.0, options_.max_step));
  }

  // Makes t = 1 the first trial. To drop the blocked components keeps a direction of descent: the
  // quasi-Newton one has none that the gradient blocks, so what it loses was uphill.
  void finish_direction(double max_norm) {
    for (Index i = 0; i < direction_.size(); ++i) {
      if (blocked(current_.x, i)) {
        direction_[i] = 0;
      }
    }
    direction_ *= std::min(1.0, max_norm / direction_.lpNorm<Eigen::Infinity>());
  }

  // d/dt f(clamp(x + t d)) at a point of the path.
  double path_slope(const Point& point) const {
    double slope = 0;
    for (Index i = 0; i < direction_.size(); ++i) {
      slope += blocked(point.x, i) ? 0 : point.gradient[i] * direction_[i];
    }
    return slope;
  }

  // Looks for a point of sufficient decrease where the slope has flattened (weak Wolfe conditions),
  // and leaves the lowest of sufficient decrease in best_. Weak ones suffice for sᵀy > 0, and
  // keep the bracket one-sided: lo always has room to descend to its right, hi lies beyond it.
  Search line_search(DirectionFrom origin) {
    best_ = current_;
    const Sample start{0, current_.value, path_slope(current_)};
    const double t_max = options_.max_step / direction_.lpNorm<Eigen::Infinity>();
    // Of these the first trial is all that is asked.
    const bool tentative =
        origin == DirectionFrom::carried_curvature || origin == DirectionFrom::probe;
    Sample lo = start;
    Sample hi{infinity, infinity, infinity};
    bool wall = false;  // a trial has failed
    int level = 0;      // trials in a row that changed f by next to nothing
    double t = 1;
    for (int i = 0; i < max_trials && may_evaluate(); ++i) {
      trial_.x = (current_.x + t * direction_).cwiseMax(lower_).cwiseMin(upper_);
      if (trial_.x == best_.x) {
        break;
      }
      if (!evaluate(trial_)) {
        if (tentative) {
          break;
        }
        wall = true;
        level = 0;
        hi.t = t;
        t = lo.t + 0.1 * (t - lo.t);
        continue;
      }
      const Sample sample{t, trial_.value, path_slope(trial_)};
      // Where the path is bent at the bounds its chord may point uphill; then any decrease will do.
      const double predicted = std::min(0.0, current_.gradient.dot(trial_.x - current_.x));
      if (sample.value >= lo.value ||
          sample.value > start.value + sufficient_decrease * predicted) {
        if (tentative) {
          break;
        }
        if (const auto end = end_above(sample, lo, start, origin, level)) {
          return *end;
        }
        hi = sample;
        t = interpolate(lo, hi);
        continue;
      }
      std::swap(best_, trial_);
      if (is_flat(sample, start)) {
        return Search::wolfe;
      }
      // Nearer to a wall the next trial would rather fail than flatten: to go on takes twice the
      // evaluations if trials fail at random or the minimum lies beside a region that fails.
      if (wall || t >= t_max) {
        return Search::decrease;
      }
      t = hi.t < infinity ? interpolate(sample, hi) : std::min(extrapolate(lo, sample), t_max);
      lo = sample;
    }
    return lo.t > 0 ? Search::decrease : Search::failure;
  }

  static bool is_flat(const Sample& sample, const Sample& start) {
    return sample.slope >= sufficient_curvature * start.slope;
  }

  // Whether a trial that is too high ends the search, and as what. Changes below the absolute
  // tolerance count as no progress; they may be rounding error, on which an ill-conditioned f would
  // spend every trial. `level` counts them in a row: two, for one may have the same height by
  // chance; six down the gradient, where the first trials can be far too long for a stiff direction
  // and say nothing of the others.
  std::optional<Search> end_above(const Sample& high, const Sample& lo, const Sample& start,
                                  DirectionFrom origin, int& level) const {
    const int enough = origin == DirectionFrom::gradient ? 6 : 2;
    const bool no_change = options_.absolute_value_tolerance > 0 &&
                           std::abs(high.value - lo.value) <= options_.absolute_value_tolerance;
    level = no_change ? level + 1 : 0;
    if (no_change && lo.t > 0) {
      return Search::decrease;
    }
    const double small = relative_tolerance();
    const bool rounding = is_flat(high, start) && -high.t * start.slope <= small &&
                          std::abs(high.value - start.value) <= small;
    if (origin == DirectionFrom::own_curvature && (level == enough || rounding)) {
      return Search::stalled;
    }
    return level == enough ? std::optional(Search::failure) : std::nullopt;
  }

  // `telling`: f changed by more than rounding, so that the change of the gradient is more too.
  void accept_best(bool telling) {
    ++summary_.iterations;
    Vector& s = trial_.x;  // trial_ is at leisure
    Vector& y = trial_.gradient;
    s = best_.x - current_.x;
    y = best_.gradient - current_.gradient;
    if (s.dot(y) > min_cosine * s.norm() * y.norm()) {
      if (pairs_.size() < static_cast<std::size_t>(options_.memory)) {
        pairs_.emplace_back();
        telling_.push_back(telling);
      } else {  // the oldest makes room
        std::rotate(pairs_.begin(), pairs_.begin() + 1, pairs_.end());
        std::rotate(telling_.begin(), telling_.begin() + 1, telling_.end());
        telling_.back() = telling;
      }
      pairs_.back().s = s;
      pairs_.back().y = y;
      own_pair_ = true;
    }
    std::swap(current_, best_);
  }

  MinimizeSummary finish_flat() {
    const bool by_tolerance =
        options_.relative_value_tolerance > 0 || options_.absolute_value_tolerance > 0;
    return by_tolerance
               ? finish(Termination::value_tolerance, "f changes by less than its tolerance")
               : finish(Termination::no_progress, "f changes by rounding error only");
  }

  MinimizeSummary finish(Termination termination, const char* reason) {
    // Another problem is not to learn its curvature from rounding errors.
    auto telling = telling_.begin();
    std::erase_if(pairs_, [&](const Curvature::Pair&) { return !*telling++; });
    summary_.termination = termination;
    summary_.gradient_norm = summary_.usable() ? projected_gradient_norm() : 0;
    summary_.x = std::move(current_.x);
    summary_.value = current_.value;
    std::ostringstream message;
    message << reason << ": f = " << summary_.value << ", projected gradient "
            << summary_.gradient_norm << ", " << summary_.iterations << " iterations, "
            << summary_.evaluations << " evaluations (" << summary_.failed_evaluations
            << " failed)";
    summary_.message = termination == Termination::failed_start ? reason : message.str();
    return std::move(summary_);
  }

  const Objective& objective_;
  const Vector& lower_;
  const Vector& upper_;
  const MinimizeOptions& options_;
  const ShouldStop& should_stop_;
  std::vector<Curvature::Pair>& pairs_;

  Point current_, best_, trial_;
  Vector direction_, to_bound_;
  Eigen::ArrayXd free_;  // 1 for the variables of the two-loop recursion, 0 for the others
  struct Weight {
    double rho = 0, alpha = 0;
  };
  std::vector<Weight> weights_;  // of the pairs; rho = 0 if a pair is not used
  std::vector<bool> telling_;    // of each pair
  bool own_pair_ = false;
  std::optional<Termination> halt_;
  MinimizeSummary summary_;
};

[[noreturn]] void reject(const std::string& message) {
  throw std::invalid_argument("minimize: " + message);
}

void check_size(const char* name, Index size, Index expected) {
  if (size != expected) {
    reject(std::string(name) + " has " + std::to_string(size) + " entries, but must have " +
           std::to_string(expected) + " (the size of x0)");
  }
}

void check(const Vector& x0, const Vector& lower, const Vector& upper) {
  check_size("lower", lower.size(), x0.size());
  check_size("upper", upper.size(), x0.size());
  for (Index i = 0; i < x0.size(); ++i) {
    std::ostringstream message;
    if (!(lower[i] <= upper[i])) {
      message << "lower[" << i << "] is " << lower[i] << ", but must be at most upper[" << i
              << "], which is " << upper[i];
    } else if (!std::isfinite(x0[i]) || lower[i] == infinity || upper[i] == -infinity) {
      message << "x0[" << i << "] is " << x0[i] << " in [" << lower[i] << ", " << upper[i]
              << "], but must be finite, before and after clamping";
    } else {
      continue;
    }
    reject(message.str());
  }
}

}  // namespace

void MinimizeOptions::validate(std::string_view where) const {
  const auto check = [&](std::string_view name, double value, bool good, const char* expected) {
    if (good) return;
    std::ostringstream message;
    message << where << ": " << name << " is " << value << ", but must be " << expected;
    throw std::invalid_argument(message.str());
  };
  const auto tolerance = [&](std::string_view name, double value) {
    check(name, value, value >= 0, "0 or more");
  };
  check("max_evaluations", max_evaluations, max_evaluations >= 1, "at least 1");
  check("memory", memory, memory >= 1, "at least 1");
  check("max_step", max_step, max_step > 0 && max_step < infinity, "positive and finite");
  tolerance("gradient_tolerance", gradient_tolerance);
  tolerance("relative_value_tolerance", relative_value_tolerance);
  tolerance("absolute_value_tolerance", absolute_value_tolerance);
}

std::string_view to_string(Termination termination) {
  switch (termination) {
    case Termination::gradient:
      return "gradient";
    case Termination::value_tolerance:
      return "value_tolerance";
    case Termination::max_evaluations:
      return "max_evaluations";
    case Termination::no_progress:
      return "no_progress";
    case Termination::failed_start:
      return "failed_start";
    case Termination::interrupted:
      return "interrupted";
  }
  return "unknown";
}

MinimizeSummary minimize(const Objective& objective, const Vector& x0, const Vector& lower,
                         const Vector& upper, const MinimizeOptions& options, Curvature* curvature,
                         const ShouldStop& should_stop) {
  options.validate("minimize");
  check(x0, lower, upper);
  Curvature own;
  return Minimizer(objective, x0, lower, upper, options, curvature ? *curvature : own, should_stop)
      .run();
}

}  // namespace ample
