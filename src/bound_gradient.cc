// The gradient of the bound in reverse mode (derivation §7), one step a function.
#include <algorithm>
#include <vector>

#include "ample/bound.h"
#include "linalg.h"
#include "parallel.h"
#include "past.h"
#include "row_blocks.h"

namespace ample {
namespace {

// Up to this M two triangular solves that do not need each other are done sooner side by side, each
// on one thread, than one after the other on all.
constexpr Index kSideBySide = 512;

}  // namespace

/// One pass over the factors of a bound, which must have been factorised. The rows of Vᵀ and the
/// targets are scaled by √w_n throughout, so that all rows have the precision 1/σ².
struct OnlineBound::GradientPass {
  explicit GradientPass(OnlineBound& bound);

  void run();

 private:
  void invert_precision();
  void prior_adjoint();
  void add_nested_past(Matrix& S);
  void add_batch(Matrix& S);
  void solve_adjoints();
  void apply_inverse();
  void pull_back_rows();
  void pull_back_block(Index first, Index rows, const PullBack& into, double& e_squared);
  void pull_back_noise();

  OnlineBound& b;
  const BoundFactors& f;
  const Kernel& kernel;
  const Index N, M;
  const double sigma2;
  const Index past;  // points of the nested past
  // With few rows, and no past but a nested one, products with V are cheaper than with L⁻¹.
  const bool small_batch;
  const bool by_batch;
  Matrix* const Z_bar;

