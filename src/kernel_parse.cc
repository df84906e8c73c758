// The text form of kernels, read: a recursive-descent parser.
//
//   sum      := product ('+' product)*
//   product  := factor ('*' factor)*
//   factor   := number | power
//   power    := atom (('^' | '**') integer)?
//   atom     := leaf | '(' sum ')'
//   leaf     := NAME ('(' (argument (',' argument)*)? ')')?
//   argument := (NAME '=')? value
//
// docs/kernels.md explains it. Nothing here knows a formula: names and parameters are those of
// kernel_types.h. Kernel texts also arrive in model files from anywhere, so size, nesting and
// number of leaves are limited: every later walk over the tree is recursive, and printing it takes
// quadratic time.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ample/kernel.h"
#include "kernel_scanner.h"
#include "kernel_types.h"

namespace ample {
namespace {

// Room for an ARD parameter over thousands of dimensions, and far more leaves than can be fitted.
constexpr std::size_t kMaxLength = 100'000;
constexpr int kMaxNesting = 200;
constexpr int kMaxLeaves = 1000;

/// A leaf on its way: initial values until an argument says otherwise.
struct Draft {
  explicit Draft(const LeafType& leaf_type) : type(leaf_type) {
    for (const auto& field : signature().fields) fields.push_back(field.initial);
    if (signature().option) option = signature().option->initial;
  }

  [[nodiscard]] const KernelSignature& signature() const { return type.signature; }
  /// The names of its positive parameters.
  [[nodiscard]] std::vector<std::string_view> names() const {
    std::vector<std::string_view> all;
    all.reserve(signature().fields.size());
    for (const auto& field : signature().fields) all.push_back(field.name);
    return all;
  }

  const LeafType& type;
  std::vector<Positive> fields;
  int option = 0;
  Dimensions dims;
  std::vector<std::string_view> given;  // names of the arguments so far
  bool by_name = false;                 // whether one of them was named
};

class Parser {
 public:
  explicit Parser(std::string_view text) : length_(text.size()), in_(text) {}

  NodePtr parse() {
    if (length_ > kMaxLength) {
      Scanner::fail(kMaxLength, fmt::format("the text is longer than {} characters", kMaxLength));
    }
    NodePtr kernel = parse_sum();
    if (!in_.at_end()) in_.fail_expected("'+', '*' or the end of the text");
    return kernel;
  }

 private:
  NodePtr parse_sum() {
    NodePtr sum = parse_product();
    while (in_.accept('+')) sum = make_sum(std::move(sum), parse_product());
    return sum;
  }

  NodePtr parse_product() {
    const std::size_t start = in_.here();
    std::optional<double> scale;
    std::vector<NodePtr> kernels;
    do {
      if (starts_number(in_.peek())) {
        scale = scale.value_or(1.0) * parse_scale();
      } else {
        kernels.push_back(parse_power());
      }
    } while (!in_.at_double_star() && in_.accept('*'));
    if (kernels.empty()) {
      Scanner::fail(start, fmt::format("a number can only be a factor of a kernel; did you mean "
                                       "constant({})?",
                                       number_to_string(scale.value_or(1.0))));
    }
    // From the left, as the nodes print themselves: 2 * a * b is (2 * a) * b.
    NodePtr product = kernels.front();
    if (scale) product = checked(start, [&] { return make_scaled(*scale, product); });
    for (std::size_t i = 1; i < kernels.size(); ++i) product = make_product(product, kernels[i]);
    return product;
  }

  double parse_scale() {
    const double scale = in_.take_positive_number();
    const char next = in_.peek();
    if (next == '^' || in_.at_double_star()) {
      Scanner::fail(in_.here(), "only a kernel can have an exponent");
    }
    if (next == '(' || is_letter(next)) in_.fail_expected("'*'");
    return scale;
  }

  NodePtr parse_power() {
    NodePtr base = parse_atom();
    if (!in_.accept_double_star() && !in_.accept('^')) return base;
    const std::size_t start = in_.here();
    const int exponent = in_.take_integer<int>();
    return checked(start, [&] { return make_power(std::move(base), exponent); });
  }

  NodePtr parse_atom() {
    if (is_letter(in_.peek())) return parse_leaf();
    const std::size_t open = in_.here();
    if (!in_.accept('(')) in_.fail_expected("a kernel");
    if (++nesting_ > kMaxNesting) {
      Scanner::fail(open, fmt::format("more than {} levels of brackets", kMaxNesting));
    }
    NodePtr sum = parse_sum();
    in_.close(open, "'+', '*' or ')'");
    --nesting_;
    return sum;
  }

  NodePtr parse_leaf() {
    const std::size_t start = in_.here();
    Draft leaf(parse_leaf_type());
    if (++num_leaves_ > kMaxLeaves) {
      Scanner::fail(start, fmt::format("more than {} kernels", kMaxLeaves));
    }
    const std::size_t open = in_.here();
    if (in_.accept('(') && !in_.accept(')')) {
      do {
        parse_argument(leaf);
      } while (in_.accept(','));
      in_.close(open, "',' or ')'");
    }
    return checked(start, [&] {
      return make_leaf(leaf.type, std::move(leaf.fields), leaf.option, std::move(leaf.dims));
    });
  }

