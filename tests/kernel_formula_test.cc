// Kernels from outside: a formula of one's own against the library's, what registration refuses,
// and what kernel_faults() sees. tests/package/custom_kernel.cc is the same from an installed
// library.
#include "ample/kernel_formula.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "ample/kernel_check.h"
#include "ample/snapshot.h"
#include "safetensors.h"
#include "support/check_gradient.h"
#include "support/message.h"
#include "support/naive.h"
#include "support/random.h"

namespace ample {
namespace {

using testing::message;
using testing::Random;
using testing::relative_error;

constexpr double kTolerance = 1e-13;

/// What is wrong with it.
enum class Flaw {
  none,
  not_symmetric,
  wrong_diagonal,
  not_finite,
  sees_its_neighbours,
  not_positive,
  wrong_lengthscale,
  wrong_point,
  wrong_other_point,
  replaces_instead_of_adding,
  wrong_diagonal_derivative,
};

/// The squared exponential once more, entry by entry, with a shape that does nothing but be there:
/// σ² exp(−s/2)^shape. `flaw` spoils it.
class Again : public KernelFormula {
 public:
  explicit Again(std::string name, Flaw flaw = Flaw::none) : name_(std::move(name)), flaw_(flaw) {}

  [[nodiscard]] KernelSignature signature() const override {
    using Kind = Parameter::Kind;
    return {.name = name_,
            .fields = {{.name = "variance", .kind = Kind::variance},
                       {.name = "lengthscale", .kind = Kind::lengthscale, .per_dimension = true},
                       {.name = "shape",
                        .kind = Kind::shape,
                        .initial = Positive(1).within(0.1, 2),
                        .largest = 2.0}},
            .option = KernelSignature::Option{"times", 1, 3, 1}};
  }
  void evaluate(const KernelValues& theta, const MatrixRef& X, const MatrixRef& Z,
                Eigen::Ref<Matrix> K) const override {
    for (Index i = 0; i < K.rows(); ++i) {
      for (Index j = 0; j < K.cols(); ++j) K(i, j) = k(theta, X, Z, i, j);
    }
    if (flaw_ == Flaw::not_symmetric) K.array() += 0.1 * X(0, 0);
    if (flaw_ == Flaw::sees_its_neighbours) K.array() += 0.1 * static_cast<double>(K.size());
    if (flaw_ == Flaw::not_positive) K.array() -= 2.0;
    if (flaw_ == Flaw::not_finite) K(0, 0) = std::nan("");
  }
  void diagonal(const KernelValues& theta, const MatrixRef&, Eigen::Ref<Vector> k) const override {
    k.setConstant(theta(0) * theta.option());
    if (flaw_ == Flaw::wrong_diagonal) k.array() += 1e-3;
    if (flaw_ == Flaw::not_positive) k.array() -= 2.0;
  }
  void pull_back(const KernelValues& theta, const MatrixRef& X, const MatrixRef& Z,
                 const MatrixRef& K_bar, const KernelAdjoint& into) const override {
    if (flaw_ == Flaw::replaces_instead_of_adding && into.X != nullptr) into.X->setZero();
    for (Index i = 0; i < K_bar.rows(); ++i) {
      for (Index j = 0; j < K_bar.cols(); ++j) {
        const double value = K_bar(i, j) * k(theta, X, Z, i, j);
        double s = 0.0;
        for (Index d = 0; d < X.cols(); ++d) {
          const double l = theta(1, d);
          const double delta = X(i, d) - Z(j, d);
          s += delta * delta / (l * l);
          const double bend = flaw_ == Flaw::wrong_lengthscale ? 1.01 : 1.0;
          into.add(1, d, bend * value * theta(2) * delta * delta / (l * l * l));
          const double slope = value * theta(2) * delta / (l * l);
          if (into.X != nullptr) (*into.X)(i, d) -= flaw_ == Flaw::wrong_point ? 0.0 : slope;
          if (into.Z != nullptr) (*into.Z)(j, d) += flaw_ == Flaw::wrong_other_point ? 0.0 : slope;
        }
        into.add(0, value / theta(0));
        into.add(2, -0.5 * s * value);
      }
    }
  }
  void pull_back_diagonal(const KernelValues& theta, const MatrixRef&, const VectorRef& k_bar,
                          const KernelAdjoint& into) const override {
    into.add(0, theta.option() * k_bar.sum());
    if (flaw_ == Flaw::wrong_diagonal_derivative) into.add(1, 0, 1e-3);
  }

