// Named matrices and text in one file, in the safetensors layout, so that Python's `safetensors`
// opens it unaided:
//
//   8 bytes   n, the length of the header, little-endian
//   n bytes   JSON: {"__metadata__": {text: text},
//                    name: {"dtype": "F64", "shape": [...], "data_offsets": [begin, end]}, ...}
//   the rest  the values of each tensor, little-endian, row by row
//
// Beyond the layout, the header starts with a checksum (XXH3, 64 bits) of all other bytes of the
// file: what was damaged or edited does not load. Equal contents give equal bytes.
#pragma once

#include <map>
#include <string>

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

/// Replaces the file at once or, on failure, not at all: readers never see a partial file, not even
/// after a power cut.
void write_tensor_file(const std::string& path, const TensorFile& file);

/// Trusts nothing in the file, and allocates only in proportion to its size. Values may be NaN.
TensorFile read_tensor_file(const std::string& path);

}  // namespace ample
