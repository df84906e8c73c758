// A table as a stream of batches.
//
// In the order of the file and with batches of a given size nothing is held but a batch or two, so
// a stream may be endless. A file is read while the batch before is learnt; what comes as a stream
// is taken only when it is wanted, because it cannot be read again. Every other order, a given
// number of batches, and a scaling over all rows need the whole table first.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ahead.h"
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

/// A batch of rows, and the time of the latest of them if the data have one.
struct TimedBatch {
  Batch rows;
  std::optional<double> time;
};

class BatchSource {
 public:
  /// `whole`: the table is needed at once, whatever the order.
  BatchSource(TableReader reader, const Columns& columns, const Batching& batching,
              bool whole = false);
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;
  BatchSource(BatchSource&&) = delete;
  BatchSource& operator=(BatchSource&&) = delete;
  ~BatchSource() = default;

  /// The next batch; none at the end.
  std::optional<TimedBatch> next();

  /// How many batches there are in all; 0 if that is not known.
  [[nodiscard]] Index total() const { return total_; }
  /// Dropped so far, until the last batch given out.
  [[nodiscard]] Index bad_rows() const { return bad_rows_; }

  /// To mean 0 and population deviation 1 over the whole table, (v − mean)/(std + 1e-6), as in the
  /// paper's experiments. For a source made with `whole`.
  [[nodiscard]] Scaling scaling() const;

 private:
  /// A batch, and the rows dropped until its end.
  struct Read {
    TimedBatch batch;
    Index bad_rows;
  };
  std::optional<Read> read();
  [[nodiscard]] TimedBatch to_timed_batch(const MatrixRef& rows) const;

  TableReader reader_;
  Batching batching_;
  Index bad_rows_ = 0;
  bool timed_;
  std::optional<Matrix> all_;  // the rows in their order: inputs, target, time
  Index total_ = 0;
  Index batch_ = 0;  // batches and rows of all_ that were given out
  Index row_ = 0;
  std::unique_ptr<Ahead<Read>> ahead_;  // last: it uses the rest
};

/// Splits the last column off.
[[nodiscard]] Batch to_batch(const MatrixRef& rows);

}  // namespace ample::cli
