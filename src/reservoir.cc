#include "ample/reservoir.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

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

// Hyperparameters cannot be told from fewer.
constexpr Index kLeastRows = 100;

/// Rows of a sample, drawn one by one, each once.
struct Draw {
  const Reservoir& from;
  Index rows_left;          // of those that were offered, as many as they count
  std::vector<Index> left;  // of those that were kept

  explicit Draw(const Reservoir& rows)
      : from(rows),
        rows_left(std::max(rows.size(), static_cast<Index>(rows.weight))),
        left(static_cast<std::size_t>(rows.size())) {
    std::iota(left.begin(), left.end(), Index{0});
  }

  Index next(std::uint64_t number) {
    std::swap(left[number % left.size()], left.back());
    const Index row = left.back();
    left.pop_back();
    --rows_left;
    return row;
  }
};

}  // namespace

void Reservoir::forget(double gamma, std::uint64_t seed) {
  weight *= gamma;
  const Index most = weight < 1.0 ? 0 : std::max(static_cast<Index>(weight), kLeastRows);
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
  // A sample that stands for more rows than it has is not filled up: those to come would be in it
  // more probably than those before.
  const bool is_whole = static_cast<double>(size()) + 1.0 > weight || size() < kLeastRows;
  const Index appended = is_whole ? std::min(capacity - size(), X_new.rows()) : 0;
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

// Rows of the union are drawn one by one, without replacement: from one of the two with the
// probability of its share of the rows that are left, and there any that was kept.
Reservoir sample_of_both(const Reservoir& a, const Reservoir& b, Index capacity,
                         std::uint64_t seed) {
  AMPLE_ASSERT(capacity > 0 && (a.seen == 0 || b.seen == 0 || a.X.cols() == b.X.cols()));
  std::array<Draw, 2> draws{Draw(a), Draw(b)};
  Index size = std::min(capacity, draws[0].rows_left + draws[1].rows_left);
  for (const Draw& draw : draws) {
    if (draw.from.size() < draw.rows_left) size = std::min(size, draw.from.size());
  }
  Reservoir both{.X = Matrix(size, (a.seen > 0 ? a : b).X.cols()),
                 .y = Vector(size),
                 .seen = a.seen + b.seen,
                 .fitted = std::max(a.fitted, b.fitted),
                 .weight = a.weight + b.weight,
                 .weighted = a.weighted || b.weighted};
  // Other numbers than those that chose the rows.
  const std::uint64_t key = ~random_number(seed, static_cast<std::uint64_t>(both.seen));
  for (Index i = 0; i < size; ++i) {
    const auto n = 2 * static_cast<std::uint64_t>(i);
    const auto left = static_cast<std::uint64_t>(draws[0].rows_left + draws[1].rows_left);
    const auto which = static_cast<Index>(random_number(key, n) % left);
    Draw& draw = draws[which < draws[0].rows_left ? 0 : 1];
    const Index row = draw.next(random_number(key, n + 1));
    both.X.row(i) = draw.from.X.row(row);
    both.y[i] = draw.from.y[row];
  }
  return both;
}

}  // namespace ample
