// A model with no settings on data of any kind: warm-up, small batches, a kernel that is found, a
// reservoir, a past that is believed as far as the evidence goes, and warnings.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ample/continual_gp.h"
#include "ample/metrics.h"
#include "ample/reservoir.h"
#include "ample/snapshot.h"
#include "places.h"
#include "support/random.h"
#include "support/streams.h"

namespace ample {
namespace {

using testing::Random;

/// Of five inputs only the first two tell the target.
Batch table(Index N, std::uint64_t seed, double noise = 0.1) {
  Random random(seed);
  Batch b{random.uniform(N, 5, -2.0, 2.0), Vector(N)};
  for (Index i = 0; i < N; ++i) {
    b.y[i] = std::sin(2.0 * b.X(i, 0)) + 0.5 * b.X(i, 1) + noise * random.normal();
  }
  return b;
}

Batch sorted_by(const Vector& key, const Batch& rows) {
  std::vector<Index> order(static_cast<std::size_t>(key.size()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](Index row) { return key[row]; });
  return {rows.X(order, Eigen::all), rows.y(order)};
}

ContinualGPOptions small_options() {
  ContinualGPOptions options = ContinualGPOptions::out_of_the_box();
  options.warm_up = 60;
  options.refit_rows = 120;
  options.reservoir = 120;
  return options;
}

/// Learns the rows in batches of `size`; the last report.
BatchReport learn(ContinualGP& gp, const Batch& rows, Index size) {
  BatchReport last;
  for (Index first = 0; first < rows.X.rows(); first += size) {
    const Index n = std::min(size, rows.X.rows() - first);
    last = gp.observe(rows.X.middleRows(first, n), rows.y.segment(first, n));
  }
  return last;
}

/// Learns the rows in batches of `size`; at how many of them the past was learnt again.
Index count_relearnt(ContinualGP& gp, const Batch& rows, Index size) {
  Index times = 0;
  for (Index first = 0; first < rows.X.rows(); first += size) {
    const Index n = std::min(size, rows.X.rows() - first);
    const BatchReport r = gp.observe(rows.X.middleRows(first, n), rows.y.segment(first, n));
    times += r.relearnt ? 1 : 0;
  }
  return times;
}

TEST(OutOfTheBox, LearnsWithoutSettings) {
  const Batch train = table(700, 1);
  const Batch test = table(400, 2);
  ContinualGP gp(ContinualGPOptions::out_of_the_box());
  const BatchReport last = learn(gp, train, 350);
  const Prediction p = gp.predict(test.X, Target::observation);
  EXPECT_LT(rmse(test.y, p.mean), 0.13);  // the noise is 0.1
  EXPECT_NEAR(coverage(test.y, p, 0.95), 0.95, 0.04);
  EXPECT_LT(gp.size(), 150);
  EXPECT_LE(last.gap.value(), last.threshold.value());
}

TEST(OutOfTheBox, TheCutIntoBatchesDoesNotMatter) {
  const Batch rows = table(2 * 120, 3);  // a refit at their end, whatever the cut
  const Matrix X = table(50, 4).X;
  ContinualGP reference(small_options());
  learn(reference, rows, 60);
  for (const Index size : {1, 4, 30}) {
    ContinualGP gp(small_options());
    learn(gp, rows, size);
    EXPECT_EQ(gp.predict(X).mean, reference.predict(X).mean) << size;
    EXPECT_EQ(gp.rows_seen(), reference.rows_seen()) << size;
  }
}

TEST(OutOfTheBox, SmallBatchesAreLearntAtOnce) {
  ContinualGP gp(small_options());
  learn(gp, table(60, 5), 60);
  const Kernel before = gp.kernel();
  const Batch more = table(5, 6);
  const Matrix here = more.X.topRows(1);
  const double uncertain = gp.predict(here).variance[0];
  const BatchReport r = gp.observe(more.X, more.y);
  EXPECT_FALSE(r.refitted);
  EXPECT_EQ(gp.rows_seen(), 65);
  EXPECT_TRUE(gp.kernel() == before);
  EXPECT_LT(gp.predict(here).variance[0], uncertain);
}

TEST(OutOfTheBox, WarmsUpWithAnExactModel) {
  ContinualGP gp(small_options());
  const Batch rows = table(20, 7);
  const BatchReport r = gp.observe(rows.X, rows.y);
  EXPECT_EQ(r.stop, SelectionStop::warm_up);
  EXPECT_EQ(r.rows_seen, 20);
  EXPECT_EQ(gp.size(), 20);
  EXPECT_LT(rmse(rows.y, gp.predict(rows.X).mean), 0.5);
  const BatchReport begun = gp.observe(table(60, 8).X, table(60, 8).y);
  EXPECT_NE(begun.stop, SelectionStop::warm_up);
  EXPECT_EQ(begun.rows_seen, 80);
  EXPECT_FALSE(begun.found_kernel.empty());
}

TEST(OutOfTheBox, AConstantBeginningProlongsTheWarmUp) {
  Batch constant = table(80, 9);
  constant.X.setConstant(1.0);
  constant.y.setConstant(3.0);
  ContinualGP gp(small_options());
  EXPECT_EQ(gp.observe(constant.X, constant.y).stop, SelectionStop::warm_up);
  EXPECT_NEAR(gp.predict(constant.X).mean[0], 3.0, 1e-6);
  learn(gp, table(600, 10), 60);
  const Batch test = table(300, 11);
  EXPECT_LT(rmse(test.y, gp.predict(test.X).mean), 0.25);
}

Batch joined(const Batch& a, const Batch& b) {
  Batch both{Matrix(a.X.rows() + b.X.rows(), a.X.cols()), Vector(a.y.size() + b.y.size())};
  both.X << a.X, b.X;
  both.y << a.y, b.y;
  return both;
}

// In the warm-up or after it, with or without the rows that follow in one batch.
TEST(OutOfTheBox, ASensorThatIsStuckAtFirstIsNotBelieved) {
  const Batch good = table(600, 61);
  const Batch test = table(500, 62);
  for (const Index count : {15, 80}) {
    for (const bool inputs : {false, true}) {
      for (const Index size : {Index{60}, count + 200}) {
        Batch stuck = table(count, 63);
        if (inputs) {
          stuck.X.setConstant(0.5);
        } else {
          stuck.y.setConstant(3.0);
        }
        ContinualGP gp(small_options());
        Index warnings = 0;
        const Batch all = joined(stuck, good);
        for (Index first = 0; first < all.y.size(); first += size) {
          const Index n = std::min(size, all.y.size() - first);
          const BatchReport r = gp.observe(all.X.middleRows(first, n), all.y.segment(first, n));
          EXPECT_EQ(r.rows_seen, first + n);
          for (const std::string& warning : r.warnings) {
            if (!warning.starts_with(fmt::format("the first {} rows", count))) continue;
            ++warnings;
            EXPECT_EQ(r.past_weight, 0.0);
          }
          gp = from_bytes(to_bytes(gp));
        }
        EXPECT_EQ(gp.rows_seen(), all.y.size());
        EXPECT_EQ(warnings, 1) << count << ", " << inputs << ", " << size;
        const Prediction p = gp.predict(test.X, Target::observation);
        EXPECT_LT(rmse(test.y, p.mean), 0.11) << count << ", " << inputs << ", " << size;
        EXPECT_NEAR(coverage(test.y, p, 0.95), 0.95, 0.03)
            << count << ", " << inputs << ", " << size;
      }
    }
  }
}

// Where others say the same, or say nothing, first rows of one target are as good as any.
TEST(OutOfTheBox, AFunctionThatIsFlatAtFirstIsBelieved) {
  Random random(64);
  Batch rows{Matrix(700, 1), Vector(700)};
  rows.X.col(0) = Vector::LinSpaced(700, -2.0, 5.0);
  for (Index i = 0; i < 700; ++i) {
    const double x = rows.X(i, 0);
    rows.y[i] = x < 0.0 ? 0.0 : std::sin(2.0 * x) + 0.05 * random.normal();
  }
  for (const Index size : {50, 350}) {
    ContinualGP gp(small_options());
    learn(gp, rows, size);
    const Matrix flat = Vector::LinSpaced(20, -1.9, -0.3);
    EXPECT_LT(gp.predict(flat).mean.cwiseAbs().maxCoeff(), 0.1) << size;
  }
  // Nights of a month.
  Batch days{Matrix(720, 1), Vector(720)};
  for (Index i = 0; i < 720; ++i) {
    const auto hour = static_cast<double>(i % 24);
    days.X(i, 0) = hour;
    days.y[i] = hour < 12.0 ? 0.0 : std::sin((hour - 12.0) / 4.0) + 0.05 * random.normal();
  }
  ContinualGP gp(small_options());
  for (Index first = 0; first < 720; first += 48) {
    const BatchReport r = gp.observe(days.X.middleRows(first, 48), days.y.segment(first, 48));
    EXPECT_EQ(r.past_weight, 1.0) << first;
  }
}

TEST(OutOfTheBox, AConstantTargetIsWarnedOfInTheWarmUp) {
  ContinualGP gp(ContinualGPOptions::out_of_the_box());
  const Matrix X = table(100, 26).X;
  EXPECT_TRUE(gp.observe(X.topRows(99), Vector::Constant(99, 3.0)).warnings.empty());
  const BatchReport r = gp.observe(X.bottomRows(1), Vector::Constant(1, 3.0));
  ASSERT_EQ(r.warnings.size(), 1U);
  EXPECT_EQ(r.warnings[0], "the target is constant so far");
}

TEST(OutOfTheBox, PureNoiseTakesNextToNothing) {
  for (const Index D : {1, 5, 20}) {
    Random random(static_cast<std::uint64_t>(D));
    const Batch noise{random.normal(600, D), random.normal(600)};
    ContinualGP gp(ContinualGPOptions::out_of_the_box());
    learn(gp, noise, 300);
    EXPECT_LE(gp.size(), 10 + D) << D;
    // Control: by the paper's rule nearly every row is taken.
    if (D == 5) {
      ContinualGPOptions paper;
      paper.scaling = Standardize::first_batch;
      ContinualGP all(paper);
      learn(all, noise, 300);
      EXPECT_GT(all.size(), 100);
    }
  }
}

TEST(OutOfTheBox, TheFloorIsInTheGuarantee) {
  const Batch rows = table(200, 12, 2.0);
  ContinualGPOptions options;
  options.selection = Vips{.delta = 1e-6, .floor = 0.01};
  ContinualGP gp(options);
  const BatchReport r = gp.observe(rows.X, rows.y);
  EXPECT_EQ(r.threshold.value(), 0.01 * 200);
  EXPECT_EQ(r.stop, SelectionStop::threshold);
  EXPECT_LE(r.gap.value(), r.threshold.value());
}

TEST(OutOfTheBox, FindsWhichInputsMatter) {
  const Batch rows = table(300, 13);
  ContinualGP gp(ContinualGPOptions::out_of_the_box());
  gp.observe(rows.X, rows.y);
  std::vector<double> lengthscales;
  for (const Parameter& p : gp.kernel().parameters()) {
    if (p.kind == Parameter::Kind::lengthscale) lengthscales.push_back(p.value);
  }
  ASSERT_EQ(lengthscales.size(), 5U);
  for (const std::size_t irrelevant : {2U, 3U, 4U}) {
    EXPECT_GT(lengthscales[irrelevant], 3.0 * lengthscales[0]);
  }
}

/// Rows with the first input in a range. Beyond a corner of it the third input matters too.
Batch rippled(Random& random, Index N, double first_from, double first_to, double noise) {
  Batch b{random.uniform(N, 3, -1.0, 1.0), Vector(N)};
  b.X.col(0) = random.uniform(N, 1, first_from, first_to);
  for (Index i = 0; i < N; ++i) {
    const double ripple = b.X(i, 0) > -0.8 ? 0.3 * std::sin(8.0 * b.X(i, 2)) : 0.0;
    b.y[i] = std::exp(1.2 * b.X(i, 0)) * (1.0 + 0.5 * std::sin(3.0 * b.X(i, 1))) + ripple +
             noise * random.normal();
  }
  return b;
}

// With one lengthscale for all inputs this is noise.
TEST(OutOfTheBox, OneInputOfManyIsFound) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Random random(seed);
    const auto rows = [&](Index N) {
      Batch b{random.normal(N, 35), Vector(N)};
      b.y = (2.0 * b.X.col(0)).array().sin() + 0.1 * random.normal(N).array();
      return b;
    };
    ContinualGP gp(ContinualGPOptions::out_of_the_box());
    learn(gp, rows(400), 400);
    const Batch test = rows(300);
    EXPECT_LT(rmse(test.y, gp.predict(test.X).mean), 0.2) << seed;
  }
}

