// The one place that knows which BLAS this is: its threads and its processor-specific kernels.
#pragma once

namespace ample {

/// While it lives, BLAS uses as many threads as a call of `flops` operations pays for.
class BlasThreads {
 public:
  explicit BlasThreads(double flops);
  ~BlasThreads();
  BlasThreads(const BlasThreads&) = delete;
  BlasThreads& operator=(const BlasThreads&) = delete;

 private:
  int before_;
};

/// The name of the processor kernels in use, e.g. "SkylakeX"; for reports.
const char* blas_core();

}  // namespace ample
