// Tests that hold for every kernel: TEST_P(EveryKernel, …) runs once for each kind.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "support/naive.h"

namespace ample {

class EveryKernel : public ::testing::TestWithParam<std::string> {
 protected:
  /// The kernel and its formula, with a lengthscale for each of D inputs.
  [[nodiscard]] static naive::Twin twin(Index D = 2) {
    return naive::make_twin(GetParam(), D, naive::Layout::ard);
  }
  [[nodiscard]] static Kernel kernel(Index D = 2) { return twin(D).kernel; }
};

INSTANTIATE_TEST_SUITE_P(Kernels, EveryKernel, ::testing::ValuesIn(naive::kernel_names()),
                         [](const auto& test) { return test.param; });

}  // namespace ample
