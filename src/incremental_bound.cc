#include "incremental_bound.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "linalg.h"

namespace ample {

IncrementalBound::IncrementalBound(const State& old, Sites sites)
    : old_(old),
      sites_(std::move(sites)),
      constant_(sites_.log_constant(old.noise_variance) -
                0.5 * sites_.scaled_target().squaredNorm() / old.noise_variance - old.F),
      past_residual_(old.size() > 0 ? old.A.trace() : 0.0) {}

std::optional<IncrementalBound> IncrementalBound::from_old(const State& old, const Sites& sites,
                                                           const MatrixRef& Vt) {
  IncrementalBound bound(old, sites);
  const Index M = old.size();
  bound.past_residual_ = 0.0;
  bound.size_ = M;
  bound.keeps_old_ = true;
  bound.reserve(M);
  Matrix scaled;
  if (sites.weighted()) {
    scaled = (Vt.array().colwise() * sites.weight.array().sqrt()).matrix();
  }
  const MatrixRef rows = sites.weighted() ? MatrixRef(scaled) : Vt;
  // W = I at θ_old: the old A and c are reused as they are.
  auto A = bound.A_.topLeftCorner(M, M);
  copy_lower(old.A, A);
  gram(1.0 / old.noise_variance, rows, 1.0, A);
  auto L_D = bound.L_D_.topLeftCorner(M, M);
  if (update_is_cheaper(Vt.rows(), M)) {
    copy_lower(old.L_D, L_D);
    update_cholesky(L_D, rows / std::sqrt(old.noise_variance));
  } else {
    copy_lower(A, L_D);
    L_D.diagonal().array() += 1.0;
    if (!cholesky(L_D)) return std::nullopt;
  }
  auto c = bound.c_.head(M);
  c = old.c;
  c.noalias() += rows.transpose() * sites.scaled_target() / old.noise_variance;
  auto w = bound.w_.head(M);
  w = c;
  solve(L_D, Op::none, w);
  bound.sum_log_ = sum_log_diagonal(L_D);
  return bound;
}

void IncrementalBound::append(const MatrixRef& Vt, const VectorRef& v_a) {
  const Index M = size_;
  reserve(M + 1);
  const double per_noise = 1.0 / old_.noise_variance;

  // The new column of A and entry of c   (5)
  const auto v = Vt.col(M);
  Vector weighted;  // W v
  if (sites_.weighted()) weighted = v.cwiseProduct(sites_.weight);
  const VectorRef W_v = sites_.weighted() ? VectorRef(weighted) : VectorRef(v);
  Vector a = per_noise * (Vt.leftCols(M).transpose() * W_v);
  double a_new = per_noise * v.dot(W_v);
  double c_new = per_noise * W_v.dot(sites_.target);
  if (v_a.size() > 0) {
    auto t = T_.col(M);
    t = v_a;
    solve(old_.L, Op::none, t);
    const Vector A_t = old_.A * t;
    a.noalias() += T_.leftCols(M).transpose() * A_t;
    a_new += t.dot(A_t);
    c_new += t.dot(old_.c);
    past_residual_ -= t.dot(A_t);
  }
  A_.row(M).head(M) = a;
  A_(M, M) = a_new;
  c_[M] = c_new;

  // (12)
  solve(L_D_.topLeftCorner(M, M), Op::none, a);
  // λ² is a Schur complement of D = I + A ⪰ I, so only rounding can take it below 1.
  const double lambda = std::sqrt(std::max(1.0 + a_new - a.squaredNorm(), 1.0));
  L_D_.row(M).head(M) = a;
  L_D_(M, M) = lambda;
  w_[M] = (c_new - a.dot(w_.head(M))) / lambda;
  sum_log_ += std::log(lambda);
  ++size_;
  if (G_.size() > 0) {
    const Vector Gv = G_ * v;
    g_ -= (w_[M] / lambda) * Gv;
    G_.noalias() -= (Gv / (lambda * lambda)) * Gv.transpose();
  }
}

// G = W/σ² − W Vᵀ D⁻¹ V W/σ⁴ and g = W (y − Vᵀ D⁻¹ c)/σ², the rows' precision and what they pull at
// under the points so far: λ² = 1 + vᵀGv and λ w_new = vᵀg.
void IncrementalBound::make_precision(const MatrixRef& Vt) {
  const Index M = size_;
  const Index N = Vt.rows();
  const double per_noise = 1.0 / old_.noise_variance;
  Matrix WV = per_noise * Vt;
  if (sites_.weighted()) WV.array().colwise() *= sites_.weight.array();
  solve_right(L_D_.topLeftCorner(M, M), Op::transpose, WV);
  g_ = per_noise * sites_.target;
  if (sites_.weighted()) g_.array() *= sites_.weight.array();
  g_.noalias() -= WV * w_.head(M);
  G_.setZero(N, N);
  outer(-1.0, WV, 0.0, G_);
  if (sites_.weighted()) {
    G_.diagonal() += per_noise * sites_.weight;
  } else {
    G_.diagonal().array() += per_noise;
  }
  mirror_lower(G_);
}

Vector IncrementalBound::gains(const MatrixRef& Vt, const MatrixRef& columns,
                               const MatrixRef& columns_a) {
  const Index M = size_;
  const Index N = columns.rows();
  const Index B = columns.cols();
  const double per_noise = 1.0 / old_.noise_variance;

  Matrix weighted;  // W v
  if (sites_.weighted()) weighted = columns.array().colwise() * sites_.weight.array();
  const MatrixRef W_v = sites_.weighted() ? MatrixRef(weighted) : columns;
  const bool is_old_kept = columns_a.rows() == 0;
  if (G_.size() == 0 && is_old_kept && N < M) make_precision(Vt);
  if (G_.size() > 0) {
    Matrix Gv(N, B);
    multiply(1.0, G_, Op::none, columns, Op::none, 0.0, Gv);
    Vector gain(B);
    for (Index b = 0; b < B; ++b) {
      const double squared = 1.0 + std::max(columns.col(b).dot(Gv.col(b)), 0.0);  // λ²
      const double pull = columns.col(b).dot(g_);
      const double a_new = per_noise * columns.col(b).dot(W_v.col(b));
      gain[b] = 0.5 * (a_new - std::log(squared) + pull * pull / squared);
    }
    return gain;
  }

  // As append() has them for one point: the new column of A, its diagonal entry, the entry of c.
  Matrix a(M, B);
  multiply(per_noise, Vt, Op::transpose, W_v, Op::none, 0.0, a);
  Vector a_new = per_noise * columns.cwiseProduct(W_v).colwise().sum().transpose();
  Vector c_new = per_noise * (W_v.transpose() * sites_.target);
  if (!is_old_kept) {
    Matrix T = columns_a;
    solve_left(old_.L, Op::none, T);
    Matrix A_T(T.rows(), B);
    multiply(1.0, old_.A, Op::none, T, Op::none, 0.0, A_T);
    if (M > 0) multiply(1.0, T_.leftCols(M), Op::transpose, A_T, Op::none, 1.0, a);
    a_new += T.cwiseProduct(A_T).colwise().sum().transpose();
    c_new.noalias() += T.transpose() * old_.c;
  }
  // What the point takes from the trace terms is a_new, of the batch and of the pseudo-data.
  if (M > 0) solve_left(L_D_.topLeftCorner(M, M), Op::none, a);
  Vector gain(B);
  for (Index b = 0; b < B; ++b) {
    const double squared = std::max(1.0 + a_new[b] - a.col(b).squaredNorm(), 1.0);  // λ²
    const double w_new = (c_new[b] - a.col(b).dot(w_.head(M))) / std::sqrt(squared);
    gain[b] = 0.5 * (a_new[b] - std::log(squared) + w_new * w_new);
  }
  return gain;
}

double IncrementalBound::value(double residual) const {
  return constant_ - 0.5 * residual / old_.noise_variance - 0.5 * past_residual_ - sum_log_ +
         0.5 * w_.head(size_).squaredNorm();  // (13)
}

void IncrementalBound::write_factors(Index M, BoundFactors& factors) && {
  if (M != A_.rows()) return std::as_const(*this).write_factors(M, factors);
  factors.A = std::move(A_);
  factors.c = std::move(c_);
  factors.L_D = std::move(L_D_);
  factors.w = std::move(w_);
}

void IncrementalBound::write_factors(Index M, BoundFactors& factors) const& {
  factors.A = A_.topLeftCorner(M, M);
  factors.c = c_.head(M);
  factors.L_D = L_D_.topLeftCorner(M, M);
  factors.w = w_.head(M);
}

void IncrementalBound::reserve(Index columns) {
  if (columns <= L_D_.cols()) return;
  // As many as there are to begin with: most batches of a few rows add none.
  const Index capacity = std::max<Index>({columns, L_D_.cols() * 3 / 2, keeps_old_ ? 0 : 64});
  A_.conservativeResize(capacity, capacity);
  c_.conservativeResize(capacity);
  L_D_.conservativeResize(capacity, capacity);
  w_.conservativeResize(capacity);
  if (!keeps_old_) T_.conservativeResize(old_.size(), capacity);
}

}  // namespace ample
