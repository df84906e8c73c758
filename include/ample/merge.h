// Models that learnt apart become one: what each remembers is pseudo-data, and pseudo-data add up.
//
//   ContinualGP pilot;                                   // some rows of all: scaling and θ
//   pilot.observe(X_pilot, y_pilot);
//   std::vector<ContinualGP> shards(8, empty_like(pilot));
//   …                                                    // each learns its own rows, anywhere
//   auto [model, report] = merge(shards);                // as if one model had seen them all
//
// For states i over disjoint rows, with T_i = L_i⁻¹ K_ib L⁻ᵀ and Z_b the union of their points:
//
//   A = Σ_i T_iᵀ A_i T_i,   c = Σ_i T_iᵀ c_i,   L̂ = F − Σ_i F_i                            (21)
//
// At one θ for all this loses nothing. It is the online bound (bound.h) without a batch, so its
// gradient fits θ. The union is then pruned (pruning.h) for a number of nats that the report
// states. O(M³) for M points in the union, which is taken piece by piece where it would be large.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ample/continual_gp.h"
#include "ample/hyperparameters.h"
#include "ample/kernel.h"
#include "ample/optimizer.h"
#include "ample/types.h"

namespace ample {

/// How models are merged. "The largest" is the one that has seen most rows.
struct MergeOptions {
  /// θ of the merged model, or where its fit starts; what is not given is the largest model's. A
  /// kernel that is given may be of any form, and so may then those of the models; it is not looked
  /// for again later, whatever `like` says.
  std::optional<Kernel> kernel = {};
  std::optional<PositiveNumber> noise_variance = {};

  /// Fit θ by the gradient of (21), before points are pruned.
  bool fit = false;

  /// Nats for which points may go, the cheapest first. None: a thousandth for each row that joins
  /// the largest model. With 0 no point goes.
  std::optional<double> nats = {};

  /// The most points, whatever it costs to have no more. None: what the largest model's selection
  /// method allows.
  std::optional<Index> max_inducing = {};

  /// Options of the merged model, by which it goes on learning: a pilot's, say, if the models held
  /// its θ. None: those of the largest model.
  std::optional<ContinualGPOptions> like = {};

  /// A union that would be larger is taken in pieces, each of them pruned within its share of the
  /// nats: a piece costs O(M³). Where no point may go it is taken whole.
  Index largest_union = 2000;

  /// What messages call the models; empty: "model 1" and so on.
  std::vector<std::string> names = {};

  /// Ends a fit early, with the best θ so far; an exception that it throws ends the merge.
  ShouldStop should_stop = {};
  /// Told after each piece: models merged so far, of how many.
  std::function<void(Index done, Index all)> progress = {};
};

/// What a merge did. Nats are in the models' scaled units.
struct MergeReport {
  Index models = 0;           // those given
  Index largest = 0;          // which of them the options are of, counted from 0
  Index rows = 0;             // of all
  Index rows_learnt = 0;      // of these, the rows that models still held: they were learnt anew
  Index inducing_before = 0;  // points of all models
  Index inducing_union = 0;   // different points, less those pruned on the way
  Index inducing = 0;         // M of the merged model
  double carried_nats = 0.0;  // evidence that the models lose at a θ that is not their own; below
                              // 0 if it suits them better
  double bound = 0.0;         // (21): log evidence of all models together at θ, less that of each
                              // at its own θ
  double allowed_nats = 0.0;  // the budget
  double pruned_nats = 0.0;   // what removing points cost: KL[merged ‖ union]
  std::string kernel;         // of the merged model, in text form
  double noise_variance = 0.0;
  double jitter = 0.0;
  bool fitted = false;
  MinimizeSummary fit;  // empty if not fitted
  double seconds = 0.0;
};

/// Calls visit(name, pointer to member) for every field but `fit`, in the order above.
template <class Visitor>
void for_each_merge_field(Visitor&& visit) {
  visit("models", &MergeReport::models);
  visit("largest", &MergeReport::largest);
  visit("rows", &MergeReport::rows);
  visit("rows_learnt", &MergeReport::rows_learnt);
  visit("inducing_before", &MergeReport::inducing_before);
  visit("inducing_union", &MergeReport::inducing_union);
  visit("inducing", &MergeReport::inducing);
  visit("carried_nats", &MergeReport::carried_nats);
  visit("bound", &MergeReport::bound);
  visit("allowed_nats", &MergeReport::allowed_nats);
  visit("pruned_nats", &MergeReport::pruned_nats);
  visit("kernel", &MergeReport::kernel);
  visit("noise_variance", &MergeReport::noise_variance);
  visit("jitter", &MergeReport::jitter);
  visit("fitted", &MergeReport::fitted);
  visit("seconds", &MergeReport::seconds);
}

struct Merged {
  ContinualGP model;
  MergeReport report;
};

/// One model of what all of them have learnt, from disjoint rows. It has the options of the
/// largest and goes on learning. Batches, target statistics and reservoirs are joined too.
///
/// A model that has seen nothing changes nothing. One that still holds all its rows (it warms up,
/// or keeps rows and has seen fewer than 1000, or than it keeps) gives them, and the merged model
/// learns them with θ held, whatever their scaling was. Rows that wait for a refit stay learnt as
/// they are, and wait no longer.
///
/// Models that forget by time count as of their own latest row, so they should have been fed up to
/// about the same time.
///
/// Throws std::invalid_argument for no models, for one that is given twice, and for models of
/// different dimension, scaling or form of kernel, NumericalError if the union cannot be
/// factorised.
[[nodiscard]] Merged merge(std::span<const ContinualGP> models, const MergeOptions& options = {});

/// A model that has seen nothing, with scaling, hyperparameters and options of a pilot, so that
/// what several such models learn can be merged. Hyperparameters start there. If they are fixed
/// they stay there, and the model does not weigh its past: all rows count alike, whatever their
/// order. Throws std::invalid_argument for a pilot that has not begun.
[[nodiscard]] ContinualGP empty_like(const ContinualGP& pilot, bool fixed_hyperparameters = false);

}  // namespace ample
