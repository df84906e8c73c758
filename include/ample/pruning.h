// What each inducing point is worth, and a smaller model for the nats it costs.
//
//   Vector worth = prices(state);                           // nats that dropping each would cost
//   Pruned small = prune(state, {.nats = 0.5});             // at most half a nat in all
//   Pruned capped = prune(state, {.points = 100});          // at most 100 points
//   std::vector<Removal> order = removal_order(state);      // what every size would cost
//
// In weights r = K_bb⁻¹ b, with prior covariance Q = K_bb⁻¹, posterior covariance S̃ = L⁻ᵀ D⁻¹ L⁻¹,
// posterior mean μ̃ = L⁻ᵀ D⁻¹ c and pseudo-precision P = L⁻ᵀ A L⁻¹ (17), to drop point j is to set
// its weight to zero:
//
//   price_j = ½ log(S̃_jj/Q_jj) + ½ μ̃_j²/S̃_jj + ½ P_jj/Q_jj ≥ 0                            (18)
//
// It is −L̂ (6) for no new data and Z without j, which is KL[without j ‖ with j]. Prices of several
// points in sequence, each at its turn, add up to the divergence of the result from the start, so
// predictions at any points differ by at most as many nats. All prices: O(M³). A removal: O(M) for
// each price that it may have changed, at most O(M²).
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "ample/state.h"
#include "ample/types.h"

namespace ample {

/// (18) for every inducing point   [M].
[[nodiscard]] Vector prices(const State& state);

/// One step: the point, as a row of Z at the start, and its price when its turn came.
struct Removal {
  Index point;
  double price;
};

/// Where to stop: before the prices paid sum up to more than `nats`, or with `points` left,
/// whichever comes first; but not with more than `most` left, whatever it costs. With 0 nats
/// nothing else is removed, not even what costs nothing.
struct PruneLimits {
  double nats = std::numeric_limits<double>::infinity();
  Index points = 0;
  Index most = std::numeric_limits<Index>::max();
  /// So many of the last rows of Z are recent: while there are more than `most`, they go only where
  /// no other costs less than twice their price.
  Index recent = 0;
  /// And of those the last so many stay, as long as there are others: few rows may have come there
  /// yet.
  Index newest = 0;
};

/// The cheapest point, then the cheapest of what is left, and so on. Without limits it goes on to
/// the empty model, and the running sums are the whole curve of size against nats. Prices paid are
/// exact. Those of points that were dear when last looked at are not computed at every step: one
/// that has fallen by more than half meanwhile, which is rare, may be overlooked for a while.
[[nodiscard]] std::vector<Removal> removal_order(const State& state,
                                                 const PruneLimits& limits = {});

/// The state without these points, rows of Z in any order; the others keep their order. The same
/// kernel, noise and jitter. Throws NumericalError if it cannot be factorised.
[[nodiscard]] State without_points(const State& state, std::span<const Index> points);

/// A smaller state, and what it cost.
struct Pruned {
  State state;
  std::vector<Removal> removed;  // in order
  double nats = 0.0;             // the sum of their prices
};

/// The state without its cheapest points. If none goes, it is the state itself, to the last bit.
[[nodiscard]] Pruned prune(const State& state, const PruneLimits& limits);

}  // namespace ample
