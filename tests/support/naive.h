// Textbook code to hold the library against: kernels as scalar functions of two points, written
// from the formulas of kernel.h, and the bounds as the paper prints them, with m_a, S_a, K'_aa and
// D_a formed. O(N³), for small problems.
//
// Its linear algebra runs in quadruple precision. D_a = (S_a⁻¹ − K'_aa⁻¹)⁻¹ subtracts nearly equal
// matrices, and where the data say nothing about a direction it is as large as the inverse of the
// rounding error; in double precision nothing could be compared to nine digits.
#pragma once

#include <cfloat>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ample/kernel.h"
#include "ample/state.h"
#include "ample/types.h"

namespace ample::naive {

// --- Kernels -----------------------------------------------------------------------------------

using Point = Eigen::RowVectorXd;
/// k(θ, x, z), with θ in the order of Kernel::parameters().
using Function = std::function<double(std::span<const double>, const Point&, const Point&)>;

/// A kernel of the library and the same kernel in scalar code, built and combined together.
struct Twin {
  Kernel kernel;
  std::size_t size;  // parameters
  Function k;
};

/// K_ij = k(x_i, z_j), one entry at a time.
Matrix matrix(const Twin& twin, const Vector& theta, const Matrix& X, const Matrix& Z);

/// The current values of all parameters.
Vector theta_of(const Kernel& kernel);

/// Each kernel of the library beside its formula.
Twin twin(const SquaredExponential& leaf);
Twin twin(const Matern12& leaf);
Twin twin(const Matern32& leaf);
Twin twin(const Matern52& leaf);
Twin twin(const RationalQuadratic& leaf);
Twin twin(const Periodic& leaf);
Twin twin(const Linear& leaf);
Twin twin(const Polynomial& leaf);
Twin twin(const Constant& leaf);
Twin twin(const ArcCosine& leaf);

Twin operator+(const Twin& f, const Twin& g);
Twin operator*(const Twin& f, const Twin& g);
Twin operator*(double scale, const Twin& f);
Twin pow(const Twin& f, int exponent);

// --- A kernel of every kind --------------------------------------------------------------------

enum class Layout { isotropic, ard, subset };  // subset: ARD on chosen dimensions only

const std::vector<std::string>& leaf_names();
const std::vector<std::string>& stationary_names();
const std::vector<std::string>& composite_names();
std::vector<std::string> kernel_names();

/// n values from low to high in a fixed irregular order.
Positive spread(std::size_t n, double low, double high);

/// A kernel of that name for inputs of dimension D and of size about one; scaled so that points a
/// few units apart are correlated in any dimension.
Twin make_twin(const std::string& name, Index D, Layout layout);

// --- Matrices in quadruple precision -----------------------------------------------------------

#if LDBL_MANT_DIG >= 113
using Quad = long double;
#else
__extension__ using Quad = __float128;
#endif

class QuadMatrix {
 public:
  QuadMatrix(Index rows, Index cols)
      : rows_(rows), cols_(cols), entries_(static_cast<std::size_t>(rows * cols), Quad(0)) {}
  template <class Derived>
  QuadMatrix(const Eigen::MatrixBase<Derived>& M)  // NOLINT(*-explicit-*)
      : QuadMatrix(M.rows(), M.cols()) {
    for (Index i = 0; i < rows_; ++i) {
      for (Index j = 0; j < cols_; ++j) (*this)(i, j) = M(i, j);
    }
  }
  static QuadMatrix identity(Index n, double scale = 1.0) {
    QuadMatrix I(n, n);
    for (Index i = 0; i < n; ++i) I(i, i) = scale;
    return I;
  }

  [[nodiscard]] Index rows() const { return rows_; }
  [[nodiscard]] Index cols() const { return cols_; }
  Quad& operator()(Index i, Index j) { return entries_[static_cast<std::size_t>(i * cols_ + j)]; }
  Quad operator()(Index i, Index j) const {
    return entries_[static_cast<std::size_t>(i * cols_ + j)];
  }

  [[nodiscard]] QuadMatrix transpose() const {
    QuadMatrix T(cols_, rows_);
    for (Index i = 0; i < rows_; ++i) {
      for (Index j = 0; j < cols_; ++j) T(j, i) = (*this)(i, j);
    }
    return T;
  }
  [[nodiscard]] Quad trace() const {
    Quad sum = 0;
    for (Index i = 0; i < rows_; ++i) sum += (*this)(i, i);
    return sum;
  }
  [[nodiscard]] Matrix rounded() const {
    Matrix M(rows_, cols_);
    for (Index i = 0; i < rows_; ++i) {
      for (Index j = 0; j < cols_; ++j) M(i, j) = static_cast<double>((*this)(i, j));
    }
    return M;
  }

