// How near the core operations come to what the machine can do: rates of the bound and of kernel
// matrices as ratios to its own matrix product and exp, measured in the same run. Rounds of all
// measurements are interleaved and the best of each is taken, so that a busy moment hits all alike.
//
//   machine_ratios [--rounds R] [--json FILE]
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <cblas.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ample/bound.h"
#include "ample/kernel.h"
#include "ample/optimum.h"
#include "ample/threads.h"
#include "blas.h"
#include "kernel_loops.h"
#include "linalg.h"
#include "measure.h"
#include "parallel.h"
#include "simd.h"

namespace ample {
namespace {

using bench::random_matrix;
using bench::seconds;

struct Measurement {
  std::string name;
  double work;  // floating-point operations, or exponentials
  std::function<void()> run;
  double best = std::numeric_limits<double>::infinity();

  [[nodiscard]] double rate() const { return work / best; }
};

/// Operations that no arrangement of value and gradient avoids, first batch (no past), in units of
/// multiply and add: factors of K_bb and D (2/3 M³), V (N M²), V Vᵀ (N M²), D⁻¹ (2/3 M³),
/// K̄_bf = B V (2 N M²) after B or by one more solve (min(N, M) M²), K̄_bb between two solves (2 M³).
/// Kernel evaluations and their pull-backs count as nothing.
double necessary_flops(double M, double N) {
  return 4.0 * N * M * M + std::min(N, M) * M * M + (2.0 / 3.0 + 2.0 / 3.0 + 2.0) * M * M * M;
}

/// The bound with its gradient on random data.
class BoundProblem {
 public:
  BoundProblem(Index M, Index N, Index D)
      : kernel_(SquaredExponential{.lengthscale = Positive(std::vector<double>(
                                       static_cast<std::size_t>(D), std::sqrt(double(D))))}),
        X_(random_matrix(N, D, 1)),
        Z_(random_matrix(M, D, 2)),
        y_(random_matrix(N, 1, 3)),
        past_(State::empty(kernel_, 0.1, D)),
        bound_(past_, X_, y_) {}

  void run() {
    if (!bound_.factorize(kernel_, 0.1, Z_)) std::abort();
    sink_ += bound_.gradient().noise_variance;
  }

 private:
  Kernel kernel_;
  Matrix X_;
  Matrix Z_;
  Vector y_;
  State past_;
  OnlineBound bound_;
  double sink_ = 0.0;
};

/// L* of N rows on top of a model of M points. No arrangement avoids V and U (N M² each), lower
/// triangles of VᵀV and UᵀU (N² M each) and the factor of the rows' covariance (N³/3).
class OptimumProblem {
 public:
  OptimumProblem(Index M, Index N, Index D)
      : old_(learnt(M, D)), X_(random_matrix(N, D, 7)), sites_(Vector(random_matrix(N, 1, 8))) {}

  void run() {
    const auto value = optimum(old_, X_, sites_);
    if (!value) std::abort();
    sink_ += *value;
  }

  static double necessary_flops(double M, double N) {
    return 2.0 * N * M * M + 2.0 * N * N * M + N * N * N / 3.0;
  }

 private:
  static State learnt(Index M, Index D) {
    const Kernel kernel = SquaredExponential{.lengthscale = std::sqrt(double(D))};
    const State nothing = State::empty(kernel, 0.1, D);
    const Matrix X = random_matrix(M, D, 1);
    OnlineBound bound(nothing, X, Vector(random_matrix(M, 1, 3)));
    if (!bound.factorize(kernel, 0.1, X)) std::abort();
    return bound.absorb();
  }

  State old_;
  Matrix X_;
  Sites sites_;
  double sink_ = 0.0;
};

int run(int rounds, const std::string& json_path) {
  std::vector<Measurement> all;
  constexpr int n = 1000;
  const Matrix A = random_matrix(n, n, 4);
  const Matrix B = random_matrix(n, n, 5);
  Matrix C(n, n);
  // The yardstick is whichever is faster, BLAS with its own threads or with ours.
  all.push_back({"dgemm 1000, BLAS's threads", 2e9, [&] {
                   cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0, A.data(), n,
                               B.data(), n, 0.0, C.data(), n);
                 }});
  all.push_back(
      {"dgemm 1000, our threads", 2e9, [&] { multiply(1.0, A, Op::none, B, Op::none, 0.0, C); }});
  Matrix S = Matrix::Zero(n, n);
  gram(1.0, A, 0.0, S);
  S.diagonal().array() += 1.0;
  all.push_back({"Cholesky 1000", 1e9 / 3.0, [&] {
                   C = S;
                   if (!cholesky(C)) std::abort();
                 }});
  Matrix T = S;
  if (!cholesky(T)) return 1;
  all.push_back({"triangular solve 1000", 1e9, [&] {
                   C = A;
                   solve_right(T, Op::transpose, C);
                 }});

