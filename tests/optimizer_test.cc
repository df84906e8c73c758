#include "ample/optimizer.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <ostream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <gtest/gtest.h>

namespace ample {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Vector constant(Index n, double value) { return Vector::Constant(n, value); }

Vector random_vector(Index n, std::mt19937& rng) {
  std::normal_distribution<double> normal;
  return Vector::NullaryExpr(n, [&] { return normal(rng); });
}

// ½ (x − centre)ᵀ H (x − centre) + offset
struct Quadratic {
  Matrix H;
  Vector centre;
  double offset = 0;

  bool operator()(const Vector& x, double& value, Vector& gradient) const {
    gradient = H * (x - centre);
    value = 0.5 * (x - centre).dot(gradient) + offset;
    return true;
  }
};

// Eigenvalues spaced by a constant factor from 1 to `condition`, in a random basis.
Quadratic random_quadratic(Index n, double condition, std::mt19937& rng) {
  const Matrix G = Matrix::NullaryExpr(n, n, [&] { return random_vector(1, rng)[0]; });
  const Matrix Q = Eigen::HouseholderQR<Matrix>(G).householderQ();
  const Vector eigenvalues =
      n == 1 ? constant(1, condition) : Vector::LinSpaced(n, 0, std::log(condition)).array().exp();
  return {Q * eigenvalues.asDiagonal() * Q.transpose(), random_vector(n, rng)};
}

// The constrained minimum by projected coordinate descent: slow, and hard to get wrong.
Vector coordinate_descent(const Quadratic& f, const Vector& lower, const Vector& upper) {
  Vector x = f.centre.cwiseMax(lower).cwiseMin(upper);
  for (int sweep = 0; sweep < 100000; ++sweep) {
    const Vector before = x;
    for (Index i = 0; i < x.size(); ++i) {
      const double step = f.H.row(i).dot(x - f.centre) / f.H(i, i);
      x[i] = std::min(std::max(x[i] - step, lower[i]), upper[i]);
    }
    if ((x - before).lpNorm<Eigen::Infinity>() < 1e-15) {
      break;
    }
  }
  return x;
}

bool rosenbrock(const Vector& x, double& value, Vector& gradient) {
  value = 0;
  gradient.setZero();
  for (Index i = 0; i + 1 < x.size(); ++i) {
    const double a = x[i + 1] - x[i] * x[i];
    const double b = 1 - x[i];
    value += 100 * a * a + b * b;
    gradient[i] += -400 * a * x[i] - 2 * b;
    gradient[i + 1] += 200 * a;
  }
  return true;
}

Vector rosenbrock_start(Index n) {
  return Vector::NullaryExpr(n, [](Index i) { return i % 2 == 0 ? -1.2 : 1.0; });
}

MinimizeSummary minimize_unbounded(const Objective& f, const Vector& x0,
                                   const MinimizeOptions& options = {},
                                   Curvature* curvature = nullptr) {
  return minimize(f, x0, constant(x0.size(), -inf), constant(x0.size(), inf), options, curvature);
}

// By the gradient alone, so that the solution is as good as the test demands.
MinimizeOptions tight(double gradient_tolerance = 1e-8) {
  MinimizeOptions options;
  options.gradient_tolerance = gradient_tolerance;
  options.relative_value_tolerance = 0;
  options.max_evaluations = 10000;
  return options;
}

[[maybe_unused]] std::ostream& operator<<(std::ostream& out, Termination t) {
  return out << to_string(t);
}

void expect_sound(const MinimizeSummary& s, const Vector& lower, const Vector& upper) {
  EXPECT_TRUE(s.usable()) << s.message;
  EXPECT_TRUE(std::isfinite(s.value) && s.x.allFinite() && std::isfinite(s.gradient_norm));
  EXPECT_LE(s.value, s.initial_value);
  EXPECT_TRUE((s.x.array() >= lower.array()).all() && (s.x.array() <= upper.array()).all());
}

TEST(Minimize, FindsTheCentreOfAQuadratic) {
  std::mt19937 rng(1);
  for (const Index n : {1, 2, 5, 10, 30}) {
    for (const double condition : {1.0, 1e3, 1e6}) {
      const Quadratic f = random_quadratic(n, condition, rng);
      const MinimizeSummary s = minimize_unbounded(f, random_vector(n, rng), tight(1e-7));
      EXPECT_EQ(s.termination, Termination::gradient) << n << ' ' << condition << ' ' << s.message;
      // The least eigenvalue is 1, so the error is at most the norm of the gradient.
      EXPECT_LT((s.x - f.centre).norm(), 1e-6) << n << ' ' << condition;
    }
  }
}

TEST(Minimize, FindsTheMinimumOfAQuadraticInABox) {
  std::mt19937 rng(2);
  for (const Index n : {1, 2, 5, 10, 30}) {
    for (const double condition : {1.0, 1e3, 1e6}) {
      const Quadratic f = random_quadratic(n, condition, rng);
      const Vector lower = f.centre + 0.5 * random_vector(n, rng);
      const Vector upper = lower + 2 * random_vector(n, rng).cwiseAbs();
      const Vector expected = coordinate_descent(f, lower, upper);
      const MinimizeSummary s = minimize(f, random_vector(n, rng), lower, upper, tight(1e-7));
      expect_sound(s, lower, upper);
      double value = 0;
      Vector gradient(n);
      f(expected, value, gradient);
      EXPECT_NEAR(s.value, value, 1e-11 * std::max(1.0, value)) << n << ' ' << condition;
      // f rises by at least half the squared distance; f itself is only known to rounding.
      EXPECT_LT((s.x - expected).norm(), 1e-5 * std::sqrt(std::max(1.0, value)));
      EXPECT_LT(s.evaluations, 1000) << n << ' ' << condition << ' ' << s.message;
    }
  }
}

// Two variables coupled so strongly that a step cut off at the wrong one's bound leads astray.
TEST(Minimize, LeavesABoundThatIsNotActiveAtTheSolution) {
  const Quadratic f{(Matrix(2, 2) << 100, 99, 99, 100).finished(), Vector::Constant(2, 1)};
  const Vector lower = constant(2, 0), upper = constant(2, 10);
  for (const Vector& x0 : {Vector(Vector::Zero(2)), Vector(Vector::Unit(2, 0) * 10), upper}) {
    const MinimizeSummary s = minimize(f, x0, lower, upper, tight());
    EXPECT_LT((s.x - f.centre).norm(), 1e-7) << x0.transpose();
  }
}

TEST(Minimize, ReachesACornerExactly) {
  const Quadratic f{Matrix::Identity(4, 4), (Vector(4) << 9, -9, 9, 0.5).finished()};
  const MinimizeSummary s = minimize(f, constant(4, 0.2), constant(4, 0), constant(4, 1));
  EXPECT_EQ(s.termination, Termination::gradient);
  EXPECT_EQ(s.x.head(3), Vector::Unit(3, 0) + Vector::Unit(3, 2));
  EXPECT_NEAR(s.x[3], 0.5, 1e-5);
}

TEST(Minimize, SolvesRosenbrockInFewEvaluations) {
  // Measured: 46 and 139. A margin for other compilers' rounding, not for a worse method.
  const struct {
    Index n;
    int evaluations;
  } cases[] = {{2, 60}, {20, 180}};
  for (const auto& [n, evaluations] : cases) {
    const MinimizeSummary s = minimize_unbounded(rosenbrock, rosenbrock_start(n));
    RecordProperty("evaluations_" + std::to_string(n), s.evaluations);
    EXPECT_LT((s.x - constant(n, 1)).lpNorm<Eigen::Infinity>(), 1e-3) << s.message;
    EXPECT_LT(s.value, 1e-7);
    EXPECT_LE(s.evaluations, evaluations);
    EXPECT_LE(s.iterations, s.evaluations);
  }
}

TEST(Minimize, SolvesRosenbrockOnABound) {
  // On the face x₁ = ½ the minimum over x₀ solves 400 x₀ (x₀² − ½) = 2 (1 − x₀).
  const MinimizeSummary s = minimize(rosenbrock, rosenbrock_start(2), constant(2, -2),
                                     (Vector(2) << 2, 0.5).finished(), tight());
  EXPECT_EQ(s.x[1], 0.5);
  EXPECT_NEAR(400 * s.x[0] * (s.x[0] * s.x[0] - 0.5), 2 * (1 - s.x[0]), 1e-6);
}

TEST(Minimize, CostsOneEvaluationAtTheOptimum) {
  std::mt19937 rng(3);
  const Quadratic f = random_quadratic(4, 10, rng);
  const MinimizeSummary s = minimize_unbounded(f, f.centre);
  EXPECT_EQ(s.termination, Termination::gradient);
  EXPECT_EQ(s.evaluations, 1);
  EXPECT_EQ(s.iterations, 0);
  EXPECT_EQ(s.x, f.centre);
}

TEST(Minimize, AcceptsAProblemWithoutVariables) {
  const auto f = [](const Vector&, double& value, Vector&) {
    value = 3;
    return true;
  };
  const MinimizeSummary s = minimize_unbounded(f, Vector());
  EXPECT_EQ(s.termination, Termination::gradient);
  EXPECT_EQ(s.value, 3);
}

TEST(Minimize, ClampsTheStart) {
  std::vector<Vector> seen;
  const auto f = [&](const Vector& x, double& value, Vector& gradient) {
    seen.push_back(x);
    return rosenbrock(x, value, gradient);
  };
  const Vector lower = constant(2, -0.5), upper = constant(2, 0.25);
  const MinimizeSummary s = minimize(f, (Vector(2) << -7, 7).finished(), lower, upper);
  EXPECT_EQ(seen.front(), (Vector(2) << -0.5, 0.25).finished());
  for (const Vector& x : seen) {
    EXPECT_TRUE((x.array() >= -0.5).all() && (x.array() <= 0.25).all());
  }
  expect_sound(s, lower, upper);
}

TEST(Minimize, HoldsAVariableWithEqualBounds) {
  std::mt19937 rng(4);
  const Quadratic f = random_quadratic(3, 10, rng);
  Vector lower = constant(3, -inf), upper = constant(3, inf);
  lower[1] = upper[1] = 0.7;
  const MinimizeSummary s = minimize(f, Vector::Zero(3), lower, upper, tight());
  EXPECT_EQ(s.x[1], 0.7);
  EXPECT_LT((s.x - coordinate_descent(f, lower, upper)).norm(), 1e-7);
}

TEST(Minimize, NeverTakesAStepLongerThanMaxStep) {
  double longest = 0;
  const auto f = [&](const Vector& x, double& value, Vector& gradient) {
    value = std::exp(-x[0] / 10);  // ever flatter: asks for ever longer steps
    gradient[0] = -value / 10;
    return true;
  };
  MinimizeOptions options = tight(1e-4);
  Vector x = Vector::Zero(1);
  options.max_evaluations = 2;  // the start and one trial
  for (int i = 0; i < 10; ++i) {
    const MinimizeSummary s = minimize_unbounded(f, x, options);
    longest = std::max(longest, s.x[0] - x[0]);
    x = s.x;
  }
  EXPECT_LE(longest, 1);  // without curvature
  options.max_evaluations = 100;
  const MinimizeSummary s = minimize_unbounded(f, Vector::Zero(1), options);
  EXPECT_EQ(s.termination, Termination::gradient);
  EXPECT_LE(s.x[0], 5 * s.iterations * (1 + 1e-12));
  EXPECT_GT(s.x[0], 2 * s.iterations);  // the cap is what bounds it, not timid steps
}

// The ways in which an evaluation can fail.
using Failure = bool (*)(double& value, Vector& gradient);
const Failure failures[] = {
    [](double&, Vector&) { return false; },
    [](double& value, Vector&) { return value = nan, true; },
    [](double& value, Vector&) { return value = inf, true; },
    [](double& value, Vector&) { return value = -inf, true; },
    [](double&, Vector& gradient) { return gradient[0] = nan, true; },
    [](double&, Vector& gradient) { return gradient[0] = inf, true; },
};

TEST(Minimize, BacksAwayFromARegionThatFails) {
  // Whatever is higher than all before: the search gets no value of an overshoot to go by.
  int failed = 0;
  for (const Failure fail : failures) {
    for (unsigned seed = 0; seed < 25; ++seed) {
      std::mt19937 rng(seed);
      const Quadratic q = random_quadratic(4, 100, rng);
      double lowest = inf;
      const auto f = [&](const Vector& x, double& value, Vector& gradient) {
        q(x, value, gradient);
        if (value > lowest) {
          return fail(value, gradient);
        }
        lowest = value;
        return true;
      };
      const MinimizeSummary s = minimize_unbounded(f, random_vector(4, rng), tight());
      EXPECT_EQ(s.termination, Termination::gradient) << seed << ' ' << s.message;
      EXPECT_LT((s.x - q.centre).norm(), 1e-6) << seed;
      failed += s.failed_evaluations;
    }
  }
  EXPECT_GT(failed, 100);
}

TEST(Minimize, ApproachesAMinimumBesideARegionThatFails) {
  // The wall is 0.05 from the minimum, which every path from the left overshoots.
  for (const Failure fail : failures) {
    for (unsigned seed = 0; seed < 25; ++seed) {
      std::mt19937 rng(seed);
      const Quadratic q{random_quadratic(4, 3, rng).H, constant(4, 0.95)};
      const auto f = [&](const Vector& x, double& value, Vector& gradient) {
        q(x, value, gradient);
        return x.maxCoeff() > 1 ? fail(value, gradient) : true;
      };
      const Vector x0 = -random_vector(4, rng).cwiseAbs() * 2;
      const MinimizeSummary s = minimize_unbounded(f, x0, tight());
      EXPECT_EQ(s.termination, Termination::gradient) << seed << ' ' << s.message;
      EXPECT_LT((s.x - q.centre).norm(), 1e-6) << seed;
    }
  }
}

TEST(Minimize, SurvivesTrialsThatFailAtRandom) {
  int failed = 0, evaluations = 0;
  for (const Failure fail : failures) {
    for (unsigned seed = 0; seed < 25; ++seed) {
      std::mt19937 rng(seed);
      std::bernoulli_distribution unlucky(0.3);
      bool first = true;
      const auto f = [&](const Vector& x, double& value, Vector& gradient) {
        rosenbrock(x, value, gradient);
        const bool ok = first || !unlucky(rng);
        first = false;
        return ok ? true : fail(value, gradient);
      };
      const Vector x0 = random_vector(5, rng);
      const Vector lower = constant(5, -3), upper = constant(5, 3);
      const MinimizeSummary s = minimize(f, x0, lower, upper, tight(1e-6));
      expect_sound(s, lower, upper);
      EXPECT_EQ(s.termination, Termination::gradient) << seed << ' ' << s.message;
      failed += s.failed_evaluations;
      evaluations += s.evaluations;
    }
  }
  EXPECT_GT(failed, 1000);        // the test did inject them
  EXPECT_LT(evaluations, 18000);  // measured: 12504 for the 150 runs
}

TEST(Minimize, CountsEvaluationsAndFailures) {
  int calls = 0, bad = 0;
  const auto f = [&](const Vector& x, double& value, Vector& gradient) {
    ++calls;
    bad += x.maxCoeff() > 0.9 ? 1 : 0;
    return rosenbrock(x, value, gradient) && x.maxCoeff() <= 0.9;
  };
  const MinimizeSummary s = minimize_unbounded(f, constant(2, 0));
  EXPECT_EQ(s.evaluations, calls);
  EXPECT_EQ(s.failed_evaluations, bad);
  EXPECT_GT(bad, 0);
  EXPECT_LT(s.value, s.initial_value);
}

TEST(Minimize, ReportsAStartThatFails) {
  for (const Failure fail : failures) {
    const auto f = [&](const Vector&, double& value, Vector& gradient) {
      value = 1;
      gradient.setZero();
      return fail(value, gradient);
    };
    const MinimizeSummary s = minimize(f, constant(2, 5), constant(2, 0), constant(2, 1));
    EXPECT_EQ(s.termination, Termination::failed_start);
    EXPECT_FALSE(s.usable());
    EXPECT_EQ(s.evaluations, 1);
    EXPECT_EQ(s.failed_evaluations, 1);
    EXPECT_EQ(s.x, constant(2, 1));
    EXPECT_TRUE(std::isfinite(s.value) && std::isfinite(s.initial_value));
  }
}

TEST(Minimize, ReturnsTheStartIfEveryTrialFails) {
  int calls = 0;
  const auto f = [&](const Vector& x, double& value, Vector& gradient) {
    return rosenbrock(x, value, gradient) && calls++ == 0;
  };
  const MinimizeSummary s = minimize_unbounded(f, rosenbrock_start(3));
  EXPECT_EQ(s.termination, Termination::no_progress);
  EXPECT_EQ(s.x, rosenbrock_start(3));
  EXPECT_EQ(s.value, s.initial_value);
  EXPECT_EQ(s.failed_evaluations, s.evaluations - 1);
}

TEST(Minimize, StopsEarlyOnTheAbsoluteTolerance) {
  const MinimizeSummary full = minimize_unbounded(rosenbrock, rosenbrock_start(20), tight());
  MinimizeOptions options = tight();
  options.absolute_value_tolerance = 1e-3;
  const MinimizeSummary early = minimize_unbounded(rosenbrock, rosenbrock_start(20), options);
  EXPECT_EQ(early.termination, Termination::value_tolerance);
  EXPECT_LT(early.evaluations, full.evaluations);
  EXPECT_LT(early.value - full.value, 0.1);
}

TEST(Minimize, StopsOnTheRelativeToleranceWhateverTheOffset) {
  std::mt19937 rng(5);
  Quadratic f = random_quadratic(6, 1e3, rng);
  MinimizeOptions options;
  options.gradient_tolerance = 0;
  for (const double offset : {-1e8, -1e4, 0.0, 1e4, 1e8}) {
    f.offset = offset;
    const MinimizeSummary s = minimize_unbounded(f, Vector::Zero(6), options);
    EXPECT_EQ(s.termination, Termination::value_tolerance) << offset << ' ' << s.message;
    EXPECT_LT(s.value - offset, 1e-6 * std::max(1.0, std::abs(offset)));
  }
}

TEST(Minimize, RespectsTheBudgetExactly) {
  for (int budget = 1; budget < 45; ++budget) {
    int calls = 0;
    const auto f = [&](const Vector& x, double& value, Vector& gradient) {
      ++calls;
      return rosenbrock(x, value, gradient);
    };
    MinimizeOptions options = tight(0);
    options.max_evaluations = budget;
    const MinimizeSummary s = minimize_unbounded(f, rosenbrock_start(2), options);
    EXPECT_EQ(s.termination, Termination::max_evaluations) << budget;
    EXPECT_EQ(calls, budget);
    EXPECT_EQ(s.evaluations, budget);
    EXPECT_LE(s.value, s.initial_value);
  }
}

TEST(Minimize, StopsWhenAskedWithTheBestSoFar) {
  for (int allowed = 1; allowed < 20; ++allowed) {
    double best = inf;
    int calls = 0;
    const auto f = [&](const Vector& x, double& value, Vector& gradient) {
      ++calls;
      rosenbrock(x, value, gradient);
      best = std::min(best, value);
      return true;
    };
    MinimizeOptions options;
    const ShouldStop stop = [&] { return calls == allowed; };
    const Vector infinite = Vector::Constant(2, inf);
    const MinimizeSummary s =
        minimize(f, rosenbrock_start(2), -infinite, infinite, options, nullptr, stop);
    EXPECT_EQ(s.termination, Termination::interrupted);
    EXPECT_EQ(s.evaluations, allowed);
    EXPECT_EQ(s.value, best);
  }
}

TEST(Minimize, IsDoneAtOnceWithAFlatObjective) {
  const auto f = [](const Vector&, double& value, Vector& gradient) {
    value = -7;
    gradient.setZero();
    return true;
  };
  const MinimizeSummary s = minimize_unbounded(f, constant(3, 1), tight(0));
  EXPECT_EQ(s.termination, Termination::gradient);
  EXPECT_EQ(s.evaluations, 1);
}

TEST(Minimize, EndsIfTheGradientIsWrong) {
  const auto f = [](const Vector& x, double& value, Vector& gradient) {
    value = x.squaredNorm();
    gradient = -2 * x;  // uphill
    return true;
  };
  const MinimizeSummary s = minimize_unbounded(f, constant(3, 1));
  EXPECT_EQ(s.termination, Termination::no_progress);
  EXPECT_EQ(s.x, constant(3, 1));
}

TEST(Minimize, EndsInRoundingNoise) {
  // Noise a thousand times the rounding error of the value, as an ill-conditioned Cholesky makes.
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 rng(seed);
    std::uniform_real_distribution<double> noise(-1e-9, 1e-9);
    const Quadratic q{random_quadratic(5, 1e3, rng).H, Vector::Zero(5), 1e4};
    const auto f = [&](const Vector& x, double& value, Vector& gradient) {
      q(x, value, gradient);
      value += noise(rng);
      return true;
    };
    for (const bool by_value : {true, false}) {
      MinimizeOptions options = tight(0);
      options.relative_value_tolerance = by_value ? 2.2e-9 : 0;
      const MinimizeSummary s = minimize_unbounded(f, random_vector(5, rng), options);
      EXPECT_LT(s.evaluations, 200) << seed << ' ' << s.message;
      EXPECT_LT(s.value - q.offset, by_value ? 1e-3 : 1e-6) << seed;
      if (by_value) {
        EXPECT_EQ(s.termination, Termination::value_tolerance) << seed << ' ' << s.message;
      }
    }
  }
}

