// What all leaves share: named parameters, chosen dimensions, and the walk over a block in chunks
// that stay in the first-level cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "kernel_types.h"

namespace ample {

// Which field the variance is in every leaf, and the lengthscale in those that have one.
inline constexpr std::size_t kVariance = 0;
inline constexpr std::size_t kLengthscale = 1;

class Leaf : public KernelNode {
 public:
  Leaf(const LeafType& type, std::vector<Positive> fields, int option, Dimensions dims)
      : type_(type), fields_(std::move(fields)), option_(option), dims_(std::move(dims)) {}

  [[nodiscard]] Index num_parameters() const override;
  void collect(std::vector<Parameter>& out) const override;
  [[nodiscard]] NodePtr with_values(const double*& next) const override;
  void check_dimension(Index D) const override;
  [[nodiscard]] NodePtr without_constant() const override;
  [[nodiscard]] Binding binding() const override { return Binding::atom; }
  [[nodiscard]] std::string to_string() const override;

 protected:
  // Rows worked on at a time: a few arrays of this many doubles fit in 32 kB.
  static constexpr Index kChunk = 512;

  [[nodiscard]] const LeafType& type() const { return type_; }
  [[nodiscard]] LeafKind kind() const { return type_.kind; }
  [[nodiscard]] int option() const { return option_; }
  [[nodiscard]] const std::vector<Positive>& fields() const { return fields_; }
  [[nodiscard]] const Dimensions& dims() const { return dims_; }
  [[nodiscard]] double scalar(std::size_t f) const { return fields_[f].values.front(); }
  /// The value of an ARD field for active dimension a.
  [[nodiscard]] double value(std::size_t f, Index a) const {
    const auto& values = fields_[f].values;
    return values.size() == 1 ? values.front() : values[static_cast<std::size_t>(a)];
  }
  [[nodiscard]] bool is_ard(std::size_t f) const { return fields_[f].values.size() > 1; }
  /// Where field f starts in this leaf's part of the parameter vector.
  [[nodiscard]] Index offset(std::size_t f) const {
    Index sum = 0;
    for (std::size_t i = 0; i < f; ++i) sum += static_cast<Index>(fields_[i].values.size());
    return sum;
  }
  /// How many dimensions it looks at, and which column active dimension a is.
  [[nodiscard]] Index active(Index D) const {
    return dims_.empty() ? D : static_cast<Index>(dims_.size());
  }
  [[nodiscard]] Index column(Index a) const {
    return dims_.empty() ? a : dims_[static_cast<std::size_t>(a)];
  }
  /// The active columns of X, each times scale(a)   [N, active].
  template <class Scale>
  [[nodiscard]] Matrix scaled(const MatrixRef& X, const Scale& scale) const {
    Matrix out(X.rows(), active(X.cols()));
    for (Index a = 0; a < out.cols(); ++a) out.col(a) = X.col(column(a)) * scale(a);
    return out;
  }
  /// The same of X less the first of `others`. For differences of points: taken from a point nearby
  /// before they are scaled, coordinates with a large common offset keep their digits.
  template <class Scale>
  [[nodiscard]] Matrix scaled_from(const MatrixRef& others, const MatrixRef& X,
                                   const Scale& scale) const {
    Matrix out(X.rows(), active(X.cols()));
    for (Index a = 0; a < out.cols(); ++a) {
      const double origin = others.rows() > 0 ? others(0, column(a)) : 0.0;
      out.col(a) = (X.col(column(a)).array() - origin) * scale(a);
    }
    return out;
  }
  /// Whether points, scaled from an origin, lie so far from it that their differences lack digits.
  [[nodiscard]] static bool is_far(const Matrix& scaled) {
    constexpr double kFar = 1e4;  // leaves distances with an error of 2e-12
    return scaled.size() > 0 && !(scaled.cwiseAbs().maxCoeff() <= kFar);
  }
  /// Calls work(first_row, rows) for chunks of n rows.
  template <class Work>
  static void for_chunks(Index n, const Work& work) {
    for (Index first = 0; first < n; first += kChunk) work(first, std::min(kChunk, n - first));
  }

 private:
  const LeafType& type_;
  std::vector<Positive> fields_;
  int option_;
  Dimensions dims_;
};

/// A leaf whose variance is the same everywhere: k(x, x) = σ².
class UniformLeaf : public Leaf {
 public:
  using Leaf::Leaf;

  void diagonal(const MatrixRef& /*X*/, Eigen::Ref<Vector> k) const final {
    k.setConstant(scalar(kVariance));
  }
  void pull_back_diagonal(const MatrixRef& /*X*/, const VectorRef& k_bar,
                          const Adjoint& into) const final {
    if (into.theta != nullptr) into.theta[offset(kVariance)] += k_bar.sum();
  }
};

// One factory for each family of formulas, each in a file of its own.
NodePtr make_stationary(const LeafType& type, std::vector<Positive> fields, Dimensions dims);
NodePtr make_periodic(const LeafType& type, std::vector<Positive> fields, Dimensions dims);
NodePtr make_dot_product(const LeafType& type, std::vector<Positive> fields, int degree,
                         Dimensions dims);
NodePtr make_constant(const LeafType& type, std::vector<Positive> fields);
NodePtr make_arc_cosine(const LeafType& type, std::vector<Positive> fields, int order,
                        Dimensions dims);
NodePtr make_custom(const LeafType& type, std::vector<Positive> fields, int option,
                    Dimensions dims);

}  // namespace ample
