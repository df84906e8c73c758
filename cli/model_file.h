// A model file that is being updated: nobody else updates it meanwhile.
//
// The lock is on the file itself, not on one beside it: nothing is left behind, and the system lets
// go of it when the program ends, however it does. A save puts a new file in the old one's place,
// which is locked before it is there. A file that another program replaced or changed in spite of
// the lock is not overwritten.
#pragma once

#include <ctime>
#include <string>
#include <sys/types.h>

#include "ample/continual_gp.h"
#include "ample/snapshot.h"

namespace ample::cli {

class ModelFile {
 public:
  /// Locks what is there, if anything is. If another program has it, waits for it or throws
  /// ModelFileError.
  ModelFile(std::string path, bool wait);
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;
  ModelFile(ModelFile&&) = delete;
  ModelFile& operator=(ModelFile&&) = delete;
  ~ModelFile();

  [[nodiscard]] const std::string& path() const { return path_; }

  /// Throws ModelFileError if no model could be saved there; to be asked before the work.
  void check_can_save() const;

  /// Throws ModelFileError if it cannot be written, or was changed by another program.
  void save(const ContinualGP& model, const Notes& notes);

 private:
  void lock(bool wait);
  void remember(int descriptor);
  [[nodiscard]] bool is_as_before() const;

  std::string path_;
  int descriptor_ = -1;  // of the file as it was read or last saved; -1: there was none to read
  bool absent_ = false;
  dev_t device_ = 0;
  ino_t number_ = 0;
  timespec changed_ = {};
};

}  // namespace ample::cli
