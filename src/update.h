// One batch on its way into a model: prepare → replay → select → absorb. Nothing that it does is
// seen before it is whole.
#pragma once

#include <memory>
#include <optional>

#include "ample/continual_gp.h"
#include "start_search.h"

namespace ample {

/// Targets whose squares sum to more than this come too near to overflow to learn from.
inline constexpr double kMostTargetSquares = 1e200;
/// And so do inputs beyond this, whose differences are taken.
inline constexpr double kMostInput = 1e300;

/// That of the first rows of a model: given, taken from them, or none.
[[nodiscard]] Scaling first_scaling(const ContinualGPOptions& options, const MatrixRef& X,
                                    const VectorRef& y);

/// Up to how many rows a model is young: each refit learns all of them anew.
[[nodiscard]] Index rows_of_youth(const ContinualGPOptions& options);

/// Inputs [N,D] and what was seen there.
struct Rows {
  Matrix X;
  Sites sites;
};

class Update {
 public:
  /// Learns on top of `base`, which is null for the first batch, and of which every row counts
  /// `past_weight` rows by its age.
  Update(const ContinualGP::Checkpoint& model, std::shared_ptr<const Predictor> base,
         const TargetStatistics& base_targets, double past_weight, const ShouldStop& should_stop);

  /// Scales the batch.
  void prepare(const MatrixRef& X, const VectorRef& y, const VectorRef& weights);

  /// Finds the hyperparameters that do not need the bound, and carries the past to them: a kernel
  /// for the first batch, those of the reservoir, how much of the past to believe. If the
  /// `intervals_fail` for the rows of the batch, the reservoir is fitted to sooner.
  void replay(bool intervals_fail);

  /// Chooses the inducing points, at θ_old. Before a refit, or if the model is full, a method may
  /// exceed its cap: absorb() prunes the model to it.
  void select(bool refit);

  /// Fits the hyperparameters to the bound if `refit`, and makes the state that remembers the batch
  /// too. Then removes the points that are not worth their price.
  void absorb(bool refit);

  /// What `base` predicted for the rows, if select() has computed that.
  [[nodiscard]] std::optional<PredictiveDensity> density() const;

  /// What happened, and the model after the batch.
  [[nodiscard]] BatchReport report(Index batch, Index rows) const;
  [[nodiscard]] ContinualGP::Checkpoint commit();

 private:
  [[nodiscard]] const State& old() const;
  void begin(Roughness roughness);
  [[nodiscard]] bool is_crowded() const;
  [[nodiscard]] bool may_refit() const;
  [[nodiscard]] Lengthscales lengthscales() const;
  [[nodiscard]] bool reservoir_is_due(bool in_doubt) const;
  void refit_to_reservoir();
  bool carry_to(const Hyperparameters& theta);
  void raise_noise();
  [[nodiscard]] double share_of_places() const;
  [[nodiscard]] double least_wild() const;
  void bound_outliers();
  [[nodiscard]] bool may_relearn() const;
  void forget_by_age();
  void forget_by_evidence();
  void choose_past_weight();
  void drop_reservoir();
  [[nodiscard]] Rows rows_to_ask() const;
  [[nodiscard]] State without_cheapest(const State& sample, Index rows) const;
  [[nodiscard]] std::optional<State> learnt_alone(const Matrix& X, const Vector& y) const;
  void relearn(const Reservoir& rows, double noise_factor);
  void replace_past_by_sample(const State& before);
  [[nodiscard]] MinimizeOptions fit_options(Index M) const;
  [[nodiscard]] Index recent_points() const;
  void prune();

  const ContinualGP::Checkpoint& model_;
  const ContinualGPOptions& options_;
  const ShouldStop& should_stop_;
  std::shared_ptr<const Predictor> base_;
  Scaling scaling_;
  Matrix X_;     // [N,D] in scaled units
  Sites sites_;  // likewise
  TargetStatistics base_targets_;
  TargetStatistics targets_;      // this batch's included
  Hyperparameters theta_;         // θ_old, then θ
  std::optional<State> own_old_;  // the past, if it is not that of base_ as it stands
  Reservoir reservoir_;
  std::optional<Matrix> sample_points_;  // inducing points of the bound that θ was fitted to
  Selection selection_;
  Curvature curvature_;
  Index fitted_rows_;
  bool intervals_fail_ = false;
  bool refit_ = false;
  bool is_pruned_after_ = false;
  std::optional<State> state_;
  BatchReport report_;
};

}  // namespace ample
