// The text form of kernels, written: leaves and numbers. The combinations print themselves.
#include <array>
#include <charconv>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "kernel_types.h"
#include "kernel_words.h"

namespace ample {
namespace {

/// Bounds are written where they are not those of the signature.
std::string positive_to_string(const Positive& parameter, const Positive& initial) {
  std::vector<std::string> values;
  values.reserve(parameter.values.size());
  for (const double value : parameter.values) values.push_back(number_to_string(value));
  std::string text =
      values.size() == 1 ? values.front() : fmt::format("[{}]", fmt::join(values, ", "));
  if (parameter.lower != initial.lower || parameter.upper != initial.upper) {
    text += fmt::format(" {} [{}, {}]", kIn, number_to_string(parameter.lower),
                        number_to_string(parameter.upper));
  }
  return parameter.is_fixed ? fmt::format("{} {}", text, kFixed) : text;
}

}  // namespace

std::string leaf_to_string(const KernelSignature& signature, const std::vector<Positive>& fields,
                           int option, const Dimensions& dims) {
  std::vector<std::string> arguments;
  arguments.reserve(fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const KernelSignature::Field& field = signature.fields[i];
    arguments.push_back(
        fmt::format("{}={}", field.name, positive_to_string(fields[i], field.initial)));
  }
  if (signature.option) {
    arguments.push_back(fmt::format("{}={}", signature.option->name, option));
  }
  if (!dims.empty()) arguments.push_back(fmt::format("{}=[{}]", kDims, fmt::join(dims, ", ")));
  return fmt::format("{}({})", signature.name, fmt::join(arguments, ", "));
}

std::string number_to_string(double value) {
  std::array<char, 32> buffer{};  // the longest shortest form has 24 characters
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end};
}

}  // namespace ample
