// A stream may go on for ever: what the process holds must not grow with it.
#include <cmath>
#include <cstdint>
#include <fstream>
#include <unistd.h>

#include <gtest/gtest.h>

#include "ample/continual_gp.h"
#include "support/random.h"

namespace ample {
namespace {

/// Resident bytes of this process.
double resident() {
  std::ifstream file("/proc/self/statm");
  double total = 0.0;
  double pages = 0.0;
  file >> total >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE));
}

TEST(Memory, IsFlatOverTenThousandBatchesInAFixedDomain) {
  if (!std::ifstream("/proc/self/statm")) GTEST_SKIP() << "needs /proc/self/statm";
  constexpr Index kBatches = 10000;
  constexpr Index kRows = 50;
  testing::Random random(3);
  ContinualGP gp;
  Index batch_of_last_growth = 0;
  double start = 0.0;
  double lowest = 0.0;
  double highest = 0.0;
  for (Index b = 0; b < kBatches; ++b) {
    const Matrix X = random.uniform(kRows, 1, 0.0, 10.0);
    Vector y(kRows);
    for (Index i = 0; i < kRows; ++i) {
      y[i] = std::sin(X(i, 0)) + 0.3 * std::cos(3.0 * X(i, 0)) + 0.1 * random.normal();
    }
    const BatchReport r = gp.observe(X, y);
    if (r.inducing_added > 0) {
      batch_of_last_growth = b;
      start = lowest = highest = 0.0;
    }
    if (b % 10 != 0) continue;
    const double now = resident();
    if (start == 0.0) start = lowest = highest = now;
    lowest = std::min(lowest, now);
    highest = std::max(highest, now);
  }
  RecordProperty("resident_megabytes", std::to_string(start / 1e6));
  std::printf("M = %td since batch %td of %td; resident %.2f MB, from %.2f to %.2f after that\n",
              gp.size(), batch_of_last_growth + 1, kBatches, start / 1e6, lowest / 1e6,
              highest / 1e6);
  EXPECT_LT(batch_of_last_growth, kBatches / 2) << "the model did not stop growing";
  EXPECT_GE(lowest, 0.95 * start);
  EXPECT_LE(highest, 1.05 * start);
}

}  // namespace
}  // namespace ample
