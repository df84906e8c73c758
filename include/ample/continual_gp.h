// Continual Gaussian-process regression that sizes itself (VIPS; Pescador-Barrios, Filippi & van
// der Wilk, ICML 2025). Batches go in and are not kept; after each, the model has chosen how many
// inducing points it needs, refitted its hyperparameters, and predicts.
//
//   ContinualGP gp;                                  // no knobs needed
//   BatchReport r = gp.observe(X, y);                // any number of rows, any number of times
//   Prediction p = gp.predict(X_new);
//
// observe() is check → select → fit → absorb → report. O(N M² + M³) for each evaluation of the fit,
// O(M²) memory between batches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ample/batch_report.h"
#include "ample/hyperparameters.h"
#include "ample/noise_model.h"
#include "ample/optimizer.h"
#include "ample/posterior.h"
#include "ample/scaling.h"
#include "ample/selection.h"
#include "ample/types.h"

namespace ample {

/// Where a model starts, how it chooses its points and how it fits. Every option has a default.
struct ContinualGPOptions {
  /// Where the hyperparameters start, their bounds, and which of them are fixed. The noise variance
  /// starts at 0.1 as in the paper.
  Hyperparameters start{.kernel = SquaredExponential{}};

  /// Begin the first batch at a third, a tenth or a thirtieth of the start's free lengthscales if
  /// that makes the batch more probable. From a start that is far too long, everything looks like
  /// noise, the model stays small and no later batch leads out of it. For those who have no kernel
  /// in mind; the estimators of Python and the program do so then.
  bool search_start = false;

  /// How inducing points are chosen.
  SelectionMethod selection = Vips{};

  /// Refit the hyperparameters after every k-th batch, beginning with the first; 0: never.
  Index refit_every = 1;

  /// How inputs and targets are scaled: not at all, to mean 0 and deviation 1 of the first batch,
  /// or as given.
  enum class Standardize { none, first_batch, given };
  Standardize standardize = Standardize::none;
  std::optional<Scaling> scaling;  // for Standardize::given

  /// The fit. A change of the bound far below α, the nats the selection was free to lose, cannot
  /// matter: the fit stops when two steps in a row gain less than this share of α, or than rounding
  /// may change the bound by. With 0 it goes on to the tolerances of `fit`.
  MinimizeOptions fit;
  double fit_tolerance = 1e-4;

  /// For selection methods that draw random numbers.
  std::uint64_t seed = 0;
};

/// The model. observe() learns; all else asks and changes nothing.
class ContinualGP {
 public:
  /// All that a model is: what it takes to go on as if it had never stopped.
  struct Checkpoint {
    ContinualGPOptions options;
    Hyperparameters theta;
    std::optional<Posterior> posterior;  // empty before the first batch
    Scaling scaling;
    NoiseModel targets;  // of the scaled targets
    Index batches = 0;
    Curvature curvature;
  };

  explicit ContinualGP(ContinualGPOptions options = {});
  explicit ContinualGP(Checkpoint checkpoint);

  /// Learns from a batch X [N,D], y [N], N ≥ 1. Throws std::invalid_argument for a wrong shape or a
  /// value that is not finite, NumericalError if the batch cannot be absorbed; the model is then as
  /// it was before.
  BatchReport observe(const MatrixRef& X, const VectorRef& y);

  /// Predictions in the units of the data. Before the first batch, the prior's.
  [[nodiscard]] Prediction predict(const MatrixRef& X, Target target = Target::function) const;
  [[nodiscard]] JointPrediction predict_joint(const MatrixRef& X,
                                              Target target = Target::function) const;
  /// Joint samples, one a column   [N,count].
  [[nodiscard]] Matrix sample(const MatrixRef& X, Index count, std::uint64_t seed,
                              Target target = Target::function) const;
  /// Derivatives of mean and variance with respect to the query points.
  [[nodiscard]] PredictionGradient gradient(const MatrixRef& X) const;

  /// As fitted so far, in scaled units; so is the noise variance.
  [[nodiscard]] const Kernel& kernel() const { return model_.theta.kernel; }
  [[nodiscard]] double noise_variance() const { return model_.theta.noise(); }
  /// M, the number of inducing points.
  [[nodiscard]] Index size() const;
  /// In the units of the data   [M,D].
  [[nodiscard]] Matrix inducing_inputs() const;
  [[nodiscard]] Index rows_seen() const { return model_.targets.count; }
  [[nodiscard]] Index batches() const { return model_.batches; }
  /// Columns of X; 0 before the first batch.
  [[nodiscard]] Index dimension() const;
  [[nodiscard]] const Checkpoint& checkpoint() const { return model_; }

 private:
  Checkpoint model_;
};

}  // namespace ample
