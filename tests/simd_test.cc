// Every target that is compiled in and runs here: the vectorised loops against textbook code in
// long double, at all lengths around a register's.
#include "simd.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "blas.h"
#include "kernel_loops.h"
#include "linalg.h"
#include "rotation.h"
#include "small_triangle.h"
#include "support/message.h"
#include "support/random.h"

namespace ample {
namespace {

using loops::Size;
using testing::message;
using testing::Random;
using Numbers = std::vector<double>;
using Exact = long double;

constexpr double kUlp = std::numeric_limits<double>::epsilon();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Numbers random_numbers(Size n, double low, double high, std::uint64_t seed) {
  Random random(seed);
  Numbers out(static_cast<std::size_t>(n));
  for (double& v : out) v = random.uniform(low, high);
  return out;
}

/// Runs body on each target in turn, and sets the one in use back.
void on_every_target(const std::function<void()>& body) {
  const std::string before = simd::target();
  for (const std::string& name : simd::targets()) {
    SCOPED_TRACE(name);
    simd::use_target(name);
    ASSERT_EQ(simd::target(), name);
    body();
  }
  simd::use_target(before);
}

/// |got − expected| ≤ `units` rounding errors of |expected|.
void expect_near(double got, Exact expected, double units) {
  EXPECT_LE(std::abs(static_cast<double>(got - expected)),
            units * kUlp * static_cast<double>(std::abs(expected)))
      << "got " << got << ", expected " << static_cast<double>(expected);
}

const std::vector<Size> kLengths{0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 64, 70};

// --- Which target -------------------------------------------------------------------------------

TEST(Simd, TheTargetIsTheWidestOrWhatTheEnvironmentSays) {
  ASSERT_FALSE(simd::targets().empty());
  const char* wanted = std::getenv(simd::kVariable);
  EXPECT_EQ(simd::target(), wanted != nullptr ? wanted : simd::targets().front());
}

TEST(Simd, TheEnvironmentVariableChoosesATarget) {
  const std::string before = simd::target();
  for (const std::string& name : simd::targets()) {
    setenv(simd::kVariable, name.c_str(), 1);
    simd::choose_by_environment();
    EXPECT_EQ(simd::target(), name);
  }
  setenv(simd::kVariable, "nonsense", 1);
  const std::string text = message([] { simd::choose_by_environment(); });
  EXPECT_NE(text.find("AMPLE_SIMD: got \"nonsense\""), std::string::npos) << text;
  unsetenv(simd::kVariable);
  simd::use_target(before);
}

TEST(Simd, AnUnknownTargetIsRefused) {
  const std::string text = message([] { simd::use_target("nonsense"); });
  EXPECT_NE(text.find("got \"nonsense\", but must be one of " + simd::targets().front()),
            std::string::npos)
      << text;
}

TEST(Simd, TheWidestTargetIsTheWidestOfTheProcessor) {
#if defined(__x86_64__)
  std::string expected = "baseline";
  if (__builtin_cpu_supports("sse4.2")) expected = "sse4";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) expected = "avx2";
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    expected = "avx512";
  }
  EXPECT_EQ(simd::targets().front(), expected);
#elif defined(__aarch64__)
  EXPECT_EQ(simd::targets().front(), "neon");
#else
  GTEST_SKIP() << "nothing is known of this processor";
#endif
}

TEST(Simd, BlasUsesRegistersOfTheSameWidth) {
  Matrix product = Matrix::Zero(1, 1);
  gram(1.0, Matrix::Ones(1, 1), 0.0, product);  // a program without a call has no BLAS at all
  const std::string core = blas_core();
  if (core == "unknown" || std::getenv("OPENBLAS_CORETYPE") != nullptr) {
    GTEST_SKIP() << "the BLAS does not choose its core by the processor";
  }
  const auto one_of = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), core) != names.end();
  };
  const std::string widest = simd::targets().front();
  if (widest == "avx512") {
    EXPECT_TRUE(one_of({"SkylakeX", "Cooperlake", "SapphireRapids"})) << core;
  } else if (widest == "avx2") {
    EXPECT_TRUE(one_of({"Haswell", "Zen", "Excavator"})) << core;
  } else {
    EXPECT_FALSE(one_of({"SkylakeX", "Cooperlake", "SapphireRapids", "Haswell", "Zen"})) << core;
  }
}

// --- The loops of the kernels -------------------------------------------------------------------

