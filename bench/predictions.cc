// Predictions for many rows: their rate beside that of a matrix product in the same run, for means
// with variances and for means alone.
//
//   predictions [--rows N] [--rounds R] [--json FILE]
//
// N rows (a million by default) at M = 100; at M = 300 and 1000 as many as take about the same
// time.
#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ample/posterior.h"
#include "ample/threads.h"
#include "blas.h"
#include "linalg.h"
#include "measure.h"
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
  state.L_D = state.L;
  state.w = random_matrix(M, 1, 3);
  return state;
}

int run(Index rows_at_100, int rounds, const std::string& json_path) {
  constexpr Index n = 1000;
  const Matrix A = random_matrix(n, n, 4);
  const Matrix B = random_matrix(n, n, 5);
  Matrix C(n, n);
  nlohmann::json out{{"threads", threads()}, {"blas_core", blas_core()}, {"simd", simd::target()}};
  fmt::print("{} threads, BLAS core {}, loops for {}, best of {} rounds\n\n", threads(),
             blas_core(), simd::target(), rounds);
  fmt::print("{:>6}{:>10}{:>16}{:>12}{:>18}{:>16}{:>18}\n", "M", "rows", "rows/s", "of dgemm",
             "means alone /s", "kernel matrix", "means / matrix");
  for (const Index M : {100, 300, 1000}) {
    const Posterior posterior(state_of_size(M));
    const Index rows = std::max<Index>(rows_at_100 * 100 * 100 / (M * M), 2000);
    const Matrix X = random_matrix(rows, kDimension, 6);
    Matrix K(std::min<Index>(rows, 4000), M);
    double product = std::numeric_limits<double>::infinity();
    double both = product;
    double means = product;
    double kernel = product;
    double sink = 0.0;
    for (int round = 0; round < rounds; ++round) {
      for (int i = 0; i < 5; ++i) {
        product =
            std::min(product, seconds([&] { multiply(1.0, A, Op::none, B, Op::none, 0.0, C); }));
        kernel = std::min(kernel, seconds([&] {
                            posterior.state().kernel.evaluate(X.topRows(K.rows()),
                                                              posterior.state().Z, K);
                          }));
      }
      both = std::min(both, seconds([&] { sink += posterior.predict(X).variance[0]; }));
      means = std::min(means, seconds([&] { sink += posterior.mean(X)[0]; }));
    }
    // Two triangular solves of M² operations for each row; the kernel counts as nothing.
    const double flops = 2.0 * static_cast<double>(M * M);
    const auto count = static_cast<double>(rows);
    const double of_dgemm = flops * count / both / (2e9 / product);
    const double matrix = count / static_cast<double>(K.rows()) * kernel;
    fmt::print("{:>6}{:>10}{:>16.0f}{:>11.0f} %{:>18.0f}{:>14.4f} s{:>18.2f}\n", M, rows,
               count / both, 100.0 * of_dgemm, count / means, matrix, means / matrix);
    out["sizes"].push_back({{"inducing", M},
                            {"rows", rows},
                            {"seconds", both},
                            {"of_dgemm", of_dgemm},
                            {"seconds_mean", means},
                            {"seconds_kernel_matrix", matrix}});
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
                           std::stoi(option(argc, argv, "--rounds", "5")),
                           option(argc, argv, "--json", ""));
}
