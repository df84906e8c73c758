// Tables of numbers from text: comma, semicolon, tab or white-space separated, plain or gzip.
//
// The text is read once and in pieces, so a stream of any length can be learnt from batch by batch:
// TableReader yields the next rows, read_table all of them. What is not stated is detected: gzip by
// its magic bytes, the delimiter and the header on the first line that is neither blank nor a
// comment ('#'). One line is one row, so a quoted field ends on its line.
//
// A field that is empty, NA, NaN, null, infinite or not a number makes its row bad, and so does a
// row with too many or too few fields: a DataError that names line and column, or, with
// skip_bad_rows, a dropped and counted row. Cost: O(bytes), limited by number parsing.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ample/types.h"
#include "errors.h"

namespace ample::cli {

struct ReadOptions {
  bool skip_bad_rows = false;
  char delimiter = '\0';                      // '\0': detected; ' ': any run of spaces and tabs
  std::optional<bool> header = std::nullopt;  // unset: detected, as text on the first row
};

struct Table {
  std::vector<std::string> names;  // one for each column, or none if the file has no header
  Matrix values;                   // [rows, columns], all finite
  Index bad_rows = 0;              // dropped
};

class TableReader {
 public:
  /// Opens a file, or standard input for "-", and reads as far as the header.
  explicit TableReader(const std::string& path, const ReadOptions& options = {});

  /// Reads from an open descriptor, which stays the caller's; `name` is what messages call it.
  TableReader(int descriptor, const std::string& name, const ReadOptions& options = {});

  TableReader(const TableReader&) = delete;
  TableReader& operator=(const TableReader&) = delete;
  TableReader(TableReader&&) noexcept;
  TableReader& operator=(TableReader&&) noexcept;
  ~TableReader();

  /// The header of the file as UTF-8, or empty if it has none.
  const std::vector<std::string>& names() const { return names_; }

  /// Columns of the file.
  Index columns() const { return columns_; }

  /// Whether it can be read at any time: a file, no stream.
  [[nodiscard]] bool is_file() const;

  /// Rows dropped so far.
  Index bad_rows() const { return bad_rows_; }

  /// Reads only these columns (0-based), in this order; the others may then hold anything.
  void select(std::vector<Index> columns);

  /// The next rows, max_rows unless the table ends before; none at the end. Throws at the end of a
  /// table that had no good row at all. Waits only for the lines it returns.
  Matrix next(Index max_rows);

  /// All rows not yet read.
  Table rest();

 private:
  class Lines;
  struct Line {
    std::string text;
    Index number;
  };

  void read_header();
  bool next_line(std::string_view& line);
  bool parse_plain_row(std::string_view line, std::vector<double>& values) const;
  std::optional<std::string> parse_row(std::string_view line, std::vector<double>& values);
  void reject_row(Index line, const std::string& problem);
  std::string column_problem(Index column, std::string_view field) const;

  ReadOptions options_;
  std::unique_ptr<Lines> lines_;
  std::vector<Line> looked_ahead_;  // lines that detection has read, last one first
  Index line_ = 0;                  // number of the line last returned, 1-based
  std::vector<std::string> names_;
  Index columns_ = 0;
  std::vector<Index> selected_;
  static constexpr std::size_t kNotSelected = static_cast<std::size_t>(-1);
  std::vector<std::size_t> place_;        // of each column, its place among those selected
  bool once_each_ = true;                 // no column is selected twice
  std::vector<std::string_view> fields_;  // of the current line
  Index good_rows_ = 0;
  Index bad_rows_ = 0;
  std::string first_problem_;
};

Table read_table(const std::string& path, const ReadOptions& options = {});

/// The 0-based column that a user calls by its header name or, if no name matches, by its 1-based
/// number. Throws DataError for an unknown or ambiguous one.
Index find_column(const std::vector<std::string>& names, Index columns,
                  const std::string& name_or_number);

}  // namespace ample::cli
