// The text form of kernels: a recursive-descent parser, and the printing of leaves.
//
//   sum      := product ('+' product)*
//   product  := factor ('*' factor)*
//   factor   := number | power
//   power    := atom (('^' | '**') integer)?
//   atom     := leaf | '(' sum ')'
//   leaf     := NAME ('(' (argument (',' argument)*)? ')')?
//   argument := (NAME '=')? value
//
// docs/kernels.md explains it. Nothing here knows a formula: parameters come from leaf_types().
// Kernel texts also arrive in model files from anywhere, so size, nesting and number of leaves are
// limited: every later walk over the tree is recursive, and printing it takes quadratic time.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ample/kernel.h"
#include "kernel_node.h"

namespace ample {
namespace {

// Room for an ARD parameter over thousands of dimensions, and far more leaves than can be fitted.
constexpr std::size_t kMaxLength = 100'000;
constexpr int kMaxNesting = 200;
constexpr int kMaxLeaves = 1000;

constexpr std::string_view kDims = "dims";

/// Names understood beside LeafType::name.
constexpr std::array<std::pair<std::string_view, LeafKind>, 9> kAliases = {{
    {"se", LeafKind::squared_exponential},
    {"rbf", LeafKind::squared_exponential},
    {"squared_exponential", LeafKind::squared_exponential},
    {"rq", LeafKind::rational_quadratic},
    {"rational_quadratic", LeafKind::rational_quadratic},
    {"arccos", LeafKind::arc_cosine},
    {"arc_cosine", LeafKind::arc_cosine},
    {"poly", LeafKind::polynomial},
    {"polynomial", LeafKind::polynomial},
}};

// The functions of <cctype> depend on the locale.
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return is_letter(c) || is_digit(c); }
bool starts_number(char c) { return is_digit(c) || c == '.' || c == '-'; }

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

/// A piece of the text for a message, which stays one short line whatever the piece.
std::string quoted(std::string_view piece) {
  constexpr std::size_t kLongest = 40;
  if (piece.size() <= kLongest) return fmt::format("'{}'", piece);
  return fmt::format("'{}...'", piece.substr(0, kLongest));
}

/// "variance, lengthscale or dims".
std::string alternatives(const std::vector<std::string_view>& names) {
  if (names.size() == 1) return std::string(names.front());
  return fmt::format("{} or {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

/// Levenshtein's distance: the fewest insertions, deletions and substitutions from a to b.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

/// " (did you mean lengthscale?)", or nothing when no candidate is near.
std::string suggestion(std::string_view name, const std::vector<std::string_view>& candidates) {
  std::size_t best = std::max<std::size_t>(1, name.size() / 3) + 1;
  std::string_view nearest;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest);
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  NodePtr parse() {
    if (text_.size() > kMaxLength) {
      fail(kMaxLength, fmt::format("the text is longer than {} characters", kMaxLength));
    }
    NodePtr kernel = parse_sum();
    if (here() != text_.size()) fail_expected("'+', '*' or the end of the text");
    return kernel;
  }

 private:
  /// A leaf on its way: defaults until an argument says otherwise.
  struct Draft {
    explicit Draft(const LeafType& leaf_type)
        : type(leaf_type),
          fields(type.fields.size(), Positive(1.0)),
          integer(type.integer_default) {}

    const LeafType& type;
    std::vector<Positive> fields;
    int integer;
    Dimensions dims;
    std::vector<std::string_view> given;  // names of the arguments so far
    bool by_name = false;                 // whether one of them was named
  };

  NodePtr parse_sum() {
    NodePtr sum = parse_product();
    while (accept('+')) sum = make_sum(std::move(sum), parse_product());
    return sum;
  }

  NodePtr parse_product() {
    const std::size_t start = here();
    std::optional<double> scale;
    std::vector<NodePtr> kernels;
    do {
      if (starts_number(peek())) {
        scale = scale.value_or(1.0) * parse_positive_number();
        if (peek() == '^' || at_double_star()) fail(here(), "only a kernel can have an exponent");
        if (peek() == '(' || is_letter(peek())) fail_expected("'*'");
      } else {
        kernels.push_back(parse_power());
      }
    } while (!at_double_star() && accept('*'));
    if (kernels.empty()) {
      fail(start,
           fmt::format("a number can only be a factor of a kernel; did you mean constant({})?",
                       number_to_string(scale.value_or(1.0))));
    }
    // From the left, as the nodes print themselves: 2 * a * b is (2 * a) * b.
    NodePtr product = kernels.front();
    if (scale) product = checked(start, [&] { return make_scaled(*scale, product); });
    for (std::size_t i = 1; i < kernels.size(); ++i) product = make_product(product, kernels[i]);
    return product;
  }

  NodePtr parse_power() {
    NodePtr base = parse_atom();
    if (at_double_star()) {
      position_ += 2;
    } else if (!accept('^')) {
      return base;
    }
    const std::size_t start = here();
    const int exponent = parse_integer<int>();
    return checked(start, [&] { return make_power(std::move(base), exponent); });
  }

  NodePtr parse_atom() {
    if (is_letter(peek())) return parse_leaf();
    const std::size_t open = here();
    if (!accept('(')) fail_expected("a kernel");
    if (++nesting_ > kMaxNesting) {
      fail(open, fmt::format("more than {} levels of brackets", kMaxNesting));
    }
    NodePtr sum = parse_sum();
    close(open, "'+', '*' or ')'");
    --nesting_;
    return sum;
  }

  NodePtr parse_leaf() {
    const std::size_t start = here();
    Draft leaf(parse_leaf_type());
    if (++num_leaves_ > kMaxLeaves) fail(start, fmt::format("more than {} kernels", kMaxLeaves));
    const std::size_t open = here();
    if (accept('(') && !accept(')')) {
      do {
        parse_argument(leaf);
      } while (accept(','));
      close(open, "',' or ')'");
    }
    return checked(start, [&] {
      return make_leaf(leaf.type.kind, std::move(leaf.fields), leaf.integer, std::move(leaf.dims));
    });
  }

  const LeafType& parse_leaf_type() {
    const std::size_t start = here();
    const std::string_view typed = take_word();
    const std::string name = lower_case(typed);
    std::vector<std::string_view> names;
    for (const LeafType& type : leaf_types()) {
      if (type.name == name) return type;
      names.push_back(type.name);
    }
    std::sort(names.begin(), names.end());
    std::vector<std::string_view> candidates = names;
    for (const auto& [alias, kind] : kAliases) {
      if (alias == name) return leaf_types()[static_cast<std::size_t>(kind)];
      candidates.push_back(alias);
    }
    fail(start, fmt::format("unknown kernel {}; expected one of {}{}", quoted(typed),
                            fmt::join(names, ", "), suggestion(name, candidates)));
  }

  void parse_argument(Draft& leaf) {
    const LeafType& type = leaf.type;
    const std::size_t start = here();
    const std::string_view name = parse_argument_name(leaf);
    if (std::find(leaf.given.begin(), leaf.given.end(), name) != leaf.given.end()) {
      fail(start, fmt::format("{} of {} is given twice", name, type.name));
    }
    leaf.given.push_back(name);

    if (name == kDims) {
      leaf.dims = parse_list<Index>([this] { return parse_integer<Index>(); });
    } else if (name == type.integer_name) {
      const std::size_t value_start = here();
      leaf.integer = parse_integer<int>();
      if (leaf.integer < type.integer_min || leaf.integer > type.integer_max) {
        fail(value_start, fmt::format("{} of {} must be from {} to {}, got {}", name, type.name,
                                      type.integer_min, type.integer_max, leaf.integer));
      }
    } else {
      for (std::size_t i = 0; i < type.fields.size(); ++i) {
        if (type.fields[i].name == name) leaf.fields[i] = parse_positive(type, type.fields[i]);
      }
    }
  }

  /// The name in front of '=', or the name that the position stands for.
  std::string_view parse_argument_name(Draft& leaf) {
    const LeafType& type = leaf.type;
    std::vector<std::string_view> names;
    names.reserve(type.fields.size());
    for (const LeafType::Field& field : type.fields) names.push_back(field.name);
    const std::size_t start = here();

    if (!is_letter(peek())) {
      const std::size_t index = leaf.given.size();
      if (!starts_number(peek()) && peek() != '[') fail_expected("a value or a name");
      if (leaf.by_name) fail(start, "a value without a name must stand before those with one");
      if (index == names.size()) {
        fail(start, fmt::format("too many values without a name; {} takes {} ({})", type.name,
                                names.size(), fmt::join(names, ", ")));
      }
      return names[index];
    }

    leaf.by_name = true;
    if (!type.integer_name.empty()) names.push_back(type.integer_name);
    if (type.has_dims) names.push_back(kDims);
    const std::string_view typed = take_word();
    const std::string name = lower_case(typed);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      fail(start, fmt::format("unknown parameter {} of {}; expected {}{}", quoted(typed), type.name,
                              alternatives(names), suggestion(name, names)));
    }
    if (!accept('=')) fail_expected("'='");
    return *found;
  }

  /// number | '[' number, … ']', then bounds and the fixed flag.
  Positive parse_positive(const LeafType& type, const LeafType::Field& field) {
    Positive parameter(1.0);
    if (peek() != '[') {
      parameter.values = {parse_positive_number()};
    } else if (field.per_dimension) {
      parameter.values = parse_list<double>([this] { return parse_positive_number(); });
    } else {
      fail(here(), fmt::format("{} of {} is one number, not a list", field.name, type.name));
    }
    if (accept_keyword("in")) {
      const std::size_t start = here();
      const auto bounds = parse_list<double>([this] { return parse_positive_number(); });
      if (bounds.size() != 2) fail(start, "bounds are written as [lower, upper]");
      parameter = parameter.within(bounds[0], bounds[1]);
    }
    return accept_keyword("fixed") ? parameter.fixed() : parameter;
  }

  template <class T, class ParseItem>
  std::vector<T> parse_list(ParseItem parse_item) {
    const std::size_t open = here();
    if (!accept('[')) fail_expected("'['");
    std::vector<T> items;
    do {
      items.push_back(parse_item());
    } while (accept(','));
    close(open, "',' or ']'");
    return items;
  }

  double parse_positive_number() {
    const std::size_t start = here();
    const auto value = parse_number<double>("a number");
    if (!(value > 0) || !std::isfinite(value)) {
      fail(start, fmt::format("a number must be positive and finite, got {}",
                              quoted(text_.substr(start, position_ - start))));
    }
    return value;
  }

  template <class Integer>
  Integer parse_integer() {
    const std::size_t start = here();
    const auto value = parse_number<Integer>("an integer");
    // 2.5 and 2e3 begin like an integer.
    if (position_ < text_.size() && (text_[position_] == '.' || is_letter(text_[position_]))) {
      position_ = start;
      fail_expected("an integer");
    }
    return value;
  }

  /// std::from_chars reads '.' as the decimal point in every locale.
  template <class Number>
  Number parse_number(std::string_view expected) {
    const std::size_t start = here();
    Number value{};
    const char* begin = text_.data() + start;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::invalid_argument) fail_expected(expected);
    position_ += static_cast<std::size_t>(end - begin);
    if (error == std::errc::result_out_of_range) {
      fail(start,
           fmt::format("{} is out of range", quoted(text_.substr(start, position_ - start))));
    }
    return value;
  }

