// What the benchmarks share: a clock, seeded data, a straight line through logarithms.
#pragma once

#include <chrono>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "ample/types.h"

namespace ample::bench {

inline double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline Matrix random_matrix(Index rows, Index cols, unsigned seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  Matrix out(rows, cols);
  for (double& v : out.reshaped()) v = normal(generator);
  return out;
}

/// A smooth function of the inputs with noise of deviation 0.1.
inline Batch random_batch(Index rows, Index cols, unsigned seed) {
  Batch batch{random_matrix(rows, cols, seed), Vector(rows)};
  const Vector noise = random_matrix(rows, 1, seed + 1000003U);
  for (Index i = 0; i < rows; ++i) {
    batch.y[i] = std::sin(2.0 * batch.X.row(i).sum()) + 0.5 * batch.X(i, 0) + 0.1 * noise[i];
  }
  return batch;
}

/// The slope of the least-squares line through (log x, log y).
inline double log_slope(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<Index>(x.size());
  const Vector u = Eigen::Map<const Vector>(x.data(), n).array().log();
  const Vector v = Eigen::Map<const Vector>(y.data(), n).array().log();
  const Vector centred = u.array() - u.mean();
  return centred.dot(v) / centred.squaredNorm();
}

/// The value of `--name VALUE` among the arguments, or `otherwise`.
inline std::string option(int argc, char** argv, const std::string& name,
                          const std::string& otherwise) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (argv[i] == name) return argv[i + 1];
  }
  return otherwise;
}

inline bool flag(int argc, char** argv, const std::string& name) {
  for (int i = 1; i < argc; ++i) {
    if (argv[i] == name) return true;
  }
  return false;
}

}  // namespace ample::bench