 private:
  static double k(const KernelValues& theta, const MatrixRef& X, const MatrixRef& Z, Index i,
                  Index j) {
    double s = 0.0;
    for (Index d = 0; d < X.cols(); ++d) {
      s += std::pow((X(i, d) - Z(j, d)) / theta(1, d), 2);
    }
    return theta.option() * theta(0) * std::exp(-0.5 * theta(2) * s);
  }

  std::string name_;
  Flaw flaw_;
};

class OwnKernel : public ::testing::Test {
 protected:
  OwnKernel() {
    static std::once_flag once;
    std::call_once(once, [] { register_kernel(std::make_shared<Again>("again")); });
  }
};

/// Own and library's, in several forms.
struct Pair {
  Kernel own;
  Kernel library;
};
std::vector<Pair> pairs() {
  const Positive fixed = Positive(1).within(0.1, 2).fixed();
  return {
      {make_kernel("again", {1.3, 0.7, fixed}),
       SquaredExponential{.variance = 1.3, .lengthscale = 0.7}},
      {make_kernel("again", {1.3, Positive{0.7, 2.0, 1.1}, fixed}),
       SquaredExponential{.variance = 1.3, .lengthscale = {0.7, 2.0, 1.1}}},
      {make_kernel("again", {1.3, Positive{0.7, 2.0}, fixed}, {2, 0}),
       SquaredExponential{.variance = 1.3, .lengthscale = {0.7, 2.0}, .dims = {2, 0}}},
      {make_kernel("again", {1.3, 0.7, fixed}, {1}),
       SquaredExponential{.variance = 1.3, .lengthscale = 0.7, .dims = {1}}},
      {Constant{2} * make_kernel("again", {1.3, 0.7, fixed}, {1}) + Matern32{},
       Constant{2} * SquaredExponential{.variance = 1.3, .lengthscale = 0.7, .dims = {1}} +
           Matern32{}},
  };
}

/// dF/dθ without the shape, which the library's kernel does not have.
Vector without_shape(const Kernel& kernel, const Vector& theta) {
  std::vector<double> kept;
  const std::vector<Parameter> parameters = kernel.parameters();
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    if (parameters[p].kind != Parameter::Kind::shape) {
      kept.push_back(theta[static_cast<Index>(p)]);
    }
  }
  return Eigen::Map<Vector>(kept.data(), static_cast<Index>(kept.size()));
}

TEST_F(OwnKernel, IsTheLibrarysToTheLastDigits) {
  Random random(1);
  const Matrix X = random.normal(40, 3);
  const Matrix Z = random.normal(30, 3);
  const Matrix K_bar = random.normal(40, 30);
  const Matrix half = random.normal(40, 40);
  const Matrix square_bar = half + half.transpose();
  for (const Pair& pair : pairs()) {
    SCOPED_TRACE(pair.own.to_string());
    EXPECT_LE(relative_error(pair.own(X, Z), pair.library(X, Z)), kTolerance);
    EXPECT_LE(relative_error(pair.own(X.row(3), Z), pair.library(X.row(3), Z)), kTolerance);
    EXPECT_LE(relative_error(pair.own.diagonal(X), pair.library.diagonal(X)), kTolerance);
    const auto pulled = [&](const Kernel& k) {
      std::vector<Matrix> all;
      Vector theta = Vector::Zero(k.num_parameters());
      Matrix X_bar = Matrix::Zero(40, 3);
      Matrix Z_bar = Matrix::Zero(30, 3);
      k.pull_back(X, Z, K_bar, {.theta = &theta, .X = &X_bar, .Z = &Z_bar});
      k.pull_back_lower(X, square_bar, {.theta = &theta, .X = &X_bar});
      k.pull_back_diagonal(X, K_bar.col(0), {.theta = &theta, .X = &X_bar});
      return std::vector<Matrix>{without_shape(k, theta), X_bar, Z_bar};
    };
    const auto own = pulled(pair.own);
    const auto library = pulled(pair.library);
    for (std::size_t i = 0; i < own.size(); ++i) {
      EXPECT_LE(relative_error(own[i], library[i]), 1e-12) << i;
    }
  }
  // Control: the option is seen.
  EXPECT_GT(relative_error(make_kernel("again", {}, {}, 2)(X, Z), make_kernel("again")(X, Z)), 0.1);
}

TEST_F(OwnKernel, HasNamesKindsAndBoundsOfItsSignature) {
  const Kernel k = make_kernel("again") + make_kernel("again", {1.0, Positive{1, 2}});
  std::vector<std::string> names;
  for (const Parameter& p : k.parameters()) names.push_back(p.name);
  EXPECT_EQ(names, (std::vector<std::string>{"again.variance", "again.lengthscale", "again.shape",
                                             "again_2.variance", "again_2.lengthscale[0]",
                                             "again_2.lengthscale[1]", "again_2.shape"}));
  EXPECT_EQ(k.parameters()[1].kind, Parameter::Kind::lengthscale);
  EXPECT_EQ(k.parameters()[2].upper, 2.0);
  EXPECT_EQ(make_kernel("again", {1.0, 1.0, 1.5}).parameters()[2].upper, 2.0);
  std::vector<std::string> all;
  for (const KernelSignature& signature : kernel_signatures()) all.push_back(signature.name);
  EXPECT_EQ(all.front(), "se");
  EXPECT_EQ(std::ranges::count(all, "again"), 1);
}

TEST_F(OwnKernel, ReadsBackFromItsTextToTheSameBits) {
  for (const std::string text :
       {"again(variance=1, lengthscale=1, shape=1, times=1)",
        "2 * again(variance=0.3333333333333333, lengthscale=[1, 2], shape=1.5 fixed, times=3)",
        "again(variance=1 in [0.5, 2], lengthscale=1, shape=1 in [0.5, 1.5], times=1, "
        "dims=[1, 0])^2 + se(variance=1, lengthscale=1)"}) {
    EXPECT_EQ(Kernel::parse(text).to_string(), text);
    EXPECT_TRUE(Kernel::parse(text) == Kernel::parse(text));
  }
  EXPECT_TRUE(Kernel::parse("again") == make_kernel("again"));
  EXPECT_TRUE(Kernel::parse("AGAIN(2, shape=0.5)") == make_kernel("again", {2.0, 1.0, 0.5}));
  // Bounds that are Positive's default but not the signature's are written.
  const Kernel wide = make_kernel("again", {Positive(1).within(1e-6, 1e8)});
  EXPECT_TRUE(Kernel::parse(wide.to_string()) == wide);
}

TEST_F(OwnKernel, ErrorsSayWhatIsWrong) {
  const auto parse = [](const char* text) { return message([&] { (void)Kernel::parse(text); }); };
  EXPECT_EQ(parse("again(shape=1 in [0.5, 3])"),
            "kernel text, column 1: again: the upper bound of shape is 3, but must be at most 2");
  EXPECT_EQ(parse("again(shape=2.5)"),
            "kernel text, column 1: again: shape is 2.5, but must lie in [0.1, 2]");
  EXPECT_EQ(parse("again(times=4)"),
            "kernel text, column 13: times of again must be from 1 to 3, got 4");
  const auto make = [](auto... arguments) {
    return message([&] { (void)make_kernel(arguments...); });
  };
  EXPECT_EQ(make("agian"),
            "make_kernel: no kernel has the name 'agian', but it must be registered first");
  EXPECT_EQ(make("constant", std::vector<Positive>{1, 2}),
            "make_kernel: 2 parameters are given, but constant takes 1");
  EXPECT_EQ(make("constant", std::vector<Positive>{}, Dimensions{1}),
            "make_kernel: constant takes no dims");
  EXPECT_EQ(make("se", std::vector<Positive>{}, Dimensions{}, 2),
            "make_kernel: se takes no integer");
}

TEST_F(OwnKernel, LearnsLikeTheLibrarys) {
  Random random(3);
  const Matrix X = random.normal(80, 3);
  const Vector y = X.col(0).array().sin() * X.col(1).array() + 0.1 * random.normal(80, 1).array();
  for (const Pair& pair : pairs()) {
    SCOPED_TRACE(pair.own.to_string());
    const auto learn = [&](const Kernel& kernel) {
      ContinualGPOptions options;
      options.start.kernel = kernel;
      options.refit_every = 0;
      ContinualGP gp(options);
      gp.observe(X.topRows(50), y.head(50));
      gp.observe(X.bottomRows(30), y.tail(30));
      return gp;
    };
    const ContinualGP own = learn(pair.own);
    const ContinualGP library = learn(pair.library);
    EXPECT_EQ(own.size(), library.size());
    EXPECT_LE(relative_error(own.predict(X).mean, library.predict(X).mean), 1e-7);
  }
}

class InFiles : public OwnKernel {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "kernel_formula_test.ample";
    ContinualGPOptions options;
    options.start.kernel = make_kernel("again", {1.0, Positive{0.5, 2.0}, 0.7}) + Constant{};
    Random random(4);
    X_ = random.normal(60, 2);
    gp_ = ContinualGP(options);
    gp_->observe(X_, X_.col(0).array().sin());
    save(*gp_, path_);
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::string path_;
  Matrix X_;
  std::optional<ContinualGP> gp_;
};

TEST_F(InFiles, IsSavedAndLoadedAndGoesOn) {
  ContinualGP again = load(path_);
  EXPECT_TRUE(again.kernel() == gp_->kernel());
  EXPECT_EQ(again.predict(X_).mean, gp_->predict(X_).mean);
  const Vector y = X_.col(1);
  again.observe(X_, y);
  gp_->observe(X_, y);
  EXPECT_EQ(again.predict(X_).mean, gp_->predict(X_).mean);
}

TEST_F(InFiles, AnUnknownOneIsSaidToNeedRegistration) {
  TensorFile file = tensors_from_bytes(to_bytes(*gp_));
  std::string& text = file.metadata.at("kernel");
  text.replace(text.find("again"), 5, "later");
  try {
    (void)from_bytes(tensors_to_bytes(file));
    FAIL() << "it loads";
  } catch (const ModelFileError& failure) {
    const std::string error = failure.what();
    EXPECT_NE(error.find("unknown kernel 'later'"), std::string::npos) << error;
    EXPECT_NE(error.find("a kernel of your own must be registered first"), std::string::npos);
  }
}

// --- Registration ------------------------------------------------------------------------------

/// A sound formula but for its signature.
class Signed final : public Again {
 public:
  explicit Signed(KernelSignature signature)
      : Again(signature.name), signature_(std::move(signature)) {}
  [[nodiscard]] KernelSignature signature() const override { return signature_; }

