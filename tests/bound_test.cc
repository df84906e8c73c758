// The online bound against the paper's literal formulas in quadruple precision (support/naive.h),
// its gradient against central differences, and the laws that connect bounds to one another.
#include "ample/bound.h"

#include <algorithm>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Cholesky>
#include <gtest/gtest.h>

#include "ample/optimum.h"
#include "support/check_gradient.h"
#include "support/message.h"
#include "support/naive.h"
#include "support/random.h"

namespace ample {
namespace {

using naive::Layout;
using naive::make_twin;
using naive::theta_of;
using naive::Twin;
using testing::gradient_error;
using testing::message;
using testing::Random;
using testing::relative_error;
using Inducing = OnlineBound::Inducing;

constexpr double kValueTolerance = 1e-9;
constexpr double kGradientTolerance = 1e-6;
constexpr double kJitterFactor = 1e-8;
constexpr double kLeastJitterFactor = 5e-10;

// --- Problems ----------------------------------------------------------------------------------

/// Two batches of a stream, inducing inputs for each, and hyperparameters before and after.
struct Problem {
  Problem(Twin the_twin, Index D)
      : twin(std::move(the_twin)),
        theta_old(theta_of(twin.kernel)),
        theta(theta_old),
        kernel_old(twin.kernel),
        kernel(twin.kernel),
        empty(State::empty(kernel_old, noise_old, D)) {}

  double noise_old = 0.15;
  double noise = 0.2;
  Twin twin;
  Vector theta_old;
  Vector theta;
  Kernel kernel_old;
  Kernel kernel;
  State empty;
  Batch first;
  Batch second;
  Matrix Z_a;  // [M_a,D]
  Matrix Z_b;  // [M_b,D], Z_a first
};

struct Sizes {
  Index N_first;
  Index M_a;
  Index N_second;
  Index M_new;
};

Batch random_batch(Index N, Index D, Random& random) {
  Batch batch{random.uniform(N, D, -2.5, 2.5), Vector(N)};
  for (Index i = 0; i < N; ++i) {
    batch.y[i] = std::sin(batch.X.row(i).sum()) + 0.3 * random.normal();
  }
  return batch;
}

Matrix stacked(const Matrix& A, const Matrix& B) {
  Matrix C(A.rows() + B.rows(), A.cols());
  C << A, B;
  return C;
}

/// M of the candidates, each where the kernel's variance given the others is largest: as well
/// conditioned as the kernel allows. Where nothing is left to explain (kernels of few features),
/// the first of the rest.
Matrix spread_out(const Kernel& kernel, const Matrix& candidates, Index M) {
  constexpr double kTaken = -1.0;
  Matrix K = kernel(candidates, candidates);
  const double floor = 1e-10 * K.diagonal().maxCoeff();
  Matrix chosen(M, candidates.cols());
  for (Index m = 0; m < M; ++m) {
    Index j = 0;
    const double variance = K.diagonal().maxCoeff(&j);
    if (variance > floor) {
      K -= (K.col(j) * K.row(j) / variance).eval();
    } else {
      for (j = 0; K(j, j) == kTaken;) ++j;
    }
    chosen.row(m) = candidates.row(j);
    K(j, j) = kTaken;
  }
  return chosen;
}

Problem make_problem(const std::string& kernel, Index D, Layout layout, const Sizes& sizes) {
  Random random(1);
  Problem p(make_twin(kernel, D, layout), D);
  for (double& v : p.theta) v *= random.uniform(0.85, 1.2);
  p.kernel = p.twin.kernel.with_values(p.theta);
  p.first = random_batch(sizes.N_first, D, random);
  p.second = random_batch(sizes.N_second, D, random);
  const Index M = sizes.M_a + sizes.M_new;
  p.Z_b = spread_out(p.kernel_old, random.uniform(5 * M, D, -2.5, 2.5), M);
  p.Z_a = p.Z_b.topRows(sizes.M_a);
  return p;
}

State absorb(const State& old, const Batch& batch, const Kernel& kernel, double noise,
             const Matrix& Z, Inducing inducing = Inducing::fixed) {
  OnlineBound bound(old, batch.X, batch.y, inducing);
  if (!bound.factorize(kernel, noise, Z)) throw std::runtime_error("the factorisation failed");
  return bound.absorb();
}

State after_first(const Problem& p) {
  return absorb(p.empty, p.first, p.kernel_old, p.noise_old, p.Z_a);
}

double value(const State& old, const Batch& batch, const Kernel& kernel, double noise,
             const Matrix& Z, Inducing inducing = Inducing::fixed) {
  OnlineBound bound(old, batch.X, batch.y, inducing);
  return bound.factorize(kernel, noise, Z) ? bound.value()
                                           : std::numeric_limits<double>::quiet_NaN();
}

/// All rows of A in another order.
Matrix permuted(const Matrix& A, const std::vector<Index>& order) { return A(order, Eigen::all); }

/// θ, then σ², then Z if it moves, as one vector; and the bound as a function of it.
struct Coordinates {
  Vector theta;
  double noise;
  Matrix Z;
  bool moving;