  // ---- Characters and words -------------------------------------------------------------------

  /// The position of the next character that is not white space.
  std::size_t here() {
    while (position_ < text_.size() && is_space(text_[position_])) ++position_;
    return position_;
  }

  /// That character; '\0', which is no part of the grammar, at the end.
  char peek() { return here() < text_.size() ? text_[position_] : '\0'; }

  bool accept(char c) {
    if (peek() != c) return false;
    ++position_;
    return true;
  }

  bool at_double_star() { return peek() == '*' && text_.substr(position_, 2) == "**"; }

  std::string_view take_word() {
    const std::size_t start = here();
    while (position_ < text_.size() && is_word(text_[position_])) ++position_;
    return text_.substr(start, position_ - start);
  }

  bool accept_keyword(std::string_view keyword) {
    const std::size_t start = here();
    if (lower_case(take_word()) == keyword) return true;
    position_ = start;
    return false;
  }

  /// The bracket that closes the one at `open`; `expected` says what could stand there.
  void close(std::size_t open, std::string_view expected) {
    if (accept(text_[open] == '(' ? ')' : ']')) return;
    fail_expected(fmt::format("{} for the '{}' of column {}", expected, text_[open], open + 1));
  }

  // ---- Errors ---------------------------------------------------------------------------------

  [[noreturn]] static void fail(std::size_t position, std::string_view message) {
    throw std::invalid_argument(fmt::format("kernel text, column {}: {}", position + 1, message));
  }