TEST(Minimize, SeesThatOnlyRoundingErrorIsLeft) {
  // Of the value's last digits; a search that took them for rises and falls needs up to 113.
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 rng(seed);
    std::uniform_real_distribution<double> noise(-1e-11, 1e-11);
    const Quadratic q{random_quadratic(5, 1e3, rng).H, Vector::Zero(5), 1e4};
    const auto f = [&](const Vector& x, double& value, Vector& gradient) {
      q(x, value, gradient);
      value += noise(rng);
      return true;
    };
    const MinimizeSummary s = minimize_unbounded(f, random_vector(5, rng), tight(0));
    EXPECT_EQ(s.termination, Termination::no_progress) << seed;
    EXPECT_LT(s.evaluations, 60) << seed << ' ' << s.message;
  }
}

TEST(Minimize, SpendsLittleOnNoiseBelowTheAbsoluteTolerance) {
  // Value and gradient of a bound whose matrices are nearly singular: the value is good to a tenth
  // of what the caller cares for, the gradient to nothing near the minimum. A search that trusts
  // the gradient shortens its steps to nothing, time after time.
  double most = 0;
  double total = 0;
  constexpr unsigned kSeeds = 100;
  for (unsigned seed = 0; seed < kSeeds; ++seed) {
    std::mt19937 rng(seed);
    std::uniform_real_distribution<double> noise(-1.0, 1.0);
    const Quadratic q{random_quadratic(3, 1e3, rng).H, Vector::Zero(3), -2700};
    const auto f = [&](const Vector& x, double& value, Vector& gradient) {
      q(x, value, gradient);
      value += 1e-3 * noise(rng);
      for (double& g : gradient) g += noise(rng);
      return true;
    };
    MinimizeOptions options;
    options.absolute_value_tolerance = 0.01;
    const MinimizeSummary s = minimize_unbounded(f, random_vector(3, rng), options);
    EXPECT_LT(s.value - q.offset, 1.0) << seed << ' ' << s.message;
    most = std::max<double>(most, s.evaluations);
    total += s.evaluations;
  }
  EXPECT_LT(total / kSeeds, 18);  // 15; a search without the rule 24
  EXPECT_LT(most, 60);            // 34, against 110
}

