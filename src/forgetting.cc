#include "ample/forgetting.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "check.h"
#include "linalg.h"

namespace ample {
namespace {

void check_gamma(const char* where, double gamma) {
  if (!(gamma >= 0.0 && gamma <= 1.0)) {
    invalid("{}: gamma is {}, but must be from 0 to 1", where, gamma);
  }
}

}  // namespace

double Forgetting::weight_after(double elapsed) const {
  return rule == Rule::half_life ? std::exp2(-std::max(elapsed, 0.0) / half_life) : 1.0;
}

void Forgetting::validate(std::string_view where) const {
  if (rule != Rule::half_life) {
    if (half_life == 0.0 && clock == Clock::rows) return;
    invalid("{}: the half-life is {}, but must be left out with the rule {}", where, half_life,
            to_string(rule));
  }
  if (!(half_life > 0.0) || !std::isfinite(half_life)) {
    invalid("{}: the half-life is {}, but must be positive and finite", where, half_life);
  }
}

std::string_view to_string(Forgetting::Rule rule) {
  switch (rule) {
    case Forgetting::Rule::never:
      return "never";
    case Forgetting::Rule::adaptive:
      return "adaptive";
    case Forgetting::Rule::half_life:
      return "half-life";
  }
  AMPLE_ASSERT(false);
}

State temper(const State& state, double gamma) {
  check_gamma("temper", gamma);
  if (gamma == 1.0) return state;
  State out = state;
  out.A *= gamma;
  out.c *= gamma;
  // I + γA is better conditioned than I + A, which has a factor; but that may have been updated
  // point by point, and this one is computed anew.
  if (!out.factorize()) {
    throw NumericalError(
        fmt::format("temper: I + {} A has no factor; standardise the data", gamma));
  }
  return out;
}

namespace {

/// F = −½ log|I + G| + ½ gᵀ(I + G)⁻¹g   (1); empty if rounding leaves no factor
std::optional<double> log_normaliser(Matrix G, Vector g) {
  G.diagonal().array() += 1.0;
  if (!cholesky(G)) return std::nullopt;
  solve(G, Op::none, g);
  return 0.5 * g.squaredNorm() - sum_log_diagonal(G);
}

}  // namespace

std::optional<TemperedEvidence> TemperedEvidence::of(const State& state, const MatrixRef& X,
                                                     const VectorRef& y) {
  check_columns("TemperedEvidence", "X", X.cols(), state.dimension(),
                "the model's input dimension");
  check_rows("TemperedEvidence", "y", y.size(), X.rows(), "the rows of X");
  const Index N = X.rows();
  const Index M = state.size();
  TemperedEvidence out;

  // Vᵀ = K_fb L⁻ᵀ   [N,M],   B = K_ff − VᵀV + σ²I   [N,N]
  Matrix Vt(N, M);
  state.kernel.evaluate(X, state.Z, Vt);
  solve_right(state.L, Op::transpose, Vt);
  Matrix L_B(N, N);
  state.kernel.evaluate_lower(X, L_B);
  outer(-1.0, Vt, 1.0, L_B);
  L_B.diagonal().array() += state.noise_variance;
  if (!cholesky(L_B)) return std::nullopt;

  // H = V B⁻¹ Vᵀ   [M,M],   h = V B⁻¹ y   [M]
  Vector e = y;
  solve(L_B, Op::none, e);
  out.constant_ = -0.5 * static_cast<double>(N) * std::log(2.0 * std::numbers::pi) -
                  sum_log_diagonal(L_B) - 0.5 * e.squaredNorm();
  solve_left(L_B, Op::none, Vt);
  out.h_ = Vt.transpose() * e;
  out.H_.resize(M, M);
  gram(1.0, Vt, 0.0, out.H_);
  out.A_ = state.A;
  out.c_ = state.c;
  out.F_ = state.F;
  return out;
}

double TemperedEvidence::operator()(double gamma) const {
  check_gamma("TemperedEvidence", gamma);
  const auto after = log_normaliser(gamma * A_ + H_, gamma * c_ + h_);
  std::optional<double> before = gamma == 1.0 ? F_ : 0.0;
  if (gamma > 0.0 && gamma < 1.0) before = log_normaliser(gamma * A_, gamma * c_);
  if (!after || !before) return -std::numeric_limits<double>::infinity();
  return constant_ + *after - *before;  // (9″)
}

}  // namespace ample
