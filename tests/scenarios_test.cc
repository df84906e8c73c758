// The paper's Figure 1: the model's size follows what is new in the data, for every seed.
#include "scenarios.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "ample/continual_gp.h"
#include "ample/metrics.h"

namespace ample::cli {
namespace {

constexpr std::uint64_t kSeeds = 8;

struct Growth {
  std::vector<double> sizes;  // M after each batch
  double error;               // RMSE at the inputs of all batches, against the function at the end
};

Growth follow(const Scenario& scenario, const ContinualGPOptions& options = scenario_options()) {
  ContinualGP gp(options);
  Growth result{{}, 0.0};
  for (const Batch& batch : scenario.batches) {
    const BatchReport r = gp.observe(batch.X, batch.y);
    EXPECT_EQ(r.stop, SelectionStop::threshold);
    EXPECT_LE(r.gap.value(), r.threshold.value());
    if (options.prune == 0.0) {
      EXPECT_EQ(r.inducing_removed, 0);
    }
    result.sizes.push_back(static_cast<double>(r.inducing));
  }
  double sum = 0.0;
  Index count = 0;
  for (const Batch& batch : scenario.batches) {
    const Vector f = batch.X.col(0).unaryExpr(scenario.function);
    sum += (gp.predict(batch.X).mean - f).squaredNorm();
    count += f.size();
  }
  result.error = std::sqrt(sum / static_cast<double>(count));
  return result;
}

/// R² of the straight line through (1, M_1), (2, M_2), …
double linearity(const std::vector<double>& sizes) {
  const auto n = static_cast<Index>(sizes.size());
  Vector M(n);
  for (Index i = 0; i < n; ++i) M[i] = sizes[static_cast<std::size_t>(i)];
  const Vector t = Vector::LinSpaced(n, 1.0, static_cast<double>(n));
  const Vector dt = t.array() - t.mean();
  const double slope = dt.dot(M) / dt.squaredNorm();
  return r2(M, (slope * dt).array() + M.mean());
}

TEST(Scenarios, OnAGrowingDomainTheModelGrowsLinearly) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const Growth r = follow(growing_domain(seed));
    EXPECT_GT(linearity(r.sizes), 0.98);
    EXPECT_GE(r.sizes[9] - r.sizes[6], 5.0);  // to the end
    EXPECT_LT(r.error, 0.12);
  }
}

TEST(Scenarios, OnAFixedDomainTheModelStopsGrowing) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const Growth r = follow(fixed_domain(seed));
    EXPECT_LE(r.sizes[9] - r.sizes[4], 0.1 * r.sizes[9]);  // the last half
    EXPECT_LE(r.sizes[9] - r.sizes[6], 2.0);
    EXPECT_GE(r.sizes[4] - r.sizes[0], 10.0);  // control: the first half did grow
    EXPECT_LT(linearity(r.sizes), 0.9);
    EXPECT_LT(r.error, 0.2);
  }
}

TEST(Scenarios, InANarrowRangeTheModelStaysSmallUntilTheOutliersCome) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const Growth r = follow(outliers(seed));
    for (std::size_t b = 0; b < kFirstOutlierBatch; ++b) EXPECT_LE(r.sizes[b], 8.0);
    EXPECT_GE(r.sizes[kFirstOutlierBatch], 1.5 * r.sizes[kFirstOutlierBatch - 1]);
    EXPECT_GE(r.sizes[9], 4.0 * r.sizes[kFirstOutlierBatch - 1]);
  }
}

TEST(Scenarios, WhenTheFunctionChangesOnlyAModelThatForgetsFollows) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    const Scenario changing = changing_function(seed);
    const Growth forgetting = follow(changing, forgetting_options());
    const Growth keeping = follow(changing);
    EXPECT_LT(forgetting.error, 0.15);
    EXPECT_GT(keeping.error, 0.4);
    EXPECT_GE(keeping.sizes[9], forgetting.sizes[9]);
    // Until the change they differ by what is pruned alone.
    EXPECT_LE(std::abs(forgetting.sizes[4] - keeping.sizes[4]), 5.0);
  }
}

TEST(Scenarios, AreWhatThePaperDescribes) {
  const Scenario growing = growing_domain(1);
  const Scenario fixed = fixed_domain(1);
  const Scenario rare = outliers(1);
  for (const Scenario* s : {&growing, &fixed, &rare}) ASSERT_EQ(s->batches.size(), 10U);
  double last = 0.0;
  for (std::size_t b = 0; b < 10; ++b) {
    const Matrix& X = growing.batches[b].X;
    ASSERT_EQ(X.rows(), 50);
    for (Index i = 0; i < 50; ++i) {
      EXPECT_GE(X(i, 0), last);
      last = X(i, 0);
    }
    EXPECT_EQ(fixed.batches[b].X.rows(), 15);
    EXPECT_GT(fixed.batches[b].X.maxCoeff() - fixed.batches[b].X.minCoeff(), 5.0);
    const Matrix& R = rare.batches[b].X;
    EXPECT_EQ(R.rows(), 130);
    const bool inside = R.minCoeff() >= 4.0 && R.maxCoeff() <= 6.0;
    EXPECT_EQ(inside, b < kFirstOutlierBatch);
  }
  EXPECT_LE(last, 10.0);
  double squares = 0.0;
  for (const Batch& batch : growing.batches) {
    for (Index i = 0; i < 50; ++i) {
      const double e = batch.y[i] - scenario_function(batch.X(i, 0));
      squares += e * e;
    }
  }
  EXPECT_NEAR(std::sqrt(squares / 500.0), kScenarioNoiseDeviation, 0.025);
}

TEST(Scenarios, TheSameSeedGivesTheSameData) {
  EXPECT_EQ(outliers(3).batches[9].y, outliers(3).batches[9].y);
  EXPECT_NE(outliers(3).batches[9].y, outliers(4).batches[9].y);
}

}  // namespace
}  // namespace ample::cli