  struct Shape {
    Index M, N;
  };
  const std::vector<Shape> shapes{{1000, 1000}, {2000, 300}, {300, 2000},
                                  {10, 50},     {30, 100},   {50, 100}};
  std::vector<std::unique_ptr<BoundProblem>> problems;
  for (const auto& [M, N] : shapes) {
    problems.push_back(std::make_unique<BoundProblem>(M, N, 8));
    all.push_back({fmt::format("bound + gradient M={} N={}", M, N),
                   necessary_flops(double(M), double(N)),
                   [p = problems.back().get()] { p->run(); }});
  }

  std::vector<std::unique_ptr<OptimumProblem>> optima;
  for (const Index N : {500, 1000, 2000}) {
    constexpr Index M = 300;
    optima.push_back(std::make_unique<OptimumProblem>(M, N, 8));
    all.push_back({fmt::format("L* M={} N={}", M, N),
                   OptimumProblem::necessary_flops(double(M), double(N)),
                   [p = optima.back().get()] { p->run(); }});
  }

  const Index size = 4000;
  const Index D = 8;
  const Matrix X = random_matrix(size, D, 6);
  const Kernel se = SquaredExponential{.lengthscale = 2.0};
  Matrix K(size, size);
  const auto entries = static_cast<double>(K.size());
  all.push_back({"kernel matrix 4000", entries, [&] { se.evaluate(X, X, K); }});
  all.push_back({"its exp alone", entries, [&] {
                   parallel_for(size, threads(), [&](Index j) {
                     for (Index i = 0; i < size; i += 500) {
                       loops::se_value(&K(i, j), std::min<Index>(500, size - i), 1.0);
                     }
                   });
                 }});
  all.push_back({"its product alone", 2.0 * entries * double(D),
                 [&] { multiply(1.0, X, Op::none, X, Op::transpose, 0.0, K); }});

  for (int round = 0; round < rounds; ++round) {
    for (Measurement& m : all) {
      // As much time for the short as for the long, or the long would meet more quiet moments.
      double spent = 0.0;
      while (spent < 0.1) {
        const double s = seconds(m.run);
        m.best = std::min(m.best, s);
        spent += s;
      }
    }
  }

  const double gemm = std::max(all[0].rate(), all[1].rate());
  fmt::print("{} threads, BLAS core {}, loops for {}, best of {} interleaved rounds\n\n", threads(),
             blas_core(), simd::target(), rounds);
  fmt::print("{:<32}{:>12}{:>14}{:>12}\n", "", "seconds", "Gop/s", "of dgemm");
  nlohmann::json out{{"threads", threads()},
                     {"blas_core", blas_core()},
                     {"simd", simd::target()},
                     {"rounds", rounds}};
  for (const Measurement& m : all) {
    const bool flops =
        m.name.find("exp") == std::string::npos && m.name.find("kernel") == std::string::npos;
    fmt::print("{:<32}{:>12.5f}{:>14.2f}{:>12}\n", m.name, m.best, 1e-9 * m.rate(),
               flops ? fmt::format("{:.0f} %", 100.0 * m.rate() / gemm) : "");
    out["measurements"][m.name] = {
        {"seconds", m.best}, {"work", m.work}, {"of_dgemm", m.rate() / gemm}};
  }
  const double parts = all[all.size() - 2].best + all[all.size() - 1].best;
  const double ratio = all[all.size() - 3].best / parts;
  fmt::print("\nkernel matrix over (its exp + its product): {:.2f}\n", ratio);
  out["kernel_matrix_over_parts"] = ratio;
  if (!json_path.empty()) std::ofstream(json_path) << out.dump(2) << '\n';
  return 0;
}

}  // namespace
}  // namespace ample

int main(int argc, char** argv) {
  using ample::bench::option;
  return ample::run(std::max(1, std::stoi(option(argc, argv, "--rounds", "10"))),
                    option(argc, argv, "--json", ""));
}
