// Some of many rows, from everywhere.
#pragma once

#include <algorithm>
#include <vector>

#include "ample/types.h"

namespace ample {

/// At most `most` of so many rows, at equal distances: neighbours in a stream are often neighbours
/// in space.
[[nodiscard]] inline std::vector<Index> thinned(Index rows, Index most) {
  const Index left = std::min(rows, most);
  std::vector<Index> some(static_cast<std::size_t>(left));
  for (Index i = 0; i < left; ++i) some[static_cast<std::size_t>(i)] = i * rows / left;
  return some;
}

}  // namespace ample
