// The bytes of an input, unpacked if they are gzip, which their first two tell.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "input.h"

namespace ample::cli {

class UnpackedInput {
 public:
  explicit UnpackedInput(std::unique_ptr<Input> input);
  UnpackedInput(const UnpackedInput&) = delete;
  UnpackedInput& operator=(const UnpackedInput&) = delete;
  UnpackedInput(UnpackedInput&&) = delete;
  UnpackedInput& operator=(UnpackedInput&&) = delete;
  ~UnpackedInput();

  [[nodiscard]] const Input& input() const { return *input_; }

  /// At least one byte, but perhaps fewer than asked for; 0 at the end. Throws as Input does, and
  /// DataError for gzip data that are damaged or end too early.
  std::size_t read(char* into, std::size_t size);

 private:
  class Gzip;
  void detect();

  std::unique_ptr<Input> input_;
  std::string start_;  // what detection has read; [used_, size) are still to be given out
  std::size_t used_ = 0;
  bool detected_ = false;
  std::unique_ptr<Gzip> gzip_;
};

}  // namespace ample::cli
