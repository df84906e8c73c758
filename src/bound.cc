#include "ample/bound.h"

#include <cmath>

#include "check.h"
#include "jitter.h"
#include "linalg.h"
#include "past.h"
#include "row_blocks.h"

namespace ample {
namespace {

// ε relative to the mean prior variance, at most: it grows tenfold for each failed factorisation up
// to this, which would begin to be seen in predictions.
constexpr double kJitterLast = 1e-3;  // more or less: one that starts at 5e-10 ends at 5e-4
constexpr int kJitterTries = 7;       // from 5e-10 on

}  // namespace

OnlineBound::OnlineBound(const State& old, const MatrixRef& X, Sites sites, Inducing inducing)
    : OnlineBound(std::vector<const State*>{&old}, X, std::move(sites), inducing) {}

OnlineBound::OnlineBound(const std::vector<const State*>& pasts, const MatrixRef& X, Sites sites,
                         Inducing inducing)
    : dimension_(pasts.empty() ? X.cols() : pasts.front()->dimension()),
      X_(X),
      sites_(std::move(sites)),
      t_(sites_.scaled_target()),
      root_weight_(sites_.weight.cwiseSqrt()),
      inducing_(inducing),
      t_squared_(t_.squaredNorm()) {
  check_columns("OnlineBound", "X", X.cols(), dimension_, "the model's input dimension");
  check_rows("OnlineBound", "y", sites_.size(), X.rows(), "the rows of X");
  for (const State* past : pasts) {
    check_columns("OnlineBound", "a past's Z", past->dimension(), dimension_,
                  "the model's input dimension");
    pasts_.push_back(std::make_unique<Past>(*past));
  }
}

OnlineBound::~OnlineBound() = default;

bool OnlineBound::factorize(const Kernel& kernel, double noise_variance, const MatrixRef& Z,
                            std::optional<double> jitter) {
  check_columns("OnlineBound", "Z", Z.cols(), dimension_, "the model's input dimension");
  check_positive("OnlineBound", "noise_variance", noise_variance);
  place(Z);
  // At θ_old the old points keep their factor and W = I: a batch that only adds to the model costs
  // what it adds.
  const bool extended =
      !jitter && at_theta_old(kernel, noise_variance) && extend_prior(nested_->state());
  kernel_ = kernel;
  noise_variance_ = noise_variance;
  if (!extended && !factorize_prior(jitter)) return false;
  add_rows();
  for (const auto& past : pasts_) {
    if (extended && past.get() == nested_) {
      past->carry_unchanged();
    } else {
      past->carry(kernel, Z_, f_.L, f_.jitter);
    }
    past->add_to(f_.A, f_.c);
  }
  return factorize_precision(extended) && finish();
}

bool OnlineBound::start_from(const MatrixRef& Z, BoundFactors factors) {
  check_columns("OnlineBound", "Z", Z.cols(), dimension_, "the model's input dimension");
  place(Z);
  AMPLE_ASSERT(nested_ != nullptr && pasts_.size() == 1);
  const Index M = Z.rows();
  for (const Matrix* factor : {&factors.L, &factors.A, &factors.L_D}) {
    AMPLE_ASSERT(factor->rows() == M && factor->cols() == M);
  }
  AMPLE_ASSERT(factors.Vt.rows() == X_.rows() && factors.Vt.cols() == M);
  AMPLE_ASSERT(factors.c.size() == M && factors.w.size() == M);
  kernel_ = nested_->state().kernel;
  noise_variance_ = nested_->state().noise_variance;
  f_ = std::move(factors);
  nested_->carry_unchanged();
  return finish();
}

// F (1) and L̂ (6)
bool OnlineBound::finish() {
  F_ = 0.5 * f_.w.squaredNorm() - sum_log_diagonal(f_.L_D);
  value_ =
      sites_.log_constant(noise_variance_) - 0.5 * (t_squared_ + f_.residual) / noise_variance_;
  for (const auto& past : pasts_) value_ -= 0.5 * past->residual();
  value_ += F_;
  for (const auto& past : pasts_) value_ -= past->state().F;
  return std::isfinite(value_);
}

void OnlineBound::place(const MatrixRef& Z) {
  if (Z_.rows() == Z.rows() && Z_.cols() == Z.cols() && Z_ == Z) return;
  Z_ = Z;
  nested_ = nullptr;
  for (const auto& past : pasts_) {
    past->place(Z_, inducing_ == Inducing::moving, nested_ == nullptr);
    if (past->nested() && past->state().size() > 0) nested_ = past.get();
  }
}

bool OnlineBound::at_theta_old(const Kernel& kernel, double noise_variance) const {
  return nested_ != nullptr && kernel.same_instance(nested_->state().kernel) &&
         noise_variance == nested_->state().noise_variance;
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
bool OnlineBound::extend_prior(const State& old) {
  const Index M_a = old.size();
  const Index added = Z_.rows() - M_a;
  f_.jitter = old.jitter;
  f_.jitter_factor = 0.0;  // ε stays what it was
  f_.L.resize(Z_.rows(), Z_.rows());
  f_.L.topLeftCorner(M_a, M_a) = old.L;
  if (added == 0) return true;
  const auto Z_new = Z_.bottomRows(added);
  auto L_ba = f_.L.bottomLeftCorner(added, M_a);
  auto L_bb = f_.L.bottomRightCorner(added, added);
  old.kernel.evaluate(Z_new, old.Z, L_ba);
  solve_right(old.L, Op::transpose, L_ba);
  old.kernel.evaluate_lower(Z_new, L_bb);
  L_bb.diagonal().array() += f_.jitter;
  outer(-1.0, L_ba, 1.0, L_bb);
  return cholesky(L_bb);
}

// Vᵀ = K_fb L⁻ᵀ [N,M] with its rows scaled, and the rows' part of A and c   (5)
void OnlineBound::add_rows() {
  const Index N = X_.rows();
  const Index M = Z_.rows();
  f_.Vt.resize(N, M);
  const RowBlocks blocks(N);
  Matrix Vt_t(M, blocks.count);
  blocks.run([&](Index block, Index first, Index rows) {
    auto Vt = f_.Vt.middleRows(first, rows);
    kernel_->evaluate(X_.middleRows(first, rows), Z_, Vt);
    solve_right(f_.L, Op::transpose, Vt);
    if (sites_.weighted()) Vt.array().colwise() *= root_weight_.segment(first, rows).array();
    Vt_t.col(block).noalias() = Vt.transpose() * t_.segment(first, rows);
  });
  f_.c = Vt_t.rowwise().sum() / noise_variance_;
  f_.A.resize(M, M);
  gram(1.0 / noise_variance_, f_.Vt, 0.0, f_.A);
  const Vector k = kernel_->diagonal(X_);
  const double prior = sites_.weighted() ? k.dot(sites_.weight) : k.sum();
  f_.residual = prior - noise_variance_ * f_.A.trace();
}

// D = I + A = L_D L_Dᵀ and w = L_D⁻¹ c
bool OnlineBound::factorize_precision(bool extended) {
  const Index M = Z_.rows();
  if (extended && M == nested_->state().size() && pasts_.size() == 1 &&
      update_is_cheaper(X_.rows(), M)) {
    f_.L_D = nested_->state().L_D;
    update_cholesky(f_.L_D, f_.Vt / std::sqrt(noise_variance_));
  } else {
    f_.L_D = f_.A;
    f_.L_D.diagonal().array() += 1.0;
    if (!cholesky(f_.L_D)) return false;
  }
  f_.w = f_.c;
  solve(f_.L_D, Op::none, f_.w);
  return true;
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
              .F = F_,
              .jitter = f_.jitter};
  kernel_.reset();
  Z_.resize(0, 0);
  nested_ = nullptr;
  return state;
}

}  // namespace ample
