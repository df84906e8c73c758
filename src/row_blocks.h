// The rows of a batch in blocks, each taken through all its steps on one thread while it is in
// cache. A small batch is one block, whose steps share out their own work.
#pragma once

#include "ample/threads.h"
#include "ample/types.h"
#include "parallel.h"

namespace ample {

struct RowBlocks {
  static constexpr Index kRows = 256;
  static constexpr Index kWhole = 32;  // rows that vectorised loops take at once
  Index rows;
  Index count;

  // A multiple of four blocks, so that two or four threads get the same number.
  explicit RowBlocks(Index N) : rows(N), count(N < 4 * kRows ? 1 : (N / kRows + 3) / 4 * 4) {}

  /// Calls job(block, first row, rows) for each.
  template <class Job>
  void run(const Job& job) const {
    const auto boundary = [&](Index block) {
      return block == count ? rows : (rows * block / count + kWhole / 2) / kWhole * kWhole;
    };
    parallel_for(count, threads(), [&](Index block) {
      const Index first = boundary(block);
      job(block, first, boundary(block + 1) - first);
    });
  }
};

}  // namespace ample
