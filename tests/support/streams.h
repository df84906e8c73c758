// Small random batches, and states that have learnt from them.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>

#include "ample/bound.h"
#include "ample/state.h"
#include "ample/types.h"
#include "support/random.h"

namespace ample::testing {

/// Inputs of size about one and smooth targets with noise of standard deviation 0.1.
inline Batch random_batch(Index N, Index D, std::uint64_t seed) {
  Random random(seed);
  Batch batch{random.normal(N, D), Vector(N)};
  for (Index i = 0; i < N; ++i) {
    batch.y[i] = std::sin(2.0 * batch.X.row(i).sum()) + 0.5 * batch.X(i, 0) + 0.1 * random.normal();
  }
  return batch;
}

/// [A; B].
inline Matrix stacked(const Matrix& A, const Matrix& B) {
  Matrix C(A.rows() + B.rows(), B.cols());
  C << A, B;
  return C;
}

/// The state after a batch with these inducing inputs, at the hyperparameters of `old`.
inline State absorbed(const State& old, const Batch& batch, const Matrix& Z,
                      std::optional<double> jitter = std::nullopt) {
  OnlineBound bound(old, batch.X, batch.y);
  if (!bound.factorize(old.kernel, old.noise_variance, Z, jitter)) {
    throw std::runtime_error("absorbed: the bound cannot be factorised");
  }
  return bound.absorb();
}

/// A state that has seen one batch, its inducing inputs the first M rows of it.
inline State state_after(const Kernel& kernel, double noise_variance, const Batch& batch, Index M,
                         std::optional<double> jitter = std::nullopt) {
  return absorbed(State::empty(kernel, noise_variance, batch.X.cols()), batch, batch.X.topRows(M),
                  jitter);
}

/// What the exception says, "" if there is none.
template <class Exception = std::invalid_argument>
std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Exception& e) {
    return e.what();
  }
  return "";
}

}  // namespace ample::testing
