// Reads a kernel's text piece by piece: numbers, words and brackets. White space is free between
// them. What does not fit is a std::invalid_argument that gives the column.
#pragma once

#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "kernel_words.h"

namespace ample {

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  /// The position of the next character that is not white space.
  std::size_t here() {
    while (position_ < text_.size() && is_space(text_[position_])) ++position_;
    return position_;
  }
  [[nodiscard]] bool at_end() { return here() == text_.size(); }

  /// The next character; '\0', which is no part of the grammar, at the end.
  char peek() { return at_end() ? '\0' : text_[position_]; }
  bool at_double_star() { return peek() == '*' && text_.substr(position_, 2) == "**"; }

  /// Takes the next character, or two stars, or a word, if it is this one.
  bool accept(char c);
  bool accept_double_star();
  bool accept_keyword(std::string_view keyword);

  std::string_view take_word();
  double take_positive_number();
  template <class Integer>
  Integer take_integer();

  /// '[' item, … ']'.
  template <class T, class TakeItem>
  std::vector<T> take_list(TakeItem take_item);

  /// The bracket that closes the one at `open`; `expected` says what could stand there.
  void close(std::size_t open, std::string_view expected);

  [[noreturn]] static void fail(std::size_t position, std::string_view message);
  [[noreturn]] void fail_expected(std::string_view expected);

 private:
  template <class Number>
  Number take_number(std::string_view expected);
  std::string describe_next();

  std::string_view text_;
  std::size_t position_ = 0;
};

/// std::from_chars reads '.' as the decimal point in every locale.
template <class Number>
Number Scanner::take_number(std::string_view expected) {
  const std::size_t start = here();
  Number value{};
  const char* begin = text_.data() + start;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  if (error == std::errc::invalid_argument) fail_expected(expected);
  position_ += static_cast<std::size_t>(end - begin);
  if (error == std::errc::result_out_of_range) {
    fail(start, fmt::format("{} is out of range", quoted(text_.substr(start, position_ - start))));
  }
  return value;
}

template <class Integer>
Integer Scanner::take_integer() {
  const std::size_t start = here();
  const auto value = take_number<Integer>("an integer");
  // 2.5 and 2e3 begin like an integer.
  if (position_ < text_.size() && (text_[position_] == '.' || is_letter(text_[position_]))) {
    position_ = start;
    fail_expected("an integer");
  }
  return value;
}

template <class T, class TakeItem>
std::vector<T> Scanner::take_list(TakeItem take_item) {
  const std::size_t open = here();
  if (!accept('[')) fail_expected("'['");
  std::vector<T> items;
  do {
    items.push_back(take_item());
  } while (accept(','));
  close(open, "',' or ']'");
  return items;
}

}  // namespace ample
