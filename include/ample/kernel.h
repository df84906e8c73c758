// Covariance functions: immutable values, composed with + and *.
//
//   Kernel k = Constant{500} + Matern52{.variance = 1, .lengthscale = {1, 2}};
//   Matrix K = k(X, Z);                      // K_ij = k(x_i, z_j)                    [N,M]
//   k.pull_back(X, Z, K_bar, {.theta = &g}); // g += Σ_ij K̄_ij ∂k(x_i, z_j)/∂θ        [P]
//
// Evaluation and pull-back work on whole matrices: one virtual call for a block of columns, then
// vectorised loops. Distances are sums of squared differences, never |x|² + |z|² − 2xᵀz, so equal
// points are at distance exactly 0 and a common offset (time stamps, say) costs no digits.
// ∂K/∂θ is never stored. Cost O(N M D) for everything.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ample/types.h"

namespace ample {

/// A hyperparameter: one positive number, or one per input dimension (ARD), with box bounds for
/// the optimiser. `Positive{1, 2}` is two numbers; `Positive(1).within(0.1, 10)`, `.fixed()`.
struct Positive {
  // Wide enough for data in any sane unit; the ends keep logarithms and squares far from overflow.
  static constexpr double kDefaultLower = 1e-6;
  static constexpr double kDefaultUpper = 1e8;

  Positive(double value) : values{value} {}                       // NOLINT(*-explicit-*)
  Positive(std::initializer_list<double> list) : values(list) {}  // NOLINT(*-explicit-*)
  explicit Positive(std::vector<double> list) : values(std::move(list)) {}

  /// The same with other bounds for the optimiser.
  [[nodiscard]] Positive within(double lower_bound, double upper_bound) const {
    Positive copy = *this;
    copy.lower = lower_bound;
    copy.upper = upper_bound;
    return copy;
  }
  /// The same, kept at its value by the optimiser.
  [[nodiscard]] Positive fixed() const {
    Positive copy = *this;
    copy.is_fixed = true;
    return copy;
  }

  std::vector<double> values;
  double lower = kDefaultLower;
  double upper = kDefaultUpper;
  bool is_fixed = false;
};

/// The input dimensions (columns, from 0) a kernel looks at; empty means all.
using Dimensions = std::vector<Index>;

/// σ² exp(−s/2), s = Σ_d (x_d − z_d)²/ℓ_d².
struct SquaredExponential {
  Positive variance = 1.0;
  Positive lengthscale = 1.0;
  Dimensions dims = {};
};

/// σ² exp(−√s). Paths are continuous, not differentiable.
struct Matern12 {
  Positive variance = 1.0;
  Positive lengthscale = 1.0;
  Dimensions dims = {};
};

/// σ² (1 + √(3s)) exp(−√(3s)).
struct Matern32 {
  Positive variance = 1.0;
  Positive lengthscale = 1.0;
  Dimensions dims = {};
};

/// σ² (1 + √(5s) + 5s/3) exp(−√(5s)).
struct Matern52 {
  Positive variance = 1.0;
  Positive lengthscale = 1.0;
  Dimensions dims = {};
};

/// σ² (1 + s/(2α))^−α: a mixture of squared exponentials over lengthscales.
struct RationalQuadratic {
  Positive variance = 1.0;
  Positive lengthscale = 1.0;
  Positive alpha = 1.0;
  Dimensions dims = {};
};

/// σ² exp(−2 Σ_d sin²(π(x_d − z_d)/p)/ℓ_d²) (MacKay's form, scikit-learn's ExpSineSquared).
struct Periodic {
  Positive variance = 1.0;
  Positive lengthscale = 1.0;
  Positive period = 1.0;
  Dimensions dims = {};
};

/// Σ_d σ_d² x_d z_d.
struct Linear {
  Positive variance = 1.0;
  Dimensions dims = {};
};

/// (σ² xᵀz + offset)^degree.
struct Polynomial {
  Positive variance = 1.0;
  Positive offset = 1.0;
  int degree = 2;
  Dimensions dims = {};
};

/// σ².
struct Constant {
  Positive variance = 1.0;
};

/// Arc-cosine kernel of order 0, 1 or 2 (Cho & Saul 2009): an infinitely wide layer of step, ReLU
/// or squared-ReLU units with weight variances w_d and bias variance b.
struct ArcCosine {
  Positive variance = 1.0;
  Positive weight_variance = 1.0;
  Positive bias_variance = 1.0;
  int order = 1;
  Dimensions dims = {};
};

/// One scalar hyperparameter as the optimiser sees it.
struct Parameter {
  /// What a parameter means, whatever its name; it also says in which unit the parameter is.
  enum class Kind {
    variance,     // of the function: scales k
    lengthscale,  // a distance in the inputs, over which the function changes
    period,       // a distance in the inputs, after which it repeats
    weight,       // variance of a weight on an input: k per squared input
    offset,       // added to what the weighted inputs contribute
    shape,        // a number without a unit, e.g. an exponent
    noise,        // variance of the observations' noise; no kernel has one
  };

