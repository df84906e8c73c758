#include "ample/selection.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include <fmt/ranges.h>

#include "ample/bound.h"
#include "check.h"
#include "greedy_variance.h"
#include "incremental_bound.h"
#include "jitter.h"

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

/// ε of the new points: that of the old ones, so that the old factor L is reused as it stands.
double selection_jitter(const SelectionProblem& p) {
  if (p.old.size() > 0) return p.old.jitter;
  const double mean_variance = p.old.kernel.diagonal(p.X).mean();
  return first_jitter(mean_variance, p.old.noise_variance)
      .value(mean_variance, p.old.noise_variance);
}

Matrix stack(const MatrixRef& top, const MatrixRef& bottom) {
  Matrix all(top.rows() + bottom.rows(), bottom.cols());
  all << top, bottom;
  return all;
}

Matrix rows_of(const MatrixRef& points, const std::vector<Index>& which) {
  Matrix out(static_cast<Index>(which.size()), points.cols());
  for (std::size_t i = 0; i < which.size(); ++i) {
    out.row(static_cast<Index>(i)) = points.row(which[i]);
  }
  return out;
}

/// Z from a pool of [Z_old; X], old points first and in their old order.
Selection from_pool(const SelectionProblem& p, const Matrix& pool, std::vector<Index> taken) {
  std::sort(taken.begin(), taken.end());
  Selection selection;
  selection.Z = rows_of(pool, taken);
  selection.added =
      std::count_if(taken.begin(), taken.end(), [&](Index i) { return i >= p.old.size(); });
  selection.removed = p.old.size() - (selection.Z.rows() - selection.added);
  return selection;
}

SelectionStop why_exhausted(const GreedyVariance& greedy) {
  return greedy.stopped_by_rounding() ? SelectionStop::no_variance : SelectionStop::pool_used_up;
}

/// The optimum of the bound, or an upper bound on it that gets tighter as points are added.
class ReferenceValue {
 public:
  ReferenceValue(const SelectionProblem& problem, Vips::Reference kind, Vips::Pool pool)
      : p_(problem), pool_(pool), schedule_(kind != Vips::Reference::optimum) {
    // Û′ needs the old points to be kept, so a pool that may drop some is measured against L*.
    if (pool == Vips::Pool::old_and_batch) schedule_ = false;
    const auto N = static_cast<double>(p_.X.rows());
    const auto M = static_cast<double>(p_.old.size());
    optimum_cost_ = kind == Vips::Reference::upper_bound ? std::numeric_limits<double>::infinity()
                                                         : N * N * N / 3.0 + 4.0 * N * N * M;
    if (kind == Vips::Reference::automatic && p_.X.rows() <= kSmallBatch) schedule_ = false;
    if (!schedule_) use_optimum();
  }

  /// The value at the inducing points chosen so far.
  double at(const GreedyVariance& greedy, const IncrementalBound& bound) {
    const Index M = bound.size();
    if (!schedule_ || M < next_) return value_;
    const auto N = static_cast<double>(p_.X.rows());
    const auto m = static_cast<double>(M);
    // Beyond what L* costs, a fit with ever more points is not worth avoiding it.
    if (kFitEvaluations * 4.0 * N * m * m > optimum_cost_) {
      use_optimum();
      return value_;
    }
    next_ = std::max(M + 1, static_cast<Index>(kScheduleRatio * m));
    if (const auto u = upper_bound(UpperBound::tight, p_.old, greedy.Vt(), bound.L_D(),
                                   greedy.residual().sum(), p_.y)) {
      value_ = std::min(value_, *u);  // each is an upper bound, so the least of them is
    }
    return value_;
  }

  [[nodiscard]] bool is_optimum() const { return !schedule_ && std::isfinite(value_); }

 private:
  void use_optimum() {
    schedule_ = false;
    if (const auto best = optimum(p_.old, p_.X, p_.y)) {
      value_ = *best;
    } else if (pool_ == Vips::Pool::batch) {
      // K_ff + σ² I is beyond Cholesky; Û′ factorises only matrices with eigenvalues from 1 up.
      schedule_ = true;
      optimum_cost_ = std::numeric_limits<double>::infinity();
    }
  }

