// Running independent pieces of one job on a few threads.
#pragma once

#include <functional>

#include "ample/types.h"

namespace ample {

/// Calls job(piece, worker) for piece = 0 … pieces−1, each exactly once, on at most `workers`
/// threads (the caller's included); worker < workers tells which. Pieces are dealt out in
/// contiguous ranges, so which worker gets which does not depend on timing.
void parallel_for(Index pieces, int workers, const std::function<void(Index, int)>& job);

/// How many workers pay for a job of `work` elementary vectorised operations.
int workers_for(double work);

}  // namespace ample
