#include "safetensors.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <limits>
#include <memory>
#include <new>
#include <set>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <tuple>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <xxhash.h>

namespace ample {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are copied as they are");

using Json = nlohmann::json;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// The checksum comes first, so that its place is known before anything is parsed. It is computed
// with zeros in its own place.
constexpr std::string_view kStart = R"({"__metadata__":{"checksum":")";
constexpr std::string_view kNoChecksum = "0000000000000000";
constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kLongestHeader = 100'000'000;  // the limit of the safetensors library

// ---- bytes -------------------------------------------------------------------------------------

class Checksum {
 public:
  Checksum() : state_(XXH3_createState(), &XXH3_freeState) {
    if (state_ == nullptr) throw std::bad_alloc();
    XXH3_64bits_reset(state_.get());
  }
  void add(const void* bytes, std::size_t size) { XXH3_64bits_update(state_.get(), bytes, size); }
  std::string hex() const { return fmt::format("{:016x}", XXH3_64bits_digest(state_.get())); }

 private:
  std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state_;
};

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor(Descriptor&&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  int get() const { return value_; }
  bool close() { return ::close(std::exchange(value_, -1)) == 0; }

 private:
  int value_;
};

[[noreturn]] void fail(const std::string& path, const std::string& message) {
  throw ModelFileError(path + ": " + message);
}

[[noreturn]] void fail_with_errno(const std::string& path, const char* action) {
  fail(path, fmt::format("cannot {}: {}", action, std::strerror(errno)));
}

// Text from a header, fit for a message of one line.
std::string in_quotes(const std::string& text) {
  constexpr std::size_t kLongest = 60;
  const std::string json = Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
  return json.size() <= kLongest ? json : json.substr(0, kLongest) + "...";
}

// ---- header ------------------------------------------------------------------------------------

struct Entry {
  std::string name;
  std::string dtype;
  std::vector<std::uint64_t> shape;    // one or two
  std::vector<std::uint64_t> offsets;  // begin, end

  std::uint64_t rows() const { return shape[0]; }
  std::uint64_t cols() const { return shape.size() == 1 ? 1 : shape[1]; }
  std::uint64_t begin() const { return offsets[0]; }
  std::uint64_t end() const { return offsets[1]; }
};

struct Header {
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;
};

// Takes exactly the grammar that the format has and nothing deeper, as events, so that a hostile
// header is refused where it first leaves the grammar, before it has cost memory or stack.
class HeaderParser : public nlohmann::json_sax<Json> {
 public:
  HeaderParser(const std::string& path, Header& header) : path_(path), header_(header) {}

  bool start_object(std::size_t /*size*/) override {
    if (place_ == Place::kOutside) {
      place_ = Place::kTop;
    } else if (place_ == Place::kTop && key_ == "__metadata__") {
      place_ = Place::kMetadata;
    } else if (place_ == Place::kTop) {
      place_ = Place::kEntry;
      header_.entries.push_back({key_, {}, {}, {}});
    } else {
      unexpected("an object");
    }
    inner_keys_.clear();
    return true;
  }

  bool key(std::string& name) override {
    if (place_ == Place::kEntry && name != "dtype" && name != "shape" && name != "data_offsets") {
      fail(path_, fmt::format("tensor {} has {}, expected only dtype, shape and data_offsets",
                              in_quotes(header_.entries.back().name), in_quotes(name)));
    }
    const bool is_new = (place_ == Place::kTop ? top_keys_ : inner_keys_).insert(name).second;
    if (!is_new) fail(path_, fmt::format("the header has {} twice", in_quotes(name)));
    key_ = name;
    return true;
  }

  bool string(std::string& text) override {
    if (place_ == Place::kMetadata) {
      header_.metadata.emplace(key_, text);
    } else if (place_ == Place::kEntry && key_ == "dtype") {
      header_.entries.back().dtype = text;
    } else {
      unexpected("text");
    }
    return true;
  }

