#include "kernel_loops.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "vectorised.h"

// gcc calls libmvec only for functions it has been told about; glibc tells it under -ffast-math
// alone, which we do not want. clang knows them by -fveclib=libmvec.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
extern "C" {
__attribute__((simd("notinbranch"))) double exp(double) noexcept;
__attribute__((simd("notinbranch"))) double log(double) noexcept;
__attribute__((simd("notinbranch"))) double sin(double) noexcept;
__attribute__((simd("notinbranch"))) double cos(double) noexcept;
}
#endif

namespace ample::loops {
namespace {

// exp of a non-positive number. libmvec leaves its fast path where the result would underflow, and
// distances in short lengthscales do so in every entry; there the answer is 0 to any purpose.
constexpr double kExpUnderflow = -708.0;

// Beyond this a Matérn kernel is 0, and its polynomial factor must not meet that 0 as an infinity.
constexpr double kFar = 1e4;

inline double exp_negative(double a) {
  const double e = std::exp(std::max(a, kExpUnderflow));
  return a <= kExpUnderflow ? 0.0 : e;
}

// Sums run in several registers at once: one alone would wait for its last addition each time.
constexpr int kLanes = 4;

template <int width>
AMPLE_INLINE double total(const typename Pack<width>::Type (&sum)[kLanes]) {
  const typename Pack<width>::Type all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  double out = 0.0;
  for (int i = 0; i < width; ++i) out += all[i];
  return out;
}

/// One pack of weigh_differences.
template <int width>
AMPLE_INLINE void weigh_pack(const double* x, double z, const double* w, Size at, double factor,
                             double* x_bar, typename Pack<width>::Type& first,
                             typename Pack<width>::Type& second) {
  typename Pack<width>::Type delta;
  typename Pack<width>::Type weighted;
  load<width>(x + at, delta);
  load<width>(w + at, weighted);
  delta -= z;
  weighted *= delta;
  first += weighted;
  second += weighted * delta;
  if (x_bar != nullptr) {
    typename Pack<width>::Type sum;
    load<width>(x_bar + at, sum);
    sum += factor * weighted;
    store<width>(sum, x_bar + at);
  }
}

}  // namespace

template <int width>
AMPLE_INLINE void squared_distance_in_packs(const double* x, Size ldx, Size n, Size dims,
                                            const double* z, double* s) {
  // Sums stay in registers over all dimensions; kept in s, their traffic would bound this loop.
  Size i = 0;
  for (; i + kLanes * width <= n; i += kLanes * width) {
    typename Pack<width>::Type sum[kLanes] = {};
    for (Size d = 0; d < dims; ++d) {
      for (int p = 0; p < kLanes; ++p) {
        typename Pack<width>::Type a;
        load<width>(x + d * ldx + i + p * width, a);
        a -= z[d];
        sum[p] += a * a;
      }
    }
    for (int p = 0; p < kLanes; ++p) store<width>(sum[p], s + i + p * width);
  }
  for (Size k = i; k < n; ++k) s[k] = 0.0;
  for (Size d = 0; d < dims; ++d) {
#pragma omp simd
    for (Size k = i; k < n; ++k) {
      const double a = x[d * ldx + k] - z[d];
      s[k] += a * a;
    }
  }
}

AMPLE_FOR_EACH_WIDTH(void, squared_distance,
                     (const double* x, Size ldx, Size n, Size dims, const double* z, double* s), x,
                     ldx, n, dims, z, s)

AMPLE_VECTORISED
void dot_product(const double* x, Size ldx, Size n, Size dims, const double* z, double offset,
                 double* p) {
  for (Size i = 0; i < n; ++i) p[i] = offset;
  for (Size d = 0; d < dims; ++d) {
    const double* x0 = x + d * ldx;
    const double z0 = z[d];
#pragma omp simd
    for (Size i = 0; i < n; ++i) p[i] += x0[i] * z0;
  }
}

AMPLE_VECTORISED
void se_value(double* s, Size n, double variance) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) s[i] = variance * exp_negative(-0.5 * s[i]);
}

AMPLE_VECTORISED
void matern12_value(double* s, Size n, double variance) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) s[i] = variance * exp_negative(-std::sqrt(s[i]));
}

AMPLE_VECTORISED
void matern32_value(double* s, Size n, double variance) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) {
    const double a = std::min(std::sqrt(3.0 * s[i]), kFar);
    s[i] = variance * (1.0 + a) * exp_negative(-a);
  }
}

AMPLE_VECTORISED
void matern52_value(double* s, Size n, double variance) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) {
    const double a = std::min(std::sqrt(5.0 * s[i]), kFar);
    s[i] = variance * (1.0 + a + a * a * (1.0 / 3.0)) * exp_negative(-a);
  }
}

AMPLE_VECTORISED
void rq_value(double* s, Size n, double variance, double alpha) {
  const double scale = 0.5 / alpha;
#pragma omp simd
  for (Size i = 0; i < n; ++i) {
    s[i] = variance * exp_negative(-alpha * std::log(1.0 + scale * s[i]));
  }
}

AMPLE_VECTORISED
void se_slope(const double* s, Size n, double* g, double* dg) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) {
    const double e = exp_negative(-0.5 * s[i]);
    g[i] = e;
    dg[i] = -0.5 * e;
  }
}

