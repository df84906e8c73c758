#include "ample/pruning.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>

#include "check.h"
#include "kernel_loops.h"
#include "linalg.h"
#include "parallel.h"
#include "retriangulation.h"

namespace ample {
namespace {

// What a recent point counts, in prices of others. Where the places of a stream matter alike, a
// full model would otherwise keep the old ones and never learn another.
constexpr double kRecent = 2.0;

/// The points that are left, with their prices.
///
/// Q, S̃ and P are never formed: updating them by (19) subtracts, and two points that are nearly one
/// have entries of 1/ε there of which nothing would be left. Instead
///
///   Q = UᵀU,  U = L⁻¹;    S̃ = RᵀR,  R = L_D⁻¹U,  μ̃ = Rᵀw;    Q + P = YᵀY,  Y = L_DᵀU
///
/// and (19) is one step of Gram–Schmidt for all columns i that are left:
///
///   U_i ← U_i − u(uᵀU_i),   R_i ← R_i − r(rᵀR_i),   Y_i ← Y_i + t_i Y_j,   t_i = −Q_ij/Q_jj
///
/// with u and r the columns of the point that goes, at length one. Norms of columns then lose the
/// square root of what entries of Q would lose. Y instead of a factor of P costs one unit of
/// rounding of 1 + P_jj/Q_jj, in nats, and A needs no factor.
///
/// A column takes these steps when its price is asked for, all that are due at once. What others
/// leave is carried by those that stay, so prices hardly ever fall, and a column that was dear a
/// moment ago need not be looked at: that is what makes removals cheap.
class Remaining {
 public:
  explicit Remaining(const State& state)
      : U_(Matrix::Identity(state.size(), state.size())), w_(state.w) {
    solve_left_triangle(state.L, U_);
    R_ = U_;
    solve_left_triangle(state.L_D, R_);
    Y_ = U_;
    multiply_triangle_left(state.L_D, Op::transpose, Y_);
    prices_.resize(state.size());
    steps_.assign(static_cast<std::size_t>(state.size()), 0);
    for (Index i = 0; i < state.size(); ++i) {
      points_.push_back(i);
      prices_[i] =
          price(i, U_.col(i).squaredNorm(), R_.col(i).squaredNorm(), Y_.col(i).squaredNorm());
    }
  }

  [[nodiscard]] Index size() const { return static_cast<Index>(points_.size()); }
  [[nodiscard]] const Vector& prices() const { return prices_; }

  /// Of several at one price the one that stands first in Z. Points from `recent` on count twice
  /// their price, and those from `newest` on, which are not all, cannot be had.
  [[nodiscard]] Index cheapest(Index recent, Index newest) {
    const auto worth = [&](Index i) {
      if (point(i) >= newest) return std::numeric_limits<double>::infinity();
      return (point(i) < recent ? 1.0 : kRecent) * prices_[i];
    };
    for (;;) {
      std::optional<Index> best;
      double least = std::numeric_limits<double>::infinity();  // of those not up to date
      for (Index i = 0; i < size(); ++i) {
        if (!is_up_to_date(i)) {
          least = std::min(least, worth(i));
        } else if (!best || worth(i) < worth(*best) ||
                   (worth(i) == worth(*best) && point(i) < point(*best))) {
          best = i;
        }
      }
      if (best && !(least <= kMostFall * worth(*best))) return *best;
      std::vector<Index> due;
      for (Index i = 0; i < size(); ++i) {
        if (!is_up_to_date(i) && worth(i) <= kMostFall * least) due.push_back(i);
      }
      if (due.empty()) return best.value_or(0);  // none of them has a price
      bring_up_to_date(due);
    }
  }
  [[nodiscard]] Removal step(Index column) const { return {point(column), prices_[column]}; }

  /// Takes out a column that is up to date. Behind the last one that is left stand those that have
  /// gone, as the others need them: u, r and Y_j/√Q_jj.
  void remove(Index column) {
    const Index last = size() - 1;
    for (Matrix* factor : {&U_, &R_, &Y_}) factor->col(column).swap(factor->col(last));
    std::swap(prices_[column], prices_[last]);
    std::swap(points_[static_cast<std::size_t>(column)], points_[static_cast<std::size_t>(last)]);
    std::swap(steps_[static_cast<std::size_t>(column)], steps_[static_cast<std::size_t>(last)]);
    points_.pop_back();
    const double length = U_.col(last).norm();
    U_.col(last) /= length;
    R_.col(last).normalize();
    Y_.col(last) /= length;
  }

 private:
  // By what factor a price may have fallen since it was looked at.
  static constexpr double kMostFall = 2.0;

  [[nodiscard]] Index point(Index column) const {
    return points_[static_cast<std::size_t>(column)];
  }
  [[nodiscard]] Index removed() const { return U_.cols() - size(); }
  [[nodiscard]] bool is_up_to_date(Index column) const {
    return steps_[static_cast<std::size_t>(column)] == removed();
  }

  void bring_up_to_date(const std::vector<Index>& columns) {
    const Index M = U_.rows();
    Index steps = 0;
    for (const Index i : columns) steps += removed() - steps_[static_cast<std::size_t>(i)];
    // In units of one vectorised multiply-add: six for each entry of three columns.
    parallel_for(static_cast<Index>(columns.size()),
                 workers_for(18.0 * static_cast<double>(M * steps)),
                 [&](Index place) { take_steps(columns[static_cast<std::size_t>(place)]); });
  }

