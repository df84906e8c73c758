#include "start_search.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "ample/exact_gp.h"
#include "ample/optimum.h"
#include "ample/state.h"
#include "ample/target_statistics.h"
#include "check.h"
#include "evidence_fit.h"
#include "foresight.h"
#include "places.h"
#include "thinned.h"

namespace ample {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Kernel scale_lengthscales(const Kernel& kernel, double factor) {
  const std::vector<Parameter> parameters = kernel.parameters();
  Vector values(static_cast<Index>(parameters.size()));
  for (Index p = 0; p < values.size(); ++p) {
    const Parameter& parameter = parameters[static_cast<std::size_t>(p)];
    const bool scaled = !parameter.fixed && parameter.kind == Parameter::Kind::lengthscale;
    values[p] = scaled ? std::clamp(factor * parameter.value, parameter.lower, parameter.upper)
                       : parameter.value;
  }
  return kernel.with_values(values);
}

}  // namespace

Hyperparameters search_lengthscales(const Hyperparameters& start, const Matrix& X,
                                    const Sites& sites) {
  // Some hundred rows tell a lengthscale, and cost nothing beside the first fit.
  constexpr Index kRows = 400;
  const auto every = thinned(X.rows(), kRows);
  const Matrix some_X = X(every, Eigen::all);
  const Sites some = sites.weighted()
                         ? Sites(Vector(sites.target(every)), Vector(sites.weight(every)))
                         : Sites(Vector(sites.target(every)));

  Hyperparameters best = start;
  double best_density = -kInfinity;
  for (const double factor : {1.0, 1.0 / 3.0, 0.1, 1.0 / 30.0}) {
    Hyperparameters trial = start;
    trial.kernel = scale_lengthscales(start.kernel, factor);
    const State prior = State::empty(trial.kernel, trial.noise(), X.cols());
    // With no past, L* is the log density of the batch.
    const double density = optimum(prior, some_X, some).value_or(-kInfinity);
    if (density > best_density) {
      best = std::move(trial);
      best_density = density;
    }
  }
  return best;
}

namespace {

enum class Family { squared_exponential, matern52, matern32 };

// Of standardised data. The variance is the paper's bound: beyond it the least jitter exceeds the
// least noise, and no number of points reaches the optimum.
constexpr double kLeastVariance = 1e-6;
constexpr double kMostVariance = 2000.0;
constexpr double kLeastLengthscale = 1e-3;
constexpr double kMostLengthscale = 1e4;

/// Of one kernel of these families; nothing for any other, sums and products included.
std::optional<Family> family_of(const Kernel& kernel) {
  const std::string text = kernel.to_string();
  if (std::ranges::count(text, '(') != 1) return std::nullopt;
  if (text.starts_with("se(")) return Family::squared_exponential;
  if (text.starts_with("matern52(")) return Family::matern52;
  if (text.starts_with("matern32(")) return Family::matern32;
  return std::nullopt;
}

Kernel make_kernel(Family family, double start, const std::vector<double>& lengthscales) {
  const auto variance = Positive(std::clamp(start, kLeastVariance, kMostVariance))
                            .within(kLeastVariance, kMostVariance);
  std::vector<double> clamped = lengthscales;
  for (double& value : clamped) value = std::clamp(value, kLeastLengthscale, kMostLengthscale);
  const auto lengthscale = Positive(std::move(clamped)).within(kLeastLengthscale, kMostLengthscale);
  switch (family) {
    case Family::squared_exponential:
      return SquaredExponential{.variance = variance, .lengthscale = lengthscale};
    case Family::matern52:
      return Matern52{.variance = variance, .lengthscale = lengthscale};
    case Family::matern32:
      return Matern32{.variance = variance, .lengthscale = lengthscale};
  }
  AMPLE_ASSERT(false);
}

/// The free parameters of a stationary kernel.
struct Shape {
  double variance;
  std::vector<double> lengthscale;
};

Shape own_shape(const Kernel& kernel) {
  Shape shape{1.0, {}};
  for (const Parameter& p : kernel.parameters()) {
    if (p.kind == Parameter::Kind::variance) shape.variance = p.value;
    if (p.kind == Parameter::Kind::lengthscale) shape.lengthscale.push_back(p.value);
  }
  return shape;
}

/// The same with a lengthscale for each of D inputs.
Shape shape_of(const Kernel& kernel, Index D) {
  Shape shape = own_shape(kernel);
  if (shape.lengthscale.size() == 1) {
    shape.lengthscale.assign(static_cast<std::size_t>(D), shape.lengthscale.front());
  }
  return shape;
}

Shape scaled(Shape shape, double factor) {
  for (double& lengthscale : shape.lengthscale) lengthscale *= factor;
  return shape;
}

// The prior variance of a function that nothing is known of yet, in units of the noise.
constexpr double kNothing = 1e-3;

/// Candidates one after the other, each beginning where a simpler one ended. They are fitted to
/// some of the rows by the evidence, and judged by how well they foresee all others: the evidence
/// alone would favour whatever has the most lengthscales.
class KernelSearch {
 public:
  KernelSearch(const Hyperparameters& start, const Matrix& X, const Vector& y, Roughness roughness,
               Lengthscales lengthscales, const ShouldStop& should_stop)
      : start_(start),
        roughness_(roughness),
        lengthscales_(lengthscales),
        should_stop_(should_stop) {
    const std::vector<Index> some = thinned(y.size(), kFitted);
    const std::optional<std::vector<Index>> place = shared_places(X(some, Eigen::all));
    shares_places_ = place.has_value() && !start.noise_variance.is_fixed;
    // Fitted to two thirds of at most kFitted rows; all others judge. If rows share places, half of
    // those are at places of which none is fitted to: a bump at each place foresees the others.
    std::vector<Index> train;
    for (std::size_t i = 0; i < some.size(); ++i) {
      const bool judges = shares_places_ ? (*place)[i] % 6 == 5 || i % 5 == 4 : i % 3 == 2;
      if (!judges) train.push_back(some[i]);
    }
    std::vector<Index> test;
    for (Index i = 0; i < y.size(); ++i) {
      if (!std::ranges::binary_search(train, i)) test.push_back(i);
    }
    X_some_ = X(some, Eigen::all);
    y_some_ = y(some);
    X_train_ = X(train, Eigen::all);
    y_train_ = y(train);
    X_test_ = X(test, Eigen::all);
    y_test_ = y(test);
  }

