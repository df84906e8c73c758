#include "ample/forgetting.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ample/exact_gp.h"
#include "ample/metrics.h"
#include "ample/target_statistics.h"
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

State temper(const State& state, double gamma) {
  check_gamma("temper", gamma);
  if (gamma == 1.0) return state;
  State out = state;
  out.A *= gamma;
  out.c *= gamma;
  // I + γA is better conditioned than I + A, which has a factor.
  const bool factorized = out.factorize();
  AMPLE_ASSERT(factorized);
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
  return out;
}

double TemperedEvidence::operator()(double gamma) const {
  check_gamma("TemperedEvidence", gamma);
  const auto after = log_normaliser(gamma * A_ + H_, gamma * c_ + h_);
  const auto before = log_normaliser(gamma * A_, gamma * c_);
  if (!after || !before) return -std::numeric_limits<double>::infinity();
  return constant_ + *after - *before;  // (9″)
}

namespace {

/// Σ log density of some rows, given others; minus infinity if that cannot be computed.
double foresight(const Hyperparameters& theta, const MatrixRef& X, const VectorRef& y,
                 const MatrixRef& X_test, const VectorRef& y_test) {
  ExactGP gp(theta);
  try {
    gp.condition(X, y);
  } catch (const NumericalError&) {
    return -std::numeric_limits<double>::infinity();
  }
  const double mean = -nlpd(y_test, gp.predict(X_test, Target::observation));
  return mean * static_cast<double>(y_test.size());
}

}  // namespace

bool contradict(const Hyperparameters& theta, const MatrixRef& X_old, const VectorRef& y_old,
                const MatrixRef& X_new, const VectorRef& y_new, double nats) {
  constexpr Index kMost = 1000;
  const Index step = (X_new.rows() + kMost - 1) / kMost;
  const Index half = X_new.rows() / (2 * step);
  if (half == 0) return false;
  const auto given = Eigen::seqN(Index{0}, half, 2 * step);
  const auto asked = Eigen::seqN(step, half, 2 * step);
  const Index R = X_old.rows();
  Matrix X(R + half, X_new.cols());
  Vector y(R + half);
  X << X_old, X_new(given, Eigen::all);
  y << y_old, y_new(given);
  const Matrix X_test = X_new(asked, Eigen::all);
  const Vector y_test = y_new(asked);
  const double apart = foresight(theta, X.bottomRows(half), y.tail(half), X_test, y_test);
  TargetStatistics targets;
  targets.observe(y.tail(half));
  const double explained = apart - targets.log_density(y_test, theta.noise());
  // A model that is a little wrong everywhere does with more noise.
  double together = -std::numeric_limits<double>::infinity();
  for (const double factor : {1.0, 10.0, 100.0}) {
    Hyperparameters noisier = theta;
    noisier.noise_variance = factor * theta.noise();
    together = std::max(together, foresight(noisier, X, y, X_test, y_test));
  }
  return apart - together > std::max(nats, 0.5 * explained);
}

}  // namespace ample
