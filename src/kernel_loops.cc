#include "kernel_loops.h"

#include <algorithm>
#include <iterator>
#include <numbers>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel_loops.cc"
#include "simd_targets.h"
// After simd_targets.h.
#include <hwy/contrib/math/math-inl.h>

HWY_BEFORE_NAMESPACE();
namespace ample::loops::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<double>;
using V = hn::Vec<D>;
constexpr D d;
constexpr Size kLanes = hn::MaxLanes(d);

HWY_INLINE V set(double value) { return hn::Set(d, value); }

/// A register's worth of an array from index i on.
struct Whole {
  Size i;

  HWY_INLINE V load(const double* p) const { return hn::LoadU(d, p + i); }
  HWY_INLINE void store(V v, double* p) const { hn::StoreU(v, d, p + i); }
};

/// The rest of an array, zeros after it.
struct Rest {
  Size i;
  Size count;

// By a masked access where that leaves alone what the mask hides, elsewhere through a padded copy.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  HWY_INLINE V load(const double* p) const { return hn::MaskedLoad(mask(), d, p + i); }
  HWY_INLINE void store(V v, double* p) const { hn::BlendedStore(v, mask(), d, p + i); }
  HWY_INLINE hn::Mask<D> mask() const { return hn::FirstN(d, static_cast<std::size_t>(count)); }
#else
  HWY_INLINE V load(const double* p) const {
    HWY_ALIGN double padded[kLanes] = {};
    std::copy_n(p + i, count, padded);
    return hn::Load(d, padded);
  }
  HWY_INLINE void store(V v, double* p) const {
    HWY_ALIGN double padded[kLanes];
    hn::Store(v, d, padded);
    std::copy_n(padded, count, p + i);
  }
#endif
};

/// Calls body(part) for each register's worth of n numbers. An entry is computed by the same
/// operations wherever it stands.
template <class Body>
HWY_INLINE void for_each_part(Size n, const Body& body) {
  Size i = 0;
  for (; i + kLanes <= n; i += kLanes) body(Whole{i});
  if (i < n) body(Rest{i, n - i});
}

// Sums run in several registers at once: one alone would wait for its last addition each time.
struct Sum {
  V part[4];

  HWY_INLINE Sum() : part{hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)} {}
  HWY_INLINE double total() const {
    return hn::GetLane(hn::SumOfLanes(d, (part[0] + part[1]) + (part[2] + part[3])));
  }
};
constexpr Size kSums = 4;

/// body(which of the sums, part) over n numbers.
template <class Body>
HWY_INLINE void for_each_sum(Size n, const Body& body) {
  Size i = 0;
  for (; i + kSums * kLanes <= n; i += kSums * kLanes) {
    for (Size p = 0; p < kSums; ++p) body(p, Whole{i + p * kLanes});
  }
  for (; i + kLanes <= n; i += kLanes) body(Size{0}, Whole{i});
  if (i < n) body(Size{0}, Rest{i, n - i});
}

// --- Distances and products ----------------------------------------------------------------------

/// Sums over the dimensions of `packs` registers of points at once, which stay in registers: kept
/// in memory, their traffic would bound this loop.
template <int packs, class Part, class Add>
HWY_INLINE void over_dimensions(const Part (&part)[packs], const double* x, Size ldx, Size dims,
                                const double* z, double start, double* out, const Add& add) {
  V sum[packs];
  for (int p = 0; p < packs; ++p) sum[p] = set(start);
  for (Size k = 0; k < dims; ++k) {
    const V z_k = set(z[k]);
    for (int p = 0; p < packs; ++p) sum[p] = add(part[p].load(x + k * ldx), z_k, sum[p]);
  }
  for (int p = 0; p < packs; ++p) part[p].store(sum[p], out);
}

