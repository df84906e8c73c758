#include "places.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "check.h"
#include "kernel_node.h"

namespace ample {
namespace {

// The least share of rows with others at their inputs, the least number of places that they are
// at, and the largest share of them that may be copies.
constexpr double kLeastRepeated = 0.25;
constexpr Index kFewestPlaces = 30;
constexpr double kMostCopies = 0.9;

// By how many standard errors rows of a place must agree, what a place must gain by a value of its
// own, in nats, and how many places there may be to a point.
constexpr double kErrors = 5.0;
constexpr double kNatsAPlace = 0.25;
constexpr double kPlacesAPoint = 4.0;

// Of heavy tails a few rows would decide: in deviations.
constexpr double kMostDeviations = 3.0;

// The share of σ² that may be of places.
constexpr double kMostShare = 0.9;

// In deviations of the inputs: with less, rounding would tell equal inputs apart.
constexpr double kLengthscale = 1e-3;

bool is_same(const MatrixRef& X, Index i, Index j) {
  return (X.row(i).array() == X.row(j).array()).all();
}

/// The rows of each place that has several, in their order.
std::vector<std::vector<Index>> shared_places(const MatrixRef& X) {
  std::vector<Index> order(static_cast<std::size_t>(X.rows()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](Index i, Index j) {
    for (Index d = 0; d < X.cols(); ++d) {
      if (X(i, d) != X(j, d)) return X(i, d) < X(j, d);
    }
    return false;
  });
  std::vector<std::vector<Index>> places;
  for (auto first = order.begin(); first != order.end();) {
    const auto last =
        std::find_if_not(first, order.end(), [&](Index row) { return is_same(X, row, *first); });
    if (last - first > 1) places.emplace_back(first, last);
    first = last;
  }
  return places;
}

/// How many values are not the only one of their kind.
Index with_an_equal(std::vector<double> values) {
  std::ranges::sort(values);
  Index count = 0;
  for (auto first = values.begin(); first != values.end();) {
    const auto last = std::upper_bound(first, values.end(), *first);
    if (last - first > 1) count += last - first;
    first = last;
  }
  return count;
}

/// Whether so many rows of N, at so many places, are enough.
bool are_enough(Index rows, Index places, Index N) {
  return places >= kFewestPlaces &&
         static_cast<double>(rows) >= kLeastRepeated * static_cast<double>(N);
}

/// The second part of the kernel: a value for each place, of variance u.
Kernel part_of_places(const Positive& u) {
  return SquaredExponential{.variance = u, .lengthscale = Positive(kLengthscale).fixed()};
}

/// The kernel before it was given a second part, and what that is; nothing if it was not.
struct Parts {
  Kernel function;
  double u;
};
std::optional<Parts> parts(const Kernel& kernel) {
  const auto [first, second] = terms(*KernelAccess::node(kernel));
  if (!second) return std::nullopt;
  const Kernel last = KernelAccess::kernel(second);
  const std::vector<Parameter> parameters = last.parameters();
  if (parameters.empty() || parameters.front().lower != Positive::kDefaultLower ||
      parameters.front().upper != Positive::kDefaultUpper) {
    return std::nullopt;
  }
  const double u = parameters.front().value;
  if (last != part_of_places(Positive(u).fixed()) && last != part_of_places(Positive(u))) {
    return std::nullopt;
  }
  return Parts{KernelAccess::kernel(first), u};
}

}  // namespace

bool are_shared(const MatrixRef& X) {
  const std::vector<std::vector<Index>> places = shared_places(X);
  Index rows = 0;
  for (const std::vector<Index>& place : places) rows += std::ssize(place);
  return are_enough(rows, std::ssize(places), X.rows());
}

std::optional<Agreement> agreement(const MatrixRef& X, const VectorRef& residuals,
                                   double variance) {
  AMPLE_ASSERT(X.rows() == residuals.size() && variance > 0.0);
  Index repeated = 0;
  Index copies = 0;
  // Sums over the places of a = Σ_{i≠j} r_i r_j/(n − 1) and b = Σ_i r_i².
  double a = 0.0;
  double b = 0.0;
  double aa = 0.0;
  double ab = 0.0;
  double bb = 0.0;
  double pairs = 0.0;
  const std::vector<std::vector<Index>> places = shared_places(X);
  for (const std::vector<Index>& place : places) {
    const Vector here = residuals(place);
    const auto n = static_cast<double>(here.size());
    const Eigen::ArrayXd r =
        (here.array() / std::sqrt(variance)).max(-kMostDeviations).min(kMostDeviations);
    const double squares = r.square().sum();
    const double products = (r.sum() * r.sum() - squares) / (n - 1.0);
    pairs += n * (n - 1.0);
    repeated += here.size();
    copies += with_an_equal({here.begin(), here.end()});
    a += products;
    b += squares;
    aa += products * products;
    ab += products * squares;
    bb += squares * squares;
  }
  const auto N = static_cast<double>(X.rows());
  const bool are_copies = static_cast<double>(copies) > kMostCopies * static_cast<double>(repeated);
  if (!are_enough(repeated, std::ssize(places), X.rows()) || are_copies || !(b > 0.0)) {
    return std::nullopt;
  }
  const double share = a / b;
  const double error = std::sqrt(std::max(0.0, aa - 2.0 * share * ab + share * share * bb)) / b;
  return Agreement{.share = share, .error = error, .together = pairs / (N * (N - 1.0))};
}

bool is_worth_points(const Agreement& found, Index rows, Index points) {
  if (found.share < kErrors * found.error) return false;
  const double share = std::min(found.share, kMostShare);
  // Rows at the place of a row, and what they gain together.
  const double n = 1.0 + found.together * static_cast<double>(rows);
  const double nats = -0.5 * ((n - 1.0) * std::log(1.0 - share) + std::log1p((n - 1.0) * share));
  const double places = 1.0 / found.together;
  return nats >= kNatsAPlace && places <= kPlacesAPoint * static_cast<double>(points);
}

double place_share(const Hyperparameters& theta) {
  const auto found = parts(theta.kernel);
  return found ? found->u / (found->u + theta.noise()) : 0.0;
}

namespace {

enum class Share { fixed, free };

Hyperparameters with_part(const Hyperparameters& theta, double share, Share kind) {
  AMPLE_ASSERT(!parts(theta.kernel));
  const double noise = theta.noise();
  const double rest =
      std::max((1.0 - std::min(share, kMostShare)) * noise, theta.noise_variance.lower);
  if (noise - rest < Positive::kDefaultLower) return theta;
  const Positive u(noise - rest);
  Hyperparameters moved = theta;
  moved.noise_variance.value = rest;
  moved.kernel = theta.kernel + part_of_places(kind == Share::fixed ? u.fixed() : u);
  return moved;
}

}  // namespace

Hyperparameters with_places(const Hyperparameters& theta, double share) {
  return with_part(theta, share, Share::fixed);
}

Hyperparameters with_free_places(const Hyperparameters& theta, double share) {
  return with_part(theta, share, Share::free);
}

Hyperparameters without_places(const Hyperparameters& theta) {
  const auto found = parts(theta.kernel);
  if (!found) return theta;
  Hyperparameters moved = theta;
  moved.kernel = found->function;
  moved.noise_variance.value = std::min(theta.noise() + found->u, theta.noise_variance.upper);
  return moved;
}

}  // namespace ample
