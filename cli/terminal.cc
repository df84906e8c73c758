#include "terminal.h"

#include <algorithm>
#include <unistd.h>

#include <fmt/format.h>

namespace ample::cli {
namespace {

constexpr const char* kClearLine = "\r\033[K";

}  // namespace

bool is_terminal(std::FILE* stream) { return ::isatty(::fileno(stream)) == 1; }

Progress::Progress(Index total) : visible_(is_terminal(stderr)), total_(total) {}

Progress::~Progress() {
  if (visible_) std::fputs(kClearLine, stderr);
}

void Progress::show(const BatchReport& report) {
  if (!visible_) return;
  ++batches_;
  rows_ += report.rows;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const std::string of_total = total_ > 0 ? fmt::format("/{}", total_) : "";
  std::string gap;
  if (report.gap) gap = fmt::format(" · gap {:.3g}", *report.gap);
  if (report.gap && report.threshold) gap += fmt::format(" of {:.3g}", *report.threshold);
  if (!gap.empty()) gap += " nats";
  fmt::print(stderr, "{}batch {}{} · {} rows · M {} ({:+}){} · {:.0f} rows/s", kClearLine, batches_,
             of_total, report.rows_seen, report.inducing, report.inducing - report.inducing_before,
             gap, static_cast<double>(rows_) / std::max(seconds, 1e-9));
  std::fflush(stderr);
}

void print_pairs(const Pairs& pairs) {
  std::size_t width = 0;
  for (const auto& [name, value] : pairs) width = std::max(width, name.size());
  for (const auto& [name, value] : pairs) fmt::print("{:<{}}  {}\n", name, width, value);
}

}  // namespace ample::cli