TEST(OutOfTheBox, AnInputThatMattersOnlyOutsideTheFirstCornerIsFound) {
  constexpr double kNoise = 0.05;
  Random random(11);
  const auto rows = [&](Index N, double first_from, double first_to) {
    return rippled(random, N, first_from, first_to, kNoise);
  };
  ContinualGP gp(ContinualGPOptions::out_of_the_box());
  learn(gp, rows(1200, -1.0, -0.9), 400);
  // Under the new kernel the sample of the past tells more than what was made of it under the old.
  EXPECT_GT(count_relearnt(gp, rows(2400, -1.0, 1.0), 400), 0);
  const Batch test = rows(500, -0.7, 1.0);
  const Prediction p = gp.predict(test.X, Target::observation);
  EXPECT_LT(rmse(test.y, p.mean), 1.5 * kNoise);  // the ripple alone is 0.2
  EXPECT_NEAR(coverage(test.y, p, 0.95), 0.95, 0.04);
}

// The sample of the past, which has no weights, does not take the place of what was made of rows
// that had some.
TEST(OutOfTheBox, APastOfRowsWithWeightsIsNotLearntAgain) {
  Random random(11);
  ContinualGP gp(ContinualGPOptions::out_of_the_box());
  const Batch corner = rippled(random, 1200, -1.0, -0.9, 0.05);
  learn(gp, {corner.X.topRows(800), corner.y.head(800)}, 400);
  gp.observe(corner.X.bottomRows(400), corner.y.tail(400),
             {.weights = Vector::LinSpaced(400, 0.8, 1.2)});
  gp = from_bytes(to_bytes(gp));
  const Batch all = rippled(random, 2400, -1.0, 1.0, 0.05);
  EXPECT_EQ(count_relearnt(gp, all, 400), 0);
}

