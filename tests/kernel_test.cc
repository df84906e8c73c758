// Every kernel against scalar code written from its formula (support/naive.h), and every pull-back
// against central differences.
#include "ample/kernel.h"

#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ample/threads.h"
#include "linalg.h"
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

// A logarithm is good to 4 ulp, and what goes into the exponential adds a few more.
constexpr double kValueTolerance = 1e-12;
constexpr double kGradientTolerance = 1e-6;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Form {
  Index D;
  Layout layout;
};

/// One kernel by name, in every dimension and layout.
class EveryKernel : public ::testing::TestWithParam<std::string> {
 protected:
  template <class Body>
  void for_forms(const Body& body) const {
    for (const Form& form :
         {Form{1, Layout::isotropic}, Form{3, Layout::isotropic}, Form{3, Layout::ard},
          Form{3, Layout::subset}, Form{19, Layout::isotropic}, Form{19, Layout::ard},
          Form{19, Layout::subset}}) {
      SCOPED_TRACE(::testing::Message() << GetParam() << ", D = " << form.D << ", layout "
                                        << static_cast<int>(form.layout));
      Random random(static_cast<std::uint64_t>(form.D));
      body(make_twin(GetParam(), form.D, form.layout), form.D, random);
    }
  }
};

class StationaryKernel : public EveryKernel {};

std::string name_of(const ::testing::TestParamInfo<std::string>& info) { return info.param; }

INSTANTIATE_TEST_SUITE_P(Kernels, EveryKernel, ::testing::ValuesIn(naive::kernel_names()), name_of);
INSTANTIATE_TEST_SUITE_P(Kernels, StationaryKernel, ::testing::ValuesIn(naive::stationary_names()),
                         name_of);

Vector flat(const Matrix& M) { return M.reshaped(); }

/// The worst relative error entry by entry, small entries too; what underflows may be zero.
double entrywise_error(const Matrix& K, const Matrix& expected) {
  double worst = 0.0;
  for (Index i = 0; i < K.size(); ++i) {
    const double e = expected.reshaped()[i];
    worst = std::max(worst, std::abs(K.reshaped()[i] - e) / std::max(std::abs(e), 1e-300));
  }
  return worst;
}

// --- Values ------------------------------------------------------------------------------------

TEST_P(EveryKernel, MatrixEqualsScalarCode) {
  for_forms([](const Twin& twin, Index D, Random& random) {
    const Matrix X = random.normal(7, D);
    const Matrix Z = random.normal(5, D);
    const Vector theta = theta_of(twin.kernel);
    ASSERT_EQ(theta.size(), static_cast<Index>(twin.size));
    EXPECT_LE(relative_error(twin.kernel(X, Z), naive::matrix(twin, theta, X, Z)), kValueTolerance);
    // So it does at other parameters, which also says that their order is the documented one.
    Vector other = theta;
    for (double& v : other) v *= random.uniform(0.7, 1.4);
    const Matrix K = twin.kernel.with_values(other)(X, Z);
    EXPECT_LE(relative_error(K, naive::matrix(twin, other, X, Z)), kValueTolerance);
    // Control: a parameter off by 1e-7 is seen, each of them.
    for (Index p = 0; p < theta.size(); ++p) {
      Vector off = other;
      off[p] *= 1.0 + 1e-7;
      EXPECT_GT(relative_error(K, naive::matrix(twin, off, X, Z)), kValueTolerance)
          << twin.kernel.parameters()[static_cast<std::size_t>(p)].name;
    }
  });
}

TEST_P(EveryKernel, MatrixIsSymmetricInItsArguments) {
  for_forms([](const Twin& twin, Index D, Random& random) {
    const Matrix X = random.normal(6, D);
    const Matrix Z = random.normal(9, D);
    const Matrix K = twin.kernel(X, Z);
    EXPECT_LE(relative_error(K, twin.kernel(Z, X).transpose()), 1e-14);
  });
}

TEST_P(EveryKernel, LowerTriangleAndDiagonalAreThoseOfTheMatrix) {
  for_forms([](const Twin& twin, Index D, Random& random) {
    const Matrix X = random.normal(9, D);
    const Matrix K = twin.kernel(X, X);
    Matrix lower = Matrix::Constant(9, 9, kNan);
    twin.kernel.evaluate_lower(X, lower);
    const Matrix seen = lower.triangularView<Eigen::Lower>();
    const Matrix expected = K.triangularView<Eigen::Lower>();
    EXPECT_LE(relative_error(seen, expected), 1e-14);
    EXPECT_LE(relative_error(twin.kernel.diagonal(X), K.diagonal()), 1e-14);
    // Control: another point's row is another row (of a constant it is not).
    if (GetParam() != "constant") {
      EXPECT_GT(relative_error(seen.row(8).head(7), expected.row(7).head(7)), 1e-6);
    }
  });
}