  [[nodiscard]] Vector flat() const {
    const Index P = theta.size();
    Vector u(P + 1 + (moving ? Z.size() : 0));
    u.head(P) = theta;
    u[P] = noise;
    if (moving) u.tail(Z.size()) = Z.reshaped();
    return u;
  }
  [[nodiscard]] Coordinates at(const Vector& u) const {
    Coordinates c = *this;
    c.theta = u.head(theta.size());
    c.noise = u[theta.size()];
    if (moving) c.Z = u.tail(Z.size()).reshaped(Z.rows(), Z.cols());
    return c;
  }
};

Vector flat(const BoundGradient& g, bool moving) {
  Vector out(g.theta.size() + 1 + (moving ? g.Z.size() : 0));
  out.head(g.theta.size()) = g.theta;
  out[g.theta.size()] = g.noise_variance;
  if (moving) out.tail(g.Z.size()) = g.Z.reshaped();
  return out;
}

/// Checks dL̂/d(θ, σ², Z) at one place, and that one wrong entry would be seen.
void expect_gradient(const State& old, const Batch& batch, const Kernel& kernel, double noise,
                     const Matrix& Z, Inducing inducing) {
  const bool moving = inducing == Inducing::moving;
  const Coordinates here{theta_of(kernel), noise, Z, moving};
  OnlineBound bound(old, batch.X, batch.y, inducing);
  const auto f = [&](const Vector& u) {
    const Coordinates c = here.at(u);
    EXPECT_TRUE(bound.factorize(kernel.with_values(c.theta), c.noise, c.Z));
    return bound.value();
  };
  const Vector u = here.flat();
  (void)f(u);
  const Vector gradient = flat(bound.gradient(), moving);
  EXPECT_EQ(bound.gradient().Z.size(), moving ? Z.size() : 0);
  EXPECT_LE(gradient_error(f, u, gradient), kGradientTolerance);
  // Control: an error of 1e-3 in the first or last kernel parameter, the noise, or the last of all.
  for (const Index i : {Index{0}, here.theta.size() - 1, here.theta.size(), u.size() - 1}) {
    const double off = gradient[i] + 1e-3 * std::max(1.0, std::abs(gradient[i]));
    EXPECT_GT(testing::slope_error(f, u, i, off), kGradientTolerance);
  }
}

struct Form {
  Index D;
  Layout layout;
};

/// One kernel by name; dimensions, layouts and sizes (M < N and M > N) inside.
class EveryBound : public ::testing::TestWithParam<std::string> {
 protected:
  template <class Body>
  void for_problems(const Body& body) const {
    for (const Form& form : {Form{1, Layout::isotropic}, Form{3, Layout::subset},
                             Form{19, Layout::isotropic}, Form{19, Layout::ard}}) {
      for (const Sizes& sizes : {Sizes{20, 6, 14, 4}, Sizes{4, 6, 3, 3}}) {
        SCOPED_TRACE(::testing::Message()
                     << GetParam() << ", D = " << form.D << ", layout "
                     << static_cast<int>(form.layout) << ", N = " << sizes.N_first << " and "
                     << sizes.N_second << ", M = " << sizes.M_a << " and "
                     << sizes.M_a + sizes.M_new);
        body(make_problem(GetParam(), form.D, form.layout, sizes));
      }
    }
  }
};

std::string name_of(const ::testing::TestParamInfo<std::string>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(Kernels, EveryBound, ::testing::ValuesIn(naive::kernel_names()), name_of);

// --- Values ------------------------------------------------------------------------------------

/// What is compared with the paper's formula, and by how much the latter's parameters are off.
struct Comparison {
  const State& old;
  const Batch& batch;
  const Vector& theta;
  double noise;
  Matrix Z;
  Inducing inducing = Inducing::fixed;
  double theta_off = 0.0;
  double noise_off = 0.0;
};

/// The relative error of the library's value against the paper's formula with the same jitter.
double literal_error(const Problem& p, const Comparison& c) {
  OnlineBound bound(c.old, c.batch.X, c.batch.y, c.inducing);
  EXPECT_TRUE(bound.factorize(p.twin.kernel.with_values(c.theta), c.noise, c.Z));
  const naive::Jitter jitter{bound.factors().jitter, c.inducing == Inducing::fixed};
  return relative_error(
      bound.value(),
      naive::online_bound(p.twin, (1.0 + c.theta_off) * c.theta, (1.0 + c.noise_off) * c.noise,
                          naive::Past(c.old), c.batch, c.Z, jitter));
}

/// An error of 1e-5 in θ or in the noise is seen.
void expect_control(const Problem& p, Comparison c) {
  c.theta_off = 1e-5;
  EXPECT_GT(literal_error(p, c), kValueTolerance);
  c.theta_off = 0.0;
  c.noise_off = 1e-5;
  EXPECT_GT(literal_error(p, c), kValueTolerance);
}

TEST_P(EveryBound, FirstBatchEqualsTheLiteralFormula) {
  for_problems([](const Problem& p) {
    Comparison c{p.empty, p.first, p.theta_old, p.noise_old, p.Z_a};
    EXPECT_LE(literal_error(p, c), kValueTolerance);
    expect_control(p, c);
    c.inducing = Inducing::moving;
    EXPECT_LE(literal_error(p, c), kValueTolerance);
  });
}

TEST_P(EveryBound, NestedBatchEqualsTheLiteralFormula) {
  for_problems([](const Problem& p) {
    const State old = after_first(p);
    const Comparison c{old, p.second, p.theta, p.noise, p.Z_b};
    EXPECT_LE(literal_error(p, c), kValueTolerance);
    expect_control(p, c);
    EXPECT_LE(literal_error(p, {old, p.second, p.theta_old, p.noise_old, p.Z_b}), kValueTolerance);
    EXPECT_LE(literal_error(p, {old, p.second, p.theta, p.noise, p.Z_a}), kValueTolerance);
  });
}

TEST_P(EveryBound, GeneralBatchEqualsTheLiteralFormula) {
  for_problems([](const Problem& p) {
    const State old = after_first(p);
    const Index M_a = p.Z_a.rows();
    Comparison c{old, p.second, p.theta, p.noise, p.Z_b};
    // Half of Z_a kept, and not in front.
    c.Z = stacked(p.Z_b.bottomRows(p.Z_b.rows() - M_a), p.Z_a.bottomRows(M_a / 2));
    EXPECT_LE(literal_error(p, c), kValueTolerance);
    expect_control(p, c);
    c.Z = p.Z_a.topRows(M_a / 2);  // fewer points than before
    EXPECT_LE(literal_error(p, c), kValueTolerance);
    c.Z = p.Z_b.array() + 0.05;  // nothing shared
    EXPECT_LE(literal_error(p, c), kValueTolerance);
    c.inducing = Inducing::moving;
    EXPECT_LE(literal_error(p, c), kValueTolerance);
    c.Z = p.Z_b;
    EXPECT_LE(literal_error(p, c), kValueTolerance);
  });
}

TEST_P(EveryBound, ThirdBatchStillEqualsTheLiteralFormula) {
  for_problems([](const Problem& p) {
    const State old = absorb(after_first(p), p.second, p.kernel, p.noise, p.Z_b);
    Random random(3);
    const Batch third = random_batch(7, p.Z_a.cols(), random);
    const Vector theta = p.theta * 1.1;
    Comparison c{old, third, theta, 0.3, stacked(p.Z_b, third.X.topRows(2))};
    EXPECT_LE(literal_error(p, c), kValueTolerance);
    c.Z = stacked(p.Z_b.bottomRows(3), third.X.topRows(2));
    EXPECT_LE(literal_error(p, c), kValueTolerance);
  });
}

TEST_P(EveryBound, InducingInputsAtTheDataGiveTheExactEvidence) {
  for_problems([](const Problem& p) {
    OnlineBound bound(p.empty, p.first.X, p.first.y);
    ASSERT_TRUE(bound.factorize(p.kernel_old, p.noise_old, p.first.X));
    const double exact = naive::evidence(p.twin, p.theta_old, p.noise_old, p.first);
    // Jitter leaves a residual variance of at most t = N ε, and the evidence exceeds the bound by
    // at most t/(2σ²) (1 + yᵀy/(σ² + t)).
    const double t = static_cast<double>(p.first.X.rows()) * bound.factors().jitter;
    const double gap = 0.5 * t / p.noise_old * (1.0 + p.first.y.squaredNorm() / (p.noise_old + t));
    const double rounding = 1e-11 * std::max(1.0, std::abs(exact));
    EXPECT_LE(bound.value(), exact + rounding);
    EXPECT_GE(bound.value(), exact - gap - rounding);
    // Control: one point fewer is not exact, unless the kernel has few features.
    if (GetParam() == "matern12") {
      EXPECT_LT(value(p.empty, p.first, p.kernel_old, p.noise_old,
                      p.first.X.topRows(p.first.X.rows() - 1)),
                exact - gap - rounding);
    }
  });
}

TEST_P(EveryBound, JitterIsASmallShareOfTheMeanPriorVariance) {
  for_problems([](const Problem& p) {
    OnlineBound bound(p.empty, p.first.X, p.first.y);
    ASSERT_TRUE(bound.factorize(p.kernel_old, p.noise_old, p.Z_a));
    EXPECT_EQ(bound.factors().jitter_factor, kJitterFactor);
    EXPECT_DOUBLE_EQ(bound.factors().jitter, kJitterFactor * p.kernel_old.diagonal(p.Z_a).mean());
  });
}

// With more jitter than noise, inducing points at the data do not suffice to reach the optimum.
TEST_P(EveryBound, JitterIsAtMostTheNoiseVarianceAndTheGradientKnows) {
  for_problems([](const Problem& p) {
    const double mean_variance = p.kernel_old.diagonal(p.Z_a).mean();
    const double noise = 3e-9 * mean_variance;
    OnlineBound bound(p.empty, p.first.X, p.first.y);
    ASSERT_TRUE(bound.factorize(p.kernel_old, noise, p.Z_a));
    ASSERT_TRUE(bound.factors().jitter_follows_noise);
    EXPECT_GE(bound.factors().jitter_factor, 1.0);
    EXPECT_EQ(bound.factors().jitter, bound.factors().jitter_factor * noise);
    const double log_gradient = bound.gradient().noise_variance * noise;
    const auto f = [&](const Vector& log_noise) {
      EXPECT_TRUE(bound.factorize(p.kernel_old, std::exp(log_noise[0]), p.Z_a));
      return bound.value();
    };
    const testing::Slope slope =
        testing::extrapolated_slope(f, Vector::Constant(1, std::log(noise)), 0);
    EXPECT_NEAR(log_gradient, slope.value,
                1e-6 * std::max(1.0, std::abs(slope.value)) + 10.0 * slope.error);

    ASSERT_TRUE(bound.factorize(p.kernel_old, 1e-13 * mean_variance, p.Z_a));
    EXPECT_FALSE(bound.factors().jitter_follows_noise);
    EXPECT_GE(bound.factors().jitter, kLeastJitterFactor * mean_variance);
  });
}

// --- Laws --------------------------------------------------------------------------------------

// Where θ = θ_old, the old jitter is given: W = I then holds exactly for kernels too whose prior
// variance differs from point to point.

TEST_P(EveryBound, OptimumIsThePredictiveDensityAndThePapersFormula) {
  for_problems([](const Problem& p) {
    const State old = after_first(p);
    const naive::Past past(old);
    const auto best = optimum(old, p.second.X, p.second.y);
    ASSERT_TRUE(best.has_value());
    EXPECT_LE(relative_error(
                  *best, naive::optimum_density(p.twin, p.theta_old, p.noise_old, past, p.second)),
              kValueTolerance);
    EXPECT_LE(relative_error(
                  *best, naive::optimum_paper(p.twin, p.theta_old, p.noise_old, past, p.second)),
              kValueTolerance);
    // Of an empty model it is the evidence.
    const auto prior = optimum(p.empty, p.second.X, p.second.y);
    ASSERT_TRUE(prior.has_value());
    EXPECT_LE(relative_error(*prior, naive::evidence(p.twin, p.theta_old, p.noise_old, p.second)),
              kValueTolerance);
    // Control: what was seen before matters.
    EXPECT_GT(relative_error(*best, *prior), 1e-6);
  });
}

TEST_P(EveryBound, LowerBoundOptimumTightAndPaperAreInThisOrder) {
  for_problems([](const Problem& p) {
    const State old = after_first(p);
    const naive::Past past(old);
    const double best = optimum(old, p.second.X, p.second.y).value();
    const double rounding = 1e-9 * std::max(1.0, std::abs(best));
    for (const Matrix& Z : {p.Z_a, p.Z_b, stacked(p.Z_a, p.second.X)}) {
      OnlineBound bound(old, p.second.X, p.second.y);
      ASSERT_TRUE(bound.factorize(old.kernel, old.noise_variance, Z, old.jitter));
      const BoundFactors& f = bound.factors();
      const auto tight = upper_bound(UpperBound::tight, old, f, p.second.y);
      const auto paper = upper_bound(UpperBound::paper, old, f, p.second.y);
      ASSERT_TRUE(tight.has_value());
      ASSERT_TRUE(paper.has_value());
      EXPECT_LE(bound.value(), best + rounding);
      EXPECT_LE(best, *tight + rounding);
      EXPECT_LE(*tight, *paper + rounding);
    }
  });
}

TEST_P(EveryBound, UpperBoundsEqualTheLiteralFormulas) {
  for_problems([](const Problem& p) {
    const State old = after_first(p);
    const naive::Past past(old);
    OnlineBound bound(old, p.second.X, p.second.y);
    ASSERT_TRUE(bound.factorize(old.kernel, old.noise_variance, p.Z_b, old.jitter));
    const naive::Jitter jitter{bound.factors().jitter};
    const auto literal = [&](bool tight, double noise) {
      return naive::upper_bound(p.twin, p.theta_old, noise, past, p.second, p.Z_b, jitter, tight);
    };
    const double tight = upper_bound(UpperBound::tight, old, bound.factors(), p.second.y).value();
    const double paper = upper_bound(UpperBound::paper, old, bound.factors(), p.second.y).value();
    EXPECT_LE(relative_error(tight, literal(true, p.noise_old)), kValueTolerance);
    EXPECT_LE(relative_error(paper, literal(false, p.noise_old)), kValueTolerance);
    EXPECT_GT(relative_error(tight, literal(true, p.noise_old * (1.0 + 1e-5))), kValueTolerance);
    EXPECT_GT(relative_error(paper, literal(false, p.noise_old * (1.0 + 1e-5))), kValueTolerance);
  });
}

TEST_P(EveryBound, AddingEveryNewInputReachesTheOptimum) {
  for_problems([](const Problem& p) {
    const State old = after_first(p);
    OnlineBound bound(old, p.second.X, p.second.y);
    ASSERT_TRUE(
        bound.factorize(old.kernel, old.noise_variance, stacked(p.Z_a, p.second.X), old.jitter));
    const double best = optimum(old, p.second.X, p.second.y).value();
    // As with the evidence: jitter leaves t = N ε.
    const double t = static_cast<double>(p.second.X.rows()) * bound.factors().jitter;
    const double gap = 0.5 * t / p.noise_old * (1.0 + p.second.y.squaredNorm() / (p.noise_old + t));
    const double rounding = 1e-9 * std::max(1.0, std::abs(best));
    EXPECT_LE(bound.value(), best + rounding);
    EXPECT_GE(bound.value(), best - gap - rounding);
  });
}

TEST_P(EveryBound, OptimumWithJitterIsWhatEveryNewInputReaches) {
  for_problems([](const Problem& p) {
    for (const double jitter : {1e-6, 0.01, 1.0}) {
      OnlineBound past(p.empty, p.first.X, p.first.y);
      ASSERT_TRUE(past.factorize(p.kernel_old, p.noise_old, p.Z_a, jitter));
      const State first = past.absorb();
      for (const State* old : {&p.empty, &first}) {
        OnlineBound bound(*old, p.second.X, p.second.y);
        ASSERT_TRUE(
            bound.factorize(old->kernel, old->noise_variance, stacked(old->Z, p.second.X), jitter));
        const double best = optimum(*old, p.second.X, p.second.y).value();
        const double reach = optimum_with_jitter(*old, p.second.X, p.second.y, jitter).value();
        EXPECT_LE(relative_error(reach, bound.value()), kValueTolerance) << jitter;
        if (jitter > 1e-3) {
          EXPECT_LT(reach, best - 1e-3);
        }
      }
    }
  });
}

TEST_P(EveryBound, AtTheOldParametersThePastIsReusedUnchanged) {
  for_problems([](const Problem& p) {
    const State old = after_first(p);
    for (const Matrix& Z : {p.Z_a, p.Z_b}) {
      // The kernel of the state itself: the old factor is extended. A jitter given: all anew.
      OnlineBound extended(old, p.second.X, p.second.y);
      OnlineBound anew(old, p.second.X, p.second.y);
      ASSERT_TRUE(extended.factorize(old.kernel, old.noise_variance, Z));
      ASSERT_TRUE(anew.factorize(old.kernel, old.noise_variance, Z, old.jitter));
      EXPECT_EQ(extended.factors().jitter, old.jitter);
      const Index M_a = old.size();
      EXPECT_EQ(extended.factors().L.topLeftCorner(M_a, M_a), old.L.topLeftCorner(M_a, M_a));
      EXPECT_LE(relative_error(extended.value(), anew.value()), kValueTolerance);
      EXPECT_LE(relative_error(extended.gradient().theta, anew.gradient().theta),
                kGradientTolerance);
      EXPECT_LE(relative_error(extended.gradient().noise_variance, anew.gradient().noise_variance),
                kGradientTolerance);
      const State after_extended = extended.absorb();
      const State after_anew = anew.absorb();
      EXPECT_LE(relative_error(after_extended.L, after_anew.L), 1e-8);
      EXPECT_LE(relative_error(after_extended.F, after_anew.F), kValueTolerance);
    }
    // Control: at other parameters the past is not what it was.
    OnlineBound other(old, p.second.X, p.second.y);
    ASSERT_TRUE(other.factorize(p.kernel, old.noise_variance, p.Z_b));
    EXPECT_GT(relative_error(other.factors().L.topLeftCorner(old.size(), old.size()), old.L), 1e-6);
  });
}

TEST(Bound, ASingleObservationUpdatesALargeFactor) {
  Random random(23);
  const Kernel kernel = Matern32{1.2, 0.8};
  const Batch first = random_batch(200, 3, random);
  const Batch one = random_batch(1, 3, random);
  const State old = absorb(State::empty(kernel, 0.2, 3), first, kernel, 0.2, first.X.topRows(130));
  OnlineBound updated(old, one.X, one.y);
  OnlineBound anew(old, one.X, one.y);
  ASSERT_TRUE(updated.factorize(old.kernel, old.noise_variance, old.Z));
  ASSERT_TRUE(anew.factorize(old.kernel, old.noise_variance, old.Z, old.jitter));
  EXPECT_LE(relative_error(updated.value(), anew.value()), kValueTolerance);
  EXPECT_LE(relative_error(updated.gradient().theta, anew.gradient().theta), kGradientTolerance);
  State after = updated.absorb();
  const Matrix L_D = after.L_D;
  ASSERT_TRUE(after.factorize());
  EXPECT_LE(relative_error(L_D, after.L_D), 1e-11);
}

TEST_P(EveryBound, AddingAPointNeverLowersTheBound) {
  for_problems([](const Problem& p) {
    const State old = after_first(p);
    const Matrix all = stacked(p.Z_b, p.second.X);
    OnlineBound bound(old, p.second.X, p.second.y);
    double before = -std::numeric_limits<double>::infinity();
    double first = 0.0;
    for (Index M = p.Z_a.rows(); M <= all.rows(); ++M) {
      ASSERT_TRUE(bound.factorize(old.kernel, old.noise_variance, all.topRows(M), old.jitter));
      EXPECT_GE(bound.value(), before - 1e-9 * std::max(1.0, std::abs(before))) << M;
      before = bound.value();
      if (M == p.Z_a.rows()) first = before;
    }
    // Control: it is not constant, so taking points away does lower it.
    if (GetParam() == "matern12") {
      EXPECT_GT(before, first + 1e-3);
    }
  });
}

TEST_P(EveryBound, TwoBatchesAtTheSameParametersAndPointsAreOneBatch) {
  for_problems([](const Problem& p) {
    const Batch both{stacked(p.first.X, p.second.X), stacked(p.first.y, p.second.y)};
    const Kernel k = p.kernel_old;
    const State first = absorb(p.empty, p.first, k, p.noise_old, p.Z_b);
    OnlineBound later(first, p.second.X, p.second.y);
    OnlineBound once(p.empty, both.X, both.y);
    ASSERT_TRUE(later.factorize(k, p.noise_old, p.Z_b));
    ASSERT_TRUE(once.factorize(k, p.noise_old, p.Z_b));
    const double sum = value(p.empty, p.first, k, p.noise_old, p.Z_b) + later.value();
    EXPECT_LE(relative_error(sum, once.value()), kValueTolerance);
    const State in_two = later.absorb();
    const State in_one = once.absorb();
    EXPECT_LE(relative_error(in_two.A, in_one.A), kValueTolerance);
    EXPECT_LE(relative_error(in_two.c, in_one.c), kValueTolerance);
    EXPECT_LE(relative_error(in_two.F, in_one.F), kValueTolerance);
    // Control: at other parameters in between it is not so.
    const State other = absorb(p.empty, p.first, p.kernel, p.noise, p.Z_b);
    const double mixed = value(p.empty, p.first, p.kernel, p.noise, p.Z_b) +
                         value(other, p.second, k, p.noise_old, p.Z_b);
    EXPECT_GT(relative_error(mixed, once.value()), 1e-6);
  });
}

TEST_P(EveryBound, OrderOfInducingInputsDoesNotMatterAndNestedIsGeneral) {
  for_problems([](const Problem& p) {
    Random random(5);
    const State old = after_first(p);
    // In another order Z_a does not come first, so this is the nested form against the general one.
    const std::vector<Index> order = random.permutation(p.Z_b.rows());
    const Matrix shuffled = permuted(p.Z_b, order);
    ASSERT_NE(shuffled.topRows(p.Z_a.rows()), p.Z_a);
    OnlineBound nested(old, p.second.X, p.second.y);
    OnlineBound general(old, p.second.X, p.second.y);
    ASSERT_TRUE(nested.factorize(p.kernel, p.noise, p.Z_b));
    ASSERT_TRUE(general.factorize(p.kernel, p.noise, shuffled));
    EXPECT_LE(relative_error(general.value(), nested.value()), kValueTolerance);
    EXPECT_LE(relative_error(general.gradient().theta, nested.gradient().theta),
              kGradientTolerance);
    EXPECT_LE(relative_error(general.gradient().noise_variance, nested.gradient().noise_variance),
              kGradientTolerance);
    // So it is for the order within the first batch, of Z and of the data.
    const std::vector<Index> of_Z = random.permutation(p.Z_a.rows());
    const std::vector<Index> of_X = random.permutation(p.first.X.rows());
    const Batch reordered{permuted(p.first.X, of_X), permuted(p.first.y, of_X)};
    const double straight = value(p.empty, p.first, p.kernel_old, p.noise_old, p.Z_a);
    EXPECT_LE(
        relative_error(value(p.empty, reordered, p.kernel_old, p.noise_old, permuted(p.Z_a, of_Z)),
                       straight),
        kValueTolerance);
    // Control: targets that do not go with their inputs.
    if (GetParam() != "constant") {
      EXPECT_GT(
          relative_error(value(p.empty, {reordered.X, p.first.y}, p.kernel_old, p.noise_old, p.Z_a),
                         straight),
          1e-6);
    }
  });
}

TEST_P(EveryBound, MovingInducingInputsThatHaveNotMovedGiveTheNestedValueUpToJitter) {
  for_problems([](const Problem& p) {
    const State old = after_first(p);
    OnlineBound fixed(old, p.second.X, p.second.y);
    OnlineBound moving(old, p.second.X, p.second.y, Inducing::moving);
    ASSERT_TRUE(fixed.factorize(p.kernel, p.noise, p.Z_b));
    ASSERT_TRUE(moving.factorize(p.kernel, p.noise, p.Z_b));
    // b is then a with fresh noise of variance ε, against which the old pseudo-data weigh with
    // D_a⁻¹: a residual of about 2ε tr D_a⁻¹.
    const Matrix P = naive::invert(naive::Past(old).D).matrix.rounded();
    const double weight = std::abs(P.trace()) * moving.factors().jitter;
    EXPECT_LE(std::abs(moving.value() - fixed.value()), 10.0 * weight + 1e-9) << weight;
  });
}

TEST_P(EveryBound, ScalingTargetsAndVariancesShiftsTheBoundByTheLogScale) {
  for_problems([](const Problem& p) {
    constexpr double s = 3.0;
    const Batch first{p.first.X, s * p.first.y};
    const Batch second{p.second.X, s * p.second.y};
    const auto N_first = static_cast<double>(p.first.y.size());
    const auto N_second = static_cast<double>(p.second.y.size());
    const Kernel scaled_old = s * s * p.kernel_old;
    const Kernel scaled = s * s * p.kernel;
    const State empty = State::empty(scaled_old, s * s * p.noise_old, p.Z_a.cols());
    EXPECT_LE(relative_error(value(empty, first, scaled_old, s * s * p.noise_old, p.Z_a),
                             value(p.empty, p.first, p.kernel_old, p.noise_old, p.Z_a) -
                                 N_first * std::log(s)),
              kValueTolerance);
    const State old = after_first(p);
    const State old_scaled = absorb(empty, first, scaled_old, s * s * p.noise_old, p.Z_a);
    const double expected = value(old, p.second, p.kernel, p.noise, p.Z_b) - N_second * std::log(s);
    EXPECT_LE(relative_error(value(old_scaled, second, scaled, s * s * p.noise, p.Z_b), expected),
              kValueTolerance);
    EXPECT_LE(relative_error(optimum(old_scaled, second.X, second.y).value(),
                             optimum(old, p.second.X, p.second.y).value() - N_second * std::log(s)),
              kValueTolerance);
    // Control: the noise must be scaled too.
    EXPECT_GT(relative_error(value(old_scaled, second, scaled, p.noise, p.Z_b), expected), 1e-6);
  });
}

TEST_P(EveryBound, StateHoldsTheOptimalPosterior) {
  for_problems([](const Problem& p) {
    // After one batch q(b) is known in closed form: S⁻¹ = K⁻¹ + K⁻¹ K_bf K_fb K⁻¹/σ²,
    // m = S K⁻¹ K_bf y/σ².
    const State state = after_first(p);
    const naive::Past posterior(state);
    const naive::QuadMatrix K =
        naive::QuadMatrix(naive::matrix(p.twin, p.theta_old, p.Z_a, p.Z_a)) +
        naive::QuadMatrix::identity(p.Z_a.rows(), state.jitter);
    const naive::QuadMatrix K_inv = naive::invert(K).matrix;
    const naive::QuadMatrix B =
        K_inv * naive::QuadMatrix(naive::matrix(p.twin, p.theta_old, p.Z_a, p.first.X));
    const naive::QuadMatrix S =
        naive::invert(naive::add(K_inv, 1.0 / p.noise_old, B * B.transpose())).matrix;
    const Matrix m = (S * B * naive::QuadMatrix(p.first.y)).rounded() / p.noise_old;
    EXPECT_LE(relative_error(posterior.S.rounded(), S.rounded()), kValueTolerance);
    EXPECT_LE(relative_error(posterior.m.rounded(), m), kValueTolerance);
    EXPECT_LE(relative_error(posterior.K.rounded(), K.rounded()), 1e-13);

    // Its parts agree with one another, and factorising it anew changes nothing.
    State again = state;
    ASSERT_TRUE(again.factorize());
    EXPECT_LE(relative_error(again.L_D, state.L_D), 1e-12);
    EXPECT_LE(relative_error(again.w, state.w), 1e-12);
    EXPECT_LE(relative_error(again.F, state.F), 1e-12);
    EXPECT_EQ(state.A, state.A.transpose());
    const Index M = state.size();
    EXPECT_EQ(Matrix(state.L.triangularView<Eigen::StrictlyUpper>()), Matrix::Zero(M, M));
    EXPECT_EQ(Matrix(state.L_D.triangularView<Eigen::StrictlyUpper>()), Matrix::Zero(M, M));
    EXPECT_EQ(state.Z, p.Z_a);
    EXPECT_EQ(theta_of(state.kernel), p.theta_old);
    EXPECT_EQ(state.noise_variance, p.noise_old);
  });
}

// --- Gradients ---------------------------------------------------------------------------------

TEST_P(EveryBound, GradientOfTheFirstBatchIsTheDerivative) {
  for_problems([](const Problem& p) {
    expect_gradient(p.empty, p.first, p.kernel, p.noise, p.Z_a, Inducing::fixed);
    expect_gradient(p.empty, p.first, p.kernel, p.noise, p.Z_a, Inducing::moving);
  });
}

TEST_P(EveryBound, GradientOfTheNestedFormIsTheDerivative) {
  for_problems([](const Problem& p) {
    const State old = after_first(p);
    expect_gradient(old, p.second, p.kernel, p.noise, p.Z_b, Inducing::fixed);
    expect_gradient(old, p.second, p.kernel, p.noise, p.Z_a, Inducing::fixed);
  });
}

TEST_P(EveryBound, GradientOfTheGeneralFormIsTheDerivative) {
  for_problems([](const Problem& p) {
    const State old = after_first(p);
    const Matrix part = stacked(p.Z_b.bottomRows(3), p.Z_a.bottomRows(2));
    expect_gradient(old, p.second, p.kernel, p.noise, part, Inducing::fixed);
    expect_gradient(old, p.second, p.kernel, p.noise, p.Z_b.array() + 0.05, Inducing::moving);
  });
}

TEST_P(EveryBound, GradientAtAGivenJitterIsTheDerivative) {
  for_problems([](const Problem& p) {
    const State old = after_first(p);
    const double jitter = 3.0 * old.jitter;
    OnlineBound bound(old, p.second.X, p.second.y);
    const auto f = [&](const Vector& theta) {
      EXPECT_TRUE(bound.factorize(p.kernel.with_values(theta), p.noise, p.Z_b, jitter));
      return bound.value();
    };
    const double here = f(p.theta);
    EXPECT_EQ(bound.factors().jitter, jitter);
    const Vector gradient = bound.gradient().theta;
    EXPECT_LE(gradient_error(f, p.theta, gradient), kGradientTolerance);
    const double literal = naive::online_bound(p.twin, p.theta, p.noise, naive::Past(old), p.second,
                                               p.Z_b, naive::Jitter{jitter});
    EXPECT_LE(relative_error(here, literal), kValueTolerance);
  });
}

// --- Sizes beyond one block --------------------------------------------------------------------

/// The batch bound in double precision, on Eigen.
double dense_bound(const Kernel& kernel, double noise, const Batch& batch, const Matrix& Z,
                   double jitter) {
  const Index N = batch.X.rows();
  Matrix K_bb = kernel(Z, Z);
  K_bb.diagonal().array() += jitter;
  const Matrix K_fb = kernel(batch.X, Z);
  const Matrix Q = K_fb * K_bb.llt().solve(K_fb.transpose());
  const Eigen::LLT<Matrix> C(Q + noise * Matrix::Identity(N, N));
  return -0.5 * static_cast<double>(N) * naive::kLog2Pi -
         C.matrixLLT().diagonal().array().log().sum() - 0.5 * batch.y.dot(C.solve(batch.y)) -
         0.5 * (kernel.diagonal(batch.X).sum() - Q.trace()) / noise;
}

TEST(Bound, LargeBatchesAreRightAcrossBlocks) {
  // More rows than one block of K̄_fb, more inducing points than one block of a factorisation.
  Random random(21);
  for (const auto& [N, M] : {std::pair<Index, Index>{1100, 20}, {200, 130}, {70, 130}}) {
    SCOPED_TRACE(::testing::Message() << "N = " << N << ", M = " << M);
    const Batch batch = random_batch(N, 4, random);
    const Matrix Z = random.uniform(M, 4, -2.5, 2.5);
    const Kernel kernel = Matern32{1.2, {1.0, 1.3, 0.8, 1.1}} + Constant{0.5};
    const State empty = State::empty(kernel, 0.2, 4);
    OnlineBound bound(empty, batch.X, batch.y);
    ASSERT_TRUE(bound.factorize(kernel, 0.2, Z));
    EXPECT_LE(
        relative_error(bound.value(), dense_bound(kernel, 0.2, batch, Z, bound.factors().jitter)),
        kValueTolerance);
    expect_gradient(empty, batch, kernel, 0.2, Z, Inducing::fixed);

    const State old = bound.absorb();
    const Batch later = random_batch(N, 4, random);
    const Kernel other = Matern32{1.0, {0.9, 1.5, 1.0, 1.2}} + Constant{0.8};
    expect_gradient(old, later, other, 0.3, stacked(Z, later.X.topRows(30)), Inducing::fixed);
    expect_gradient(old, later, other, 0.3, stacked(later.X.topRows(30), Z.topRows(M / 2)),
                    Inducing::fixed);
  }
}

TEST(Bound, GradientOfManyMovingPointsIsTheDerivative) {
  Random random(22);
  const Kernel kernel = Matern52{1.2, 0.7};
  const Batch first = random_batch(60, 2, random);
  const Batch second = random_batch(1030, 2, random);
  const State old = absorb(State::empty(kernel, 0.2, 2), first, kernel, 0.2, first.X.topRows(30));
  expect_gradient(old, second, Matern52{1.0, 0.8}, 0.3, random.uniform(40, 2, -2.5, 2.5),
                  Inducing::moving);
}

// --- Edges -------------------------------------------------------------------------------------

TEST(Bound, AnEmptyBatchTeachesNothing) {
  const Problem p = make_problem("matern52", 3, Layout::ard, {20, 6, 14, 4});
  const State old = after_first(p);
  const Batch none{Matrix(0, 3), Vector(0)};
  OnlineBound bound(old, none.X, none.y);
  ASSERT_TRUE(bound.factorize(old.kernel, old.noise_variance, p.Z_a));
  EXPECT_LE(std::abs(bound.value()), 1e-12);
  EXPECT_LE(std::abs(bound.gradient().noise_variance), 1e-12);
  const State after = bound.absorb();
  EXPECT_LE(relative_error(after.A, old.A), 1e-12);
  EXPECT_LE(relative_error(after.c, old.c), 1e-12);
  EXPECT_LE(std::abs(optimum(old, none.X, none.y).value()), 1e-12);
}

TEST(Bound, WithoutInducingInputsOnlyTheNoiseExplainsTheData) {
  const Problem p = make_problem("se", 3, Layout::ard, {20, 6, 14, 4});
  const auto N = static_cast<double>(p.first.y.size());
  const double expected =
      -0.5 * N * std::log(2.0 * std::numbers::pi * p.noise_old) -
      0.5 * (p.first.y.squaredNorm() + p.kernel_old.diagonal(p.first.X).sum()) / p.noise_old;
  for (const Inducing inducing : {Inducing::fixed, Inducing::moving}) {
    OnlineBound bound(p.empty, p.first.X, p.first.y, inducing);
    ASSERT_TRUE(bound.factorize(p.kernel_old, p.noise_old, Matrix(0, 3)));
    EXPECT_LE(relative_error(bound.value(), expected), 1e-12);
    EXPECT_TRUE(bound.gradient().theta.allFinite());
    EXPECT_EQ(bound.absorb().size(), 0);
  }
}

TEST(Bound, OneBoundFactorisedAgainAndAgainIsTheSameAsANewOne) {
  const Problem p = make_problem("nested", 3, Layout::ard, {20, 6, 14, 4});
  const State old = after_first(p);
  for (const Inducing inducing : {Inducing::fixed, Inducing::moving}) {
    OnlineBound reused(old, p.second.X, p.second.y, inducing);
    const Matrix part = stacked(p.Z_b.bottomRows(3), p.Z_a.bottomRows(2));
    for (const Matrix& Z : {p.Z_b, part, p.Z_a, Matrix(p.Z_b.array() + 0.1), p.Z_b}) {
      for (const Kernel& kernel : {p.kernel, p.kernel_old}) {
        OnlineBound fresh(old, p.second.X, p.second.y, inducing);
        ASSERT_TRUE(reused.factorize(kernel, p.noise, Z));
        ASSERT_TRUE(fresh.factorize(kernel, p.noise, Z));
        EXPECT_EQ(reused.value(), fresh.value());
        const Vector first = flat(reused.gradient(), inducing == Inducing::moving);
        EXPECT_EQ(first, flat(fresh.gradient(), inducing == Inducing::moving));
        EXPECT_EQ(first, flat(reused.gradient(), inducing == Inducing::moving));  // asked twice
      }
    }
    const State once = reused.absorb();
    ASSERT_TRUE(reused.factorize(once.kernel, once.noise_variance, once.Z));
    EXPECT_EQ(reused.absorb().A, once.A);
  }
}

TEST(Bound, ArgumentsThatDoNotFitAreRefused) {
  const State empty = State::empty(SquaredExponential{}, 0.1, 2);
  const Matrix X = Matrix::Zero(3, 2);
  const Vector y = Vector::Zero(3);
  const Matrix wide = Matrix::Zero(3, 3);
  const Vector longer = Vector::Zero(4);
  EXPECT_EQ(message([&] { OnlineBound(empty, wide, y); }),
            "OnlineBound: X has 3 columns, but must have 2 (the model's input dimension)");
  EXPECT_EQ(message([&] { OnlineBound(empty, X, longer); }),
            "OnlineBound: y has 4 rows, but must have 3 (the rows of X)");
  OnlineBound bound(empty, X, y);
  EXPECT_EQ(message([&] { (void)bound.factorize(SquaredExponential{}, 0.1, wide); }),
            "OnlineBound: Z has 3 columns, but must have 2 (the model's input dimension)");
  EXPECT_EQ(message([&] { (void)bound.factorize(SquaredExponential{}, 0.0, X); }),
            "OnlineBound: noise_variance is 0, but must be positive and finite");
  EXPECT_EQ(message([&] { (void)optimum(empty, wide, y); }),
            "optimum: X has 3 columns, but must have 2 (the model's input dimension)");
  EXPECT_EQ(message([&] { (void)optimum_with_jitter(empty, X, y, -0.5); }),
            "optimum: jitter is -0.5, but must be positive");
  const SquaredExponential flat{1.0, {1, 2}};
  EXPECT_EQ(message([&] { (void)State::empty(flat, 0.1, 3); }),
            "kernel: lengthscale of se holds 2 numbers, but the inputs have 3 dimensions");
}

// --- Hard problems -----------------------------------------------------------------------------

struct Hard {
  std::string name;
  Kernel kernel;
  double noise;
  Batch first;
  Batch second;
  Matrix Z_a;
  Matrix Z_new;
};

std::vector<Hard> hard_problems(const std::string& kernel_name) {
  Random random(31);
  const Index D = 2;
  const Kernel kernel = make_twin(kernel_name, D, Layout::ard).kernel;
  const Hard plain{"plain",
                   kernel,
                   0.1,
                   random_batch(16, D, random),
                   random_batch(12, D, random),
                   random.uniform(6, D, -2.5, 2.5),
                   random.uniform(4, D, -2.5, 2.5)};
  std::vector<Hard> problems;

  Hard duplicated = plain;
  duplicated.name = "duplicated inputs";
  duplicated.first.X.bottomRows(8) = plain.first.X.topRows(8);
  duplicated.second.X.bottomRows(6) = plain.second.X.topRows(6);
  duplicated.Z_a = duplicated.first.X.middleRows(4, 8);  // 4 … 11 holds 4 … 7, and 0 … 3
  duplicated.Z_a.bottomRows(2) = duplicated.Z_a.topRows(2);
  duplicated.Z_new = stacked(duplicated.second.X.topRows(3), duplicated.second.X.topRows(3));
  problems.push_back(duplicated);

  Hard close = plain;
  close.name = "inducing points 1e-9 apart";
  close.Z_a = stacked(plain.Z_a, plain.Z_a.array() + 1e-9);
  close.Z_new = stacked(plain.Z_new, plain.Z_new.array() + 1e-9);
  problems.push_back(close);

  const auto& stationary = naive::stationary_names();
  if (std::find(stationary.begin(), stationary.end(), kernel_name) != stationary.end()) {
    for (const double lengthscale : {1e4, 1e-4}) {
      Hard scaled = plain;
      scaled.name = "lengthscale " + std::to_string(lengthscale);
      Vector theta = theta_of(kernel);
      theta.segment(1, D).setConstant(lengthscale);
      scaled.kernel = kernel.with_values(theta);
      problems.push_back(scaled);
    }
  }

  Hard sharp = plain;
  sharp.name = "noise 1e-6 with variance 2000";
  sharp.kernel = 2000.0 * kernel;
  sharp.noise = 1e-6;
  problems.push_back(sharp);

  Hard flat_target = plain;
  flat_target.name = "constant target";
  flat_target.first.y.setConstant(3.0);
  flat_target.second.y.setConstant(3.0);
  problems.push_back(flat_target);

  Hard single = plain;
  single.name = "one data point";
  single.first = {plain.first.X.topRows(1), plain.first.y.head(1)};
  single.second = {plain.second.X.topRows(1), plain.second.y.head(1)};
  single.Z_a = single.first.X;
  single.Z_new = single.second.X;
  problems.push_back(single);
  return problems;
}

/// Finite value and gradient; and the gradient is the derivative, in log θ and log σ², as far as
/// differences can tell: where rounding or curvature drown them, their own error says so.
void expect_sound(const State& old, const Batch& batch, const Kernel& kernel, double noise,
                  const Matrix& Z, Inducing inducing) {
  OnlineBound bound(old, batch.X, batch.y, inducing);
  ASSERT_TRUE(bound.factorize(kernel, noise, Z));
  EXPECT_TRUE(std::isfinite(bound.value()));
  const BoundGradient gradient = bound.gradient();
  EXPECT_TRUE(gradient.theta.allFinite());
  EXPECT_TRUE(std::isfinite(gradient.noise_variance));
  EXPECT_TRUE(gradient.Z.allFinite());

  const Index P = gradient.theta.size();
  Vector u(P + 1);
  u << theta_of(kernel).array().log(), std::log(noise);
  Vector log_gradient(P + 1);
  log_gradient << gradient.theta.cwiseProduct(theta_of(kernel)), gradient.noise_variance * noise;
  const double factor = bound.factors().jitter_factor;
  const auto f = [&](const Vector& v) {
    EXPECT_TRUE(bound.factorize(kernel.with_values(v.head(P).array().exp()), std::exp(v[P]), Z));
    // A different jitter is a different function.
    return bound.factors().jitter_factor == factor ? bound.value()
                                                   : std::numeric_limits<double>::quiet_NaN();
  };
  for (Index i = 0; i <= P; ++i) {
    const testing::Slope slope = testing::extrapolated_slope(f, u, i);
    if (!std::isfinite(slope.error)) continue;
    const double scale = std::max(1.0, std::abs(slope.value));
    EXPECT_LE(std::abs(log_gradient[i] - slope.value), 1e-6 * scale + 10.0 * slope.error)
        << "entry " << i << ": " << log_gradient[i] << ", differences say " << slope.value << " ± "
        << slope.error;
  }
}

TEST_P(EveryBound, HardProblemsHaveFiniteValuesAndRightGradients) {
  for (const Hard& hard : hard_problems(GetParam())) {
    SCOPED_TRACE(GetParam() + ", " + hard.name);
    const State empty = State::empty(hard.kernel, hard.noise, hard.Z_a.cols());
    expect_sound(empty, hard.first, hard.kernel, hard.noise, hard.Z_a, Inducing::fixed);
    expect_sound(empty, hard.first, hard.kernel, hard.noise, hard.Z_a, Inducing::moving);
    const State old = absorb(empty, hard.first, hard.kernel, hard.noise, hard.Z_a);
    const Matrix Z_b = stacked(hard.Z_a, hard.Z_new);
    const Kernel other = hard.kernel.with_values(1.1 * theta_of(hard.kernel));
    expect_sound(old, hard.second, other, 1.2 * hard.noise, Z_b, Inducing::fixed);
    expect_sound(old, hard.second, other, 1.2 * hard.noise, stacked(hard.Z_new, hard.Z_a),
                 Inducing::fixed);
    expect_sound(old, hard.second, other, 1.2 * hard.noise, Z_b, Inducing::moving);
  }
}

TEST_P(EveryBound, HardProblemsKeepTheOrderOfTheBounds) {
  for (const Hard& hard : hard_problems(GetParam())) {
    SCOPED_TRACE(GetParam() + ", " + hard.name);
    const State empty = State::empty(hard.kernel, hard.noise, hard.Z_a.cols());
    const State old = absorb(empty, hard.first, hard.kernel, hard.noise, hard.Z_a);
    OnlineBound bound(old, hard.second.X, hard.second.y);
    ASSERT_TRUE(
        bound.factorize(old.kernel, old.noise_variance, stacked(hard.Z_a, hard.Z_new), old.jitter));
    const auto best = optimum(old, hard.second.X, hard.second.y);
    const auto tight = upper_bound(UpperBound::tight, old, bound.factors(), hard.second.y);
    const auto paper = upper_bound(UpperBound::paper, old, bound.factors(), hard.second.y);
    ASSERT_TRUE(best && tight && paper);
    const double rounding = 1e-6 * std::max({1.0, std::abs(bound.value()), std::abs(*best)});
    EXPECT_LE(bound.value(), *best + rounding);
    EXPECT_LE(*best, *tight + rounding);
    EXPECT_LE(*tight, *paper + rounding);
  }
}

TEST(Bound, WhatCannotBeFactorisedIsReportedAndNeverANumber) {
  Random random(41);
  const Batch batch = random_batch(8, 2, random);
  const Matrix Z = batch.X.topRows(4);
  const Kernel good = SquaredExponential{};
  const State empty = State::empty(good, 0.1, 2);
  const Kernel overflow = Polynomial{1e8, 1e8, 20};
  OnlineBound bound(empty, batch.X, batch.y);
  const Matrix far = 1e12 * Z;
  EXPECT_FALSE(bound.factorize(overflow, 0.1, far));
  // It goes on afterwards.
  ASSERT_TRUE(bound.factorize(good, 0.1, Z));
  EXPECT_TRUE(std::isfinite(bound.value()));

  // Infinite variance of the data alone.
  const Matrix far_X = 1e12 * batch.X;
  OnlineBound of_far(empty, far_X, batch.y);
  EXPECT_FALSE(of_far.factorize(Polynomial{1.0, 1.0, 20}, 0.1, Matrix::Zero(1, 2)));
  EXPECT_FALSE(optimum(State::empty(overflow, 0.1, 2), far_X, batch.y).has_value());

  // Data that are not numbers.
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Batch spoilt = batch;
    spoilt.y[3] = bad;
    OnlineBound of_targets(empty, spoilt.X, spoilt.y);
    EXPECT_FALSE(of_targets.factorize(good, 0.1, Z));
    EXPECT_FALSE(optimum(empty, spoilt.X, spoilt.y).has_value());
    ASSERT_TRUE(bound.factorize(good, 0.1, Z));
    EXPECT_FALSE(upper_bound(UpperBound::tight, empty, bound.factors(), spoilt.y).has_value());
    spoilt = batch;
    spoilt.X(2, 1) = std::numeric_limits<double>::quiet_NaN();
    OnlineBound of_inputs(empty, spoilt.X, spoilt.y);
    EXPECT_FALSE(of_inputs.factorize(good, 0.1, Z));
    EXPECT_FALSE(of_inputs.factorize(good, 0.1, spoilt.X));
  }
}

TEST(Bound, JitterGrowsTenfoldUntilTheFactorisationSucceeds) {
  // A hundred points that are one, seen through a kernel of high degree: K_bb is of rank one to
  // rounding, but rounding errors scale with its size, not with the jitter's.
  Random random(51);
  const Batch batch = random_batch(10, 1, random);
  const Kernel kernel = Polynomial{1.0, 1.0, 20};
  const State empty = State::empty(kernel, 0.1, 1);
  OnlineBound bound(empty, batch.X, batch.y);
  Matrix Z = random.uniform(100, 1, -1e-3, 1e-3);
  Z(0, 0) = 2.0;
  ASSERT_TRUE(bound.factorize(kernel, 0.1, Z));
  const double factor = bound.factors().jitter_factor;
  EXPECT_FALSE(bound.factors().jitter_follows_noise);
  EXPECT_GE(factor, kLeastJitterFactor);
  EXPECT_LE(factor, 1e-3 * (1.0 + 1e-12));
  EXPECT_DOUBLE_EQ(bound.factors().jitter, factor * kernel.diagonal(Z).mean());
  // A jitter that is given is not raised.
  EXPECT_FALSE(bound.factorize(kernel, 0.1, Matrix::Ones(100, 1), 0.0));
}

}  // namespace
}  // namespace ample
