#include "past.h"

#include <utility>

#include "linalg.h"
#include "parallel.h"

namespace ample {

void Past::place(const Matrix& Z, bool moving, bool may_be_nested) {
  const Index M_a = state_.size();
  nested_ = M_a == 0 || (may_be_nested && !moving && Z.rows() >= M_a && Z.topRows(M_a) == state_.Z);
  shared_.clear();
  if (nested_ || moving) return;
  for (Index a = 0; a < M_a; ++a) {
    for (Index b = 0; b < Z.rows(); ++b) {
      if (state_.Z.row(a) == Z.row(b)) shared_.emplace_back(a, b);
    }
  }
}

void Past::carry(const Kernel& kernel, const Matrix& Z, const Matrix& L, double jitter) {
  residual_ = 0.0;
  unchanged_ = false;
  if (nested_) {
    carry_nested(L);
  } else {
    carry_general(kernel, Z, L, jitter);
  }
}

void Past::carry_unchanged() {
  residual_ = 0.0;
  unchanged_ = true;
  h_ = state_.c;
}

// A copy of A_old is most of the time of a batch of one row, which has no use for a gradient.
Matrix& Past::H() {
  if (std::exchange(unchanged_, false)) H_ = state_.A;
  return H_;
}

// H = W A_old Wᵀ and h = W c_old, with Wᵀ = L_old⁻¹ L_a   (7, 8)
void Past::carry_nested(const Matrix& L) {
  const Index M_a = state_.size();
  if (M_a == 0) {
    H_.resize(0, 0);
    h_.resize(0);
    return;
  }
  Matrix& Wt = work_;
  Wt = L.topLeftCorner(M_a, M_a);
  clear_upper(Wt);
  solve_left_triangle(state_.L, Wt);
  H_ = state_.A;
  multiply_both_sides(Wt, H_);
  h_.noalias() = Wt.transpose().triangularView<Eigen::Upper>() * state_.c;
}

// With T = L_old⁻¹ Y and Y = K_ab L⁻ᵀ. L_old⁻¹ is applied to A_old and c_old, once a batch, rather
// than to Y:
//   H = Yᵀ P_old Y,   h = Yᵀ p_old,   ⟨A_old, T Tᵀ⟩ = tr H
void Past::carry_general(const Kernel& kernel, const Matrix& Z, const Matrix& L, double jitter) {
  const Index M_a = state_.size();
  const Index M = Z.rows();
  if (P_old_.rows() != M_a) prepare_general();
  K_aa_.resize(M_a, M_a);
  kernel.evaluate_lower(state_.Z, K_aa_);
  K_aa_.diagonal().array() += jitter;
  residual_ = inner_lower(P_old_, K_aa_);

  Matrix& Y = work_;
  Y.resize(M_a, M);
  kernel.evaluate(state_.Z, Z, Y);
  for (const auto& [a, b] : shared_) Y(a, b) += jitter;
  solve_right(L, Op::transpose, Y);
  G_.resize(M_a, M);
  multiply_symmetric(1.0, P_old_, Y, 0.0, G_);
  H_.resize(M, M);
  multiply_lower(1.0, Y, G_, 0.0, H_);
  h_.noalias() = Y.transpose() * p_old_;
  residual_ -= H_.trace();
}

void Past::prepare_general() {
  const Index M_a = state_.size();
  P_old_ = state_.A;
  solve_right(state_.L, Op::none, P_old_);
  solve_left(state_.L, Op::transpose, P_old_);
  // The mean of both triangles: rounding errors of the solves are large, but orthogonal to K_aa
  // and Y as long as no triangle is taken alone.
  for_columns(M_a, entries(P_old_), [&](Index j) {
    auto P_j = P_old_.col(j).tail(M_a - j);
    P_j = 0.5 * (P_j + P_old_.row(j).tail(M_a - j).transpose());
  });
  p_old_ = state_.c;
  solve(state_.L, Op::transpose, p_old_);
}

void Past::add_to(Matrix& A, Vector& c) const {
  const Index size = h_.size();
  const Matrix& H = unchanged_ ? state_.A : H_;
  for_columns(size, entries(H),
              [&](Index j) { A.col(j).segment(j, size - j) += H.col(j).tail(size - j); });
  c.head(size) += h_;
}

// K̄_ab = G B + (p_old − Gμ) μᵀL⁻¹,   K̄_aa = −½ P_old   (15)
double Past::pull_back(const Kernel& kernel, const Matrix& Z, const Matrix& B, const Vector& mu,
                       const Vector& right, const PullBack& into) {
  const Index M = Z.rows();
  Matrix& K_ab_bar = work_;
  K_ab_bar.resize(state_.size(), M);
  const Vector left = p_old_ - G_ * mu;
  for_columns(M, entries(K_ab_bar), [&](Index j) { K_ab_bar.col(j) = right[j] * left; });
  multiply(1.0, G_, Op::none, B, Op::none, 1.0, K_ab_bar);
  kernel.pull_back(state_.Z, Z, K_ab_bar, {.theta = into.theta, .Z = into.Z});
  Vector theta_bar = Vector::Zero(kernel.num_parameters());
  kernel.pull_back_lower(state_.Z, P_old_, {.theta = &theta_bar});
  *into.theta -= 0.5 * theta_bar;
  double jitter_bar = -0.5 * P_old_.trace();
  for (const auto& [a, b] : shared_) jitter_bar += K_ab_bar(a, b);
  return jitter_bar;
}

}  // namespace ample
