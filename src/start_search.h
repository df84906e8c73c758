// Where a model's first fit begins, if the user has nothing particular in mind.
#pragma once

#include <optional>
#include <string>

#include "ample/hyperparameters.h"
#include "ample/optimizer.h"
#include "ample/sites.h"
#include "ample/types.h"

namespace ample {

/// `start` with its free lengthscales times 1, a third, a tenth or a thirtieth, whichever makes the
/// batch most probable.
[[nodiscard]] Hyperparameters search_lengthscales(const Hyperparameters& start, const Matrix& X,
                                                  const Sites& sites);

/// What was tried, and what was chosen.
struct FoundKernel {
  Hyperparameters theta;
  std::string comparison;  // one line: each candidate with the log density of what it foresaw
};

/// Which kernels come into question: all, or the squared exponential alone.
enum class Roughness { any, smooth };
/// With one lengthscale for all inputs or one for each, whichever foresees better; or one for each.
enum class Lengthscales { any, each };

/// A kernel for standardised data of any kind: squared exponential, Matérn-5/2 or Matérn-3/2, with
/// one lengthscale for all inputs or one for each, short or long. At most 2000 rows are looked at;
/// candidates are fitted by the evidence to two thirds of at most 1000, and that which foresees all
/// others best is fitted to the 1000. If none foresees them better than the model that explains
/// nothing, the result takes next to all for noise. The noise variance keeps the bounds of `start`.
[[nodiscard]] FoundKernel find_kernel(const Hyperparameters& start, const Matrix& X,
                                      const Vector& y, Roughness roughness,
                                      Lengthscales lengthscales, const ShouldStop& should_stop);

/// A kernel like one that was found for fewer rows, with a lengthscale for each input, if it
/// foresees these much better. At most 1000 are fitted to.
[[nodiscard]] std::optional<FoundKernel> find_better_kernel(const Hyperparameters& known,
                                                            const Matrix& X, const Vector& y,
                                                            const ShouldStop& should_stop);

/// Whether next to all is taken for noise: a kernel is still to be found.
[[nodiscard]] bool explains_nothing(const Hyperparameters& theta, const Matrix& X);

}  // namespace ample