  bool start_array(std::size_t /*size*/) override {
    if (place_ != Place::kEntry || key_ == "dtype") unexpected("a list");
    Entry& entry = header_.entries.back();
    list_ = key_ == "shape" ? &entry.shape : &entry.offsets;
    place_ = Place::kList;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::kList) unexpected("a number");
    if (list_->size() == 2) unexpected("a third number");
    list_->push_back(value);
    return true;
  }

  bool end_array() override {
    place_ = Place::kEntry;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kEntry) check_entry(header_.entries.back());
    place_ = place_ == Place::kTop ? Place::kOutside : Place::kTop;
    return true;
  }

  bool number_integer(number_integer_t /*value*/) override { unexpected("a negative number"); }
  bool number_float(number_float_t /*value*/, const std::string& /*text*/) override {
    unexpected("a number that is no 64-bit integer");
  }
  bool null() override { unexpected("null"); }
  bool boolean(bool /*value*/) override { unexpected("a truth value"); }
  bool binary(binary_t& /*value*/) override { unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    fail(path_, fmt::format("the header is not JSON from its byte {} on", position));
  }

 private:
  enum class Place { kOutside, kTop, kMetadata, kEntry, kList };

  [[noreturn]] void unexpected(const char* what) const {
    fail(path_, fmt::format("the header has {} {}, which the format does not allow", what,
                            key_.empty() ? "at its start" : "after " + in_quotes(key_)));
  }

  void check_entry(const Entry& entry) const {
    const std::string tensor = "tensor " + in_quotes(entry.name);
    if (inner_keys_.size() != 3) {
      fail(path_, tensor + " lacks its dtype, shape or data_offsets");
    }
    if (entry.dtype != "F64") {
      fail(path_, fmt::format("{} has dtype {}, expected \"F64\"", tensor, in_quotes(entry.dtype)));
    }
    if (entry.shape.empty()) fail(path_, tensor + " is a scalar, expected a vector or a matrix");
    if (entry.offsets.size() != 2 || entry.begin() > entry.end()) {
      fail(path_, tensor + " has data_offsets that are not [begin, end]");
    }
    constexpr auto kMaxIndex = static_cast<std::uint64_t>(std::numeric_limits<Index>::max());
    const std::uint64_t rows = entry.rows();
    const std::uint64_t cols = entry.cols();
    const std::uint64_t bytes = entry.end() - entry.begin();
    const std::uint64_t values = bytes / sizeof(double);
    // Divided rather than multiplied: rows·cols may be beyond 64 bits.
    const bool fits =
        rows == 0 || cols == 0 ? values == 0 : values % cols == 0 && values / cols == rows;
    if (bytes % sizeof(double) != 0 || !fits || rows > kMaxIndex || cols > kMaxIndex) {
      fail(path_, fmt::format("{} has {} bytes, which does not fit its shape {}×{}", tensor, bytes,
                              rows, cols));
    }
  }

  const std::string& path_;
  Header& header_;
  Place place_ = Place::kOutside;
  std::string key_;
  std::set<std::string> top_keys_;
  std::set<std::string> inner_keys_;
  std::vector<std::uint64_t>* list_ = nullptr;
};

Header parse_header(const std::string& path, const std::string& text) {
  Header header;
  HeaderParser parser(path, header);
  // The parser takes a zero byte for the end of its input.
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos) {
    fail(path, fmt::format("the header is not JSON from its byte {} on", zero + 1));
  }
  Json::sax_parse(text, &parser);
  // Empty tensors before the one that starts where they do.
  std::sort(header.entries.begin(), header.entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.offsets, a.name) < std::tie(b.offsets, b.name);
  });
  return header;
}

// The tensors must lie one after the other and fill the rest of the file.
void check_layout(const std::string& path, const std::vector<Entry>& entries, std::uint64_t size) {
  std::uint64_t end = 0;
  for (const Entry& entry : entries) {
    if (entry.begin() != end) {
      fail(path, fmt::format("tensor {} begins at byte {}, expected {}", in_quotes(entry.name),
                             entry.begin(), end));
    }
    end = entry.end();
  }
  if (end != size) {
    fail(path, fmt::format("{}: the header promises {} bytes of tensors, the file has {}",
                           end > size ? "truncated" : "too long", end, size));
  }
}