  const SelectionProblem& p_;
  Vips::Pool pool_;
  bool schedule_;
  double optimum_cost_;
  Index next_ = 0;
  double value_ = std::numeric_limits<double>::infinity();
};

/// Points taken for a batch, and what is known with them.
struct Growth {
  std::vector<Index> taken;  // places in the pool
  SelectionStop stop;
  double optimum, lower_bound, threshold;
};

/// Takes points while the gap exceeds α. The pool begins with `old_in_pool` old inducing points.
///
/// Jitter keeps L̂ below L* whatever is taken, by some ε/2σ² nats for a new inducing variable, and
/// more points are no remedy. Once those taken may have left a quarter of α that way, or none is
/// left to take, its cost J is computed, L* less what all points reach, and a gap of min(α + J, 4J)
/// will do: jitter may use a quarter of α, what it takes beyond that is added to α (decision 0004).
template <class Append, class Residual>
Growth grow(const Vips& vips, const SelectionProblem& p, Index old_in_pool, double noise,
            GreedyVariance& greedy, const IncrementalBound& bound, const Append& append,
            const Residual& residual) {
  const double jitter = selection_jitter(p);
  const Index start = bound.size();
  const auto pool_size = static_cast<std::size_t>(greedy.residual().size());
  ReferenceValue reference(p, vips.reference, vips.pool);
  double best = 0.0;
  double alpha = 0.0;
  std::optional<double> jitter_cost;  // J, once there was reason to compute it
  std::vector<double> lower;          // L̂ by the number of points taken

  const auto enough = [&](std::size_t taken) -> std::optional<SelectionStop> {
    const Index M = start + static_cast<Index>(taken);
    // A model needs one point to remember anything at all.
    if (M > 0 && std::isfinite(best)) {
      const double gap = best - lower[taken];
      if (gap <= alpha) return SelectionStop::threshold;
      const double J = jitter_cost.value_or(0.0);
      if (taken < pool_size && gap <= std::min(alpha + J, J / kShareForJitter)) {
        return SelectionStop::jitter;
      }
    }
    if (M >= vips.max_inducing) return SelectionStop::cap;
    return std::nullopt;
  };
  const auto growth = [&](std::size_t taken, SelectionStop stop) {
    const auto first = greedy.taken().begin();
    return Growth{
        {first, first + static_cast<std::ptrdiff_t>(taken)}, stop, best, lower[taken], alpha};
  };

  double left_by_jitter = 0.0;
  for (;;) {
    best = reference.at(greedy, bound);
    alpha = vips.delta * std::abs(best - noise);
    lower.push_back(bound.value(residual()));
    const std::size_t taken = lower.size() - 1;
    if (const auto stop = enough(taken)) return growth(taken, *stop);

    const auto next = greedy.take_next();
    const bool suspected = !next || left_by_jitter > kShareForJitter * alpha;
    if (suspected && !jitter_cost && reference.is_optimum()) {
      const auto reach = next ? optimum(p.old, p.X, p.y, jitter) : lower[taken];
      jitter_cost = best - reach.value_or(best);
      for (std::size_t fewer = 0; fewer <= taken; ++fewer) {
        if (const auto stop = enough(fewer)) return growth(fewer, *stop);
      }
    }
    if (!next) return growth(taken, why_exhausted(greedy));
    if (*next >= old_in_pool) left_by_jitter += 0.5 * jitter / p.old.noise_variance;
    append();
  }
}

void record(const Growth& growth, double noise, Selection& selection) {
  selection.stop = growth.stop;
  selection.lower_bound = growth.lower_bound;
  selection.noise_bound = noise;
  // Else neither L* nor a bound on it could be computed: the gap is unknown, every point was taken.
  if (std::isfinite(growth.optimum)) {
    selection.optimum = growth.optimum;
    selection.threshold = growth.threshold;
  }
}

}  // namespace

