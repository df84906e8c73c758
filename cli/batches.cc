#include "batches.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "errors.h"

namespace ample::cli {

void add_batching_options(CLI::App& command, Batching& batching) {
  auto* size = command
                   .add_option("--batch-size", batching.batch_size,
                               "Rows of a batch; the last takes what is left")
                   ->capture_default_str()
                   ->type_name("N");
  command.add_option("--batches", batching.batches, "Cut the data into K equal batches instead")
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
    : reader_(std::move(reader)), batching_(batching) {
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
  if (batching.order == "file" && !batching.batches && !whole) return;

  Matrix rows = reader_.rest().values;
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
  all_ = rows(order, Eigen::seqN(0, columns.dimension() + 1));
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

std::optional<Batch> BatchSource::next() {
  if (!all_) {
    const Matrix rows = reader_.next(batching_.batch_size);
    return rows.rows() > 0 ? std::optional(to_batch(rows)) : std::nullopt;
  }
  if (batch_ == total_) return std::nullopt;
  const bool last = ++batch_ == total_;  // takes the remainder
  const Index size = last ? all_->rows() - row_ : batching_.batch_size;
  Batch batch = to_batch(all_->middleRows(row_, size));
  row_ += size;
  return batch;
}

Scaling BatchSource::scaling() const {
  const Index D = all_->cols() - 1;
  const Vector mean = all_->colwise().mean();
  const Vector deviation =
      (all_->rowwise() - mean.transpose()).array().square().colwise().mean().sqrt() + 1e-6;
  return {mean.head(D), deviation.head(D), mean[D], deviation[D]};
}

}  // namespace ample::cli
