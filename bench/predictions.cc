// Predictions for many rows (a million by default), beside what they are made of, in the same run:
// means with variances beside a matrix product of as many operations, means alone beside the
// product, the exponentials and the sums of their kernel matrix.
//
//   predictions [--rows N] [--rounds R] [--json FILE]
//
// At M = 1000 a tenth of the rows.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ample/posterior.h"
#include "ample/threads.h"
#include "blas.h"
#include "kernel_loops.h"
#include "linalg.h"
#include "measure.h"
#include "parallel.h"
#include "simd.h"

namespace ample::bench {
namespace {

constexpr Index kDimension = 8;

/// A state of M inducing points; its factors are well-conditioned triangles of no meaning.
State state_of_size(Index M) {
  State state = State::empty(SquaredExponential{.lengthscale = 2.0}, 0.1, kDimension);
  state.Z = random_matrix(M, kDimension, 1);
  state.L = random_matrix(M, M, 2).triangularView<Eigen::StrictlyLower>();
  state.L *= 0.5 / static_cast<double>(M);
  state.L.diagonal().setOnes();
  state.L_D = 2.0 * state.L;  // D = I + A
  state.w = random_matrix(M, 1, 3);
  return state;
}

/// What means alone are made of: X Zᵀ, an exponential and a sum for each entry of K(X, Z), in
/// blocks that stay in a core's cache.
void parts_of_means(const Matrix& X, const Matrix& Z, Vector& out) {
  constexpr Index kRows = 256;
  const SerialBlas serial;
  parallel_for(X.rows() / kRows, threads(), [&](Index block) {
    Matrix K(kRows, Z.rows());
    multiply(1.0, X.middleRows(block * kRows, kRows), Op::none, Z, Op::transpose, 0.0, K);
    K = -K.cwiseAbs();
    for (Index j = 0; j < K.cols(); ++j) {
      loops::se_value(&K(0, j), kRows, 1.0);
      loops::add_scaled(&K(0, j), kRows, 0.5, out.data() + block * kRows);
    }
  });
}

int run(Index all_rows, int rounds, const std::string& json_path) {
  constexpr Index n = 1000;
  const Matrix A = random_matrix(n, n, 4);
  const Matrix B = random_matrix(n, n, 5);
  Matrix C(n, n);
  nlohmann::json out{{"threads", threads()}, {"blas_core", blas_core()}, {"simd", simd::target()}};
  fmt::print("{} threads, BLAS core {}, loops for {}, best of {} rounds\n\n", threads(),
             blas_core(), simd::target(), rounds);
  fmt::print("{:>6}{:>10}{:>16}{:>12}{:>20}{:>16}\n", "M", "rows", "rows/s", "of dgemm",
             "means alone, rows/s", "of their parts");
  for (const Index M : {100, 300, 1000}) {
    const Posterior posterior(state_of_size(M));
    const Index rows = M < 1000 ? all_rows : std::max<Index>(all_rows / 10, 4096);
    const Matrix X = random_matrix(rows, kDimension, 6);
    double product = std::numeric_limits<double>::infinity();
    double both = product;
    double means = product;
    double parts = product;
    Vector sums = Vector::Zero(rows);
    double sink = 0.0;
    const auto measure = [](double& best, const std::function<void()>& work) {
      best = std::min(best, seconds(work));
    };
    for (int round = 0; round < rounds; ++round) {
      for (int i = 0; i < 20; ++i) {
        measure(product, [&] { multiply(1.0, A, Op::none, B, Op::none, 0.0, C); });
      }
      measure(both, [&] { sink += posterior.predict(X).variance[0]; });
      measure(means, [&] { sink += posterior.mean(X)[0]; });
      measure(parts, [&] { parts_of_means(X, posterior.state().Z, sums); });
    }
    sink += sums[0];
    // By (3) two triangular solves of M² operations for each row; the kernel counts as nothing.
    const double flops = 2.0 * static_cast<double>(M * M);
    const auto count = static_cast<double>(rows);
    const double of_dgemm = flops * count / both / (2e9 / product);
    fmt::print("{:>6}{:>10}{:>16.0f}{:>10.0f} %{:>20.0f}{:>14.0f} %\n", M, rows, count / both,
               100.0 * of_dgemm, count / means, 100.0 * parts / means);
    out["sizes"].push_back({{"inducing", M},
                            {"rows", rows},
                            {"seconds", both},
                            {"of_dgemm", of_dgemm},
                            {"seconds_mean", means},
                            {"mean_of_parts", parts / means}});
    if (!std::isfinite(sink)) return 1;
  }
  if (!json_path.empty()) std::ofstream(json_path) << out.dump(2) << '\n';
  return 0;
}

}  // namespace
}  // namespace ample::bench

int main(int argc, char** argv) {
  using ample::bench::option;
  return ample::bench::run(std::stol(option(argc, argv, "--rows", "1000000")),
                           std::stoi(option(argc, argv, "--rounds", "3")),
                           option(argc, argv, "--json", ""));
}
