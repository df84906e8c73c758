#include "ample/exact_gp.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "check.h"
#include "linalg.h"

namespace ample {
namespace {

// Queries predicted at a time: enough rows for the triangular solve to run at full speed, few
// enough that their covariances with 14,000 data take 57 MB.
constexpr Index kExactQueryBlock = 512;

void check_data(const char* where, const MatrixRef& X, const VectorRef& y) {
  check_rows(where, "y", y.size(), X.rows(), "the rows of X");
  check_finite(where, "X", X);
  check_finite(where, "y", y);
}

}  // namespace

ExactEvidence::ExactEvidence(const MatrixRef& X, const VectorRef& y) : X_(X), y_(y) {
  check_rows("ExactEvidence", "y", y.size(), X.rows(), "the rows of X");
}

bool ExactEvidence::factorize(const Kernel& kernel, double noise_variance) {
  check_positive("ExactEvidence", "noise_variance", noise_variance);
  const Index N = X_.rows();
  kernel_.reset();
  L_.resize(N, N);
  kernel.evaluate_lower(X_, L_);
  L_.diagonal().array() += noise_variance;
  if (!cholesky(L_)) return false;

  // With L⁻¹y on the way to α:  yᵀα = ‖L⁻¹y‖²
  alpha_ = y_;
  solve(L_, Op::none, alpha_);
  value_ = -0.5 * alpha_.squaredNorm() - sum_log_diagonal(L_) -
           0.5 * static_cast<double>(N) * std::log(2.0 * std::numbers::pi);
  solve(L_, Op::transpose, alpha_);
  if (!std::isfinite(value_)) return false;
  kernel_ = kernel;
  return true;
}

EvidenceGradient ExactEvidence::gradient() {
  AMPLE_ASSERT(kernel_.has_value());
  const Index N = X_.rows();
  Matrix& K_bar = L_;
  invert_from_cholesky(K_bar);
  // K̄ = ½ (α αᵀ − K⁻¹)   [N,N], lower triangle
  for (Index j = 0; j < N; ++j) {
    auto column = K_bar.col(j).tail(N - j);
    column = 0.5 * (alpha_[j] * alpha_.tail(N - j) - column);
  }
  EvidenceGradient out{.theta = Vector::Zero(kernel_->num_parameters()),
                       .noise_variance = K_bar.trace()};
  kernel_->pull_back_lower(X_, K_bar, {.theta = &out.theta});
  kernel_.reset();  // the factor is spent
  return out;
}

ExactGP::ExactGP(Hyperparameters hyperparameters) : hyperparameters_(std::move(hyperparameters)) {
  hyperparameters_.check("ExactGP");
}

MinimizeSummary ExactGP::fit(const MatrixRef& X, const VectorRef& y, const MinimizeOptions& options,
                             Curvature* curvature, const ShouldStop& should_stop) {
  check_data("fit", X, y);
  ExactEvidence evidence(X, y);
  const Objective objective = [&](const Vector& x, double& value, Vector& gradient) {
    const Hyperparameters trial = hyperparameters_.unpack(x);
    if (!evidence.factorize(trial.kernel, trial.noise())) return false;
    value = -evidence.value();
    const EvidenceGradient natural = evidence.gradient();
    trial.chain(-natural.theta, -natural.noise_variance, gradient);
    return true;
  };
  MinimizeSummary summary = minimize(objective, hyperparameters_.pack(), hyperparameters_.lower(),
                                     hyperparameters_.upper(), options, curvature, should_stop);
  keep(hyperparameters_.unpack(summary.x), X, evidence);
  return summary;
}

void ExactGP::condition(const MatrixRef& X, const VectorRef& y) {
  check_data("condition", X, y);
  ExactEvidence evidence(X, y);
  keep(hyperparameters_, X, evidence);
}

void ExactGP::keep(Hyperparameters hyperparameters, const MatrixRef& X, ExactEvidence& evidence) {
  if (!evidence.factorize(hyperparameters.kernel, hyperparameters.noise())) {
    throw NumericalError(
        fmt::format("ExactGP: the covariance of {} data is not positive definite to working "
                    "precision at kernel {}, noise_variance {}; a larger noise_variance helps",
                    X.rows(), hyperparameters.kernel.to_string(), hyperparameters.noise()));
  }
  Matrix data = X;  // the last thing that may throw
  X_ = std::move(data);
  L_ = std::move(evidence.factor());
  alpha_ = std::move(evidence.weights());
  log_evidence_ = evidence.value();
  hyperparameters_ = std::move(hyperparameters);
}

Prediction ExactGP::predict(const MatrixRef& X, Target target) const {
  if (size() > 0) {
    check_columns("predict", "X", X.cols(), X_.cols(), "the model's input dimension");
  }
  check_finite("predict", "X", X);
  const Kernel& kernel = hyperparameters_.kernel;
  Prediction out{.mean = Vector::Zero(X.rows()), .variance = kernel.diagonal(X)};
  Matrix K;  // K_*f, then K_*f L⁻ᵀ: a block of rows of [X.rows(),N]
  for (Index first = 0; first < X.rows() && size() > 0; first += kExactQueryBlock) {
    const Index rows = std::min(kExactQueryBlock, X.rows() - first);
    K.resize(rows, size());
    kernel.evaluate(X.middleRows(first, rows), X_, K);
    out.mean.segment(first, rows).noalias() = K * alpha_;
    solve_right(L_, Op::transpose, K);
    out.variance.segment(first, rows) -= K.rowwise().squaredNorm();
  }
  // Rounding can leave a variance a little below zero where the data leave none.
  out.variance = out.variance.cwiseMax(0.0);
  if (target == Target::observation) out.variance.array() += hyperparameters_.noise();
  return out;
}

}  // namespace ample
