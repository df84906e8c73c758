// One file over HTTP or HTTPS: complete and right, or not in place at all.
//
// What comes is kept in a part file beside the target, TARGET.part. A transfer that breaks leaves
// it, and the next one asks only for the bytes that are missing. The part becomes the target, by
// renaming, when its size and SHA-256 are those expected.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace ample::experiments {

struct Download {
  std::string url;
  std::filesystem::path target;
  std::uintmax_t bytes;
  std::string sha256;
};

struct DownloadOptions {
  std::chrono::seconds connect_timeout{15};
  std::chrono::seconds stall_timeout{30};  // without data worth the name
  /// Failures that may pass are tried again, after a pause that doubles each time.
  int attempts = 4;
  std::chrono::milliseconds pause{1000};
  /// Called with the number of bytes that are there.
  std::function<void(std::uintmax_t)> progress = {};
};

/// Throws cli::DataError that says what went wrong, and cli::Interrupted, with the part kept, if
/// the program is told to stop while it watches for signals.
void download(const Download& what, const DownloadOptions& options = {});

}  // namespace ample::experiments
