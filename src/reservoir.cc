#include "ample/reservoir.h"

#include <algorithm>

#include "check.h"

namespace ample {
namespace {

/// The n-th number of a sequence that needs no state (splitmix64, Steele, Lea & Flood 2014).
std::uint64_t random_number(std::uint64_t seed, std::uint64_t n) {
  std::uint64_t z = seed + (n + 1) * 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

}  // namespace

void Reservoir::forget(double gamma, std::uint64_t seed) {
  // Hyperparameters cannot be told from fewer.
  constexpr double kLeast = 100.0;
  weight *= gamma;
  const auto most = static_cast<Index>(std::max(weight, kLeast));
  Index left = size();
  for (; left > most; --left) {
    const auto n = static_cast<std::uint64_t>(seen + left);
    const auto place =
        static_cast<Index>(random_number(~seed, n) % static_cast<std::uint64_t>(left));
    X.row(place) = X.row(left - 1);
    y[place] = y[left - 1];
  }
  X.conservativeResize(left, Eigen::NoChange);
  y.conservativeResize(left);
}

void Reservoir::offer(const MatrixRef& X_new, const VectorRef& y_new, Index capacity,
                      std::uint64_t seed) {
  AMPLE_ASSERT(X_new.rows() == y_new.size() && capacity > 0);
  if (seen == 0) X.resize(0, X_new.cols());
  const Index appended = std::min(capacity - size(), X_new.rows());
  const Index before = size();
  if (appended > 0) {
    X.conservativeResize(before + appended, Eigen::NoChange);
    y.conservativeResize(before + appended);
    X.bottomRows(appended) = X_new.topRows(appended);
    y.tail(appended) = y_new.head(appended);
    seen += appended;
    weight += static_cast<double>(appended);
  }
  for (Index i = appended; i < X_new.rows(); ++i) {
    // A row replaces one of the sample with probability capacity/n, n being what all rows count.
    ++seen;
    weight += 1.0;
    const auto n = static_cast<std::uint64_t>(std::max(weight, static_cast<double>(size())));
    const auto place =
        static_cast<Index>(random_number(seed, static_cast<std::uint64_t>(seen)) % n);
    if (place >= size()) continue;
    X.row(place) = X_new.row(i);
    y[place] = y_new[i];
  }
}

}  // namespace ample
