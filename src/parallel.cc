#include "parallel.h"

#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

#include "ample/threads.h"

namespace ample {

void parallel_for(Index pieces, int workers, const std::function<void(Index, int)>& job) {
  const auto count = static_cast<int>(std::min<Index>(workers, pieces));
  if (count <= 1) {
    for (Index i = 0; i < pieces; ++i) job(i, 0);
    return;
  }
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(count));
  const auto run = [&](int worker) {
    try {
      const Index first = pieces * worker / count;
      const Index last = pieces * (worker + 1) / count;
      for (Index i = first; i < last; ++i) job(i, worker);
    } catch (...) {
      errors[static_cast<std::size_t>(worker)] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    others.reserve(static_cast<std::size_t>(count - 1));
    for (int worker = 1; worker < count; ++worker) others.emplace_back(run, worker);
    run(0);
  }
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

int workers_for(double work) {
  // Starting a thread costs some 20 µs, in which one core does about 10⁵ such operations; below
  // ten times that the second thread gains nothing worth its noise.
  constexpr double kWorkPerThread = 5e5;
  return static_cast<int>(std::clamp(work / kWorkPerThread, 1.0, static_cast<double>(threads())));
}

}  // namespace ample
