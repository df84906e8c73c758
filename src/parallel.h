// Running independent pieces of one job on a few threads.
//
// A job is cut into pieces by its shape alone, never by the number of threads, and sums over pieces
// are taken in order: so a result is the same to the last bit whatever the number of threads.
#pragma once

#include <functional>

#include "ample/types.h"

namespace ample {

/// Calls job(piece) for piece = 0 … pieces−1, each exactly once, on at most `workers` threads (the
/// caller's included). Pieces are dealt out in contiguous ranges. A job that calls parallel_for
/// runs that one by itself.
void parallel_for(Index pieces, int workers, const std::function<void(Index)>& job);

/// How many workers pay for a job of `work` elementary vectorised operations.
int workers_for(double work);

}  // namespace ample
