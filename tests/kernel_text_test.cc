// The text form of kernels: exact both ways, and every mistake named with its column.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <locale>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ample/kernel.h"
#include "kernel_types.h"
#include "support/paths.h"

namespace ample {
namespace {

constexpr Index kD = 4;

std::string canonical(std::string_view text) { return Kernel::parse(text).to_string(); }

/// The message for a text that must not parse.
std::string error_of(std::string_view text) {
  try {
    return "parsed as " + canonical(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

std::string at(int column, const std::string& message) {
  return "kernel text, column " + std::to_string(column) + ": " + message;
}

std::string repeated(std::string_view piece, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}

/// Equal to the bit: text, parameters with bounds and flags, and values on random points.
::testing::AssertionResult same(const Kernel& a, const Kernel& b) {
  if (a.to_string() != b.to_string()) {
    return ::testing::AssertionFailure() << a.to_string() << "\n differs from\n" << b.to_string();
  }
  const auto p = a.parameters();
  const auto q = b.parameters();
  if (p.size() != q.size()) return ::testing::AssertionFailure() << "number of parameters";
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i].name != q[i].name || p[i].value != q[i].value || p[i].lower != q[i].lower ||
        p[i].upper != q[i].upper || p[i].fixed != q[i].fixed) {
      return ::testing::AssertionFailure() << "parameter " << p[i].name << " of " << a.to_string();
    }
  }
  std::mt19937_64 rng(7);
  std::uniform_real_distribution<double> uniform(-1.0, 1.0);
  const Matrix X = Matrix::NullaryExpr(5, kD, [&] { return uniform(rng); });
  const Matrix Z = Matrix::NullaryExpr(3, kD, [&] { return uniform(rng); });
  if (a(X, Z) != b(X, Z)) return ::testing::AssertionFailure() << "values of " << a.to_string();
  return ::testing::AssertionSuccess();
}

/// Random kernels over every leaf type, option and combination.
class RandomKernel {
 public:
  explicit RandomKernel(unsigned seed) : rng_(seed) {}

  Kernel tree(int depth) {
    switch (depth == 0 ? 0 : integer(0, 5)) {
      case 1:
        return tree(depth - 1) + tree(depth - 1);
      case 2:
        return tree(depth - 1) * tree(depth - 1);
      case 3:
        return number(0.5, 2.0) * tree(depth - 1);
      case 4:
        return pow(tree(depth - 1), integer(1, 3));
      default:
        return leaf(leaf_types()[static_cast<std::size_t>(
            integer(0, static_cast<int>(leaf_types().size()) - 1))]);
    }
  }

  Kernel leaf(const LeafType& type) {
    const KernelSignature& signature = type.signature;
    Dimensions dims;
    if (signature.has_dims && coin()) dims = coin() ? Dimensions{3, 0} : Dimensions{2};
    const Index active = dims.empty() ? kD : static_cast<Index>(dims.size());
    std::vector<Positive> fields;
    for (const KernelSignature::Field& field : signature.fields) {
      Positive parameter(number(0.1, 2.0));
      if (field.per_dimension && coin()) {
        parameter.values.clear();
        for (Index d = 0; d < active; ++d) parameter.values.push_back(number(0.1, 2.0));
      }
      if (coin()) parameter = parameter.within(number(1e-9, 0.1), number(2.0, 1e9));
      if (coin()) parameter = parameter.fixed();
      fields.push_back(std::move(parameter));
    }
    const auto [name, lowest, highest, initial] =
        signature.option.value_or(KernelSignature::Option{});
    const int option = integer(lowest, std::min(highest, 4));
    return KernelAccess::kernel(make_leaf(type, std::move(fields), option, std::move(dims)));
  }

  int integer(int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng_); }

 private:
  bool coin() { return integer(0, 1) == 1; }
  double number(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(rng_);
  }

