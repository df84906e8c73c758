// No output may be the file of an input, or of another output: it would be overwritten.
#pragma once

#include <string>
#include <vector>

namespace ample::cli {

/// A file of the command line. Empty paths are none, "-" is standard input.
struct NamedFile {
  std::string name;  // "--save", "DATA"
  std::string path;
};

/// Throws UsageError if an output is the same file as an input or as another output, by whatever
/// names, links or hard links. To be asked before anything is opened for writing.
void check_distinct(const std::vector<NamedFile>& inputs, const std::vector<NamedFile>& outputs);

}  // namespace ample::cli
