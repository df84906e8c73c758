// Sums, products, fixed multiples and powers of kernels.
#include <cmath>

#include "check.h"
#include "kernel_node.h"

namespace ample {
namespace {

/// Shared by the nodes with two children: parameters of the left one come first.
class Pair : public KernelNode {
 public:
  Pair(NodePtr a, NodePtr b) : a_(std::move(a)), b_(std::move(b)) {}

  [[nodiscard]] Index num_parameters() const override {
    return a_->num_parameters() + b_->num_parameters();
  }
  void collect(std::vector<Parameter>& out) const override {
    a_->collect(out);
    b_->collect(out);
  }
  void check_dimension(Index D) const override {
    a_->check_dimension(D);
    b_->check_dimension(D);
  }

 protected:
  [[nodiscard]] const NodePtr& a() const { return a_; }
  [[nodiscard]] const NodePtr& b() const { return b_; }
  /// The part of `into` that belongs to the right child.
  [[nodiscard]] Adjoint for_b(Adjoint into) const {
    if (into.theta != nullptr) into.theta += a_->num_parameters();
    return into;
  }

 private:
  NodePtr a_;
  NodePtr b_;
};

std::string bracketed(const KernelNode& node, KernelNode::Binding at_least) {
  return node.binding() < at_least ? "(" + node.to_string() + ")" : node.to_string();
}

class Sum final : public Pair {
 public:
  using Pair::a;
  using Pair::b;
  using Pair::Pair;

  [[nodiscard]] NodePtr with_values(const double*& next) const override {
    NodePtr left = a()->with_values(next);
    return make_sum(std::move(left), b()->with_values(next));
  }
  [[nodiscard]] NodePtr without_constant() const override {
    NodePtr left = a()->without_constant();
    NodePtr right = b()->without_constant();
    if (!left) return right;
    if (!right) return left;
    return make_sum(std::move(left), std::move(right));
  }
  void evaluate(const MatrixRef& X, const MatrixRef& Z, Eigen::Ref<Matrix> K) const override {
    Matrix right(K.rows(), K.cols());
    a()->evaluate(X, Z, K);
    b()->evaluate(X, Z, right);
    K += right;
  }
  void diagonal(const MatrixRef& X, Eigen::Ref<Vector> k) const override {
    Vector right(k.size());
    a()->diagonal(X, k);
    b()->diagonal(X, right);
    k += right;
  }
  void pull_back(const MatrixRef& X, const MatrixRef& Z, const MatrixRef& K_bar,
                 const Adjoint& into) const override {
    a()->pull_back(X, Z, K_bar, into);
    b()->pull_back(X, Z, K_bar, for_b(into));
  }
  void pull_back_diagonal(const MatrixRef& X, const VectorRef& k_bar,
                          const Adjoint& into) const override {
    a()->pull_back_diagonal(X, k_bar, into);
    b()->pull_back_diagonal(X, k_bar, for_b(into));
  }
  [[nodiscard]] Binding binding() const override { return Binding::sum; }
  // Sums and products read from the left, so a right child of the same kind keeps its brackets.
  [[nodiscard]] std::string to_string() const override {
    return bracketed(*a(), Binding::sum) + " + " + bracketed(*b(), Binding::product);
  }
};

class Product final : public Pair {
 public:
  using Pair::Pair;

  [[nodiscard]] NodePtr with_values(const double*& next) const override {
    NodePtr left = a()->with_values(next);
    return make_product(std::move(left), b()->with_values(next));
  }
  [[nodiscard]] NodePtr without_constant() const override {
    if (!a()->without_constant() && !b()->without_constant()) return nullptr;
    return make_product(a(), b());
  }
  void evaluate(const MatrixRef& X, const MatrixRef& Z, Eigen::Ref<Matrix> K) const override {
    Matrix right(K.rows(), K.cols());
    a()->evaluate(X, Z, K);
    b()->evaluate(X, Z, right);
    K.array() *= right.array();
  }
  void diagonal(const MatrixRef& X, Eigen::Ref<Vector> k) const override {
    Vector right(k.size());
    a()->diagonal(X, k);
    b()->diagonal(X, right);
    k.array() *= right.array();
  }
  void pull_back(const MatrixRef& X, const MatrixRef& Z, const MatrixRef& K_bar,
                 const Adjoint& into) const override {
    Matrix other(K_bar.rows(), K_bar.cols());
    b()->evaluate(X, Z, other);
    other.array() *= K_bar.array();
    a()->pull_back(X, Z, other, into);
    a()->evaluate(X, Z, other);
    other.array() *= K_bar.array();
    b()->pull_back(X, Z, other, for_b(into));
  }
  void pull_back_diagonal(const MatrixRef& X, const VectorRef& k_bar,
                          const Adjoint& into) const override {
    Vector other(k_bar.size());
    b()->diagonal(X, other);
    other.array() *= k_bar.array();
    a()->pull_back_diagonal(X, other, into);
    a()->diagonal(X, other);
    other.array() *= k_bar.array();
    b()->pull_back_diagonal(X, other, for_b(into));
  }
  [[nodiscard]] Binding binding() const override { return Binding::product; }
  [[nodiscard]] std::string to_string() const override {
    return bracketed(*a(), Binding::product) + " * " + bracketed(*b(), Binding::power);
  }
};

/// Shared by the nodes that transform one child and have no parameters of their own.
class Single : public KernelNode {
 public:
  explicit Single(NodePtr k) : k_(std::move(k)) {}