TEST_P(EveryKernel, EvaluatesIntoAPartOfALargerMatrix) {
  for_forms([](const Twin& twin, Index D, Random& random) {
    const Matrix points = random.normal(20, D + 2);
    const auto X = points.block(1, 1, 8, D);
    const auto Z = points.block(10, 1, 6, D);
    Matrix whole = Matrix::Constant(12, 9, 7.0);
    twin.kernel.evaluate(X, Z, whole.block(2, 1, 8, 6));
    EXPECT_EQ(whole.block(2, 1, 8, 6), twin.kernel(Matrix(X), Matrix(Z)));
    whole.block(2, 1, 8, 6).setConstant(7.0);
    EXPECT_EQ(whole, Matrix::Constant(12, 9, 7.0));
  });
}

TEST_P(EveryKernel, NoPointsGiveAnEmptyMatrix) {
  for_forms([](const Twin& twin, Index D, Random& random) {
    const Matrix X = random.normal(3, D);
    const Matrix none(0, D);
    EXPECT_EQ(twin.kernel(X, none).cols(), 0);
    EXPECT_EQ(twin.kernel(none, X).rows(), 0);
    EXPECT_EQ(twin.kernel.diagonal(none).size(), 0);
    Matrix lower(0, 0);
    twin.kernel.evaluate_lower(none, lower);
    Vector theta = Vector::Zero(twin.kernel.num_parameters());
    Matrix X_bar = Matrix::Zero(3, D);
    Matrix none_bar(0, D);
    twin.kernel.pull_back(X, none, Matrix(3, 0), {.theta = &theta, .X = &X_bar, .Z = &none_bar});
    twin.kernel.pull_back_lower(none, lower, {.theta = &theta, .X = &none_bar});
    twin.kernel.pull_back_diagonal(none, Vector(0), {.theta = &theta, .X = &none_bar});
    EXPECT_EQ(theta, Vector::Zero(theta.size()));
    EXPECT_EQ(X_bar, Matrix::Zero(3, D));
  });
}

TEST_P(EveryKernel, MatrixIsPositiveSemidefinite) {
  for_forms([](const Twin& twin, Index D, Random& random) {
    const Matrix X = random.normal(40, D);
    const Matrix K = twin.kernel(X, X);
    Matrix a_little_more = K + 1e-9 * K.trace() * Matrix::Identity(40, 40);
    EXPECT_TRUE(cholesky(a_little_more));
  });
}

TEST_P(StationaryKernel, EqualPointsHaveExactlyTheVariance) {
  for_forms([](const Twin& twin, Index D, Random& random) {
    // Far from the origin and not representable, where |x|² + |z|² − 2xᵀz would be garbage.
    const Matrix X = 1e6 * random.normal(11, D);
    const double variance = theta_of(twin.kernel)[0];
    const Matrix K = twin.kernel(X, X);
    EXPECT_EQ(K.diagonal(), Vector::Constant(11, variance));
    EXPECT_EQ(twin.kernel.diagonal(X), Vector::Constant(11, variance));
    EXPECT_NE(K(0, 1), variance);
  });
}

TEST_P(StationaryKernel, CommonOffsetCostsNoDigits) {
  for_forms([](const Twin& twin, Index D, Random& random) {
    // Multiples of 2⁻¹⁰, so that adding 2³⁰ > 1e9 is exact and only the kernel can lose digits.
    const Matrix X = (random.normal(8, D) * 1024.0).array().round() / 1024.0;
    const Matrix Z = (random.normal(5, D) * 1024.0).array().round() / 1024.0;
    const Matrix far_X = X.array() + 0x1p30;
    const Matrix far_Z = Z.array() + 0x1p30;
    EXPECT_LE(relative_error(twin.kernel(far_X, far_Z), twin.kernel(X, Z)), kValueTolerance);
    // Control: an offset of one of the two is a different matrix.
    EXPECT_GT(relative_error(twin.kernel(far_X.array() + 0.25, far_Z), twin.kernel(X, Z)), 1e-6);
  });
}

// Points near each other keep their digits whatever else is in the set, and whatever comes first.
TEST_P(StationaryKernel, PointsFarAwayCostOthersNoDigits) {
  for_forms([](const Twin& twin, Index D, Random& random) {
    const Matrix X = random.normal(8, D);
    Matrix with_far(9, D);
    with_far << Matrix::Constant(1, D, 1e14), X;
    const Matrix near = twin.kernel(with_far, with_far).bottomRightCorner(8, 8);
    EXPECT_LE(relative_error(near, twin.kernel(X, X)), kValueTolerance);
    // Control: differences of numbers that have been moved by that much.
    const Matrix moved = (X.array() + 1e14) - 1e14;
    EXPECT_GT(relative_error(twin.kernel(moved, moved), twin.kernel(X, X)), 1e-6);
  });
}

