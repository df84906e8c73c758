#include "safetensors.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <xxhash.h>

namespace ample {
namespace {

class TensorFiles : public ::testing::Test {
 protected:
  void store(const std::string& bytes) { bytes_ = bytes; }

  // What is wrong with the bytes stored, or "" if nothing is.
  std::string read_error() const {
    try {
      static_cast<void>(tensors_from_bytes(bytes_));
      return "";
    } catch (const ModelFileError& error) {
      const std::string message = error.what();
      EXPECT_EQ(message.find('\n'), std::string::npos) << message;
      return message;
    }
  }

  // A file of this header and these values with the right checksum, as an attacker would make it.
  // The header starts within "__metadata__", after the checksum.
  static std::string forged(const std::string& header_rest, std::size_t values) {
    const std::string start = R"({"__metadata__":{"checksum":")";
    const std::string header = start + "0000000000000000\"" + header_rest;
    const std::uint64_t length = header.size();
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    bytes += header + std::string(8 * values, '\0');
    char hex[17];
    std::snprintf(hex, sizeof hex, "%016llx",
                  static_cast<unsigned long long>(XXH3_64bits(bytes.data(), bytes.size())));
    return bytes.replace(8 + start.size(), 16, hex);
  }
  std::string forgery_error(const std::string& header_rest, std::size_t values) {
    store(forged(header_rest, values));
    return read_error();
  }

  std::string bytes_;
};

TensorFile small_file() {
  TensorFile file;
  file.tensors["Z"] = {Matrix{{1, 2, 3}, {4, 5, 6}}};
  file.tensors["m"] = {Vector{{-1.5, 2.5}}, 1};
  file.metadata = {{"format", "1"}, {"kernel", "SE(variance=1)"}};
  return file;
}

std::vector<std::uint64_t> bits(const Matrix& values) {
  std::vector<std::uint64_t> result;
  for (const double value : values.reshaped())
    result.push_back(std::bit_cast<std::uint64_t>(value));
  return result;
}

void expect_equal(const TensorFile& a, const TensorFile& b) {
  EXPECT_EQ(a.metadata, b.metadata);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (const auto& [name, tensor] : a.tensors) {
    ASSERT_TRUE(b.tensors.contains(name)) << name;
    const Tensor& other = b.tensors.at(name);
    EXPECT_EQ(tensor.rank, other.rank) << name;
    EXPECT_EQ(tensor.values.rows(), other.values.rows()) << name;
    EXPECT_EQ(tensor.values.cols(), other.values.cols()) << name;
    EXPECT_EQ(bits(tensor.values), bits(other.values)) << name;
  }
}

TEST_F(TensorFiles, EveryBitComesBack) {
  using Limits = std::numeric_limits<double>;
  std::mt19937_64 random(1);
  TensorFile file = small_file();
  file.tensors["special"] = {Vector{{-0.0, Limits::denorm_min(), -Limits::denorm_min(),
                                     Limits::max(), Limits::infinity(), Limits::quiet_NaN()}},
                             1};
  file.tensors["any bits"] = {
      Matrix::NullaryExpr(17, 5, [&](Index, Index) { return std::bit_cast<double>(random()); })};
  file.tensors["0 rows"] = {Matrix(0, 3)};
  file.tensors["0 cols"] = {Matrix(3, 0)};
  file.tensors["empty vector"] = {Matrix(0, 1), 1};
  file.tensors["one column"] = {Matrix{{1}, {2}}};
  file.tensors["\"naïve\"\n"] = {Matrix{{7}}};
  file.metadata["text"] = "line\n\ttab \"quoted\" \\ σ²";
  expect_equal(tensors_from_bytes(tensors_to_bytes(file)), file);
}

TEST_F(TensorFiles, NoTensorsAndNoMetadataIsAFileToo) {
  expect_equal(tensors_from_bytes(tensors_to_bytes({})), {});
}

TEST_F(TensorFiles, LayoutIsThatOfSafetensors) {
  const std::string bytes = tensors_to_bytes(small_file());
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    length |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  EXPECT_EQ(length % 8, 0U);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  EXPECT_EQ(header.size(), 3U);
  EXPECT_EQ(header["__metadata__"]["kernel"], "SE(variance=1)");
  EXPECT_EQ(header["Z"]["dtype"], "F64");
  EXPECT_EQ(header["Z"]["shape"], nlohmann::json({2, 3}));
  EXPECT_EQ(header["Z"]["data_offsets"], nlohmann::json({0, 48}));
  EXPECT_EQ(header["m"]["shape"], nlohmann::json({2}));
  EXPECT_EQ(header["m"]["data_offsets"], nlohmann::json({48, 64}));

  ASSERT_EQ(bytes.size(), 8 + length + 64);
  std::vector<double> values(8);
  std::memcpy(values.data(), bytes.data() + 8 + length, 64);
  EXPECT_EQ(values, (std::vector<double>{1, 2, 3, 4, 5, 6, -1.5, 2.5}));  // row by row
}

TEST_F(TensorFiles, EqualContentsGiveEqualBytes) {
  const std::string first = tensors_to_bytes(small_file());
  EXPECT_EQ(tensors_to_bytes(small_file()), first);

  TensorFile other = small_file();
  other.tensors["m"].values(0) = -1.5000000000000002;
  EXPECT_NE(tensors_to_bytes(other), first);
}

TEST_F(TensorFiles, TruncatedAnywhereIsAnError) {
  const std::string whole = tensors_to_bytes(small_file());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    store(whole.substr(0, size));
    EXPECT_NE(read_error(), "") << size << " of " << whole.size();
  }
  store(whole.substr(0, whole.size() - 9));
  EXPECT_EQ(read_error(), "truncated: the header promises 64 bytes of tensors, the file has 55");
  store(whole + '\0');
  EXPECT_EQ(read_error(), "too long: the header promises 64 bytes of tensors, the file has 65");
  store("");
  EXPECT_EQ(read_error(), "0 bytes, expected a model file of at least 53");
}

