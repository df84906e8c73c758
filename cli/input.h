// The bytes of a file, a pipe or standard input. Waiting for them ends when the program is told to
// stop.
#pragma once

#include <cstddef>
#include <string>

namespace ample::cli {

class Input {
 public:
  /// Opens a file, or takes standard input for "-". A pipe that nobody writes to yet is waited for.
  /// Throws DataError.
  explicit Input(const std::string& path);
  /// An open descriptor, which stays the caller's; `name` is what messages call it.
  Input(int descriptor, std::string name);
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  Input(Input&&) = delete;
  Input& operator=(Input&&) = delete;
  ~Input();

  [[nodiscard]] const std::string& name() const { return name_; }
  /// Whether it can be read at any time, and again: a file, no stream.
  [[nodiscard]] bool is_file() const { return is_file_; }

  /// At least one byte, but perhaps fewer than asked for; 0 at the end. Throws Interrupted if a
  /// signal comes first, and DataError if it cannot be read.
  std::size_t read(char* into, std::size_t size);

 private:
  [[noreturn]] void fail(const char* what) const;
  void wait_for_bytes() const;

  int descriptor_;
  bool owned_;
  std::string name_;
  bool is_file_ = false;
};

}  // namespace ample::cli
