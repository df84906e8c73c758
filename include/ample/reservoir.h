// A bounded sample of all rows so far, each row seen being equally likely to be in it (Vitter 1985,
// algorithm R). The rows in it depend on their order alone, not on how they were cut into batches.
// Where the past is forgotten, a row is in it with a probability that falls with what it still
// counts: those that come later replace it sooner.
//
// Hyperparameters can be fitted to it, at a cost that does not depend on the size of the model, and
// a stream that begins untypically is not held to its beginning.
#pragma once

#include <cstdint>

#include "ample/types.h"

namespace ample {

struct Reservoir {
  Matrix X;             // [R,D], in scaled units
  Vector y;             // [R]
  Index seen = 0;       // rows that were offered
  Index fitted = 0;     // `seen` when hyperparameters were last fitted to it
  double weight = 0.0;  // what the rows offered count in all: `seen` if none is forgotten
  // Whether rows came with weights: those are not kept, so what was made of the rows cannot be made
  // again.
  bool weighted = false;

  [[nodiscard]] Index size() const { return X.rows(); }

  /// Offers the rows of a batch to a sample of at most `capacity` rows.
  void offer(const MatrixRef& X_new, const VectorRef& y_new, Index capacity, std::uint64_t seed);

  /// From now on every row offered so far counts γ times what it did. The sample never has more
  /// rows than all of them count, unless that is fewer than 100 but at least one: those that go are
  /// drawn by chance.
  void forget(double gamma, std::uint64_t seed);
};

/// A sample of at most `capacity` of all rows that were offered to either, each row of the union
/// being equally likely to be in it. It is smaller where one of them kept fewer of its rows.
[[nodiscard]] Reservoir sample_of_both(const Reservoir& a, const Reservoir& b, Index capacity,
                                       std::uint64_t seed);

}  // namespace ample