  std::string name;  // e.g. "matern52.lengthscale[1]"
  Kind kind;
  double value;
  double lower;
  double upper;
  bool fixed;
};

/// Where a pull-back adds its results; what is null is not computed.
struct PullBack {
  Vector* theta = nullptr;  // [P] dF/dθ for all parameters, fixed ones too, in natural units
  Matrix* X = nullptr;      // [N,D] dF/dX
  Matrix* Z = nullptr;      // [M,D] dF/dZ
};

class KernelNode;  // private to the library; ample/kernel_formula.h is the door for other kernels

/// A covariance function: an immutable value, cheap to copy.
class Kernel {
 public:
  // A kernel is written as its struct; the conversion is the point.
  // NOLINTBEGIN(*-explicit-*)
  Kernel(const SquaredExponential&);
  Kernel(const Matern12&);
  Kernel(const Matern32&);
  Kernel(const Matern52&);
  Kernel(const RationalQuadratic&);
  Kernel(const Periodic&);
  Kernel(const Linear&);
  Kernel(const Polynomial&);
  Kernel(const Constant&);
  Kernel(const ArcCosine&);
  // NOLINTEND(*-explicit-*)

  /// K_ij = k(x_i, z_j)   [N,M].
  [[nodiscard]] Matrix operator()(const MatrixRef& X, const MatrixRef& Z) const;
  void evaluate(const MatrixRef& X, const MatrixRef& Z, Eigen::Ref<Matrix> K) const;

  /// The lower triangle of K(X, X); the strict upper triangle is unspecified afterwards.
  void evaluate_lower(const MatrixRef& X, Eigen::Ref<Matrix> K) const;

  /// k(x_i, x_i)   [N].
  [[nodiscard]] Vector diagonal(const MatrixRef& X) const;

  /// Adds ⟨K̄, ∂K(X, Z)⟩ to `into`.
  void pull_back(const MatrixRef& X, const MatrixRef& Z, const MatrixRef& K_bar,
                 const PullBack& into) const;

  /// Adds ⟨K̄, ∂K(X, X)⟩ for a symmetric K̄, of which only the lower triangle is read. `into.X`
  /// receives the derivative through both arguments; `into.Z` must be null.
  void pull_back_lower(const MatrixRef& X, const MatrixRef& K_bar, const PullBack& into) const;

  /// Adds Σ_i k̄_i ∂k(x_i, x_i) to `into.theta` and `into.X`; `into.Z` must be null.
  void pull_back_diagonal(const MatrixRef& X, const VectorRef& k_bar, const PullBack& into) const;

  /// All scalar parameters, in the order of every parameter vector of this class.
  [[nodiscard]] std::vector<Parameter> parameters() const;
  [[nodiscard]] Index num_parameters() const { return num_parameters_; }

  /// The same kernel at other parameter values [P]; throws unless all lie within their bounds.
  [[nodiscard]] Kernel with_values(const VectorRef& values) const;

  /// Throws std::invalid_argument unless inputs of dimension D suit every `dims` and every ARD
  /// parameter.
  void check_dimension(Index D) const;

  /// This kernel less its additive constants, the part whose correlations say how alike two points
  /// are; the kernel itself if nothing else is in it.
  [[nodiscard]] Kernel without_constant() const;

  /// Text form, both ways: "constant(500) + matern52(variance=1, lengthscale=[1, 2])". Exact: every
  /// number is printed so that it reads back to the same bits. Grammar in docs/kernels.md; an error
  /// is a std::invalid_argument that points at the column.
  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] static Kernel parse(std::string_view text);

  /// Equal in form, values, bounds and fixed flags, to the last bit. Copies are recognised at once;
  /// otherwise the texts are compared.
  friend bool operator==(const Kernel& a, const Kernel& b);
  /// Whether one is a copy of the other, so that they are equal. One comparison of addresses; two
  /// kernels that were made apart are different instances even where they are equal.
  [[nodiscard]] bool same_instance(const Kernel& other) const { return node_ == other.node_; }

  friend Kernel operator+(const Kernel& a, const Kernel& b);
  friend Kernel operator*(const Kernel& a, const Kernel& b);
  /// A plain positive number as a factor is not a parameter; Constant{2} * k has a fitted one.
  friend Kernel operator*(double scale, const Kernel& k);
  friend Kernel operator*(const Kernel& k, double scale) { return scale * k; }
  /// k(x, z)^exponent, exponent ≥ 1, with one set of parameters (unlike k * k, which has two).
  friend Kernel pow(const Kernel& k, int exponent);

 private:
  friend struct KernelAccess;
  explicit Kernel(std::shared_ptr<const KernelNode> node);

  std::shared_ptr<const KernelNode> node_;
  Index num_parameters_ = 0;
};

bool operator==(const Kernel& a, const Kernel& b);
Kernel operator+(const Kernel& a, const Kernel& b);
Kernel operator*(const Kernel& a, const Kernel& b);
Kernel operator*(double scale, const Kernel& k);
Kernel pow(const Kernel& k, int exponent);

}  // namespace ample
