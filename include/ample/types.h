// The vocabulary of the library: matrices, vectors, a batch of data, a prediction, its failure.
//
// Points are rows: N points in D dimensions are an N×D column-major matrix, so that one input
// dimension of all points is contiguous, which is what the kernels' vectorised loops read.
#pragma once

#include <stdexcept>

#include <Eigen/Core>

namespace ample {

using Index = Eigen::Index;
using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

/// Read-only views; a column-major argument is passed without a copy.
using MatrixRef = Eigen::Ref<const Matrix>;
using VectorRef = Eigen::Ref<const Vector>;

/// One batch of a stream: inputs X [N,D] and targets y [N].
struct Batch {
  Matrix X;
  Vector y;
};

/// Gaussian marginals at N query points.
struct Prediction {
  Vector mean;      // [N]
  Vector variance;  // [N], never negative
};

/// A computation that could not be carried out even with the library's remedies; the object is left
/// as it was.
struct NumericalError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace ample