TEST(Minimize, IsNotStoppedByAStiffDirection) {
  // Nearly at its minimum where it is steep, far from it where it is flat: the first steps, which
  // go down the gradient, change f by less than the tolerance, and yet much is to be gained.
  struct Case {
    double offset;
    std::vector<double> h, x0;
    double tolerance;
  };
  const std::vector<Case> cases{
      {1e6, {100, 0.01}, {1e-3, 1}, 0},         {1e6, {100, 0.01}, {1e-3, 1}, 0.01},
      {-1e5, {100, 0.1}, {1e-4, 0.05}, 0},      {-1e4, {1e3, 10, 0.1}, {2e-5, 2e-4, 1e-2}, 0},
      {-2700, {1e3, 1e-3}, {4.3e-6, 20}, 0.01}, {-2700, {1e4, 1e-2}, {2e-5, 30}, 1.0},
      {-2700, {1e3, 1e-2}, {4.3e-6, 2}, 0.01}};
  for (const Case& c : cases) {
    const auto n = static_cast<Index>(c.h.size());
    const Quadratic f{Vector(Eigen::Map<const Vector>(c.h.data(), n)).asDiagonal().toDenseMatrix(),
                      Vector::Zero(n), c.offset};
    MinimizeOptions options;
    options.absolute_value_tolerance = c.tolerance;
    const MinimizeSummary s =
        minimize_unbounded(f, Eigen::Map<const Vector>(c.x0.data(), n), options);
    EXPECT_LT(s.evaluations, 40) << s.message;
    EXPECT_LE(s.value - c.offset, std::max(c.tolerance, 2.2e-9 * std::abs(c.offset))) << s.message;
  }
}