std::string header_text(const TensorFile& file) {
  std::string text(kStart);
  text += kNoChecksum;
  text += '"';
  for (const auto& [key, value] : file.metadata) {
    text += fmt::format(",{}:{}", Json(key).dump(), Json(value).dump());
  }
  text += '}';
  std::uint64_t end = 0;
  for (const auto& [name, tensor] : file.tensors) {
    const std::uint64_t begin = end;
    end += static_cast<std::uint64_t>(tensor.values.size()) * sizeof(double);
    const std::string cols = tensor.rank == 1 ? "" : fmt::format(",{}", tensor.values.cols());
    text += fmt::format(R"(,{}:{{"dtype":"F64","shape":[{}{}],"data_offsets":[{},{}]}})",
                        Json(name).dump(), tensor.values.rows(), cols, begin, end);
  }
  text += '}';
  // The tensors start at a multiple of 8 bytes, so that a reader can map them as they are.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

void check_contents(const TensorFile& file) {
  const auto check = [](bool good, const std::string& message) {
    if (!good) throw std::invalid_argument("write_tensor_file: " + message);
  };
  check(!file.metadata.contains("checksum"), "metadata has a checksum, which the writer adds");
  for (const auto& [name, tensor] : file.tensors) {
    check(name != "__metadata__", "a tensor is called __metadata__, which is reserved");
    check(tensor.rank == 2 || (tensor.rank == 1 && tensor.values.cols() == 1),
          fmt::format("tensor {} has rank {} and {} columns, expected rank 2, or 1 and 1",
                      in_quotes(name), tensor.rank, tensor.values.cols()));
  }
}

std::string to_bytes(const TensorFile& file) {
  check_contents(file);
  std::string header;
  try {
    header = header_text(file);
  } catch (const Json::exception&) {
    throw std::invalid_argument("write_tensor_file: a name or text that is not UTF-8");
  }
  const std::uint64_t length = header.size();
  std::string bytes(kLengthBytes, '\0');
  std::memcpy(bytes.data(), &length, kLengthBytes);
  bytes += header;
  for (const auto& [name, tensor] : file.tensors) {
    const RowMajor rows = tensor.values;
    bytes.append(reinterpret_cast<const char*>(rows.data()),
                 static_cast<std::size_t>(rows.size()) * sizeof(double));
  }
  Checksum checksum;
  checksum.add(bytes.data(), bytes.size());
  bytes.replace(kLengthBytes + kStart.size(), kNoChecksum.size(), checksum.hex());
  return bytes;
}

// ---- files -------------------------------------------------------------------------------------

// A new file beside the final one; removed again unless it is renamed to it.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& final_path) : final_path_(final_path) {
    int descriptor = -1;
    for (int attempt = 0; descriptor < 0; ++attempt) {
      path_ = fmt::format("{}.{}-{}.tmp", final_path, ::getpid(), attempt);
      descriptor = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (descriptor < 0 && errno != EEXIST) {
        const int reason = errno;
        path_.clear();
        errno = reason;
        fail_with_errno(final_path, "write");
      }
    }
    descriptor_ = std::make_unique<Descriptor>(descriptor);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  TemporaryFile(TemporaryFile&&) = delete;
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::write(descriptor_->get(), bytes.data(), bytes.size());
      if (count < 0 && errno != EINTR) fail_with_errno(final_path_, "write");
      if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  void set_mode(mode_t mode) {
    if (::fchmod(descriptor_->get(), mode) != 0) fail_with_errno(final_path_, "write");
  }

  void rename_to_final() {
    if (::fsync(descriptor_->get()) != 0 || !descriptor_->close() ||
        ::rename(path_.c_str(), final_path_.c_str()) != 0) {
      fail_with_errno(final_path_, "write");
    }
    path_.clear();
  }

 private:
  const std::string& final_path_;
  std::string path_;
  std::unique_ptr<Descriptor> descriptor_;
};

// Without this a power cut may undo the rename. The new file is complete and in place by now, and
// some file systems cannot do it, so a refusal is no failure to write.
void sync_directory_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const Descriptor directory(
      ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) ::fsync(directory.get());
}