template <class Add>
HWY_INLINE void for_all_points(const double* x, Size ldx, Size n, Size dims, const double* z,
                               double start, double* out, const Add& add) {
  Size i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    const Whole four[] = {{i}, {i + kLanes}, {i + 2 * kLanes}, {i + 3 * kLanes}};
    over_dimensions(four, x, ldx, dims, z, start, out, add);
  }
  for (; i + kLanes <= n; i += kLanes) {
    const Whole one[] = {{i}};
    over_dimensions(one, x, ldx, dims, z, start, out, add);
  }
  if (i < n) {
    const Rest rest[] = {{i, n - i}};
    over_dimensions(rest, x, ldx, dims, z, start, out, add);
  }
}

void squared_distance(const double* x, Size ldx, Size n, Size dims, const double* z, double* s) {
  for_all_points(x, ldx, n, dims, z, 0.0, s, [](V a, V b, V sum) HWY_ATTR {
    const V delta = a - b;
    return hn::MulAdd(delta, delta, sum);
  });
}

void dot_product(const double* x, Size ldx, Size n, Size dims, const double* z, double offset,
                 double* p) {
  for_all_points(x, ldx, n, dims, z, offset, p,
                 [](V a, V b, V sum) HWY_ATTR { return hn::MulAdd(a, b, sum); });
}

// --- Profiles ------------------------------------------------------------------------------------

/// exp of a number that is not positive, to about one unit in the last place; 0 where it would be
/// subnormal, NaN of NaN. Highway's own is valid for more arguments and takes up to twice the time.
///
/// a = k log 2 + r with |r| ≤ log 2/2, and exp(a) = 2^k exp(r) with a polynomial of near-minimax
/// error (relative 2e-17) for exp(r).
HWY_INLINE V exp_negative(V a) {
  constexpr double kUnderflow = -708.0;
  constexpr double kLog2High = 0.6931471803691238;  // 32 bits, so that k times this is exact
  constexpr double kLog2Low = 1.9082149292705877e-10;
  // Adding 1.5 · 2^52 rounds to an integer, which is then what the last bits of the sum hold; 1023
  // more, and they are the exponent of 2^k.
  constexpr double kRound = 6755399441055744.0 + 1023.0;
  const V shifted = hn::MulAdd(a, set(std::numbers::log2e), set(kRound));
  const V k = shifted - set(kRound);
  const V r = hn::NegMulAdd(k, set(kLog2Low), hn::NegMulAdd(k, set(kLog2High), a));
  constexpr double kPolynomial[] = {2.510038549551032e-08,
                                    2.7620088445409746e-07,
                                    2.7557268459997064e-06,
                                    2.4801521295954376e-05,
                                    0.00019841269863053618,
                                    0.0013888888917213717,
                                    0.008333333333330062,
                                    0.04166666666662413,
                                    0.16666666666666669,
                                    0.5000000000000001,
                                    1.0,
                                    1.0};
  V p = set(kPolynomial[0]);
  for (std::size_t i = 1; i < std::size(kPolynomial); ++i) {
    p = hn::MulAdd(p, r, set(kPolynomial[i]));
  }
  const hn::RebindToUnsigned<D> bits;
  const V power = hn::BitCast(d, hn::ShiftLeft<52>(hn::BitCast(bits, shifted)));
  return hn::IfThenZeroElse(hn::Le(a, set(kUnderflow)), p * power);
}

/// min(v, limit), and NaN of NaN.
HWY_INLINE V at_most(double limit, V v) {
  return hn::IfThenElse(hn::Gt(v, set(limit)), set(limit), v);
}

// Beyond this a Matérn kernel is 0, and its polynomial factor must not meet that 0 as an infinity.
constexpr double kFar = 1e4;

/// √(ν s) of a Matérn kernel.
HWY_INLINE V matern_distance(double nu, V s) { return at_most(kFar, hn::Sqrt(set(nu) * s)); }

/// What the profile and its derivative share, computed once.
struct SquaredExponential {
  struct At {
    V e;
    HWY_INLINE explicit At(V s) : e(exp_negative(set(-0.5) * s)) {}
    HWY_INLINE V value() const { return e; }
    HWY_INLINE V slope() const { return set(-0.5) * e; }
  };
};