  const LeafType& parse_leaf_type() {
    const std::size_t start = in_.here();
    const std::string_view typed = in_.take_word();
    const std::string name = lower_case(typed);
    if (const LeafType* type = find_leaf_type(name)) return *type;
    const std::vector<std::string_view> names = leaf_names();
    std::vector<std::string_view> candidates = names;
    for (const std::string_view alias : leaf_aliases()) candidates.push_back(alias);
    Scanner::fail(start,
                  fmt::format("unknown kernel {}; expected one of {}{}; a kernel of your own must "
                              "be registered first",
                              quoted(typed), fmt::join(names, ", "), suggestion(name, candidates)));
  }

  void parse_argument(Draft& leaf) {
    const KernelSignature& signature = leaf.signature();
    const std::size_t start = in_.here();
    const std::string_view name = parse_argument_name(leaf);
    if (std::find(leaf.given.begin(), leaf.given.end(), name) != leaf.given.end()) {
      Scanner::fail(start, fmt::format("{} of {} is given twice", name, signature.name));
    }
    leaf.given.push_back(name);

    if (name == kDims) {
      leaf.dims = in_.take_list<Index>([this] { return in_.take_integer<Index>(); });
    } else if (signature.option && name == signature.option->name) {
      leaf.option = parse_option(signature);
    } else {
      for (std::size_t i = 0; i < signature.fields.size(); ++i) {
        if (signature.fields[i].name == name) leaf.fields[i] = parse_field(signature, i);
      }
    }
  }

  /// The name in front of '=', or the name that the position stands for.
  std::string_view parse_argument_name(Draft& leaf) {
    const KernelSignature& signature = leaf.signature();
    std::vector<std::string_view> names = leaf.names();
    const std::size_t start = in_.here();

    if (!is_letter(in_.peek())) {
      const std::size_t index = leaf.given.size();
      if (!starts_number(in_.peek()) && in_.peek() != '[') in_.fail_expected("a value or a name");
      if (leaf.by_name) {
        Scanner::fail(start, "a value without a name must stand before those with one");
      }
      if (index == names.size()) {
        Scanner::fail(start, fmt::format("too many values without a name; {} takes {} ({})",
                                         signature.name, names.size(), fmt::join(names, ", ")));
      }
      return names[index];
    }

    leaf.by_name = true;
    if (signature.option) names.push_back(signature.option->name);
    if (signature.has_dims) names.push_back(kDims);
    const std::string_view typed = in_.take_word();
    const std::string name = lower_case(typed);
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) {
      Scanner::fail(start,
                    fmt::format("unknown parameter {} of {}; expected {}{}", quoted(typed),
                                signature.name, alternatives(names), suggestion(name, names)));
    }
    if (!in_.accept('=')) in_.fail_expected("'='");
    return *found;
  }

  int parse_option(const KernelSignature& signature) {
    const KernelSignature::Option& option = *signature.option;
    const std::size_t start = in_.here();
    const int value = in_.take_integer<int>();
    if (value < option.lowest || value > option.highest) {
      Scanner::fail(start, fmt::format("{} of {} must be from {} to {}, got {}", option.name,
                                       signature.name, option.lowest, option.highest, value));
    }
    return value;
  }

  /// number | '[' number, … ']', then bounds and the fixed flag.
  Positive parse_field(const KernelSignature& signature, std::size_t index) {
    const KernelSignature::Field& field = signature.fields[index];
    const auto take_number = [this] { return in_.take_positive_number(); };
    Positive parameter = field.initial;
    if (in_.peek() != '[') {
      parameter.values = {take_number()};
    } else if (field.per_dimension) {
      parameter.values = in_.take_list<double>(take_number);
    } else {
      Scanner::fail(in_.here(),
                    fmt::format("{} of {} is one number, not a list", field.name, signature.name));
    }
    if (in_.accept_keyword(kIn)) {
      const std::size_t start = in_.here();
      const auto bounds = in_.take_list<double>(take_number);
      if (bounds.size() != 2) Scanner::fail(start, "bounds are written as [lower, upper]");
      parameter = parameter.within(bounds[0], bounds[1]);
    }
    parameter.is_fixed = in_.accept_keyword(kFixed);
    return parameter;
  }

  /// What a node's factory finds wrong gets the column of the text it was made from.
  template <class Make>
  static NodePtr checked(std::size_t position, Make make) {
    try {
      return make();
    } catch (const std::invalid_argument& error) {
      Scanner::fail(position, error.what());
    }
  }

  std::size_t length_;
  Scanner in_;
  int nesting_ = 0;
  int num_leaves_ = 0;
};

}  // namespace

Kernel Kernel::parse(std::string_view text) { return Kernel(Parser(text).parse()); }

}  // namespace ample
