// Seeded random data, the same in every run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "ample/types.h"

namespace ample::testing {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  double normal() { return normal_(engine_); }
  double uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(engine_);
  }
  Vector normal(Index n) {
    return Vector::NullaryExpr(n, [&] { return normal(); });
  }
  Matrix normal(Index rows, Index cols) {
    return Matrix::NullaryExpr(rows, cols, [&] { return normal(); });
  }
  Matrix uniform(Index rows, Index cols, double low, double high) {
    return Matrix::NullaryExpr(rows, cols, [&] { return uniform(low, high); });
  }
  /// 0 … n−1 in random order.
  std::vector<Index> permutation(Index n) {
    std::vector<Index> order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), Index{0});
    std::shuffle(order.begin(), order.end(), engine_);
    return order;
  }

 private:
  std::mt19937_64 engine_;
  std::normal_distribution<double> normal_;
};

}  // namespace ample::testing
