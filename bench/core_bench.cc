// The operations one by one, over the sizes they meet: for profiling and for comparing two
// versions.
//
//   core_bench [--benchmark_filter=Bound] [--benchmark_format=json] …
#include <filesystem>
#include <string>

#include <benchmark/benchmark.h>

#include "ample/bound.h"
#include "ample/continual_gp.h"
#include "ample/posterior.h"
#include "ample/pruning.h"
#include "ample/selection.h"
#include "ample/snapshot.h"
#include "measure.h"

namespace ample::bench {
namespace {

using benchmark::State;

const Kernel kKernel = SquaredExponential{.lengthscale = 2.0};
constexpr double kNoise = 0.1;

/// The state after a first batch of M points that are all inducing points.
ample::State learnt(Index M, Index D) {
  const Batch batch = random_batch(M, D, 1);
  const ample::State nothing = ample::State::empty(kKernel, kNoise, D);
  OnlineBound bound(nothing, batch.X, batch.y);
  if (!bound.factorize(kKernel, kNoise, batch.X)) std::abort();
  return bound.absorb();
}

// Arguments: rows, columns, D.
void kernel_matrix(State& state, const Kernel& kernel) {
  const Matrix X = random_matrix(state.range(0), state.range(2), 1);
  const Matrix Z = random_matrix(state.range(1), state.range(2), 2);
  Matrix K(X.rows(), Z.rows());
  for (auto _ : state) {
    kernel.evaluate(X, Z, K);
    benchmark::DoNotOptimize(K.data());
  }
  state.SetItemsProcessed(state.iterations() * K.size());
}

void kernel_pull_back(State& state, const Kernel& kernel) {
  const Matrix X = random_matrix(state.range(0), state.range(2), 1);
  const Matrix Z = random_matrix(state.range(1), state.range(2), 2);
  const Matrix K_bar = random_matrix(X.rows(), Z.rows(), 3);
  Vector theta = Vector::Zero(kernel.num_parameters());
  for (auto _ : state) {
    kernel.pull_back(X, Z, K_bar, {.theta = &theta});
    benchmark::DoNotOptimize(theta.data());
  }
  state.SetItemsProcessed(state.iterations() * K_bar.size());
}

// Arguments: M, N, D. The old model has M − 10 points, so that the past takes part.
void bound(State& state, bool with_gradient) {
  const Index M = state.range(0);
  const Index D = state.range(2);
  const ample::State old = learnt(M - 10, D);
  const Batch batch = random_batch(state.range(1), D, 2);
  Matrix Z(M, D);
  Z << old.Z, random_matrix(10, D, 3);
  const Kernel kernel = kKernel.with_values(Vector{{1.1, 2.1}});
  OnlineBound online(old, batch.X, batch.y);
  for (auto _ : state) {
    if (!online.factorize(kernel, kNoise, Z)) std::abort();
    if (with_gradient) benchmark::DoNotOptimize(online.gradient().noise_variance);
  }
}

// Arguments: M before, N, D.
void selection(State& state, Vips::Choose choose) {
  const Index D = state.range(2);
  const ample::State old = learnt(state.range(0), D);
  const Batch batch = random_batch(state.range(1), D, 2);
  TargetStatistics targets;
  targets.observe(batch.y);
  const Vips vips{.delta = 0.1, .choose = choose};
  for (auto _ : state) {
    benchmark::DoNotOptimize(vips.select({old, batch.X, batch.y, targets, 0}).Z.data());
  }
}

// Argument: M. The prices and a tenth of the points removed, as after a batch that is pruned.
void pruning(State& state) {
  const Index M = state.range(0);
  const ample::State whole = learnt(M, 8);
  for (auto _ : state) {
    benchmark::DoNotOptimize(prune(whole, {.points = M - M / 10}).state.A.data());
  }
}

// Arguments: M, N. A whole batch, selection and fit, for a model that has M points and stays so
// large: what pruning comes on top of.
void whole_batch(State& state) {
  const Index M = state.range(0);
  ContinualGPOptions options;
  options.start.kernel = kKernel;
  options.selection = Vips{.delta = 0.001, .max_inducing = M};
  ContinualGP begun(options);
  const Batch first = random_batch(2 * M, 8, 1);
  begun.observe(first.X, first.y);
  if (begun.size() != M) std::abort();
  const Batch batch = random_batch(state.range(1), 8, 2);
  for (auto _ : state) {
    ContinualGP gp = begun;
    const BatchReport report = gp.observe(batch.X, batch.y);
    state.counters["evaluations"] = report.fit.evaluations;
  }
}

// Arguments: M, rows, D.
void prediction(State& state) {
  const Posterior posterior(learnt(state.range(0), state.range(2)));
  const Matrix X = random_matrix(state.range(1), state.range(2), 4);
  for (auto _ : state) benchmark::DoNotOptimize(posterior.predict(X).mean.data());
  state.SetItemsProcessed(state.iterations() * X.rows());
}

// Argument: M.
ContinualGP model(Index M) {
  ContinualGPOptions options;
  options.start.kernel = kKernel;
  options.selection = FixedGreedy{.size = M};
  options.refit_every = 0;
  ContinualGP gp(options);
  const Batch batch = random_batch(M, 8, 1);
  gp.observe(batch.X, batch.y);
  return gp;
}

std::string scratch_file() {
  return (std::filesystem::temp_directory_path() / "ample-core-bench.ample").string();
}

void save_model(State& state) {
  const ContinualGP gp = model(state.range(0));
  for (auto _ : state) save(gp, scratch_file());
  std::filesystem::remove(scratch_file());
}

void load_model(State& state) {
  save(model(state.range(0)), scratch_file());
  for (auto _ : state) benchmark::DoNotOptimize(load(scratch_file()).size());
  std::filesystem::remove(scratch_file());
}

const Kernel kArd = SquaredExponential{.lengthscale = Positive(std::vector<double>(8, 2.0))};
const Kernel kMatern = Matern52{.lengthscale = 2.0};
const Kernel kComposite = Constant{500.0} + kMatern * Kernel(Periodic{});

// NOLINTBEGIN: the macros' business
BENCHMARK_CAPTURE(kernel_matrix, se, kKernel)->Args({500, 100, 8})->Args({2000, 2000, 8});
BENCHMARK_CAPTURE(kernel_matrix, matern52, kMatern)->Args({2000, 2000, 8});
BENCHMARK_CAPTURE(kernel_matrix, composite, kComposite)->Args({2000, 2000, 8});
BENCHMARK_CAPTURE(kernel_pull_back, se, kKernel)->Args({500, 100, 8})->Args({2000, 2000, 8});
BENCHMARK_CAPTURE(kernel_pull_back, se_ard, kArd)->Args({2000, 2000, 8});
BENCHMARK_CAPTURE(kernel_pull_back, matern52, kMatern)->Args({2000, 2000, 8});
#define AMPLE_SIZES          \
  ->Args({30, 500, 8})       \
      ->Args({100, 500, 8})  \
      ->Args({300, 500, 2})  \
      ->Args({300, 500, 18}) \
      ->Args({1000, 500, 8})
BENCHMARK_CAPTURE(bound, value, false) AMPLE_SIZES->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK_CAPTURE(bound, value_and_gradient, true)
AMPLE_SIZES->Args({30, 100, 8})
    ->Args({300, 2000, 8})
    ->Args({2000, 300, 8})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(selection, variance, Vips::Choose::variance)
AMPLE_SIZES->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK_CAPTURE(selection, gain, Vips::Choose::gain)
AMPLE_SIZES->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(pruning)->Arg(300)->Unit(benchmark::kMicrosecond)->MeasureProcessCPUTime();
BENCHMARK(whole_batch)->Args({300, 500})->Unit(benchmark::kMicrosecond)->MeasureProcessCPUTime();
BENCHMARK(prediction)
    ->Args({100, 1, 8})
    ->Args({100, 10000, 8})
    ->Args({1000, 10000, 8})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();
BENCHMARK(save_model)->Arg(100)->Arg(1000)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK(load_model)->Arg(100)->Arg(1000)->Unit(benchmark::kMicrosecond)->UseRealTime();
// NOLINTEND

}  // namespace
}  // namespace ample::bench
