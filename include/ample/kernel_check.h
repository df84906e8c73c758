// Says what is wrong with a kernel of your own, before a fit does in a less readable way.
//
//   for (const std::string& fault : kernel_faults(kernel, X, Z)) std::cerr << fault << "\n";
//
// Laws that every kernel must obey: k(x, z) = k(z, x); an entry depends on its own two points
// alone; the diagonal is the diagonal; K(X, X) is positive semidefinite; every pull-back is the
// derivative (against extrapolated differences), is added to what is there, and leaves alone what
// is not asked for; the text reads back to an equal kernel. For tests: some fifty evaluations for
// each parameter and coordinate.
#pragma once

#include <string>
#include <vector>

#include "ample/kernel.h"
#include "ample/types.h"

namespace ample {

/// What the kernel does wrong at these points, one line each; nothing if it is sound. Take a
/// handful of points, X and Z different, some nearer and some farther than a lengthscale, and
/// values of the parameters other than 1. At points where k has a kink no difference is a
/// derivative. An error is relative to max(1, |expected|).
[[nodiscard]] std::vector<std::string> kernel_faults(const Kernel& kernel, const MatrixRef& X,
                                                     const MatrixRef& Z, double tolerance = 1e-6);

}  // namespace ample
