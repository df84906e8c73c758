#include "places.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "check.h"
#include "kernel_node.h"

namespace ample {
namespace {

// The least share of rows with others at their inputs, and the least number of places that they are
// at.
constexpr double kLeastRepeated = 0.25;
constexpr Index kFewestPlaces = 30;

// By how many standard errors rows of a place must agree, what a place must gain by a value of its
// own, in nats, and how many places there may be to a point.
constexpr double kErrors = 5.0;
constexpr double kNatsAPlace = 0.25;
constexpr double kPlacesAPoint = 4.0;

// Of heavy tails a few rows would decide: in deviations.
constexpr double kMostDeviations = 3.0;

// The share of σ² that may be of places before it is fitted.
constexpr double kMostShare = 0.9;

// In deviations of the inputs: with less, rounding would tell equal inputs apart.
constexpr double kLengthscale = 1e-3;

bool is_same(const MatrixRef& X, Index i, Index j) {
  return (X.row(i).array() == X.row(j).array()).all();
}

using Places = std::vector<std::vector<Index>>;

/// The rows of each place, in their order.
Places places_of(const MatrixRef& X) {
  std::vector<Index> order(static_cast<std::size_t>(X.rows()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](Index i, Index j) {
    for (Index d = 0; d < X.cols(); ++d) {
      if (X(i, d) != X(j, d)) return X(i, d) < X(j, d);
    }
    return false;
  });
  Places places;
  for (auto first = order.begin(); first != order.end();) {
    const auto last =
        std::find_if_not(first, order.end(), [&](Index row) { return is_same(X, row, *first); });
    places.emplace_back(first, last);
    first = last;
  }
  return places;
}

/// Whether enough of N rows, at enough places, have others there.
bool are_enough(const Places& places, Index N) {
  Index rows = 0;
  Index several = 0;
  for (const std::vector<Index>& place : places) {
    if (place.size() < 2) continue;
    rows += std::ssize(place);
    ++several;
  }
  return several >= kFewestPlaces &&
         static_cast<double>(rows) >= kLeastRepeated * static_cast<double>(N);
}

/// Whether most targets are those of rows at other places too.
bool are_of_few_values(const Places& places, const VectorRef& y) {
  std::vector<double> values;  // each once a place
  for (const std::vector<Index>& place : places) {
    const Vector here = y(place);
    std::vector<double> own(here.begin(), here.end());
    std::ranges::sort(own);
    values.insert(values.end(), own.begin(), std::ranges::unique(own).begin());
  }
  std::ranges::sort(values);
  std::size_t again = 0;
  for (auto first = values.begin(); first != values.end();) {
    const auto last = std::upper_bound(first, values.end(), *first);
    if (last - first > 1) again += static_cast<std::size_t>(last - first);
    first = last;
  }
  return 2 * again > values.size();
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

std::optional<std::vector<Index>> shared_places(const MatrixRef& X) {
  Places places = places_of(X);
  if (!are_enough(places, X.rows())) return std::nullopt;
  std::ranges::sort(places, {}, [](const std::vector<Index>& place) { return place.front(); });
  std::vector<Index> of_row(static_cast<std::size_t>(X.rows()));
  for (std::size_t p = 0; p < places.size(); ++p) {
    for (const Index row : places[p]) of_row[static_cast<std::size_t>(row)] = static_cast<Index>(p);
  }
  return of_row;
}

std::vector<Index> without_copies(const MatrixRef& X, const VectorRef& y) {
  std::vector<Index> rows;
  const Places places = places_of(X);
  const bool has_few_values = are_of_few_values(places, y);
  for (std::vector<Index> place : places) {
    if (!has_few_values) {
      std::ranges::stable_sort(place, {}, [&](Index row) { return y[row]; });
      const auto rest = std::ranges::unique(place, {}, [&](Index row) { return y[row]; });
      place.erase(rest.begin(), rest.end());
    }
    rows.insert(rows.end(), place.begin(), place.end());
  }
  std::ranges::sort(rows);
  return rows;
}

std::optional<Agreement> agreement(const MatrixRef& X, const VectorRef& y,
                                   const VectorRef& residuals, double variance) {
  AMPLE_ASSERT(X.rows() == y.size() && X.rows() == residuals.size() && variance > 0.0);
  const std::vector<Index> rows = without_copies(X, y);
  const Places places = places_of(X(rows, Eigen::all));
  if (!are_enough(places, std::ssize(rows))) return std::nullopt;
  const Vector scaled = residuals(rows) / std::sqrt(variance);
  // Sums over the places of a = Σ_{i≠j} r_i r_j/(n − 1) and b = Σ_i r_i².
  double a = 0.0;
  double b = 0.0;
  double aa = 0.0;
  double ab = 0.0;
  double bb = 0.0;
  double pairs = 0.0;
  for (const std::vector<Index>& place : places) {
    if (place.size() < 2) continue;
    const auto n = static_cast<double>(place.size());
    const Eigen::ArrayXd r =
        (residuals(place).array() / std::sqrt(variance)).max(-kMostDeviations).min(kMostDeviations);
    const double squares = r.square().sum();
    const double products = (r.sum() * r.sum() - squares) / (n - 1.0);
    pairs += n * (n - 1.0);
    a += products;
    b += squares;
    aa += products * products;
    ab += products * squares;
    bb += squares * squares;
  }
  if (!(b > 0.0)) return std::nullopt;
  const auto N = static_cast<double>(rows.size());
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

/// θ, whose kernel has no such part, with a share of its noise in one.
Hyperparameters split(const Hyperparameters& theta, double share, const auto& kind) {
  AMPLE_ASSERT(!parts(theta.kernel));
  const double noise = theta.noise();
  const double rest =
      std::max((1.0 - std::min(share, kMostShare)) * noise, theta.noise_variance.lower);
  if (noise - rest < Positive::kDefaultLower) return theta;
  Hyperparameters moved = theta;
  moved.noise_variance.value = rest;
  moved.kernel = theta.kernel + part_of_places(kind(Positive(noise - rest)));
  return moved;
}

}  // namespace

Hyperparameters with_places(const Hyperparameters& theta, double share) {
  const auto found = parts(theta.kernel);
  if (!found) return split(theta, share, [](const Positive& u) { return u.fixed(); });
  const double u = std::min(share, 1.0) * (theta.noise() + found->u);
  if (u < Positive::kDefaultLower) return without_places(theta);
  Hyperparameters changed = theta;
  changed.kernel = found->function + part_of_places(Positive(u).fixed());
  return changed;
}

Hyperparameters with_free_places(const Hyperparameters& theta, double share) {
  return split(theta, share, [](const Positive& u) { return u; });
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
