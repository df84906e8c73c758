#include "ample/optimum.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "check.h"
#include "linalg.h"

namespace ample {
namespace {

void check_batch(const State& old, const MatrixRef& X, const Sites& sites) {
  check_columns("optimum", "X", X.cols(), old.dimension(), "the model's input dimension");
  check_rows("optimum", "y", sites.size(), X.rows(), "the rows of X");
}

/// Vᵀ = K_fa L_old⁻ᵀ
Matrix whiten(const State& old, const MatrixRef& X) {
  Matrix Vt = old.kernel(X, old.Z);
  if (old.size() > 0) solve_right(old.L, Op::transpose, Vt);
  return Vt;
}

/// K_ff − VᵀV, lower triangle
Matrix what_old_points_leave(const State& old, const MatrixRef& X, const MatrixRef& Vt) {
  Matrix S(X.rows(), X.rows());
  old.kernel.evaluate_lower(X, S);
  if (old.size() > 0) outer(-1.0, Vt, 1.0, S);
  return S;
}

/// What the old posterior predicts of f at the rows: N(t − error, covariance), lower triangle.
struct Predicted {
  Matrix covariance;
  Vector error;
};

/// N(Uᵀw, S + UᵀU) with U = L_D⁻¹V, the old posterior's part   (3)
Predicted predict(const State& old, const Sites& sites, const MatrixRef& Vt, Matrix S) {
  Predicted f{std::move(S), sites.target};
  if (old.size() > 0) {
    Matrix Ut = Vt;
    solve_right(old.L_D, Op::transpose, Ut);
    outer(1.0, Ut, 1.0, f.covariance);
    f.error.noalias() -= Ut * old.w;
  }
  return f;
}

/// log N(t; Uᵀw, S + UᵀU + Λ⁻¹)
std::optional<PredictiveDensity> density(double noise_variance, const Sites& sites, Predicted f) {
  Matrix& C = f.covariance;
  if (sites.weighted()) {
    C.diagonal().array() += noise_variance / sites.weight.array();
  } else {
    C.diagonal().array() += noise_variance;
  }
  PredictiveDensity out;
  out.residual = f.error.array() / C.diagonal().array().sqrt();
  if (!cholesky(C)) return std::nullopt;
  solve(C, Op::none, f.error);
  out.chi_squared = f.error.squaredNorm();
  out.log_density = -0.5 * static_cast<double>(sites.size()) * std::log(2.0 * std::numbers::pi) -
                    sum_log_diagonal(C) - 0.5 * out.chi_squared;
  if (!std::isfinite(out.log_density) || !out.residual.allFinite()) return std::nullopt;
  return out;
}

std::optional<double> value_of(const std::optional<PredictiveDensity>& density) {
  return density ? std::optional(density->log_density) : std::nullopt;
}

}  // namespace

std::optional<PredictiveDensity> predictive_density(const State& old, const MatrixRef& X,
                                                    const Sites& sites) {
  check_batch(old, X, sites);
  return predictive_density(old, X, sites, whiten(old, X));
}

std::optional<PredictiveDensity> predictive_density(const State& old, const MatrixRef& X,
                                                    const Sites& sites, const MatrixRef& Vt) {
  check_batch(old, X, sites);
  return density(old.noise_variance, sites,
                 predict(old, sites, Vt, what_old_points_leave(old, X, Vt)));
}

std::optional<double> optimum(const State& old, const MatrixRef& X, const Sites& sites) {
  return value_of(predictive_density(old, X, sites));
}

std::optional<double> optimum_with_noise(const State& old, const MatrixRef& X, const Sites& sites,
                                         std::span<const double> factors) {
  check_batch(old, X, sites);
  const Matrix Vt = whiten(old, X);
  const Predicted f = predict(old, sites, Vt, what_old_points_leave(old, X, Vt));
  std::optional<double> best;
  for (const double factor : factors) {
    if (!(factor > 0.0)) invalid("optimum: the noise's factor is {}, but must be positive", factor);
    const auto value = value_of(density(factor * old.noise_variance, sites, f));
    if (value && (!best || *value > *best)) best = value;
  }
  return best;
}

std::optional<double> optimum_with_jitter(const State& old, const MatrixRef& X, const Sites& sites,
                                          double jitter) {
  check_batch(old, X, sites);
  return optimum_with_jitter(old, X, sites, jitter, whiten(old, X));
}

// S = K_ff − VᵀV becomes S(S + εI)⁻¹S = S − εI + ε²(S + εI)⁻¹, and what is missing is the trace
// term of the bound   (9′)
std::optional<double> optimum_with_jitter(const State& old, const MatrixRef& X, const Sites& sites,
                                          double jitter, const MatrixRef& Vt) {
  check_batch(old, X, sites);
  if (!(jitter > 0.0)) invalid("optimum: jitter is {}, but must be positive", jitter);
  Matrix S = what_old_points_leave(old, X, Vt);
  Matrix P = S;
  P.diagonal().array() += jitter;
  if (!cholesky(P)) return std::nullopt;
  invert_from_cholesky(P);
  const Vector missing = (jitter * (1.0 - jitter * P.diagonal().array())).matrix();
  const double residual = sites.weighted() ? missing.dot(sites.weight) : missing.sum();
  S.diagonal().array() -= jitter;
  S.triangularView<Eigen::Lower>() += jitter * jitter * P;
  const auto value =
      value_of(density(old.noise_variance, sites, predict(old, sites, Vt, std::move(S))));
  if (!value) return std::nullopt;
  return *value - 0.5 * residual / old.noise_variance;
}

namespace {

/// A past's part of D̂ and ĉ, and what the paper's bound loses on the pseudo-data.
struct InflatedPast {
  Matrix A;
  Vector c;
  double quadratic = 0.0;
};

// D_a⁻¹ = S = L⁻ᵀ A_old L⁻¹ and D_a⁻¹ỹ = u = L⁻ᵀ c_old, so with J = I + tS
//   (D_a + tI)⁻¹ = J⁻¹S,   (D_a + tI)⁻¹ỹ = J⁻¹u,   ỹᵀ(D_a⁻¹ − (D_a + tI)⁻¹)ỹ = t uᵀJ⁻¹u,
// which hold in the limit too where the data say nothing and D_a⁻¹ is singular.
std::optional<InflatedPast> inflate(const State& old, double t) {
  Matrix S = old.A;
  solve_both_sides(old.L, S);
  S = S.selfadjointView<Eigen::Lower>();
  Matrix J = t * S;
  J.diagonal().array() += 1.0;
  if (!cholesky(J)) return std::nullopt;
  solve_left(J, Op::none, S);
  solve_left(J, Op::transpose, S);
  multiply_both_sides(old.L, S);
  Vector u = old.c;
  solve(old.L, Op::transpose, u);
  solve(J, Op::none, u);
  const double quadratic = t * u.squaredNorm();
  solve(J, Op::transpose, u);
  return InflatedPast{std::move(S), old.L.triangularView<Eigen::Lower>().transpose() * u,
                      quadratic};
}

}  // namespace

std::optional<double> upper_bound(UpperBound kind, const State& old, const BoundFactors& factors,
                                  const Sites& sites) {
  return upper_bound(kind, old, factors.Vt, factors.L_D, factors.residual, sites);
}

// D̂ = I + V Vᵀ/(σ² + t) + past,   ĉ = V y/(σ² + t) + past   (10), rows scaled by √w_n
std::optional<double> upper_bound(UpperBound kind, const State& old, const MatrixRef& Vt,
                                  const MatrixRef& L_D, double residual, const Sites& sites) {
  const Index M = Vt.cols();
  const Index M_a = old.size();
  const Vector y = sites.scaled_target();
  const double t = std::max(residual, 0.0);
  const double inflated = old.noise_variance + t;
  Matrix D_hat(M, M);
  gram(1.0 / inflated, Vt, 0.0, D_hat);
  D_hat.diagonal().array() += 1.0;
  Vector c_hat = Vt.transpose() * y / inflated;

  double past_quadratic = 0.0;
  if (M_a > 0 && kind == UpperBound::tight) {
    // W = I at θ_old.
    D_hat.topLeftCorner(M_a, M_a) += old.A;
    c_hat.head(M_a) += old.c;
  } else if (M_a > 0) {
    const auto past = inflate(old, t);
    if (!past) return std::nullopt;
    D_hat.topLeftCorner(M_a, M_a).triangularView<Eigen::Lower>() += past->A;
    c_hat.head(M_a) += past->c;
    past_quadratic = past->quadratic;
  }
  if (!cholesky(D_hat)) return std::nullopt;
  solve(D_hat, Op::none, c_hat);
  const double value = sites.log_constant(old.noise_variance) - sum_log_diagonal(L_D) -
                       0.5 * y.squaredNorm() / inflated + 0.5 * c_hat.squaredNorm() +
                       0.5 * past_quadratic - old.F;
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace ample