std::string_view to_string(SelectionStop stop) {
  switch (stop) {
    case SelectionStop::threshold:
      return "threshold";
    case SelectionStop::pool_used_up:
      return "pool used up";
    case SelectionStop::no_variance:
      return "no variance left";
    case SelectionStop::jitter:
      return "jitter";
    case SelectionStop::cap:
      return "cap";
    case SelectionStop::size:
      return "size";
  }
  AMPLE_ASSERT(false);
}

double noise_bound(const State& old, const MatrixRef& X, const VectorRef& y,
                   const NoiseModel& targets) {
  // Before the targets show any variance, the prior's takes its place.
  return targets.log_density(y, old.kernel.diagonal(X).mean() + old.noise_variance);
}

Selection Vips::select(const SelectionProblem& p) const {
  check_positive("vips", "delta", delta);
  const double noise = noise_bound(p.old, p.X, p.y, p.targets);
  Selection selection;
  if (pool == Pool::batch) {
    GreedyVariance greedy(p.old.kernel, p.X, selection_jitter(p));
    if (p.old.size() > 0) greedy.start_from(p.old.Z, p.old.L);
    auto bound = IncrementalBound::from_old(p.old, p.y, greedy.Vt());
    if (!bound) {
      throw NumericalError(
          "vips: the precision of the batch cannot be factorised; "
          "standardise the data or raise the lower bound of noise_variance");
    }
    const Growth growth = grow(
        *this, p, 0, noise, greedy, *bound, [&] { bound->append(greedy.Vt(), Vector()); },
        [&] { return greedy.residual().sum(); });
    selection.Z = stack(p.old.Z, rows_of(p.X, growth.taken));
    selection.added = static_cast<Index>(growth.taken.size());
    record(growth, noise, selection);
    return selection;
  }
  const Index M_a = p.old.size();
  const Matrix candidates = stack(p.old.Z, p.X);
  GreedyVariance greedy(p.old.kernel, candidates, selection_jitter(p), M_a);
  IncrementalBound bound(p.old, p.y);
  const Growth growth = grow(
      *this, p, M_a, noise, greedy, bound,
      [&] {
        bound.append(greedy.Vt().bottomRows(p.X.rows()), greedy.Vt().col(bound.size()).head(M_a));
      },
      [&] { return greedy.residual().tail(p.X.rows()).sum(); });
  selection = from_pool(p, candidates, growth.taken);
  record(growth, noise, selection);
  return selection;
}

Selection ConditionalVariance::select(const SelectionProblem& p) const {
  check_positive("cv", "eta", eta);
  const Matrix pool = stack(p.old.Z, p.X);
  GreedyVariance greedy(p.old.kernel, pool, selection_jitter(p), p.old.size());
  SelectionStop stop = SelectionStop::threshold;
  while (greedy.size() == 0 || greedy.residual().sum() > eta) {
    if (greedy.size() >= max_inducing) {
      stop = SelectionStop::cap;
      break;
    }
    if (!greedy.take_next()) {
      stop = why_exhausted(greedy);
      break;
    }
  }
  Selection out = from_pool(p, pool, greedy.taken());
  out.stop = stop;
  return out;
}

Selection FixedGreedy::select(const SelectionProblem& p) const {
  if (size < 1) invalid("fixed-greedy: size is {}, but must be at least 1", size);
  const Matrix pool = stack(p.old.Z, p.X);
  GreedyVariance greedy(p.old.kernel, pool, selection_jitter(p), p.old.size());
  SelectionStop stop = SelectionStop::size;
  while (greedy.size() < size) {
    if (!greedy.take_next()) {
      stop = why_exhausted(greedy);
      break;
    }
  }
  Selection out = from_pool(p, pool, greedy.taken());
  out.stop = stop;
  return out;
}

Selection FixedGradient::select(const SelectionProblem& p) const {
  Selection out = FixedGreedy{.size = size}.select(p);
  out.moving = true;
  return out;
}

