// How surprising a batch is to the model that foresaw it.
#pragma once

#include "ample/types.h"

namespace ample {

/// The probability that rows lie as far from their predictions as these, or farther, if the model
/// holds. χ² = (t − m)ᵀ C⁻¹ (t − m) of N rows has N degrees of freedom if σ² is known. It was
/// itself fitted to n rows, so it is off by some √(2/n), and χ²/N follows Fisher's F with N and n
/// degrees of freedom. n = 0: σ² was given. O(√(N + n)).
[[nodiscard]] double p_value(double chi_squared, Index rows, Index fitted_rows);

/// Whether rows so far off cannot wait for the next regular refit: practically impossible if the
/// model holds, and by more than a little. A model is never quite right, and many rows show that.
[[nodiscard]] bool is_surprising(double chi_squared, Index rows, Index fitted_rows);

}  // namespace ample