 private:
  KernelSignature signature_;
};

std::string refusal(const KernelSignature& signature) {
  return message([&] { register_kernel(std::make_shared<Signed>(signature)); });
}

TEST_F(OwnKernel, NamesMustBeNew) {
  EXPECT_EQ(refusal({.name = "again", .fields = {}}),
            "register_kernel: again is registered already, but the name must be a new one");
  for (const std::string name : {"se", "rbf", "polynomial", "poly", "constant"}) {
    EXPECT_EQ(
        refusal({.name = name, .fields = {}}),
        "register_kernel: " + name + " is a kernel of the library, but the name must be a new one");
  }
}

TEST_F(OwnKernel, SignaturesMustBeSound) {
  const auto bad_name = [](const std::string& text) {
    return text.find("must be of small letters") != std::string::npos;
  };
  for (const std::string name : {"", "Se", "2nd", "a b", "a-b", "é", "fixed", "in", "dims"}) {
    EXPECT_TRUE(bad_name(refusal({.name = name, .fields = {}}))) << name;
    EXPECT_TRUE(bad_name(refusal({.name = "x", .fields = {{.name = name}}}))) << name;
    EXPECT_TRUE(bad_name(refusal({.name = "x", .fields = {}, .option = {{name, 0, 1, 0}}})));
  }
  EXPECT_EQ(refusal({.name = "x", .fields = {{.name = "a"}, {.name = "b"}, {.name = "a"}}}),
            "register_kernel: x has two parameters of the name a");
  EXPECT_EQ(refusal({.name = "x", .fields = {{.name = "a"}}, .option = {{"a", 0, 1, 0}}}),
            "register_kernel: x has two parameters of the name a");
  EXPECT_EQ(refusal({.name = "x", .fields = {}, .option = {{"a", 0, 1, 2}}}),
            "register_kernel: a of x is 2, but must be from 0 to 1");
  EXPECT_EQ(refusal({.name = "x", .fields = {{.name = "a", .initial = Positive{1, 2}}}}),
            "register_kernel: a of x starts with 2 numbers, but must start with one");
  EXPECT_EQ(refusal({.name = "x", .fields = {{.name = "a", .initial = -1.0}}}),
            "x: a is -1, but must lie in [1e-06, 100000000]");
  EXPECT_EQ(refusal({.name = "x", .fields = {{.name = "a", .largest = 2.0}}}),
            "x: the upper bound of a is 100000000, but must be at most 2");
  EXPECT_EQ(message([] { register_kernel(nullptr); }),
            "register_kernel: the formula is null, but must be an object");
  // Nothing of all that is known now.
  EXPECT_EQ(message([] { (void)make_kernel("x"); }).substr(0, 12), "make_kernel:");
}

TEST(Registration, IsSafeFromManyThreads) {
  constexpr int kNames = 20;
  std::atomic<int> registered = 0;
  std::atomic<int> refused = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kNames; ++i) {
        const std::string name = "shared_" + std::to_string(i);
        try {
          register_kernel(std::make_shared<Again>(name));
          ++registered;
        } catch (const std::invalid_argument&) {
          ++refused;
        }
        EXPECT_EQ(Kernel::parse(name).num_parameters(), 3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(registered, kNames);
  EXPECT_EQ(refused, 3 * kNames);
}

// --- kernel_faults() ---------------------------------------------------------------------------

struct Points {
  Matrix X;
  Matrix Z;
};
Points points(Index D) {
  Random random(9);
  return {random.normal(6, D), random.normal(5, D)};
}

class LibraryKernel : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Kernels, LibraryKernel, ::testing::ValuesIn(naive::kernel_names()),
                         [](const auto& kernel) { return kernel.param; });

TEST_P(LibraryKernel, HasNoFault) {
  for (const auto layout : {naive::Layout::isotropic, naive::Layout::ard, naive::Layout::subset}) {
    const auto [X, Z] = points(3);
    const Kernel kernel = naive::make_twin(GetParam(), 3, layout).kernel;
    EXPECT_EQ(kernel_faults(kernel, X, Z), std::vector<std::string>{}) << kernel.to_string();
  }
}

TEST_F(OwnKernel, EveryFlawIsFound) {
  const auto faults = [](Flaw flaw) {
    static int count = 0;
    const std::string name = "flawed_" + std::to_string(count++);
    register_kernel(std::make_shared<Again>(name, flaw));
    const auto [X, Z] = points(2);
    return kernel_faults(make_kernel(name, {1.3, Positive{0.8, 1.7}, 0.6}), X, Z);
  };
  const auto first = [&](Flaw flaw) {
    const std::vector<std::string> all = faults(flaw);
    return all.empty() ? "none" : all.front();
  };
  const auto starts = [&](Flaw flaw, const std::string& text) {
    EXPECT_TRUE(first(flaw).starts_with(text)) << first(flaw) << "\n" << text;
  };
  EXPECT_EQ(first(Flaw::none), "none");
  starts(Flaw::not_symmetric, "evaluate: k(x, z) must be k(z, x): got ");
  starts(Flaw::wrong_diagonal, "diagonal: must be that of the matrix: got ");
  starts(Flaw::not_finite, "evaluate: a value is not finite");
  const std::vector<std::string> neighbours = faults(Flaw::sees_its_neighbours);
  EXPECT_TRUE(std::ranges::any_of(neighbours, [](const std::string& fault) {
    return fault.starts_with("evaluate: an entry must depend on its own two points alone: got ");
  }));
  starts(Flaw::not_positive, "evaluate: K(X, X) is not positive semidefinite");
  starts(Flaw::wrong_point, "pull_back: adds 0 to the derivative by X(0, 0), but differences give");
  starts(Flaw::wrong_other_point, "pull_back: adds 0 to the derivative by Z(0, 0), but");
  starts(Flaw::replaces_instead_of_adding, "pull_back: must add to what X holds: got ");
  EXPECT_NE(first(Flaw::wrong_lengthscale).find(".lengthscale[0], but differences give"),
            std::string::npos);
  EXPECT_NE(first(Flaw::wrong_diagonal_derivative).find("pull_back_diagonal: adds"),
            std::string::npos);
}

TEST_F(OwnKernel, WhatCannotBeCheckedIsSaid) {
  const auto [X, Z] = points(2);
  const Kernel bound = SquaredExponential{.variance = Positive(1).within(1, 2)};
  ASSERT_EQ(kernel_faults(bound, X, Z).size(), 2U);
  EXPECT_EQ(kernel_faults(bound, X, Z).front(),
            "pull_back: the derivative by se.variance cannot be checked, its value is at a bound");
  // Matérn 1/2 has a kink where two points are one, nearer than the shortest step.
  const Matrix near = X.topRows(3).array() + 1e-5;
  const std::vector<std::string> kinks = kernel_faults(Matern12{}, X, near);
  ASSERT_FALSE(kinks.empty());
  EXPECT_NE(kinks.front().find("not smooth enough"), std::string::npos) << kinks.front();
}

}  // namespace
}  // namespace ample
