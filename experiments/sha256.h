// The SHA-256 check sum of a file.
#pragma once

#include <filesystem>
#include <string>

namespace ample::experiments {

/// In lower-case hexadecimal. Throws cli::DataError if the file cannot be read.
[[nodiscard]] std::string sha256_of(const std::filesystem::path& file);

}  // namespace ample::experiments
