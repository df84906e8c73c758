// The one place that knows which BLAS this is: its threads and its processor-specific kernels.
#pragma once

namespace ample {

/// While one lives, on any thread, BLAS runs each call on the thread that makes it: parallel.h
/// shares out the work. The caller's own setting is back when the last is gone.
class SerialBlas {
 public:
  SerialBlas();
  ~SerialBlas();
  SerialBlas(const SerialBlas&) = delete;
  SerialBlas& operator=(const SerialBlas&) = delete;
};

/// The name of the processor kernels in use, e.g. "SkylakeX"; for reports.
const char* blas_core();

/// Whether BLAS was made ready for us when this library was loaded (docs/decisions/0010): it was
/// not if another thread could have been inside it.
bool blas_is_prepared();

}  // namespace ample
