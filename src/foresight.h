// How well some rows are foreseen from others, by an exact model of them.
#pragma once

#include <span>

#include "ample/hyperparameters.h"
#include "ample/optimizer.h"
#include "ample/types.h"

namespace ample {

/// The log density of each row of y_test given X and y; empty if it cannot be computed. O(N³).
[[nodiscard]] Vector foreseen(const Hyperparameters& theta, const MatrixRef& X, const VectorRef& y,
                              const MatrixRef& X_test, const VectorRef& y_test);

/// Their sum; minus infinity if it cannot be computed.
[[nodiscard]] double foresight(const Hyperparameters& theta, const MatrixRef& X, const VectorRef& y,
                               const MatrixRef& X_test, const VectorRef& y_test);

/// Whether twenty targets or more come in their order, as in a table that is sorted by them, but
/// for some runs that are out of place: nineteen steps of twenty go one way, and three quarters of
/// the targets are in order if the others are left out. What rises again and again is not. Each
/// batch of such a table has a level of its own, whatever the inputs; it says no more of a function
/// that changes than a sensor that is stuck.
[[nodiscard]] bool are_sorted(const VectorRef& y);

/// Whether rows lie far off what others at the same place say of them at θ: by more than two
/// deviations, as a rule. It is not asked of rows at the ends of the others' range of an input or
/// beyond, of which they say little. O(N³) of at most 1000 others.
[[nodiscard]] bool lie_far_off(const Hyperparameters& theta, const MatrixRef& X, const VectorRef& y,
                               const MatrixRef& X_others, const VectorRef& y_others);

/// Whether old rows and new ones contradict each other: with the old rows, half of the new ones are
/// foreseen from the others so much worse that more than half of what the others tell is lost,
/// and more than `nats`, each at the θ of `thetas` (at least one) and the noise that suits it best.
/// A function that has changed contradicts its past; one that is seen at a new place does not: if
/// most new rows lie at the ends of an input's old range or beyond, the past is about other places.
/// O((R + N)³); of more than 1000 new rows it looks at some, for their share of the nats. They do
/// not if `should_stop` ends the comparison, nor do fewer than 20 new rows.
[[nodiscard]] bool contradict(std::span<const Hyperparameters> thetas, const MatrixRef& X_old,
                              const VectorRef& y_old, const MatrixRef& X_new,
                              const VectorRef& y_new, double nats,
                              const ShouldStop& should_stop = {});

}  // namespace ample
