#include "batches.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "errors.h"
#include "numbers.h"

namespace ample::cli {

void add_batching_options(CLI::App& command, Batching& batching) {
  auto* size = command
                   .add_option("--batch-size", batching.batch_size,
                               "Rows of a batch; the last takes what is left")
                   ->transform(whole_number<Index>())
                   ->capture_default_str()
                   ->type_name("N");
  command.add_option("--batches", batching.batches, "Cut the data into K equal batches instead")
      ->transform(whole_number<Index>())
      ->excludes(size)
      ->type_name("K");
  command
      .add_option("--order", batching.order,
                  "Order of the rows: file, shuffle, or a column to sort by")
      ->capture_default_str()
      ->type_name("ORDER");
}

Batch to_batch(const MatrixRef& rows) {
  return {rows.leftCols(rows.cols() - 1), rows.rightCols(1)};
}

BatchSource::BatchSource(TableReader reader, const Columns& columns, const Batching& batching,
                         bool whole)
    : reader_(std::move(reader)), batching_(batching), timed_(columns.time.has_value()) {
  if (batching.batch_size < 1) {
    throw UsageError(fmt::format("--batch-size is {}, expected at least 1", batching.batch_size));
  }
  if (batching.batches && *batching.batches < 1) {
    throw UsageError(fmt::format("--batches is {}, expected at least 1", *batching.batches));
  }
  const bool sorted = batching.order != "file" && batching.order != "shuffle";
  std::vector<Index> wanted = columns.all();
  if (sorted) wanted.push_back(find_column(reader_.names(), reader_.columns(), batching.order));
  reader_.select(wanted);
  if (batching.order == "file" && !batching.batches && !whole) {
    if (reader_.is_file()) {
      ahead_ = std::make_unique<Ahead<Read>>([this] { return read(); });
    }
    return;
  }

  Matrix rows = reader_.rest().values;
  bad_rows_ = reader_.bad_rows();
  const Index N = rows.rows();
  std::vector<Index> order(static_cast<std::size_t>(N));
  std::iota(order.begin(), order.end(), Index{0});
  if (sorted) {
    const auto key = rows.rightCols(1);
    // Rows with equal keys stay in the order of the file.
    std::ranges::sort(order, {}, [&](Index row) { return std::pair(key(row), row); });
  } else if (batching.order == "shuffle") {
    std::mt19937_64 random(batching.seed);
    std::ranges::shuffle(order, random);
  }
  all_ = rows(order, Eigen::seqN(0, columns.dimension() + (timed_ ? 2 : 1)));
  if (!batching.batches) {
    total_ = (N + batching.batch_size - 1) / batching.batch_size;
  } else if (*batching.batches <= N) {
    total_ = *batching.batches;
    batching_.batch_size = N / total_;
  } else {
    throw UsageError(fmt::format("--batches is {}, expected at most {}, the rows of the data",
                                 *batching.batches, N));
  }
}

std::optional<BatchSource::Read> BatchSource::read() {
  const Matrix rows = reader_.next(batching_.batch_size);
  if (rows.rows() == 0) return std::nullopt;
  return Read{to_timed_batch(rows), reader_.bad_rows()};
}

TimedBatch BatchSource::to_timed_batch(const MatrixRef& rows) const {
  if (!timed_) return {to_batch(rows), std::nullopt};
  return {to_batch(rows.leftCols(rows.cols() - 1)), rows.rightCols(1).maxCoeff()};
}

std::optional<TimedBatch> BatchSource::next() {
  if (!all_) {
    std::optional<Read> next = ahead_ ? ahead_->next() : read();
    // At the end, the reader is nobody else's any more.
    bad_rows_ = next ? next->bad_rows : reader_.bad_rows();
    return next ? std::optional(std::move(next->batch)) : std::nullopt;
  }
  if (batch_ == total_) return std::nullopt;
  const bool last = ++batch_ == total_;  // takes the remainder
  const Index size = last ? all_->rows() - row_ : batching_.batch_size;
  TimedBatch batch = to_timed_batch(all_->middleRows(row_, size));
  row_ += size;
  return batch;
}

Scaling BatchSource::scaling() const {
  const Index D = all_->cols() - (timed_ ? 2 : 1);
  try {
    Scaling all = Scaling::standardize(all_->leftCols(D), all_->col(D));
    all.check(D);
    return all;
  } catch (const std::invalid_argument& error) {  // of these data, not of what the user asked
    throw NumericalError(fmt::format("{}; rescale the data", error.what()));
  }
}

}  // namespace ample::cli
