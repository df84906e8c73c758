#include "table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>

#include <fast_float/fast_float.h>
#include <fmt/format.h>

#include "encoding.h"
#include "input.h"
#include "unpacked_input.h"
#include "visible_text.h"

namespace ample::cli {
namespace {

constexpr std::size_t kBlock = 1 << 18;

// A table row is far shorter; without a limit, a binary file without line ends fills the memory.
constexpr std::size_t kLongestLine = std::size_t{16} << 20;

constexpr const char* kSkipHint = " (use --skip-bad-rows to drop such rows)";

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// Text from a file, fit for a message of one line.
std::string shown(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  return visible(to_utf8(text.substr(0, 4 * kLongest)), kLongest);
}

// The text of each field, without surrounding blanks and quotes. Doubled quotes stay doubled.
void split(std::string_view line, char delimiter, std::vector<std::string_view>& fields) {
  fields.clear();
  const char* p = line.data();
  const char* const end = p + line.size();
  const bool any_blanks = delimiter == ' ';
  const auto ends_field = [&](char c) { return c == delimiter || (any_blanks && is_blank(c)); };
  const auto is_padding = [&](char c) { return is_blank(c) && c != delimiter; };
  for (;;) {
    while (p != end && (is_padding(*p) || (any_blanks && is_blank(*p)))) ++p;
    if (any_blanks && p == end) return;

    const char* first = p;
    const char* last = nullptr;
    if (p != end && *p == '"') {
      const char* close = p + 1;
      while (close != end && (*close != '"' || (close + 1 != end && close[1] == '"'))) {
        close += *close == '"' ? 2 : 1;
      }
      const char* after = close == end ? end : close + 1;
      while (after != end && is_padding(*after)) ++after;
      if (close != end && (after == end || ends_field(*after))) {
        first = p + 1;
        last = close;
        p = after;
      }
    }
    if (last == nullptr) {  // not quoted, or not properly: then the quotes belong to the text
      while (p != end && !ends_field(*p)) ++p;
      last = p;
      while (last != first && is_padding(last[-1])) --last;
    }
    fields.emplace_back(first, static_cast<std::size_t>(last - first));
    if (p == end) return;
    ++p;
  }
}

// A tab, else a semicolon, else a comma that stands outside quotes: in this order, since a comma
// may also be part of a name or a decimal mark.
char detect_delimiter(std::string_view line) {
  bool quoted = false;
  bool tab = false;
  bool semicolon = false;
  bool comma = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    tab = tab || c == '\t';
    semicolon = semicolon || c == ';';
    comma = comma || c == ',';
  }
  return tab ? '\t' : semicolon ? ';' : comma ? ',' : ' ';
}

// Whether the text is a number, be it infinite or NaN.
bool parse_number(std::string_view text, double& value) {
  // Like std::from_chars, fast_float does not take a plus sign.
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto result = fast_float::from_chars(begin, end, value);
  return result.ptr == end && result.ec != std::errc::invalid_argument;
}

bool is_missing(std::string_view text) {
  if (text.size() > 4) return false;
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower.empty() || lower == "na" || lower == "n/a" || lower == "nan" || lower == "null";
}

bool is_header(const std::vector<std::string_view>& fields) {
  return std::any_of(fields.begin(), fields.end(), [](std::string_view field) {
    double ignored = 0;
    return !is_missing(field) && !parse_number(field, ignored);
  });
}

std::string header_name(std::string_view field) {
  std::string name;
  for (std::size_t i = 0; i < field.size(); ++i) {
    name += field[i];
    if (field[i] == '"' && i + 1 < field.size() && field[i + 1] == '"') ++i;
  }
  return to_utf8(name);
}

}  // namespace

class TableReader::Lines {
 public:
  explicit Lines(std::unique_ptr<Input> input) : bytes_(std::move(input)), buffer_(kBlock) {}

  const Input& input() const { return bytes_.input(); }
  const std::string& name() const { return input().name(); }
  Index number() const { return number_; }

  // The next line without its end; valid until the next call.
  bool next(std::string_view& line) {
    std::size_t searched = begin_;
    for (;;) {
      if (searched != end_) {
        const void* newline = std::memchr(buffer_.data() + searched, '\n', end_ - searched);
        if (newline != nullptr) {
          const char* const first = buffer_.data() + begin_;
          take(line, static_cast<std::size_t>(static_cast<const char*>(newline) - first));
          ++begin_;
          return true;
        }
      }
      make_room();
      searched = end_;
      const std::size_t count = bytes_.read(buffer_.data() + end_, buffer_.size() - end_);
      end_ += count;
      if (count == 0) {
        if (begin_ == end_) return false;
        take(line, end_ - begin_);
        return true;
      }
    }
  }

 private:
  void take(std::string_view& line, std::size_t size) {
    line = {buffer_.data() + begin_, size};
    begin_ += size;
    while (line.ends_with('\r')) line.remove_suffix(1);
    if (++number_ == 1) {
      if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
      if (line.starts_with("\xFF\xFE") || line.starts_with("\xFE\xFF")) {
        throw DataError(fmt::format("{}: text in UTF-16, expected UTF-8", name()));
      }
    }
  }

