// Hyperparameters of a sample, by the bound where it is large, and a kernel that suits it better.
#include "sample_fit.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ample/bound.h"
#include "ample/exact_gp.h"
#include "ample/posterior.h"
#include "evidence_fit.h"
#include "start_search.h"
#include "support/random.h"
#include "thinned.h"

namespace ample {
namespace {

using testing::Random;

struct Table {
  Matrix X;
  Vector y;
};

/// A smooth function of two inputs with noise of deviation 0.2.
Table smooth(Index rows) {
  Random random(1);
  Table table{random.normal(rows, 2), Vector(rows)};
  for (Index i = 0; i < rows; ++i) {
    table.y[i] = std::sin(2.0 * table.X(i, 0)) + 0.5 * table.X(i, 1) + 0.2 * random.normal();
  }
  return table;
}

/// A function that changes within the distance from one row to the next, without noise.
Table rough(Index rows) {
  Random random(2);
  Table table{random.normal(rows, 3), Vector(rows)};
  table.y = (9.0 * table.X.rowwise().sum()).array().sin();
  return table;
}

Hyperparameters start(std::vector<double> lengthscales, double noise = 0.1) {
  return {.kernel = SquaredExponential{.lengthscale = Positive(std::move(lengthscales))},
          .noise_variance = noise};
}

MinimizeOptions evaluations(int most) {
  MinimizeOptions options;
  options.max_evaluations = most;
  return options;
}

TEST(SampleFit, OfAFewRowsIsThatOfTheirExactEvidence) {
  const Table table = smooth(300);
  Curvature curvature;
  Curvature exact_curvature;
  const SampleFit fitted =
      fit_to_sample(start({1.0, 1.0}), table.X, table.y, evaluations(8), curvature, {});
  const EvidenceFit exact =
      fit_evidence(start({1.0, 1.0}), table.X, table.y, evaluations(8), &exact_curvature, {});
  EXPECT_EQ(fitted.theta.pack(), exact.theta.pack());
  EXPECT_EQ(fitted.rows, 300);
}

// Control: the θ of a part of the rows, which is what there would be without the bound, is not.
TEST(SampleFit, OfManyRowsIsThatOfTheEvidenceOfAll) {
  const Table table = smooth(1300);
  const MinimizeOptions enough = evaluations(30);
  Curvature curvature;
  const SampleFit fitted =
      fit_to_sample(start({1.0, 1.0}), table.X, table.y, enough, curvature, {});
  const EvidenceFit all = fit_evidence(start({1.0, 1.0}), table.X, table.y, enough, nullptr, {});
  const auto some = thinned(1300, 650);
  const EvidenceFit part = fit_evidence(start({1.0, 1.0}), table.X(some, Eigen::all), table.y(some),
                                        enough, nullptr, {});
  EXPECT_EQ(fitted.rows, 1300);
  const auto distance = [&](const Hyperparameters& theta) {
    return (theta.pack() - all.theta.pack()).cwiseAbs().maxCoeff();
  };
  EXPECT_LT(distance(fitted.theta), 0.01);
  EXPECT_GT(distance(part.theta), 0.03);
}

TEST(SampleFit, ItsPointsSayWhatTheRowsDo) {
  const Table table = smooth(1300);
  Curvature curvature;
  const SampleFit fitted =
      fit_to_sample(start({1.0, 1.0}), table.X, table.y, evaluations(10), curvature, {});
  ASSERT_TRUE(fitted.Z);
  EXPECT_EQ(fitted.rows, 1300);
  OnlineBound bound(std::vector<const State*>{}, table.X, Sites(table.y));
  ASSERT_TRUE(bound.factorize(fitted.theta.kernel, fitted.theta.noise(), *fitted.Z));
  const State state = bound.absorb();
  ExactGP exact(fitted.theta);
  exact.condition(table.X, table.y);
  const Matrix X = Random(3).normal(50, 2);
  const Prediction p = Posterior(state).predict(X);
  const Prediction q = exact.predict(X);
  EXPECT_LT((p.mean - q.mean).cwiseAbs().maxCoeff(), 0.01);
  EXPECT_LT((p.variance - q.variance).cwiseAbs().maxCoeff(), 1e-3);
}

// Chosen for a start that is too smooth, the points are too few for the θ that they lead to. The
// exact evidence of fewer rows is fitted instead.
TEST(SampleFit, IsExactWhereTheFunctionIsRougherThanTheStart) {
  Random random(5);
  Table table{random.uniform(1300, 1, -3.0, 3.0), Vector(1300)};
  table.y = (12.0 * table.X.col(0)).array().sin() + 0.1 * random.normal(1300).array();
  Curvature curvature;
  const SampleFit fitted =
      fit_to_sample(start({0.4}), table.X, table.y, evaluations(30), curvature, {});
  EXPECT_EQ(fitted.rows, kMostExactRows);
  const auto some = thinned(1300, kMostExactRows);
  const EvidenceFit exact = fit_evidence(start({0.2}), table.X(some, Eigen::all), table.y(some),
                                         evaluations(30), nullptr, {});
  EXPECT_NEAR(fitted.theta.noise() / exact.theta.noise(), 1.0, 0.01);
}

// The bound of such rows is highest where all is noise. The exact evidence of fewer knows better.
TEST(SampleFit, IsExactWhereThePointsLeaveMuchOfTheRows) {
  const Table table = rough(1200);
  const Hyperparameters theta = start({0.2, 0.2, 0.2}, 1e-4);
  Curvature curvature;
  const SampleFit fitted = fit_to_sample(theta, table.X, table.y, evaluations(5), curvature, {});
  const auto some = thinned(1200, kMostExactRows);
  const EvidenceFit exact =
      fit_evidence(theta, table.X(some, Eigen::all), table.y(some), evaluations(5), nullptr, {});
  EXPECT_EQ(fitted.rows, kMostExactRows);
  EXPECT_EQ(fitted.theta.pack(), exact.theta.pack());
}

/// Waves along the first input, and a slow change over a second that spans fifty times as much.
Table waves_and_trend(Index rows) {
  Random random(4);
  Table table{Matrix(rows, 2), Vector(rows)};
  for (Index i = 0; i < rows; ++i) {
    table.X(i, 0) = random.normal();
    table.X(i, 1) = random.uniform(0.0, 50.0);
    table.y[i] =
        std::sin(5.0 * table.X(i, 0)) + std::sin(table.X(i, 1) / 12.0) + 0.1 * random.normal();
  }
  return table;
}

TEST(BetterKernel, IsFoundWhereTheFirstRowsHadNotShownAll) {
  const Table table = waves_and_trend(600);
  // Of rows from a corner, where the second input hardly varied.
  const Hyperparameters one = start({0.4}, 0.01);
  const auto better = find_better_kernel(one, table.X, table.y, {});
  ASSERT_TRUE(better);
  EXPECT_NE(better->comparison.find("as it was"), std::string::npos) << better->comparison;
  const std::vector<Parameter> parameters = better->theta.kernel.parameters();
  ASSERT_EQ(parameters.size(), 3U);  // a variance and two lengthscales
  EXPECT_GT(parameters[2].value, 5.0 * parameters[1].value);
  // And with that one known there is no better.
  EXPECT_FALSE(find_better_kernel(better->theta, table.X, table.y, {}));
}

// Shorter lengthscales come last. They have to come nearer to the targets than what was found
// before them, not than themselves.
TEST(BetterKernel, MayBeShorterThanOneThatIsBetterToo) {
  Random random(6);
  Table table{random.uniform(1000, 1, -1.7, 1.7), Vector(1000)};
  const auto x = table.X.col(0).array();
  table.y = x + (7.0 * x).sin() + 0.7 * (80.0 * x).sin() + 0.1 * random.normal(1000).array();
  const Hyperparameters smooth{SquaredExponential{.lengthscale = Positive(4.0).within(3.0, 100.0)}};
  const auto better = find_better_kernel(smooth, table.X, table.y, {});
  ASSERT_TRUE(better);
  EXPECT_LT(better->theta.kernel.parameters()[1].value, 0.1) << better->comparison;
  EXPECT_LT(better->theta.noise(), 0.02) << better->comparison;
}

}  // namespace
}  // namespace ample
