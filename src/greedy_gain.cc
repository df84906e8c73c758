#include "greedy_gain.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <limits>

namespace ample {
namespace {

// Gains that are computed at once: the first few of a step, then twice as many each time.
constexpr Index kFirstBlock = 4;
constexpr Index kLargestBlock = 256;

// All gains are computed once at the start, O(N M) each. Of a batch larger than this, so many rows
// at even distances are candidates.
constexpr Index kMostCandidates = 10'000;

}  // namespace

GreedyGain::GreedyGain(Index pool, Index old)
    : old_(old),
      gain_(Vector::Constant(pool, std::numeric_limits<double>::infinity())),
      computed_at_(static_cast<std::size_t>(pool), -1) {
  const Index candidates = std::min(pool, kMostCandidates);
  for (Index i = 0; i < candidates; ++i) open_.push_back(i * pool / candidates);
}

std::optional<Index> GreedyGain::next(const GreedyVariance& greedy, IncrementalBound& bound) {
  std::erase_if(open_, [&](Index j) { return !greedy.is_open(j); });
  if (open_.empty()) return std::nullopt;
  const auto better = [&](Index i, Index j) {
    return gain_[i] > gain_[j] || (gain_[i] == gain_[j] && i < j);
  };
  const auto is_new = [&](Index j) {
    return computed_at_[static_cast<std::size_t>(j)] == bound.size();
  };
  for (Index block = kFirstBlock;; block = std::min(2 * block, kLargestBlock)) {
    const Index best = *std::min_element(open_.begin(), open_.end(), better);
    if (is_new(best)) return best;
    std::vector<Index> points;
    std::copy_if(open_.begin(), open_.end(), std::back_inserter(points), std::not_fn(is_new));
    const auto count = std::min(static_cast<std::ptrdiff_t>(block), std::ssize(points));
    std::partial_sort(points.begin(), points.begin() + count, points.end(), better);
    points.resize(static_cast<std::size_t>(count));
    compute(greedy, bound, points);
  }
}

void GreedyGain::compute(const GreedyVariance& greedy, IncrementalBound& bound,
                         const std::vector<Index>& points) {
  const Matrix columns = greedy.columns(points);
  const Index N = columns.rows() - old_;
  const Vector gain =
      bound.gains(greedy.Vt().bottomRows(N), columns.bottomRows(N), columns.topRows(old_));
  for (std::size_t b = 0; b < points.size(); ++b) {
    gain_[points[b]] = gain[static_cast<Index>(b)];
    computed_at_[static_cast<std::size_t>(points[b])] = bound.size();
  }
  computed_ += static_cast<Index>(points.size());
}

}  // namespace ample
