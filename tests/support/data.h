// The paper's data sets, for the tests that need them. They are not part of the project: they are
// looked for in the folder that the environment variable AMPLE_DATA names, else where
// `ample-reproduce data fetch` puts them, and a test without them is skipped:
//
//   if (!has_data()) GTEST_SKIP() << no_data();
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace ample::testing {

inline std::filesystem::path data_dir() {
  if (const char* named = std::getenv("AMPLE_DATA")) return named;
  const char* const home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : "") / ".cache" / "ample" / "data";
}
inline bool has_data() { return std::filesystem::is_directory(data_dir() / "uci"); }
inline std::string no_data() {
  return "no data in '" + data_dir().string() + "'; set AMPLE_DATA to the folder with uci/";
}

}  // namespace ample::testing
