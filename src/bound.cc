#include "ample/bound.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <Eigen/Eigenvalues>

#include "ample/threads.h"
#include "check.h"
#include "jitter.h"
#include "linalg.h"
#include "parallel.h"

namespace ample {
namespace {

// ε relative to the mean prior variance, at most: it grows tenfold for each failed factorisation up
// to this, which would begin to be seen in predictions.
constexpr double kJitterLast = 1e-3;  // more or less: one that starts at 5e-10 ends at 5e-4
constexpr int kJitterTries = 7;       // from 5e-10 on

// Up to this M two triangular solves that do not need each other are done sooner side by side, each
// on one thread, than one after the other on all.
constexpr Index kSideBySide = 512;

/// The batch in blocks of rows, each taken through all its steps on one thread while it is in
/// cache. A small batch is one block, whose steps share out their own work.
struct RowBlocks {
  static constexpr Index kRows = 256;
  static constexpr Index kWhole = 32;  // rows that vectorised loops take at once
  Index rows;
  Index count;

  // A multiple of four blocks, so that two or four threads get the same number.
  explicit RowBlocks(Index N) : rows(N), count(N < 4 * kRows ? 1 : (N / kRows + 3) / 4 * 4) {}

  /// Calls job(block, first row, rows) for each.
  template <class Job>
  void run(const Job& job) const {
    const auto boundary = [&](Index block) {
      return block == count ? rows : (rows * block / count + kWhole / 2) / kWhole * kWhole;
    };
    parallel_for(count, threads(), [&](Index block) {
      const Index first = boundary(block);
      job(block, first, boundary(block + 1) - first);
    });
  }
};

double entries(const MatrixRef& A) { return static_cast<double>(A.size()); }

double log_2pi_variance(double variance) { return std::log(2.0 * std::numbers::pi * variance); }

}  // namespace

OnlineBound::OnlineBound(const State& old, const MatrixRef& X, const VectorRef& y,
                         Inducing inducing)
    : old_(old), X_(X), y_(y), inducing_(inducing), y_squared_(y.squaredNorm()) {
  check_columns("OnlineBound", "X", X.cols(), old.dimension(), "the model's input dimension");
  check_rows("OnlineBound", "y", y.size(), X.rows(), "the rows of X");
}

bool OnlineBound::factorize(const Kernel& kernel, double noise_variance, const MatrixRef& Z,
                            std::optional<double> jitter) {
  check_columns("OnlineBound", "Z", Z.cols(), old_.dimension(), "the model's input dimension");
  check_positive("OnlineBound", "noise_variance", noise_variance);
  const Index N = X_.rows();
  const Index M_a = old_.size();
  const Index M = Z.rows();
  kernel_ = kernel;
  noise_variance_ = noise_variance;
  if (Z_.rows() != M || Z_.cols() != Z.cols() || Z_ != Z) {
    Z_ = Z;
    nested_ = M_a == 0 || (inducing_ == Inducing::fixed && M >= M_a && Z_.topRows(M_a) == old_.Z);
    shared_.clear();
    if (!nested_ && inducing_ == Inducing::fixed) {
      for (Index a = 0; a < M_a; ++a) {
        for (Index b = 0; b < M; ++b) {
          if (old_.Z.row(a) == Z_.row(b)) shared_.emplace_back(a, b);
        }
      }
    }
  }

  // At θ_old the old points keep their factor and W = I: a batch that only adds to the model costs
  // what it adds. That is asked by instance, one comparison of addresses.
  const bool at_theta_old = nested_ && M_a > 0 && !jitter && kernel.same_instance(old_.kernel) &&
                            noise_variance == old_.noise_variance;
  const bool extended = at_theta_old && extend_prior();
  if (!extended && !factorize_prior(jitter)) return false;

  // Vᵀ = K_fb L⁻ᵀ   [N,M]
  // A = V Vᵀ/σ² + past,   c = V y/σ² + past   (5)
  f_.Vt.resize(N, M);
  const RowBlocks blocks(N);
  Matrix Vy(M, blocks.count);
  blocks.run([&](Index block, Index first, Index rows) {
    auto Vt = f_.Vt.middleRows(first, rows);
    kernel.evaluate(X_.middleRows(first, rows), Z_, Vt);
    solve_right(f_.L, Op::transpose, Vt);
    Vy.col(block).noalias() = Vt.transpose() * y_.segment(first, rows);
  });
  f_.c = Vy.rowwise().sum() / noise_variance;
  f_.A.resize(M, M);
  gram(1.0 / noise_variance, f_.Vt, 0.0, f_.A);
  f_.residual = kernel.diagonal(X_).sum() - noise_variance * f_.A.trace();
  f_.past_residual = 0.0;
  if (extended) {
    f_.H = old_.A;
    f_.h = old_.c;
    add_past();
  } else if (nested_) {
    carry_past_nested();
  } else {
    carry_past_general();
  }

  if (extended && M == M_a && update_is_cheaper(N, M)) {
    f_.L_D = old_.L_D;
    update_cholesky(f_.L_D, f_.Vt / std::sqrt(noise_variance));
  } else {
    f_.L_D = f_.A;
    f_.L_D.diagonal().array() += 1.0;
    if (!cholesky(f_.L_D)) return false;
  }
  f_.w = f_.c;
  solve(f_.L_D, Op::none, f_.w);
  f_.F = 0.5 * f_.w.squaredNorm() - sum_log_diagonal(f_.L_D);

  // (6)
  value_ = -0.5 * static_cast<double>(N) * log_2pi_variance(noise_variance) -
           0.5 * (y_squared_ + f_.residual) / noise_variance - 0.5 * f_.past_residual + f_.F -
           old_.F;
  return std::isfinite(value_);
}

bool OnlineBound::factorize_prior(std::optional<double> jitter) {
  const Index M = Z_.rows();
  const auto attempt = [&](double epsilon) {
    f_.jitter = epsilon;
    f_.L.resize(M, M);
    kernel_->evaluate_lower(Z_, f_.L);
    f_.L.diagonal().array() += epsilon;
    return cholesky(f_.L);
  };
  if (jitter) {
    f_.jitter_factor = 0.0;  // a given ε does not move with θ
    return attempt(*jitter);
  }
  const double mean_variance = M > 0 ? kernel_->diagonal(Z_).mean() : 0.0;
  Jitter jitter_rule = first_jitter(mean_variance, noise_variance_);
  f_.jitter_follows_noise = jitter_rule.follows_noise;
  for (int tries = 0; tries < kJitterTries; ++tries, jitter_rule.factor *= 10.0) {
    const double epsilon = jitter_rule.value(mean_variance, noise_variance_);
    if (!(epsilon <= 1.5 * kJitterLast * mean_variance)) return false;
    f_.jitter_factor = jitter_rule.factor;
    if (attempt(epsilon)) return true;
  }
  return false;
}

// L = [L_old 0; L_ba L_bb],  L_ba = K_ba L_old⁻ᵀ,  L_bb L_bbᵀ = K_bb − L_ba L_baᵀ
bool OnlineBound::extend_prior() {
  const Index M_a = old_.size();
  const Index added = Z_.rows() - M_a;
  f_.jitter = old_.jitter;
  f_.jitter_factor = 0.0;  // ε stays what it was
  f_.L.resize(Z_.rows(), Z_.rows());
  f_.L.topLeftCorner(M_a, M_a) = old_.L;
  if (added == 0) return true;
  const auto Z_new = Z_.bottomRows(added);
  auto L_ba = f_.L.bottomLeftCorner(added, M_a);
  auto L_bb = f_.L.bottomRightCorner(added, added);
  kernel_->evaluate(Z_new, old_.Z, L_ba);
  solve_right(old_.L, Op::transpose, L_ba);
  kernel_->evaluate_lower(Z_new, L_bb);
  L_bb.diagonal().array() += f_.jitter;
  outer(-1.0, L_ba, 1.0, L_bb);
  return cholesky(L_bb);
}

// H = W A_old Wᵀ and h = W c_old, with Wᵀ = L_old⁻¹ L_a   (7, 8)
void OnlineBound::carry_past_nested() {
  const Index M_a = old_.size();
  if (M_a == 0) {
    f_.H.resize(0, 0);
    f_.h.resize(0);
    return;
  }
  Matrix& Wt = past_;
  Wt = f_.L.topLeftCorner(M_a, M_a);
  clear_upper(Wt);
  solve_left_triangle(old_.L, Wt);
  f_.H = old_.A;
  multiply_both_sides(Wt, f_.H);
  f_.h.noalias() = Wt.transpose().triangularView<Eigen::Upper>() * old_.c;
  add_past();
}

// H = Tᵀ A_old T and h = Tᵀ c_old, with T = L_old⁻¹ Y and Y = K_ab L⁻ᵀ   (4, 5), and the trace term
// of (6). L_old⁻¹ is applied to A_old and c_old, once a batch, rather than to Y:
//   H = Yᵀ P_old Y,   h = Yᵀ p_old,   ⟨A_old, T Tᵀ⟩ = tr H
void OnlineBound::carry_past_general() {
  const Index M_a = old_.size();
  const Index M = Z_.rows();
  if (P_old_.rows() != M_a) {
    P_old_ = old_.A;
    solve_right(old_.L, Op::none, P_old_);
    solve_left(old_.L, Op::transpose, P_old_);
    // The mean of both triangles: rounding errors of the solves are large, but orthogonal to K_aa
    // and Y as long as no triangle is taken alone.
    for_columns(M_a, entries(P_old_), [&](Index j) {
      auto P_j = P_old_.col(j).tail(M_a - j);
      P_j = 0.5 * (P_j + P_old_.row(j).tail(M_a - j).transpose());
    });
    p_old_ = old_.c;
    solve(old_.L, Op::transpose, p_old_);
  }
  Matrix& K_aa = D_inv_;
  K_aa.resize(M_a, M_a);
  kernel_->evaluate_lower(old_.Z, K_aa);
  K_aa.diagonal().array() += f_.jitter;
  f_.past_residual = inner_lower(P_old_, K_aa);

  Matrix& Y = past_;
  Y.resize(M_a, M);
  kernel_->evaluate(old_.Z, Z_, Y);
  for (const auto& [a, b] : shared_) Y(a, b) += f_.jitter;
  solve_right(f_.L, Op::transpose, Y);
  f_.G.resize(M_a, M);
  multiply_symmetric(1.0, P_old_, Y, 0.0, f_.G);
  f_.H.resize(M, M);
  multiply_lower(1.0, Y, f_.G, 0.0, f_.H);
  f_.h.noalias() = Y.transpose() * p_old_;
  f_.past_residual -= f_.H.trace();
  add_past();
}

void OnlineBound::add_past() {
  const Index size = f_.h.size();
  for_columns(size, entries(f_.H),
              [&](Index j) { f_.A.col(j).segment(j, size - j) += f_.H.col(j).tail(size - j); });
  f_.c.head(size) += f_.h;
}

const BoundGradient& OnlineBound::gradient() {
  const Index N = X_.rows();
  const Index M = Z_.rows();
  const Index M_a = old_.size();
  const double sigma2 = noise_variance_;

  // D⁻¹ and μ = D⁻¹ c
  D_inv_ = f_.L_D;
  invert_from_cholesky(D_inv_);
  mirror_lower(D_inv_);
  Vector mu = f_.w;
  solve(f_.L_D, Op::transpose, mu);
  // ⟨D⁻¹, V Vᵀ/σ²⟩, since V Vᵀ/σ² = D − I − H
  const Index past = f_.H.rows();
  const double fitted =
      static_cast<double>(M) - D_inv_.trace() - inner_lower(D_inv_.topLeftCorner(past, past), f_.H);

  // K̄_bb = L⁻ᵀ S L⁻¹ with a symmetric S. Substituting V̄ and W̄ (or T̄) of (14, 15) into Φ(Lᵀ L̄), the
  // products with V collapse, since V Vᵀ/σ² = D − I − H:
  //   general: 2S = 2I − D − D⁻¹ − μμᵀ
  //   nested:  2S = 2I − D − D⁻¹ − μμᵀ + μsᵀ + sμᵀ + H − E − Eᵀ,   E = D⁻¹H,   s = h − Hμ
  //               = D⁻¹ − I      − μμᵀ + μsᵀ + sμᵀ + QQᵀ − PPᵀ,    Q = D⁻¹V/σ,  P = V/σ − Q
  // where H, h are padded with zeros to size M; of the nested forms the second is the cheaper one
  // when the batch is small.
  const bool small_batch = nested_ && N <= M;
  const bool by_batch = small_batch && N * M < M_a * M_a;
  Vector t = -0.5 * mu;  // μtᵀ + tμᵀ = −μμᵀ + μsᵀ + sμᵀ
  if (nested_ && past > 0) {
    t.head(past) += f_.h - f_.H.selfadjointView<Eigen::Lower>() * mu.head(past);
  }
  Matrix& S = K_bb_bar_;  // lower triangle
  S.resize(M, M);
  for_columns(M, entries(S), [&](Index j) {
    const Index below = M - j;
    auto S_j = S.col(j).tail(below);
    S_j = (0.5 * mu[j]) * t.tail(below) + (0.5 * t[j]) * mu.tail(below);
    if (by_batch) {
      S_j += 0.5 * D_inv_.col(j).tail(below);
      S_j[0] -= 0.5;
    } else {
      S_j -= 0.5 * (f_.A.col(j) + D_inv_.col(j)).tail(below);
      S_j[0] += 0.5;
    }
  });
  if (nested_ && !by_batch && past > 0) {
    Matrix& E = past_;
    E.resize(M, past);
    mirror_lower(f_.H);
    multiply(1.0, D_inv_.leftCols(past), Op::none, f_.H, Op::none, 0.0, E);
    for_columns(past, entries(E), [&](Index j) {
      const Index below = past - j;
      S.col(j).segment(j, below) +=
          0.5 * (f_.H.col(j).tail(below) - E.row(j).segment(j, below).transpose());
      S.col(j).tail(M - j) -= 0.5 * E.col(j).tail(M - j);
    });
  }
  if (small_batch) {
    K_fb_bar_.resize(N, M);
    multiply(1.0, f_.Vt, Op::none, D_inv_, Op::none, 0.0, K_fb_bar_);
    if (by_batch) gram(0.5 / sigma2, K_fb_bar_, 1.0, S);
    for_columns(M, entries(K_fb_bar_),
                [&](Index j) { K_fb_bar_.col(j) = f_.Vt.col(j) - K_fb_bar_.col(j); });
    if (by_batch) gram(-0.5 / sigma2, K_fb_bar_, 1.0, S);
  }

  gradient_.theta = Vector::Zero(kernel_->num_parameters());
  const bool moving = inducing_ == Inducing::moving;
  if (moving) gradient_.Z = Matrix::Zero(M, Z_.cols());
  Matrix* Z_bar = moving ? &gradient_.Z : nullptr;

  // K̄_fb = (Vᵀ(I − D⁻¹) + e μᵀ) L⁻¹/σ²,   e = y − Vᵀμ.   Unless the batch is small it pays to apply
  // L⁻¹ first: B = (I − D⁻¹) L⁻¹.
  Vector right = mu;
  const Matrix& B = D_inv_;
  const auto apply_inverse = [&] {
    for_columns(M, entries(D_inv_), [&](Index j) {
      D_inv_.col(j) = -D_inv_.col(j);
      D_inv_(j, j) += 1.0;
    });
    solve_right(f_.L, Op::none, D_inv_);
    solve(f_.L, Op::transpose, right);
  };
  if (small_batch) {
    solve_both_sides(f_.L, S);
  } else if (M <= kSideBySide) {
    parallel_for(2, workers_for(2.0 * entries(S) * static_cast<double>(M)), [&](Index piece) {
      if (piece == 0) {
        solve_both_sides(f_.L, S);
      } else {
        apply_inverse();
      }
    });
  } else {
    solve_both_sides(f_.L, S);
    apply_inverse();
  }

  // The past through K_ab, general case:  K̄_ab = G B + (p_old − Gμ) μᵀL⁻¹
  double jitter_bar = K_bb_bar_.trace();
  if (!nested_) {
    Matrix& K_ab_bar = past_;
    K_ab_bar.resize(M_a, M);
    const Vector left = p_old_ - f_.G * mu;
    for_columns(M, entries(K_ab_bar), [&](Index j) { K_ab_bar.col(j) = right[j] * left; });
    multiply(1.0, f_.G, Op::none, B, Op::none, 1.0, K_ab_bar);
    kernel_->pull_back(old_.Z, Z_, K_ab_bar, {.theta = &gradient_.theta, .Z = Z_bar});
    Vector theta_bar = Vector::Zero(kernel_->num_parameters());
    kernel_->pull_back_lower(old_.Z, P_old_, {.theta = &theta_bar});
    gradient_.theta -= 0.5 * theta_bar;
    jitter_bar -= 0.5 * P_old_.trace();
    for (const auto& [a, b] : shared_) jitter_bar += K_ab_bar(a, b);
  }

  const RowBlocks blocks(N);
  struct Part {
    Vector theta;
    Matrix Z;
    double e_squared = 0.0;
  };
  std::vector<Part> parts(static_cast<std::size_t>(blocks.count));
  blocks.run([&](Index block, Index first, Index rows) {
    const auto Vt = f_.Vt.middleRows(first, rows);
    Vector e = y_.segment(first, rows) - Vt * mu;
    Part& part = parts[static_cast<std::size_t>(block)];
    part.e_squared = e.squaredNorm();
    e /= sigma2;
    part.theta = Vector::Zero(kernel_->num_parameters());
    if (moving) part.Z = Matrix::Zero(M, Z_.cols());
    const auto pull_back = [&](const MatrixRef& K_fb_bar) {
      kernel_->pull_back(X_.middleRows(first, rows), Z_, K_fb_bar,
                         {.theta = &part.theta, .Z = moving ? &part.Z : nullptr});
    };
    if (small_batch) {
      auto K_fb_bar = K_fb_bar_.middleRows(first, rows);
      for_columns(M, entries(K_fb_bar),
                  [&](Index j) { K_fb_bar.col(j) = K_fb_bar.col(j) / sigma2 + mu[j] * e; });
      solve_right(f_.L, Op::none, K_fb_bar);
      pull_back(K_fb_bar);
      return;
    }
    // K̄_fb never stands in memory whole.
    thread_local Matrix storage;
    if (storage.rows() < rows || storage.cols() != M) storage.resize(rows, M);
    auto K_fb_bar = storage.topRows(rows);
    K_fb_bar.noalias() = e * right.transpose();
    multiply(1.0 / sigma2, Vt, Op::none, B, Op::none, 1.0, K_fb_bar);
    pull_back(K_fb_bar);
  });
  double e_squared = 0.0;
  for (const Part& part : parts) {
    e_squared += part.e_squared;
    gradient_.theta += part.theta;
    if (moving) gradient_.Z += part.Z;
  }

  kernel_->pull_back_lower(Z_, K_bb_bar_, {.theta = &gradient_.theta, .X = Z_bar});
  kernel_->pull_back_diagonal(X_, Vector::Constant(N, -0.5 / sigma2), {.theta = &gradient_.theta});
  // ε is a multiple of the mean prior variance or of σ², so it moves with θ.
  if (M > 0 && !f_.jitter_follows_noise) {
    const double share = f_.jitter_factor * jitter_bar / static_cast<double>(M);
    kernel_->pull_back_diagonal(Z_, Vector::Constant(M, share),
                                {.theta = &gradient_.theta, .X = Z_bar});
  }

  // ∂L̂/∂log σ², the quadratic terms gathered in ‖e‖²
  const double log_noise_bar =
      0.5 * (fitted - static_cast<double>(N)) + 0.5 * (e_squared + f_.residual) / sigma2;
  gradient_.noise_variance = log_noise_bar / sigma2;
  if (f_.jitter_follows_noise) gradient_.noise_variance += f_.jitter_factor * jitter_bar;
  return gradient_;
}

State OnlineBound::absorb() {
  AMPLE_ASSERT(kernel_.has_value());
  clear_upper(f_.L);
  clear_upper(f_.L_D);
  mirror_lower(f_.A);
  State state{.kernel = *std::move(kernel_),
              .noise_variance = noise_variance_,
              .Z = std::move(Z_),
              .L = std::move(f_.L),
              .A = std::move(f_.A),
              .c = std::move(f_.c),
              .L_D = std::move(f_.L_D),
              .w = std::move(f_.w),
              .F = f_.F,
              .jitter = f_.jitter};
  kernel_.reset();
  Z_.resize(0, 0);
  return state;
}

std::optional<double> optimum(const State& old, const MatrixRef& X, const VectorRef& y,
                              double jitter) {
  check_columns("optimum", "X", X.cols(), old.dimension(), "the model's input dimension");
  check_rows("optimum", "y", y.size(), X.rows(), "the rows of X");
  if (!(jitter >= 0.0)) invalid("optimum: jitter is {}, but must be 0 or more", jitter);
  const Index N = X.rows();
  Matrix C(N, N);
  old.kernel.evaluate_lower(X, C);
  Matrix Vt;
  if (old.size() > 0) {
    Vt = old.kernel(X, old.Z);
    solve_right(old.L, Op::transpose, Vt);
    outer(-1.0, Vt, 1.0, C);
  }
  double residual = 0.0;
  if (jitter > 0.0) {
    // S = K_ff − VᵀV becomes S(S + εI)⁻¹S = S − εI + ε²(S + εI)⁻¹   (9′)
    Matrix P = C;
    P.diagonal().array() += jitter;
    if (!cholesky(P)) return std::nullopt;
    invert_from_cholesky(P);
    residual = jitter * (static_cast<double>(N) - jitter * P.trace());
    C.diagonal().array() -= jitter;
    C.triangularView<Eigen::Lower>() += jitter * jitter * P;
  }
  C.diagonal().array() += old.noise_variance;
  Vector e = y;
  if (old.size() > 0) {
    // Cov = K_ff − VᵀV + UᵀU,  U = L_D⁻¹V;   mean = Uᵀw   (3)
    solve_right(old.L_D, Op::transpose, Vt);
    outer(1.0, Vt, 1.0, C);
    e.noalias() -= Vt * old.w;
  }
  if (!cholesky(C)) return std::nullopt;
  solve(C, Op::none, e);
  const double value = -0.5 * static_cast<double>(N) * std::log(2.0 * std::numbers::pi) -
                       sum_log_diagonal(C) - 0.5 * e.squaredNorm() -
                       0.5 * residual / old.noise_variance;
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<double> upper_bound(UpperBound kind, const State& old, const BoundFactors& factors,
                                  const VectorRef& y) {
  return upper_bound(kind, old, factors.Vt, factors.L_D, factors.residual, y);
}

std::optional<double> upper_bound(UpperBound kind, const State& old, const MatrixRef& Vt,
                                  const MatrixRef& L_D, double residual, const VectorRef& y) {
  const Index M = Vt.cols();
  const Index M_a = old.size();
  const auto N = static_cast<double>(y.size());
  const double sigma2 = old.noise_variance;
  const double t = std::max(residual, 0.0);
  const double inflated = sigma2 + t;

  // D̂ = I + V Vᵀ/(σ² + t) + past,   ĉ = V y/(σ² + t) + past   (10)
  Matrix D_hat(M, M);
  gram(1.0 / inflated, Vt, 0.0, D_hat);
  D_hat.diagonal().array() += 1.0;
  Vector c_hat = Vt.transpose() * y / inflated;

  double past_quadratic = 0.0;  // what the paper's bound loses on the pseudo-data
  if (M_a > 0) {
    if (kind == UpperBound::tight) {
      // W = I at θ_old.
      D_hat.topLeftCorner(M_a, M_a) += old.A;
      c_hat.head(M_a) += old.c;
    } else {
      // D_a⁻¹ = Q Qᵀ with Q = L⁻ᵀ R, A_old = R Rᵀ, and c_old = R r, so that with J = I + t QᵀQ
      //   (D_a + tI)⁻¹ = Q J⁻¹ Qᵀ,   ỹᵀ(D_a + tI)⁻¹ỹ = rᵀ J⁻¹ r,   ỹᵀ D_a⁻¹ ỹ = rᵀr.
      const Eigen::SelfAdjointEigenSolver<Matrix> eigen(old.A);
      if (eigen.info() != Eigen::Success) return std::nullopt;
      // Directions the data say nothing about have no pseudo-data; they drop out.
      const Vector& lambda = eigen.eigenvalues();
      const double floor = 1e-14 * std::max(lambda.maxCoeff(), 1.0);
      const auto kept = static_cast<Index>((lambda.array() > floor).count());
      const Vector root = lambda.tail(kept).cwiseSqrt();
      const Matrix R = eigen.eigenvectors().rightCols(kept) * root.asDiagonal();
      const Vector r = root.cwiseInverse().asDiagonal() *
                       (eigen.eigenvectors().rightCols(kept).transpose() * old.c);
      Matrix Q = R;
      solve_left(old.L, Op::transpose, Q);
      Matrix J(kept, kept);
      gram(t, Q, 0.0, J);
      J.diagonal().array() += 1.0;
      if (!cholesky(J)) return std::nullopt;
      Matrix scaled = R;  // R J^{-T/2}
      solve_right(J, Op::transpose, scaled);
      Vector J_r = r;
      solve(J, Op::none, J_r);
      past_quadratic = r.squaredNorm() - J_r.squaredNorm();
      outer(1.0, scaled, 1.0, D_hat.topLeftCorner(M_a, M_a));
      c_hat.head(M_a) += scaled * J_r;
    }
  }
  if (!cholesky(D_hat)) return std::nullopt;
  solve(D_hat, Op::none, c_hat);
  const double value = -0.5 * N * log_2pi_variance(sigma2) - sum_log_diagonal(L_D) -
                       0.5 * y.squaredNorm() / inflated + 0.5 * c_hat.squaredNorm() +
                       0.5 * past_quadratic - old.F;
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace ample
