#include "terminal.h"

#include <algorithm>
#include <unistd.h>

#include <fmt/format.h>

#include "diagnostics.h"
#include "output.h"
#include "visible_text.h"

namespace ample::cli {
namespace {

constexpr const char* kClearLine = "\r\033[K";

}  // namespace

bool is_terminal(std::FILE* stream) { return ::isatty(::fileno(stream)) == 1; }

StatusLine::StatusLine() : visible_(is_terminal(stderr)) {}

StatusLine::~StatusLine() {
  if (visible_) write_to_stderr(kClearLine);
}

void StatusLine::show(std::string_view text) const {
  if (!visible_) return;
  write_to_stderr(fmt::format("{}{}", kClearLine, text));
}

Progress::Progress(Index total) : total_(total) {}

void Progress::show(const BatchReport& report) {
  if (!line_.visible()) return;
  ++batches_;
  rows_ += report.rows;
  const std::string of_total = total_ > 0 ? fmt::format("/{}", total_) : "";
  std::string gap;
  if (report.gap) gap = fmt::format(" · gap {:.3g}", *report.gap);
  if (report.gap && report.threshold) gap += fmt::format(" of {:.3g}", *report.threshold);
  if (!gap.empty()) gap += " nats";
  line_.show(fmt::format("batch {}{} · {} rows · M {} ({:+}){} · {:.0f} rows/s", batches_, of_total,
                         report.rows_seen, report.inducing,
                         report.inducing - report.inducing_before, gap,
                         static_cast<double>(rows_) / std::max(watch_.seconds(), 1e-9)));
}

void print_pairs(const Pairs& pairs) {
  std::size_t width = 0;
  for (const auto& [name, value] : pairs) width = std::max(width, visible(name).size());
  for (const auto& [name, value] : pairs) {
    print("{:<{}}  {}\n", visible(name), width, visible(value));
  }
}

}  // namespace ample::cli
