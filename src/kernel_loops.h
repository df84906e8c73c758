// The innermost loops of the kernels: plain arrays in, plain arrays out, vectorised for the
// processor at hand (simd.h).
//
// s is a scaled squared distance; g(s) a profile with g(0) = 1; dg its derivative with respect to
// s.
#pragma once

#include <cstddef>

namespace ample::loops {

using Size = std::ptrdiff_t;

/// s_i = Σ_d (x_id − z_d)², x column-major with leading dimension ldx.
void squared_distance(const double* x, Size ldx, Size n, Size dims, const double* z, double* s);
/// p_i = offset + Σ_d x_id z_d.
void dot_product(const double* x, Size ldx, Size n, Size dims, const double* z, double offset,
                 double* p);

/// s ← variance·g(s).
void se_value(double* s, Size n, double variance);
void matern12_value(double* s, Size n, double variance);
void matern32_value(double* s, Size n, double variance);
void matern52_value(double* s, Size n, double variance);
void rq_value(double* s, Size n, double variance, double alpha);

/// g and dg at s.
void se_slope(const double* s, Size n, double* g, double* dg);
void matern12_slope(const double* s, Size n, double* g, double* dg);
void matern32_slope(const double* s, Size n, double* g, double* dg);
void matern52_slope(const double* s, Size n, double* g, double* dg);
/// Also dalpha = ∂g/∂α.
void rq_slope(const double* s, Size n, double alpha, double* g, double* dg, double* dalpha);

/// Σ_i a_i b_i.
double dot(const double* a, const double* b, Size n);
/// x ← x + factor·v; returns ‖x‖².
double add_multiple(const double* v, double factor, double* x, Size n);
/// sum_i += factor · x_i and sum_i += factor · x_i².
void add_scaled(const double* x, Size n, double factor, double* sum);
void add_squares(const double* x, Size n, double factor, double* sum);
/// w_i ← factor · a_i b_i.
void multiply(const double* a, const double* b, Size n, double factor, double* w);

/// For one dimension, δ_i = x_i − z: returns Σ w δ and Σ w δ² and, if x_bar is not null, adds
/// factor·w_i δ_i to it.
struct Moments {
  double first;
  double second;
};
Moments weigh_differences(const double* x, double z, const double* w, Size n, double factor,
                          double* x_bar);

/// s += (2 sin(π δ)/ℓ)², δ = (x_i − z) in periods.
void add_sine_distance(const double* x, double z, Size n, double lengthscale, double* s);
/// For one dimension of the periodic kernel and weights w = dF/ds: Σ w ∂s/∂ℓ, Σ w ∂s/∂(log p), and
/// Σ w ∂s/∂x with x_bar += factor · w ∂s/∂x (x in periods).
struct SineMoments {
  double lengthscale;
  double log_period;
  double x;
};
SineMoments weigh_sines(const double* x, double z, const double* w, Size n, double lengthscale,
                        double factor, double* x_bar);

}  // namespace ample::loops
