#include "ample/state.h"

#include "check.h"
#include "linalg.h"

namespace ample {

State State::empty(Kernel kernel, double noise_variance, Index D) {
  kernel.check_dimension(D);
  check_positive("State", "noise_variance", noise_variance);
  return State{.kernel = std::move(kernel),
               .noise_variance = noise_variance,
               .Z = Matrix(0, D),
               .L = Matrix(0, 0),
               .A = Matrix(0, 0),
               .c = Vector(0),
               .L_D = Matrix(0, 0),
               .w = Vector(0),
               .F = 0.0,
               .jitter = 0.0};
}

bool State::factorize() {
  L_D = A;
  L_D.diagonal().array() += 1.0;
  if (!cholesky(L_D)) return false;
  clear_upper(L_D);
  w = c;
  solve(L_D, Op::none, w);
  F = 0.5 * w.squaredNorm() - sum_log_diagonal(L_D);  // (1)
  return true;
}

}  // namespace ample
