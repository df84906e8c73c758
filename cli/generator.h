// Random numbers for made-up data: the same seed gives the same numbers on every platform. The
// standard fixes the bits of std::mt19937_64, but not what its distributions make of them.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

namespace ample::cli {

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : bits_(seed) {}

  /// In [0, 1), from the upper 53 bits.
  double uniform() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Box and Muller's; the second of the pair is not used.
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log1p(-uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }
  /// Scale 1.
  double cauchy(double location) {
    return location + std::tan(std::numbers::pi * (uniform() - 0.5));
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace ample::cli
