// Kernels of your own: write the formula, register it under a name, and it is a kernel like any
// other. It composes with + and *, is fitted, printed, parsed, saved and loaded.
//
//   register_kernel(std::make_shared<SpectralFormula>());              // once, before first use
//   Kernel k = Constant{2} + make_kernel("spectral", {1.0, Positive{1, 3}, 0.5});
//   Kernel same = Kernel::parse(k.to_string());
//
// A formula has no state: the library holds values, bounds and dimensions, and hands them in. A
// whole example is in docs/kernels.md; ample/kernel_check.h compares derivatives with differences.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ample/kernel.h"
#include "ample/types.h"

namespace ample {

/// What a kernel is called and what it takes. Names are those of the text form: small letters,
/// digits and underscores, not beginning with a digit.
struct KernelSignature {
  /// A positive parameter.
  struct Field {
    std::string name;
    Parameter::Kind kind = Parameter::Kind::shape;
    bool per_dimension = false;  // may hold one value per input dimension (ARD)
    /// Value and bounds where none are given.
    Positive initial = 1.0;
    /// The largest value for which the formula is a covariance; no upper bound may exceed it.
    double largest = std::numeric_limits<double>::max();
  };
  /// An integer that is part of the model's form and never fitted, e.g. a degree.
  struct Option {
    std::string name;
    int lowest = 0;
    int highest = 0;
    int initial = 0;
  };

  std::string name;
  std::vector<Field> fields;  // in the order of every parameter vector
  std::optional<Option> option = std::nullopt;
  bool has_dims = true;  // whether `dims` can choose among the inputs
};

/// The parameters' values of one kernel, by the number of the field in the signature.
class KernelValues {
 public:
  KernelValues(std::span<const Positive> fields, int option) : fields_(fields), option_(option) {}

  /// The value of a field that holds one number.
  [[nodiscard]] double operator()(std::size_t field) const { return fields_[field].values.front(); }
  /// The value for input dimension d, whether the field holds one for each or one for all.
  [[nodiscard]] double operator()(std::size_t field, Index d) const {
    const std::vector<double>& values = fields_[field].values;
    return values.size() == 1 ? values.front() : values[static_cast<std::size_t>(d)];
  }
  /// The integer of the signature.
  [[nodiscard]] int option() const { return option_; }

 private:
  std::span<const Positive> fields_;
  int option_;
};

/// Where a formula's pull-back adds its results.
class KernelAdjoint {
 public:
  KernelAdjoint(std::span<const Positive> fields, double* theta, Eigen::Ref<Matrix>* X_bar,
                Eigen::Ref<Matrix>* Z_bar)
      : X(X_bar), Z(Z_bar), fields_(fields), theta_(theta) {}

  /// Adds to dF/dθ of a field that holds one number; nothing happens where it is not wanted.
  void add(std::size_t field, double amount) const { add(field, 0, amount); }
  /// The same for input dimension d; a field that holds one for all collects them.
  void add(std::size_t field, Index d, double amount) const {
    if (theta_ == nullptr) return;
    Index at = fields_[field].values.size() > 1 ? d : 0;
    for (std::size_t f = 0; f < field; ++f) at += static_cast<Index>(fields_[f].values.size());
    theta_[at] += amount;
  }
  /// Whether derivatives by the parameters are wanted.
  [[nodiscard]] bool wants_theta() const { return theta_ != nullptr; }

  /// dF/dX [N,D] and dF/dZ [M,D]: add to what they point at; null where not wanted. The two may
  /// share rows, so finish with one before you begin with the other, or go entry by entry.
  Eigen::Ref<Matrix>* X;
  Eigen::Ref<Matrix>* Z;

 private:
  std::span<const Positive> fields_;
  double* theta_;
};

/// A covariance function k(x, z) of given parameters, for whole matrices. X [N,D] and Z [M,D] hold
/// the chosen dimensions only. The functions are called from several threads at once and for parts
/// of a matrix, so that an entry may depend on nothing but its own two points.
class KernelFormula {
 public:
  virtual ~KernelFormula() = default;

  [[nodiscard]] virtual KernelSignature signature() const = 0;

  /// K_ij = k(x_i, z_j)   [N,M].
  virtual void evaluate(const KernelValues& theta, const MatrixRef& X, const MatrixRef& Z,
                        Eigen::Ref<Matrix> K) const = 0;
  /// k_i = k(x_i, x_i)   [N].
  virtual void diagonal(const KernelValues& theta, const MatrixRef& X,
                        Eigen::Ref<Vector> k) const = 0;
  /// Adds Σ_ij K̄_ij ∂k(x_i, z_j) to `into`.
  virtual void pull_back(const KernelValues& theta, const MatrixRef& X, const MatrixRef& Z,
                         const MatrixRef& K_bar, const KernelAdjoint& into) const = 0;
  /// Adds Σ_i k̄_i ∂k(x_i, x_i) to `into`; `into.Z` is null.
  virtual void pull_back_diagonal(const KernelValues& theta, const MatrixRef& X,
                                  const VectorRef& k_bar, const KernelAdjoint& into) const = 0;
};

/// Makes a formula known by its name to this process, for good: in C++, in texts and in model
/// files. Throws std::invalid_argument if the signature is not sound or the name is taken, by a
/// kernel of the library or by another of your own. May be called from any thread.
void register_kernel(std::shared_ptr<const KernelFormula> formula);

/// The signatures of all kernels, the library's own first, then those registered, in that order.
[[nodiscard]] std::vector<KernelSignature> kernel_signatures();

/// The kernel of that name, one of the library's own or a registered one. Parameters are in the
/// order of the signature; those left out have their initial value, and where Positive's default
/// bounds were left alone, the signature's bounds hold.
[[nodiscard]] Kernel make_kernel(std::string_view name, std::vector<Positive> parameters = {},
                                 Dimensions dims = {}, std::optional<int> option = std::nullopt);

}  // namespace ample
