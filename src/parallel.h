// Running independent pieces of one job on a few threads.
//
// A job is cut into pieces by its shape alone, never by the number of threads, and sums over pieces
// are taken in order: so a result is the same to the last bit whatever the number of threads.
#pragma once

#include <functional>

#include "ample/types.h"

namespace ample {

/// Calls job(piece) for piece = 0 … pieces−1, each exactly once, on at most `workers` threads (the
/// caller's included). Pieces are dealt out in contiguous ranges, and idle workers steal from
/// others. Nested calls run serially.
void parallel_for(Index pieces, int workers, const std::function<void(Index)>& job);

/// Whether the caller is one of several pieces, so that it would gain nothing by cutting its work.
bool inside_piece();

/// How many workers pay for a job of `work` elementary vectorised operations.
int workers_for(double work);

/// The work of one pass over a matrix.
inline double entries(const MatrixRef& A) { return static_cast<double>(A.size()); }

/// Calls job(j) for the columns j = 0 … columns−1 of a matrix, none of which needs another one, at
/// `work` operations altogether. Taken from both ends in turn, so that those of a triangle too are
/// dealt out fairly.
template <class Job>
void for_columns(Index columns, double work, const Job& job) {
  parallel_for((columns + 1) / 2, workers_for(work), [&](Index j) {
    job(j);
    if (const Index other = columns - 1 - j; other != j) job(other);
  });
}

}  // namespace ample
