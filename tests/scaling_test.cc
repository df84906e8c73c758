#include "ample/scaling.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "support/check_gradient.h"
#include "support/random.h"
#include "support/streams.h"

namespace ample {
namespace {

using testing::message_of;
using testing::Random;
using testing::relative_error;

Batch offset_data() {
  Random random(1);
  Batch data{random.normal(50, 3), random.normal(50)};
  data.X.col(1) = (data.X.col(1) * 1e-3).array() + 7.0;
  data.X.col(2) = (data.X.col(2) * 1e6).array() - 3e7;
  data.y = (data.y * 40.0).array() + 1000.0;
  return data;
}

TEST(Scaling, ALargeOffsetHidesNoSpread) {
  // Time stamps, half a millisecond apart.
  Matrix X(101, 2);
  const Vector u = Vector::LinSpaced(101, -1.0, 1.0);
  X.col(0) = (1.7e9 + 5e-4 * u.array()).matrix();
  X.col(1).setConstant(1.7e9);
  const Scaling s = Scaling::standardize(X, u);
  const double deviation = std::sqrt(u.squaredNorm() / 100.0);
  EXPECT_NEAR(s.input_scale[0], 5e-4 * deviation, 1e-7);
  EXPECT_EQ(s.input_scale[1], 1.0);  // control: a constant column keeps its scale
}

TEST(Scaling, LargeNumbersDoNotOverflow) {
  const Vector u = Vector::LinSpaced(11, -1.0, 1.0);
  const Matrix X = 1e160 * u;
  const Scaling s = Scaling::standardize(X, 1e200 * u);
  const double deviation = std::sqrt(u.squaredNorm() / 10.0);
  EXPECT_NEAR(s.input_scale[0] / 1e160, deviation, 1e-12);
  EXPECT_NEAR(s.target_scale / 1e200, deviation, 1e-12);
  EXPECT_NEAR(s.inputs(X)(10, 0), 1.0 / deviation, 1e-9);
}

TEST(Scaling, StandardizedDataHaveMeanZeroAndDeviationOne) {
  const Batch data = offset_data();
  const Scaling s = Scaling::standardize(data.X, data.y);
  const Matrix X = s.inputs(data.X);
  const Vector y = s.targets(data.y);
  for (Index d = 0; d < 3; ++d) {
    EXPECT_NEAR(X.col(d).mean(), 0.0, 1e-9);
    EXPECT_NEAR(std::sqrt((X.col(d).array() - X.col(d).mean()).square().sum() / 49.0), 1.0, 1e-9);
  }
  EXPECT_NEAR(y.mean(), 0.0, 1e-12);
  EXPECT_NEAR(std::sqrt(y.squaredNorm() / 49.0), 1.0, 1e-12);
  EXPECT_GT(std::abs(data.X.col(1).mean()), 1.0);  // control
}

TEST(Scaling, RestoreUndoesWhatTargetsDoes) {
  const Batch data = offset_data();
  const Scaling s = Scaling::standardize(data.X, data.y);
  const Prediction p = s.restore({s.targets(data.y), Vector::Constant(50, 0.25)});
  EXPECT_LE(relative_error(p.mean, data.y), 1e-14);
  const double deviation = 0.5 * s.target_scale;
  EXPECT_LE(relative_error(p.variance, Vector::Constant(50, deviation * deviation)), 1e-14);
}

TEST(Scaling, IdentityChangesNothing) {
  const Batch data = offset_data();
  const Scaling s = Scaling::identity(3);
  s.check(3);
  EXPECT_EQ(s.inputs(data.X), data.X);
  EXPECT_EQ(s.targets(data.y), data.y);
}

TEST(Scaling, AColumnThatDoesNotVaryKeepsItsScale) {
  Batch data = offset_data();
  data.X.col(0).setConstant(0.1);  // not a binary fraction: its mean is off by a rounding
  data.X.col(1).setConstant(1.7e9);
  data.y.setConstant(3.3);
  const Scaling s = Scaling::standardize(data.X, data.y);
  s.check(3);
  EXPECT_EQ(s.input_scale[0], 1.0);
  EXPECT_EQ(s.input_scale[1], 1.0);
  EXPECT_EQ(s.target_scale, 1.0);
  EXPECT_GT(s.input_scale[2], 1e5);  // control
}

TEST(Scaling, OneRowOrNoneHasNoSpread) {
  const Batch data = offset_data();
  const Scaling one = Scaling::standardize(data.X.topRows(1), data.y.head(1));
  EXPECT_EQ(one.input_scale, Vector::Ones(3));
  EXPECT_EQ(one.target_scale, 1.0);
  EXPECT_EQ(one.inputs(data.X.topRows(1)), Matrix::Zero(1, 3));
  const Scaling none = Scaling::standardize(Matrix(0, 3), Vector(0));
  EXPECT_EQ(none.input_scale, Vector::Ones(3));
  EXPECT_EQ(none.input_mean, Vector::Zero(3));
}

TEST(Scaling, SaysWhatIsWrongWithIt) {
  const auto with = [](auto change) {
    Scaling s = Scaling::identity(2);
    change(s);
    return message_of([&] { s.check(2); });
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(with([](Scaling&) {}), "");
  EXPECT_EQ(with([](Scaling& s) { s.input_mean = Vector::Zero(3); }),
            "Scaling: input_mean has 3 rows, but must have 2 (the input dimension)");
  EXPECT_EQ(with([](Scaling& s) { s.input_scale = Vector::Ones(1); }),
            "Scaling: input_scale has 1 row, but must have 2 (the input dimension)");
  EXPECT_EQ(with([](Scaling& s) { s.input_scale[1] = 0.0; }),
            "Scaling: an input_scale is 0, but must be positive and finite");
  EXPECT_EQ(with([](Scaling& s) { s.target_scale = -1.0; }),
            "Scaling: target_scale is -1, but must be positive and finite");
  EXPECT_EQ(
      with([](Scaling& s) { s.target_scale = 1e155; }),
      "Scaling: target_scale is 1e+155, but must be from 1e-140 to 1e+140: variances have its "
      "square");
  EXPECT_EQ(with([](Scaling& s) { s.target_mean = kInfinity; }),
            "Scaling: target_mean is inf, but must be finite");
  EXPECT_NE(with([](Scaling& s) { s.input_mean[0] = kInfinity; }), "");
}

}  // namespace
}  // namespace ample