struct Matern12 {
  struct At {
    V r;
    V e;
    HWY_INLINE explicit At(V s) : r(hn::Sqrt(s)), e(exp_negative(hn::Neg(r))) {}
    HWY_INLINE V value() const { return e; }
    // At r = 0 the kernel has a kink; 0 is the mean of its one-sided derivatives.
    HWY_INLINE V slope() const {
      return hn::IfThenZeroElse(hn::Eq(r, hn::Zero(d)), set(-0.5) * e / r);
    }
  };
};

struct Matern32 {
  struct At {
    V a;
    V e;
    HWY_INLINE explicit At(V s) : a(matern_distance(3.0, s)), e(exp_negative(hn::Neg(a))) {}
    HWY_INLINE V value() const { return (set(1.0) + a) * e; }
    HWY_INLINE V slope() const { return set(-1.5) * e; }
  };
};

struct Matern52 {
  struct At {
    V a;
    V e;
    HWY_INLINE explicit At(V s) : a(matern_distance(5.0, s)), e(exp_negative(hn::Neg(a))) {}
    HWY_INLINE V value() const { return hn::MulAdd(a * a, set(1.0 / 3.0), set(1.0) + a) * e; }
    HWY_INLINE V slope() const { return set(-5.0 / 6.0) * (set(1.0) + a) * e; }
  };
};

template <class Profile>
HWY_INLINE void value_of(double* s, Size n, double variance) {
  const V scale = set(variance);
  for_each_part(n, [&](auto part) HWY_ATTR {
    const typename Profile::At at(part.load(s));
    part.store(scale * at.value(), s);
  });
}

template <class Profile>
HWY_INLINE void slope_of(const double* s, Size n, double* g, double* dg) {
  for_each_part(n, [&](auto part) HWY_ATTR {
    const typename Profile::At at(part.load(s));
    part.store(at.value(), g);
    part.store(at.slope(), dg);
  });
}

void se_value(double* s, Size n, double variance) { value_of<SquaredExponential>(s, n, variance); }
void matern12_value(double* s, Size n, double variance) { value_of<Matern12>(s, n, variance); }
void matern32_value(double* s, Size n, double variance) { value_of<Matern32>(s, n, variance); }
void matern52_value(double* s, Size n, double variance) { value_of<Matern52>(s, n, variance); }

void se_slope(const double* s, Size n, double* g, double* dg) {
  slope_of<SquaredExponential>(s, n, g, dg);
}
void matern12_slope(const double* s, Size n, double* g, double* dg) {
  slope_of<Matern12>(s, n, g, dg);
}
void matern32_slope(const double* s, Size n, double* g, double* dg) {
  slope_of<Matern32>(s, n, g, dg);
}
void matern52_slope(const double* s, Size n, double* g, double* dg) {
  slope_of<Matern52>(s, n, g, dg);
}

/// (1 + t)^−α and its parts, t = s/(2α).
struct RationalQuadratic {
  V t;
  V u;
  V log_u;
  V e;

  HWY_INLINE RationalQuadratic(V s, double alpha)
      : t(at_most(1e300, set(0.5 / alpha) * s)),
        u(set(1.0) + t),
        log_u(hn::IfThenElse(hn::IsNaN(u), u, hn::Log(d, u))),
        e(exp_negative(set(-alpha) * log_u)) {}
};

void rq_value(double* s, Size n, double variance, double alpha) {
  for_each_part(n, [&](auto part) HWY_ATTR {
    const RationalQuadratic at(part.load(s), alpha);
    part.store(set(variance) * at.e, s);
  });
}

void rq_slope(const double* s, Size n, double alpha, double* g, double* dg, double* dalpha) {
  for_each_part(n, [&](auto part) HWY_ATTR {
    const RationalQuadratic at(part.load(s), alpha);
    part.store(at.e, g);
    part.store(set(-0.5) * at.e / at.u, dg);
    part.store(at.e * (at.t / at.u - at.log_u), dalpha);
  });
}

// --- Sums ----------------------------------------------------------------------------------------

