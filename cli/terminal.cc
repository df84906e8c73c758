#include "terminal.h"

#include <algorithm>
#include <unistd.h>

#include <fmt/format.h>

namespace ample::cli {
namespace {

constexpr const char* kClearLine = "\r\033[K";

}  // namespace

bool is_terminal(std::FILE* stream) { return ::isatty(::fileno(stream)) == 1; }

StatusLine::StatusLine() : visible_(is_terminal(stderr)) {}

StatusLine::~StatusLine() {
  if (visible_) std::fputs(kClearLine, stderr);
}

void StatusLine::show(std::string_view text) const {
  if (!visible_) return;
  fmt::print(stderr, "{}{}", kClearLine, text);
  std::fflush(stderr);
}

Progress::Progress(Index total) : total_(total) {}

void Progress::show(const BatchReport& report) {
  if (!line_.visible()) return;
  ++batches_;
  rows_ += report.rows;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const std::string of_total = total_ > 0 ? fmt::format("/{}", total_) : "";
  std::string gap;
  if (report.gap) gap = fmt::format(" · gap {:.3g}", *report.gap);
  if (report.gap && report.threshold) gap += fmt::format(" of {:.3g}", *report.threshold);
  if (!gap.empty()) gap += " nats";
  line_.show(fmt::format("batch {}{} · {} rows · M {} ({:+}){} · {:.0f} rows/s", batches_, of_total,
                         report.rows_seen, report.inducing,
                         report.inducing - report.inducing_before, gap,
                         static_cast<double>(rows_) / std::max(seconds, 1e-9)));
}

void print_pairs(const Pairs& pairs) {
  std::size_t width = 0;
  for (const auto& [name, value] : pairs) width = std::max(width, name.size());
  for (const auto& [name, value] : pairs) fmt::print("{:<{}}  {}\n", name, width, value);
}

}  // namespace ample::cli
