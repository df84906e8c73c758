// Any contents of a model file under a right checksum, which the fuzzer could not find by itself: a
// model that predicts finite numbers, or a ModelFileError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include <fmt/format.h>
#include <xxhash.h>

#include "ample/snapshot.h"
#include "ample/types.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  constexpr std::size_t kPlace = 8 + 29;  // of the checksum, after {"__metadata__":{"checksum":"
  constexpr std::size_t kDigits = 16;
  if (bytes.size() >= kPlace + kDigits) {
    bytes.replace(kPlace, kDigits, kDigits, '0');
    bytes.replace(kPlace, kDigits, fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size())));
  }
  try {
    const ample::ContinualGP model = ample::from_bytes(bytes);
    const ample::Index D = model.dimension();
    if (D == 0 || D > 100 || model.size() > 100) return 0;
    const ample::Prediction p = model.predict(ample::Matrix::Zero(1, D));
    if (!p.mean.allFinite() || !p.variance.allFinite()) std::abort();
  } catch (const ample::ModelFileError&) {
  } catch (const ample::NumericalError&) {
  } catch (const std::invalid_argument&) {
    std::abort();  // the file's mistake, not the caller's
  }
  return 0;
}