TEST(Minimize, IsNeverWorseThanItsStart) {
  // Smooth, many minima, steep in places, undefined in others; bounds that cut anywhere.
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 rng(seed);
    const Index n = 1 + static_cast<Index>(seed % 7);
    const Vector frequency = random_vector(n, rng) * 3;
    const Vector scale = (random_vector(n, rng) * 3).array().exp();
    const auto f = [&](const Vector& x, double& value, Vector& gradient) {
      const auto phase = (frequency.array() * x.array() + x.sum()).eval();
      value = (scale.array() * phase.sin()).sum() + std::sqrt(2 + x.sum());
      const Vector slope = scale.array() * phase.cos();
      gradient = slope.array() * frequency.array() + slope.sum() + 0.5 / std::sqrt(2 + x.sum());
      return true;
    };
    const Vector lower = random_vector(n, rng) - constant(n, 1);
    const Vector upper = lower + random_vector(n, rng).cwiseAbs() * 3;
    MinimizeOptions options;
    options.max_evaluations = 1 + static_cast<int>(seed % 50);
    const MinimizeSummary s = minimize(f, random_vector(n, rng), lower, upper, options);
    if (s.usable()) {
      expect_sound(s, lower, upper);
      double value = 0;
      Vector gradient(n);
      f(s.x, value, gradient);
      EXPECT_EQ(value, s.value) << seed;  // the value is that of the point
    } else {
      EXPECT_EQ(s.evaluations, 1) << seed;
    }
  }
}

