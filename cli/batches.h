// A table as a stream of batches.
//
// In the order of the file and with batches of a given size nothing is held but one batch, so a
// stream may be endless. Every other order, a given number of batches, and a scaling over all rows
// need the whole table first.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ample/scaling.h"
#include "ample/types.h"
#include "columns.h"
#include "table.h"

namespace CLI {
class App;
}

namespace ample::cli {

struct Batching {
  Index batch_size = 500;
  std::optional<Index> batches;  // how many instead of how large
  std::string order = "file";    // or "shuffle", or a column to sort by
  std::uint64_t seed = 0;        // for "shuffle"
};

/// Adds --batch-size, --batches and --order.
void add_batching_options(CLI::App& command, Batching& batching);

class BatchSource {
 public:
  /// `whole`: the table is needed at once, whatever the order.
  BatchSource(TableReader reader, const Columns& columns, const Batching& batching,
              bool whole = false);

  /// The next batch; none at the end.
  std::optional<Batch> next();

  /// How many batches there are in all; 0 if that is not known.
  [[nodiscard]] Index total() const { return total_; }
  [[nodiscard]] Index bad_rows() const { return reader_.bad_rows(); }

  /// To mean 0 and population deviation 1 over the whole table, (v − mean)/(std + 1e-6), as in the
  /// paper's experiments. For a source made with `whole`.
  [[nodiscard]] Scaling scaling() const;

 private:
  TableReader reader_;
  Batching batching_;
  std::optional<Matrix> all_;  // the rows in their order: inputs, then target
  Index total_ = 0;
  Index batch_ = 0;  // batches and rows of all_ that were given out
  Index row_ = 0;
};

/// Splits the last column off.
[[nodiscard]] Batch to_batch(const MatrixRef& rows);

}  // namespace ample::cli