TEST_P(StationaryKernel, TailsAreAccurateRelativeToThemselves) {
  for_forms([](const Twin& twin, Index D, Random& random) {
    const Matrix X = 6.0 * random.normal(20, D);
    const Matrix Z = 6.0 * random.normal(15, D);
    const Matrix K = twin.kernel(X, Z);
    EXPECT_LE(entrywise_error(K, naive::matrix(twin, theta_of(twin.kernel), X, Z)),
              kValueTolerance);
    EXPECT_TRUE(K.allFinite());
  });
}

TEST(Kernel, TinyLengthscalesUnderflowToZero) {
  Random random(1);
  const Matrix X = random.normal(50, 2);
  const Matrix Z = random.normal(20, 2);
  for (const Kernel& k : {Kernel(SquaredExponential{1, 1e-6}), Kernel(Matern12{1, 1e-6}),
                          Kernel(Matern32{1, 1e-6}), Kernel(Matern52{1, 1e-6})}) {
    EXPECT_EQ(k(X, Z), Matrix::Zero(50, 20));
    Vector theta = Vector::Zero(2);
    Matrix X_bar = Matrix::Zero(50, 2);
    k.pull_back(X, Z, Matrix::Ones(50, 20), {.theta = &theta, .X = &X_bar});
    EXPECT_EQ(theta, Vector::Zero(2));
    EXPECT_EQ(X_bar, Matrix::Zero(50, 2));
  }
}

// --- Pull-backs --------------------------------------------------------------------------------

TEST_P(EveryKernel, PullBackIsTheDerivativeOfTheMatrix) {
  for_forms([](const Twin& twin, Index D, Random& random) {
    const Matrix X = random.normal(6, D);
    const Matrix Z = random.normal(4, D);
    const Matrix K_bar = random.normal(6, 4);
    const Vector theta = theta_of(twin.kernel);
    Vector theta_bar = Vector::Zero(theta.size());
    Matrix X_bar = Matrix::Zero(6, D);
    Matrix Z_bar = Matrix::Zero(4, D);
    twin.kernel.pull_back(X, Z, K_bar, {.theta = &theta_bar, .X = &X_bar, .Z = &Z_bar});

    const auto of_theta = [&](const Vector& u) {
      return twin.kernel.with_values(u)(X, Z).cwiseProduct(K_bar).sum();
    };
    const auto of_X = [&](const Vector& u) {
      return twin.kernel(u.reshaped(6, D), Z).cwiseProduct(K_bar).sum();
    };
    const auto of_Z = [&](const Vector& u) {
      return twin.kernel(X, u.reshaped(4, D)).cwiseProduct(K_bar).sum();
    };
    EXPECT_LE(gradient_error(of_theta, theta, theta_bar), kGradientTolerance);
    EXPECT_LE(gradient_error(of_X, flat(X), flat(X_bar)), kGradientTolerance);
    EXPECT_LE(gradient_error(of_Z, flat(Z), flat(Z_bar)), kGradientTolerance);
    // Control: an error of 1e-4 in any one parameter is seen.
    for (Index p = 0; p < theta.size(); ++p) {
      Vector off = theta_bar;
      off[p] += 1e-4 * std::max(1.0, std::abs(off[p]));
      EXPECT_GT(gradient_error(of_theta, theta, off), 10.0 * kGradientTolerance);
    }
  });
}

TEST_P(EveryKernel, PullBackOfTheLowerTriangleIsTheDerivativeOfTheSymmetricMatrix) {
  for_forms([](const Twin& twin, Index D, Random& random) {
    const Matrix X = random.normal(6, D);
    const Matrix half = random.normal(6, 6);
    const Matrix K_bar = half + half.transpose();
    Matrix lower = K_bar;
    lower.triangularView<Eigen::StrictlyUpper>().setConstant(kNan);  // is not read
    const Vector theta = theta_of(twin.kernel);
    Vector theta_bar = Vector::Zero(theta.size());
    Matrix X_bar = Matrix::Zero(6, D);
    twin.kernel.pull_back_lower(X, lower, {.theta = &theta_bar, .X = &X_bar});

    const auto of_theta = [&](const Vector& u) {
      return twin.kernel.with_values(u)(X, X).cwiseProduct(K_bar).sum();
    };
    const auto of_X = [&](const Vector& u) {
      const Matrix moved = u.reshaped(6, D);
      return twin.kernel(moved, moved).cwiseProduct(K_bar).sum();
    };
    EXPECT_LE(gradient_error(of_theta, theta, theta_bar), kGradientTolerance);
    EXPECT_LE(gradient_error(of_X, flat(X), flat(X_bar)), kGradientTolerance);
    // Control: the derivative through one argument alone is not that through both.
    if (GetParam() != "constant") {
      Matrix one = Matrix::Zero(6, D);
      twin.kernel.pull_back(X, X, K_bar, {.X = &one});
      EXPECT_GT(relative_error(one, X_bar), 1e-4);
      EXPECT_LE(relative_error(2.0 * one, X_bar), 1e-12);
    }
  });
}

