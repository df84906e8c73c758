// One call of observe(): which rows are learnt now, and on top of what.
//
//   too few rows to begin            they are held, and an exact model of them answers questions
//   few rows since the last refit    learnt on top of the model as it is, with θ held, and kept
//   enough rows                      all that were kept are learnt anew, as one batch, on top of
//   the
//                                    model before the first of them
//   rows that cannot be foreseen     those before them are learnt first, then these, at once
#pragma once

#include <optional>

#include "ample/continual_gp.h"

namespace ample {

/// The model after a batch, and what happened.
struct Learnt {
  ContinualGP::Checkpoint model;
  BatchReport report;
};

/// An exact model of the rows held, every one an inducing point.
[[nodiscard]] ContinualGP::Checkpoint hold(const ContinualGP::Checkpoint& model,
                                           ContinualGP::Pending rows);

/// The model with no rows waiting: they stay learnt as they are, and the reservoir is offered them.
/// A past that counts less by now does so from here on.
[[nodiscard]] ContinualGP::Checkpoint settle(const ContinualGP::Checkpoint& model);

class Observation {
 public:
  /// Keeps references to all of these. Throws std::invalid_argument or NumericalError for a batch
  /// that cannot be learnt.
  Observation(const ContinualGP::Checkpoint& before, const MatrixRef& X, const VectorRef& y,
              const ObserveOptions& call, const ShouldStop& should_stop);

  [[nodiscard]] Learnt learn();

 private:
  using Checkpoint = ContinualGP::Checkpoint;
  using Pending = ContinualGP::Pending;

  [[nodiscard]] Learnt learn(Pending rows);
  [[nodiscard]] Pending with_batch(const Checkpoint& model, const MatrixRef& X, const VectorRef& y,
                                   const VectorRef& weights) const;
  [[nodiscard]] double elapsed(const Pending& rows) const;
  [[nodiscard]] bool is_young(const Pending& rows) const;
  [[nodiscard]] bool is_late_for_youth() const;
  [[nodiscard]] bool is_overdue() const;
  [[nodiscard]] bool is_few(const Pending& rows) const;
  void judge(Pending& rows);

  [[nodiscard]] Learnt learn_held(Pending rows) const;
  [[nodiscard]] Learnt learn_few(Pending rows);
  [[nodiscard]] Learnt learn_anew(const Checkpoint& model, Pending rows);
  [[nodiscard]] Learnt learn_surprising(const Pending& rows);
  [[nodiscard]] Learnt learn_anew_or_go_on(const Pending& rows);
  [[nodiscard]] bool has_changed(const Checkpoint& model, const Pending& rows) const;
  [[nodiscard]] Index stuck_rows(const Checkpoint& model, const Pending& rows) const;
  [[nodiscard]] Hyperparameters theta_of(const Checkpoint& model, const Matrix& X,
                                         const Vector& y) const;

  void foresee();
  [[nodiscard]] bool intervals_fail() const;
  void report_surprise(BatchReport& report) const;

  const Checkpoint& before_;
  const ContinualGPOptions& options_;
  const MatrixRef& X_;
  const VectorRef& y_;
  const ObserveOptions& call_;
  const ShouldStop& should_stop_;
  std::optional<double> time_;                // the latest, this batch's included
  std::optional<PredictiveDensity> density_;  // of the batch, as the model foresaw it
  bool surprised_ = false;
};

}  // namespace ample
