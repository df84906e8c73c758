// The paper's data sets, for the tests that need them. They are not part of the project: they are
// looked for in the folder that the environment variable AMPLE_DATA names, and a test without them
// is skipped:
//
//   if (!has_data()) GTEST_SKIP() << no_data();
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace ample::testing {

inline std::filesystem::path data_dir() {
  const char* named = std::getenv("AMPLE_DATA");
  return named ? named : "";
}
inline bool has_data() {
  return !data_dir().empty() && std::filesystem::is_directory(data_dir() / "uci");
}
inline std::string no_data() {
  return "no data in '" + data_dir().string() + "'; set AMPLE_DATA to the folder with uci/";
}

}  // namespace ample::testing