 private:
  Index rows_;
  Index cols_;
  std::vector<Quad> entries_;
};

QuadMatrix operator*(const QuadMatrix& A, const QuadMatrix& B);
QuadMatrix add(const QuadMatrix& A, double factor, const QuadMatrix& B);
QuadMatrix operator+(const QuadMatrix& A, const QuadMatrix& B);
QuadMatrix operator-(const QuadMatrix& A, const QuadMatrix& B);

/// [A; B] and blkdiag(A, B).
QuadMatrix stack(const QuadMatrix& A, const QuadMatrix& B);
QuadMatrix block_diagonal(const QuadMatrix& A, const QuadMatrix& B);

/// A⁻¹ and log |det A| by Gauss and Jordan with row pivoting.
struct Inverse {
  QuadMatrix matrix;
  Quad log_determinant;
};
Inverse invert(QuadMatrix A);

Quad quadratic(const QuadMatrix& x, const QuadMatrix& A);

constexpr double kLog2Pi = 1.8378770664093454835606594728112353;

/// log N(y; 0, C).
Quad log_normal(const QuadMatrix& y, const QuadMatrix& C);

// --- The paper's formulas ----------------------------------------------------------------------

/// log p(y) = log N(y; 0, K_ff + σ² I), the exact evidence.
double evidence(const Twin& twin, const Vector& theta, double noise_variance, const Batch& batch);

/// What the paper carries from one batch to the next: q(a) = N(m_a, S_a), K'_aa of p(a | θ_old);
/// and from them D_a = (S_a⁻¹ − K'_aa⁻¹)⁻¹, the pseudo-targets ỹ = D_a S_a⁻¹ m_a, and Δ.
struct Past {
  explicit Past(const State& state);

  Matrix Z;
  QuadMatrix K;
  QuadMatrix S;
  QuadMatrix m;
  QuadMatrix D;
  QuadMatrix y;
  Quad delta = 0;
};

/// Jitter as the library has it: ε on the diagonals of K_bb and K_aa, and where a row of Z_a is a
/// row of Z_b and b is the same variable as a, on that entry of K_ab.
struct Jitter {
  double epsilon;
  bool shared = true;
};

/// The matrices of the online bound at (θ, Z_b).
struct Covariances {
  Covariances(const Twin& twin, const Vector& theta, const Past& past, const Matrix& X,
              const Matrix& Z_b, const Jitter& jitter);

  QuadMatrix K_ff;
  QuadMatrix K_aa;
  QuadMatrix K_bb;
  QuadMatrix K_fb;
  QuadMatrix K_ab;
  QuadMatrix K_hb{0, 0};  // K_f̂b = [K_fb; K_ab]
  QuadMatrix Q{0, 0};     // K_f̂b K_bb⁻¹ K_bf̂
};

QuadMatrix sigma_y(double noise_variance, Index N, const Past& past);

/// The paper's eq. "onlinecollapsed": log N(ŷ; 0, Q + Σ_ŷ) + Δ − ½ tr D_a⁻¹(K_aa − Q_aa) −
/// tr(K_ff − Q_ff)/2σ².
double online_bound(const Twin& twin, const Vector& theta, double noise_variance, const Past& past,
                    const Batch& batch, const Matrix& Z_b, const Jitter& jitter);

/// The paper's L*: log N(ŷ; 0, K_f̂f̂ + Σ_ŷ) + Δ, at θ_old.
double optimum_paper(const Twin& twin, const Vector& theta, double noise_variance, const Past& past,
                     const Batch& batch);

/// L* as the log predictive density: f | q(a) has mean K_fa K_aa⁻¹ m_a and covariance
/// K_ff − K_fa K_aa⁻¹ (K_aa − S_a) K_aa⁻¹ K_af.
double optimum_density(const Twin& twin, const Vector& theta, double noise_variance,
                       const Past& past, const Batch& batch);

/// The paper's Û, with Δ: t = tr(K_f̂f̂ − Q_f̂f̂) inflates the quadratic form only. With `tight`, t
/// stands on the block of the new data alone (derivation, eq. 10).
double upper_bound(const Twin& twin, const Vector& theta, double noise_variance, const Past& past,
                   const Batch& batch, const Matrix& Z_b, const Jitter& jitter, bool tight);

}  // namespace ample::naive
