#include "distinct_files.h"

#include <filesystem>
#include <optional>
#include <sys/stat.h>
#include <system_error>
#include <tuple>
#include <unistd.h>

#include <fmt/format.h>

#include "errors.h"

namespace ample::cli {
namespace {

namespace fs = std::filesystem;

/// Device and number of a regular file; of one that is not there yet, those of its folder and its
/// name. Pipes and devices may be shared.
using Identity = std::tuple<dev_t, ino_t, std::string>;

std::optional<Identity> identity_of(const std::string& path) {
  struct stat status = {};
  if (path.empty()) return std::nullopt;
  if ((path == "-" ? ::fstat(STDIN_FILENO, &status) : ::stat(path.c_str(), &status)) == 0) {
    if (!S_ISREG(status.st_mode)) return std::nullopt;
    return Identity{status.st_dev, status.st_ino, ""};
  }
  std::error_code error;
  fs::path place = path;
  for (int i = 0; i < 40 && fs::is_symlink(place, error); ++i) {
    place = place.parent_path() / fs::read_symlink(place, error);
  }
  const fs::path folder = place.has_parent_path() ? place.parent_path() : fs::path(".");
  if (::stat(folder.c_str(), &status) != 0) return std::nullopt;
  return Identity{status.st_dev, status.st_ino, place.filename().string()};
}

}  // namespace

void check_distinct(const std::vector<NamedFile>& inputs, const std::vector<NamedFile>& outputs) {
  std::vector<NamedFile> before = inputs;
  for (const NamedFile& output : outputs) {
    const std::optional<Identity> identity = identity_of(output.path);
    for (const NamedFile& other : before) {
      if (identity && output.path != "-" && identity == identity_of(other.path)) {
        throw UsageError(fmt::format("{} is '{}', the same file as {}, expected another",
                                     output.name, output.path, other.name));
      }
    }
    before.push_back(output);
  }
}

}  // namespace ample::cli