struct Profile {
  std::string name;
  std::function<void(double*, Size)> value;  // variance 3
  std::function<void(const double*, Size, double*, double*)> slope;
  std::function<Exact(Exact)> g;
  std::function<Exact(Exact)> dg;
};

constexpr double kAlpha = 1.5;

std::vector<Profile> profiles() {
  using std::exp;
  using std::sqrt;
  return {
      {"se", [](double* s, Size n) { loops::se_value(s, n, 3.0); }, loops::se_slope,
       [](Exact s) { return exp(-s / 2); }, [](Exact s) { return -exp(-s / 2) / 2; }},
      {"matern12", [](double* s, Size n) { loops::matern12_value(s, n, 3.0); },
       loops::matern12_slope, [](Exact s) { return exp(-sqrt(s)); },
       [](Exact s) { return s > 0 ? -exp(-sqrt(s)) / (2 * sqrt(s)) : 0; }},
      {"matern32", [](double* s, Size n) { loops::matern32_value(s, n, 3.0); },
       loops::matern32_slope, [](Exact s) { return (1 + sqrt(3 * s)) * exp(-sqrt(3 * s)); },
       [](Exact s) { return -exp(-sqrt(3 * s)) * 3 / 2; }},
      {"matern52", [](double* s, Size n) { loops::matern52_value(s, n, 3.0); },
       loops::matern52_slope,
       [](Exact s) { return (1 + sqrt(5 * s) + 5 * s / 3) * exp(-sqrt(5 * s)); },
       [](Exact s) { return -(1 + sqrt(5 * s)) * exp(-sqrt(5 * s)) * 5 / 6; }},
      {"rq", [](double* s, Size n) { loops::rq_value(s, n, 3.0, kAlpha); },
       [](const double* s, Size n, double* g, double* dg) {
         Numbers dalpha(static_cast<std::size_t>(n));
         loops::rq_slope(s, n, kAlpha, g, dg, dalpha.data());
       },
       [](Exact s) { return std::pow(1 + s / (2 * kAlpha), -Exact(kAlpha)); },
       [](Exact s) { return -std::pow(1 + s / (2 * kAlpha), -Exact(kAlpha) - 1) / 2; }},
  };
}

TEST(Simd, ProfilesEqualTextbookCode) {
  on_every_target([] {
    for (const Profile& profile : profiles()) {
      SCOPED_TRACE(profile.name);
      for (const Size n : kLengths) {
        // Over the whole range in which the result is a normal number.
        Numbers s = random_numbers(n, -20.0, 10.0, 1);
        for (double& v : s) v = std::exp2(v);
        Numbers value = s;
        Numbers g(s.size(), -1.0);
        Numbers dg(s.size(), -1.0);
        profile.value(value.data(), n);
        profile.slope(s.data(), n, g.data(), dg.data());
        for (std::size_t i = 0; i < s.size(); ++i) {
          // An exponential loses as many digits as its argument has before the point.
          const Exact expected = profile.g(s[i]);
          const double units = 8.0 + 4.0 * std::abs(std::log(static_cast<double>(expected)));
          expect_near(value[i], 3 * expected, units);
          expect_near(g[i], expected, units);
          expect_near(dg[i], profile.dg(s[i]), units);
        }
      }
    }
  });
}

TEST(Simd, TheExponentialIsAccurateToItsLastDigit) {
  on_every_target([] {
    Numbers s = random_numbers(20000, -30.0, 10.46, 2);
    for (double& v : s) v = std::exp2(v);
    Numbers e = s;
    loops::se_value(e.data(), static_cast<Size>(e.size()), 1.0);
    for (std::size_t i = 0; i < s.size(); ++i) {
      if (-0.5 * s[i] > -708.0) expect_near(e[i], std::exp(Exact(-0.5 * s[i])), 1.25);
    }
  });
}

