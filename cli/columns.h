// Which columns of a table are the inputs and which is the target: chosen when a model is first
// fitted, kept with it, and found again in later data, by name wherever both have names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ample/snapshot.h"
#include "ample/types.h"

namespace ample::cli {

struct Columns {
  Index count = 0;                 // columns of the table
  std::vector<Index> inputs;       // from 0
  Index target = 0;                // from 0
  std::optional<Index> time;       // from 0; of a model that forgets by time. May be an input too
  std::vector<std::string> names;  // of the inputs, the target and the time; none without a header

  [[nodiscard]] Index dimension() const { return static_cast<Index>(inputs.size()); }
  /// The inputs, the target, and the time if there is one.
  [[nodiscard]] std::vector<Index> all() const;
};

/// As the user asks by names or 1-based numbers: `target` empty means the last column that is not
/// the time, `time` empty none, and `inputs` (comma-separated) empty all others.
[[nodiscard]] Columns choose_columns(const std::vector<std::string>& names, Index count,
                                     const std::string& target, const std::string& inputs,
                                     const std::string& time = "");

/// Where the columns of a model are in other data. By name if both have names, in any order and
/// among any others; else by place, as in the data of the fit. Without a target the inputs alone
/// will do. `data`, a path or "-", begins the DataError for data that do not fit.
enum class Need { inputs, inputs_and_target };
[[nodiscard]] Columns find_columns(const Columns& model, const std::vector<std::string>& names,
                                   Index count, Need need, const std::string& data);

/// To and from a model file. A model that was made without this program has inputs first, target
/// last.
[[nodiscard]] std::string to_note(const Columns& columns);
[[nodiscard]] Columns columns_of(const Snapshot& snapshot, const std::string& path);
constexpr const char* kColumnsNote = "columns";

}  // namespace ample::cli