  FoundKernel run() {
    consider_noise();
    try_all();
    if (roughness_ == Roughness::any) try_places(margin_per_row(kNatsForRoughness));
    if (!best_) return {noise_only(), text_};
    return {fitted_to_all(), text_};
  }

  /// The kernel that is known, with a lengthscale for each input, from where it stands and from the
  /// spread of these rows: those that it was found for may have come from a corner of their space.
  /// Nothing if as it is, fitted to the same rows, it foresees the others nearly as well.
  std::optional<FoundKernel> run_against(const Hyperparameters& known) {
    const std::optional<Family> family = family_of(without_places(known).kernel);
    if (!family) return std::nullopt;
    share_ = place_share(known);
    consider_noise();
    try_fit(known, "as it was", 40, 0.0);
    if (!best_) return std::nullopt;
    const Hyperparameters as_it_was = best_->theta;
    const Kernel function = without_places(known).kernel;
    best_.reset();
    best_score_ += margin_per_row(kNatsToChange);
    const Index D = X_some_.cols();
    if (D > 1 && own_shape(function).lengthscale.size() == 1) {
      try_nearer(at(*family, shape_of(function, D), known.noise()), "a lengthscale each", as_it_was,
                 0.0);
    }
    const Shape spread = shape_of_rows();
    try_nearer(at(*family, spread, 0.1 * spread.variance), "from the spread of the rows", as_it_was,
               0.0);
    // From there an input that matters over shorter distances may be taken for noise.
    const Shape third = scaled(spread, 1.0 / 3.0);
    try_nearer(at(*family, third, 0.1 * third.variance), "from a third of it", as_it_was, 0.0);
    try_shorter(*family, spread, as_it_was, best_ ? margin_per_row(kNatsForRoughness) : 0.0);
    try_places(best_ ? margin_per_row(kNatsForRoughness) : 0.0);
    if (!best_) return std::nullopt;
    return FoundKernel{fitted_to_all(), text_};
  }

