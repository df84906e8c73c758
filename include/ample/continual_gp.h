// Continual Gaussian-process regression that sizes itself (VIPS; Pescador-Barrios, Filippi & van
// der Wilk, ICML 2025). Batches go in and are not kept; after each, the model has chosen how many
// inducing points it needs, refitted its hyperparameters, and predicts.
//
//   ContinualGP gp;                                  // no knobs needed
//   BatchReport r = gp.observe(X, y);                // any number of rows, any number of times
//   Prediction p = gp.predict(X_new);
//
// observe() is prepare → replay → select → absorb → commit. O(N M² + M³) for each evaluation of the
// fit, O(M²) memory between batches.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>

#include "ample/batch_report.h"
#include "ample/forgetting.h"
#include "ample/hyperparameters.h"
#include "ample/optimizer.h"
#include "ample/predictor.h"
#include "ample/pruning.h"
#include "ample/reservoir.h"
#include "ample/scaling.h"
#include "ample/selection.h"
#include "ample/target_statistics.h"
#include "ample/types.h"

namespace ample {

/// How inputs and targets are scaled, unless a Scaling is given.
enum class Standardize {
  none,
  first_batch,  // to mean 0 and deviation 1 of the first batch
};

/// Where a model starts, how it chooses its points and how it fits. Every option has a default.
struct ContinualGPOptions {
  /// Where the hyperparameters start, their bounds, and which of them are fixed. The noise variance
  /// starts at 0.1 as in the paper.
  Hyperparameters start{.kernel = SquaredExponential{}};

  /// Begin the first batch at a third, a tenth or a thirtieth of the start's free lengthscales if
  /// that makes the batch more probable. From a start that is far too long, everything looks like
  /// noise, the model stays small and later batches do not recover. The program and the Python
  /// estimators enable this when no kernel is given.
  bool search_start = false;

  /// Find a kernel for the first rows instead: family, lengthscales, noise, by the evidence. Of
  /// `start` only the bounds of the noise variance are then used.
  bool find_kernel = false;

  /// Of the kernels that come into question then, only those with a lengthscale for each input.
  bool ard = false;

  /// Rows that are held before the model begins, so that scaling and start do not hang on a handful
  /// of them. Until then predictions come from an exact model of the rows held. 0: the first batch
  /// begins, whatever its size.
  Index warm_up = 0;

  /// How inducing points are chosen.
  SelectionMethod selection = Vips{};

  /// Refit the hyperparameters after every k-th batch, beginning with the first; 0: never.
  Index refit_every = 1;

  /// Rows from one refit to the next, for streams of small batches: until so many have come, each
  /// batch is learnt at once with the hyperparameters held. Then all of them are learnt anew, as
  /// one batch, from the model before the first of them; so the cut into batches hardly matters.
  /// Rows that the model cannot have foreseen do not wait (BatchReport::p_value), and while a
  /// model is young (fewer than 1000 rows, all of them kept in its `reservoir`) half as many again
  /// are enough. 0: every batch is complete in itself.
  Index refit_rows = 0;

  /// Seconds on the clock from one refit to the next, for streams that are slow: when they have
  /// passed, the next batch brings one, however few rows have come. 0: rows alone decide.
  double refit_seconds = 0.0;

  /// Rows of the past that are kept, a sample of all, to fit the hyperparameters to by their
  /// evidence instead of by the bound of a batch: when the rows seen have grown by a third, or
  /// contradict what was learnt. Up to 1000 of them, or as many as are kept, each refit learns all
  /// rows anew, with scaling and kernel found again, so that it does not matter which came first.
  /// 0: none is kept.
  Index reservoir = 0;

  /// What a row of the past counts when new ones come (forgetting.h): all, half after so many rows
  /// or so much time, or as the evidence of each batch has it.
  Forgetting forget;

  /// β: after each batch, remove the cheapest inducing points as long as that costs at most β α
  /// nats in all (pruning.h). The batch then loses at most (1 + β) α. A method at its cap may then
  /// take some more points for a batch, and the cheapest of all make room, so that a
  /// full model goes on learning; BatchReport::lost_nats says what that cost. With 0 no point is
  /// ever removed by its price, and a full model learns no new places.
  double prune = 0.0;

  /// By the first batch, not at all, or as given.
  std::variant<Standardize, Scaling> scaling = Standardize::none;

  /// The fit. A change of the bound far below α, the nats the selection was free to lose, cannot
  /// matter: the fit stops when two steps in a row gain less than max(fit_tolerance · α, r), r
  /// being what rounding may change the bound by, at most 1 % of α. With 0 it goes on to the
  /// tolerances of `fit`.
  MinimizeOptions fit;
  double fit_tolerance = 1e-4;

  /// For selection methods that draw random numbers.
  std::uint64_t seed = 0;

  /// What suits a stranger's data: what the program and the Python estimators use when no kernel is
  /// given. Data are standardised, the kernel is found, hyperparameters come from a reservoir of
  /// 4000 rows.
  [[nodiscard]] static ContinualGPOptions out_of_the_box();

  /// Where to begin if no kernel is given and none is to be found: a squared exponential for D
  /// standardised inputs, whose points are about √D apart.
  [[nodiscard]] static Kernel default_kernel(Index D);

  /// Throws std::invalid_argument for a value out of range. The model's constructors call it.
  void validate() const;
};

/// What comes with one batch besides its rows.
struct ObserveOptions {
  /// One positive number for each row: a row of weight 2 counts as two rows, or as one that was
  /// measured with half the noise variance. Empty, or all of them 1: all rows alike.
  Vector weights = {};

