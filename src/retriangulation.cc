#include "retriangulation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "check.h"
#include "linalg.h"

namespace ample {
namespace {

constexpr Index kPanel = 64;

template <class Body>
void for_panels(Index m, const Body& body) {
  for (Index first = 0; first < m; first += kPanel) body(first, std::min(kPanel, m - first));
}

}  // namespace

// Reflections take L_ii to −‖(L_ii, G_i)‖, which cancels no digits. All columns of Q that L_new
// comes from then have the wrong sign, and are turned round at the end.
Retriangulation::Retriangulation(Matrix L, Matrix Gt)
    : L_(std::move(L)), B_(std::move(Gt)), T_(Matrix::Zero(kPanel, L_.rows())) {
  AMPLE_ASSERT(L_.rows() == L_.cols() && B_.cols() == L_.rows());
  const Index m = L_.rows();
  for_panels(m, [&](Index first, Index width) {
    reflect_panel(first, width);
    const Index below = m - first - width;
    if (below == 0) return;
    // The rows below: W = (L + G B) T,  L ← L − W,  Gᵀ ← Gᵀ − B Wᵀ.
    auto rows = L_.block(first + width, first, below, width);
    auto Gt_below = B_.rightCols(below);
    const auto B = B_.middleCols(first, width);
    Matrix sum = rows;
    multiply(1.0, Gt_below, Op::transpose, B, Op::none, 1.0, sum);
    Matrix W(below, width);
    multiply(1.0, sum, Op::none, T_.block(0, first, width, width), Op::none, 0.0, W);
    rows -= W;
    multiply(-1.0, B, Op::none, W, Op::transpose, 1.0, Gt_below);
  });
  L_ = -L_;
  clear_upper(L_);
}

/// The reflections of some rows, and what they make of one another.
void Retriangulation::reflect_panel(Index first, Index width) {
  auto T = T_.block(0, first, width, width);
  for (Index p = 0; p < width; ++p) {
    const Index i = first + p;
    auto b = B_.col(i);
    const double diagonal = L_(i, i);
    const double length = std::hypot(diagonal, b.stableNorm());
    const double tau = (diagonal + length) / length;
    b /= diagonal + length;
    L_(i, i) = -length;
    for (Index j = i + 1; j < first + width; ++j) {
      const double along = tau * (L_(j, i) + b.dot(B_.col(j)));
      L_(j, i) -= along;
      B_.col(j) -= along * b;
    }
    T(p, p) = tau;
    const Vector products = -tau * (B_.middleCols(first, p).transpose() * b);
    T.col(p).head(p).noalias() = T.topLeftCorner(p, p).triangularView<Eigen::Upper>() * products;
  }
}

void Retriangulation::multiply_right(Eigen::Ref<Matrix> C1, Eigen::Ref<Matrix> C2) const {
  AMPLE_ASSERT(C1.cols() == L_.rows() && C2.cols() == B_.rows() && C1.rows() == C2.rows());
  for_panels(L_.rows(), [&](Index first, Index width) {
    const auto B = B_.middleCols(first, width);
    Matrix sum = C1.middleCols(first, width);
    multiply(1.0, C2, Op::none, B, Op::none, 1.0, sum);
    Matrix W(C1.rows(), width);
    multiply(1.0, sum, Op::none, T_.block(0, first, width, width), Op::none, 0.0, W);
    C1.middleCols(first, width) -= W;
    multiply(-1.0, W, Op::none, B, Op::transpose, 1.0, C2);
  });
  C1 = -C1;
}

void Retriangulation::multiply_left(Eigen::Ref<Matrix> C1, Eigen::Ref<Matrix> C2) const {
  AMPLE_ASSERT(C1.rows() == L_.rows() && C2.rows() == B_.rows() && C1.cols() == C2.cols());
  for_panels(L_.rows(), [&](Index first, Index width) {
    const auto B = B_.middleCols(first, width);
    Matrix sum = C1.middleRows(first, width);
    multiply(1.0, B, Op::transpose, C2, Op::none, 1.0, sum);
    Matrix W(width, C1.cols());
    multiply(1.0, T_.block(0, first, width, width), Op::transpose, sum, Op::none, 0.0, W);
    C1.middleRows(first, width) -= W;
    multiply(-1.0, B, Op::none, W, Op::none, 1.0, C2);
  });
  C1 = -C1;
}

}  // namespace ample