TEST(OutOfTheBox, WeightsOfOneAreNone) {
  const Batch rows = table(150, 17);
  const Matrix X = table(20, 18).X;
  ContinualGP plain(small_options());
  ContinualGP weighted(small_options());
  for (Index first = 0; first < 150; first += 50) {  // in the warm-up and after it
    plain.observe(rows.X.middleRows(first, 50), rows.y.segment(first, 50));
    weighted.observe(rows.X.middleRows(first, 50), rows.y.segment(first, 50),
                     {.weights = Vector::Ones(50)});
    EXPECT_EQ(plain.predict(X).mean, weighted.predict(X).mean) << first;
  }
}

// From lengthscales of the whole record its waves look like noise.
TEST(OutOfTheBox, SixtyWavesInOneRecordAreFound) {
  constexpr double kNoise = 0.25;
  Random random(21);
  const auto rows = [&](Index N) {
    Batch b{random.uniform(N, 1, 0.0, 1.0), Vector(N)};
    for (Index i = 0; i < N; ++i) {
      b.y[i] = std::sin(2.0 * std::numbers::pi * 60.0 * b.X(i, 0)) + kNoise * random.normal();
    }
    return b;
  };
  ContinualGP gp(ContinualGPOptions::out_of_the_box());
  learn(gp, rows(3000), 500);
  const Batch test = rows(500);
  const Prediction p = gp.predict(test.X, Target::observation);
  EXPECT_LT(rmse(test.y, p.mean), 1.3 * kNoise);
  EXPECT_NEAR(coverage(test.y, p, 0.95), 0.95, 0.04);
}

// A bump at every row would be more probable than the function: it expects anything.
TEST(OutOfTheBox, HeavyTailsAreNotLearntAsBumps) {
  Random random(22);
  const auto function = [](double x) { return std::sin(3.0 * x); };
  Batch rows{random.uniform(2000, 1, -2.0, 2.0), Vector(2000)};
  for (Index i = 0; i < 2000; ++i) {
    // Student's t with two degrees of freedom, which has no variance.
    const double chi_squared = -2.0 * std::log(random.uniform(1, 1, 1e-9, 1.0)(0, 0));
    rows.y[i] = function(rows.X(i, 0)) + 0.2 * random.normal() / std::sqrt(0.5 * chi_squared);
  }
  ContinualGP gp(ContinualGPOptions::out_of_the_box());
  learn(gp, rows, 500);
  const Vector x = Vector::LinSpaced(200, -1.9, 1.9);
  EXPECT_LT(rmse(x.unaryExpr(function), gp.predict(x).mean), 0.1);
  EXPECT_LT(gp.size(), 40);
}

TEST(OutOfTheBox, RowsHeldInTheWarmUpAreFitted) {
  Random random(23);
  const auto rows = [&](Index N) {
    Batch b{random.uniform(N, 5, -1.0, 1.0), Vector(N)};
    for (Index i = 0; i < N; ++i) b.y[i] = b.X.row(i).sum() + 0.1 * random.normal();
    return b;
  };
  constexpr int kTables = 20;  // so few rows tell the noise to a tenth only
  double mean_coverage = 0.0;
  for (int t = 0; t < kTables; ++t) {
    ContinualGP gp(ContinualGPOptions::out_of_the_box());
    const Batch few = rows(45);
    ASSERT_EQ(gp.observe(few.X, few.y).stop, SelectionStop::warm_up);
    const Batch test = rows(400);
    const Prediction p = gp.predict(test.X, Target::observation);
    EXPECT_LT(rmse(test.y, p.mean), 0.2) << t;  // of a deviation of 1.3
    mean_coverage += coverage(test.y, p, 0.95) / kTables;
  }
  EXPECT_NEAR(mean_coverage, 0.95, 0.03);
}

TEST(OutOfTheBox, ConstantTargetsAreNotFittedToInTheWarmUp) {
  ContinualGPOptions options = ContinualGPOptions::out_of_the_box();
  ContinualGP gp(options);
  gp.observe(table(45, 24).X, Vector::Constant(45, 3.0));
  EXPECT_EQ(gp.noise_variance(), options.start.noise());
  gp.observe(table(1, 25).X, Vector::Constant(1, 4.0));  // control
  EXPECT_NE(gp.noise_variance(), options.start.noise());
}

