// The tree behind a Kernel: leaves (one formula each) and the four ways to combine them.
//
// A node works on one block of columns and is serial; Kernel cuts a matrix into blocks and runs
// them on threads, so that the temporaries of composites stay small whatever the size of K.
#pragma once

#include <memory>
#include <string>
#include <utility>
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

NodePtr make_sum(NodePtr a, NodePtr b);
/// What make_sum() was given; nulls if it did not make this node.
std::pair<NodePtr, NodePtr> terms(const KernelNode& node);
NodePtr make_product(NodePtr a, NodePtr b);
NodePtr make_scaled(double scale, NodePtr k);
NodePtr make_power(NodePtr k, int exponent);

/// A number in the shortest decimal form that reads back to the same bits (kernel_print.cc).
std::string number_to_string(double value);

/// The library's way from a Kernel to its tree and back.
struct KernelAccess {
  static Kernel kernel(NodePtr node) { return Kernel(std::move(node)); }
  static const NodePtr& node(const Kernel& kernel) { return kernel.node_; }
};

}  // namespace ample
