// Writing a file anew: as a whole or not at all.
//
//   FileReplacement file("model.ample");
//   file.write(bytes);
//   file.commit();        // until here the old file stands, whatever happens
//
// The bytes go to a file beside the target, which commit() brings to the disk and renames. Readers
// see the old contents or the new, even after a power cut, and never a part of either. A link stays
// a link to the new contents; owner, group and mode are those of the file replaced, as far as the
// system lets us. The name of the file beside is random, and what stands there already is never
// opened: nobody can lead the write elsewhere by a link. Its writer holds a lock on it, so that
// what a killed program left behind is told from what another is writing; the next writer of the
// same target removes it.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ample {

/// "PATH: cannot write: REASON".
struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class FileReplacement {
 public:
  /// Throws FileError if the file could not be written: no such folder, no right to write in it, or
  /// a target that is not a regular file.
  explicit FileReplacement(const std::string& path);

  /// Goes on where an earlier one stopped, in PATH.part, which outlives it unless it is empty.
  /// Throws FileError too if another program is at it.
  static FileReplacement resume(const std::string& path);

  FileReplacement(const FileReplacement&) = delete;
  FileReplacement& operator=(const FileReplacement&) = delete;
  FileReplacement(FileReplacement&&) = delete;
  FileReplacement& operator=(FileReplacement&&) = delete;
  ~FileReplacement();

  /// Where the bytes are until commit().
  [[nodiscard]] const std::string& temporary() const { return temporary_; }
  /// How many there are.
  [[nodiscard]] std::uint64_t size() const { return size_; }

  void write(std::string_view bytes);
  void clear();
  void commit();

  /// After commit(): the new file, open and locked (flock, exclusive), which is now the caller's to
  /// close.
  [[nodiscard]] int release();

 private:
  enum class Kind { fresh, resumed };
  FileReplacement(const std::string& path, Kind kind);
  void open_fresh();
  void open_part();
  void keep_owner_and_mode();
  [[noreturn]] void fail(int error) const;

  std::string path_;    // as the caller calls it
  std::string target_;  // without links
  Kind kind_;
  std::string temporary_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  bool committed_ = false;
};

/// Throws what a FileReplacement of this path would, and leaves no trace.
void check_replaceable(const std::string& path);

}  // namespace ample
