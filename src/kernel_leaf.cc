#include "kernel_leaf.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "check.h"

namespace ample {
namespace {

using Field = KernelSignature::Field;

void check_field(const KernelSignature& leaf, const Field& field, const Positive& given) {
  if (given.values.empty())
    invalid("{}: {} is empty, but must hold a number", leaf.name, field.name);
  if (given.values.size() > 1 && !field.per_dimension) {
    invalid("{}: {} holds {} numbers, but must hold one", leaf.name, field.name,
            given.values.size());
  }
  if (!(given.lower > 0.0) || !(given.upper >= given.lower) || !std::isfinite(given.upper)) {
    invalid("{}: the bounds of {} are [{}, {}], but must be positive, finite and in order",
            leaf.name, field.name, given.lower, given.upper);
  }
  if (given.upper > field.largest) {
    invalid("{}: the upper bound of {} is {}, but must be at most {}", leaf.name, field.name,
            given.upper, field.largest);
  }
  for (const double v : given.values) {
    if (!(v >= given.lower) || !(v <= given.upper)) {
      invalid("{}: {} is {}, but must lie in [{}, {}]", leaf.name, field.name, v, given.lower,
              given.upper);
    }
  }
}

void check_dims(const KernelSignature& leaf, const Dimensions& dims) {
  for (auto d = dims.begin(); d != dims.end(); ++d) {
    if (*d < 0) invalid("{}: dims holds {}, but dimensions count from 0", leaf.name, *d);
    if (std::find(dims.begin(), d, *d) != d) invalid("{}: dims holds {} twice", leaf.name, *d);
  }
}

void check_leaf(const KernelSignature& leaf, const std::vector<Positive>& fields, int option,
                const Dimensions& dims) {
  AMPLE_ASSERT(fields.size() == leaf.fields.size());
  std::size_t ard = 0;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    check_field(leaf, leaf.fields[f], fields[f]);
    if (fields[f].values.size() > 1) ard = fields[f].values.size();
  }
  if (leaf.option && (option < leaf.option->lowest || option > leaf.option->highest)) {
    invalid("{}: {} is {}, but must be from {} to {}", leaf.name, leaf.option->name, option,
            leaf.option->lowest, leaf.option->highest);
  }
  check_dims(leaf, dims);
  if (ard > 1 && !dims.empty() && ard != dims.size()) {
    invalid("{}: a parameter holds {} numbers, but dims names {} dimensions", leaf.name, ard,
            dims.size());
  }
}

}  // namespace

NodePtr make_leaf(const LeafType& type, std::vector<Positive> fields, int option, Dimensions dims) {
  check_leaf(type.signature, fields, option, dims);
  switch (type.kind) {
    case LeafKind::squared_exponential:
    case LeafKind::matern12:
    case LeafKind::matern32:
    case LeafKind::matern52:
    case LeafKind::rational_quadratic:
      return make_stationary(type, std::move(fields), std::move(dims));
    case LeafKind::periodic:
      return make_periodic(type, std::move(fields), std::move(dims));
    case LeafKind::linear:
    case LeafKind::polynomial:
      return make_dot_product(type, std::move(fields), option, std::move(dims));
    case LeafKind::constant:
      return make_constant(type, std::move(fields));
    case LeafKind::arc_cosine:
      return make_arc_cosine(type, std::move(fields), option, std::move(dims));
    case LeafKind::custom:
      return make_custom(type, std::move(fields), option, std::move(dims));
  }
  AMPLE_ASSERT(false);
}

Index Leaf::num_parameters() const { return offset(fields_.size()); }

void Leaf::collect(std::vector<Parameter>& out) const {
  // The second leaf of a type is "se_2", and so on.
  const std::string& type_name = type_.signature.name;
  std::string leaf_name = type_name;
  const auto taken = [&] {
    return std::any_of(out.begin(), out.end(),
                       [&](const Parameter& p) { return p.name.starts_with(leaf_name + "."); });
  };
  for (int count = 2; taken(); ++count) leaf_name = fmt::format("{}_{}", type_name, count);
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    const Field& field = type_.signature.fields[f];
    const Positive& held = fields_[f];
    for (std::size_t i = 0; i < held.values.size(); ++i) {
      std::string name = fmt::format("{}.{}", leaf_name, field.name);
      if (held.values.size() > 1) name += fmt::format("[{}]", i);
      out.push_back(
          {std::move(name), field.kind, held.values[i], held.lower, held.upper, held.is_fixed});
    }
  }
}

NodePtr Leaf::with_values(const double*& next) const {
  std::vector<Positive> fields = fields_;
  for (Positive& field : fields) {
    for (double& v : field.values) v = *next++;
  }
  return make_leaf(type_, std::move(fields), option_, dims_);
}

void Leaf::check_dimension(Index D) const {
  const KernelSignature& leaf = type_.signature;
  for (const Index d : dims_) {
    if (d >= D) {
      invalid("kernel: {} looks at dimension {}, but the inputs have {} (counted from 0)",
              leaf.name, d, D);
    }
  }
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    const auto count = static_cast<Index>(fields_[f].values.size());
    if (count > 1 && count != active(D)) {
      invalid("kernel: {} of {} holds {} numbers, but the inputs have {} dimension{}",
              leaf.fields[f].name, leaf.name, count, active(D), active(D) == 1 ? "" : "s");
    }
  }
}

NodePtr Leaf::without_constant() const {
  return kind() == LeafKind::constant ? nullptr : make_leaf(type_, fields_, option_, dims_);
}

std::string Leaf::to_string() const {
  return leaf_to_string(type_.signature, fields_, option_, dims_);
}

}  // namespace ample
