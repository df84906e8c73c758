#include "unpacked_input.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <zlib.h>

#include "errors.h"

namespace ample::cli {
namespace {

constexpr std::size_t kPackedBlock = 1 << 18;

}  // namespace

// zlib's own gzread is not used because it waits for a full buffer, and so would hold back the rows
// of a slow stream.
class UnpackedInput::Gzip {
 public:
  Gzip(Input& input, const std::string& start) : input_(input), packed_(kPackedBlock) {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&stream_, MAX_WBITS + kGzipOnly) != Z_OK) throw std::bad_alloc();
    std::copy(start.begin(), start.end(), packed_.begin());
    end_ = start.size();
  }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  Gzip(Gzip&&) = delete;
  Gzip& operator=(Gzip&&) = delete;
  ~Gzip() { inflateEnd(&stream_); }

  std::size_t read(char* into, std::size_t size) {
    stream_.next_out = reinterpret_cast<Bytef*>(into);
    stream_.avail_out = static_cast<uInt>(size);
    while (stream_.avail_out == size) {
      if (begin_ == end_ && !refill()) return 0;
      if (between_members_) {  // a gzip file may be several, one after the other
        inflateReset(&stream_);
        between_members_ = false;
      }
      stream_.next_in = reinterpret_cast<Bytef*>(packed_.data() + begin_);
      stream_.avail_in = static_cast<uInt>(end_ - begin_);
      const int status = ::inflate(&stream_, Z_NO_FLUSH);
      begin_ = end_ - stream_.avail_in;
      between_members_ = status == Z_STREAM_END;
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
        throw DataError(fmt::format("{}: corrupt gzip data: {}", input_.name(),
                                    stream_.msg != nullptr ? stream_.msg : "not understood"));
      }
    }
    return size - stream_.avail_out;
  }

 private:
  /// False at the end.
  bool refill() {
    begin_ = 0;
    end_ = input_.read(packed_.data(), packed_.size());
    if (end_ > 0) return true;
    if (between_members_) return false;
    throw DataError(fmt::format("{}: truncated: the gzip data end too early", input_.name()));
  }

  Input& input_;
  std::vector<char> packed_;  // bytes as in the file: [begin_, end_) are still to be used
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool between_members_ = false;
  z_stream stream_ = {};
};

UnpackedInput::UnpackedInput(std::unique_ptr<Input> input) : input_(std::move(input)) {}
UnpackedInput::~UnpackedInput() = default;

void UnpackedInput::detect() {
  detected_ = true;
  start_.resize(kPackedBlock);
  std::size_t count = 0;
  while (count < 2) {
    const std::size_t more = input_->read(start_.data() + count, start_.size() - count);
    if (more == 0) break;
    count += more;
  }
  start_.resize(count);
  if (!start_.starts_with("\x1f\x8b")) return;
  gzip_ = std::make_unique<Gzip>(*input_, start_);
  start_.clear();
}

std::size_t UnpackedInput::read(char* into, std::size_t size) {
  if (!detected_) detect();
  if (gzip_) return gzip_->read(into, size);
  if (used_ == start_.size()) return input_->read(into, size);
  const std::size_t count = std::min(size, start_.size() - used_);
  std::memcpy(into, start_.data() + used_, count);
  used_ += count;
  return count;
}

}  // namespace ample::cli
