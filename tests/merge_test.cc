// Models that learnt apart, as one: what merging must not change, and what it refuses.
#include "ample/merge.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ample/bound.h"
#include "ample/exact_gp.h"
#include "ample/metrics.h"
#include "ample/snapshot.h"
#include "ample/threads.h"
#include "support/check_gradient.h"
#include "support/naive.h"
#include "support/random.h"
#include "support/streams.h"

namespace ample {
namespace {

using testing::message_of;
using testing::Random;
using testing::random_batch;
using testing::relative_error;
using testing::stacked;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Every row of a batch becomes an inducing point, once.
struct EveryRow {
  [[nodiscard]] static Selection select(const SelectionProblem& p) {
    Selection s;
    s.Z = stacked(p.old.Z, p.X);
    s.added = p.X.rows();
    return s;
  }
  [[nodiscard]] static std::string name() { return "every-row"; }
};

ContinualGPOptions held(Kernel kernel, double noise_variance = 0.05) {
  ContinualGPOptions options;
  options.start = {.kernel = std::move(kernel), .noise_variance = noise_variance};
  options.refit_every = 0;
  return options;
}

/// A model of some batches of 60 rows in two dimensions.
ContinualGP learnt(const ContinualGPOptions& options, std::uint64_t seed, int batches = 2) {
  ContinualGP gp(options);
  for (int b = 0; b < batches; ++b) {
    const Batch batch = random_batch(60, 2, 100 * seed + static_cast<std::uint64_t>(b));
    gp.observe(batch.X, batch.y);
  }
  return gp;
}

const Matrix& queries() {
  static const Matrix X = Random(9).normal(80, 2);
  return X;
}

double difference(const ContinualGP& a, const ContinualGP& b) {
  const Prediction p = a.predict(queries());
  const Prediction q = b.predict(queries());
  return std::max(relative_error(p.mean, q.mean), relative_error(p.variance, q.variance));
}

ContinualGP merged(const std::vector<ContinualGP>& models, const MergeOptions& options) {
  return merge(models, options).model;
}

const MergeOptions kNoPruning{.nats = 0.0};

// --- Laws --------------------------------------------------------------------------------------

class MergeKernels : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static Kernel kernel() {
    return naive::make_twin(GetParam(), 2, naive::Layout::isotropic).kernel;
  }
};
INSTANTIATE_TEST_SUITE_P(Merge, MergeKernels, ::testing::ValuesIn(naive::kernel_names()),
                         [](const auto& test) { return test.param; });

TEST_P(MergeKernels, OrderAndBracketsChangeOnlyDigits) {
  const ContinualGPOptions options = held(kernel());
  const ContinualGP a = learnt(options, 1);
  const ContinualGP b = learnt(options, 2, 3);
  const ContinualGP c = learnt(options, 3);
  const ContinualGP all = merged({a, b, c}, kNoPruning);
  EXPECT_LE(difference(merged({c, a, b}, kNoPruning), all), 1e-6);
  EXPECT_LE(difference(merged({b, c, a}, kNoPruning), all), 1e-6);
  EXPECT_LE(difference(merged({merged({a, b}, kNoPruning), c}, kNoPruning), all), 1e-6);
  EXPECT_LE(difference(merged({a, merged({b, c}, kNoPruning)}, kNoPruning), all), 1e-6);
  EXPECT_GT(difference(merged({a, b}, kNoPruning), all), 1e-4);  // control: each of them counts
}

}  // namespace
}  // namespace ample
