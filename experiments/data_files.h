// The paper's data sets: which files they are, where they come from, and where they are kept.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace ample::experiments {

struct DataFile {
  std::string path;     // in the data folder, and on a mirror
  std::string address;  // where it was published
  std::uintmax_t bytes;
  std::string sha256;
};

struct DataSet {
  std::string name;
  std::int64_t rows;
  std::int64_t inputs;
  std::string source;  // the page of those who publish it
  std::vector<DataFile> files;

  [[nodiscard]] std::uintmax_t bytes() const;
};

/// All of them, the UCI sets smallest first.
[[nodiscard]] const std::vector<DataSet>& data_sets();

/// Throws cli::UsageError for a name that is not among them.
[[nodiscard]] const DataSet& data_set(const std::string& name);

/// Where data sets are kept: `option` (--data-dir) if it is not empty, else the environment
/// variable AMPLE_DATA, else ample/data in the user's cache folder.
[[nodiscard]] std::filesystem::path data_folder(const std::string& option);

enum class FileState { missing, intact, altered };
[[nodiscard]] std::string to_text(FileState state);

/// Reads the whole file, if its size is right, for its check sum.
[[nodiscard]] FileState state_of(const DataFile& file, const std::filesystem::path& folder);

/// Throws cli::DataError, which says what is missing or altered and how to get it, unless all files
/// of a set are there and intact.
void require_data(const std::filesystem::path& folder, const std::string& name);

}  // namespace ample::experiments