TEST_F(TensorFiles, AnyByteChangedIsAnError) {
  const std::string whole = tensors_to_bytes(small_file());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (int flip = 1; flip < 256; flip = flip < 128 ? 2 * flip : flip + 127) {
      std::string changed = whole;
      changed[i] = static_cast<char>(changed[i] ^ flip);
      store(changed);
      EXPECT_NE(read_error(), "") << "byte " << i << " xor " << flip;
    }
  }
  std::string changed = whole;
  changed.back() = static_cast<char>(changed.back() ^ 1);
  store(changed);
  EXPECT_TRUE(read_error().starts_with("damaged or altered: its checksum is ")) << read_error();
}

TEST_F(TensorFiles, BytesSwappedOrMovedAreAnError) {
  std::mt19937 random(2);
  const std::string whole = tensors_to_bytes(small_file());
  const auto place = [&] { return random() % whole.size(); };
  for (int trial = 0; trial < 3000; ++trial) {
    std::string changed = whole;
    if (trial % 2 == 0) {
      std::swap(changed[place()], changed[place()]);
    } else {
      const std::size_t size = random() % 16;
      changed.insert(place(), changed.substr(place(), size));
    }
    if (changed == whole) continue;
    store(changed);
    EXPECT_NE(read_error(), "") << "trial " << trial;
  }
}

// So what the next tests change is what is wrong.
TEST_F(TensorFiles, ForgeryWithinTheFormatLoads) {
  EXPECT_EQ(forgery_error(R"(},"a":{"dtype":"F64","shape":[2,1],"data_offsets":[0,16]}})", 2), "");
  EXPECT_EQ(tensors_from_bytes(bytes_).tensors.at("a").values, Matrix::Zero(2, 1));
}

TEST_F(TensorFiles, HeaderLengthIsChecked) {
  std::string bytes = forged("}}", 0);
  const std::string expected = "not a model file, or truncated: a header of ";
  std::memset(bytes.data(), 0xFF, 8);
  store(bytes);
  EXPECT_EQ(read_error(), expected + "18446744073709551615 bytes, expected 45 to 48");
  std::memset(bytes.data(), 0, 8);
  store(bytes);
  EXPECT_EQ(read_error(), expected + "0 bytes, expected 45 to 48");
  bytes[0] = 49;
  store(bytes);
  EXPECT_EQ(read_error(), expected + "49 bytes, expected 45 to 48");

  // Of a terabyte the start is enough: the limit on the header stands before the file's own size.
  const std::uint64_t length = std::uint64_t{1} << 39;
  std::memcpy(bytes.data(), &length, 8);
  try {
    check_start_of_tensors(bytes.substr(0, kTensorsStart), std::uint64_t{1} << 40);
    ADD_FAILURE() << "a header of half a terabyte was believed";
  } catch (const ModelFileError& error) {
    EXPECT_EQ(error.what(), expected + "549755813888 bytes, expected 45 to 100000000");
  }
}