  /// The time of the latest of these rows, in any units, for a model that forgets by time.
  std::optional<double> time = {};

  /// Ends the fit early, with the best hyperparameters so far; an exception that it throws ends
  /// observe(), with the model as it was.
  ShouldStop should_stop = {};

  /// Seconds after which a fit ends, with the best hyperparameters so far; the report warns of it.
  /// The selection goes on to its end, which max_inducing bounds.
  double max_seconds = std::numeric_limits<double>::infinity();
};

/// What it cost to make a model smaller.
struct Compression {
  Index inducing_before = 0;
  Index inducing = 0;  // M now
  double nats = 0.0;   // KL[after ‖ before]: predictions at any points differ by no more
};

/// The model. observe() learns, compress() and compress_to() make it smaller; all else asks and
/// changes nothing.
///
/// One thread may change it while any number of others ask: each question is answered from the
/// model as it was after the last whole change. Changes must not overlap.
class ContinualGP {
 public:
  /// Rows that are to be learnt anew, in the units of the data.
  struct Pending {
    Matrix X;        // [N,D]
    Vector y;        // [N]
    Vector weights;  // [N]; empty if all are 1
    /// The model before the first of them; null if they are all that the model has seen and
    /// believes. Then the targets before them are only counted.
    std::shared_ptr<const Predictor> base;
    TargetStatistics base_targets;
    std::optional<double> since;  // the time of that model, or of the first of them if it is null
    Index known = 0;              // if it is null: how many of them the last refit knew
    /// The latest rows, how many and how far off their predictions they were in all: twenty of them
    /// tell whether the model still holds.
    Index recent = 0;
    double recent_chi_squared = 0.0;
  };

  /// All that a model is: what it takes to go on as if it had never stopped.
  struct Checkpoint {
    ContinualGPOptions options;
    Hyperparameters theta;
    std::shared_ptr<const Predictor> predictor;  // null before the first batch
    TargetStatistics targets;                    // of the scaled targets
    Index batches = 0;
    Curvature curvature;
    Reservoir reservoir;
    Pending pending;
    Index fitted_rows = 0;       // rows that θ was last fitted to; 0: it is as it was given
    std::optional<double> time;  // the latest that was given with a batch
    /// When no rows were pending last, for refit_seconds. Not saved: a model that is loaded begins
    /// to count anew.
    std::chrono::steady_clock::time_point settled = std::chrono::steady_clock::now();

    /// Whether rows are held until there are enough to begin.
    [[nodiscard]] bool warming_up() const;

    /// Throws std::invalid_argument unless all parts fit together.
    void validate() const;
  };

  explicit ContinualGP(const ContinualGPOptions& options = {});
  /// A checkpoint that warms up may leave its predictor out: it follows from the rows pending.
  explicit ContinualGP(Checkpoint checkpoint);
  ContinualGP(const ContinualGP& other) : model_(other.checkpoint()) {}
  ContinualGP(ContinualGP&& other) noexcept : model_(other.checkpoint()) {}
  ContinualGP& operator=(const ContinualGP& other);
  ContinualGP& operator=(ContinualGP&& other) noexcept { return *this = other; }
  ~ContinualGP() = default;

  /// Learns from a batch X [N,D], y [N], N ≥ 1. Throws std::invalid_argument for a wrong shape or a
  /// value that is not finite, NumericalError if the batch cannot be absorbed; the model is then as
  /// it was before.
  BatchReport observe(const MatrixRef& X, const VectorRef& y, const ObserveOptions& options = {});

  /// Removes the inducing points that are worth least, as long as that costs at most `nats` in all.
  /// Rows that wait for a refit (ContinualGPOptions::refit_rows) stay learnt as they are, and wait
  /// no longer. Throws std::invalid_argument for a negative number, and while the model warms up.
  Compression compress(double nats);
  /// The same until no more than `points` are left, at least one, whatever it costs.
  Compression compress_to(Index points);

  /// What dropping each inducing point would cost, in nats   [M], in the order of
  /// inducing_inputs(). O(M³).
  [[nodiscard]] Vector prices() const;
  /// What a model of m points would cost, in nats, m = 0 … M   [M+1]. O(M³).
  [[nodiscard]] Vector compression_curve() const;

  /// What the model knows now, shared and immutable; O(1). Null before the first batch.
  [[nodiscard]] std::shared_ptr<const Predictor> predictor() const {
    return checkpoint()->predictor;
  }

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
  [[nodiscard]] Kernel kernel() const { return checkpoint()->theta.kernel; }
  [[nodiscard]] double noise_variance() const { return checkpoint()->theta.noise(); }
  /// M, the number of inducing points.
  [[nodiscard]] Index size() const;
  /// In the units of the data   [M,D].
  [[nodiscard]] Matrix inducing_inputs() const;
  [[nodiscard]] Index rows_seen() const { return checkpoint()->targets.count; }
  [[nodiscard]] Index batches() const { return checkpoint()->batches; }
  /// Columns of X; 0 before the first batch.
  [[nodiscard]] Index dimension() const;

  /// Shared and immutable; O(1).
  [[nodiscard]] std::shared_ptr<const Checkpoint> checkpoint() const {
    const std::lock_guard lock(mutex_);
    return model_;
  }

 private:
  [[nodiscard]] std::shared_ptr<const Predictor> predictor_for(const MatrixRef& X) const;
  Compression compress_within(const PruneLimits& limits);

  mutable std::mutex mutex_;  // of the pointer; what it points to never changes
  std::shared_ptr<const Checkpoint> model_;
};

}  // namespace ample