 private:
  void try_all() {
    const Index D = X_some_.cols();
    const double root = std::sqrt(static_cast<double>(D));
    // A start that is far too long sees only noise, one far too short only noise-free data.
    for (const double lengthscale : {root, root / 3.0}) {
      try_from(Family::squared_exponential, "se", {1.0, {lengthscale}}, 0.1, 40, 0.0);
    }
    if (best_ && D > 1) {
      const Hyperparameters one = best_->theta;
      if (lengthscales_ == Lengthscales::each) consider_noise();  // what is to be beaten
      try_from(Family::squared_exponential, "se, a lengthscale each", shape_of(one.kernel, D),
               one.noise(), 60, 0.0);
    }
    // Of many inputs, one lengthscale for all cannot show the one that matters.
    if (!best_ && D > 1) {
      try_from(Family::squared_exponential, "se, a lengthscale each",
               {1.0, std::vector<double>(static_cast<std::size_t>(D), root)}, 0.1, 60, 0.0);
    }
    // Of many inputs, what looks like noise from long lengthscales has too few rows yet for short
    // ones: found from these, the kernel of the naval plants is a poor one for good.
    if (best_ || D <= kMostInputsToShorten) {
      try_shorter(Family::squared_exponential,
                  {1.0, std::vector<double>(static_cast<std::size_t>(D), root)}, noise_only(),
                  margin_per_row(kNatsForRoughness));
    }
    if (best_ && roughness_ == Roughness::any) {
      const Shape shape = own_shape(best_->theta.kernel);
      const double noise = best_->theta.noise();
      const double margin = margin_per_row(kNatsForRoughness);
      try_from(Family::matern52, "matern52", shape, noise, 30, margin);
      try_from(Family::matern32, "matern32", shape, noise, 30, margin);
    }
  }

  /// From starts with much shorter lengthscales, of all inputs or of one, unless the evidence of
  /// the rows before any fit speaks against them: the years of a long record, beside which a month
  /// or a place varies slowly, are all noise to a fit that begins with lengthscales of the whole
  /// record. `otherwise` is what they have to beat where nothing has been found yet.
  void try_shorter(Family family, const Shape& whole, const Hyperparameters& otherwise,
                   double margin) {
    const Index D = X_train_.cols();
    const double noise = 0.1 * whole.variance;
    const double least = std::max(evidence_at(family, whole, noise),
                                  evidence_at(family, scaled(whole, 1.0 / 3.0), noise)) -
                         kNatsToBeWorthAFit * static_cast<double>(y_train_.size());
    const auto try_likeliest = [&](std::initializer_list<double> factors) {
      double most = least;
      std::optional<Shape> likeliest;
      const auto consider = [&](const Shape& shape) {
        if (const double evidence = evidence_at(family, shape, noise); evidence > most) {
          most = evidence;
          likeliest = shape;
        }
      };
      for (const double factor : factors) {
        consider(scaled(whole, factor));
        if (D == 1 || D > kMostInputsToShorten) continue;
        for (std::size_t d = 0; d < static_cast<std::size_t>(D); ++d) {
          Shape one_short = whole;
          one_short.lengthscale[d] *= factor;
          consider(one_short);
        }
      }
      if (likeliest) {
        try_nearer(at(family, *likeliest, noise), "from shorter ones", otherwise, margin);
      }
    };
    try_likeliest({0.1, 1.0 / 30.0});
    if (D == 1) try_likeliest({0.01});  // of more inputs, the rows cannot be that close together
  }

  /// A smooth function and a value for each place where rows share places. Without those, what rows
  /// at the same inputs have in common is a rough function to the evidence, which says nothing of
  /// other inputs.
  void try_places(double margin) {
    if (!shares_places_ || share_ > 0.0) return;
    const Shape spread = shape_of_rows();
    const Hyperparameters smooth = at(Family::squared_exponential, spread, 0.5 * spread.variance);
    try_fit(with_free_places(smooth, 0.5), "with values of places", 60, margin);
  }

  /// It must come nearer to the targets than the rival too: where noise has heavy tails, a function
  /// with a bump at every row is more probable than a good one, since it expects anything.
  void try_nearer(const Hyperparameters& start, const std::string& name,
                  const Hyperparameters& otherwise, double margin) {
    std::optional<EvidenceFit> before = best_;
    const double score = best_score_;
    try_fit(start, name, 60, margin);
    if (best_score_ <= score) return;
    const Hyperparameters& rival = before ? before->theta : otherwise;
    if (mean_error(best_->theta) < mean_error(rival)) return;
    text_ += " (but further from the targets)";
    best_ = std::move(before);
    best_score_ = score;
  }