TEST_F(TensorFiles, OtherFilesAreNotModelFiles) {
  store(R"(time,position,temperature,pressure
0.0,1.0,2.0,3.0
0.1,1.1,2.1,3.1
)");
  EXPECT_TRUE(read_error().starts_with("not a model file")) << read_error();

  std::string foreign = R"({"weight":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}})";
  foreign.insert(0, std::string{static_cast<char>(foreign.size()), 0, 0, 0, 0, 0, 0, 0});
  store(foreign + std::string(8, '\0'));
  EXPECT_EQ(read_error(), "not a model file: its header does not start with a checksum");
}

TEST_F(TensorFiles, OffsetsMustTileTheFile) {
  const auto two = [this](const std::string& first, const std::string& second) {
    return forgery_error(R"(},"a":{"dtype":"F64","shape":[2],"data_offsets":)" + first +
                             R"(},"b":{"dtype":"F64","shape":[2],"data_offsets":)" + second + "}}",
                         4);
  };
  EXPECT_EQ(two("[0,16]", "[16,32]"), "");
  EXPECT_EQ(two("[16,32]", "[0,16]"), "");  // the order of names does not matter
  EXPECT_EQ(two("[0,16]", "[8,24]"), "tensor \"b\" begins at byte 8, expected 16");
  EXPECT_EQ(two("[0,16]", "[0,16]"), "tensor \"b\" begins at byte 0, expected 16");
  EXPECT_EQ(two("[0,16]", "[24,40]"), "tensor \"b\" begins at byte 24, expected 16");
  EXPECT_EQ(two("[8,24]", "[24,40]"), "tensor \"a\" begins at byte 8, expected 0");
  EXPECT_EQ(two("[16,0]", "[16,32]"), "tensor \"a\" has data_offsets that are not [begin, end]");
  EXPECT_EQ(two("[0]", "[16,32]"), "tensor \"a\" has data_offsets that are not [begin, end]");
  EXPECT_EQ(two("[-16,0]", "[0,16]"),
            "the header has a negative number after \"data_offsets\", which the format does not "
            "allow");
  EXPECT_EQ(two("[0,16.0]", "[16,32]"),
            "the header has a number that is no 64-bit integer after \"data_offsets\", which the "
            "format does not allow");
  EXPECT_EQ(two("[0,18446744073709551616]", "[16,32]"),
            "the header has a number that is no 64-bit integer after \"data_offsets\", which the "
            "format does not allow");
  EXPECT_EQ(two("[0,16,32]", "[16,32]"),
            "the header has a third number after \"data_offsets\", which the format does not "
            "allow");
}

TEST_F(TensorFiles, ShapeMustFitTheOffsets) {
  const auto shaped = [this](const std::string& shape, const std::string& offsets) {
    return forgery_error(
        R"(},"a":{"dtype":"F64","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}", 2);
  };
  EXPECT_EQ(shaped("[2]", "[0,16]"), "");
  EXPECT_EQ(shaped("[3]", "[0,16]"), "tensor \"a\" has 16 bytes, which does not fit its shape 3×1");
  EXPECT_EQ(shaped("[1,1]", "[0,12]"),
            "tensor \"a\" has 12 bytes, which does not fit its shape 1×1");
  EXPECT_EQ(shaped("[0,5]", "[0,16]"),
            "tensor \"a\" has 16 bytes, which does not fit its shape 0×5");
  // 2³² · 2³² · 8 = 0 and (2⁶¹ + 2) · 8 = 16 in 64 bits.
  EXPECT_EQ(shaped("[4294967296,4294967296]", "[0,0]"),
            "tensor \"a\" has 0 bytes, which does not fit its shape 4294967296×4294967296");
  EXPECT_EQ(shaped("[2305843009213693954]", "[0,16]"),
            "tensor \"a\" has 16 bytes, which does not fit its shape 2305843009213693954×1");
  EXPECT_EQ(shaped("[0,18446744073709551615]", "[0,0]"),
            "tensor \"a\" has 0 bytes, which does not fit its shape 0×18446744073709551615");
  EXPECT_EQ(shaped("[1152921504606846976]", "[0,9223372036854775808]"),
            "truncated: the header promises 9223372036854775808 bytes of tensors, the file has 16");
  EXPECT_EQ(shaped("[]", "[0,8]"), "tensor \"a\" is a scalar, expected a vector or a matrix");
  EXPECT_EQ(shaped("[1,2,1]", "[0,16]"),
            "the header has a third number after \"shape\", which the format does not allow");
}