void read_exactly(const std::string& path, int descriptor, void* into, std::size_t size) {
  char* next = static_cast<char*>(into);
  while (size > 0) {
    const ssize_t count = ::read(descriptor, next, size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_with_errno(path, "read");
    if (count == 0) fail(path, fmt::format("truncated while it was read: {} bytes less", size));
    next += count;
    size -= static_cast<std::size_t>(count);
  }
}

std::uint64_t file_size(const std::string& path, int descriptor) {
  struct stat status = {};
  if (::fstat(descriptor, &status) != 0) fail_with_errno(path, "read");
  if (S_ISDIR(status.st_mode)) fail(path, "is a directory, expected a model file");
  if (!S_ISREG(status.st_mode)) fail(path, "is not a regular file, expected a model file");
  return static_cast<std::uint64_t>(status.st_size);
}

TensorFile read_open_file(const std::string& path, int descriptor) {
  const std::uint64_t size = file_size(path, descriptor);
  constexpr std::size_t kShortest = kLengthBytes + kStart.size() + kNoChecksum.size();
  if (size < kShortest) {
    fail(path, fmt::format("{} bytes, expected a model file of at least {}", size, kShortest));
  }
  std::uint64_t length = 0;
  read_exactly(path, descriptor, &length, kLengthBytes);
  const std::uint64_t longest = std::min(size - kLengthBytes, kLongestHeader);
  if (length < kShortest - kLengthBytes || length > longest) {
    fail(path,
         fmt::format("not a model file, or truncated: a header of {} bytes, expected {} to {}",
                     length, kShortest - kLengthBytes, longest));
  }
  std::string text(length, '\0');
  read_exactly(path, descriptor, text.data(), text.size());
  if (!text.starts_with(kStart)) {
    fail(path, "not a model file: its header does not start with a checksum");
  }
  Header header = parse_header(path, text);
  check_layout(path, header.entries, size - kLengthBytes - length);

  Checksum checksum;
  text.replace(kStart.size(), kNoChecksum.size(), kNoChecksum);
  checksum.add(&length, kLengthBytes);
  checksum.add(text.data(), text.size());
  TensorFile file;
  for (const Entry& entry : header.entries) {
    RowMajor rows(static_cast<Index>(entry.rows()), static_cast<Index>(entry.cols()));
    const std::size_t bytes = static_cast<std::size_t>(rows.size()) * sizeof(double);
    read_exactly(path, descriptor, rows.data(), bytes);
    checksum.add(rows.data(), bytes);
    file.tensors[entry.name] = {rows, static_cast<int>(entry.shape.size())};
  }
  const std::string stored = header.metadata.extract("checksum").mapped();
  if (stored != checksum.hex()) {
    fail(path, fmt::format("damaged or altered: its checksum is {}, expected {} as stored",
                           checksum.hex(), in_quotes(stored)));
  }
  file.metadata = std::move(header.metadata);
  return file;
}

}  // namespace

void write_tensor_file(const std::string& path, const TensorFile& file) {
  const std::string bytes = to_bytes(file);
  // A link stays a link to the new contents; a device is not replaced by a file.
  std::error_code error;
  const std::filesystem::path existing = std::filesystem::canonical(path, error);
  const std::string target = error ? path : existing.string();
  struct stat status = {};
  const bool exists = ::stat(target.c_str(), &status) == 0;
  if (exists && !S_ISREG(status.st_mode)) fail(path, "cannot write: it is not a regular file");

  TemporaryFile temporary(target);
  if (exists) temporary.set_mode(status.st_mode & 07777);
  temporary.write(bytes);
  temporary.rename_to_final();
  sync_directory_of(target);
}

TensorFile read_tensor_file(const std::string& path) {
  // Not to wait for a writer if the path is a pipe.
  const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor.get() < 0) fail_with_errno(path, "open");
  try {
    return read_open_file(path, descriptor.get());
  } catch (const std::bad_alloc&) {
    fail(path, "too large for the memory");
  }
}

}  // namespace ample