TEST(Simd, ExtremeDistancesGiveOneZeroAndNoNan) {
  on_every_target([] {
    for (const Profile& profile : profiles()) {
      SCOPED_TRACE(profile.name);
      const Numbers s{0.0, 1e-320, 1e-300, 1e5, 1e10, 1e100, 1e300, 1.7e308, kInfinity};
      const auto n = static_cast<Size>(s.size());
      Numbers value = s;
      Numbers g(s.size());
      Numbers dg(s.size());
      profile.value(value.data(), n);
      profile.slope(s.data(), n, g.data(), dg.data());
      EXPECT_EQ(value.front(), 3.0);
      EXPECT_EQ(g.front(), 1.0);
      for (std::size_t i = 0; i < s.size(); ++i) {
        EXPECT_TRUE(std::isfinite(value[i]) && std::isfinite(g[i]) && std::isfinite(dg[i])) << s[i];
      }
      if (profile.name == "rq") continue;  // a power, which is not 0 before 1e308
      for (std::size_t i = 4; i < s.size(); ++i) {
        EXPECT_EQ(value[i], 0.0) << s[i];
        EXPECT_EQ(dg[i], 0.0) << s[i];
      }
    }
  });
}

TEST(Simd, NanStaysNan) {
  on_every_target([] {
    for (const Profile& profile : profiles()) {
      SCOPED_TRACE(profile.name);
      const Numbers s(11, std::numeric_limits<double>::quiet_NaN());
      Numbers value = s;
      Numbers g(s.size());
      Numbers dg(s.size());
      profile.value(value.data(), 11);
      profile.slope(s.data(), 11, g.data(), dg.data());
      for (std::size_t i = 0; i < s.size(); ++i) {
        EXPECT_TRUE(std::isnan(value[i]) && std::isnan(g[i]) && std::isnan(dg[i]));
      }
    }
  });
}

TEST(Simd, AnEntryIsTheSameWhereverItStands) {
  on_every_target([] {
    for (const Profile& profile : profiles()) {
      SCOPED_TRACE(profile.name);
      const Numbers s = random_numbers(70, 0.0, 20.0, 3);
      Numbers together = s;
      profile.value(together.data(), 70);
      for (std::size_t i = 0; i < s.size(); ++i) {
        double alone = s[i];
        profile.value(&alone, 1);
        EXPECT_EQ(alone, together[i]) << i;
      }
    }
  });
}

TEST(Simd, DistancesAndProductsEqualTextbookCode) {
  on_every_target([] {
    for (const Size n : kLengths) {
      for (const Size dims : {0, 1, 3, 19}) {
        const Size ldx = n + 3;
        Numbers x = random_numbers(ldx * dims, -2.0, 2.0, 4);
        const Numbers z = random_numbers(dims, -2.0, 2.0, 5);
        if (n > 2) {  // one point is z itself
          for (Size k = 0; k < dims; ++k) {
            x[static_cast<std::size_t>(2 + k * ldx)] = z[static_cast<std::size_t>(k)];
          }
        }
        Numbers s(static_cast<std::size_t>(n), -1.0);
        Numbers p = s;
        loops::squared_distance(x.data(), ldx, n, dims, z.data(), s.data());
        loops::dot_product(x.data(), ldx, n, dims, z.data(), 0.5, p.data());
        for (Size i = 0; i < n; ++i) {
          Exact distance = 0;
          Exact product = 0.5;
          Exact size = 0.5;
          for (Size k = 0; k < dims; ++k) {
            const Exact a = x[static_cast<std::size_t>(i + k * ldx)];
            const Exact b = z[static_cast<std::size_t>(k)];
            distance += (a - b) * (a - b);
            product += a * b;
            size += std::abs(a * b);
          }
          expect_near(s[static_cast<std::size_t>(i)], distance, 25.0);
          EXPECT_NEAR(p[static_cast<std::size_t>(i)], static_cast<double>(product),
                      25.0 * kUlp * static_cast<double>(size));
          EXPECT_TRUE(i != 2 || s[2] == 0.0);
        }
      }
    }
  });
}