TEST_P(EveryKernel, PullBackOfTheDiagonalIsItsDerivative) {
  for_forms([](const Twin& twin, Index D, Random& random) {
    const Matrix X = random.normal(6, D);
    const Vector k_bar = random.normal(6);
    const Vector theta = theta_of(twin.kernel);
    Vector theta_bar = Vector::Zero(theta.size());
    Matrix X_bar = Matrix::Zero(6, D);
    twin.kernel.pull_back_diagonal(X, k_bar, {.theta = &theta_bar, .X = &X_bar});

    const auto of_theta = [&](const Vector& u) {
      return twin.kernel.with_values(u).diagonal(X).dot(k_bar);
    };
    const auto of_X = [&](const Vector& u) {
      return twin.kernel.diagonal(u.reshaped(6, D)).dot(k_bar);
    };
    EXPECT_LE(gradient_error(of_theta, theta, theta_bar), kGradientTolerance);
    EXPECT_LE(gradient_error(of_X, flat(X), flat(X_bar)), kGradientTolerance);
    // The same by way of the matrix with k̄ on its diagonal.
    Vector matrix_bar = Vector::Zero(theta.size());
    twin.kernel.pull_back_lower(X, Matrix(k_bar.asDiagonal()), {.theta = &matrix_bar});
    EXPECT_LE(relative_error(theta_bar, matrix_bar), 1e-12);
    // Control.
    const Vector off = theta_bar.array() + 1e-4 * theta_bar.array().abs().max(1.0);
    EXPECT_GT(gradient_error(of_theta, theta, off), 10.0 * kGradientTolerance);
  });
}

TEST_P(EveryKernel, PullBackAddsAndComputesOnlyWhatIsAskedFor) {
  for_forms([](const Twin& twin, Index D, Random& random) {
    const Matrix X = random.normal(5, D);
    const Matrix Z = random.normal(4, D);
    const Matrix K_bar = random.normal(5, 4);
    const Index P = twin.kernel.num_parameters();
    Vector theta = Vector::Zero(P);
    Matrix X_bar = Matrix::Zero(5, D);
    Matrix Z_bar = Matrix::Zero(4, D);
    twin.kernel.pull_back(X, Z, K_bar, {.theta = &theta, .X = &X_bar, .Z = &Z_bar});

    const Vector theta_before = random.normal(P);
    const Matrix X_before = random.normal(5, D);
    const Matrix Z_before = random.normal(4, D);
    Vector theta_alone = theta_before;
    Matrix X_alone = X_before;
    Matrix Z_alone = Z_before;
    twin.kernel.pull_back(X, Z, K_bar, {.theta = &theta_alone});
    twin.kernel.pull_back(X, Z, K_bar, {.X = &X_alone});
    twin.kernel.pull_back(X, Z, K_bar, {.Z = &Z_alone});
    twin.kernel.pull_back(X, Z, K_bar, {});
    EXPECT_LE(relative_error(theta_alone, theta_before + theta), 1e-13);
    EXPECT_LE(relative_error(X_alone, X_before + X_bar), 1e-13);
    EXPECT_LE(relative_error(Z_alone, Z_before + Z_bar), 1e-13);
  });
}

// --- Sizes that cross blocks and chunks, and threads -------------------------------------------