TEST(Curvature, SavesEvaluationsOnASlowlyMovingProblem) {
  std::mt19937 rng(6);
  Quadratic f = random_quadratic(6, 1e3, rng);
  const Matrix drift = Matrix::NullaryExpr(6, 6, [&] { return 0.02 * random_vector(1, rng)[0]; });
  Curvature curvature;
  Vector x_cold = Vector::Zero(6), x_warm = x_cold;
  int cold = 0, warm = 0;
  for (int batch = 0; batch < 10; ++batch) {
    const MinimizeSummary a = minimize_unbounded(f, x_cold, tight(1e-5));
    const MinimizeSummary b = minimize_unbounded(f, x_warm, tight(1e-5), &curvature);
    EXPECT_EQ(a.termination, Termination::gradient);
    EXPECT_EQ(b.termination, Termination::gradient);
    EXPECT_LT((b.x - f.centre).norm(), 1e-4);
    cold += a.evaluations;
    warm += b.evaluations;
    x_cold = a.x;
    x_warm = b.x;
    f.centre += 0.1 * random_vector(6, rng);
    f.H = (f.H + drift * drift.transpose()).eval();
  }
  // Measured: 182 against 286, the first batch included, in which there is nothing to carry.
  EXPECT_LT(warm, 0.75 * cold) << warm << " against " << cold;
  EXPECT_EQ(curvature.pairs.size(), 10U);
}