  /// Of the rows that judge.
  [[nodiscard]] double mean_error(const Hyperparameters& theta) const {
    ExactGP gp(theta);
    gp.condition(X_train_, y_train_);
    return (y_test_ - gp.predict(X_test_).mean).cwiseAbs().mean();
  }

  [[nodiscard]] double evidence_at(Family family, const Shape& shape, double noise) const {
    if (should_stop_ && should_stop_()) return kImpossible;
    const Hyperparameters theta = at(family, shape, noise);
    const State prior = State::empty(theta.kernel, theta.noise(), X_train_.cols());
    return optimum(prior, X_train_, Sites(y_train_)).value_or(kImpossible);
  }

  /// What a kernel must foresee better than another, of so many nats a row.
  [[nodiscard]] double margin_per_row(double nats) const {
    return std::max(kNatsToBeatNoise, nats * static_cast<double>(y_test_.size()));
  }

  /// The best one, at hyperparameters of all rows that may be fitted to.
  [[nodiscard]] Hyperparameters fitted_to_all() const {
    const EvidenceFit all =
        fit_evidence(best_->theta, X_some_, y_some_, options(20), nullptr, should_stop_);
    // The evidence of noise has optima with lengthscales so short that every row is a function of
    // its own: those foresee nothing.
    const bool is_as_good = all.summary.usable() && score(all.theta) >= best_score_;
    const Hyperparameters& theta = is_as_good ? all.theta : best_->theta;
    return with_places(theta, place_share(theta));
  }

  [[nodiscard]] Shape shape_of_rows() const {
    const auto deviation = [](const auto& values) {
      return std::sqrt((values.array() - values.mean()).square().mean());
    };
    const double variance = std::pow(deviation(y_train_), 2);
    Shape shape{variance > 0.0 ? variance : 1.0, {}};
    const double root = std::sqrt(static_cast<double>(X_train_.cols()));
    for (Index d = 0; d < X_train_.cols(); ++d) {
      const double unit = deviation(X_train_.col(d));
      const bool varies = unit > kLeastLengthscale && std::isfinite(unit);
      shape.lengthscale.push_back(root * (varies ? unit : 1.0));
    }
    return shape;
  }

  void consider_noise() {
    best_.reset();
    TargetStatistics targets;
    targets.observe(y_train_);
    as_noise_ = Vector::NullaryExpr(
        y_test_.size(), [&](Index i) { return targets.log_density(y_test_.segment(i, 1)); });
    best_score_ = as_noise_.sum() + kNatsToBeatNoise;
    if (text_.empty()) text_ = fmt::format("noise: {:.1f}", as_noise_.sum());
  }

  /// Nothing to learn, as it seems: next to all of the variance is noise, and the model is open to
  /// a smooth function.
  [[nodiscard]] Hyperparameters noise_only() const {
    const auto D = static_cast<std::size_t>(X_some_.cols());
    const std::size_t count = lengthscales_ == Lengthscales::each ? D : 1;
    const std::vector<double> lengthscales(count, std::sqrt(static_cast<double>(D)));
    // Not 1: the rows may be in the units of others.
    const double noise = std::max(y_some_.squaredNorm() / static_cast<double>(y_some_.size()),
                                  start_.noise_variance.lower);
    return at(Family::squared_exponential, {kNothing * noise, lengthscales}, noise);
  }

  void try_from(Family family, const std::string& name, const Shape& shape, double noise,
                int evaluations, double margin) {
    try_fit(at(family, shape, noise), name, evaluations, margin);
  }

  void try_fit(const Hyperparameters& start, const std::string& name, int evaluations,
               double margin) {
    if (should_stop_ && should_stop_()) return;  // with the best so far
    EvidenceFit fit =
        fit_evidence(start, X_train_, y_train_, options(evaluations), nullptr, should_stop_);
    if (!fit.summary.usable()) return;
    const double score = this->score(fit.theta);
    if (score == kImpossible) return;
    text_ += fmt::format("; {}: {:.1f}", name, score);
    if (score <= best_score_ + margin) return;
    best_score_ = score;
    best_ = std::move(fit);
  }

