// Any text as a kernel: one whose text parses to the same, or an invalid_argument.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "ample/kernel.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string text =
        ample::Kernel::parse(std::string(reinterpret_cast<const char*>(data), size)).to_string();
    if (ample::Kernel::parse(text).to_string() != text) std::abort();
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