// All inputs matter alike, so one lengthscale foresees as well as three, and only who asks gets
// three.
TEST(OutOfTheBox, ALengthscaleForEachInputOnRequest) {
  Random random(15);
  Batch rows{random.uniform(200, 3, -2.0, 2.0), Vector(200)};
  for (Index i = 0; i < 200; ++i) {
    rows.y[i] = std::sin(rows.X.row(i).sum()) + 0.3 * random.normal();
  }
  ContinualGPOptions options = ContinualGPOptions::out_of_the_box();
  const auto lengthscales = [&] {
    ContinualGP gp(options);
    gp.observe(rows.X, rows.y);
    Index count = 0;
    for (const Parameter& p : gp.kernel().parameters()) {
      count += p.kind == Parameter::Kind::lengthscale ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(lengthscales(), 1);
  options.ard = true;
  EXPECT_EQ(lengthscales(), 3);
}

TEST(OutOfTheBox, AChangedFunctionIsForgottenAndASteadyOneIsNot) {
  const auto batch = [](std::uint64_t seed, double sign) {
    Random random(seed);
    Batch b{random.uniform(60, 1, -3.0, 3.0), Vector(60)};
    for (Index i = 0; i < 60; ++i) b.y[i] = sign * std::sin(2 * b.X(i, 0)) + 0.1 * random.normal();
    return b;
  };
  ContinualGPOptions options = small_options();
  options.refit_rows = 0;
  ContinualGP gp(options);
  double least = 1.0;
  for (std::uint64_t b = 0; b < 12; ++b) {
    const Batch next = batch(b, 1.0);
    least = std::min(least, gp.observe(next.X, next.y).past_weight);
  }
  EXPECT_EQ(least, 1.0);
  const Batch changed = batch(100, -1.0);
  EXPECT_LT(gp.observe(changed.X, changed.y).past_weight, 1.0);
  const Batch test = batch(101, -1.0);
  EXPECT_LT(rmse(test.y, gp.predict(test.X).mean), 0.3);
  // Control: a model that believes all of its past is in between.
  options.forget = Forgetting::never();
  ContinualGP faithful(options);
  for (std::uint64_t b = 0; b < 12; ++b) faithful.observe(batch(b, 1.0).X, batch(b, 1.0).y);
  faithful.observe(changed.X, changed.y);
  EXPECT_GT(rmse(test.y, faithful.predict(test.X).mean), 0.6);
}

// With little noise a θ of old and new rows together suits neither: lengthscales at their bound,
// and a past carried there has nothing left to forget. So it is judged at the θ it was learnt with,
// whether or not the reservoir is due at that batch.
TEST(OutOfTheBox, AChangeIsNoticedBeforeHyperparametersAreFittedToBothSides) {
  const auto batch = [](std::uint64_t seed, double sign) {
    Batch b = table(120, seed, 0.01);
    b.y *= sign;
    return b;
  };
  const Batch test = batch(1000, -1.0);
  for (std::uint64_t before = 4; before <= 8; ++before) {
    ContinualGP gp(small_options());
    for (std::uint64_t b = 0; b < before; ++b) learn(gp, batch(b, 1.0), 120);
    EXPECT_LT(learn(gp, batch(100, -1.0), 120).past_weight, 0.1) << before;
    EXPECT_LT(rmse(test.y, gp.predict(test.X).mean), 0.2) << before;
  }
}

// Wherever it stands: some of these rows stay in the reservoir, others do not. Control: the noise
// is found where it is real.
TEST(OutOfTheBox, AWildTargetIsNoNoise) {
  const Batch test = table(300, 60);
  const auto deviation_after = [&](Index row, double wild, double noise) {
    ContinualGP gp(small_options());
    learn(gp, table(480, 61), 120);
    for (std::uint64_t b = 0; b < 3; ++b) {
      Batch next = table(120, 62 + b, noise);
      if (b == 0 && wild != 0.0) next.y[row] = wild;
      learn(gp, next, 120);
    }
    EXPECT_LT(rmse(test.y, gp.predict(test.X).mean), noise > 0.1 ? 0.4 : 0.15) << row;
    return std::sqrt(gp.predict(test.X, Target::observation).variance.mean());
  };
  const double as_it_is = deviation_after(0, 0.0, 0.1);
  for (Index row = 0; row < 120; row += 10) {
    EXPECT_LT(deviation_after(row, 100.0, 0.1), 1.6 * as_it_is) << row;
  }
  EXPECT_GT(deviation_after(0, 0.0, 0.5), 2.5 * as_it_is);
}

// A missing value that somebody wrote as -999, past the rows that are learnt anew each time.
TEST(OutOfTheBox, OneWildRowDoesNotBendTheModel) {
  Random random(41);
  const auto rows = [&](Index N, Index D) {
    Batch b{random.uniform(N, D, -3.0, 3.0), Vector(N)};
    for (Index i = 0; i < N; ++i) {
      b.y[i] = std::sin(2.0 * b.X(i, 0)) + 0.5 * b.X(i, D - 1) + 0.1 * random.normal();
    }
    return b;
  };
  for (const Index D : {1, 2}) {
    for (const double wild : {-999.0, 1e5}) {
      ContinualGP gp(ContinualGPOptions::out_of_the_box());
      learn(gp, rows(1000, D), 500);
      Batch bad = rows(500, D);
      bad.y[400] = wild;
      const BatchReport r = gp.observe(bad.X, bad.y);
      EXPECT_EQ(r.outliers, 1);
      EXPECT_TRUE(std::ranges::any_of(r.warnings, [](const std::string& w) {
        return w == "1 of the rows is far off, by more than ten deviations, and counts for less";
      }));
      const Batch test = rows(500, D);
      EXPECT_LT(rmse(test.y, gp.predict(test.X).mean), 0.13) << D << ", " << wild;
      learn(gp, rows(1500, D), 500);  // with a refit to a sample that has the row
      EXPECT_LT(rmse(test.y, gp.predict(test.X).mean), 0.11) << D << ", " << wild;
    }
  }
}

// Rows of one place that agree with each other are no outliers, however few.
TEST(OutOfTheBox, ARarePlaceMayChange) {
  Random random(42);
  const auto rows = [&](double there) {
    Batch b{random.uniform(500, 1, -3.0, 3.0), Vector(500)};
    for (Index i = 0; i < 500; ++i) {
      const bool far_away = i % 100 == 50;
      if (far_away) b.X(i, 0) = 10.0;
      b.y[i] = (far_away ? there : std::sin(b.X(i, 0))) + 0.1 * random.normal();
    }
    return b;
  };
  ContinualGP gp(ContinualGPOptions::out_of_the_box());
  for (int b = 0; b < 3; ++b) learn(gp, rows(0.0), 500);
  for (int b = 0; b < 2; ++b) learn(gp, rows(4.0), 500);
  EXPECT_NEAR(gp.predict(Matrix::Constant(1, 1, 10.0)).mean[0], 4.0, 0.2);
}

// In a stream sorted by what the noise grows with, σ² of the rows up to the last regular refit is
// too small for those after it. Intervals that fail bring the next one.
TEST(OutOfTheBox, NoiseThatGrowsAlongASortedStreamIsFollowed) {
  Random random(70);
  const auto growing = [&](Index N) {
    Batch b{random.uniform(N, 2, 0.0, 2.0), Vector(N)};
    for (Index i = 0; i < N; ++i) {
      const double noise = 0.02 * std::exp(2.0 * b.X(i, 0));
      b.y[i] = std::sin(2.0 * b.X(i, 1)) + noise * random.normal();
    }
    return b;
  };
  const Batch rows = growing(120 * 40);
  const Batch test = growing(2000);
  ContinualGP gp(small_options());
  learn(gp, sorted_by(rows.X.col(0), rows), 120);
  EXPECT_GT(coverage(test.y, gp.predict(test.X, Target::observation), 0.95), 0.9);
  EXPECT_LT(rmse(test.y, gp.predict(test.X).mean), 0.5);
}

// A sample takes large targets that scatter widely for structure. Beside a model of all rows they
// are noise, and no reason to learn the sample again.
TEST(OutOfTheBox, SkewedTargetsAreNotTakenForChanges) {
  const auto skewed = [](Index N, std::uint64_t seed) {
    Random random(seed);
    Batch b{random.uniform(N, 3, -2.0, 2.0), Vector(N)};
    for (Index i = 0; i < N; ++i) {
      b.y[i] = std::exp(std::sin(b.X(i, 0)) + b.X(i, 1) + 0.15 * random.normal());
    }
    return b;
  };
  ContinualGPOptions options = ContinualGPOptions::out_of_the_box();
  options.reservoir = 300;
  double density = 0.0;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    ContinualGP gp(options);
    const Batch rows = skewed(6000, seed);
    for (Index first = 0; first < 6000; first += 300) {
      const BatchReport r = gp.observe(rows.X.middleRows(first, 300), rows.y.segment(first, 300));
      EXPECT_FALSE(r.relearnt) << seed << ", " << first;
      EXPECT_EQ(r.past_weight, 1.0) << seed << ", " << first;
    }
    const Batch test = skewed(2000, 100 + seed);
    const Prediction p = gp.predict(test.X, Target::observation);
    EXPECT_GT(coverage(test.y, p, 0.95), 0.90) << seed;
    density -= nlpd(test.y, p) / 3.0;
  }
  EXPECT_GT(density, -1.05);
}

// A level that changes while all rows are kept: there is no sample to learn again, and what the
// model does not know is not noise.
TEST(OutOfTheBox, AYoungModelFollowsALevelThatChanges) {
  const auto batch = [](Index N, std::uint64_t seed, double level) {
    Random random(seed);
    Batch b{random.uniform(N, 1, -3.0, 3.0), Vector(N)};
    for (Index i = 0; i < N; ++i) {
      b.y[i] = level + std::sin(2.0 * b.X(i, 0)) + 0.1 * random.normal();
    }
    return b;
  };
  ContinualGP gp(ContinualGPOptions::out_of_the_box());
  const Batch before = batch(300, 1, 0.0);
  const Batch after = batch(100, 2, 5.0);
  gp.observe(before.X, before.y);
  gp.observe(after.X.topRows(50), after.y.head(50));
  gp.observe(after.X.bottomRows(50), after.y.tail(50));
  const Batch test = batch(200, 3, 5.0);
  EXPECT_LT(rmse(test.y, gp.predict(test.X).mean), 0.3);
}

// Rows in groups, one group after the other, whose levels no input tells: at any place the next
// groups contradict those before. That is noise, not a change, however well the rows of one group
// tell each other.
TEST(OutOfTheBox, GroupsOfRowsAreNoReasonToForget) {
  constexpr Index kRows = 15;  // of a group
  int forgot = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Random random(seed);
    Batch all{random.normal(40 * kRows, 2), 0.03 * random.normal(40 * kRows)};
    for (Index first = 0; first < all.X.rows(); first += kRows) {
      const double place = random.uniform(1, 1, -1.0, 1.0)(0, 0);
      auto X = all.X.middleRows(first, kRows);
      X.col(0) = place + 0.05 * X.col(0).array();
      all.y.segment(first, kRows).array() += random.normal();
    }
    ContinualGP gp(ContinualGPOptions::out_of_the_box());
    for (Index first = 0; first < all.X.rows(); first += 200) {
      if (gp.observe(all.X.middleRows(first, 200), all.y.segment(first, 200)).past_weight < 1.0) {
        ++forgot;
      }
    }
  }
  // A batch has thirteen groups, which may differ from those before by chance.
  EXPECT_LE(forgot, 1);
}

