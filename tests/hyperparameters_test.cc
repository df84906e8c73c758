#include "ample/hyperparameters.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace ample {
namespace {

Hyperparameters composite() {
  return {.kernel = Constant{Positive(3).fixed()} +
                    Matern52{.variance = Positive(2).within(1e-6, 2000), .lengthscale = {0.5, 7}} *
                        Periodic{.variance = Positive(1).fixed(), .lengthscale = 0.3, .period = 12},
          .noise_variance = Positive(0.2).within(1e-6, 10)};
}

std::vector<double> kernel_values(const Hyperparameters& h) {
  std::vector<double> out;
  for (const Parameter& p : h.kernel.parameters()) out.push_back(p.value);
  return out;
}

TEST(Hyperparameters, PackHoldsLogsOfTheFreeOnesNoiseLast) {
  const Hyperparameters h = composite();
  const Vector expected = Vector{{2.0, 0.5, 7.0, 0.3, 12.0, 0.2}}.array().log();
  EXPECT_EQ(h.size(), 6);
  EXPECT_LT((h.pack() - expected).lpNorm<Eigen::Infinity>(), 1e-15);
  EXPECT_DOUBLE_EQ(h.lower()[0], std::log(1e-6));
  EXPECT_DOUBLE_EQ(h.upper()[0], std::log(2000.0));
  EXPECT_DOUBLE_EQ(h.upper()[5], std::log(10.0));
}

TEST(Hyperparameters, ParametersAreTheKernelsThenTheNoise) {
  const Hyperparameters h = composite();
  const std::vector<Parameter> all = h.parameters();
  const std::vector<Parameter> kernel = h.kernel.parameters();
  ASSERT_EQ(all.size(), kernel.size() + 1);
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    EXPECT_EQ(all[i].name, kernel[i].name);
    EXPECT_EQ(all[i].value, kernel[i].value);
    EXPECT_NE(all[i].kind, Parameter::Kind::noise);
  }
  EXPECT_EQ(all.back().name, "noise_variance");
  EXPECT_EQ(all.back().kind, Parameter::Kind::noise);
  EXPECT_EQ(all.back().value, 0.2);
  EXPECT_EQ(all.back().lower, 1e-6);
  EXPECT_EQ(all.back().upper, 10.0);
  EXPECT_FALSE(all.back().fixed);
}

TEST(Hyperparameters, UnpackInvertsPack) {
  const Hyperparameters h = composite();
  Vector x = h.pack();
  x.array() += 0.7;
  const Hyperparameters moved = h.unpack(x);
  EXPECT_LT((moved.pack() - x).lpNorm<Eigen::Infinity>(), 1e-14);
  const std::vector<double> before = kernel_values(h);
  const std::vector<double> after = kernel_values(moved);
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool fixed = h.kernel.parameters()[i].fixed;
    EXPECT_NEAR(after[i], before[i] * (fixed ? 1.0 : std::exp(0.7)), 1e-12);
    EXPECT_EQ(moved.kernel.parameters()[i].fixed, fixed);
  }
  EXPECT_NEAR(moved.noise(), 0.2 * std::exp(0.7), 1e-14);
  EXPECT_EQ(moved.noise_variance.upper, 10.0);
}

TEST(Hyperparameters, NoRoundingLeavesTheBox) {
  // exp(log(bound)) misses many bounds by a rounding; a kernel refuses values outside.
  for (int i = 1; i < 200; ++i) {
    const double a = 0.37 * i;
    const Hyperparameters h{
        .kernel = SquaredExponential{.variance = Positive(a).within(a, 2 * a),
                                     .lengthscale = Positive(a).within(a / 3, a)},
        .noise_variance = Positive(a).within(a, a)};
    for (const Vector& x : {h.lower(), h.upper()}) {
      const Hyperparameters at = h.unpack(x);
      EXPECT_EQ(at.noise(), a);
      for (const Parameter& p : at.kernel.parameters()) {
        EXPECT_GE(p.value, p.lower);
        EXPECT_LE(p.value, p.upper);
      }
    }
  }
}

