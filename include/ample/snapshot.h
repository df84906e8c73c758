// Models in files: save, load, and go on as if nothing had happened.
//
//   save(gp, "model.ample");
//   ContinualGP again = load("model.ample");   // again.observe(X, y) gives the same bits as
//                                              // gp.observe(X, y)
//
// One file in the safetensors layout, which Python's `safetensors` opens unaided;
// docs/model-file.md lists its tensors and texts. A write replaces the old file at once or leaves
// it alone. A reader trusts nothing: a checksum covers every byte, and all that a model must be is
// checked before there is one. O(M²) bytes; O(M²) time to write, O(M³) to read, for the checks.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "ample/continual_gp.h"
#include "ample/model_file_error.h"
#include "ample/selection.h"

namespace ample {

/// What a program keeps beside the model, column names say. UTF-8.
using Notes = std::map<std::string, std::string>;

/// Throws ModelFileError if the file cannot be written, std::invalid_argument for a model that
/// could not be loaded again (a kernel beyond the limits of its text form, say).
void save(const ContinualGP& model, const std::string& path, const Notes& notes = {});

/// Throws ModelFileError for a file that is not exactly what save() writes.
[[nodiscard]] ContinualGP load(const std::string& path);

/// The same without a file: what save() would write.
[[nodiscard]] std::string to_bytes(const ContinualGP& model, const Notes& notes = {});
[[nodiscard]] ContinualGP from_bytes(std::string_view bytes);

/// For a model with a selection method that is not the library's own, which a file can only name.
/// Throws std::invalid_argument unless `selection` has the name that is stored.
[[nodiscard]] ContinualGP load(const std::string& path, const SelectionMethod& selection);
[[nodiscard]] ContinualGP from_bytes(std::string_view bytes, const SelectionMethod& selection);

/// All that is in a file.
struct Snapshot {
  ContinualGP model;
  Notes notes;
  int format_version;
  std::string ample_version;  // that wrote it
};
/// The model with its notes. Throws like load().
[[nodiscard]] Snapshot load_snapshot(const std::string& path);
[[nodiscard]] Snapshot snapshot_from_bytes(std::string_view bytes);

}  // namespace ample
