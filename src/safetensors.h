// Named matrices and text in one piece of bytes, in the safetensors layout, so that Python's
// `safetensors` opens it unaided:
//
//   8 bytes   n, the length of the header, little-endian
//   n bytes   JSON: {"__metadata__": {text: text},
//                    name: {"dtype": "F64", "shape": [...], "data_offsets": [begin, end]}, ...}
//   the rest  the values of each tensor, little-endian, row by row
//
// Beyond the layout, the header starts with a checksum (XXH3, 64 bits) of all other bytes of the
// file: what was damaged or edited does not load. Equal contents give equal bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "ample/model_file_error.h"
#include "ample/types.h"

namespace ample {

struct Tensor {
  Matrix values;
  int rank = 2;  // 1: a vector, n×1 here and of shape [n] in the file
};

struct TensorFile {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;  // without the checksum
};

/// Throws std::invalid_argument for contents that the format cannot hold.
[[nodiscard]] std::string tensors_to_bytes(const TensorFile& file);

/// Trusts nothing in the bytes, and allocates only in proportion to their number. Values may be
/// NaN. Throws ModelFileError, whose message does not name the file.
[[nodiscard]] TensorFile tensors_from_bytes(std::string_view bytes);

/// Throws ModelFileError if bytes that begin so, `size` in all, cannot be tensors. To be asked
/// before a large file is read; the first kTensorsStart bytes are enough.
void check_start_of_tensors(std::string_view start, std::uint64_t size);
inline constexpr std::size_t kTensorsStart = 64;

}  // namespace ample
