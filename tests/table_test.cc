#include "table.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

namespace ample::cli {
namespace {

namespace fs = std::filesystem;

using Names = std::vector<std::string>;

std::string gzip(const std::string& text) {
  z_stream stream = {};
  deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
  std::string input = text;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const DataError& error) {
    const std::string message = error.what();
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }
  return "";
}

class Tables : public ::testing::Test {
 protected:
  Tables() : start_(fs::current_path()) {
    std::string name = (fs::temp_directory_path() / "ample-tables-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    fs::current_path(folder_);  // so that messages hold just "data.csv"
  }
  ~Tables() override {
    fs::current_path(start_);
    fs::remove_all(folder_);
  }

  static Table table(const std::string& text, const ReadOptions& options = {}) {
    std::ofstream("data.csv", std::ios::binary) << text;
    return read_table("data.csv", options);
  }
  static std::string error(const std::string& text, const ReadOptions& options = {}) {
    return message_of([&] { table(text, options); });
  }
  static std::string bad_row(const std::string& text) {
    const std::string hint = " (use --skip-bad-rows to drop such rows)";
    const std::string message = error(text);
    EXPECT_TRUE(message.ends_with(hint)) << message;
    return message.substr(0, message.size() - std::min(message.size(), hint.size()));
  }

  fs::path start_;
  fs::path folder_;
};

const Matrix kTwoByTwo{{1, 2}, {3, 4}};
const ReadOptions kSkip{.skip_bad_rows = true};

TEST_F(Tables, EveryDelimiterGivesTheSameTable) {
  for (const std::string text :
       {"1,2\n3,4\n", "1;2\n3;4\n", "1\t2\n3\t4\n", "1 2\n3 4\n", "  1   2\t\n\t3\t  4 \n",
        "1 , 2\n 3,\t4 \n", "1\t 2\n3 \t4\n", "\"1\",\"2\"\n3,\"4\"\n", "\"1\" \"2\"\n3 4"}) {
    // A tab among spaces counts as a delimiter only if it stands on the first line.
    const ReadOptions options{.delimiter = text.starts_with("  ") ? ' ' : '\0'};
    EXPECT_EQ(table(text, options).values, kTwoByTwo) << text;
    EXPECT_TRUE(table(text, options).names.empty()) << text;
  }
}

TEST_F(Tables, DelimiterCanBeGiven) {
  EXPECT_EQ(table("1|2\n3|4\n", {.delimiter = '|'}).values, kTwoByTwo);
  EXPECT_EQ(table("a,b;c\n1;2\n", {.delimiter = ';'}).names, (Names{"a,b", "c"}));
  EXPECT_EQ(table("a,b\tc;d\n1\t2\n").names, (Names{"a,b", "c;d"}));
  EXPECT_EQ(table("\"a;b\",c\n1,2\n").names, (Names{"a;b", "c"}));
}

TEST_F(Tables, LineEndsBlankLinesCommentsAndByteOrderMarkAreNotData) {
  for (const std::string text :
       {"1,2\n3,4", "1,2\r\n3,4\r\n", "1,2\n3,4\n\n\n  \n", "\n\n1,2\n\n3,4\n",
        "\xEF\xBB\xBF"
        "1,2\n3,4\n",
        "# from a probe, today\n1,2\n  # half way\n3,4\n# end", "1,2\r\n\r\n3,4\r\n\r\n"}) {
    const Table read = table(text);
    EXPECT_EQ(read.values, kTwoByTwo) << text;
    EXPECT_EQ(read.bad_rows, 0) << text;
  }
}

TEST_F(Tables, HeaderIsDetectedAndCanBeStated) {
  EXPECT_EQ(table("x,y\n1,2\n3,4\n").names, (Names{"x", "y"}));
  EXPECT_EQ(table("x,y\n1,2\n3,4\n").values, kTwoByTwo);
  EXPECT_EQ(table("2001,y\n1,2\n").names, (Names{"2001", "y"}));
  EXPECT_EQ(table(",y\n1,2\n").names, (Names{"", "y"}));
  EXPECT_EQ(table("\xEF\xBB\xBFx,y\r\n1,2\r\n").names, (Names{"x", "y"}));
  EXPECT_EQ(table("\" a \"\"b\"\"\",y\n1,2\n").names, (Names{" a \"b\"", "y"}));
  EXPECT_EQ(table("10,20\n1,2\n", {.header = true}).names, (Names{"10", "20"}));
  EXPECT_EQ(table("10,20\n1,2\n", {.header = true}).values.rows(), 1);
  EXPECT_EQ(error("x,2\n1,2\n", {.header = false}),
            "data.csv:1: column 1 holds 'x', expected a finite number (use --skip-bad-rows to drop "
            "such rows)");
  // A first row whose values are missing is a bad row, not a header.
  for (const char* missing : {"", "NA", "NaN", "nan", "null", "-inf", "N/A"}) {
    const Table read = table(fmt::format("1,{}\n1,2\n3,4\n", missing), kSkip);
    EXPECT_TRUE(read.names.empty()) << missing;
    EXPECT_EQ(read.bad_rows, 1) << missing;
    EXPECT_EQ(read.values, kTwoByTwo) << missing;
  }
}

TEST_F(Tables, NamesAreUtf8WhateverTheFile) {
  EXPECT_EQ(table("Höhe,σ\n1,2\n").names, (Names{"Höhe", "σ"}));
  EXPECT_EQ(table("H\xF6he,y\n1,2\n").names, (Names{"Höhe", "y"}));
  EXPECT_EQ(table("\xC0\xAF,\xED\xA0\x80\n1,2\n").names,  // overlong, surrogate
            (Names{"\xC3\x80\xC2\xAF", "\xC3\xAD\xC2\xA0\xC2\x80"}));
  EXPECT_EQ(error("\xFF\xFEx\0,\0y\0\n\0"), "data.csv: text in UTF-16, expected UTF-8");
}

TEST_F(Tables, TrailingDelimiterIsNoColumn) {
  EXPECT_EQ(table("1,2,\n3,4,\n").values, kTwoByTwo);
  EXPECT_EQ(table("x,y,\n1,2,\n3,4,\n").values, kTwoByTwo);
  EXPECT_EQ(table("x,y,\n1,2\n3,4\n").names, (Names{"x", "y"}));
  EXPECT_EQ(table("x,y\n1,2,\n3,4,\n").values, kTwoByTwo);
  EXPECT_EQ(table("1\t2\t\n3\t4\t\n").values, kTwoByTwo);
  // But a first row may just lack its last value.
  EXPECT_EQ(bad_row("1,2,\n3,4,5\n"), "data.csv:1: column 3 is empty, expected a finite number");
  const Table read = table("1,2,\n3,4,5\n6,7,8\n", kSkip);
  EXPECT_EQ(read.values, (Matrix{{3, 4, 5}, {6, 7, 8}}));
  EXPECT_EQ(bad_row("1,2,\n"), "data.csv:1: column 3 is empty, expected a finite number");
}

TEST_F(Tables, NumbersAreReadInEveryNotation) {
  const Table read = table("+1.5,-2e3,.25,7.,1E-2,-0,1e-400,4.9e-324\n");
  EXPECT_EQ(read.values, (Matrix{{1.5, -2e3, .25, 7, 1e-2, 0, 0, 4.9e-324}}));
  EXPECT_TRUE(std::signbit(read.values(0, 5)));
}

TEST_F(Tables, BadValueNamesItsLineAndColumn) {
  EXPECT_EQ(error("time,temp\n# note\n\n1,20\n2,abc\n"),
            "data.csv:5: column 'temp' holds 'abc', expected a finite number (use --skip-bad-rows "
            "to drop such rows)");
  const std::string start = "1,2\n3,";
  const std::string expected = ", expected a finite number";
  EXPECT_EQ(bad_row(start + "\n"), "data.csv:2: column 2 is empty" + expected);
  EXPECT_EQ(bad_row(start + "\"\"\n"), "data.csv:2: column 2 is empty" + expected);
  EXPECT_EQ(bad_row(start + "\"1,5\"\n"), "data.csv:2: column 2 holds '1,5'" + expected);
  for (const char* bad : {"NA", "NaN", "null", "inf", "-Infinity", "1e400", "1.2.3", "1 2", "0x1p3",
                          "+-1", "++1", "-", "+", "\"1\"2", "\"1"}) {
    EXPECT_EQ(bad_row(start + bad + "\n"),
              fmt::format("data.csv:2: column 2 holds '{}'{}", bad, expected));
  }
  EXPECT_EQ(bad_row(",y\n,1\n"), "data.csv:2: column 1 is empty" + expected);
  EXPECT_EQ(bad_row("\t\n1\t2\n\t\n"), "data.csv:3: column 1 is empty" + expected);
}

TEST_F(Tables, MessagesStayShortPrintableAndOnOneLine) {
  EXPECT_EQ(bad_row("1,2\n3,a\x01\x7F\xE9\n"),
            "data.csv:2: column 2 holds 'a\\x01\\x7fé', expected a finite number");
  EXPECT_EQ(
      bad_row("1,2\n3," + std::string(1000, 'z') + "\n"),
      "data.csv:2: column 2 holds '" + std::string(40, 'z') + "...', expected a finite number");
}

TEST_F(Tables, RaggedRowSaysHowManyFieldsItHas) {
  EXPECT_EQ(bad_row("x,y\n1,2\n3\n"), "data.csv:3: 1 field, expected 2");
  EXPECT_EQ(bad_row("1,2\n3,4,5\n"), "data.csv:2: 3 fields, expected 2");
  EXPECT_EQ(bad_row("1 2\n3 4 5\n"), "data.csv:2: 3 fields, expected 2");
  EXPECT_EQ(bad_row("1,2\n3,4,,\n"), "data.csv:2: 4 fields, expected 2");
}

TEST_F(Tables, BadRowsCanBeDroppedAndAreCounted) {
  const Table read = table("x,y\n1,2\n1,NA\n,2\n1\n1,2,3\nx,1\n1,inf\n3,4\n", kSkip);
  EXPECT_EQ(read.values, kTwoByTwo);
  EXPECT_EQ(read.bad_rows, 6);
  EXPECT_EQ(table("x,y\n1,2\n3,4\n", kSkip).bad_rows, 0);
  EXPECT_EQ(error("x,y\n1,\n2,\n", kSkip),
            "data.csv:2: column 'y' is empty, expected a finite number; no good row is left of 2");
}

TEST_F(Tables, EmptyLineIsAMissingValueOfASingleColumn) {
  EXPECT_EQ(table("\nx\n1\n2\n\n\n").values, (Matrix{{1}, {2}}));
  EXPECT_EQ(bad_row("x\n1\n\n2\n"), "data.csv:3: column 'x' is empty, expected a finite number");
  const Table read = table("1\n\n2\n\n\n3\n\n", kSkip);
  EXPECT_EQ(read.values, (Matrix{{1}, {2}, {3}}));
  EXPECT_EQ(read.bad_rows, 3);
}

TEST_F(Tables, NoRowsIsAnError) {
  const std::string nothing = "data.csv: no rows, expected a table of numbers";
  EXPECT_EQ(error(""), nothing);
  EXPECT_EQ(error("\n \n\r\n"), nothing);
  EXPECT_EQ(error("# only\n# comments\n"), nothing);
  EXPECT_EQ(error("\xEF\xBB\xBF"), nothing);
  EXPECT_EQ(error(gzip("")), nothing);
  EXPECT_EQ(error("x,y\n"), "data.csv: no rows after the header");
  EXPECT_EQ(error("1\r2\r3\r"), "data.csv: no rows after the header");
}

TEST_F(Tables, WhatCannotBeReadIsNamed) {
  EXPECT_EQ(message_of([] { read_table("none.csv"); }),
            "none.csv: cannot open: No such file or directory");
  fs::create_directory("folder");
  EXPECT_EQ(message_of([] { read_table("folder"); }), "folder: cannot read: Is a directory");
  if (::geteuid() != 0) {
    std::ofstream("locked.csv") << "1,2\n";
    fs::permissions("locked.csv", fs::perms::none);
    EXPECT_EQ(message_of([] { read_table("locked.csv"); }),
              "locked.csv: cannot open: Permission denied");
  }
}

TEST_F(Tables, LineWithoutEndIsRefusedBeforeItFillsTheMemory) {
  EXPECT_EQ(error("1,2\n" + std::string(17 << 20, '7')),
            "data.csv:2: a line of more than 16 MiB, expected a table as text");
  // A line of several buffers is a line like any other.
  const std::string zeros(1 << 20, '0');
  EXPECT_EQ(table("1,0." + zeros + "\n" + zeros + "3,4\n").values, (Matrix{{1, 0}, {3, 4}}));
}

TEST_F(Tables, GzipIsKnownByItsBytes) {
  EXPECT_EQ(table(gzip("x,y\n1,2\n3,4\n")).values, kTwoByTwo);
  EXPECT_EQ(table(gzip("x,y\n1,2\n3,4\n")).names, (Names{"x", "y"}));
  EXPECT_EQ(table(gzip("1,2\n3") + gzip(",4\n")).values, kTwoByTwo);
  std::ofstream("plain.gz") << "1,2\n3,4\n";
  EXPECT_EQ(read_table("plain.gz").values, kTwoByTwo);
}

TEST_F(Tables, DamagedGzipIsAnError) {
  const std::string packed = gzip("1,2\n3,4\n5,6\n7,8\n9,10\n");
  for (std::size_t size = 2; size < packed.size(); ++size) {
    EXPECT_EQ(error(packed.substr(0, size)), "data.csv: truncated: the gzip data end too early")
        << size;
  }
  std::string wrong_sum = packed;
  wrong_sum[packed.size() - 8] = static_cast<char>(wrong_sum[packed.size() - 8] ^ 1);
  EXPECT_EQ(error(wrong_sum), "data.csv: corrupt gzip data: incorrect data check");
  EXPECT_EQ(error(packed + "rubbish"), "data.csv: corrupt gzip data: incorrect header check");
}

TEST_F(Tables, RandomNumbersComeBackExactly) {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> exponent(-300, 300);
  std::normal_distribution<double> normal;
  // More rows than one chunk of the reader and more bytes than one of its buffers.
  const Matrix values = Matrix::NullaryExpr(40'000, 7, [&](Index, Index column) {
    return normal(random) * (column == 0 ? std::pow(10, exponent(random)) : 1);
  });
  std::string text = "a,b,c,d,e,f,g\n";
  for (Index row = 0; row < values.rows(); ++row) {
    for (Index column = 0; column < values.cols(); ++column) {
      text += fmt::format("{}{}", values(row, column), column + 1 < values.cols() ? ',' : '\n');
    }
  }
  EXPECT_EQ(table(text).values, values);
  EXPECT_EQ(table(gzip(text)).values, values);
}

// A pipe that is written to while it is read.
class Pipes : public ::testing::Test {
 protected:
  Pipes() { EXPECT_EQ(::pipe(ends_), 0); }
  ~Pipes() override {
    ::close(ends_[0]);
    finish();
  }
  void send(const std::string& text) const {
    ASSERT_EQ(::write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void finish() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }
  int end() const { return ends_[0]; }

 private:
  int ends_[2] = {-1, -1};
};

TEST_F(Pipes, RowsArriveBeforeTheStreamEnds) {  // a reader that waits for more hangs here
  send("x,y\n1,2\n3,4\n5,");
  TableReader reader(end(), "probe");
  EXPECT_EQ(reader.names(), (Names{"x", "y"}));
  EXPECT_EQ(reader.next(2), kTwoByTwo);
  send("6\n7,8\n9,10\n");
  EXPECT_EQ(reader.next(1), (Matrix{{5, 6}}));
  finish();
  EXPECT_EQ(reader.next(100), (Matrix{{7, 8}, {9, 10}}));
  EXPECT_EQ(reader.next(100).rows(), 0);
  EXPECT_EQ(reader.next(100).rows(), 0);
}

TEST_F(Pipes, RowsOfAGzipStreamArriveToo) {
  send(gzip("1,2\n3,4\n"));
  TableReader reader(end(), "probe");
  EXPECT_EQ(reader.next(2), kTwoByTwo);
  send(gzip("5,6\n"));
  EXPECT_EQ(reader.next(1), (Matrix{{5, 6}}));
}

TEST_F(Pipes, ByteByByteIsTheSame) {
  for (const std::string& bytes :
       {std::string("\xEF\xBB\xBFx,y\r\n1,2\r\n3,4"), gzip("x,y\n1,2\n3,4\n")}) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_DIRECT), 0);  // packets: each byte is a read of its own
    std::thread writer([&] {                // beside the reader, as a pipe holds few packets
      for (const char byte : bytes) EXPECT_EQ(::write(ends[1], &byte, 1), 1);
      ::close(ends[1]);
    });
    const Table read = TableReader(ends[0], "probe").rest();
    EXPECT_EQ(read.names, (Names{"x", "y"}));
    EXPECT_EQ(read.values, kTwoByTwo);
    writer.join();
    ::close(ends[0]);
  }
}

