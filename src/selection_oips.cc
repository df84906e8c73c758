#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "ample/selection.h"
#include "selection_pool.h"

namespace ample {
namespace {

/// Removes points of Z that overlap, i.e. have a correlation above `threshold` with another one:
/// at random, those with many overlaps sooner, until none is left or `keep` points remain.
void remove_overlapping(std::vector<Index>& members, Matrix correlation, double threshold,
                        Index keep, std::mt19937_64& generator) {
  const Index n = correlation.rows();
  correlation.diagonal().setZero();
  std::vector<double> overlaps(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i) {
    overlaps[static_cast<std::size_t>(i)] =
        static_cast<double>((correlation.row(i).array() > threshold).count());
  }
  Index left = n;
  std::vector<char> removed(static_cast<std::size_t>(n), 0);
  while (left > keep &&
         std::any_of(overlaps.begin(), overlaps.end(), [](double o) { return o > 0; })) {
    std::discrete_distribution<Index> pick(overlaps.begin(), overlaps.end());
    const Index i = pick(generator);
    removed[static_cast<std::size_t>(i)] = 1;
    overlaps[static_cast<std::size_t>(i)] = 0.0;
    for (Index j = 0; j < n; ++j) {
      double& o = overlaps[static_cast<std::size_t>(j)];
      if (correlation(i, j) > threshold && o > 0.0) o -= 1.0;
    }
    --left;
  }
  std::vector<Index> kept;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (removed[i] == 0) kept.push_back(members[i]);
  }
  members = std::move(kept);
}

}  // namespace

Selection Oips::select(const SelectionProblem& p) const {
  validate();
  const Kernel kernel = p.old.kernel.without_constant();
  const Index M_a = p.old.size();
  const Index N = p.X.rows();
  const Matrix pool = stack(p.old.Z, p.X);
  const Vector variance = kernel.diagonal(pool);
  std::mt19937_64 generator(p.seed);
  double accept = rho;
  const Index limit = p.limit(max_inducing);

  // Members of Z by their place in the pool, and for each point of the batch its largest
  // covariance with one of them.
  std::vector<Index> members(static_cast<std::size_t>(M_a));
  std::iota(members.begin(), members.end(), 0);
  Vector closest = Vector::Zero(N);
  Vector column(N);
  const auto add = [&](Index i) {
    members.push_back(i);
    kernel.evaluate(p.X, pool.row(i), column);
    closest = closest.cwiseMax(column);
  };
  if (M_a == 0) {
    std::vector<Index> order(static_cast<std::size_t>(N));
    std::iota(order.begin(), order.end(), 0);
    std::vector<Index> start;
    std::sample(order.begin(), order.end(), std::back_inserter(start),
                std::min({k_min, N, max_inducing}), generator);
    for (const Index i : start) add(i);
  } else {
    closest = kernel(p.X, p.old.Z).rowwise().maxCoeff();
  }

  SelectionStop stop = SelectionStop::threshold;
  constexpr double kLower = 0.95;  // how much the thresholds give way at the cap; as the original's
  for (Index n = 0; n < N; ++n) {
    const Index i = M_a + n;
    if (closest[n] >= accept * variance[i]) continue;
    add(i);
    while (static_cast<Index>(members.size()) > limit) {
      stop = SelectionStop::cap;
      const Matrix Z = rows_of(pool, members);
      Matrix correlation = kernel(Z, Z);
      // The floor is for points of variance zero, such as the origin to a linear kernel.
      constexpr double kFloor = std::numeric_limits<double>::min();
      const Vector root = variance(members).cwiseMax(kFloor).cwiseSqrt().cwiseInverse();
      correlation = root.asDiagonal() * correlation * root.asDiagonal();
      correlation.diagonal().setZero();
      const double remove = kLower * correlation.maxCoeff();
      remove_overlapping(members, correlation, remove, std::min(k_min, max_inducing), generator);
      if (static_cast<Index>(members.size()) == Z.rows()) {
        // No two points are alike at all: any of them may go.
        const auto any = std::uniform_int_distribution<Index>(0, Z.rows() - 1)(generator);
        members.erase(members.begin() + any);
      } else if (remove < accept) {
        accept = kLower * remove;
      }
      closest = kernel(p.X, rows_of(pool, members)).rowwise().maxCoeff();
    }
  }
  Selection out = from_pool(p, pool, members);
  out.stop = stop;
  out.keep_to(max_inducing);
  return out;
}

}  // namespace ample