  /// (19) for one column and all that have gone since the last time.
  void take_steps(Index i) {
    const Index M = U_.rows();
    double Q_ii = 0.0;
    double S_ii = 0.0;
    double QP_ii = 0.0;
    for (Index& k = steps_[static_cast<std::size_t>(i)]; k < removed(); ++k) {
      const Index gone = M - 1 - k;
      const double along_u = loops::dot(U_.col(gone).data(), U_.col(i).data(), M);
      const double along_r = loops::dot(R_.col(gone).data(), R_.col(i).data(), M);
      Q_ii = loops::add_multiple(U_.col(gone).data(), -along_u, U_.col(i).data(), M);
      S_ii = loops::add_multiple(R_.col(gone).data(), -along_r, R_.col(i).data(), M);
      QP_ii = loops::add_multiple(Y_.col(gone).data(), -along_u, Y_.col(i).data(), M);
    }
    prices_[i] = price(i, Q_ii, S_ii, QP_ii);
  }

  /// (18); rounding may leave what is nothing a little below zero. A point whose price rounding has
  /// left no digits of is not for sale.
  [[nodiscard]] double price(Index i, double Q_ii, double S_ii, double QP_ii) const {
    const double mean = loops::dot(R_.col(i).data(), w_.data(), w_.size());
    const double nats = 0.5 * (std::log(S_ii / Q_ii) + mean * mean / S_ii + (QP_ii / Q_ii - 1.0));
    return std::isnan(nats) ? std::numeric_limits<double>::infinity() : std::max(0.0, nats);
  }

  Matrix U_;  // [M,M], of which the first size() columns are left
  Matrix R_;
  Matrix Y_;
  Vector w_;
  Vector prices_;
  std::vector<Index> points_;  // which row of Z each column is
  std::vector<Index> steps_;   // how many of those that have gone it knows of
};

/// The rows of Z that stay, in order, and those that go.
struct Parted {
  std::vector<Index> stay;
  std::vector<Index> go;
};

Parted part(const State& state, std::span<const Index> points) {
  std::vector<bool> goes(static_cast<std::size_t>(state.size()), false);
  for (const Index point : points) {
    if (point < 0 || point >= state.size()) {
      invalid("without_points: point {} is not there, the state has {} (counted from 0)", point,
              state.size());
    }
    if (goes[static_cast<std::size_t>(point)]) {
      invalid("without_points: point {} is given twice", point);
    }
    goes[static_cast<std::size_t>(point)] = true;
  }
  Parted parted;
  for (Index i = 0; i < state.size(); ++i) {
    (goes[static_cast<std::size_t>(i)] ? parted.go : parted.stay).push_back(i);
  }
  return parted;
}

}  // namespace

Vector prices(const State& state) { return Remaining(state).prices(); }

std::vector<Removal> removal_order(const State& state, const PruneLimits& limits) {
  if (!(limits.nats >= 0.0)) invalid("prune: nats is {}, but must be 0 or more", limits.nats);
  if (limits.points < 0) invalid("prune: points is {}, but must be 0 or more", limits.points);
  std::vector<Removal> order;
  if (limits.most < limits.points) {
    invalid("prune: most is {}, but must be at least points, {}", limits.most, limits.points);
  }
  const bool pays = limits.nats > 0.0;
  if (state.size() <= (pays ? limits.points : limits.most)) return order;
  Remaining remaining(state);
  double paid = 0.0;
  while (remaining.size() > limits.points) {
    const bool too_many = remaining.size() > limits.most;
    const Index newest = std::min(limits.newest, remaining.size() - 1);
    const Index column = remaining.cheapest(state.size() - (too_many ? limits.recent : 0),
                                            state.size() - (too_many ? newest : 0));
    const Removal removal = remaining.step(column);
    const bool affordable = pays && paid + removal.price <= limits.nats;
    if (!affordable && !too_many) break;
    paid += removal.price;
    order.push_back(removal);
    remaining.remove(column);
  }
  return order;
}

State without_points(const State& state, std::span<const Index> points) {
  const auto [stay, go] = part(state, points);
  if (go.empty()) return state;
  State out = State::empty(state.kernel, state.noise_variance, state.dimension());
  out.jitter = state.jitter;
  out.Z = state.Z(stay, Eigen::all);

  // b of the points that stay is L_rest ξ = [L_new 0] Qᵀ ξ for the white ξ of the old state, so
  // that with T the first columns of Q, A = Tᵀ A_old T and c = Tᵀ c_old, (5) without data. It is
  // (19) without P, which is as badly conditioned as K_bb. Of L_rest, the columns of the points
  // that stay are a lower triangle.
  const Retriangulation triangle(state.L(stay, stay), state.L(stay, go).transpose());
  out.L = triangle.factor();
  Matrix A_stay = state.A(Eigen::all, stay);
  Matrix A_go = state.A(Eigen::all, go);
  triangle.multiply_right(A_stay, A_go);
  out.A = A_stay(stay, Eigen::all);
  Matrix rest = A_stay(go, Eigen::all);
  triangle.multiply_left(out.A, rest);
  mirror_lower(out.A);
  Matrix c_stay = state.c(stay);
  Matrix c_go = state.c(go);
  triangle.multiply_left(c_stay, c_go);
  out.c = c_stay;
  if (!out.factorize()) {
    throw NumericalError("without_points: the posterior of the points that stay has no factor");
  }
  return out;
}

Pruned prune(const State& state, const PruneLimits& limits) {
  std::vector<Removal> removed = removal_order(state, limits);
  std::vector<Index> points;
  double nats = 0.0;
  for (const Removal& removal : removed) {
    points.push_back(removal.point);
    nats += removal.price;
  }
  return {without_points(state, points), std::move(removed), nats};
}

}  // namespace ample
