#include "ample/posterior.h"

#include <algorithm>
#include <optional>
#include <random>
#include <utility>

#include "blas.h"
#include "check.h"
#include "kernel_loops.h"
#include "linalg.h"
#include "parallel.h"

namespace ample {
namespace {

constexpr Index kQueryBlock = 1024;

// So many queries for each inducing point are worth a factor that halves the work for each.
constexpr Index kManyQueries = 4;

/// body(first, rows) for blocks of N queries, at `work` operations altogether. Several blocks run
/// side by side, each on one thread; a single one shares out its own work.
template <class Body>
void for_blocks(Index N, double work, const Body& body) {
  // Small enough that a block of a few hundred inducing points stays in a core's cache, and no
  // power of two: columns 2048 bytes apart would share two of the sixty-four sets of the
  // first-level cache, which costs an eighth of the time at M = 100.
  constexpr Index kRows = 240;
  const Index blocks = (N + kRows - 1) / kRows;
  if (N == 0) return;
  if (N <= kQueryBlock) {
    body(0, N);
    return;
  }
  const SerialBlas serial;
  parallel_for(blocks, workers_for(work), [&](Index block) {
    const Index first = block * kRows;
    body(first, std::min(kRows, N - first));
  });
}

/// To the other diagonal: A_ij ↔ A_{n−1−j,n−1−i} of a lower triangle.
void flip_lower(Matrix& A) {
  const Index n = A.rows();
  for (Index j = 0; j < n; ++j) {
    for (Index i = j; i < n - 1 - j; ++i) std::swap(A(i, j), A(n - 1 - j, n - 1 - i));
  }
}

/// The lower triangular T of  var = k** − ‖T k‖²,  T = R L⁻¹ with RᵀR = I − D⁻¹: half of the work
/// of a variance by (3), for O(M³) once. Nothing if rounding does not allow it.
std::optional<Matrix> explaining_factor(const State& state) {
  // Of the prior's variance: where nothing is known I − D⁻¹ is 0 but for rounding.
  for (const double jitter : {0.0, 1e-13}) {
    Matrix R = state.L_D;
    invert_from_cholesky(R);
    R = -R;
    R.diagonal().array() += 1.0 + jitter;
    // A Cholesky factor from the last row up is one from the first row down of what is flipped.
    flip_lower(R);
    if (!cholesky(R)) continue;
    flip_lower(R);
    clear_upper(R);
    solve_right(state.L, Op::none, R);
    return R;
  }
  return std::nullopt;
}

}  // namespace

Posterior::Posterior(State state) : state_(std::move(state)) {}

void Posterior::check_queries(const char* where, const MatrixRef& X) const {
  check_columns(where, "X", X.cols(), state_.dimension(), "the model's input dimension");
  check_finite(where, "X", X);
}

Prediction Posterior::predict(const MatrixRef& X, Target target) const {
  check_queries("predict", X);
  const Index N = X.rows();
  const Index M = state_.size();
  Prediction p{Vector::Zero(N), state_.kernel.diagonal(X)};
  if (N == 1 && M > 0) {
    // One query, the real-time case: vectors all the way.
    Vector v(M);
    state_.kernel.evaluate(state_.Z, X, v);
    solve(state_.L, Op::none, v);
    p.variance[0] -= v.squaredNorm();
    solve(state_.L_D, Op::none, v);
    p.mean[0] = v.dot(state_.w);
    p.variance[0] += v.squaredNorm();
  } else if (M > 0) {
    predict_blocks(X, p);
  }
  p.variance = p.variance.cwiseMax(0.0);  // rounding may leave −1e-16
  if (target == Target::observation) p.variance.array() += state_.noise_variance;
  return p;
}

/// Adds what is known to the mean 0 and to the prior's variance.
void Posterior::predict_blocks(const MatrixRef& X, Prediction& p) const {
  const Index N = X.rows();
  const Index M = state_.size();
  const auto work = static_cast<double>(N) * static_cast<double>(M) * static_cast<double>(M);
  std::optional<Matrix> T;
  if (N >= kManyQueries * M && N > kQueryBlock) T = explaining_factor(state_);
  if (T) {
    const Vector alpha = weights();
    for_blocks(N, work, [&](Index first, Index rows) {
      Matrix K(rows, M);
      state_.kernel.evaluate(X.middleRows(first, rows), state_.Z, K);
      for (Index j = 0; j < M; ++j) {
        loops::add_scaled(&K(0, j), rows, alpha[j], p.mean.data() + first);
      }
      multiply_triangle_right(*T, Op::transpose, K);
      for (Index j = 0; j < M; ++j) {
        loops::add_squares(&K(0, j), rows, -1.0, p.variance.data() + first);
      }
    });
    return;
  }
  for_blocks(N, 2.0 * work, [&](Index first, Index rows) {
    double* mean = p.mean.data() + first;
    double* variance = p.variance.data() + first;
    Matrix Vt(rows, M);
    state_.kernel.evaluate(X.middleRows(first, rows), state_.Z, Vt);
    solve_right(state_.L, Op::transpose, Vt);
    for (Index j = 0; j < M; ++j) loops::add_squares(&Vt(0, j), rows, -1.0, variance);
    solve_right(state_.L_D, Op::transpose, Vt);
    for (Index j = 0; j < M; ++j) {
      loops::add_scaled(&Vt(0, j), rows, state_.w[j], mean);
      loops::add_squares(&Vt(0, j), rows, 1.0, variance);
    }
  });
}

Vector Posterior::mean(const MatrixRef& X) const {
  check_queries("mean", X);
  const Index N = X.rows();
  const Index M = state_.size();
  Vector mean = Vector::Zero(N);
  if (M == 0) return mean;
  const Vector alpha = weights();
  for_blocks(N, 10.0 * static_cast<double>(N * M), [&](Index first, Index rows) {
    Matrix K(rows, M);
    state_.kernel.evaluate(X.middleRows(first, rows), state_.Z, K);
    for (Index j = 0; j < M; ++j) {
      loops::add_scaled(&K(0, j), rows, alpha[j], mean.data() + first);
    }
  });
  return mean;
}

/// L⁻ᵀ D⁻¹ c, by which the mean is k(x, Z) α.
Vector Posterior::weights() const {
  Vector alpha = state_.w;
  solve(state_.L_D, Op::transpose, alpha);
  solve(state_.L, Op::transpose, alpha);
  return alpha;
}

JointPrediction Posterior::predict_joint(const MatrixRef& X, Target target) const {
  check_queries("predict_joint", X);
  const Index N = X.rows();
  JointPrediction p{Vector::Zero(N), Matrix(N, N)};
  state_.kernel.evaluate_lower(X, p.covariance);
  if (state_.size() > 0) {
    Matrix Vt = state_.kernel(X, state_.Z);
    solve_right(state_.L, Op::transpose, Vt);
    outer(-1.0, Vt, 1.0, p.covariance);
    solve_right(state_.L_D, Op::transpose, Vt);
    outer(1.0, Vt, 1.0, p.covariance);
    p.mean.noalias() = Vt * state_.w;
  }
  mirror_lower(p.covariance);
  p.covariance.diagonal() = p.covariance.diagonal().cwiseMax(0.0);
  if (target == Target::observation) p.covariance.diagonal().array() += state_.noise_variance;
  return p;
}

Matrix Posterior::sample(const MatrixRef& X, Index count, std::uint64_t seed, Target target) const {
  if (count < 0) invalid("sample: count is {}, but must not be negative", count);
  const JointPrediction joint = predict_joint(X, target);
  const Index N = X.rows();
  const double scale = N > 0 ? state_.kernel.diagonal(X).mean() : 0.0;
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  Matrix samples(N, count);
  for (Index s = 0; s < count; ++s) {
    for (Index i = 0; i < N; ++i) samples(i, s) = normal(generator);
  }
  // A posterior covariance is often singular to rounding; jitter as for K_bb.
  for (double factor = 1e-12; factor <= 1e-3; factor *= 10.0) {
    Matrix C = joint.covariance;
    C.diagonal().array() += factor * scale;
    if (!cholesky(C)) continue;
    multiply_triangle_left(C, Op::none, samples);
    samples.colwise() += joint.mean;
    return samples;
  }
  throw NumericalError(fmt::format(
      "sample: the covariance of {} points cannot be factorised; sample fewer points at a time",
      N));
}

PredictionGradient Posterior::gradient(const MatrixRef& X) const {
  check_queries("gradient", X);
  const Index N = X.rows();
  const Index M = state_.size();
  const Index D = X.cols();
  PredictionGradient g{Matrix::Zero(N, D), Matrix::Zero(N, D)};
  state_.kernel.pull_back_diagonal(X, Vector::Ones(N), {.X = &g.variance});
  if (M == 0) return g;

  const Vector alpha = weights();
  for (Index first = 0; first < N; first += kQueryBlock) {
    const Index rows = std::min(kQueryBlock, N - first);
    const auto queries = X.middleRows(first, rows);
    Matrix K_bar = alpha.transpose().replicate(rows, 1);
    Matrix part = Matrix::Zero(rows, D);
    state_.kernel.pull_back(queries, state_.Z, K_bar, {.X = &part});
    g.mean.middleRows(first, rows) = part;
    // var = k** − kᵀ L⁻ᵀ(I − D⁻¹)L⁻¹ k, so its adjoint for k is −2 L⁻ᵀ(v − D⁻¹v).
    Matrix Vt = state_.kernel(queries, state_.Z);
    solve_right(state_.L, Op::transpose, Vt);
    K_bar = Vt;
    solve_right(state_.L_D, Op::transpose, K_bar);
    solve_right(state_.L_D, Op::none, K_bar);
    K_bar = 2.0 * (K_bar - Vt);
    solve_right(state_.L, Op::none, K_bar);
    part.setZero();
    state_.kernel.pull_back(queries, state_.Z, K_bar, {.X = &part});
    g.variance.middleRows(first, rows) += part;
  }
  return g;
}

}  // namespace ample
