#include "download.h"

#include <algorithm>
#include <array>
#include <curl/curl.h>
#include <exception>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "ample/version.h"
#include "errors.h"
#include "file_replacement.h"
#include "interrupt.h"
#include "sha256.h"

namespace ample::experiments {
namespace {

namespace fs = std::filesystem;
using cli::DataError;

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw DataError(fmt::format("{}: cannot write: {}", folder.string(), error.message()));
  }
}

/// One request, and what came of it.
class Transfer {
 public:
  enum class Outcome { complete, transient, range_refused, failed };

  Transfer(const Download& what, const DownloadOptions& options, FileReplacement& part)
      : what_(what), options_(options), part_(part), resumed_(part.size() > 0) {
    static const CURLcode ready = ::curl_global_init(CURL_GLOBAL_DEFAULT);
    curl_.reset(ready == CURLE_OK ? ::curl_easy_init() : nullptr);
    if (!curl_) throw std::runtime_error("libcurl cannot be used");
  }

  Outcome run() {
    CURL* curl = curl_.get();
    const std::string agent = fmt::format("ample/{} {}", version(), ::curl_version());
    const std::string range = fmt::format("{}-", part_.size());
    ::curl_easy_setopt(curl, CURLOPT_URL, what_.url.c_str());
    ::curl_easy_setopt(curl, CURLOPT_USERAGENT, agent.c_str());
    if (resumed_) ::curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());
#if LIBCURL_VERSION_NUM >= 0x075500
    ::curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    ::curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#else
    ::curl_easy_setopt(curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
    ::curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
    ::curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    ::curl_easy_setopt(curl, CURLOPT_MAXREDIRS, 5L);
    ::curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
    ::curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    ::curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT,
                       static_cast<long>(options_.connect_timeout.count()));
    ::curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 100L);  // bytes a second
    ::curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME,
                       static_cast<long>(options_.stall_timeout.count()));
    ::curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error_.data());
    ::curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Transfer::receive);
    ::curl_easy_setopt(curl, CURLOPT_WRITEDATA, this);
    ::curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    ::curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &Transfer::keep_on);
    const CURLcode code = ::curl_easy_perform(curl);
    cli::stop_if_interrupted();
    if (thrown_) std::rethrow_exception(thrown_);
    return judge(code);
  }

  /// Whether the part began with bytes of an earlier transfer, and still does.
  [[nodiscard]] bool resumed() const { return resumed_; }
  /// What went wrong.
  [[nodiscard]] const std::string& message() const { return message_; }

 private:
  [[nodiscard]] long status() const {
    long status = 0;
    ::curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &status);
    return status;
  }

  /// Anything but `size * count` ends the transfer. No exception may pass through libcurl.
  static std::size_t receive(char* data, std::size_t size, std::size_t count, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    try {
      return transfer.take(data, size * count) ? size * count : 0;
    } catch (...) {
      transfer.thrown_ = std::current_exception();
      return 0;
    }
  }
  /// False if more came than the file can have.
  bool take(const char* data, std::size_t count) {
    if (resumed_ && status() != 206) {  // the server sends everything
      part_.clear();
      resumed_ = false;
    }
    // One byte too many is enough to know.
    const std::uintmax_t room = what_.bytes + 1 - part_.size();
    part_.write({data, static_cast<std::size_t>(std::min<std::uintmax_t>(count, room))});
    if (part_.size() > what_.bytes) return false;
    if (options_.progress) options_.progress(part_.size());
    return true;
  }

  static int keep_on(void*, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    return cli::interrupted();
  }

  Outcome judge(CURLcode code) {
    const std::string error = error_[0] != '\0' ? error_.data() : ::curl_easy_strerror(code);
    const long http = status();
    curl_off_t length = -1;
    ::curl_easy_getinfo(curl_.get(), CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    if (part_.size() > what_.bytes) return Outcome::complete;
    switch (code) {
      case CURLE_OK:
        if (http != 200 && http != 206) {
          message_ = fmt::format("{}: HTTP {}, expected 200", what_.url, http);
          return Outcome::failed;
        }
        // Without a length, the end of the file and a broken connection look alike.
        if (length >= 0 || part_.size() == what_.bytes) return Outcome::complete;
        return broken("connection closed");
      case CURLE_HTTP_RETURNED_ERROR: {
        if (http == 416 && resumed_) return Outcome::range_refused;
        message_ = http == 404 ? fmt::format("{}: not found (HTTP 404)", what_.url)
                               : fmt::format("{}: HTTP {}, expected 200", what_.url, http);
        const bool passes = http == 408 || http == 429 || http >= 500;
        return passes ? Outcome::transient : Outcome::failed;
      }
      case CURLE_COULDNT_RESOLVE_HOST:
      case CURLE_COULDNT_RESOLVE_PROXY:
      case CURLE_COULDNT_CONNECT:
        message_ = fmt::format("{}: server not reachable: {}", what_.url, error);
        return Outcome::transient;
      case CURLE_OPERATION_TIMEDOUT:
      case CURLE_PARTIAL_FILE:
      case CURLE_GOT_NOTHING:
      case CURLE_SEND_ERROR:
      case CURLE_RECV_ERROR:
      case CURLE_HTTP2:
      case CURLE_HTTP2_STREAM:
        return broken(error);
      default:  // certificates, redirects in a circle, an address that is none
        message_ = fmt::format("{}: {}", what_.url, error);
        return Outcome::failed;
    }
  }

  Outcome broken(const std::string& why) {
    message_ = fmt::format(
        "{}: the transfer broke after {} of {} bytes ({}); run the command again to "
        "go on",
        what_.url, part_.size(), what_.bytes, why);
    return Outcome::transient;
  }

  const Download& what_;
  const DownloadOptions& options_;
  FileReplacement& part_;
  bool resumed_;
  std::unique_ptr<CURL, void (*)(CURL*)> curl_{nullptr, ::curl_easy_cleanup};
  std::array<char, CURL_ERROR_SIZE> error_{};
  std::exception_ptr thrown_;
  std::string message_;
};