TEST(Curvature, OfAnotherFunctionDoesNoHarm) {
  int cold = 0, warm = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    for (const double scale : {1e-6, 1.0, 1e6}) {
      std::mt19937 rng(seed);
      Quadratic other = random_quadratic(5, 1e4, rng);
      other.H *= scale;
      Curvature curvature;
      minimize_unbounded(other, random_vector(5, rng), {}, &curvature);
      ASSERT_FALSE(curvature.pairs.empty());
      const Quadratic f = random_quadratic(5, 1e3, rng);
      const Vector x0 = random_vector(5, rng);
      const MinimizeSummary s = minimize_unbounded(f, x0, tight(1e-5), &curvature);
      EXPECT_EQ(s.termination, Termination::gradient) << seed << ' ' << scale << ' ' << s.message;
      EXPECT_LT((s.x - f.centre).norm(), 1e-4);
      cold += minimize_unbounded(f, x0, tight(1e-5)).evaluations;
      warm += s.evaluations;
    }
  }
  EXPECT_LT(warm, 1.5 * cold) << warm << " against " << cold;
}

TEST(Curvature, ThatMisleadsCostsOneEvaluation) {
  // It claims a Hessian of 1e-6, so its first step is far too long; then all is as without it.
  std::mt19937 rng(7);
  const Quadratic f = random_quadratic(3, 100, rng);
  Curvature curvature{{{constant(3, 1), constant(3, 1e-6)}}};
  const MinimizeSummary without = minimize_unbounded(f, Vector::Zero(3));
  const MinimizeSummary with = minimize_unbounded(f, Vector::Zero(3), {}, &curvature);
  EXPECT_EQ(with.evaluations, without.evaluations + 1);
  EXPECT_EQ(with.x, without.x);
}