AMPLE_VECTORISED
void matern12_slope(const double* s, Size n, double* g, double* dg) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) {
    const double r = std::sqrt(s[i]);
    const double e = exp_negative(-r);
    g[i] = e;
    // At r = 0 the kernel has a kink; 0 is the mean of its one-sided derivatives.
    dg[i] = r > 0.0 ? -0.5 * e / std::max(r, 1e-300) : 0.0;
  }
}

AMPLE_VECTORISED
void matern32_slope(const double* s, Size n, double* g, double* dg) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) {
    const double a = std::min(std::sqrt(3.0 * s[i]), kFar);
    const double e = exp_negative(-a);
    g[i] = (1.0 + a) * e;
    dg[i] = -1.5 * e;
  }
}

AMPLE_VECTORISED
void matern52_slope(const double* s, Size n, double* g, double* dg) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) {
    const double a = std::min(std::sqrt(5.0 * s[i]), kFar);
    const double e = exp_negative(-a);
    g[i] = (1.0 + a + a * a * (1.0 / 3.0)) * e;
    dg[i] = (-5.0 / 6.0) * (1.0 + a) * e;
  }
}

AMPLE_VECTORISED
void rq_slope(const double* s, Size n, double alpha, double* g, double* dg, double* dalpha) {
  const double scale = 0.5 / alpha;
#pragma omp simd
  for (Size i = 0; i < n; ++i) {
    const double t = std::min(scale * s[i], 1e300);
    const double u = 1.0 + t;
    const double log_u = std::log(u);
    const double e = exp_negative(-alpha * log_u);
    g[i] = e;
    dg[i] = -0.5 * e / u;
    dalpha[i] = e * (t / u - log_u);
  }
}

template <int width>
AMPLE_INLINE double dot_in_packs(const double* a, const double* b, Size n) {
  typename Pack<width>::Type sum[kLanes] = {};
  Size i = 0;
  for (; i + kLanes * width <= n; i += kLanes * width) {
    for (int p = 0; p < kLanes; ++p) {
      typename Pack<width>::Type u;
      typename Pack<width>::Type v;
      load<width>(a + i + p * width, u);
      load<width>(b + i + p * width, v);
      sum[p] += u * v;
    }
  }
  for (; i + width <= n; i += width) {
    typename Pack<width>::Type u;
    typename Pack<width>::Type v;
    load<width>(a + i, u);
    load<width>(b + i, v);
    sum[0] += u * v;
  }
  double rest = 0.0;
  for (; i < n; ++i) rest += a[i] * b[i];
  return total<width>(sum) + rest;
}

AMPLE_FOR_EACH_WIDTH(double, dot, (const double* a, const double* b, Size n), a, b, n)

AMPLE_VECTORISED
void multiply(const double* a, const double* b, Size n, double factor, double* w) {
#pragma omp simd
  for (Size i = 0; i < n; ++i) w[i] = factor * a[i] * b[i];
}

template <int width>
AMPLE_INLINE Moments weigh_differences_in_packs(const double* x, double z, const double* w, Size n,
                                                double factor, double* x_bar) {
  typename Pack<width>::Type first[kLanes] = {};
  typename Pack<width>::Type second[kLanes] = {};
  Size i = 0;
  for (; i + kLanes * width <= n; i += kLanes * width) {
    for (int p = 0; p < kLanes; ++p) {
      weigh_pack<width>(x, z, w, i + p * width, factor, x_bar, first[p], second[p]);
    }
  }
  for (; i + width <= n; i += width) {
    weigh_pack<width>(x, z, w, i, factor, x_bar, first[0], second[0]);
  }
  Moments moments{total<width>(first), total<width>(second)};
  for (; i < n; ++i) {
    const double delta = x[i] - z;
    const double weighted = w[i] * delta;
    moments.first += weighted;
    moments.second += weighted * delta;
    if (x_bar != nullptr) x_bar[i] += factor * weighted;
  }
  return moments;
}

AMPLE_FOR_EACH_WIDTH(Moments, weigh_differences,
                     (const double* x, double z, const double* w, Size n, double factor,
                      double* x_bar),
                     x, z, w, n, factor, x_bar)

AMPLE_VECTORISED
void add_sine_distance(const double* x, double z, Size n, double lengthscale, double* s) {
  const double scale = 2.0 / lengthscale;
#pragma omp simd
  for (Size i = 0; i < n; ++i) {
    const double delta = x[i] - z;
    // Whole periods are taken off first, so that far apart points lose no digits.
    const double sine = scale * std::sin(std::numbers::pi * (delta - std::rint(delta)));
    s[i] += sine * sine;
  }
}

AMPLE_VECTORISED
SineMoments weigh_sines(const double* x, double z, const double* w, Size n, double lengthscale,
                        double factor, double* x_bar) {
  const double scale = 4.0 / (lengthscale * lengthscale);
  double sum_lengthscale = 0.0;
  double sum_log_period = 0.0;
  double sum_x = 0.0;
#pragma omp simd reduction(+ : sum_lengthscale, sum_log_period, sum_x)
  for (Size i = 0; i < n; ++i) {
    const double delta = x[i] - z;
    const double angle = std::numbers::pi * (delta - std::rint(delta));
    const double sine = std::sin(angle);
    const double slope = w[i] * scale * 2.0 * std::numbers::pi * sine * std::cos(angle);
    sum_lengthscale += w[i] * scale * sine * sine;
    sum_log_period -= slope * delta;
    sum_x += slope;
    if (x_bar != nullptr) x_bar[i] += factor * slope;
  }
  return {-2.0 * sum_lengthscale / lengthscale, sum_log_period, sum_x};
}

}  // namespace ample::loops
