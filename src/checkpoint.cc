// Whether the parts of a model fit together. What passes can predict and learn; a model file is
// held to it when it is loaded and before it is saved.
#include <cmath>
#include <optional>
#include <stdexcept>
#include <variant>

#include "ample/continual_gp.h"
#include "check.h"
#include "update.h"

namespace ample {
namespace {

using Checkpoint = ContinualGP::Checkpoint;

constexpr std::string_view kModel = "ContinualGP";

// Predictions stay this far below overflow.
constexpr double kLargest = 1e303;

void check_targets(const TargetStatistics& targets) {
  const double spread = targets.m2 + targets.mean * targets.mean;
  if (!(targets.m2 >= 0.0) || !(spread <= kMostTargetSquares)) {
    invalid(
        "{}: the targets have the mean {} and the sum of squares {}, but their squares must be "
        "at most {}",
        kModel, targets.mean, targets.m2, kMostTargetSquares);
  }
  if (!(targets.weight >= 0.0 && targets.weight <= static_cast<double>(targets.count))) {
    invalid("{}: {} targets count {}, but must count from 0 to as many", kModel, targets.count,
            targets.weight);
  }
  if (targets.count == 0 && spread != 0.0) {
    invalid("{}: no targets have the mean {}, but must have 0", kModel, targets.mean);
  }
}

/// |mean| ≤ √k ‖w‖ and variance ≤ k + σ² in scaled units, k being the prior variance.
void check_predictions(const Predictor& predictor) {
  const State& state = predictor.state();
  const Scaling& scaling = predictor.scaling();
  const Matrix origin = Matrix::Zero(1, state.dimension());
  const double k = state.kernel.diagonal(state.size() > 0 ? state.Z : origin).maxCoeff();
  const double mean =
      std::abs(scaling.target_mean) + scaling.target_scale * std::sqrt(k) * state.w.blueNorm();
  const double variance = scaling.target_scale * scaling.target_scale * (k + state.noise_variance);
  if (!(mean <= kLargest) || !(variance <= kLargest) || !std::isfinite(state.F)) {
    invalid("{}: predictions have means of {} and variances of {}, but both must be at most {}",
            kModel, mean, variance, kLargest);
  }
}

bool suits(const Kernel& kernel, Index D) {
  try {
    kernel.check_dimension(D);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

/// The fewest inputs that suit a kernel; none of up to a thousand may.
std::optional<Index> fewest_inputs(const Kernel& kernel) {
  constexpr Index kMost = 1000;
  for (Index D = 1; D <= kMost; ++D) {
    if (suits(kernel, D)) return D;
  }
  return std::nullopt;
}

/// What a model predicts that has seen nothing.
void check_prior(const Checkpoint& model) {
  const Kernel& kernel = model.theta.kernel;
  const auto* given = std::get_if<Scaling>(&model.options.scaling);
  const std::optional<Index> D =
      given != nullptr ? given->input_mean.size() : fewest_inputs(kernel);
  if (!D) return;
  kernel.check_dimension(*D);
  check_predictions(Predictor(State::empty(kernel, model.theta.noise(), *D),
                              given != nullptr ? *given : Scaling::identity(*D)));
}

void check_scaling(const ContinualGPOptions& options, const Scaling& scaling) {
  const auto* how = std::get_if<Standardize>(&options.scaling);
  if (how == nullptr || *how != Standardize::none) return;
  if (scaling.input_mean.any() || (scaling.input_scale.array() != 1.0).any() ||
      scaling.target_mean != 0.0 || scaling.target_scale != 1.0) {
    invalid("{}: the data are scaled, but must not be (standardize none)", kModel);
  }
}

void check_reservoir(const Checkpoint& model, Index D) {
  const Reservoir& rows = model.reservoir;
  if (rows.size() == 0) return;
  check_columns(kModel, "the reservoir", rows.X.cols(), D, "the model's input dimension");
  check_rows(kModel, "the reservoir's y", rows.y.size(), rows.size(), "the rows of its X");
  if (rows.size() > model.options.reservoir || rows.seen < rows.size() ||
      rows.seen > model.targets.count - model.pending.X.rows() || rows.fitted > rows.seen ||
      !(rows.weight >= 0.0 && rows.weight <= static_cast<double>(rows.seen))) {
    invalid("{}: the reservoir has {} of {} rows, but must have at most {} of {}", kModel,
            rows.size(), rows.seen, model.options.reservoir, model.targets.count);
  }
}

void check_pending(const Checkpoint& model, Index D) {
  const ContinualGP::Pending& rows = model.pending;
  const Index waiting = rows.X.rows();
  if (waiting == 0) return;
  check_columns(kModel, "what is pending", rows.X.cols(), D, "the model's input dimension");
  check_rows(kModel, "the y pending", rows.y.size(), waiting, "the rows of its X");
  if (const double most = rows.X.cwiseAbs().maxCoeff(); !(most <= kMostInput)) {
    invalid("{}: an input pending is {}, but must be at most {}", kModel, most, kMostInput);
  }
  if (rows.known < 0 || rows.known > waiting || rows.recent < 0 || rows.recent > waiting ||
      !(rows.recent_chi_squared >= 0.0 && rows.recent_chi_squared <= 1e300)) {
    invalid("{}: of {} rows pending {} are known and {} are recent, but must be of them", kModel,
            waiting, rows.known, rows.recent);
  }
  const Index before = rows.base_targets.count;
  if (before < 0 || before != model.targets.count - waiting) {
    invalid("{}: {} rows are pending after {}, but there must be {} in all", kModel, waiting,
            before, model.targets.count);
  }
  if (!rows.base) return;
  check_columns(kModel, "what rows are pending for", rows.base->dimension(), D,
                "the model's input dimension");
  check_targets(rows.base_targets);
  check_predictions(*rows.base);
}

}  // namespace

void ContinualGP::Checkpoint::validate() const {
  options.validate();
  theta.check(kModel);
  if (batches > targets.count || (batches > 0) != (predictor != nullptr) ||
      (batches == 0 && targets.count > 0)) {
    invalid("{}: {} batches of {} rows, but must have at least a row in each batch", kModel,
            batches, targets.count);
  }
  check_targets(targets);
  if (fitted_rows < 0 || fitted_rows > targets.count) {
    invalid("{}: hyperparameters were fitted to {} rows, but must be to at most {}", kModel,
            fitted_rows, targets.count);
  }
  for (const std::optional<double>& moment : {time, pending.since}) {
    if (moment && !std::isfinite(*moment)) {
      invalid("{}: its time is {}, but must be finite", kModel, *moment);
    }
  }
  if (!predictor) {
    if (reservoir.size() > 0 || pending.X.rows() > 0) {
      invalid("{}: rows are kept, but none has been seen", kModel);
    }
    return check_prior(*this);
  }
  const Index D = predictor->dimension();
  theta.kernel.check_dimension(D);
  if (!options.find_kernel) options.start.kernel.check_dimension(D);
  if (!warming_up() &&
      theta.kernel.num_parameters() != predictor->state().kernel.num_parameters()) {
    invalid("{}: the kernel has {} parameters, but must have {} as that of the state", kModel,
            theta.kernel.num_parameters(), predictor->state().kernel.num_parameters());
  }
  check_scaling(options, predictor->scaling());
  check_predictions(*predictor);
  check_reservoir(*this, D);
  check_pending(*this, D);
}

}  // namespace ample