TEST(Curvature, OfAnotherDimensionOrNotFiniteIsDropped) {
  std::mt19937 rng(8);
  const Quadratic f = random_quadratic(3, 100, rng);
  const MinimizeSummary without = minimize_unbounded(f, Vector::Zero(3));
  const Curvature cases[] = {
      {{{constant(4, 1), constant(4, 1)}}},
      {{{constant(3, 1), constant(3, 1)}, {constant(3, 1), constant(2, 1)}}},
      {{{constant(3, nan), constant(3, 1)}}},
      {{{constant(3, 1), constant(3, -1)}}},
  };
  for (Curvature curvature : cases) {
    const MinimizeSummary with = minimize_unbounded(f, Vector::Zero(3), {}, &curvature);
    EXPECT_EQ(with.evaluations, without.evaluations);
    EXPECT_EQ(with.x, without.x);
  }
}

TEST(Curvature, KeepsToTheMemory) {
  Curvature curvature;
  MinimizeOptions options;
  options.memory = 7;
  minimize_unbounded(rosenbrock, rosenbrock_start(5), options, &curvature);
  // One or two of the last steps may have changed f by rounding only, and are not handed on.
  EXPECT_LE(curvature.pairs.size(), 7U);
  EXPECT_GE(curvature.pairs.size(), 5U);
  const Vector latest = curvature.pairs.back().s;
  options.memory = 3;
  options.max_evaluations = 1;
  minimize_unbounded(rosenbrock, rosenbrock_start(5), options, &curvature);
  ASSERT_EQ(curvature.pairs.size(), 3U);
  EXPECT_EQ(curvature.pairs.back().s, latest);
}

// Negative log evidence of an exact GP with a squared exponential kernel, term by term. The
// variables are the logs of variance, lengthscale and noise variance.
struct NegativeLogEvidence {
  Vector X, y;

  bool operator()(const Vector& theta, double& value, Vector& gradient) const {
    const Index N = X.size();
    const Vector p = theta.array().exp();
    Matrix K(N, N), dK_lengthscale(N, N);
    for (Index i = 0; i < N; ++i) {
      for (Index j = 0; j < N; ++j) {
        const double r2 = std::pow((X[i] - X[j]) / p[1], 2);
        K(i, j) = p[0] * std::exp(-0.5 * r2);
        dK_lengthscale(i, j) = K(i, j) * r2;
      }
    }
    const Matrix C = K + p[2] * Matrix::Identity(N, N);
    const Eigen::LLT<Matrix> llt(C);
    if (llt.info() != Eigen::Success) {
      return false;
    }
    const Vector a = llt.solve(y);
    const Matrix G = llt.solve(Matrix::Identity(N, N)) - a * a.transpose();
    const Vector diagonal = llt.matrixL().toDenseMatrix().diagonal();
    value = 0.5 * y.dot(a) + diagonal.array().log().sum() +
            0.5 * static_cast<double>(N) * std::log(2 * std::numbers::pi);
    gradient[0] = 0.5 * G.cwiseProduct(K).sum();
    gradient[1] = 0.5 * G.cwiseProduct(dK_lengthscale).sum();
    gradient[2] = 0.5 * p[2] * G.trace();
    return true;
  }
};

NegativeLogEvidence evidence_of_forty_points() {
  std::mt19937 rng(9);
  const Vector X = Vector::LinSpaced(40, 0, 10);
  return {X, X.array().sin() + 0.1 * random_vector(40, rng).array()};
}