/// Restores the limit on threads.
class Threads {
 public:
  explicit Threads(int count) : before_(threads()) { set_threads(count); }
  ~Threads() { set_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

struct Adjoints {
  Vector theta;
  Matrix X;
  Matrix Z;
};

Adjoints pull_back(const Kernel& k, const Matrix& X, const Matrix& Z, const Matrix& K_bar) {
  Adjoints out{Vector::Zero(k.num_parameters()), Matrix::Zero(X.rows(), X.cols()),
               Matrix::Zero(Z.rows(), Z.cols())};
  k.pull_back(X, Z, K_bar, {.theta = &out.theta, .X = &out.X, .Z = &out.Z});
  return out;
}

/// The same from tiles that lie within one chunk of one block, as the tests above have them.
Adjoints pull_back_in_tiles(const Kernel& k, const Matrix& X, const Matrix& Z,
                            const Matrix& K_bar) {
  constexpr Index kTile = 100;
  Adjoints out{Vector::Zero(k.num_parameters()), Matrix::Zero(X.rows(), X.cols()),
               Matrix::Zero(Z.rows(), Z.cols())};
  for (Index i = 0; i < X.rows(); i += kTile) {
    for (Index j = 0; j < Z.rows(); j += kTile) {
      const Index h = std::min(kTile, X.rows() - i);
      const Index w = std::min(kTile, Z.rows() - j);
      const Adjoints part =
          pull_back(k, X.middleRows(i, h), Z.middleRows(j, w), K_bar.block(i, j, h, w));
      out.theta += part.theta;
      out.X.middleRows(i, h) += part.X;
      out.Z.middleRows(j, w) += part.Z;
    }
  }
  return out;
}

struct Shape {
  Index rows;
  Index cols;
};

TEST_P(EveryKernel, LargeMatricesEqualScalarCodeWithAnyNumberOfThreads) {
  constexpr Index D = 19;
  Random random(7);
  const Twin twin = make_twin(GetParam(), D, Layout::ard);
  const Vector theta = theta_of(twin.kernel);
  for (const Shape& shape : {Shape{600, 70}, Shape{1100, 40}, Shape{3, 2000}}) {
    SCOPED_TRACE(::testing::Message() << shape.rows << "×" << shape.cols);
    const Matrix X = random.normal(shape.rows, D);
    const Matrix Z = random.normal(shape.cols, D);
    Matrix one;
    Matrix two;
    {
      const Threads use(1);
      one = twin.kernel(X, Z);
    }
    {
      const Threads use(2);
      two = twin.kernel(X, Z);
    }
    EXPECT_EQ(one, two);
    const Matrix expected = naive::matrix(twin, theta, X, Z);
    EXPECT_LE(relative_error(one, expected), kValueTolerance);
    // Control: one entry in a far corner.
    one(shape.rows - 1, shape.cols - 1) += 1e-9;
    EXPECT_GT(relative_error(one, expected), kValueTolerance);
  }
}

TEST_P(EveryKernel, LargePullBacksAreTheSumOfSmallOnesWithAnyNumberOfThreads) {
  constexpr Index D = 19;
  // Sums of 40 000 terms of random sign, in another order.
  constexpr double kSumTolerance = 1e-11;
  Random random(8);
  const Kernel k = make_twin(GetParam(), D, Layout::ard).kernel;
  for (const Shape& shape : {Shape{600, 70}, Shape{1100, 40}, Shape{3, 2000}}) {
    SCOPED_TRACE(::testing::Message() << shape.rows << "×" << shape.cols);
    const Matrix X = random.normal(shape.rows, D);
    const Matrix Z = random.normal(shape.cols, D);
    const Matrix K_bar = random.normal(shape.rows, shape.cols);
    const Adjoints tiles = pull_back_in_tiles(k, X, Z, K_bar);
    for (const int count : {1, 2, 3}) {
      const Threads use(count);
      const Adjoints whole = pull_back(k, X, Z, K_bar);
      EXPECT_LE(relative_error(whole.theta, tiles.theta), kSumTolerance) << count << " threads";
      EXPECT_LE(relative_error(whole.X, tiles.X), kSumTolerance) << count << " threads";
      EXPECT_LE(relative_error(whole.Z, tiles.Z), kSumTolerance) << count << " threads";
    }
  }
}

TEST_P(EveryKernel, LargeLowerTrianglesAgreeWithTheWholeMatrixWithAnyNumberOfThreads) {
  constexpr Index D = 19;
  constexpr Index N = 333;
  Random random(9);
  const Kernel k = make_twin(GetParam(), D, Layout::ard).kernel;
  const Matrix X = random.normal(N, D);
  const Matrix half = random.normal(N, N);
  const Matrix K_bar = half + half.transpose();
  const Matrix K = k(X, X).triangularView<Eigen::Lower>();
  const Adjoints whole = pull_back(k, X, X, K_bar);
  for (const int count : {1, 2, 3}) {
    const Threads use(count);
    Matrix lower(N, N);
    k.evaluate_lower(X, lower);
    EXPECT_LE(relative_error(Matrix(lower.triangularView<Eigen::Lower>()), K), 1e-14);
    Vector theta = Vector::Zero(k.num_parameters());
    Matrix X_bar = Matrix::Zero(N, D);
    k.pull_back_lower(X, K_bar, {.theta = &theta, .X = &X_bar});
    EXPECT_LE(relative_error(theta, whole.theta), 1e-11) << count << " threads";
    EXPECT_LE(relative_error(X_bar, whole.X + whole.Z), 1e-11) << count << " threads";
  }
}

TEST(Kernel, PullBackIsTheSameInEveryRun) {
  Random random(10);
  const Kernel k = make_twin("nested", 19, Layout::ard).kernel;
  const Matrix X = random.normal(600, 19);
  const Matrix Z = random.normal(70, 19);
  const Matrix K_bar = random.normal(600, 70);
  const Threads use(2);
  const Adjoints first = pull_back(k, X, Z, K_bar);
  const Adjoints again = pull_back(k, X, Z, K_bar);
  EXPECT_EQ(first.theta, again.theta);
  EXPECT_EQ(first.X, again.X);
  EXPECT_EQ(first.Z, again.Z);
}

// --- Parameters --------------------------------------------------------------------------------

std::vector<std::string> names(const Kernel& k) {
  std::vector<std::string> out;
  for (const Parameter& p : k.parameters()) out.push_back(p.name);
  return out;
}

TEST(Kernel, ParametersAreNamedByLeafAndNumberedWhenALeafRecurs) {
  const Kernel k = SquaredExponential{1.0, {1, 2}} + Constant{3} * SquaredExponential{4.0, 5.0} +
                   2.0 * pow(Periodic{}, 2) + SquaredExponential{};
  EXPECT_EQ(names(k),
            (std::vector<std::string>{"se.variance", "se.lengthscale[0]", "se.lengthscale[1]",
                                      "constant.variance", "se_2.variance", "se_2.lengthscale",
                                      "periodic.variance", "periodic.lengthscale",
                                      "periodic.period", "se_3.variance", "se_3.lengthscale"}));
  EXPECT_EQ(names(ArcCosine{}),
            (std::vector<std::string>{"arccos.variance", "arccos.weight_variance",
                                      "arccos.bias_variance"}));
  EXPECT_EQ(names(RationalQuadratic{}),
            (std::vector<std::string>{"rq.variance", "rq.lengthscale", "rq.alpha"}));
  EXPECT_EQ(names(Polynomial{}),
            (std::vector<std::string>{"polynomial.variance", "polynomial.offset"}));
  EXPECT_EQ(k.num_parameters(), 11);
}

TEST(Kernel, ParametersCarryValueBoundsAndFixedFlag) {
  const Kernel k = Matern52{Positive(2).within(0.5, 8), Positive(3).fixed()};
  const auto p = k.parameters();
  EXPECT_EQ(p[0].value, 2.0);
  EXPECT_EQ(p[0].lower, 0.5);
  EXPECT_EQ(p[0].upper, 8.0);
  EXPECT_FALSE(p[0].fixed);
  EXPECT_EQ(p[1].value, 3.0);
  EXPECT_EQ(p[1].lower, Positive::kDefaultLower);
  EXPECT_EQ(p[1].upper, Positive::kDefaultUpper);
  EXPECT_TRUE(p[1].fixed);
}

TEST(Kernel, ParametersKnowTheirKind) {
  using enum Parameter::Kind;
  const auto kinds = [](const Kernel& k) {
    std::vector<Parameter::Kind> out;
    for (const Parameter& p : k.parameters()) out.push_back(p.kind);
    return out;
  };
  using Kinds = std::vector<Parameter::Kind>;
  const Kernel se = SquaredExponential{.lengthscale = {1, 2}};
  EXPECT_EQ(kinds(se), (Kinds{variance, lengthscale, lengthscale}));
  EXPECT_EQ(kinds(Periodic{}), (Kinds{variance, lengthscale, period}));
  EXPECT_EQ(kinds(RationalQuadratic{}), (Kinds{variance, lengthscale, shape}));
  EXPECT_EQ(kinds(Polynomial{}), (Kinds{weight, offset}));
  EXPECT_EQ(kinds(ArcCosine{}), (Kinds{variance, weight, offset}));
  EXPECT_EQ(kinds(Constant{} * pow(Matern32{}, 2) + 2.0 * Kernel(Linear{})),
            (Kinds{variance, variance, lengthscale, weight}));
}

TEST_P(EveryKernel, EqualityIsOfValueAndInstancesAreCopies) {
  for_forms([](const Twin& twin, Index, Random&) {
    const Kernel& k = twin.kernel;
    const Kernel copy = k;  // NOLINT(performance-unnecessary-copy-initialization)
    EXPECT_TRUE(copy == k && copy.same_instance(k));
    const Kernel again = k.with_values(theta_of(k));
    EXPECT_TRUE(again == k && !again.same_instance(k));
    EXPECT_FALSE(k == k * k || k == 2.0 * k);
    for (Index p = 0; p < k.num_parameters(); ++p) {
      Vector theta = theta_of(k);
      theta[p] = std::nextafter(theta[p], 2.0 * theta[p]);
      EXPECT_FALSE(k.with_values(theta) == k);
    }
  });
}

TEST(Kernel, EqualityCountsFormAndBounds) {
  EXPECT_FALSE(Kernel(Matern32{}) == Kernel(Matern52{}));
  EXPECT_FALSE(Kernel(Polynomial{.degree = 2}) == Kernel(Polynomial{.degree = 3}));
  EXPECT_FALSE(Kernel(Constant{1}) == Kernel(Constant{Positive(1).fixed()}));
  EXPECT_FALSE(Kernel(Constant{1}) == Kernel(Constant{Positive(1).within(0.5, 2)}));
  EXPECT_FALSE(Kernel(Linear{}) == Kernel(Linear{.dims = {0}}));
}

TEST_P(EveryKernel, WithValuesChangesValuesAndNothingElse) {
  for_forms([](const Twin& twin, Index, Random& random) {
    Vector values = theta_of(twin.kernel);
    for (double& v : values) v *= random.uniform(0.5, 2.0);
    const Kernel other = twin.kernel.with_values(values);
    EXPECT_EQ(theta_of(other), values);
    EXPECT_EQ(names(other), names(twin.kernel));
    EXPECT_EQ(theta_of(other.with_values(theta_of(twin.kernel))), theta_of(twin.kernel));
  });
}

TEST(Kernel, WithValuesKeepsBoundsAndRefusesWhatLiesOutside) {
  const Kernel k = Matern52{Positive(2).within(0.5, 8), Positive(3).fixed()} + Linear{{1, 2}};
  const Kernel other = k.with_values(Vector{{8.0, 4.0, 5.0, 6.0}});
  EXPECT_EQ(other.parameters()[0].upper, 8.0);
  EXPECT_TRUE(other.parameters()[1].fixed);
  const auto refusal = [&](const Vector& values) {
    return message([&] { (void)k.with_values(values); });
  };
  EXPECT_EQ(refusal(Vector{{9.0, 3.0, 1.0, 2.0}}),
            "matern52: variance is 9, but must lie in [0.5, 8]");
  EXPECT_EQ(refusal(Vector{{1.0, kNan, 1.0, 2.0}}),
            "matern52: lengthscale is nan, but must lie in [1e-06, 100000000]");
  EXPECT_EQ(refusal(Vector{{1.0, 1.0, 1.0, -2.0}}),
            "linear: variance is -2, but must lie in [1e-06, 100000000]");
  EXPECT_EQ(refusal(Vector{{1.0, 1.0, 1.0}}),
            "kernel: the parameter vector has 3 rows, but must have 4 (the kernel's parameters)");
}

TEST(Kernel, ABadLeafIsRefusedWithAMessageThatSaysWhatWhereAndWhy) {
  const auto refusal = [](const auto& leaf) { return message([&] { (void)Kernel(leaf); }); };
  EXPECT_EQ(refusal(SquaredExponential{0.0}),
            "se: variance is 0, but must lie in [1e-06, 100000000]");
  EXPECT_EQ(refusal(SquaredExponential{kInfinity}),
            "se: variance is inf, but must lie in [1e-06, 100000000]");
  EXPECT_EQ(refusal(Periodic{.period = {1, 2}}),
            "periodic: period holds 2 numbers, but must hold one");
  EXPECT_EQ(refusal(SquaredExponential{1.0, Positive(std::vector<double>{})}),
            "se: lengthscale is empty, but must hold a number");
  EXPECT_EQ(
      refusal(Matern32{Positive(1).within(2, 1)}),
      "matern32: the bounds of variance are [2, 1], but must be positive, finite and in order");
  EXPECT_EQ(
      refusal(Matern32{Positive(1).within(0, 2)}),
      "matern32: the bounds of variance are [0, 2], but must be positive, finite and in order");
  EXPECT_EQ(refusal(Polynomial{.degree = 0}), "polynomial: degree is 0, but must be from 1 to 20");
  EXPECT_EQ(refusal(ArcCosine{.order = 3}), "arccos: order is 3, but must be from 0 to 2");
  EXPECT_EQ(refusal(Linear{1.0, {0, 1, 0}}), "linear: dims holds 0 twice");
  EXPECT_EQ(refusal(Linear{1.0, {-1}}), "linear: dims holds -1, but dimensions count from 0");
  EXPECT_EQ(refusal(Matern12{1.0, {1, 2, 3}, {0, 1}}),
            "matern12: a parameter holds 3 numbers, but dims names 2 dimensions");
  EXPECT_EQ(message([] { (void)pow(Kernel(Linear{}), 0); }),
            "kernel: the exponent is 0, but must be from 1 to 20");
  EXPECT_EQ(message([] { (void)(-1.0 * Kernel(Linear{})); }),
            "kernel: a factor is -1, but must be positive and finite");
}

TEST(Kernel, InputsMustSuitDimsAndArd) {
  const Kernel picked = Constant{1} + SquaredExponential{1.0, 1.0, {0, 4}};
  picked.check_dimension(5);
  EXPECT_EQ(message([&] { picked.check_dimension(4); }),
            "kernel: se looks at dimension 4, but the inputs have 4 (counted from 0)");
  const Kernel ard = Matern32{1.0, {1, 2, 3}};
  ard.check_dimension(3);
  EXPECT_EQ(message([&] { ard.check_dimension(1); }),
            "kernel: lengthscale of matern32 holds 3 numbers, but the inputs have 1 dimension");
  EXPECT_EQ(message([&] { ard.check_dimension(0); }), "kernel: the inputs have no columns");
  EXPECT_EQ(message([&] { (void)ard(Matrix::Zero(2, 4), Matrix::Zero(2, 4)); }),
            "kernel: lengthscale of matern32 holds 3 numbers, but the inputs have 4 dimensions");
  EXPECT_EQ(message([&] { (void)ard(Matrix::Zero(2, 3), Matrix::Zero(2, 1)); }),
            "kernel: Z has 1 column, but must have 3 (as X)");
  Matrix K(2, 2);
  EXPECT_EQ(message([&] { ard.evaluate(Matrix::Zero(3, 3), Matrix::Zero(2, 3), K); }),
            "kernel: K has 2 rows, but must have 3 (the points of X)");
  Vector theta(3);
  EXPECT_EQ(
      message([&] { ard.pull_back(Matrix::Zero(2, 3), Matrix::Zero(2, 3), K, {.theta = &theta}); }),
      "pull_back: theta has 3 entries, but must have 4 (the kernel's parameters)");
  Matrix X_bar(2, 2);
  EXPECT_EQ(
      message([&] { ard.pull_back(Matrix::Zero(2, 3), Matrix::Zero(2, 3), K, {.X = &X_bar}); }),
      "pull_back: the adjoint of X is 2×2, but must be 2×3");
}

TEST(Kernel, ThreadsMustBeAtLeastOne) {
  EXPECT_EQ(message([] { set_threads(0); }), "set_threads: got 0, but must be at least 1");
}

TEST(Kernel, WithoutConstantDropsAdditiveConstantsOnly) {
  Random random(11);
  const Matrix X = random.normal(6, 2);
  const auto same = [&](const Kernel& a, const Kernel& b) { return a(X, X) == b(X, X); };
  const Kernel se = SquaredExponential{1.5, 0.8};
  const Kernel m = Matern32{0.5, 2.0};
  EXPECT_TRUE(same((Constant{5} + se).without_constant(), se));
  EXPECT_TRUE(same((se + Constant{5}).without_constant(), se));
  EXPECT_TRUE(same((se + (Constant{5} + (m + Constant{2}))).without_constant(), se + m));
  EXPECT_TRUE(same((3.0 * (Constant{5} + se)).without_constant(), 3.0 * se));
  EXPECT_TRUE(same(
      ((Constant{2} * Constant{3}) + pow(Kernel(Constant{2}), 3) + se).without_constant(), se));
  // A constant factor is a scale, and a constant inside a product or a power is not additive.
  EXPECT_TRUE(same((Constant{5} * se).without_constant(), Constant{5} * se));
  EXPECT_TRUE(same(((Constant{5} + se) * m).without_constant(), (Constant{5} + se) * m));
  EXPECT_TRUE(same(pow(Constant{5} + se, 2).without_constant(), pow(Constant{5} + se, 2)));
  // Nothing else in it: itself.
  EXPECT_TRUE(same(Kernel(Constant{5}).without_constant(), Constant{5}));
  EXPECT_FALSE(same((Constant{5} + se).without_constant(), Constant{5} + se));
}

TEST(Kernel, PowerHasOneSetOfParametersAndProductTwo) {
  Random random(12);
  const Matrix X = random.normal(6, 2);
  const Kernel k = Matern52{1.5, 0.8};
  EXPECT_EQ(pow(k, 2).num_parameters(), 2);
  EXPECT_EQ((k * k).num_parameters(), 4);
  EXPECT_LE(relative_error(pow(k, 2)(X, X), (k * k)(X, X)), 1e-14);
  EXPECT_LE(relative_error(pow(k, 1)(X, X), k(X, X)), 0.0);
  EXPECT_LE(relative_error((k * 2.0)(X, X), (k + k)(X, X)), 1e-14);
}

}  // namespace
}  // namespace ample