namespace {

/// Removes points of Z that overlap, i.e. have a correlation above `threshold` with another one:
/// at random, those with many overlaps sooner, until none is left or `keep` points remain.
void remove_overlapping(std::vector<Index>& members, Matrix correlation, double threshold,
                        Index keep, std::mt19937_64& generator) {
  const Index n = correlation.rows();
  correlation.diagonal().setZero();
  std::vector<double> overlaps(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i) {
    overlaps[static_cast<std::size_t>(i)] =
        static_cast<double>((correlation.row(i).array() > threshold).count());
  }
  Index left = n;
  std::vector<char> removed(static_cast<std::size_t>(n), 0);
  while (left > keep &&
         std::any_of(overlaps.begin(), overlaps.end(), [](double o) { return o > 0; })) {
    std::discrete_distribution<Index> pick(overlaps.begin(), overlaps.end());
    const Index i = pick(generator);
    removed[static_cast<std::size_t>(i)] = 1;
    overlaps[static_cast<std::size_t>(i)] = 0.0;
    for (Index j = 0; j < n; ++j) {
      double& o = overlaps[static_cast<std::size_t>(j)];
      if (correlation(i, j) > threshold && o > 0.0) o -= 1.0;
    }
    --left;
  }
  std::vector<Index> kept;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (removed[i] == 0) kept.push_back(members[i]);
  }
  members = std::move(kept);
}

}  // namespace

Selection Oips::select(const SelectionProblem& p) const {
  if (!(rho > 0.0) || !(rho <= 1.0)) invalid("oips: rho is {}, but must be in (0, 1]", rho);
  const Kernel kernel = p.old.kernel.without_constant();
  const Index M_a = p.old.size();
  const Index N = p.X.rows();
  const Matrix pool = stack(p.old.Z, p.X);
  const Vector variance = kernel.diagonal(pool);
  std::mt19937_64 generator(p.seed);
  double accept = rho;

  // Members of Z by their place in the pool, and for each point of the batch its largest
  // covariance with one of them.
  std::vector<Index> members(static_cast<std::size_t>(M_a));
  std::iota(members.begin(), members.end(), 0);
  Vector closest = Vector::Zero(N);
  Vector column(N);
  const auto add = [&](Index i) {
    members.push_back(i);
    kernel.evaluate(p.X, pool.row(i), column);
    closest = closest.cwiseMax(column);
  };
  if (M_a == 0) {
    std::vector<Index> order(static_cast<std::size_t>(N));
    std::iota(order.begin(), order.end(), 0);
    std::vector<Index> start;
    std::sample(order.begin(), order.end(), std::back_inserter(start),
                std::min({k_min, N, max_inducing}), generator);
    for (const Index i : start) add(i);
  } else {
    closest = kernel(p.X, p.old.Z).rowwise().maxCoeff();
  }

  SelectionStop stop = SelectionStop::threshold;
  constexpr double kLower = 0.95;  // how much the thresholds give way at the cap; as the original's
  for (Index n = 0; n < N; ++n) {
    const Index i = M_a + n;
    if (closest[n] >= accept * variance[i]) continue;
    add(i);
    while (static_cast<Index>(members.size()) > max_inducing) {
      stop = SelectionStop::cap;
      const Matrix Z = rows_of(pool, members);
      Matrix correlation = kernel(Z, Z);
      // The floor is for points of variance zero, such as the origin to a linear kernel.
      constexpr double kFloor = std::numeric_limits<double>::min();
      const Vector root = variance(members).cwiseMax(kFloor).cwiseSqrt().cwiseInverse();
      correlation = root.asDiagonal() * correlation * root.asDiagonal();
      correlation.diagonal().setZero();
      const double remove = kLower * correlation.maxCoeff();
      remove_overlapping(members, correlation, remove, std::min(k_min, max_inducing), generator);
      if (static_cast<Index>(members.size()) == Z.rows()) {
        // No two points are alike at all: any of them may go.
        const auto any = std::uniform_int_distribution<Index>(0, Z.rows() - 1)(generator);
        members.erase(members.begin() + any);
      } else if (remove < accept) {
        accept = kLower * remove;
      }
      closest = kernel(p.X, rows_of(pool, members)).rowwise().maxCoeff();
    }
  }
  Selection out = from_pool(p, pool, members);
  out.stop = stop;
  return out;
}