TEST(OutOfTheBox, ANoiseThatIsFixedStays) {
  ContinualGPOptions options = small_options();
  options.find_kernel = false;
  options.start.kernel = SquaredExponential{};
  options.start.noise_variance = PositiveNumber(0.01).fixed();
  ContinualGP gp(options);
  learn(gp, table(600, 7, 0.5), 120);
  EXPECT_EQ(gp.noise_variance(), 0.01);
  // Control: what is free is raised.
  options.start.noise_variance.is_fixed = false;
  ContinualGP free(options);
  learn(free, table(600, 7, 0.5), 120);
  EXPECT_GT(free.noise_variance(), 0.05);
}

// Sorted by an input, and nothing to see in the first third. While every row is kept the order
// cannot matter; control: without a reservoir it does.
TEST(OutOfTheBox, AYoungModelDoesNotDependOnTheOrderOfItsRows) {
  const auto late = [](Index N, std::uint64_t seed, bool sorted) {
    Random random(seed);
    Vector x = random.uniform(N, 1, -1.0, 2.0).col(0);
    if (sorted) std::sort(x.begin(), x.end());
    Batch b{x, Vector(N)};
    for (Index i = 0; i < N; ++i) {
      b.y[i] = (x[i] > 0.0 ? std::sin(6.0 * x[i]) : 0.0) + 0.1 * random.normal();
    }
    return b;
  };
  const Batch test = late(300, 21, false);
  const auto error = [&](bool sorted, Index reservoir) {
    ContinualGPOptions options = ContinualGPOptions::out_of_the_box();
    options.refit_rows = 100;
    options.reservoir = reservoir;
    ContinualGP gp(options);
    learn(gp, late(300, 20, sorted), 100);
    return rmse(test.y, gp.predict(test.X).mean);
  };
  const double shuffled = error(false, 1000);
  EXPECT_LT(error(true, 1000), 1.1 * shuffled);
  EXPECT_GT(error(true, 0), 1.5 * shuffled);
}

