// Dense linear algebra on BLAS, in the few forms the bound needs; everything big goes
// through here. Matrices are column-major, triangles are lower ones, and work is in place.
//
// BLAS is called directly rather than through Eigen: Eigen's switches for it would have to be set
// in every program that includes our headers, or two different versions of Eigen's templates would
// be linked into one program.
#pragma once

#include "ample/types.h"

namespace ample {

enum class Op { none, transpose };

/// C ← α op(A) op(B) + β C.
void multiply(double alpha, const MatrixRef& A, Op op_a, const MatrixRef& B, Op op_b, double beta,
              Eigen::Ref<Matrix> C);

/// Lower triangle of C ← α AᵀA + β C.
void gram(double alpha, const MatrixRef& A, double beta, Eigen::Ref<Matrix> C);
/// Lower triangle of C ← α A Aᵀ + β C.
void outer(double alpha, const MatrixRef& A, double beta, Eigen::Ref<Matrix> C);
/// Lower triangle of C ← α AᵀB + β C; spoils the upper one.
void multiply_lower(double alpha, const MatrixRef& A, const MatrixRef& B, double beta,
                    Eigen::Ref<Matrix> C);

/// C ← α S B + β C for a symmetric S given by its lower triangle.
void multiply_symmetric(double alpha, const MatrixRef& S, const MatrixRef& B, double beta,
                        Eigen::Ref<Matrix> C);

/// B ← op(L) B  and  B ← B op(L).
void multiply_triangle_left(const MatrixRef& L, Op op, Eigen::Ref<Matrix> B);
void multiply_triangle_right(const MatrixRef& L, Op op, Eigen::Ref<Matrix> B);

/// B ← op(L)⁻¹ B  and  B ← B op(L)⁻¹.
void solve_left(const MatrixRef& L, Op op, Eigen::Ref<Matrix> B);
void solve_right(const MatrixRef& L, Op op, Eigen::Ref<Matrix> B);

/// B ← L⁻¹ B for a lower triangular B with zeros above its diagonal; half the work of solve_left.
void solve_left_triangle(const MatrixRef& L, Eigen::Ref<Matrix> B);

/// x ← op(L)⁻¹ x.
void solve(const MatrixRef& L, Op op, Eigen::Ref<Vector> x);

/// The lower triangle of A becomes its Cholesky factor; the upper one is left alone. False if A is
/// not positive definite to working precision or holds a value that is not finite; A is then
/// spoilt.
[[nodiscard]] bool cholesky(Eigen::Ref<Matrix> A);

/// The factor of L Lᵀ + RᵀR for a few rows R [N,M]. O(N M²), against O(M³) anew; it cannot fail.
/// Worth it where update_is_cheaper() says so.
void update_cholesky(Eigen::Ref<Matrix> L, const MatrixRef& R);
[[nodiscard]] bool update_is_cheaper(Index rows, Index M);

/// The lower triangle of L becomes that of (L Lᵀ)⁻¹.
void invert_from_cholesky(Eigen::Ref<Matrix> L);

/// S ← Lᵀ S L  and  S ← L⁻ᵀ S L⁻¹  for a symmetric S; lower triangles, the upper one is spoilt.
void multiply_both_sides(const MatrixRef& L, Eigen::Ref<Matrix> S);
void solve_both_sides(const MatrixRef& L, Eigen::Ref<Matrix> S);

/// Copies a lower triangle, and leaves the strict upper one of `to` alone.
void copy_lower(const MatrixRef& from, Eigen::Ref<Matrix> to);

/// Copies the lower triangle to the upper one; sets the strict upper one to zero.
void mirror_lower(Eigen::Ref<Matrix> A);
void clear_upper(Eigen::Ref<Matrix> A);

/// ⟨A, B⟩ = Σ_ij A_ij B_ij of two symmetric matrices given by their lower triangles.
double inner_lower(const MatrixRef& A, const MatrixRef& B);

/// Σ_i log L_ii.
double sum_log_diagonal(const MatrixRef& L);

}  // namespace ample