double dot(const double* a, const double* b, Size n) {
  Sum sum;
  for_each_sum(n, [&](Size p, auto part) HWY_ATTR {
    sum.part[p] = hn::MulAdd(part.load(a), part.load(b), sum.part[p]);
  });
  return sum.total();
}

double add_multiple(const double* v, double factor, double* x, Size n) {
  Sum squares;
  for_each_sum(n, [&](Size p, auto part) HWY_ATTR {
    const V sum = hn::MulAdd(set(factor), part.load(v), part.load(x));
    part.store(sum, x);
    squares.part[p] = hn::MulAdd(sum, sum, squares.part[p]);
  });
  return squares.total();
}

void add_scaled(const double* x, Size n, double factor, double* sum) {
  for_each_part(n, [&](auto part) HWY_ATTR {
    part.store(hn::MulAdd(set(factor), part.load(x), part.load(sum)), sum);
  });
}

void add_squares(const double* x, Size n, double factor, double* sum) {
  for_each_part(n, [&](auto part) HWY_ATTR {
    const V v = part.load(x);
    part.store(hn::MulAdd(set(factor) * v, v, part.load(sum)), sum);
  });
}

void multiply(const double* a, const double* b, Size n, double factor, double* w) {
  for_each_part(
      n, [&](auto part) HWY_ATTR { part.store(set(factor) * part.load(a) * part.load(b), w); });
}

Moments weigh_differences(const double* x, double z, const double* w, Size n, double factor,
                          double* x_bar) {
  Sum first;
  Sum second;
  for_each_sum(n, [&](Size p, auto part) HWY_ATTR {
    const V delta = part.load(x) - set(z);
    const V weighted = part.load(w) * delta;
    first.part[p] = first.part[p] + weighted;
    second.part[p] = hn::MulAdd(weighted, delta, second.part[p]);
    if (x_bar != nullptr) {
      part.store(hn::MulAdd(set(factor), weighted, part.load(x_bar)), x_bar);
    }
  });
  return {first.total(), second.total()};
}

// --- Sines ---------------------------------------------------------------------------------------

/// π times δ less its whole periods, so that far apart points lose no digits.
HWY_INLINE V angle_of(V delta) { return set(std::numbers::pi) * (delta - hn::Round(delta)); }

void add_sine_distance(const double* x, double z, Size n, double lengthscale, double* s) {
  for_each_part(n, [&](auto part) HWY_ATTR {
    const V sine = set(2.0 / lengthscale) * hn::Sin(d, angle_of(part.load(x) - set(z)));
    part.store(hn::MulAdd(sine, sine, part.load(s)), s);
  });
}

SineMoments weigh_sines(const double* x, double z, const double* w, Size n, double lengthscale,
                        double factor, double* x_bar) {
  const double scale = 4.0 / (lengthscale * lengthscale);
  Sum sum_lengthscale;
  Sum sum_log_period;
  Sum sum_x;
  for_each_sum(n, [&](Size p, auto part) HWY_ATTR {
    const V delta = part.load(x) - set(z);
    const V angle = angle_of(delta);
    const V sine = hn::Sin(d, angle);
    const V weighted = part.load(w) * set(scale) * sine;
    const V slope = weighted * set(2.0 * std::numbers::pi) * hn::Cos(d, angle);
    sum_lengthscale.part[p] = hn::MulAdd(weighted, sine, sum_lengthscale.part[p]);
    sum_log_period.part[p] = hn::NegMulAdd(slope, delta, sum_log_period.part[p]);
    sum_x.part[p] = sum_x.part[p] + slope;
    if (x_bar != nullptr) part.store(hn::MulAdd(set(factor), slope, part.load(x_bar)), x_bar);
  });
  return {-2.0 * sum_lengthscale.total() / lengthscale, sum_log_period.total(), sum_x.total()};
}

}  // namespace ample::loops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ample::loops {
namespace {
HWY_EXPORT(squared_distance);
HWY_EXPORT(dot_product);
HWY_EXPORT(se_value);
HWY_EXPORT(matern12_value);
HWY_EXPORT(matern32_value);
HWY_EXPORT(matern52_value);
HWY_EXPORT(rq_value);
HWY_EXPORT(se_slope);
HWY_EXPORT(matern12_slope);
HWY_EXPORT(matern32_slope);
HWY_EXPORT(matern52_slope);
HWY_EXPORT(rq_slope);
HWY_EXPORT(dot);
HWY_EXPORT(add_multiple);
HWY_EXPORT(add_scaled);
HWY_EXPORT(add_squares);
HWY_EXPORT(multiply);
HWY_EXPORT(weigh_differences);
HWY_EXPORT(add_sine_distance);
HWY_EXPORT(weigh_sines);
}  // namespace

