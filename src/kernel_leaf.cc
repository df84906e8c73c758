#include "kernel_leaf.h"

#include <cmath>

#include <fmt/format.h>

#include "check.h"

namespace ample {

const std::vector<LeafType>& leaf_types() {
  using Fields = std::vector<LeafType::Field>;
  const Fields stationary{{"variance", false}, {"lengthscale", true}};
  static const std::vector<LeafType> types{
      {LeafKind::squared_exponential, "se", stationary, "", 0, 0, 0, true},
      {LeafKind::matern12, "matern12", stationary, "", 0, 0, 0, true},
      {LeafKind::matern32, "matern32", stationary, "", 0, 0, 0, true},
      {LeafKind::matern52, "matern52", stationary, "", 0, 0, 0, true},
      {LeafKind::rational_quadratic, "rq",
       Fields{{"variance", false}, {"lengthscale", true}, {"alpha", false}}, "", 0, 0, 0, true},
      {LeafKind::periodic, "periodic",
       Fields{{"variance", false}, {"lengthscale", true}, {"period", false}}, "", 0, 0, 0, true},
      {LeafKind::linear, "linear", Fields{{"variance", true}}, "", 0, 0, 0, true},
      {LeafKind::polynomial, "polynomial", Fields{{"variance", false}, {"offset", false}}, "degree",
       1, 20, 2, true},
      {LeafKind::constant, "constant", Fields{{"variance", false}}, "", 0, 0, 0, false},
      {LeafKind::arc_cosine, "arccos",
       Fields{{"variance", false}, {"weight_variance", true}, {"bias_variance", false}}, "order", 0,
       2, 1, true},
  };
  return types;
}

namespace {

void check_leaf(const LeafType& type, const std::vector<Positive>& fields, int integer,
                const Dimensions& dims) {
  AMPLE_ASSERT(fields.size() == type.fields.size());
  Index ard = 0;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const Positive& field = fields[f];
    const auto count = static_cast<Index>(field.values.size());
    if (count == 0)
      invalid("{}: {} is empty, but must hold a number", type.name, type.fields[f].name);
    if (count > 1 && !type.fields[f].per_dimension) {
      invalid("{}: {} holds {} numbers, but must hold one", type.name, type.fields[f].name, count);
    }
    if (!(field.lower > 0.0) || !(field.upper >= field.lower) || !std::isfinite(field.upper)) {
      invalid("{}: the bounds of {} are [{}, {}], but must be positive, finite and in order",
              type.name, type.fields[f].name, field.lower, field.upper);
    }
    for (const double v : field.values) {
      if (!(v >= field.lower) || !(v <= field.upper)) {
        invalid("{}: {} is {}, but must lie in [{}, {}]", type.name, type.fields[f].name, v,
                field.lower, field.upper);
      }
    }
    if (count > 1) ard = count;
  }
  if (!type.integer_name.empty() && (integer < type.integer_min || integer > type.integer_max)) {
    invalid("{}: {} is {}, but must be from {} to {}", type.name, type.integer_name, integer,
            type.integer_min, type.integer_max);
  }
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) invalid("{}: dims holds {}, but dimensions count from 0", type.name, dims[i]);
    if (std::find(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(i), dims[i]) !=
        dims.begin() + static_cast<std::ptrdiff_t>(i)) {
      invalid("{}: dims holds {} twice", type.name, dims[i]);
    }
  }
  if (ard > 1 && !dims.empty() && ard != static_cast<Index>(dims.size())) {
    invalid("{}: a parameter holds {} numbers, but dims names {} dimensions", type.name, ard,
            dims.size());
  }
}

const LeafType& type_of(LeafKind kind) { return leaf_types()[static_cast<std::size_t>(kind)]; }

}  // namespace

NodePtr make_leaf(LeafKind kind, std::vector<Positive> fields, int integer, Dimensions dims) {
  check_leaf(type_of(kind), fields, integer, dims);
  switch (kind) {
    case LeafKind::squared_exponential:
    case LeafKind::matern12:
    case LeafKind::matern32:
    case LeafKind::matern52:
    case LeafKind::rational_quadratic:
      return make_stationary(kind, std::move(fields), std::move(dims));
    case LeafKind::periodic:
      return make_periodic(std::move(fields), std::move(dims));
    case LeafKind::linear:
    case LeafKind::polynomial:
      return make_dot_product(kind, std::move(fields), integer, std::move(dims));
    case LeafKind::constant:
      return make_constant(std::move(fields));
    case LeafKind::arc_cosine:
      return make_arc_cosine(std::move(fields), integer, std::move(dims));
  }
  AMPLE_ASSERT(false);
}

Index Leaf::num_parameters() const { return offset(fields_.size()); }

void Leaf::collect(std::vector<Parameter>& out) const {
  const LeafType& type = type_of(kind_);
  // The second leaf of a type is "se_2", and so on.
  std::string leaf_name(type.name);
  const auto taken = [&] {
    return std::any_of(out.begin(), out.end(),
                       [&](const Parameter& p) { return p.name.starts_with(leaf_name + "."); });
  };
  for (int count = 2; taken(); ++count) leaf_name = fmt::format("{}_{}", type.name, count);
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    const Positive& field = fields_[f];
    for (std::size_t i = 0; i < field.values.size(); ++i) {
      std::string name = fmt::format("{}.{}", leaf_name, type.fields[f].name);
      if (field.values.size() > 1) name += fmt::format("[{}]", i);
      out.push_back({std::move(name), field.values[i], field.lower, field.upper, field.is_fixed});
    }
  }
}

NodePtr Leaf::with_values(const double*& next) const {
  std::vector<Positive> fields = fields_;
  for (Positive& field : fields) {
    for (double& v : field.values) v = *next++;
  }
  return make_leaf(kind_, std::move(fields), integer_, dims_);
}

void Leaf::check_dimension(Index D) const {
  const LeafType& type = type_of(kind_);
  for (const Index d : dims_) {
    if (d >= D) {
      invalid("kernel: {} looks at dimension {}, but the inputs have {} (counted from 0)",
              type.name, d, D);
    }
  }
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    const auto count = static_cast<Index>(fields_[f].values.size());
    if (count > 1 && count != active(D)) {
      invalid("kernel: {} of {} holds {} numbers, but the inputs have {} dimension{}",
              type.fields[f].name, type.name, count, active(D), active(D) == 1 ? "" : "s");
    }
  }
}

NodePtr Leaf::without_constant() const {
  return kind_ == LeafKind::constant ? nullptr : make_leaf(kind_, fields_, integer_, dims_);
}

std::string Leaf::to_string() const { return leaf_to_string({kind_, &fields_, integer_, &dims_}); }

}  // namespace ample
