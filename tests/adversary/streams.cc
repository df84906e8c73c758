// Streams that are hard on floating point: what a batch certifies must be true.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "adversary.h"
#include "ample/continual_gp.h"
#include "ample/snapshot.h"

namespace ample::adversary {
namespace {

double uniform(Dice& dice) { return static_cast<double>(dice.below(2'000'001)) / 1e6 - 1.0; }

/// ±10^e with e from `low` to `high`.
double magnitude(Dice& dice, int low, int high) {
  const double e = low + (high - low) * 0.5 * (uniform(dice) + 1.0);
  return (dice.one_in(2) ? 1.0 : -1.0) * std::pow(10.0, e);
}

/// Where the data lie, and how they repeat themselves.
class Source {
 public:
  explicit Source(Dice& dice) : dice_(dice), D_(1 + static_cast<Index>(dice.below(4))) {
    for (Index d = 0; d <= D_; ++d) {
      offset_.push_back(dice.one_in(2) ? magnitude(dice, 0, 12) : 0.0);
      scale_.push_back(dice.one_in(2) ? magnitude(dice, -12, 12) : 1.0);
    }
    noise_ = dice.one_in(3) ? 0.0 : std::abs(magnitude(dice, -8, 0));
    duplicates_ = dice.one_in(3);
    collinear_ = D_ > 1 && dice.one_in(3);
    constant_ = dice.one_in(10);
    drift_ = dice.one_in(4) ? magnitude(dice, 0, 12) : 0.0;
  }

  Batch next(Index rows) {
    Batch batch{Matrix(rows, D_), Vector(rows)};
    for (Index i = 0; i < rows; ++i) {
      if (duplicates_ && i > 0 && dice_.one_in(2)) {
        batch.X.row(i) = batch.X.row(i / 2);
        batch.y[i] = dice_.one_in(2) ? batch.y[i / 2] : target(0.5);
        continue;
      }
      double sum = 0.0;
      double first = 0.0;
      for (Index d = 0; d < D_; ++d) {
        double u = 3.0 * uniform(dice_);
        if (d == 0) first = u;
        if (collinear_ && d == D_ - 1) u = first;
        sum += u;
        const auto column = static_cast<std::size_t>(d);
        batch.X(i, d) = offset_[column] + scale_[column] * (u + (d == 0 ? shift_ : 0.0));
      }
      batch.y[i] = target(std::sin(sum) + noise_ * uniform(dice_));
    }
    shift_ += drift_;
    return batch;
  }

 private:
  [[nodiscard]] double target(double value) const {
    return offset_.back() + scale_.back() * (constant_ ? 0.0 : value);
  }

  Dice& dice_;
  Index D_;
  std::vector<double> offset_, scale_;
  double noise_ = 0.0;
  double drift_ = 0.0;
  double shift_ = 0.0;
  bool duplicates_ = false;
  bool collinear_ = false;
  bool constant_ = false;
};

SelectionMethod some_method(Dice& dice) {
  switch (dice.below(8)) {
    case 0:
      return ConditionalVariance{.eta = std::abs(magnitude(dice, -6, 1)), .max_inducing = 60};
    case 1:
      return Oips{.rho = 0.9};
    case 2:
      return FixedGreedy{.size = 10};
    case 3:
      return FixedGradient{.size = 6};
    case 4:
      return Vips{.delta = std::abs(magnitude(dice, -4, 0)), .pool = Vips::Pool::old_and_batch};
    case 5:
      return Vips{.delta = std::abs(magnitude(dice, -4, 0)),
                  .reference = Vips::Reference::upper_bound};
    case 6:
      return Vips{.delta = std::abs(magnitude(dice, -6, 0)), .max_inducing = 40};
    default:
      return Vips{};
  }
}

/// The paper's defaults, what suits a stranger's data, or another method; scaled and not.
ContinualGPOptions some_options(Dice& dice) {
  const std::size_t kind = dice.below(3);
  ContinualGPOptions options =
      kind == 0 ? ContinualGPOptions::out_of_the_box() : ContinualGPOptions{};
  if (kind == 0 && dice.one_in(2)) {  // reach its refits with fewer rows
    options.warm_up = 20;
    options.refit_rows = 50;
    options.reservoir = 40;
  }
  if (kind == 2) options.selection = some_method(dice);
  if (kind != 0) options.scaling = dice.one_in(2) ? Standardize::first_batch : Standardize::none;
  if (kind == 0 && dice.one_in(4)) options.scaling = Standardize::none;
  options.fit.max_evaluations = 30;
  return options;
}

/// No gap below −ε, and a threshold that was met was met: 0 ≤ gap ≤ α up to ε, which α exceeds.
void check_certificate(const BatchReport& report) {
  const auto say = [&](const char* what) {
    throw Broken{fmt::format("{}: stop {}, gap {}, threshold {}, rounding {}", what,
                             to_string(report.stop), report.gap.value_or(0.0),
                             report.threshold.value_or(0.0), report.rounding)};
  };
  for (const auto& value : {report.optimum, report.lower_bound, report.noise_bound,
                            report.threshold, report.gap, std::optional(report.elbo)}) {
    if (value && !std::isfinite(*value)) say("a report that is not finite");
  }
  if (report.gap && !(*report.gap >= -report.rounding)) say("a negative gap");
  if (report.stop != SelectionStop::threshold || !report.threshold) return;
  if (!report.gap) say("a certificate without a gap");
  if (!(*report.gap <= *report.threshold)) say("a gap beyond its threshold");
  if (!(report.rounding <= *report.threshold)) say("a certificate without digits");
}

void check_model(const ContinualGP& model, const Matrix& X) {
  const auto finite = [](const Prediction& p) {
    return p.mean.allFinite() && p.variance.allFinite() && (p.variance.array() >= 0.0).all();
  };
  if (!finite(model.predict(X))) throw Broken{"predictions that are not finite"};
  const ContinualGP again = from_bytes(to_bytes(model));
  if (again.predict(X).mean != model.predict(X).mean) throw Broken{"saved, it is another model"};
}

}  // namespace

void attack_by_stream(std::uint64_t seed) {
  Dice dice(seed);
  Source source(dice);
  ContinualGP model(some_options(dice));
  const std::size_t batches = 1 + dice.below(4);
  const Index rows = 1 + static_cast<Index>(dice.below(100));
  for (std::size_t i = 0; i < batches; ++i) {
    const Batch batch = source.next(rows);
    try {
      check_certificate(model.observe(batch.X, batch.y));
    } catch (const NumericalError&) {  // said; the model is as it was
    }
    if (model.batches() > 0) check_model(model, batch.X);
  }
}

}  // namespace ample::adversary