void squared_distance(const double* x, Size ldx, Size n, Size dims, const double* z, double* s) {
  AMPLE_DISPATCH(squared_distance)(x, ldx, n, dims, z, s);
}
void dot_product(const double* x, Size ldx, Size n, Size dims, const double* z, double offset,
                 double* p) {
  AMPLE_DISPATCH(dot_product)(x, ldx, n, dims, z, offset, p);
}

void se_value(double* s, Size n, double variance) { AMPLE_DISPATCH(se_value)(s, n, variance); }
void matern12_value(double* s, Size n, double variance) {
  AMPLE_DISPATCH(matern12_value)(s, n, variance);
}
void matern32_value(double* s, Size n, double variance) {
  AMPLE_DISPATCH(matern32_value)(s, n, variance);
}
void matern52_value(double* s, Size n, double variance) {
  AMPLE_DISPATCH(matern52_value)(s, n, variance);
}
void rq_value(double* s, Size n, double variance, double alpha) {
  AMPLE_DISPATCH(rq_value)(s, n, variance, alpha);
}

void se_slope(const double* s, Size n, double* g, double* dg) {
  AMPLE_DISPATCH(se_slope)(s, n, g, dg);
}
void matern12_slope(const double* s, Size n, double* g, double* dg) {
  AMPLE_DISPATCH(matern12_slope)(s, n, g, dg);
}
void matern32_slope(const double* s, Size n, double* g, double* dg) {
  AMPLE_DISPATCH(matern32_slope)(s, n, g, dg);
}
void matern52_slope(const double* s, Size n, double* g, double* dg) {
  AMPLE_DISPATCH(matern52_slope)(s, n, g, dg);
}
void rq_slope(const double* s, Size n, double alpha, double* g, double* dg, double* dalpha) {
  AMPLE_DISPATCH(rq_slope)(s, n, alpha, g, dg, dalpha);
}

double dot(const double* a, const double* b, Size n) { return AMPLE_DISPATCH(dot)(a, b, n); }
double add_multiple(const double* v, double factor, double* x, Size n) {
  return AMPLE_DISPATCH(add_multiple)(v, factor, x, n);
}

void add_scaled(const double* x, Size n, double factor, double* sum) {
  AMPLE_DISPATCH(add_scaled)(x, n, factor, sum);
}
void add_squares(const double* x, Size n, double factor, double* sum) {
  AMPLE_DISPATCH(add_squares)(x, n, factor, sum);
}
void multiply(const double* a, const double* b, Size n, double factor, double* w) {
  AMPLE_DISPATCH(multiply)(a, b, n, factor, w);
}

Moments weigh_differences(const double* x, double z, const double* w, Size n, double factor,
                          double* x_bar) {
  return AMPLE_DISPATCH(weigh_differences)(x, z, w, n, factor, x_bar);
}

void add_sine_distance(const double* x, double z, Size n, double lengthscale, double* s) {
  AMPLE_DISPATCH(add_sine_distance)(x, z, n, lengthscale, s);
}
SineMoments weigh_sines(const double* x, double z, const double* w, Size n, double lengthscale,
                        double factor, double* x_bar) {
  return AMPLE_DISPATCH(weigh_sines)(x, z, w, n, lengthscale, factor, x_bar);
}

}  // namespace ample::loops
#endif