  // Only called when what is left is the start of one line.
  void make_room() {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    if (end_ < buffer_.size()) return;
    if (end_ >= kLongestLine) {
      throw DataError(fmt::format("{}:{}: a line of more than {} MiB, expected a table as text",
                                  name(), number_ + 1, kLongestLine >> 20));
    }
    buffer_.resize(2 * buffer_.size());
  }

  UnpackedInput bytes_;
  std::vector<char> buffer_;  // [begin_, end_) are still to be used
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  Index number_ = 0;
};

TableReader::TableReader(const std::string& path, const ReadOptions& options)
    : options_(options), lines_(std::make_unique<Lines>(std::make_unique<Input>(path))) {
  read_header();
}

TableReader::TableReader(int descriptor, const std::string& name, const ReadOptions& options)
    : options_(options),
      lines_(std::make_unique<Lines>(std::make_unique<Input>(descriptor, name))) {
  read_header();
}

TableReader::TableReader(TableReader&&) noexcept = default;
TableReader& TableReader::operator=(TableReader&&) noexcept = default;
TableReader::~TableReader() = default;

bool TableReader::is_file() const { return lines_->input().is_file(); }

void TableReader::read_header() {
  std::string_view line;
  if (!next_line(line)) {
    throw DataError(fmt::format("{}: no rows, expected a table of numbers", lines_->name()));
  }
  if (options_.delimiter == '\0') options_.delimiter = detect_delimiter(line);
  split(line, options_.delimiter, fields_);
  const auto ends_with_empty = [this] { return fields_.size() > 1 && fields_.back().empty(); };

  if (options_.header.value_or(is_header(fields_))) {
    if (ends_with_empty()) fields_.pop_back();
    for (const std::string_view field : fields_) names_.push_back(header_name(field));
    columns_ = static_cast<Index>(fields_.size());
  } else {
    columns_ = static_cast<Index>(fields_.size());
    looked_ahead_ = {{std::string(line), line_}};
    // "1,2," is a row that lacks its last value, unless the next one ends in the same way: then
    // lines of this file end with a delimiter.
    if (ends_with_empty() && next_line(line)) {
      split(line, options_.delimiter, fields_);
      looked_ahead_.insert(looked_ahead_.begin(), {std::string(line), line_});
      if (ends_with_empty() && static_cast<Index>(fields_.size()) == columns_) --columns_;
    }
  }
  std::vector<Index> all(static_cast<std::size_t>(columns_));
  std::iota(all.begin(), all.end(), Index{0});
  select(std::move(all));
}

void TableReader::select(std::vector<Index> columns) {
  for (const Index column : columns) {
    if (column < 0 || column >= columns_) {
      throw std::invalid_argument(
          fmt::format("select: column {}, expected 0 to {}", column, columns_ - 1));
    }
  }
  selected_ = std::move(columns);
  place_.assign(static_cast<std::size_t>(columns_), kNotSelected);
  once_each_ = true;
  for (std::size_t i = 0; i < selected_.size(); ++i) {
    std::size_t& place = place_[static_cast<std::size_t>(selected_[i])];
    once_each_ = once_each_ && place == kNotSelected;
    place = i;
  }
}

// The next line that is neither blank nor a comment.
bool TableReader::next_line(std::string_view& line) {
  std::vector<Index> empty_lines;
  while (lines_->next(line)) {
    line_ = lines_->number();
    const std::size_t text = line.find_first_not_of(" \t");
    if (text == std::string_view::npos) {
      const bool row_of_empty_fields = options_.delimiter == '\t' && !line.empty() && columns_ > 1;
      if (row_of_empty_fields) return true;
      if (columns_ == 1) empty_lines.push_back(line_);
    } else if (line[text] != '#') {
      // In a table of one column an empty line between others is a row without its value.
      for (const Index empty : empty_lines) reject_row(empty, column_problem(0, ""));
      return true;
    }
  }
  return false;
}

// Appends the values of a row without quotes and problems, which is nearly every row of nearly
// every file. False, with nothing appended, for any other row: parse_row then says what is wrong
// with it.
bool TableReader::parse_plain_row(std::string_view line, std::vector<double>& values) const {
  if (!once_each_) return false;
  const char delimiter = options_.delimiter;
  const bool any_blanks = delimiter == ' ';
  const char* p = line.data();
  const char* const end = p + line.size();
  const auto skip_blanks = [&] {
    while (p != end && is_blank(*p) && (any_blanks || *p != delimiter)) ++p;
  };
  const std::size_t start = values.size();
  values.resize(start + selected_.size());
  double* const row = values.data() + start;
  const auto refuse = [&] {
    values.resize(start);
    return false;
  };
  for (std::size_t column = 0; column < place_.size(); ++column) {
    if (column > 0 && !any_blanks) {
      if (p == end || *p != delimiter) return refuse();
      ++p;
    }
    skip_blanks();
    if (p == end || *p == '"') return refuse();
    if (place_[column] == kNotSelected) {
      while (p != end && *p != delimiter && !(any_blanks && is_blank(*p))) ++p;
      continue;
    }
    double& value = row[place_[column]];
    const auto result = fast_float::from_chars(p, end, value);
    const bool separated = result.ptr == end || *result.ptr == delimiter || is_blank(*result.ptr);
    if (result.ec != std::errc() || !separated || !std::isfinite(value)) return refuse();
    p = result.ptr;
    skip_blanks();
  }
  return p == end ? true : refuse();
}