namespace {

/// Reads settings by name, so that an unknown one is noticed.
class SettingsReader {
 public:
  SettingsReader(std::string_view method, const SelectionSettings& settings)
      : method_(method), left_(settings) {}

  void number(const char* name, double& value, double low, double high, std::string_view range) {
    const auto it = left_.find(name);
    if (it == left_.end()) return;
    if (!(it->second > low) || !(it->second <= high)) {
      invalid("{}: {} is {}, but must be {}", method_, name, it->second, range);
    }
    value = it->second;
    left_.erase(it);
  }
  void count(const char* name, Index& value) {
    double number_value = 1.0;
    if (!left_.contains(name)) return;
    number(name, number_value, 0.0, 1e9, "a whole number from 1");
    if (number_value != std::floor(number_value)) {
      invalid("{}: {} is {}, but must be a whole number", method_, name, number_value);
    }
    value = static_cast<Index>(number_value);
  }
  template <class Enum>
  void choice(const char* name, Enum& value, int last) {
    const auto it = left_.find(name);
    if (it == left_.end()) return;
    if (!(it->second >= 0) || !(it->second <= last) || it->second != std::floor(it->second)) {
      invalid("{}: {} is {}, but must be from 0 to {}", method_, name, it->second, last);
    }
    value = static_cast<Enum>(static_cast<int>(it->second));
    left_.erase(it);
  }
  void finish() const {
    if (!left_.empty()) invalid("{}: it has no setting '{}'", method_, left_.begin()->first);
  }

 private:
  std::string_view method_;
  SelectionSettings left_;
};

void put_cap(SelectionSettings& settings, Index cap) {
  if (cap != kNoCap) settings["max_inducing"] = static_cast<double>(cap);
}

}  // namespace

SelectionSettings Vips::settings() const {
  // What is as usual is not worth a number that one has to look up.
  SelectionSettings s{{"delta", delta}};
  if (pool != Pool::batch) s["pool"] = static_cast<double>(pool);
  if (reference != Reference::automatic) s["reference"] = static_cast<double>(reference);
  put_cap(s, max_inducing);
  return s;
}

SelectionSettings ConditionalVariance::settings() const {
  SelectionSettings s{{"eta", eta}};
  put_cap(s, max_inducing);
  return s;
}

SelectionSettings Oips::settings() const {
  SelectionSettings s{{"rho", rho}, {"k_min", static_cast<double>(k_min)}};
  put_cap(s, max_inducing);
  return s;
}

SelectionSettings FixedGreedy::settings() const { return {{"size", static_cast<double>(size)}}; }

SelectionSettings FixedGradient::settings() const { return {{"size", static_cast<double>(size)}}; }

SelectionMethod make_selection(std::string_view name, const SelectionSettings& settings) {
  SettingsReader read(name, settings);
  const auto finished = [&](auto method) {
    read.finish();
    return SelectionMethod(method);
  };
  if (name == Vips::name()) {
    Vips m;
    read.number("delta", m.delta, 0.0, 1e6, "positive");
    read.choice("pool", m.pool, 1);
    read.choice("reference", m.reference, 2);
    read.count("max_inducing", m.max_inducing);
    return finished(m);
  }
  if (name == ConditionalVariance::name()) {
    ConditionalVariance m;
    read.number("eta", m.eta, 0.0, 1e300, "positive");
    read.count("max_inducing", m.max_inducing);
    return finished(m);
  }
  if (name == Oips::name()) {
    Oips m;
    read.number("rho", m.rho, 0.0, 1.0, "in (0, 1]");
    read.count("k_min", m.k_min);
    read.count("max_inducing", m.max_inducing);
    return finished(m);
  }
  if (name == FixedGreedy::name()) {
    FixedGreedy m;
    read.count("size", m.size);
    return finished(m);
  }
  if (name == FixedGradient::name()) {
    FixedGradient m;
    read.count("size", m.size);
    return finished(m);
  }
  invalid("selection: unknown method '{}', expected vips, cv, oips, fixed-greedy or fixed-gradient",
          name);
}

}  // namespace ample