void wait(std::chrono::milliseconds pause) {
  const auto end = std::chrono::steady_clock::now() + pause;
  while (std::chrono::steady_clock::now() < end) {
    cli::stop_if_interrupted();
    std::this_thread::sleep_for(std::min(pause, std::chrono::milliseconds(50)));
  }
}

void download_to(FileReplacement& part, const Download& what, const DownloadOptions& options) {
  if (part.size() > what.bytes) part.clear();
  for (int attempt = 1;; ++attempt) {
    bool resumed = part.size() > 0;
    if (part.size() < what.bytes) {
      Transfer transfer(what, options, part);
      const Transfer::Outcome outcome = transfer.run();
      resumed = transfer.resumed();
      if (outcome == Transfer::Outcome::range_refused) {
        part.clear();
        continue;
      }
      if (outcome != Transfer::Outcome::complete) {
        if (outcome == Transfer::Outcome::failed || attempt >= options.attempts) {
          throw DataError(transfer.message());
        }
        wait(options.pause * (1 << (attempt - 1)));
        continue;
      }
    }
    std::string got;
    std::string expected = fmt::format("{} bytes", what.bytes);
    if (part.size() > what.bytes) {
      got = "more";
    } else if (part.size() < what.bytes) {
      got = fmt::format("{} bytes", part.size());
    } else {
      got = fmt::format("SHA-256 {}", sha256_of(part.temporary()));
      expected = fmt::format("SHA-256 {}", what.sha256);
    }
    if (got == expected) return part.commit();
    part.clear();
    // The earlier bytes may be those of another file: once more, from the beginning.
    if (!resumed) {
      throw DataError(
          fmt::format("{}: got {}, expected {}; nothing of it is kept", what.url, got, expected));
    }
  }
}

}  // namespace

void download(const Download& what, const DownloadOptions& options) {
  make_folder(what.target.parent_path());
  try {
    FileReplacement part = FileReplacement::resume(what.target.string());
    download_to(part, what, options);
  } catch (const FileError& error) {
    throw DataError(error.what());
  }
}

}  // namespace ample::experiments
