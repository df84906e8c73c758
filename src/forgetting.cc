#include "ample/forgetting.h"

#include <cmath>
#include <numbers>

#include <Eigen/Eigenvalues>

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
  Vector h = Vt.transpose() * e;
  Matrix L_H(M, M);
  gram(1.0, Vt, 0.0, L_H);
  L_H.diagonal().array() += 1.0;
  if (!cholesky(L_H)) return std::nullopt;
  out.constant_ -= sum_log_diagonal(L_H);

  out.before_ = tridiagonal(state.A, state.c, Vector::Zero(M));
  Matrix A = state.A;
  Vector c = state.c;
  solve_left(L_H, Op::none, A);
  solve_right(L_H, Op::transpose, A);
  solve(L_H, Op::none, c);
  solve(L_H, Op::none, h);
  out.after_ = tridiagonal(A, c, h);
  return out;
}

double TemperedEvidence::operator()(double gamma) const {
  check_gamma("TemperedEvidence", gamma);
  return constant_ + after_(gamma) - before_(gamma);  // (9″)
}

TemperedEvidence::Form TemperedEvidence::tridiagonal(const Matrix& A, const Vector& past,
                                                     const Vector& now) {
  if (A.rows() < 2) return {A.diagonal(), Vector(0), past, now};
  const Eigen::Tridiagonalization<Matrix> turned(A);
  const auto back = turned.matrixQ().adjoint();
  return {turned.diagonal(), turned.subDiagonal(), back * past, back * now};
}

double TemperedEvidence::Form::operator()(double gamma) const {
  // I + γT = C diag(d) Cᵀ with ones on C's diagonal and l below it.
  double value = 0.0;
  double d = 1.0;
  double z = 0.0;
  for (Index i = 0; i < diagonal.size(); ++i) {
    const double b = i > 0 ? gamma * below[i - 1] : 0.0;
    const double l = b / d;
    d = 1.0 + gamma * diagonal[i] - l * b;
    z = gamma * past[i] + now[i] - l * z;
    value += 0.5 * (z * z / d - std::log(d));
  }
  return value;
}

}  // namespace ample