  Vector mu;               // D⁻¹ c
  Vector right;            // μ, then L⁻ᵀ μ
  double fitted = 0.0;     // ⟨D⁻¹, V Λ Vᵀ⟩
  double e_squared = 0.0;  // ‖e‖², e = t − Vᵀμ
  double jitter_bar = 0.0;
};

const BoundGradient& OnlineBound::gradient() {
  gradient_.theta = Vector::Zero(kernel_->num_parameters());
  if (inducing_ == Inducing::moving) gradient_.Z = Matrix::Zero(Z_.rows(), Z_.cols());
  GradientPass(*this).run();
  return gradient_;
}

OnlineBound::GradientPass::GradientPass(OnlineBound& bound)
    : b(bound),
      f(bound.f_),
      kernel(*bound.kernel_),
      N(bound.X_.rows()),
      M(bound.Z_.rows()),
      sigma2(bound.noise_variance_),
      past(bound.nested_ != nullptr ? bound.nested_->state().size() : 0),
      small_batch(N <= M && std::all_of(bound.pasts_.begin(), bound.pasts_.end(),
                                        [](const auto& each) { return each->nested(); })),
      by_batch(small_batch && N * M < past * past),
      Z_bar(bound.inducing_ == Inducing::moving ? &bound.gradient_.Z : nullptr) {}

void OnlineBound::GradientPass::run() {
  invert_precision();
  prior_adjoint();
  solve_adjoints();
  jitter_bar = b.K_bb_bar_.trace();
  for (const auto& other : b.pasts_) {
    if (other->nested()) continue;
    jitter_bar += other->pull_back(kernel, b.Z_, b.D_inv_, mu, right,
                                   {.theta = &b.gradient_.theta, .Z = Z_bar});
  }
  pull_back_rows();
  kernel.pull_back_lower(b.Z_, b.K_bb_bar_, {.theta = &b.gradient_.theta, .X = Z_bar});
  pull_back_noise();
}

// D⁻¹, μ, and ⟨D⁻¹, V Λ Vᵀ⟩ by V Λ Vᵀ = D − I − Σ H
void OnlineBound::GradientPass::invert_precision() {
  b.D_inv_ = f.L_D;
  invert_from_cholesky(b.D_inv_);
  mirror_lower(b.D_inv_);
  mu = f.w;
  solve(f.L_D, Op::transpose, mu);
  right = mu;
  fitted = static_cast<double>(M) - b.D_inv_.trace();
  for (const auto& each : b.pasts_) {
    const Index size = each->H().rows();
    fitted -= inner_lower(b.D_inv_.topLeftCorner(size, size), each->H());
  }
}

// K̄_bb = L⁻ᵀ S L⁻¹ with a symmetric S. Substituting V̄ and W̄ (or T̄) of (14, 15) into Φ(Lᵀ L̄), the
// products with V collapse, since V Λ Vᵀ = D − I − Σ H:
//   general: 2S = 2I − D − D⁻¹ − μμᵀ
//   nested:  2S = 2I − D − D⁻¹ − μμᵀ + μsᵀ + sμᵀ + H − E − Eᵀ,   E = D⁻¹H,   s = h − Hμ
//               = D⁻¹ − I      − μμᵀ + μsᵀ + sμᵀ + QQᵀ − PPᵀ,    Q = D⁻¹V/σ,  P = V/σ − Q
// where H, h of the nested past are padded with zeros to size M. Of the nested forms the second is
// the cheaper one when the batch is small; it needs that there is no other past.
void OnlineBound::GradientPass::prior_adjoint() {
  Vector t = -0.5 * mu;  // μtᵀ + tμᵀ = −μμᵀ + μsᵀ + sμᵀ
  if (past > 0) {
    t.head(past) += b.nested_->h() - b.nested_->H().selfadjointView<Eigen::Lower>() * mu.head(past);
  }
  Matrix& S = b.K_bb_bar_;  // lower triangle
  S.resize(M, M);
  for_columns(M, entries(S), [&](Index j) {
    const Index below = M - j;
    auto S_j = S.col(j).tail(below);
    S_j = (0.5 * mu[j]) * t.tail(below) + (0.5 * t[j]) * mu.tail(below);
    if (by_batch) {
      S_j += 0.5 * b.D_inv_.col(j).tail(below);
      S_j[0] -= 0.5;
    } else {
      S_j -= 0.5 * (f.A.col(j) + b.D_inv_.col(j)).tail(below);
      S_j[0] += 0.5;
    }
  });
  if (!by_batch && past > 0) add_nested_past(S);
  if (small_batch) add_batch(S);
}

// S += ½ (H − E − Eᵀ)
void OnlineBound::GradientPass::add_nested_past(Matrix& S) {
  Matrix& H = b.nested_->H();
  Matrix& E = b.E_;
  E.resize(M, past);
  mirror_lower(H);
  multiply(1.0, b.D_inv_.leftCols(past), Op::none, H, Op::none, 0.0, E);
  for_columns(past, entries(E), [&](Index j) {
    const Index below = past - j;
    S.col(j).segment(j, below) +=
        0.5 * (H.col(j).tail(below) - E.row(j).segment(j, below).transpose());
    S.col(j).tail(M - j) -= 0.5 * E.col(j).tail(M - j);
  });
}

// K̄_fb begins as Vᵀ(I − D⁻¹);  S += ½ (QQᵀ − PPᵀ) if it is done by the batch
void OnlineBound::GradientPass::add_batch(Matrix& S) {
  Matrix& K_fb_bar = b.K_fb_bar_;
  K_fb_bar.resize(N, M);
  multiply(1.0, f.Vt, Op::none, b.D_inv_, Op::none, 0.0, K_fb_bar);
  if (by_batch) gram(0.5 / sigma2, K_fb_bar, 1.0, S);
  for_columns(M, entries(K_fb_bar),
              [&](Index j) { K_fb_bar.col(j) = f.Vt.col(j) - K_fb_bar.col(j); });
  if (by_batch) gram(-0.5 / sigma2, K_fb_bar, 1.0, S);
}

// S becomes K̄_bb and D⁻¹ becomes B. K̄_fb = (Vᵀ(I − D⁻¹) + e μᵀ) L⁻¹/σ²; unless the batch is small
// it pays to apply L⁻¹ first.
void OnlineBound::GradientPass::solve_adjoints() {
  Matrix& S = b.K_bb_bar_;
  if (small_batch) {
    solve_both_sides(f.L, S);
  } else if (M <= kSideBySide) {
    parallel_for(2, workers_for(2.0 * entries(S) * static_cast<double>(M)), [&](Index piece) {
      if (piece == 0) {
        solve_both_sides(f.L, S);
      } else {
        apply_inverse();
      }
    });
  } else {
    solve_both_sides(f.L, S);
    apply_inverse();
  }
}

// B = (I − D⁻¹) L⁻¹ and L⁻ᵀ μ
void OnlineBound::GradientPass::apply_inverse() {
  Matrix& D_inv = b.D_inv_;
  for_columns(M, entries(D_inv), [&](Index j) {
    D_inv.col(j) = -D_inv.col(j);
    D_inv(j, j) += 1.0;
  });
  solve_right(f.L, Op::none, D_inv);
  solve(f.L, Op::transpose, right);
}

void OnlineBound::GradientPass::pull_back_rows() {
  struct Part {
    Vector theta;
    Matrix Z;
    double e_squared = 0.0;
  };
  const RowBlocks blocks(N);
  std::vector<Part> parts(static_cast<std::size_t>(blocks.count));
  blocks.run([&](Index block, Index first, Index rows) {
    Part& part = parts[static_cast<std::size_t>(block)];
    part.theta = Vector::Zero(kernel.num_parameters());
    if (Z_bar != nullptr) part.Z = Matrix::Zero(M, b.Z_.cols());
    pull_back_block(first, rows, {.theta = &part.theta, .Z = Z_bar != nullptr ? &part.Z : nullptr},
                    part.e_squared);
  });
  for (const Part& part : parts) {
    e_squared += part.e_squared;
    b.gradient_.theta += part.theta;
    if (Z_bar != nullptr) *Z_bar += part.Z;
  }
}

void OnlineBound::GradientPass::pull_back_block(Index first, Index rows, const PullBack& into,
                                                double& squared) {
  const auto Vt = f.Vt.middleRows(first, rows);
  Vector e = b.t_.segment(first, rows) - Vt * mu;
  squared = e.squaredNorm();
  e /= sigma2;
  const auto pull_back = [&](auto K_fb_bar) {
    if (b.sites_.weighted()) {
      K_fb_bar.array().colwise() *= b.root_weight_.segment(first, rows).array();
    }
    kernel.pull_back(b.X_.middleRows(first, rows), b.Z_, K_fb_bar, into);
  };
  if (small_batch) {
    auto K_fb_bar = b.K_fb_bar_.middleRows(first, rows);
    for_columns(M, entries(K_fb_bar),
                [&](Index j) { K_fb_bar.col(j) = K_fb_bar.col(j) / sigma2 + mu[j] * e; });
    solve_right(f.L, Op::none, K_fb_bar);
    return pull_back(K_fb_bar);
  }
  // K̄_fb never stands in memory whole.
  thread_local Matrix storage;
  if (storage.rows() < rows || storage.cols() != M) storage.resize(rows, M);
  auto K_fb_bar = storage.topRows(rows);
  K_fb_bar.noalias() = e * right.transpose();
  multiply(1.0 / sigma2, Vt, Op::none, b.D_inv_, Op::none, 1.0, K_fb_bar);
  pull_back(K_fb_bar);
}

// What is left: the diagonal of K_ff, σ², and ε, which is a multiple of the mean prior variance or
// of σ² and so moves with θ.
void OnlineBound::GradientPass::pull_back_noise() {
  const PullBack into{.theta = &b.gradient_.theta};
  Vector k_bar = Vector::Constant(N, -0.5 / sigma2);
  if (b.sites_.weighted()) k_bar.array() *= b.sites_.weight.array();
  kernel.pull_back_diagonal(b.X_, k_bar, into);
  if (M > 0 && !f.jitter_follows_noise) {
    const double share = f.jitter_factor * jitter_bar / static_cast<double>(M);
    kernel.pull_back_diagonal(b.Z_, Vector::Constant(M, share),
                              {.theta = &b.gradient_.theta, .X = Z_bar});
  }
  // ∂L̂/∂log σ², the quadratic terms gathered in ‖e‖²
  const double log_noise_bar =
      0.5 * (fitted - static_cast<double>(N)) + 0.5 * (e_squared + f.residual) / sigma2;
  b.gradient_.noise_variance = log_noise_bar / sigma2;
  if (f.jitter_follows_noise) b.gradient_.noise_variance += f.jitter_factor * jitter_bar;
}

}  // namespace ample