  [[noreturn]] void fail_expected(std::string_view expected) {
    fail(here(), fmt::format("expected {}, got {}", expected, describe_next()));
  }

  std::string describe_next() {
    const char c = peek();
    if (position_ == text_.size()) return "the end of the text";
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

  /// What a node's factory finds wrong gets the column of the text it was made from.
  template <class Make>
  static NodePtr checked(std::size_t position, Make make) {
    try {
      return make();
    } catch (const std::invalid_argument& error) {
      fail(position, error.what());
    }
  }

  std::string_view text_;
  std::size_t position_ = 0;
  int nesting_ = 0;
  int num_leaves_ = 0;
};

std::string positive_to_string(const Positive& parameter) {
  std::vector<std::string> values;
  values.reserve(parameter.values.size());
  for (const double value : parameter.values) values.push_back(number_to_string(value));
  std::string text =
      values.size() == 1 ? values.front() : fmt::format("[{}]", fmt::join(values, ", "));
  if (parameter.lower != Positive::kDefaultLower || parameter.upper != Positive::kDefaultUpper) {
    text += fmt::format(" in [{}, {}]", number_to_string(parameter.lower),
                        number_to_string(parameter.upper));
  }
  return parameter.is_fixed ? text + " fixed" : text;
}

}  // namespace

Kernel Kernel::parse(std::string_view text) { return Kernel(Parser(text).parse()); }

std::string leaf_to_string(const LeafParts& leaf) {
  const LeafType& type = leaf_types()[static_cast<std::size_t>(leaf.kind)];
  std::vector<std::string> arguments;
  arguments.reserve(type.fields.size());
  for (std::size_t i = 0; i < type.fields.size(); ++i) {
    arguments.push_back(
        fmt::format("{}={}", type.fields[i].name, positive_to_string((*leaf.fields)[i])));
  }
  if (!type.integer_name.empty()) {
    arguments.push_back(fmt::format("{}={}", type.integer_name, leaf.integer));
  }
  if (!leaf.dims->empty()) {
    arguments.push_back(fmt::format("{}=[{}]", kDims, fmt::join(*leaf.dims, ", ")));
  }
  return fmt::format("{}({})", type.name, fmt::join(arguments, ", "));
}

std::string number_to_string(double value) {
  std::array<char, 32> buffer{};  // the longest shortest form has 24 characters
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end};
}

}  // namespace ample