TEST(Hyperparameters, AFixedNoiseStaysAndIsNotInX) {
  Hyperparameters h = composite();
  h.noise_variance = h.noise_variance.fixed();
  EXPECT_EQ(h.size(), 5);
  EXPECT_EQ(h.unpack(h.pack().array() + 1.0).noise(), 0.2);
}

TEST(Hyperparameters, NothingFreeIsAnEmptyVector) {
  const Hyperparameters h{.kernel = Constant{Positive(2).fixed()},
                          .noise_variance = Positive(0.1).fixed()};
  EXPECT_EQ(h.size(), 0);
  EXPECT_EQ(h.pack().size(), 0);
  EXPECT_EQ(h.unpack(Vector(0)).noise(), 0.1);
  Vector out(3);
  h.chain(Vector::Ones(1), 1.0, out);
  EXPECT_EQ(out.size(), 0);
}

TEST(Hyperparameters, ChainIsTheDerivativeWithRespectToX) {
  // F = Σ_i (i+1) θ_i² + 5 σ⁴, fixed parameters included.
  const Hyperparameters h = composite();
  const auto F = [](const Hyperparameters& at) {
    double sum = 5.0 * at.noise() * at.noise();
    double weight = 1.0;
    for (const double v : kernel_values(at)) sum += weight++ * v * v;
    return sum;
  };
  Vector theta_bar(h.kernel.num_parameters());
  for (Index i = 0; i < theta_bar.size(); ++i) {
    theta_bar[i] = 2.0 * static_cast<double>(i + 1) * kernel_values(h)[static_cast<std::size_t>(i)];
  }
  Vector gradient;
  h.chain(theta_bar, 10.0 * h.noise(), gradient);
  ASSERT_EQ(gradient.size(), h.size());
  const double step = std::cbrt(std::numeric_limits<double>::epsilon());
  for (Index i = 0; i < h.size(); ++i) {
    Vector up = h.pack();
    Vector down = up;
    up[i] += step;
    down[i] -= step;
    const double numeric = (F(h.unpack(up)) - F(h.unpack(down))) / (up[i] - down[i]);
    EXPECT_NEAR(gradient[i], numeric, 1e-6 * std::max(1.0, std::abs(numeric)));
  }
}

TEST(Hyperparameters, TheDefaultNoiseIsThePapers) {
  const Hyperparameters h{.kernel = SquaredExponential{}};
  EXPECT_EQ(h.noise(), 0.1);
  EXPECT_EQ(h.noise_variance.lower, 1e-6);
  h.check("test");
}

TEST(Hyperparameters, CheckRefusesWhatIsNoVariance) {
  const auto with = [](const Positive& noise) {
    return Hyperparameters{.kernel = SquaredExponential{}, .noise_variance = noise};
  };
  EXPECT_THROW(with({0.1, 0.2}), std::invalid_argument);
  EXPECT_THROW(with(Positive(std::vector<double>{})), std::invalid_argument);
  EXPECT_THROW(with(Positive(0.0)).check("test"), std::invalid_argument);
  EXPECT_THROW(with(Positive(std::nan(""))).check("test"), std::invalid_argument);
  EXPECT_THROW(with(Positive(1).within(0.0, 2.0)).check("test"), std::invalid_argument);
  EXPECT_THROW(with(Positive(1).within(2.0, 0.5)).check("test"), std::invalid_argument);
  EXPECT_THROW(with(Positive(1).within(2.0, 3.0)).check("test"), std::invalid_argument);
}

TEST(Hyperparameters, WrongSizesAreRefused) {
  const Hyperparameters h = composite();
  EXPECT_THROW((void)h.unpack(Vector::Zero(5)), std::invalid_argument);
  Vector out;
  EXPECT_THROW(h.chain(Vector::Zero(1), 0.0, out), std::invalid_argument);
}

}  // namespace
}  // namespace ample
