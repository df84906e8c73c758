// Rows at the very same inputs: a person asked every year, a machine, a station. Where they agree
// by more than the function explains, each place has a value of its own beside it,
//
//   y = f(x) + p(x) + e,   Var p = u,   Var e = σ² − u,
//
// and the kernel gets a second part, which is u between equal inputs and nothing elsewhere.
#pragma once

#include <optional>
#include <vector>

#include "ample/hyperparameters.h"
#include "ample/types.h"

namespace ample {

/// What the rows of a sample have in common with others at the same inputs.
struct Agreement {
  double share = 0.0;     // of the variance of the residuals: u/σ²
  double error = 0.0;     // its standard error
  double together = 0.0;  // how probable it is that two rows are of one place
};

/// The place of each row at X [N,D], by number, in the order in which they come; nothing if too few
/// rows have others at their inputs to tell what they have in common.
[[nodiscard]] std::optional<std::vector<Index>> shared_places(const MatrixRef& X);

/// The rows without those that are there before, target and all, which say nothing; all of them if
/// most targets are those of other places too, as where there are only a few values.
[[nodiscard]] std::vector<Index> without_copies(const MatrixRef& X, const VectorRef& y);

/// Of residuals r [N] of targets y [N] at X [N,D], which have this variance. Of the n rows of a
/// place Σ_{i≠j} r_i r_j/(n − 1) is the share of Σ_i r_i² on average, whatever n is; so it is a
/// ratio of sums over all places, with an error by how the places scatter around it. Copies do not
/// count. Nothing if too few rows are shared.
[[nodiscard]] std::optional<Agreement> agreement(const MatrixRef& X, const VectorRef& y,
                                                 const VectorRef& residuals, double variance);

/// Whether it is no chance, and worth a point for each place: of so many `rows`, places must gain
/// enough by a value of their own, and `points` must do for a good part of them.
[[nodiscard]] bool is_worth_points(const Agreement& found, Index rows, Index points);

/// u/(u + Var e); 0 if the kernel has no part for places.
[[nodiscard]] double place_share(const Hyperparameters& theta);

/// θ with values of the places that are this share of them and the noise together. If the kernel
/// has such a part it is changed, and σ² stays; else it gets one, for at most nine tenths of the
/// noise. Without the part if that is next to nothing.
[[nodiscard]] Hyperparameters with_places(const Hyperparameters& theta, double share);

/// The same for a kernel without such a part, with a share that is to be fitted too.
[[nodiscard]] Hyperparameters with_free_places(const Hyperparameters& theta, double share);

/// θ with all that the places have of their own taken for noise.
[[nodiscard]] Hyperparameters without_places(const Hyperparameters& theta);

}  // namespace ample
