#include "parallel.h"

#include <atomic>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <gtest/gtest.h>

#include "ample/threads.h"

namespace ample {
namespace {

/// How often each piece was run.
std::vector<int> counts(Index pieces, int workers) {
  std::vector<std::atomic<int>> seen(static_cast<std::size_t>(pieces));
  parallel_for(pieces, workers, [&](Index i) { ++seen[static_cast<std::size_t>(i)]; });
  return {seen.begin(), seen.end()};
}

TEST(Parallel, EveryPieceRunsOnce) {
  for (const Index pieces : {0, 1, 2, 3, 7, 100}) {
    for (const int workers : {0, 1, 2, 3, 8, 1000}) {
      EXPECT_EQ(counts(pieces, workers), std::vector<int>(static_cast<std::size_t>(pieces), 1))
          << pieces << " pieces, " << workers << " workers";
    }
  }
}

TEST(Parallel, ManyRoundsOfChangingSizes) {
  // A worker that is not called in one round must be there for the next.
  for (int round = 0; round < 20000; ++round) {
    const int workers = 1 + round % 5;
    std::atomic<int> sum{0};
    parallel_for(workers, workers, [&](Index) { ++sum; });
    ASSERT_EQ(sum, workers) << "round " << round;
  }
}

TEST(Parallel, WorkersThatFellAsleepWakeUp) {
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(counts(4, 4), std::vector<int>(4, 1));
  }
}

TEST(Parallel, AnExceptionReachesTheCallerAndThePoolGoesOn) {
  for (const Index bad : {0, 1, 2, 3}) {
    EXPECT_THROW(parallel_for(4, 4,
                              [&](Index i) {
                                if (i == bad) throw std::runtime_error("this piece");
                              }),
                 std::runtime_error);
    EXPECT_EQ(counts(8, 4), std::vector<int>(8, 1));
  }
}

TEST(Parallel, AJobInsideAJobRuns) {
  std::atomic<int> sum{0};
  parallel_for(4, 4, [&](Index) { parallel_for(4, 4, [&](Index) { ++sum; }); });
  EXPECT_EQ(sum, 16);
}

TEST(Parallel, SeveralCallersAtOnce) {
  std::atomic<int> sum{0};
  std::vector<std::thread> callers;
  callers.reserve(4);
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round) parallel_for(3, 3, [&](Index) { ++sum; });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 4 * 500 * 3);
}

TEST(Parallel, AChildProcessHasItsOwnThreads) {
  ASSERT_EQ(counts(4, 4), std::vector<int>(4, 1));
  const pid_t child = fork();
  if (child == 0) _exit(counts(4, 4) == std::vector<int>(4, 1) ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Parallel, NoMoreWorkersThanThreadsAndNoneForNothing) {
  const int before = threads();
  set_threads(3);
  EXPECT_EQ(workers_for(0.0), 1);
  EXPECT_EQ(workers_for(1e12), 3);
  set_threads(before);
}

}  // namespace
}  // namespace ample