  [[nodiscard]] Index num_parameters() const override { return k_->num_parameters(); }
  void collect(std::vector<Parameter>& out) const override { k_->collect(out); }
  void check_dimension(Index D) const override { k_->check_dimension(D); }

 protected:
  [[nodiscard]] const NodePtr& k() const { return k_; }

 private:
  NodePtr k_;
};

class Scaled final : public Single {
 public:
  Scaled(double scale, NodePtr k) : Single(std::move(k)), scale_(scale) {}

  [[nodiscard]] NodePtr with_values(const double*& next) const override {
    return make_scaled(scale_, k()->with_values(next));
  }
  [[nodiscard]] NodePtr without_constant() const override {
    NodePtr rest = k()->without_constant();
    return rest ? make_scaled(scale_, std::move(rest)) : nullptr;
  }
  void evaluate(const MatrixRef& X, const MatrixRef& Z, Eigen::Ref<Matrix> K) const override {
    k()->evaluate(X, Z, K);
    K *= scale_;
  }
  void diagonal(const MatrixRef& X, Eigen::Ref<Vector> d) const override {
    k()->diagonal(X, d);
    d *= scale_;
  }
  void pull_back(const MatrixRef& X, const MatrixRef& Z, const MatrixRef& K_bar,
                 const Adjoint& into) const override {
    const Matrix scaled_bar = scale_ * K_bar;
    k()->pull_back(X, Z, scaled_bar, into);
  }
  void pull_back_diagonal(const MatrixRef& X, const VectorRef& k_bar,
                          const Adjoint& into) const override {
    const Vector scaled_bar = scale_ * k_bar;
    k()->pull_back_diagonal(X, scaled_bar, into);
  }
  [[nodiscard]] Binding binding() const override { return Binding::product; }
  [[nodiscard]] std::string to_string() const override {
    return number_to_string(scale_) + " * " + bracketed(*k(), Binding::power);
  }

 private:
  double scale_;
};

class Power final : public Single {
 public:
  Power(NodePtr k, int exponent) : Single(std::move(k)), exponent_(exponent) {}

  [[nodiscard]] NodePtr with_values(const double*& next) const override {
    return make_power(k()->with_values(next), exponent_);
  }
  [[nodiscard]] NodePtr without_constant() const override {
    return k()->without_constant() ? make_power(k(), exponent_) : nullptr;
  }
  void evaluate(const MatrixRef& X, const MatrixRef& Z, Eigen::Ref<Matrix> K) const override {
    k()->evaluate(X, Z, K);
    K = K.array().pow(exponent_);
  }
  void diagonal(const MatrixRef& X, Eigen::Ref<Vector> d) const override {
    k()->diagonal(X, d);
    d = d.array().pow(exponent_);
  }
  void pull_back(const MatrixRef& X, const MatrixRef& Z, const MatrixRef& K_bar,
                 const Adjoint& into) const override {
    Matrix inner(K_bar.rows(), K_bar.cols());
    k()->evaluate(X, Z, inner);
    inner = exponent_ * inner.array().pow(exponent_ - 1) * K_bar.array();
    k()->pull_back(X, Z, inner, into);
  }
  void pull_back_diagonal(const MatrixRef& X, const VectorRef& k_bar,
                          const Adjoint& into) const override {
    Vector inner(k_bar.size());
    k()->diagonal(X, inner);
    inner = exponent_ * inner.array().pow(exponent_ - 1) * k_bar.array();
    k()->pull_back_diagonal(X, inner, into);
  }
  [[nodiscard]] Binding binding() const override { return Binding::power; }
  [[nodiscard]] std::string to_string() const override {
    return bracketed(*k(), Binding::atom) + "^" + std::to_string(exponent_);
  }

 private:
  int exponent_;
};

}  // namespace

NodePtr make_sum(NodePtr a, NodePtr b) { return std::make_shared<Sum>(std::move(a), std::move(b)); }

std::pair<NodePtr, NodePtr> terms(const KernelNode& node) {
  const auto* sum = dynamic_cast<const Sum*>(&node);
  return sum != nullptr ? std::pair{sum->a(), sum->b()} : std::pair<NodePtr, NodePtr>{};
}

NodePtr make_product(NodePtr a, NodePtr b) {
  return std::make_shared<Product>(std::move(a), std::move(b));
}

NodePtr make_scaled(double scale, NodePtr k) {
  check_positive("kernel", "a factor", scale);
  return std::make_shared<Scaled>(scale, std::move(k));
}

NodePtr make_power(NodePtr k, int exponent) {
  if (exponent < 1 || exponent > 20) {
    invalid("kernel: the exponent is {}, but must be from 1 to 20", exponent);
  }
  return std::make_shared<Power>(std::move(k), exponent);
}

}  // namespace ample