TEST(Simd, SumsEqualTextbookCode) {
  on_every_target([] {
    for (const Size n : kLengths) {
      const Numbers x = random_numbers(n, -3.0, 3.0, 6);
      const Numbers w = random_numbers(n, -1.0, 1.0, 7);
      const Numbers start = random_numbers(n, -1.0, 1.0, 8);
      Numbers x_bar = start;
      Numbers product(x.size());
      const loops::Moments moments =
          loops::weigh_differences(x.data(), 0.7, w.data(), n, 2.0, x_bar.data());
      const loops::Moments again =
          loops::weigh_differences(x.data(), 0.7, w.data(), n, 2.0, nullptr);
      loops::multiply(x.data(), w.data(), n, 2.0, product.data());
      Numbers scaled = start;
      Numbers squares = start;
      loops::add_scaled(x.data(), n, -0.7, scaled.data());
      loops::add_squares(x.data(), n, -0.7, squares.data());
      Exact first = 0;
      Exact second = 0;
      Exact dot = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const Exact delta = Exact(x[i]) - Exact(0.7);
        first += w[i] * delta;
        second += w[i] * delta * delta;
        dot += Exact(x[i]) * w[i];
        expect_near(product[i], 2 * Exact(x[i]) * w[i], 2.0);
        EXPECT_NEAR(scaled[i], static_cast<double>(start[i] - Exact(0.7) * x[i]), 8.0 * kUlp);
        EXPECT_NEAR(squares[i], static_cast<double>(start[i] - Exact(0.7) * x[i] * x[i]),
                    16.0 * kUlp);
        EXPECT_NEAR(x_bar[i], static_cast<double>(start[i] + 2 * w[i] * delta), 16.0 * kUlp);
      }
      const double tolerance = 200.0 * kUlp;
      EXPECT_NEAR(moments.first, static_cast<double>(first), 4.0 * tolerance);
      EXPECT_NEAR(moments.second, static_cast<double>(second), 16.0 * tolerance);
      EXPECT_EQ(moments.first, again.first);
      EXPECT_EQ(moments.second, again.second);
      EXPECT_NEAR(loops::dot(x.data(), w.data(), n), static_cast<double>(dot), 4.0 * tolerance);
    }
  });
}

TEST(Simd, SinesEqualTextbookCode) {
  constexpr double kLengthscale = 0.8;
  constexpr double kZ = 0.3;
  on_every_target([] {
    for (const Size n : kLengths) {
      const Numbers x = random_numbers(n, -5.0, 5.0, 9);
      const Numbers w = random_numbers(n, -1.0, 1.0, 10);
      const Numbers start = random_numbers(n, 0.0, 1.0, 11);
      Numbers s = start;
      Numbers x_bar = start;
      loops::add_sine_distance(x.data(), kZ, n, kLengthscale, s.data());
      const loops::SineMoments moments =
          loops::weigh_sines(x.data(), kZ, w.data(), n, kLengthscale, 2.0, x_bar.data());
      Exact of_lengthscale = 0;
      Exact of_log_period = 0;
      Exact of_x = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        constexpr Exact pi = std::numbers::pi_v<Exact>;
        const Exact delta = Exact(x[i] - kZ);
        const Exact sine = std::sin(pi * delta);
        const Exact distance = 4 * sine * sine / (Exact(kLengthscale) * kLengthscale);
        const Exact slope =
            8 * pi * sine * std::cos(pi * delta) / (Exact(kLengthscale) * kLengthscale);
        EXPECT_NEAR(s[i], static_cast<double>(start[i] + distance), 64.0 * kUlp);
        EXPECT_NEAR(x_bar[i], static_cast<double>(start[i] + 2 * w[i] * slope), 256.0 * kUlp);
        of_lengthscale -= 2 * w[i] * distance / kLengthscale;
        of_log_period -= w[i] * slope * delta;
        of_x += w[i] * slope;
      }
      EXPECT_NEAR(moments.lengthscale, static_cast<double>(of_lengthscale), 1e-12);
      EXPECT_NEAR(moments.log_period, static_cast<double>(of_log_period), 1e-12);
      EXPECT_NEAR(moments.x, static_cast<double>(of_x), 1e-12);
    }
  });
}

TEST(Simd, RotationsEqualTextbookCode) {
  on_every_target([] {
    for (const Size n : kLengths) {
      const Numbers a = random_numbers(n, -1.0, 1.0, 14);
      const Numbers b = random_numbers(n, -1.0, 1.0, 15);
      Numbers u = a;
      Numbers v = b;
      rotate(u.data(), v.data(), n, 0.6, 0.8);
      for (std::size_t i = 0; i < a.size(); ++i) {
        EXPECT_NEAR(u[i], 0.6 * a[i] + 0.8 * b[i], 4.0 * kUlp);
        EXPECT_NEAR(v[i], 0.6 * b[i] - 0.8 * a[i], 4.0 * kUlp);
      }
    }
  });
}

// --- Small triangles ----------------------------------------------------------------------------

/// A matrix in column-major order with some rows of padding, which nothing may touch.
struct Block {
  Size n;
  Size ld;
  Numbers values;