TEST_F(Pipes, DashIsStandardInput) {
  const int saved = ::dup(STDIN_FILENO);
  ::dup2(end(), STDIN_FILENO);
  send("1,2\n3,4\n5,x\n");
  finish();
  TableReader reader("-");
  EXPECT_EQ(reader.next(2), kTwoByTwo);
  EXPECT_EQ(message_of([&] { reader.next(1); }),
            "standard input:3: column 2 holds 'x', expected a finite number (use --skip-bad-rows "
            "to drop such rows)");
  if (saved >= 0) ::dup2(saved, STDIN_FILENO);
  ::close(saved);
}

TEST_F(Pipes, ChunksOfAnySizeMakeUpTheTable) {
  const std::string text = "x\n1\n2\n3\nNA\n4\n5\n6\n7\n";
  for (Index rows = 1; rows <= 9; ++rows) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    ASSERT_EQ(::write(ends[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::close(ends[1]);
    TableReader reader(ends[0], "probe", kSkip);
    Index seen = 0;
    for (Matrix chunk = reader.next(rows); chunk.rows() > 0; chunk = reader.next(rows)) {
      EXPECT_EQ(chunk.rows(), std::min(rows, 7 - seen));
      for (const double value : chunk.reshaped()) EXPECT_EQ(value, static_cast<double>(++seen));
    }
    EXPECT_EQ(seen, 7);
    EXPECT_EQ(reader.bad_rows(), 1);
    ::close(ends[0]);
  }
}

TEST_F(Tables, SelectedColumnsComeInOrderAndOthersMayBeText) {
  std::ofstream("data.csv") << "date,x,y\nMonday,1,2\nTuesday,3,4\n";
  TableReader reader("data.csv");
  EXPECT_EQ(reader.columns(), 3);
  reader.select({2, 1});
  const Table read = reader.rest();
  EXPECT_EQ(read.names, (Names{"y", "x"}));
  EXPECT_EQ(read.values, (Matrix{{2, 1}, {4, 3}}));
  EXPECT_EQ(bad_row("date,x,y\nMonday,1,2\n"),
            "data.csv:2: column 'date' holds 'Monday', expected a finite number");

  std::ofstream("data.csv") << "date,x,y\nMonday,1,oops\n";
  TableReader other("data.csv");
  other.select({2});
  EXPECT_EQ(message_of([&] { other.next(1); }).substr(0, 39),
            "data.csv:2: column 'y' holds 'oops', ex");
  EXPECT_THROW(other.select({3}), std::invalid_argument);
  EXPECT_THROW(other.select({-1}), std::invalid_argument);
  EXPECT_THROW(other.next(0), std::invalid_argument);
}

TEST_F(Tables, ColumnIsFoundByNameThenByNumber) {
  const Names named{"x", "3", "y", "x y"};
  EXPECT_EQ(find_column(named, 4, "x"), 0);
  EXPECT_EQ(find_column(named, 4, "x y"), 3);
  EXPECT_EQ(find_column(named, 4, "3"), 1);  // the name before the number
  EXPECT_EQ(find_column(named, 4, "4"), 3);
  for (const char* unknown : {"X", "0", "-1", "5", "+1", "1.0", " 1", "", "99999999999999999999"}) {
    EXPECT_EQ(message_of([&] { find_column(named, 4, unknown); }),
              fmt::format("unknown column '{}', expected one of 'x', '3', 'y', 'x y' or a number "
                          "from 1 to 4",
                          unknown));
  }
  EXPECT_EQ(message_of([] { find_column({}, 2, "x"); }),
            "unknown column 'x', expected a number from 1 to 2");
  const Names twice{"a", "b", "a"};
  EXPECT_EQ(message_of([&] { find_column(twice, 3, "a"); }),
            "column 'a' is both column 1 and 3, expected a unique name");
  Names many;
  for (int i = 0; i < 100; ++i) many.push_back(fmt::format("c{}", i));
  EXPECT_EQ(message_of([&] { find_column(many, 100, "x"); }),
            "unknown column 'x', expected one of 'c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', "
            "... or a number from 1 to 100");
}

// What is read is a finite table whose shape agrees with itself; anything else is a DataError.
TEST_F(Tables, RandomBytesAreATableOrADataError) {
  std::mt19937 random(4);
  const std::string likely = "0123456789.,,,;\t\"\"\n\n\n\r#eE+-xna \xEF\xBB\xBF";
  int tables = 0;
  int errors = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    std::string bytes(random() % 60, '\0');
    for (char& byte : bytes) {
      byte = trial % 4 == 0 ? static_cast<char>(random() % 256) : likely[random() % likely.size()];
    }
    if (trial % 8 == 1) bytes = gzip("1,2\n" + bytes);
    if (trial % 16 == 1) bytes[random() % bytes.size()] = static_cast<char>(random() % 256);
    if (trial % 16 == 2) bytes = "\x1f\x8b\x08" + bytes;
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    ASSERT_EQ(::write(ends[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    ::close(ends[1]);
    const ReadOptions options{.skip_bad_rows = trial % 3 == 0};
    const std::string message = message_of([&] {
      const Table read = TableReader(ends[0], "noise", options).rest();
      EXPECT_GT(read.values.rows(), 0);
      EXPECT_TRUE(read.values.allFinite());
      EXPECT_TRUE(read.names.empty() ||
                  static_cast<Index>(read.names.size()) == read.values.cols());
      ++tables;
    });
    errors += message.starts_with("noise") ? 1 : 0;
    ::close(ends[0]);
  }
  EXPECT_EQ(tables + errors, 20'000);
  EXPECT_GT(tables, 1000);  // the noise reaches both ends
  EXPECT_GT(errors, 1000);
}

}  // namespace
}  // namespace ample::cli
