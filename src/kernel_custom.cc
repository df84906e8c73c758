// A leaf whose formula a user wrote: chooses the columns for it, and puts what comes back in place.
#include <optional>

#include "kernel_leaf.h"

namespace ample {
namespace {

class CustomLeaf final : public Leaf {
 public:
  using Leaf::Leaf;

  void evaluate(const MatrixRef& X, const MatrixRef& Z, Eigen::Ref<Matrix> K) const override {
    if (dims().empty()) return formula().evaluate(values(), X, Z, K);
    formula().evaluate(values(), chosen(X), chosen(Z), K);
  }

  void diagonal(const MatrixRef& X, Eigen::Ref<Vector> k) const override {
    if (dims().empty()) return formula().diagonal(values(), X, k);
    formula().diagonal(values(), chosen(X), k);
  }

  void pull_back(const MatrixRef& X, const MatrixRef& Z, const MatrixRef& K_bar,
                 const Adjoint& into) const override {
    if (dims().empty()) {
      return formula().pull_back(values(), X, Z, K_bar, {fields(), into.theta, into.X, into.Z});
    }
    Chosen X_bar(*this, X, into.X);
    Chosen Z_bar(*this, Z, into.Z);
    formula().pull_back(values(), chosen(X), chosen(Z), K_bar,
                        {fields(), into.theta, X_bar.ref(), Z_bar.ref()});
    X_bar.add_to(into.X);
    Z_bar.add_to(into.Z);
  }

  void pull_back_diagonal(const MatrixRef& X, const VectorRef& k_bar,
                          const Adjoint& into) const override {
    if (dims().empty()) {
      return formula().pull_back_diagonal(values(), X, k_bar,
                                          {fields(), into.theta, into.X, nullptr});
    }
    Chosen X_bar(*this, X, into.X);
    formula().pull_back_diagonal(values(), chosen(X), k_bar,
                                 {fields(), into.theta, X_bar.ref(), nullptr});
    X_bar.add_to(into.X);
  }

 private:
  /// An adjoint of the chosen columns alone, if it is wanted.
  class Chosen {
   public:
    Chosen(const CustomLeaf& leaf, const MatrixRef& X, const Eigen::Ref<Matrix>* wanted)
        : dims_(leaf.dims()) {
      if (wanted == nullptr) return;
      values_.setZero(X.rows(), leaf.active(X.cols()));
      ref_.emplace(values_);
    }
    [[nodiscard]] Eigen::Ref<Matrix>* ref() { return ref_ ? &*ref_ : nullptr; }
    void add_to(Eigen::Ref<Matrix>* all) const {
      if (all == nullptr) return;
      for (Index a = 0; a < values_.cols(); ++a) {
        all->col(dims_[static_cast<std::size_t>(a)]) += values_.col(a);
      }
    }

   private:
    const Dimensions& dims_;
    Matrix values_;
    std::optional<Eigen::Ref<Matrix>> ref_;
  };

  [[nodiscard]] const KernelFormula& formula() const { return *type().formula; }
  [[nodiscard]] KernelValues values() const { return {fields(), option()}; }
  [[nodiscard]] Matrix chosen(const MatrixRef& X) const {
    return scaled(X, [](Index) { return 1.0; });
  }
};

}  // namespace

NodePtr make_custom(const LeafType& type, std::vector<Positive> fields, int option,
                    Dimensions dims) {
  return std::make_shared<CustomLeaf>(type, std::move(fields), option, std::move(dims));
}

}  // namespace ample
