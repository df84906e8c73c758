// Tables: numbers with everything that people and programs put between them.
#include <cmath>
#include <fstream>

#include <fmt/format.h>

#include "adversary.h"
#include "errors.h"
#include "table.h"

namespace ample::adversary {
namespace {

std::string some_field(Dice& dice) {
  static const std::vector<std::string> kOdd{
      "",       "NA",  "nan", "inf", "-inf", "x",  "\"1\"", "\"a,b\"", "1e",  "0x10", "1e999",
      "1e-999", "--1", "+1",  " 2 ", "1,5",  "\"", "#",     "\t",      "1_0", "."};
  if (dice.one_in(12)) return dice.one_of(kOdd);
  return fmt::format("{}", std::ldexp(static_cast<double>(dice.below(1 << 20)) - (1 << 19),
                                      static_cast<int>(dice.below(60)) - 30));
}

std::string some_table(Dice& dice) {
  static const std::vector<std::string> kDelimiters{",", ";", "\t", " ", "  "};
  static const std::vector<std::string> kEnds{"\n", "\n", "\n", "\r\n", "\n\n", ",\n"};
  const std::string delimiter = dice.one_of(kDelimiters);
  const std::size_t columns = 1 + dice.below(5);
  std::string text = dice.one_in(8) ? "\xEF\xBB\xBF" : "";
  if (dice.one_in(2)) {
    for (std::size_t c = 0; c < columns; ++c) {
      text += fmt::format("{}name{}", c == 0 ? "" : delimiter, c);
    }
    text += '\n';
  }
  for (std::size_t row = dice.below(20); row > 0; --row) {
    if (dice.one_in(20)) text += "# a comment\n";
    const std::size_t fields = dice.one_in(30) ? dice.below(8) : columns;
    for (std::size_t c = 0; c < fields; ++c) text += (c == 0 ? "" : delimiter) + some_field(dice);
    text += dice.one_of(kEnds);
  }
  return dice.one_in(3) ? altered(text, dice) : text;
}

Index rows_read(const std::string& path, bool skip, Index at_a_time) {
  cli::TableReader reader(path, {.skip_bad_rows = skip});
  if (!reader.names().empty() && static_cast<Index>(reader.names().size()) != reader.columns()) {
    throw Broken{"names and columns differ in number"};
  }
  Index rows = 0;
  for (;;) {
    const Matrix part = reader.next(at_a_time);
    if (part.rows() == 0) return rows;
    if (part.cols() != reader.columns() || part.rows() > at_a_time || !part.allFinite()) {
      throw Broken{"rows that are not what was promised"};
    }
    rows += part.rows();
  }
}

}  // namespace

void attack_table(std::uint64_t seed, const std::filesystem::path& folder) {
  Dice dice(seed);
  const std::string path = (folder / "table.csv").string();
  std::ofstream(path, std::ios::binary) << some_table(dice);
  Index good = -1;
  try {
    good = rows_read(path, true, 1'000);
    if (rows_read(path, true, 1 + static_cast<Index>(dice.below(3))) != good) {
      throw Broken{"the number of rows depends on how many are read at a time"};
    }
  } catch (const cli::DataError&) {
  }
  try {
    if (rows_read(path, false, 1'000) != good) throw Broken{"rows were dropped unasked"};
  } catch (const cli::DataError&) {
  }
}

}  // namespace ample::adversary