  std::mt19937_64 rng_;
};

// ---- Numbers ------------------------------------------------------------------------------------

TEST(NumberText, ReadsBackToTheSameBits) {
  std::vector<double> values = {0.1,
                                1.0 / 3.0,
                                2.0 / 3.0,
                                1e22,
                                9007199254740993.0,
                                std::numeric_limits<double>::max(),
                                std::numeric_limits<double>::min(),
                                std::numeric_limits<double>::denorm_min(),
                                std::nextafter(1.0, 2.0),
                                std::nextafter(1.0, 0.0)};
  std::mt19937_64 rng(1);
  std::uniform_real_distribution<double> exponent(-300.0, 300.0);
  for (int i = 0; i < 1000; ++i) values.push_back(std::pow(10.0, exponent(rng)));
  for (const double value : values) {
    EXPECT_EQ(std::strtod(number_to_string(value).c_str(), nullptr), value)
        << number_to_string(value);
    const Kernel k = Constant{Positive(value).within(value, value)};
    EXPECT_EQ(Kernel::parse(k.to_string()).parameters()[0].value, value) << k.to_string();
  }
}

TEST(NumberText, IsShort) {
  EXPECT_EQ(number_to_string(0.1), "0.1");
  EXPECT_EQ(number_to_string(500.0), "500");
  EXPECT_EQ(number_to_string(1.0 / 3.0), "0.3333333333333333");
  EXPECT_EQ(number_to_string(1e-6), "1e-06");
}

TEST(NumberText, HasAPointInEveryLocale) {
  struct Comma : std::numpunct<char> {
    [[nodiscard]] char do_decimal_point() const override { return ','; }
    [[nodiscard]] char do_thousands_sep() const override { return '.'; }
    [[nodiscard]] std::string do_grouping() const override { return "\3"; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale(), new Comma));
  std::ostringstream control;
  control << 1234.5;
  const std::string text = canonical("constant(1234.5) * se(dims=[1234])");
  std::locale::global(before);
  EXPECT_EQ(control.str(), "1.234,5");
  EXPECT_EQ(text, "constant(variance=1234.5) * se(variance=1, lengthscale=1, dims=[1234])");
}

// ---- Text and structs ---------------------------------------------------------------------------

TEST(KernelText, SaysTheSameAsTheStructs) {
  const std::vector<std::pair<std::string, Kernel>> pairs = {
      {"se", SquaredExponential{}},
      {"se(2, [1, 3, 2, 5])", SquaredExponential{.variance = 2, .lengthscale = {1, 3, 2, 5}}},
      {"matern12(lengthscale=0.5)", Matern12{.lengthscale = 0.5}},
      {"matern32(variance=3, dims=[1])", Matern32{.variance = 3, .dims = {1}}},
      {"matern52(1, [1, 2], dims=[0, 3])", Matern52{.lengthscale = {1, 2}, .dims = {0, 3}}},
      {"rq(2, 3, 4)", RationalQuadratic{.variance = 2, .lengthscale = 3, .alpha = 4}},
      {"periodic(2, 3, 4)", Periodic{.variance = 2, .lengthscale = 3, .period = 4}},
      {"linear([1, 2, 3, 4])", Linear{.variance = {1, 2, 3, 4}}},
      {"polynomial(2, 3, degree=4)", Polynomial{.variance = 2, .offset = 3, .degree = 4}},
      {"constant(500)", Constant{500}},
      {"arccos(2, 3, 4, order=0)",
       ArcCosine{.variance = 2, .weight_variance = 3, .bias_variance = 4, .order = 0}},
      {"arccos", ArcCosine{}},
      {"polynomial", Polynomial{}},
      {"se(variance=2 in [0.1, 10])", SquaredExponential{.variance = Positive(2).within(0.1, 10)}},
      {"se(2 fixed)", SquaredExponential{.variance = Positive(2).fixed()}},
      {"se(lengthscale=[1, 2] in [0.1, 10] fixed, dims=[1, 2])",
       SquaredExponential{.lengthscale = Positive{1, 2}.within(0.1, 10).fixed(), .dims = {1, 2}}},
      {"se(lengthscale=[2], dims=[1])", SquaredExponential{.lengthscale = 2, .dims = {1}}},
      {"se + linear * arccos", SquaredExponential{} + Kernel(Linear{}) * ArcCosine{}},
      {"(se + linear) * arccos", (SquaredExponential{} + Kernel(Linear{})) * ArcCosine{}},
      {"2.5 * se", 2.5 * Kernel(SquaredExponential{})},
      {"se * 2.5", 2.5 * Kernel(SquaredExponential{})},
      {"2 * se * 3 * linear * 0.5", 3.0 * Kernel(SquaredExponential{}) * Linear{}},
      {"linear^3", pow(Linear{}, 3)},
      {"linear ** 3", pow(Linear{}, 3)},
      {"2 * linear^3 * se", 2.0 * pow(Linear{}, 3) * SquaredExponential{}},
      {"(se * linear)^2", pow(SquaredExponential{} * Kernel(Linear{}), 2)},
  };
  for (const auto& [text, kernel] : pairs) EXPECT_TRUE(same(Kernel::parse(text), kernel)) << text;
}

TEST(KernelText, IsWrittenInOneCanonicalForm) {
  EXPECT_EQ(canonical("constant(500) + matern52(1, [1, 2])"),
            "constant(variance=500) + matern52(variance=1, lengthscale=[1, 2])");
  EXPECT_EQ(canonical(" RBF ( Lengthscale = 2\tIN [ 1 ,\n3 ] FIXED , DIMS = [ 0 ] ) "),
            "se(variance=1, lengthscale=2 in [1, 3] fixed, dims=[0])");
  EXPECT_EQ(canonical("poly(degree=3)"), "polynomial(variance=1, offset=1, degree=3)");
  EXPECT_EQ(canonical("se(1 in [1e-6, 1e8])"), "se(variance=1, lengthscale=1)");
  EXPECT_EQ(canonical("se(1 in [1e-7, 1e8], 1 in [1e-6, 2])"),
            "se(variance=1 in [1e-07, 1e+08], lengthscale=1 in [1e-06, 2])");
  for (const auto& [alias, name] : {std::pair{"se", "rbf"},
                                    {"se", "squared_exponential"},
                                    {"rq", "rational_quadratic"},
                                    {"arccos", "arc_cosine"},
                                    {"polynomial", "poly"}}) {
    EXPECT_EQ(canonical(alias), canonical(name));
  }
}

TEST(KernelText, KeepsBracketsOnlyWhereTheyMatter) {
  const std::string c = "constant(variance=1)";
  const auto expand = [&](std::string text) {
    for (std::size_t i = text.find('c'); i != std::string::npos; i = text.find('c', i + c.size())) {
      text.replace(i, 1, c);
    }
    return text;
  };
  for (const std::string text :
       {"c + c + c", "c + c * c", "(c + c) * c", "c * (c + c)", "c * c^2", "(c * c)^2", "(c + c)^3",
        "c + (c + c)", "c * (c * c)", "(c^2)^3", "2 * c * c", "2 * (c * c)", "c * (2 * c)",
        "2 * (3 * c)", "2 * (c + c)", "2 * c + c", "(2 * c)^2"}) {
    EXPECT_EQ(canonical(expand(text)), expand(text));
  }
  EXPECT_EQ(canonical(expand("((c) + ((c * c)))")), expand("c + c * c"));
}

TEST(KernelText, ListsParametersFromLeftToRight) {
  const Kernel k = Kernel::parse("constant(2) + se(3, [4, 5]) * (linear(6) + 2 * rq(7, 8, 9))^2");
  std::vector<double> values;
  for (const Parameter& parameter : k.parameters()) values.push_back(parameter.value);
  EXPECT_EQ(values, (std::vector<double>{2, 3, 4, 5, 6, 7, 8, 9}));
}

// ---- Round trips --------------------------------------------------------------------------------

TEST(KernelRoundTrip, IsExactForEveryKernelWithOddValues) {
  for (const LeafType& type : leaf_types()) {
    for (const double value : {0.1, 1.0 / 3.0, 2e-5 / 3.0, std::nextafter(2.0, 3.0)}) {
      const Kernel k = make_kernel(
          type.signature.name,
          std::vector<Positive>(type.signature.fields.size(), Positive(value).within(1e-300, 7.7)));
      EXPECT_TRUE(same(Kernel::parse(k.to_string()), k));
    }
    RandomKernel random(3);
    for (int i = 0; i < 50; ++i) {
      const Kernel k = random.leaf(type);
      EXPECT_TRUE(same(Kernel::parse(k.to_string()), k));
    }
  }
}

TEST(KernelRoundTrip, IsExactForRandomTrees) {
  RandomKernel random(4);
  for (int i = 0; i < 500; ++i) {
    const Kernel k = random.tree(5);
    EXPECT_TRUE(same(Kernel::parse(k.to_string()), k));
  }
}

TEST(KernelRoundTrip, ComparisonSeesTheLastBit) {
  const Kernel k = Kernel::parse("se(1) + linear");
  EXPECT_TRUE(same(k, Kernel::parse("se(1.0) + linear")));
  EXPECT_FALSE(same(k, Kernel::parse("se(1.0000000000000002) + linear")));
  EXPECT_FALSE(same(k, Kernel::parse("se(1 fixed) + linear")));
  EXPECT_FALSE(same(k, Kernel::parse("linear + se(1)")));
}

// ---- Errors -------------------------------------------------------------------------------------

struct Mistake {
  std::string text;
  int column;
  std::string message;
};

void PrintTo(const Mistake& mistake, std::ostream* out) { *out << mistake.text; }

class KernelTextError : public ::testing::TestWithParam<Mistake> {};

TEST_P(KernelTextError, PointsAtTheColumn) {
  EXPECT_EQ(error_of(GetParam().text), at(GetParam().column, GetParam().message));
}

const std::string kKernels =
    "arccos, constant, linear, matern12, matern32, matern52, periodic, polynomial, rq, se";
const std::string kOwn = "; a kernel of your own must be registered first";

INSTANTIATE_TEST_SUITE_P(
    Structure, KernelTextError,
    ::testing::Values(
        Mistake{"", 1, "expected a kernel, got the end of the text"},
        Mistake{"  \n", 4, "expected a kernel, got the end of the text"},
        Mistake{"se +", 5, "expected a kernel, got the end of the text"},
        Mistake{"se + * se", 6, "expected a kernel, got '*'"},
        Mistake{"()", 2, "expected a kernel, got ')'"},
        Mistake{"se linear", 4, "expected '+', '*' or the end of the text, got 'linear'"},
        Mistake{"se)", 3, "expected '+', '*' or the end of the text, got ')'"},
        Mistake{"se - linear", 4, "expected '+', '*' or the end of the text, got '-'"},
        Mistake{"2 se", 3, "expected '*', got 'se'"}, Mistake{"2(se)", 2, "expected '*', got '('"},
        Mistake{"se + (linear * rq", 18,
                "expected '+', '*' or ')' for the '(' of column 6, got the end of the text"},
        Mistake{"(se]", 4, "expected '+', '*' or ')' for the '(' of column 1, got ']'"},
        Mistake{"\xC3\xA9", 1, "expected a kernel, got byte 0xC3"},
        Mistake{"se \x01", 4, "expected '+', '*' or the end of the text, got byte 0x01"},
        Mistake{std::string("se\0", 3), 3,
                "expected '+', '*' or the end of the text, got byte 0x00"},
        Mistake{"se + matren52", 6,
                "unknown kernel 'matren52'; expected one of " + kKernels +
                    " (did you mean matern52?)" + kOwn},
        Mistake{
            "RGF", 1,
            "unknown kernel 'RGF'; expected one of " + kKernels + " (did you mean rbf?)" + kOwn},
        Mistake{"something", 1, "unknown kernel 'something'; expected one of " + kKernels + kOwn},
        Mistake{
            repeated("x", 50), 1,
            "unknown kernel '" + repeated("x", 40) + "...'; expected one of " + kKernels + kOwn}));

INSTANTIATE_TEST_SUITE_P(
    Numbers, KernelTextError,
    ::testing::Values(
        Mistake{"se + 500", 6,
                "a number can only be a factor of a kernel; did you mean constant(500)?"},
        Mistake{"2 * 3 + se", 1,
                "a number can only be a factor of a kernel; did you mean constant(6)?"},
        Mistake{"(2) * se", 2,
                "a number can only be a factor of a kernel; did you mean constant(2)?"},
        Mistake{"2^3 * se", 2, "only a kernel can have an exponent"},
        Mistake{"2 ** 3 * se", 3, "only a kernel can have an exponent"},
        Mistake{"-2 * se", 1, "a number must be positive and finite, got '-2'"},
        Mistake{"se * 0", 6, "a number must be positive and finite, got '0'"},
        Mistake{"se^", 4, "expected an integer, got the end of the text"},
        Mistake{"se^linear", 4, "expected an integer, got 'linear'"},
        Mistake{"se^1.5", 4, "expected an integer, got '1.5'"},
        Mistake{"se ** 99999999999", 7, "'99999999999' is out of range"},
        Mistake{"se^2^3", 5, "expected '+', '*' or the end of the text, got '^'"},
        Mistake{"se(0)", 4, "a number must be positive and finite, got '0'"},
        Mistake{"se(1, -0.5)", 7, "a number must be positive and finite, got '-0.5'"},
        Mistake{"se(variance=nan)", 13, "a number must be positive and finite, got 'nan'"},
        Mistake{"se(variance=inf)", 13, "a number must be positive and finite, got 'inf'"},
        Mistake{"se(1e999)", 4, "'1e999' is out of range"},
        Mistake{"se(1e-999)", 4, "'1e-999' is out of range"},
        Mistake{"se(1,5)x", 8, "expected '+', '*' or the end of the text, got 'x'"}));

INSTANTIATE_TEST_SUITE_P(
    Arguments, KernelTextError,
    ::testing::Values(
        Mistake{"se(variance=1, lenghtscale=2)", 16,
                "unknown parameter 'lenghtscale' of se; expected variance, lengthscale or dims "
                "(did you mean lengthscale?)"},
        Mistake{"poly(order=2)", 6,
                "unknown parameter 'order' of polynomial; expected variance, offset, degree or "
                "dims"},
        Mistake{"constant(dims=[0])", 10,
                "unknown parameter 'dims' of constant; expected variance"},
        Mistake{"se(1, variance=2)", 7, "variance of se is given twice"},
        Mistake{"se(dims=[0], dims=[1])", 14, "dims of se is given twice"},
        Mistake{"se(variance=1, 2)", 16, "a value without a name must stand before those with one"},
        Mistake{"se(1, 2, 3)", 10,
                "too many values without a name; se takes 2 (variance, lengthscale)"},
        Mistake{"constant(1, [2])", 13,
                "too many values without a name; constant takes 1 (variance)"},
        Mistake{"se(variance)", 12, "expected '=', got ')'"},
        Mistake{"se(variance=)", 13, "expected a number, got ')'"},
        Mistake{"se(1,)", 6, "expected a value or a name, got ')'"},
        Mistake{"se(1 2)", 6, "expected ',' or ')' for the '(' of column 3, got '2'"},
        Mistake{"se(1", 5, "expected ',' or ')' for the '(' of column 3, got the end of the text"},
        Mistake{"se(1, [1, 2)", 12, "expected ',' or ']' for the '[' of column 7, got ')'"},
        Mistake{"se(1, [])", 8, "expected a number, got ']'"},
        Mistake{"se([1, 2])", 4, "variance of se is one number, not a list"},
        Mistake{"se(1 in 2)", 9, "expected '[', got '2'"},
        Mistake{"se(1 in [2])", 9, "bounds are written as [lower, upper]"},
        Mistake{"se(1 in [0, 2])", 10, "a number must be positive and finite, got '0'"},
        Mistake{"se(1 fixed in [0.5, 2])", 12,
                "expected ',' or ')' for the '(' of column 3, got 'in'"},
        Mistake{"poly(degree=99)", 13, "degree of polynomial must be from 1 to 20, got 99"},
        Mistake{"arccos(order=-1)", 14, "order of arccos must be from 0 to 2, got -1"},
        Mistake{"arccos(order=1.5)", 14, "expected an integer, got '1.5'"},
        Mistake{"arccos(order=2e0)", 14, "expected an integer, got '2e0'"},
        Mistake{"se(dims=0)", 9, "expected '[', got '0'"},
        Mistake{"se(dims=[])", 10, "expected an integer, got ']'"},
        Mistake{"se(dims=[0.5])", 10, "expected an integer, got '0.5'"},
        Mistake{"se(dims=[99999999999999999999])", 10, "'99999999999999999999' is out of range"},
        // Found by the factories of nodes, which know no columns.
        Mistake{"linear + se(1 in [2, 3])", 10, "se: variance is 1, but must lie in [2, 3]"},
        Mistake{"linear + se(dims=[0, -1])", 10,
                "se: dims holds -1, but dimensions count from 0"}));

TEST(KernelTextErrors, OfFactoriesGetTheColumnToo) {
  for (const auto& [text, column] : {std::pair{"linear + se(1e9)", 10},
                                     {"linear + se(1 in [3, 2])", 10},
                                     {"linear + se(1, [1, 2], dims=[0])", 10},
                                     {"linear + se(dims=[1, 1])", 10},
                                     {"linear + se^0", 13},
                                     {"linear + se^-2", 13},
                                     {"linear + 1e300 * se * 1e300", 10},
                                     {"linear + 1e-300 * se * 1e-300", 10}}) {
    EXPECT_EQ(error_of(text).rfind(at(column, ""), 0), 0U) << text << ": " << error_of(text);
  }
}

TEST(KernelTextErrors, LimitWhatAHostileFileCanAskFor) {
  const auto nested = [](int n) { return repeated("(", n) + "se" + repeated(")", n); };
  EXPECT_EQ(canonical(nested(200)), canonical("se"));
  EXPECT_EQ(error_of(nested(201)), at(201, "more than 200 levels of brackets"));
  EXPECT_EQ(canonical(repeated("(se) + ", 201) + "se"), canonical(repeated("se + ", 201) + "se"));

  const Kernel wide = Kernel::parse(repeated("se+", 999) + "se");
  EXPECT_EQ(wide.num_parameters(), 2000);
  EXPECT_EQ(error_of(repeated("se+", 1000) + "se"), at(3001, "more than 1000 kernels"));

  EXPECT_EQ(canonical(std::string(99'998, ' ') + "se"), canonical("se"));
  EXPECT_EQ(error_of(std::string(99'999, ' ') + "se"),
            at(100'001, "the text is longer than 100000 characters"));
}

TEST(KernelTextErrors, AreOneShortLineForAnyText) {
  const std::string alphabet = "se()[],=+*^.-0123456789 inf\n\t\x80\xFF";
  RandomKernel random(5);
  int parsed = 0;
  int failed = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = random.tree(random.integer(0, 2)).to_string();
    const int edits = random.integer(1, 3);
    for (int edit = 0; edit < edits; ++edit) {
      const int size = static_cast<int>(text.size());
      const auto from = static_cast<std::size_t>(random.integer(0, size));
      const auto length = static_cast<std::size_t>(random.integer(0, 8));
      const char c = alphabet[static_cast<std::size_t>(
          random.integer(0, static_cast<int>(alphabet.size()) - 1))];
      switch (random.integer(0, 3)) {
        case 0:
          text.erase(from, length);
          break;
        case 1:
          text.insert(from, 1, c);
          break;
        case 2:
          text.insert(static_cast<std::size_t>(random.integer(0, size)), text.substr(from, length));
          break;
        default:
          if (from < text.size()) text[from] = c;
      }
    }
    try {
      const std::string once = canonical(text);
      ASSERT_EQ(canonical(once), once) << text;
      ++parsed;
    } catch (const std::invalid_argument& error) {
      const std::string message = error.what();
      const std::string prefix = "kernel text, column ";
      ASSERT_EQ(message.rfind(prefix, 0), 0U) << message;
      const int column = std::stoi(message.substr(prefix.size()));
      ASSERT_TRUE(1 <= column && column <= static_cast<int>(text.size()) + 1) << message;
      ASSERT_LT(message.size(), 250U) << message;
      for (const char c : message) ASSERT_TRUE(' ' <= c && c <= '~') << message;
      ++failed;
    }
  }
  // Otherwise one half of this test was idle.
  EXPECT_GT(parsed, 1000);
  EXPECT_GT(failed, 1000);
}

// ---- The page -----------------------------------------------------------------------------------

/// The lines of the page's blocks fenced by ```language.
std::vector<std::string> fenced_lines(const std::string& page, const std::string& language) {
  std::vector<std::string> lines;
  std::istringstream in(page);
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (inside && line != "```") lines.push_back(line);
    inside = inside ? line != "```" : line == "```" + language;
  }
  return lines;
}

TEST(KernelsPage, IsTrue) {
  std::ifstream file(std::string(paths::source_dir()) + "/docs/kernels.md");
  std::stringstream page;
  page << file.rdbuf();
  const std::string text = page.str();

  const auto examples = fenced_lines(text, "kernel");
  EXPECT_GE(examples.size(), 5U);
  for (const std::string& example : examples) EXPECT_NO_THROW((void)Kernel::parse(example));
  EXPECT_EQ(fenced_lines(text, "error"), std::vector{error_of("se(variance=1, lenghtscale=2)")});

  // The kernel of one's own is the one that tests/package compiles and runs.
  std::ifstream example(std::string(paths::source_dir()) + "/tests/package/custom_kernel.cc");
  std::stringstream code;
  code << example.rdbuf();
  EXPECT_NE(text.find("```cpp\n" + code.str() + "```\n"), std::string::npos);

  for (const auto& [kind, signature, formula] : leaf_types()) {
    const std::size_t row = text.find("\n| `" + signature.name + "` |");
    ASSERT_NE(row, std::string::npos) << signature.name;
    const std::string line = text.substr(row + 1, text.find('\n', row + 1) - row - 1);
    for (const KernelSignature::Field& field : signature.fields) {
      const std::string entry = "`" + field.name + "`";
      EXPECT_NE(line.find(entry), std::string::npos) << line;
      EXPECT_EQ(line.find(entry + "ᴬ") != std::string::npos, field.per_dimension) << line;
    }
    if (signature.option) {
      const std::string entry = ", " + std::to_string(signature.option->lowest) + " to " +
                                std::to_string(signature.option->highest) + ", default " +
                                std::to_string(signature.option->initial);
      EXPECT_NE(line.find(entry), std::string::npos) << line;
    }
  }
}

}  // namespace
}  // namespace ample
