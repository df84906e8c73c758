// A lower triangle beside a few columns, turned into a lower triangle alone: what is left of a
// factor L of L Lᵀ when rows and columns of L Lᵀ go. By Householder reflections in blocks, so that
// nearly all of the work is BLAS-3, and stable whatever the condition of L.
#pragma once

#include "ample/types.h"

namespace ample {

/// [L G] Q = [L_new 0] with an orthogonal Q [m+k,m+k]. O(k m²).
class Retriangulation {
 public:
  /// L [m,m] with a positive diagonal, of which the lower triangle is read; Gᵀ [k,m].
  Retriangulation(Matrix L, Matrix Gt);

  /// L_new, with zeros above its positive diagonal.
  [[nodiscard]] const Matrix& factor() const { return L_; }

  /// [C₁ C₂] ← [C₁ C₂] Q for C₁ of m columns and C₂ of k.
  void multiply_right(Eigen::Ref<Matrix> C1, Eigen::Ref<Matrix> C2) const;
  /// [C₁; C₂] ← Qᵀ [C₁; C₂] for C₁ of m rows and C₂ of k.
  void multiply_left(Eigen::Ref<Matrix> C1, Eigen::Ref<Matrix> C2) const;

 private:
  void reflect_panel(Index first, Index width);

  Matrix L_;
  Matrix B_;  // [k,m]: reflection i is I − τ v vᵀ with v = (e_i, B_i)
  Matrix T_;  // [width of a panel, m]: those of a panel together are I − V T Vᵀ
};

}  // namespace ample