// A place that was not seen before is no contradiction, however little the model foresaw of it.
TEST(OutOfTheBox, ASortedTableIsNotForgotten) {
  const Batch unsorted = table(1200, 22);
  const Batch rows = sorted_by(unsorted.X.col(0), unsorted);
  ContinualGPOptions options = small_options();
  options.refit_rows = 100;
  ContinualGP gp(options);
  for (Index first = 0; first < 1200; first += 100) {
    EXPECT_EQ(gp.observe(rows.X.middleRows(first, 100), rows.y.segment(first, 100)).past_weight,
              1.0)
        << first;
  }
  const Batch test = table(300, 23);
  EXPECT_LT(rmse(test.y, gp.predict(test.X).mean), 0.2);
}

// Every batch of such a table has a level of its own. A model that takes each for a change forgets
// all levels but the last. A count has long runs of equal targets.
TEST(OutOfTheBox, ATableSortedByItsTargetIsNotForgotten) {
  for (const bool counts : {false, true}) {
    const auto draw = [&](Index N, std::uint64_t seed) {
      Batch b = table(N, seed);
      if (counts) b.y = (2.0 * b.y).array().round();
      return b;
    };
    const Batch unsorted = draw(2400, 22);
    const Batch rows = sorted_by(unsorted.y, unsorted);
    ContinualGP gp(small_options());
    std::string said;
    for (Index first = 0; first < 2400; first += 100) {
      const BatchReport r = gp.observe(rows.X.middleRows(first, 100), rows.y.segment(first, 100));
      EXPECT_EQ(r.past_weight, 1.0) << first;
      for (const std::string& w : r.warnings) said += w + "\n";
    }
    EXPECT_NE(said.find("its targets come sorted; shuffle the rows"), std::string::npos) << said;
    const Batch test = draw(400, 23);
    const Prediction p = gp.predict(test.X, Target::observation);
    EXPECT_LT(rmse(test.y, p.mean), counts ? 0.6 : 0.3);  // the deviations are 1.9 and 0.9
    EXPECT_NEAR(coverage(test.y, p, 0.95), 0.95, 0.05);
  }
}

// Without noise and rough: 100 points cannot hold what 1500 rows say, and must not pretend to.
TEST(OutOfTheBox, AFullModelIsNotTooSure) {
  const auto rough = [](Index N, std::uint64_t seed) {
    Random random(seed);
    Batch b{random.uniform(N, 2, -3.0, 3.0), Vector(N)};
    for (Index i = 0; i < N; ++i) {
      b.y[i] = std::abs(std::sin(3.0 * b.X(i, 0))) + std::abs(std::cos(2.0 * b.X(i, 1)));
    }
    return b;
  };
  ContinualGPOptions options = ContinualGPOptions::out_of_the_box();
  options.selection = Vips{.floor = 1e-3, .choose = Vips::Choose::gain, .max_inducing = 60};
  options.reservoir = 300;
  ContinualGP gp(options);
  learn(gp, rough(1500, 24), 300);
  const Batch test = rough(400, 25);
  const Prediction p = gp.predict(test.X, Target::observation);
  EXPECT_LE(gp.size(), 60);
  EXPECT_GT(coverage(test.y, p, 0.95), 0.85);
  EXPECT_LT(rmse(test.y, p.mean), 0.3);  // the deviation is 0.43
}

double smooth(const Matrix& X, Index i) { return std::sin(2.0 * X(i, 0)) + 0.5 * X(i, 1); }

/// People by three inputs, which are the same every time one is asked, and what is each one's own.
struct People {
  Matrix X;
  Vector level;
};
People people(Index count, double deviation, std::uint64_t seed) {
  Random random(seed);
  return {random.uniform(count, 3, -2.0, 2.0), deviation * random.normal(count)};
}

/// N answers of people asked at random, with a noise of 0.3.
Batch answers(const People& people, Index N, std::uint64_t seed) {
  Random random(seed);
  Batch b{Matrix(N, 3), Vector(N)};
  for (Index i = 0; i < N; ++i) {
    const auto who =
        static_cast<Index>(random.uniform(0.0, static_cast<double>(people.level.size())));
    b.X.row(i) = people.X.row(who);
    b.y[i] = smooth(b.X, i) + people.level[who] + 0.3 * random.normal();
  }
  return b;
}

ContinualGPOptions options_of_a_panel() {
  ContinualGPOptions options = small_options();
  options.refit_rows = 300;
  options.reservoir = 900;
  return options;
}

double place_share_of(const ContinualGP& gp, const BatchReport& last) {
  return place_share({gp.kernel(), PositiveNumber(last.noise_variance)});
}

TEST(OutOfTheBox, PeopleAskedSeveralTimesHaveValuesOfTheirOwn) {
  const People asked = people(250, 0.5, 42);
  ContinualGP gp(options_of_a_panel());
  const BatchReport last = learn(gp, answers(asked, 1800, 43), 300);
  EXPECT_NEAR(place_share_of(gp, last), 0.25 / (0.25 + 0.09), 0.1) << gp.kernel().to_string();
  const Batch again = answers(asked, 1000, 44);
  const Prediction p = gp.predict(again.X, Target::observation);
  EXPECT_LT(rmse(again.y, p.mean), 0.36);  // 0.3 at best, and 0.58 without these values
  EXPECT_NEAR(coverage(again.y, p, 0.95), 0.95, 0.03);
  // Of people who were never asked it knows the function alone.
  const Batch others = answers(people(500, 0.5, 45), 1000, 46);
  const Prediction q = gp.predict(others.X, Target::observation);
  EXPECT_LT(rmse(others.y, q.mean), 0.65);
  EXPECT_NEAR(coverage(others.y, q, 0.95), 0.95, 0.03);
}

TEST(OutOfTheBox, PeopleWhoAreAllAlikeHaveNone) {
  ContinualGP gp(options_of_a_panel());
  const BatchReport last = learn(gp, answers(people(250, 0.0, 47), 1800, 48), 300);
  EXPECT_EQ(place_share_of(gp, last), 0.0) << gp.kernel().to_string();
  EXPECT_LT(gp.size(), 60);
}

