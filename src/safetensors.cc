#include "safetensors.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <xxhash.h>

#include "visible_text.h"

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
constexpr std::size_t kShortest = kLengthBytes + kStart.size() + kNoChecksum.size();
constexpr std::uint64_t kLongestHeader = 100'000'000;  // the limit of the safetensors library

// ---- bytes -------------------------------------------------------------------------------------

/// Of whole bytes, whose own checksum counts as zeros.
std::string checksum_of(std::string_view bytes) {
  constexpr std::size_t kPlace = kLengthBytes + kStart.size();
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                              &XXH3_freeState);
  if (state == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset(state.get());
  XXH3_64bits_update(state.get(), bytes.data(), kPlace);
  XXH3_64bits_update(state.get(), kNoChecksum.data(), kNoChecksum.size());
  const std::string_view rest = bytes.substr(kPlace + kNoChecksum.size());
  XXH3_64bits_update(state.get(), rest.data(), rest.size());
  return fmt::format("{:016x}", XXH3_64bits_digest(state.get()));
}

[[noreturn]] void fail(const std::string& message) { throw ModelFileError(message); }

// Text from a header, fit for a message of one line.
std::string in_quotes(const std::string& text) {
  constexpr std::size_t kLongest = 60;
  return '"' + visible(text, kLongest) + '"';
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
  explicit HeaderParser(Header& header) : header_(header) {}

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
      fail(fmt::format("tensor {} has {}, expected only dtype, shape and data_offsets",
                       in_quotes(header_.entries.back().name), in_quotes(name)));
    }
    const bool is_new = (place_ == Place::kTop ? top_keys_ : inner_keys_).insert(name).second;
    if (!is_new) fail(fmt::format("the header has {} twice", in_quotes(name)));
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
    fail(fmt::format("the header is not JSON from its byte {} on", position));
  }

 private:
  enum class Place { kOutside, kTop, kMetadata, kEntry, kList };

  [[noreturn]] void unexpected(const char* what) const {
    fail(fmt::format("the header has {} {}, which the format does not allow", what,
                     key_.empty() ? "at its start" : "after " + in_quotes(key_)));
  }

  void check_entry(const Entry& entry) const {
    const std::string tensor = "tensor " + in_quotes(entry.name);
    if (inner_keys_.size() != 3) {
      fail(tensor + " lacks its dtype, shape or data_offsets");
    }
    if (entry.dtype != "F64") {
      fail(fmt::format("{} has dtype {}, expected \"F64\"", tensor, in_quotes(entry.dtype)));
    }
    if (entry.shape.empty()) fail(tensor + " is a scalar, expected a vector or a matrix");
    if (entry.offsets.size() != 2 || entry.begin() > entry.end()) {
      fail(tensor + " has data_offsets that are not [begin, end]");
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
      fail(fmt::format("{} has {} bytes, which does not fit its shape {}×{}", tensor, bytes, rows,
                       cols));
    }
  }

  Header& header_;
  Place place_ = Place::kOutside;
  std::string key_;
  std::set<std::string> top_keys_;
  std::set<std::string> inner_keys_;
  std::vector<std::uint64_t>* list_ = nullptr;
};

Header parse_header(std::string_view text) {
  Header header;
  HeaderParser parser(header);
  // The parser takes a zero byte for the end of its input.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    fail(fmt::format("the header is not JSON from its byte {} on", zero + 1));
  }
  Json::sax_parse(text, &parser);
  // Empty tensors before the one that starts where they do.
  std::sort(header.entries.begin(), header.entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.offsets, a.name) < std::tie(b.offsets, b.name);
  });
  return header;
}

// The tensors must lie one after the other and fill the rest of the file.
void check_layout(const std::vector<Entry>& entries, std::uint64_t size) {
  std::uint64_t end = 0;
  for (const Entry& entry : entries) {
    if (entry.begin() != end) {
      fail(fmt::format("tensor {} begins at byte {}, expected {}", in_quotes(entry.name),
                       entry.begin(), end));
    }
    end = entry.end();
  }
  if (end != size) {
    fail(fmt::format("{}: the header promises {} bytes of tensors, the file has {}",
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
    if (!good) throw std::invalid_argument("tensors_to_bytes: " + message);
  };
  check(!file.metadata.contains("checksum"), "metadata has a checksum, which the writer adds");
  for (const auto& [name, tensor] : file.tensors) {
    check(name != "__metadata__", "a tensor is called __metadata__, which is reserved");
    check(tensor.rank == 2 || (tensor.rank == 1 && tensor.values.cols() == 1),
          fmt::format("tensor {} has rank {} and {} columns, expected rank 2, or 1 and 1",
                      in_quotes(name), tensor.rank, tensor.values.cols()));
  }
}

}  // namespace

std::string tensors_to_bytes(const TensorFile& file) {
  check_contents(file);
  std::string header;
  try {
    header = header_text(file);
  } catch (const Json::exception&) {
    throw std::invalid_argument("tensors_to_bytes: a name or text that is not UTF-8");
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
  bytes.replace(kLengthBytes + kStart.size(), kNoChecksum.size(), checksum_of(bytes));
  return bytes;
}

void check_start_of_tensors(std::string_view start, std::uint64_t size) {
  if (size < kShortest) {
    fail(fmt::format("{} bytes, expected a model file of at least {}", size, kShortest));
  }
  std::uint64_t length = 0;
  std::memcpy(&length, start.data(), kLengthBytes);
  const std::uint64_t longest = std::min(size - kLengthBytes, kLongestHeader);
  if (length < kShortest - kLengthBytes || length > longest) {
    fail(fmt::format("not a model file, or truncated: a header of {} bytes, expected {} to {}",
                     length, kShortest - kLengthBytes, longest));
  }
  if (!start.substr(kLengthBytes).starts_with(kStart)) {
    fail("not a model file: its header does not start with a checksum");
  }
}

TensorFile tensors_from_bytes(std::string_view bytes) {
  check_start_of_tensors(bytes.substr(0, kTensorsStart), bytes.size());
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  Header header = parse_header(bytes.substr(kLengthBytes, length));
  const std::string_view values = bytes.substr(kLengthBytes + length);
  check_layout(header.entries, values.size());
  const std::string stored = header.metadata.extract("checksum").mapped();
  if (const std::string computed = checksum_of(bytes); stored != computed) {
    fail(fmt::format("damaged or altered: its checksum is {}, expected {} as stored", computed,
                     in_quotes(stored)));
  }
  TensorFile file;
  for (const Entry& entry : header.entries) {
    RowMajor rows(static_cast<Index>(entry.rows()), static_cast<Index>(entry.cols()));
    const std::size_t size = static_cast<std::size_t>(rows.size()) * sizeof(double);
    if (size > 0) std::memcpy(rows.data(), values.data() + entry.begin(), size);
    file.tensors[entry.name] = {rows, static_cast<int>(entry.shape.size())};
  }
  file.metadata = std::move(header.metadata);
  return file;
}

}  // namespace ample
