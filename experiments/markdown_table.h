// Rows of cells as a Markdown table, columns padded so that it can be read as it is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace ample::experiments {

class MarkdownTable {
 public:
  explicit MarkdownTable(std::vector<std::string> head) { rows_.push_back(std::move(head)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  [[nodiscard]] std::string text() const {
    std::vector<std::size_t> widths(rows_.front().size(), 3);
    for (const auto& row : rows_) {
      for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], length(row[c]));
    }
    std::string out;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      for (std::size_t c = 0; c < widths.size(); ++c) {
        const std::string cell = c < rows_[r].size() ? rows_[r][c] : "";
        out += "| " + cell + std::string(widths[c] - length(cell), ' ') + " ";
      }
      out += "|\n";
      if (r > 0) continue;
      for (const std::size_t width : widths) out += "|" + std::string(width + 2, '-');
      out += "|\n";
    }
    return out;
  }

 private:
  /// In characters, not bytes.
  static std::size_t length(const std::string& text) {
    return static_cast<std::size_t>(std::ranges::count_if(
        text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
  }
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace ample::experiments