// Appends the row's values, or says what is wrong with it and appends nothing.
std::optional<std::string> TableReader::parse_row(std::string_view line,
                                                  std::vector<double>& values) {
  split(line, options_.delimiter, fields_);
  const bool ends_with_delimiter =
      static_cast<Index>(fields_.size()) == columns_ + 1 && fields_.back().empty();
  if (ends_with_delimiter) fields_.pop_back();
  if (static_cast<Index>(fields_.size()) != columns_) {
    return fmt::format("{} field{}, expected {}", fields_.size(), fields_.size() == 1 ? "" : "s",
                       columns_);
  }
  const std::size_t row_start = values.size();
  for (const Index column : selected_) {
    const std::string_view field = fields_[static_cast<std::size_t>(column)];
    double value = 0;
    if (!parse_number(field, value) || !std::isfinite(value)) {
      values.resize(row_start);
      return column_problem(column, field);
    }
    values.push_back(value);
  }
  return std::nullopt;
}

void TableReader::reject_row(Index line, const std::string& problem) {
  const std::string message = fmt::format("{}:{}: {}", lines_->name(), line, problem);
  if (!options_.skip_bad_rows) throw DataError(message + kSkipHint);
  if (bad_rows_++ == 0) first_problem_ = message;
}

std::string TableReader::column_problem(Index column, std::string_view field) const {
  const std::string name = names_.empty() ? "" : names_[static_cast<std::size_t>(column)];
  return fmt::format("column {} {}, expected a finite number",
                     name.empty() ? std::to_string(column + 1) : "'" + shown(name) + "'",
                     field.empty() ? "is empty" : "holds '" + shown(field) + "'");
}

Matrix TableReader::next(Index max_rows) {
  if (max_rows < 1) {
    throw std::invalid_argument(fmt::format("next: {} rows, expected at least 1", max_rows));
  }
  std::vector<double> values;  // row by row
  Index rows = 0;
  while (rows < max_rows) {
    std::string_view line;
    Line ahead;
    if (!looked_ahead_.empty()) {
      ahead = std::move(looked_ahead_.back());
      looked_ahead_.pop_back();
      line = ahead.text;
      line_ = ahead.number;
    } else if (!next_line(line)) {
      break;
    }
    if (parse_plain_row(line, values)) {
      ++rows;
    } else if (const auto problem = parse_row(line, values)) {
      reject_row(line_, *problem);
    } else {
      ++rows;
    }
  }
  good_rows_ += rows;
  if (good_rows_ == 0) {
    throw DataError(bad_rows_ == 0
                        ? fmt::format("{}: no rows after the header", lines_->name())
                        : fmt::format("{}; no good row is left of {}", first_problem_, bad_rows_));
  }
  using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const RowMajor>(values.data(), rows, static_cast<Index>(selected_.size()));
}

Table TableReader::rest() {
  Table table;
  table.values = next(std::numeric_limits<Index>::max());
  table.bad_rows = bad_rows_;
  if (names_.empty()) return table;
  for (const Index column : selected_) {
    table.names.push_back(names_[static_cast<std::size_t>(column)]);
  }
  return table;
}

Table read_table(const std::string& path, const ReadOptions& options) {
  return TableReader(path, options).rest();
}

Index find_column(const std::vector<std::string>& names, Index columns,
                  const std::string& name_or_number) {
  const auto found = std::find(names.begin(), names.end(), name_or_number);
  if (found != names.end() && !name_or_number.empty()) {
    const auto again = std::find(found + 1, names.end(), name_or_number);
    if (again != names.end()) {
      throw DataError(fmt::format("column '{}' is both column {} and {}, expected a unique name",
                                  shown(name_or_number), found - names.begin() + 1,
                                  again - names.begin() + 1));
    }
    return found - names.begin();
  }

  Index number = 0;
  const char* const end = name_or_number.data() + name_or_number.size();
  const auto parsed = std::from_chars(name_or_number.data(), end, number);
  if (parsed.ec == std::errc() && parsed.ptr == end && number >= 1 && number <= columns) {
    return number - 1;
  }

  constexpr std::size_t kListed = 8;
  std::string expected = fmt::format("a number from 1 to {}", columns);
  if (!names.empty()) {
    std::string list;
    for (std::size_t i = 0; i < std::min(names.size(), kListed); ++i) {
      list += fmt::format("{}'{}'", i == 0 ? "" : ", ", shown(names[i]));
    }
    if (names.size() > kListed) list += ", ...";
    expected = fmt::format("one of {} or {}", list, expected);
  }
  throw DataError(fmt::format("unknown column '{}', expected {}", shown(name_or_number), expected));
}

}  // namespace ample::cli