// What the rows of one day have in common is not of the hours at which they came.
TEST(OutOfTheBox, WhatADayHasInCommonIsNotOfThePlaces) {
  Random random(51);
  Batch rows{Matrix(1800, 1), Vector(1800)};
  for (Index i = 0; i < 1800; ++i) {
    const double hour = static_cast<double>((i * 7) % 24);
    rows.X(i, 0) = hour;
    rows.y[i] = std::sin(hour / 4.0) + 0.3 * random.normal();
  }
  for (Index day = 0; day < 6; ++day)
    rows.y.segment(300 * day, 300).array() += 0.5 * random.normal();
  ContinualGPOptions options = options_of_a_panel();
  options.forget = Forgetting::never();
  ContinualGP gp(options);
  EXPECT_EQ(place_share_of(gp, learn(gp, rows, 300)), 0.0) << gp.kernel().to_string();
}

// With next to no noise a bump at each place is as good for those who were asked, and tells nothing
// of others.
TEST(OutOfTheBox, PeopleWhoAnswerTheSameEveryTimeAreNoBumps) {
  const People asked = people(250, 1.0, 52);
  Batch rows{Matrix(3000, 3), Vector(3000)};
  Random random(53);
  for (Index i = 0; i < 3000; ++i) {
    const auto who = static_cast<Index>(random.uniform(0.0, 250.0));
    rows.X.row(i) = asked.X.row(who);
    rows.y[i] = 2.0 * smooth(rows.X, i) + asked.level[who] + 0.01 * random.normal();
  }
  ContinualGP gp(ContinualGPOptions::out_of_the_box());
  const BatchReport last = learn(gp, rows, 500);
  EXPECT_GT(place_share_of(gp, last), 0.9) << gp.kernel().to_string();
  const Prediction p = gp.predict(asked.X, Target::observation);
  Vector known(250);
  for (Index i = 0; i < 250; ++i) known[i] = 2.0 * smooth(asked.X, i) + asked.level[i];
  EXPECT_LT(rmse(known, p.mean), 0.1);
  EXPECT_LT(p.variance.array().sqrt().mean(), 0.1);  // and the noise is small
  const People others = people(500, 1.0, 54);
  Vector unknown(500);
  for (Index i = 0; i < 500; ++i) unknown[i] = 2.0 * smooth(others.X, i) + others.level[i];
  const Prediction q = gp.predict(others.X, Target::observation);
  EXPECT_LT(rmse(unknown, q.mean), 1.2);  // 1 is what they have of their own
  EXPECT_NEAR(coverage(unknown, q, 0.95), 0.95, 0.04);
}

TEST(OutOfTheBox, ValuesOfPlacesGoOnFromBytes) {
  const Batch rows = answers(people(250, 0.5, 49), 1500, 50);
  ContinualGP whole(options_of_a_panel());
  EXPECT_GT(place_share_of(whole, learn(whole, rows, 300)), 0.0);
  ContinualGP first(options_of_a_panel());
  learn(first, {rows.X.topRows(1200), rows.y.head(1200)}, 300);
  ContinualGP second = from_bytes(to_bytes(first));
  learn(second, {rows.X.bottomRows(300), rows.y.tail(300)}, 300);
  EXPECT_EQ(to_bytes(second), to_bytes(whole));
}

// Between refits too, however small the batches are. With a cap that is a fifth of what the waves
// need, points that go are dear, and at times take their neighbours' values with them.
TEST(OutOfTheBox, AFullModelFollowsAStreamOfSmallBatches) {
  ContinualGPOptions options = small_options();
  options.selection = Vips{.delta = 0.005, .choose = Vips::Choose::gain, .max_inducing = 60};
  ContinualGP gp(options);
  Random random(71);
  std::vector<double> errors;
  for (Index first = 0; first < 6000; first += 10) {
    Batch b{Matrix(10, 1), Vector(10)};
    for (Index i = 0; i < 10; ++i) {
      const double t = 0.05 * static_cast<double>(first + i);
      b.X(i, 0) = t;
      b.y[i] = std::sin(t) + 0.2 * random.normal();
    }
    const BatchReport r = gp.observe(b.X, b.y);
    if (r.stop != SelectionStop::warm_up) {
      EXPECT_LE(gp.size(), 60);
    }
    if (first >= 3000) errors.push_back(rmse(b.y, gp.predict(b.X).mean));
  }
  std::ranges::sort(errors);
  EXPECT_LT(errors[errors.size() / 2], 0.25);
  EXPECT_LT(errors[errors.size() * 9 / 10], 0.5);  // without new points 0.64 and 1.0
}

TEST(OutOfTheBox, PruningStaysWithinItsShare) {
  ContinualGPOptions options = small_options();
  options.prune = 0.5;
  ContinualGP pruned(options);
  options.prune = 0.0;
  ContinualGP whole(options);
  const Batch rows = table(600, 14);
  for (Index first = 0; first < 600; first += 120) {
    const auto X = rows.X.middleRows(first, 120);
    const auto y = rows.y.segment(first, 120);
    const BatchReport r = pruned.observe(X, y);
    EXPECT_EQ(whole.observe(X, y).pruned_nats, 0.0);
    if (r.threshold) {
      EXPECT_LE(r.pruned_nats, 0.5 * *r.threshold);
    }
  }
  EXPECT_LT(pruned.size(), whole.size());
}

// A target that nothing can be learnt from, put where rows wait.
TEST(OutOfTheBox, ARefitThatFailsDoesNotBlockTheStream) {
  ContinualGPOptions options = ContinualGPOptions::out_of_the_box();
  options.warm_up = 20;
  options.refit_rows = 40;
  options.reservoir = 50;
  ContinualGP gp(options);
  Random random(3);
  const auto learn = [&](ContinualGP& model, Index rows) {
    const Matrix X = random.uniform(rows, 2, -2.0, 2.0);
    return model.observe(X, X.col(0).array().sin().matrix());
  };
  learn(gp, 50);
  learn(gp, 10);
  ContinualGP::Checkpoint altered = *gp.checkpoint();
  ASSERT_EQ(altered.pending.X.rows(), 10);
  altered.pending.y[0] = 1e200;
  ContinualGP model(altered);
  const BatchReport report = learn(model, 35);
  EXPECT_EQ(report.warnings.back().find("no refit after this batch: observe: "), 0U);
  EXPECT_EQ(model.rows_seen(), 95);
  EXPECT_EQ(model.checkpoint()->pending.X.rows(), 0);
  EXPECT_TRUE(learn(gp, 35).refitted);  // control: as it was, it is refitted
}