  Block(Size rows, Size columns)
      : n(rows), ld(rows + 3), values(static_cast<std::size_t>(ld * columns), kInfinity) {}
  double& operator()(Size i, Size j) { return values[static_cast<std::size_t>(i + j * ld)]; }
};

/// A lower triangle of condition about ten; what stands above it is infinite.
Block triangle(Size n) {
  Block L(n, n);
  const Numbers entries = random_numbers(n * n, -1.0, 1.0, 12);
  for (Size j = 0; j < n; ++j) {
    for (Size i = j; i < n; ++i) {
      const double entry = entries[static_cast<std::size_t>(i + j * n)];
      L(i, j) = i == j ? 1.0 + 0.5 * entry : entry / static_cast<double>(n);
    }
  }
  return L;
}

const std::vector<Size> kSizes{1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 33, 48, 63, 64};

TEST(Simd, SmallCholeskyFactorsAreFound) {
  on_every_target([] {
    for (const Size n : kSizes) {
      Block L = triangle(n);
      Block A(n, n);
      for (Size j = 0; j < n; ++j) {
        for (Size i = j; i < n; ++i) {
          Exact sum = 0;
          for (Size k = 0; k <= j; ++k) sum += Exact(L(i, k)) * L(j, k);
          A(i, j) = static_cast<double>(sum);
        }
      }
      Block bad = A;
      ASSERT_TRUE(small_triangle::cholesky(A.values.data(), A.ld, n));
      for (Size j = 0; j < n; ++j) {
        for (Size i = 0; i < A.ld; ++i) {
          if (i >= j && i < n) {
            EXPECT_NEAR(A(i, j), L(i, j), 1e-14) << n << ": " << i << ", " << j;
          } else {
            EXPECT_EQ(A(i, j), kInfinity);  // left alone
          }
        }
      }
      bad(n - 1, n - 1) = -1.0;
      EXPECT_FALSE(small_triangle::cholesky(bad.values.data(), bad.ld, n));
    }
  });
}

TEST(Simd, SmallTrianglesAreSolvedAndSquared) {
  on_every_target([] {
    for (const Size n : kSizes) {
      Block L = triangle(n);
      for (const Size rows : {1, 3, 8, 13, 16, 17, 40}) {
        Block X(rows, n);
        const Numbers entries = random_numbers(rows * n, -1.0, 1.0, 13);
        for (Size j = 0; j < n; ++j) {
          for (Size i = 0; i < rows; ++i) X(i, j) = entries[static_cast<std::size_t>(i + j * rows)];
        }
        Block right = X;       // X L
        Block transposed = X;  // X Lᵀ
        for (Size i = 0; i < rows; ++i) {
          for (Size j = 0; j < n; ++j) {
            Exact a = 0;
            Exact b = 0;
            for (Size k = j; k < n; ++k) a += Exact(X(i, k)) * L(k, j);
            for (Size k = 0; k <= j; ++k) b += Exact(X(i, k)) * L(j, k);
            right(i, j) = static_cast<double>(a);
            transposed(i, j) = static_cast<double>(b);
          }
        }
        small_triangle::solve_right(L.values.data(), L.ld, n, right.values.data(), right.ld, rows);
        small_triangle::solve_right_transposed(L.values.data(), L.ld, n, transposed.values.data(),
                                               transposed.ld, rows);
        for (Size j = 0; j < n; ++j) {
          for (Size i = 0; i < X.ld; ++i) {
            if (i < rows) {
              EXPECT_NEAR(right(i, j), X(i, j), 1e-13);
              EXPECT_NEAR(transposed(i, j), X(i, j), 1e-13);
            } else {
              EXPECT_EQ(right(i, j), kInfinity);
              EXPECT_EQ(transposed(i, j), kInfinity);
            }
          }
        }
      }
      Block S = L;
      small_triangle::square(S.values.data(), S.ld, n);
      for (Size j = 0; j < n; ++j) {
        for (Size i = 0; i < S.ld; ++i) {
          if (i < j || i >= n) {
            EXPECT_EQ(S(i, j), kInfinity);
            continue;
          }
          Exact sum = 0;
          for (Size k = i; k < n; ++k) sum += Exact(L(k, i)) * L(k, j);
          EXPECT_NEAR(S(i, j), static_cast<double>(sum), 1e-14);
        }
      }
    }
  });
}

}  // namespace
}  // namespace ample
