// Every kind of leaf there is: the library's own, a fixed table, and those that a user registered.
// Text, files and parameter names need no code for each kernel: all they know is its type.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ample/kernel_formula.h"
#include "kernel_node.h"

namespace ample {

/// Which formula a leaf holds. The order is that of leaf_types(), with `custom` for all others.
enum class LeafKind {
  squared_exponential,
  matern12,
  matern32,
  matern52,
  rational_quadratic,
  periodic,
  linear,
  polynomial,
  constant,
  arc_cosine,
  custom,
};

struct LeafType {
  LeafKind kind;
  KernelSignature signature;
  std::shared_ptr<const KernelFormula> formula = nullptr;  // of a custom one
};

/// The library's own, indexed by LeafKind.
const std::vector<LeafType>& leaf_types();
inline const LeafType& leaf_type(LeafKind kind) {
  return leaf_types()[static_cast<std::size_t>(kind)];
}

/// The type of that name or other name, registered ones included; null if there is none. A type
/// lives as long as the process.
const LeafType* find_leaf_type(std::string_view name);

/// The names of all types, sorted, and other names of the library's own.
std::vector<std::string_view> leaf_names();
std::vector<std::string_view> leaf_aliases();

/// A leaf, checked: positive finite values inside their bounds, matching sizes. `fields` are in the
/// order of the signature; `type` must outlive the leaf, as all that are found here do.
NodePtr make_leaf(const LeafType& type, std::vector<Positive> fields, int option, Dimensions dims);

/// Text of one leaf (kernel_print.cc): "se(variance=1, lengthscale=[1, 2], dims=[0, 3])".
std::string leaf_to_string(const KernelSignature& signature, const std::vector<Positive>& fields,
                           int option, const Dimensions& dims);

}  // namespace ample