TEST_F(TensorFiles, HeaderMustKeepToTheGrammar) {
  const std::string rest = R"("shape":[1],"data_offsets":[0,8]}})";
  const std::string good = R"("a":{"dtype":"F64",)" + rest;
  EXPECT_EQ(forgery_error("}," + good, 1), "");
  EXPECT_EQ(forgery_error(R"(},"a":{"dtype":"F32",)" + rest, 1),
            "tensor \"a\" has dtype \"F32\", expected \"F64\"");
  EXPECT_EQ(forgery_error(R"(},"a":{)" + rest, 1),
            "tensor \"a\" lacks its dtype, shape or data_offsets");
  EXPECT_EQ(forgery_error(R"(},"a":{"dtype":"F64","extra":"F64",)" + rest, 1),
            "tensor \"a\" has \"extra\", expected only dtype, shape and data_offsets");
  EXPECT_EQ(forgery_error(R"(},"a":{"dtype":"F64","dtype":"F64",)" + rest, 1),
            "the header has \"dtype\" twice");
  EXPECT_EQ(forgery_error(R"(},"a":{"dtype":"F64","shape":[0],"data_offsets":[0,0]},)" + good, 1),
            "the header has \"a\" twice");
  EXPECT_EQ(forgery_error(R"(},"__metadata__":{},)" + good, 1),
            "the header has \"__metadata__\" twice");
  EXPECT_EQ(forgery_error(R"(,"checksum":""},)" + good, 1), "the header has \"checksum\" twice");
  EXPECT_EQ(forgery_error(R"(,"k":"1","k":"2"},)" + good, 1), "the header has \"k\" twice");
  EXPECT_EQ(forgery_error(R"(,"k":1},)" + good, 1),
            "the header has a number after \"k\", which the format does not allow");
  EXPECT_EQ(forgery_error(R"(,"k":{}},)" + good, 1),
            "the header has an object after \"k\", which the format does not allow");
  EXPECT_EQ(forgery_error(R"(,"k":null},)" + good, 1),
            "the header has null after \"k\", which the format does not allow");
  EXPECT_EQ(forgery_error(R"(},"a":true})", 0),
            "the header has a truth value after \"a\", which the format does not allow");
  EXPECT_EQ(forgery_error(R"(},"a":[1,2]})", 0),
            "the header has a list after \"a\", which the format does not allow");
  EXPECT_EQ(forgery_error(R"(},"a":"b"})", 0),
            "the header has text after \"a\", which the format does not allow");
  EXPECT_EQ(forgery_error("}", 0), "the header is not JSON from its byte 48 on");
  EXPECT_EQ(forgery_error("}}}", 0), "the header is not JSON from its byte 49 on");
  EXPECT_EQ(forgery_error(std::string("}}\0", 3), 0), "the header is not JSON from its byte 49 on");
  EXPECT_EQ(forgery_error("},\"\xFF\":1}", 0), "the header is not JSON from its byte 50 on");
}

TEST_F(TensorFiles, DeepNestingIsRefusedAtItsStart) {
  const std::size_t depth = 5'000'000;
  EXPECT_EQ(forgery_error(R"(},"a":)" + std::string(depth, '['), 0),
            "the header has a list after \"a\", which the format does not allow");
  EXPECT_EQ(forgery_error(R"(},"a":{"dtype":"F64","shape":)" + std::string(depth, '['), 0),
            "the header has a list after \"shape\", which the format does not allow");
  std::string objects = R"(},"a":)";
  for (std::size_t i = 0; i < depth / 5; ++i) objects += R"({"dtype":)";
  EXPECT_EQ(forgery_error(objects, 0),
            "the header has an object after \"dtype\", which the format does not allow");
}

TEST_F(TensorFiles, NamesInMessagesAreShortAndOnOneLine) {
  const std::string error =
      forgery_error(R"(},"a\nb\u0007)" + std::string(1000, 'x') + R"(":null})", 0);
  EXPECT_TRUE(error.starts_with(R"(the header has null after "a\x0ab\x07xxx)")) << error;
  EXPECT_LT(error.size(), 200U);
}

TEST_F(TensorFiles, ContentsThatTheFormatCannotHoldAreTheCallersMistake) {
  TensorFile file;
  file.metadata["checksum"] = "0";
  EXPECT_THROW(static_cast<void>(tensors_to_bytes(file)), std::invalid_argument);
  file = {};
  file.metadata["text"] = "\xFF";
  EXPECT_THROW(static_cast<void>(tensors_to_bytes(file)), std::invalid_argument);
  file = {};
  file.tensors["__metadata__"] = {Matrix::Ones(1, 1)};
  EXPECT_THROW(static_cast<void>(tensors_to_bytes(file)), std::invalid_argument);
  file = {};
  file.tensors["v"] = {Matrix::Ones(1, 2), 1};
  EXPECT_THROW(static_cast<void>(tensors_to_bytes(file)), std::invalid_argument);
}

}  // namespace
}  // namespace ample