// With noise 1e-6 the evidence is flat in its logarithm; a run must not take that for the end.
TEST(Minimize, FitsAGaussianProcessFromManyStarts) {
  const NegativeLogEvidence f = evidence_of_forty_points();
  const Vector lower = constant(3, std::log(1e-6)), upper = constant(3, std::log(2e3));
  double best = inf;
  for (const double variance : {0.1, 1.0, 30.0}) {
    for (const double lengthscale : {0.5, 1.0, 3.0}) {
      for (const double noise : {1e-6, 1e-2, 1.0}) {
        const Vector x0 = (Vector(3) << variance, lengthscale, noise).finished().array().log();
        const MinimizeSummary s = minimize(f, x0, lower, upper);
        expect_sound(s, lower, upper);
        EXPECT_LT(s.evaluations, 60) << x0.transpose() << ' ' << s.message;
        EXPECT_LT(s.gradient_norm, 1e-2) << s.message;
        best = std::min(best, s.value);
        EXPECT_LT(s.value, best + 1e-6) << x0.transpose() << ' ' << s.message;
      }
    }
  }
  // No point of a grid over the box is lower.
  for (double a = lower[0]; a < upper[0]; a += 1) {
    for (double b = lower[1]; b < upper[1]; b += 1) {
      for (double c = lower[2]; c < upper[2]; c += 1) {
        double value = 0;
        Vector gradient(3);
        if (f((Vector(3) << a, b, c).finished(), value, gradient)) {
          EXPECT_GT(value, best);
        }
      }
    }
  }
}

TEST(Minimize, FitsAGaussianProcessFromAbsurdStarts) {
  const NegativeLogEvidence f = evidence_of_forty_points();
  const Vector lower = constant(3, std::log(1e-9)), upper = constant(3, std::log(1e9));
  for (const double variance : {1e-8, 1e8}) {
    for (const double lengthscale : {1e-8, 1e8}) {
      for (const double noise : {1e-8, 1e8}) {
        const Vector x0 = (Vector(3) << variance, lengthscale, noise).finished().array().log();
        const MinimizeSummary s = minimize(f, x0, lower, upper);
        if (s.usable()) {  // 1e8 plus noise of 1e-8 has no Cholesky factor
          expect_sound(s, lower, upper);
          EXPECT_LT(s.evaluations, 200) << s.message;
        }
      }
    }
  }
}

std::string message_of(const Vector& x0, const Vector& lower, const Vector& upper,
                       const MinimizeOptions& options = {}) {
  try {
    minimize(rosenbrock, x0, lower, upper, options);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing thrown";
}

TEST(Minimize, RejectsWrongArguments) {
  const Vector x0 = Vector::Zero(5), lower = constant(5, -1), upper = constant(5, 1);
  EXPECT_EQ(message_of(x0, lower, upper), "nothing thrown");
  EXPECT_EQ(message_of(x0, constant(3, -1), upper),
            "minimize: lower has 3 entries, but must have 5 (the size of x0)");
  EXPECT_EQ(message_of(x0, lower, constant(6, 1)),
            "minimize: upper has 6 entries, but must have 5 (the size of x0)");
  EXPECT_EQ(message_of(x0, lower, constant(5, -2)),
            "minimize: lower[0] is -1, but must be at most upper[0], which is -2");
  const char* nothing = "nothing thrown";
  EXPECT_NE(message_of(x0, constant(5, nan), upper), nothing);
  EXPECT_NE(message_of(x0, lower, constant(5, nan)), nothing);
  EXPECT_NE(message_of(constant(5, nan), lower, upper), nothing);
  EXPECT_NE(message_of(constant(5, inf), lower, upper), nothing);
  EXPECT_NE(message_of(x0, constant(5, inf), constant(5, inf)), nothing);

  const auto with = [&](auto member, auto value) {
    MinimizeOptions options;
    options.*member = value;
    return message_of(x0, lower, upper, options);
  };
  using Options = MinimizeOptions;
  EXPECT_EQ(with(&Options::max_evaluations, 0),
            "minimize: max_evaluations is 0, but must be at least 1");
  EXPECT_NE(with(&Options::memory, 0), nothing);
  EXPECT_NE(with(&Options::max_step, 0.0), nothing);
  EXPECT_NE(with(&Options::max_step, inf), nothing);
  EXPECT_NE(with(&Options::gradient_tolerance, nan), nothing);
  EXPECT_NE(with(&Options::relative_value_tolerance, -1e-9), nothing);
  EXPECT_NE(with(&Options::absolute_value_tolerance, -1.0), nothing);

  const auto resizes = [](const Vector&, double& value, Vector& gradient) {
    value = 0;
    gradient = Vector::Ones(2);
    return true;
  };
  EXPECT_THROW(minimize(resizes, x0, lower, upper), std::invalid_argument);
}

TEST(Minimize, LetsAnExceptionPass) {
  const auto f = [](const Vector&, double&, Vector&) -> bool { throw std::runtime_error("mine"); };
  EXPECT_THROW(minimize_unbounded(f, Vector::Zero(2)), std::runtime_error);
}

TEST(Termination, HasANameForEachValue) {
  EXPECT_EQ(to_string(Termination::gradient), "gradient");
  EXPECT_EQ(to_string(Termination::interrupted), "interrupted");
}

}  // namespace
}  // namespace ample
