// The tree behind a Kernel: leaves (one formula each) and the four ways to combine them.
//
// A node works on one block of columns and is serial; Kernel cuts a matrix into blocks and runs
// them on threads, so that the temporaries of composites stay small whatever the size of K.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ample/kernel.h"

namespace ample {

using NodePtr = std::shared_ptr<const KernelNode>;

class KernelNode {
 public:
  virtual ~KernelNode() = default;

  [[nodiscard]] virtual Index num_parameters() const = 0;
  /// Appends the parameters; the name of a leaf that occurs more than once gets a number.
  virtual void collect(std::vector<Parameter>& out) const = 0;
  /// The same node with the next num_parameters() values; advances `next`.
  [[nodiscard]] virtual NodePtr with_values(const double*& next) const = 0;
  virtual void check_dimension(Index D) const = 0;
  /// Null when nothing but constants is in it.
  [[nodiscard]] virtual NodePtr without_constant() const = 0;

  virtual void evaluate(const MatrixRef& X, const MatrixRef& Z, Eigen::Ref<Matrix> K) const = 0;
  virtual void diagonal(const MatrixRef& X, Eigen::Ref<Vector> k) const = 0;

  /// Results of a pull-back over one block; null pointers are not computed. theta points at this
  /// node's own first parameter.
  struct Adjoint {
    double* theta = nullptr;
    Eigen::Ref<Matrix>* X = nullptr;
    Eigen::Ref<Matrix>* Z = nullptr;
  };
  virtual void pull_back(const MatrixRef& X, const MatrixRef& Z, const MatrixRef& K_bar,
                         const Adjoint& into) const = 0;
  virtual void pull_back_diagonal(const MatrixRef& X, const VectorRef& k_bar,
                                  const Adjoint& into) const = 0;

  /// How tightly the text form binds: a sum needs brackets inside a product.
  enum class Binding { sum, product, power, atom };
  [[nodiscard]] virtual Binding binding() const = 0;
  [[nodiscard]] virtual std::string to_string() const = 0;
};

/// Which formula a leaf holds. The order is that of leaf_types().
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
};

/// A leaf's parameters by name, so that text, files and bindings need no code for each kernel.
struct LeafType {
  struct Field {
    std::string_view name;
    bool per_dimension;  // may hold one value per dimension (ARD)
  };
  LeafKind kind;
  std::string_view name;          // as in the text form
  std::vector<Field> fields;      // positive parameters, in the order of the parameter vector
  std::string_view integer_name;  // "degree", "order" or empty
  int integer_min;
  int integer_max;
  int integer_default;
  bool has_dims;
};

/// All leaf types, indexed by LeafKind.
const std::vector<LeafType>& leaf_types();

/// A leaf, checked: positive finite values inside their bounds, matching sizes.
/// `fields` are in the order of LeafType::fields.
NodePtr make_leaf(LeafKind kind, std::vector<Positive> fields, int integer, Dimensions dims);

/// What a leaf was made of.
struct LeafParts {
  LeafKind kind;
  const std::vector<Positive>* fields;
  int integer;
  const Dimensions* dims;
};

NodePtr make_sum(NodePtr a, NodePtr b);
NodePtr make_product(NodePtr a, NodePtr b);
NodePtr make_scaled(double scale, NodePtr k);
NodePtr make_power(NodePtr k, int exponent);

/// Text of one leaf (kernel_text.cc): "se(variance=1, lengthscale=[1, 2], dims=[0, 3])".
std::string leaf_to_string(const LeafParts& leaf);
/// A number in the shortest decimal form that reads back to the same bits.
std::string number_to_string(double value);

}  // namespace ample