// At every moment: warming up, young, with rows pending, after a refit.
TEST(OutOfTheBox, GoesOnFromBytesAsIfItHadNeverStopped) {
  const Batch rows = table(330, 15);
  const Matrix X = table(20, 16).X;
  ContinualGP stays(small_options());
  ContinualGP comes_and_goes(small_options());
  for (Index first = 0; first < 330; first += 30) {
    const auto X_new = rows.X.middleRows(first, 30);
    const auto y_new = rows.y.segment(first, 30);
    stays.observe(X_new, y_new);
    comes_and_goes.observe(X_new, y_new);
    comes_and_goes = from_bytes(to_bytes(comes_and_goes));
    ASSERT_EQ(stays.predict(X).mean, comes_and_goes.predict(X).mean) << first;
    ASSERT_EQ(stays.rows_seen(), comes_and_goes.rows_seen());
    ASSERT_EQ(stays.batches(), comes_and_goes.batches());
  }
}

TEST(OutOfTheBox, WarnsOfWhatAUserShouldKnow) {
  Batch rows = table(120, 17);
  rows.X.col(3).setConstant(7.0);
  ContinualGP gp(small_options());
  const BatchReport r = gp.observe(rows.X, rows.y);
  ASSERT_FALSE(r.warnings.empty());
  EXPECT_EQ(r.warnings[0], "input 3 is constant so far and tells nothing");
  // Control: nothing is wrong with the table as it was.
  ContinualGP sound(small_options());
  const Batch good = table(120, 17);
  for (const std::string& w : sound.observe(good.X, good.y).warnings) {
    EXPECT_EQ(w.find("constant"), std::string::npos) << w;
  }
}

TEST(OutOfTheBox, WarnsOfWeightsThatTheNoiseIsNotFittedTo) {
  const Batch rows = table(120, 17);
  const auto warned = [&](double weight, Index reservoir) {
    ContinualGPOptions options = small_options();
    options.reservoir = reservoir;
    ContinualGP gp(options);
    const BatchReport r = gp.observe(rows.X, rows.y, {.weights = Vector::Constant(120, weight)});
    return std::ranges::any_of(r.warnings, [](const std::string& w) {
      return w.find("the weights are typically") != std::string::npos;
    });
  };
  EXPECT_TRUE(warned(100.0, 120));
  EXPECT_TRUE(warned(0.01, 120));
  EXPECT_FALSE(warned(1.5, 120));
  EXPECT_FALSE(warned(100.0, 0));
}

TEST(OutOfTheBox, AYoungModelCanBeCompressedAndGoesOn) {
  ContinualGP gp(ContinualGPOptions::out_of_the_box());
  learn(gp, table(300, 50), 100);
  ASSERT_GT(gp.size(), 12);
  EXPECT_EQ(gp.compress_to(12).inducing, 12);
  EXPECT_EQ(gp.checkpoint()->reservoir.size(), 300);
  gp = from_bytes(to_bytes(gp));
  learn(gp, table(600, 51), 100);
  const Batch test = table(200, 52);
  EXPECT_LT(rmse(test.y, gp.predict(test.X).mean), 0.15);
}

TEST(OutOfTheBox, WarnsWhenTheScalingNoLongerFits) {
  const auto last_warnings = [](double factor) {
    ContinualGP gp(small_options());
    learn(gp, table(240, 26), 120);
    std::string all;
    for (std::uint64_t i = 0; i < 6; ++i) {
      Batch later = table(120, 27 + i);
      later.X.col(1) *= factor;
      for (const std::string& w : gp.observe(later.X, later.y).warnings) all += w + "\n";
    }
    return all;
  };
  const std::string expected = "the scaling of input 1 no longer fits";
  EXPECT_NE(last_warnings(100.0).find(expected), std::string::npos);
  EXPECT_EQ(last_warnings(1.0).find(expected), std::string::npos);
}

TEST(OutOfTheBox, AFitEndsAtItsLimitOfSeconds) {
  const Batch rows = table(300, 40);
  ContinualGP hurried(small_options());
  const BatchReport r = hurried.observe(rows.X, rows.y, {.max_seconds = 1e-6});
  ASSERT_FALSE(r.warnings.empty());
  EXPECT_EQ(r.warnings.back(), "the fit ended at its limit of 1e-06 seconds");
  EXPECT_EQ(hurried.rows_seen(), 300);
  ContinualGP free(small_options());
  for (const std::string& w : free.observe(rows.X, rows.y).warnings) {
    EXPECT_EQ(w.find("limit of"), std::string::npos) << w;
  }
  EXPECT_THROW(free.observe(rows.X, rows.y, {.max_seconds = 0.0}), std::invalid_argument);
}

// --- The reservoir -------------------------------------------------------------------------------

TEST(Reservoir, DoesNotDependOnBatches) {
  const Batch rows = table(500, 18);
  Reservoir whole;
  whole.offer(rows.X, rows.y, 50, 3);
  Reservoir single;
  for (Index i = 0; i < 500; ++i) single.offer(rows.X.row(i), rows.y.segment(i, 1), 50, 3);
  EXPECT_EQ(whole.X, single.X);
  EXPECT_EQ(whole.y, single.y);
  EXPECT_EQ(whole.size(), 50);
  EXPECT_EQ(whole.seen, 500);
  Reservoir other;
  other.offer(rows.X, rows.y, 50, 4);
  EXPECT_NE(other.y, whole.y);
}

TEST(Reservoir, EveryRowIsEquallyLikely) {
  constexpr Index kRows = 100;
  constexpr int kTimes = 4000;
  const Matrix X = Vector::LinSpaced(kRows, 0, kRows - 1);
  const Vector y = Vector::LinSpaced(kRows, 0, kRows - 1);
  Vector hits = Vector::Zero(kRows);
  for (int t = 0; t < kTimes; ++t) {
    Reservoir r;
    r.offer(X, y, 20, static_cast<std::uint64_t>(t) * 1000003U);
    std::set<double> distinct(r.y.begin(), r.y.end());
    ASSERT_EQ(distinct.size(), 20U);
    for (const double row : r.y) hits[static_cast<Index>(row)] += 1.0;
  }
  // Binomial with p = 0.2: deviation 25 around 800; six of them among a hundred rows.
  EXPECT_GT(hits.minCoeff(), 800 - 150);
  EXPECT_LT(hits.maxCoeff(), 800 + 150);
}

}  // namespace
}  // namespace ample