  /// The log density of the rows that judge, foreseen from those that are fitted to.
  [[nodiscard]] double score(const Hyperparameters& theta) const {
    const Vector densities = foreseen(theta, X_train_, y_train_, X_test_, y_test_);
    if (densities.size() == 0) return kImpossible;
    return densities.cwiseMax((as_noise_.array() - kMostARow).matrix()).sum();
  }

  [[nodiscard]] Hyperparameters at(Family family, const Shape& shape, double noise) const {
    Hyperparameters theta = start_;
    theta.kernel = make_kernel(family, shape.variance, shape.lengthscale);
    if (!theta.noise_variance.is_fixed) {
      theta.noise_variance.value =
          std::clamp(noise, theta.noise_variance.lower, theta.noise_variance.upper);
    }
    return share_ > 0.0 ? with_free_places(theta, share_) : theta;
  }

  static MinimizeOptions options(int evaluations) {
    MinimizeOptions options;
    options.max_evaluations = evaluations;
    options.absolute_value_tolerance = 0.05;  // nats: far below what the choice turns on
    return options;
  }

  /// What a kernel must foresee better than the model that explains nothing.
  static constexpr double kNatsToBeatNoise = 5.0;
  /// What a rougher kernel must foresee better, for each row: it takes several times the points.
  static constexpr double kNatsForRoughness = 0.03;

  /// What another kernel must foresee better than the one that is known, for each row.
  static constexpr double kNatsToChange = 0.05;

  /// Nats a row by which a short start may fall behind the long ones and still be fitted.
  static constexpr double kNatsToBeWorthAFit = 0.1;
  /// Up to which number of inputs each is tried with a short lengthscale of its own, and all of
  /// them where all looks like noise.
  static constexpr Index kMostInputsToShorten = 10;

  /// What a row can tell against a kernel, in nats below what it has as noise: of a function
  /// without noise a single outlier would decide.
  static constexpr double kMostARow = 10.0;
  /// Rows that kernels are fitted to: evaluations cost O(N³).
  static constexpr Index kFitted = 1000;
  static constexpr double kImpossible = -std::numeric_limits<double>::infinity();

  const Hyperparameters& start_;
  Roughness roughness_;
  Lengthscales lengthscales_;
  const ShouldStop& should_stop_;
  Matrix X_some_, X_train_, X_test_;
  Vector y_some_, y_train_, y_test_;
  bool shares_places_ = false;
  double share_ = 0.0;  // of the noise that values of places were found to be
  Vector as_noise_;     // log densities of y_test_ under the model that explains nothing
  std::optional<EvidenceFit> best_;
  double best_score_ = 0.0;
  std::string text_;
};

// Rows that kernels are fitted to and judged by.
constexpr Index kMostRows = 2000;

/// At most kMostRows, from everywhere. Where rows share places, a copy among those that judge would
/// be foreseen by the other.
std::vector<Index> rows_for_search(const Matrix& X, const Vector& y) {
  std::vector<Index> every = thinned(X.rows(), kMostRows);
  const Matrix some_X = X(every, Eigen::all);
  if (!shared_places(some_X)) return every;
  std::vector<Index> rows;
  for (const Index i : without_copies(some_X, y(every))) {
    rows.push_back(every[static_cast<std::size_t>(i)]);
  }
  return rows;
}

}  // namespace

bool explains_nothing(const Hyperparameters& theta, const Matrix& X) {
  return theta.kernel.diagonal(X).mean() < 10.0 * kNothing * theta.noise();
}

FoundKernel find_kernel(const Hyperparameters& start, const Matrix& X, const Vector& y,
                        Roughness roughness, Lengthscales lengthscales,
                        const ShouldStop& should_stop) {
  const std::vector<Index> every = rows_for_search(X, y);
  const Matrix some_X = X(every, Eigen::all);
  const Vector some_y = y(every);
  return KernelSearch(start, some_X, some_y, roughness, lengthscales, should_stop).run();
}

std::optional<FoundKernel> find_better_kernel(const Hyperparameters& known, const Matrix& X,
                                              const Vector& y, const ShouldStop& should_stop) {
  const std::vector<Index> every = rows_for_search(X, y);
  const Matrix some_X = X(every, Eigen::all);
  const Vector some_y = y(every);
  return KernelSearch(known, some_X, some_y, Roughness::any, Lengthscales::each, should_stop)
      .run_against(known);
}

}  // namespace ample
