#include "greedy_variance.h"

#include <algorithm>
#include <cmath>

#include "linalg.h"

namespace ample {
namespace {

// Rounding in r = k − ‖v‖² is a few units in the last place of k for each of M terms.
constexpr double kRounding = 1e-12;

// The covariance is kept once V has this many entries, more than fit into a core's cache, and an
// eighth of the pool is taken: then as many again would take longer by products with V, P M each at
// the rate of memory, than the P² M of a product of matrices. The largest pool takes 2 GB.
constexpr Index kLargeV = 500'000;
constexpr Index kPoolPerPoint = 8;
constexpr Index kLargestPool = 16'000;

// Points between two updates of the covariance.
constexpr Index kBlock = 64;

}  // namespace

GreedyVariance::GreedyVariance(const Kernel& kernel, const MatrixRef& pool, double jitter,
                               Index inducing)
    : kernel_(kernel),
      pool_(pool),
      jitter_(jitter),
      inducing_(inducing),
      Vt_(pool.rows(), 0),
      residual_(kernel.diagonal(pool)),
      is_taken_(static_cast<std::size_t>(pool.rows()), 0) {
  rounding_ = residual_.size() > 0 ? kRounding * residual_.maxCoeff() : 0.0;
}

void GreedyVariance::start_from(const MatrixRef& Z, const MatrixRef& L) {
  size_ = Z.rows();
  // Most batches add few points to many; those that add many grow the matrix by doubling.
  Vt_.resize(pool_.rows(), size_ + std::min<Index>(pool_.rows(), 64));
  kernel_.evaluate(pool_, Z, Vt_.leftCols(size_));
  solve_right(L, Op::transpose, Vt_.leftCols(size_));
  residual_ = (residual_ - Vt_.leftCols(size_).rowwise().squaredNorm()).cwiseMax(0.0);
}

std::optional<Index> GreedyVariance::most_uncertain() {
  Index best = -1;
  for (Index i = 0; i < residual_.size(); ++i) {
    if (is_taken_[static_cast<std::size_t>(i)] != 0) continue;
    if (best < 0 || residual_[i] > residual_[best]) best = i;
  }
  if (best < 0) return std::nullopt;
  if (residual_[best] <= rounding_) {
    stopped_by_rounding_ = true;
    return std::nullopt;
  }
  return best;
}

void GreedyVariance::take(Index j) {
  const Index P = pool_.rows();
  const auto taken = static_cast<Index>(taken_.size());
  if (P * size_ >= kLargeV && taken * kPoolPerPoint >= P) keep_covariance();
  if (covariance_.size() > 0 && size_ - included_ >= kBlock) update_covariance();
  reserve(size_ + 1);
  const double d = std::sqrt(residual_[j] + jitter_);
  auto v = Vt_.col(size_);
  write_covariance(j, v);
  if (j < inducing_) v[j] += jitter_;
  v /= d;
  residual_ = (residual_ - v.cwiseAbs2()).cwiseMax(0.0);
  is_taken_[static_cast<std::size_t>(j)] = 1;
  taken_.push_back(j);
  pivots_.push_back(d);
  ++size_;
}

std::optional<Index> GreedyVariance::take_next() {
  const std::optional<Index> best = most_uncertain();
  if (best) take(*best);
  return best;
}

Matrix GreedyVariance::columns(std::span<const Index> points) const {
  const auto count = static_cast<Index>(points.size());
  Matrix V(pool_.rows(), count);
  if (covariance_.size() == 0) {
    kernel_.evaluate(pool_, pool_(points, Eigen::all), V);
  } else {
    for (Index b = 0; b < count; ++b) write_kept(points[static_cast<std::size_t>(b)], V.col(b));
  }
  if (const Index since = size_ - included_; since > 0) {
    const auto new_ones = Vt_.middleCols(included_, since);
    multiply(-1.0, new_ones, Op::none, Matrix(new_ones(points, Eigen::all)), Op::transpose, 1.0, V);
  }
  for (Index b = 0; b < count; ++b) {
    const Index j = points[static_cast<std::size_t>(b)];
    if (j < inducing_) V(j, b) += jitter_;
    V.col(b) /= std::sqrt(residual_[j] + jitter_);
  }
  return V;
}

// What was left of k(x_j, pool) by the first `included_` points.
void GreedyVariance::write_kept(Index j, Eigen::Ref<Vector> v) const {
  v.head(j) = covariance_.row(j).head(j).transpose();
  v.tail(v.size() - j) = covariance_.col(j).tail(v.size() - j);
}

// k(x_j, pool) − V_·jᵀ V
void GreedyVariance::write_covariance(Index j, Eigen::Ref<Vector> v) const {
  if (covariance_.size() == 0) {
    kernel_.evaluate(pool_, pool_.row(j), v);
  } else {
    write_kept(j, v);
  }
  const Index since = size_ - included_;
  if (since > 0) {
    v.noalias() -=
        Vt_.middleCols(included_, since) * Vt_.row(j).segment(included_, since).transpose();
  }
}

void GreedyVariance::keep_covariance() {
  const Index P = pool_.rows();
  if (covariance_.size() > 0 || P > kLargestPool) return;
  covariance_.resize(P, P);
  kernel_.evaluate_lower(pool_, covariance_);
  update_covariance();
}

void GreedyVariance::update_covariance() {
  outer(-1.0, Vt_.middleCols(included_, size_ - included_), 1.0, covariance_);
  included_ = size_;
}

void GreedyVariance::reserve(Index columns) {
  if (columns > Vt_.cols()) {
    Vt_.conservativeResize(pool_.rows(), std::max<Index>({columns, 2 * Vt_.cols(), 64}));
  }
}

}  // namespace ample
