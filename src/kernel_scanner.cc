#include "kernel_scanner.h"

#include <cmath>
#include <stdexcept>
#include <string>

namespace ample {

bool Scanner::accept(char c) {
  if (peek() != c) return false;
  ++position_;
  return true;
}

bool Scanner::accept_double_star() {
  if (!at_double_star()) return false;
  position_ += 2;
  return true;
}

bool Scanner::accept_keyword(std::string_view keyword) {
  const std::size_t start = here();
  if (lower_case(take_word()) == keyword) return true;
  position_ = start;
  return false;
}

std::string_view Scanner::take_word() {
  const std::size_t start = here();
  while (position_ < text_.size() && is_word(text_[position_])) ++position_;
  return text_.substr(start, position_ - start);
}

double Scanner::take_positive_number() {
  const std::size_t start = here();
  const auto value = take_number<double>("a number");
  if (!(value > 0) || !std::isfinite(value)) {
    fail(start, fmt::format("a number must be positive and finite, got {}",
                            quoted(text_.substr(start, position_ - start))));
  }
  return value;
}

void Scanner::close(std::size_t open, std::string_view expected) {
  if (accept(text_[open] == '(' ? ')' : ']')) return;
  fail_expected(fmt::format("{} for the '{}' of column {}", expected, text_[open], open + 1));
}

void Scanner::fail(std::size_t position, std::string_view message) {
  throw std::invalid_argument(fmt::format("kernel text, column {}: {}", position + 1, message));
}

void Scanner::fail_expected(std::string_view expected) {
  fail(here(), fmt::format("expected {}, got {}", expected, describe_next()));
}

std::string Scanner::describe_next() {
  if (at_end()) return "the end of the text";
  const char c = peek();
  const auto is_part = [](char part) { return is_word(part) || part == '.'; };
  if (is_part(c)) {
    std::size_t end = position_;
    while (end < text_.size() && is_part(text_[end])) ++end;
    return quoted(text_.substr(position_, end - position_));
  }
  // Half a character of UTF-8 or a control character would spoil the message.
  if (c < ' ' || c > '~') return fmt::format("byte 0x{:02X}", static_cast<unsigned char>(c));
  return quoted(text_.substr(position_, 1));
}

}  // namespace ample
