#include "protocol.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "errors.h"
#include "table.h"

namespace ample::experiments {
namespace {

using Engine = std::mt19937_64;

std::vector<Index> permutation(Index n, Engine& engine) {
  std::vector<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), Index{0});
  // The standard does not fix what this makes of the engine's numbers, so another standard library
  // may split otherwise. It stays: with another shuffle every recorded split would be another one.
  std::shuffle(order.begin(), order.end(), engine);
  return order;
}

void standardize(Eigen::Ref<Vector> v) {
  v.array() -= v.mean();
  const auto n = static_cast<double>(v.size());
  v /= std::sqrt(v.squaredNorm() / n) + 1e-6;
}

/// A UCI set as published: inputs, and the target last. Naval loses its constant inputs (columns 9
/// and 12) and the turbine decay (18); its target is the compressor decay (17).
Batch read_uci(const std::filesystem::path& folder, const std::string& name) {
  const bool text = name == "kin8nm" || name == "naval";
  const auto path = folder / "uci" / (name + (text ? ".txt" : ".csv.gz"));
  const Matrix table =
      cli::read_table(path.string(), {.delimiter = text ? ' ' : ',', .header = false}).values;
  std::vector<Index> columns(static_cast<std::size_t>(table.cols()));
  std::iota(columns.begin(), columns.end(), Index{0});
  if (name == "naval") {
    std::erase_if(columns,
                  [](Index column) { return column == 8 || column == 11 || column == 17; });
  }
  const Index target = columns.back();
  columns.pop_back();
  return {table(Eigen::all, columns), table.col(target)};
}

void add_training(const Stream& stream, Index batch, Index fold, std::vector<Index>& rows) {
  const auto& folds = stream.held_out[static_cast<std::size_t>(batch)];
  for (std::size_t other = 0; other < folds.size(); ++other) {
    if (static_cast<Index>(other) == fold) continue;
    rows.insert(rows.end(), folds[other].begin(), folds[other].end());
  }
}

}  // namespace

const std::vector<std::string>& uci_names() {
  static const std::vector<std::string> names{"concrete", "skillcraft", "kin8nm",
                                              "naval",    "elevators",  "bike"};
  return names;
}

Batch rows_of(const Batch& data, const std::vector<Index>& rows) {
  return {data.X(rows, Eigen::all), data.y(rows)};
}

Batch Stream::train(Index batch, Index fold) const {
  std::vector<Index> rows;
  add_training(*this, batch, fold, rows);
  return rows_of(all, rows);
}

Batch Stream::train_until(Index seen, Index fold) const {
  std::vector<Index> rows;
  for (Index batch = 0; batch < seen; ++batch) add_training(*this, batch, fold, rows);
  return rows_of(all, rows);
}

Batch Stream::test(Index seen, Index fold) const {
  std::vector<Index> rows;
  for (Index batch = 0; batch < seen; ++batch) {
    const auto& part = held_out[static_cast<std::size_t>(batch)][static_cast<std::size_t>(fold)];
    rows.insert(rows.end(), part.begin(), part.end());
  }
  return rows_of(all, rows);
}

Stream split(Batch data, Index batches, std::uint64_t seed) {
  Engine engine(seed);
  const Index N = data.X.rows();
  const Index size = N / batches;
  Stream out{std::move(data), {}};
  for (Index b = 0; b < batches; ++b) {
    const Index first = b * size;
    const Index last = b + 1 == batches ? N : first + size;
    std::vector<std::vector<Index>> folds(kFolds);
    std::size_t next = 0;
    for (const Index i : permutation(last - first, engine)) {
      folds[next++ % folds.size()].push_back(first + i);
    }
    out.held_out.push_back(std::move(folds));
  }
  return out;
}

Stream load_uci(const std::filesystem::path& folder, const std::string& name, std::uint64_t seed) {
  Batch data = read_uci(folder, name);
  for (Index d = 0; d < data.X.cols(); ++d) standardize(data.X.col(d));
  standardize(data.y);
  // Ties in a random order: the first input of naval has nine values, and in the order of the file
  // its other inputs would be sorted too, so that each batch shows less of them.
  Engine engine(seed);
  std::vector<Index> order = permutation(data.X.rows(), engine);
  std::ranges::stable_sort(order, {}, [&](Index row) { return data.X(row, 0); });
  return split(rows_of(data, order), data.X.rows() < 12'000 ? 20 : 50, seed);
}

Batch load_magnetic(const std::filesystem::path& folder, int path) {
  const auto read = [&](const char* what) {
    const auto file = folder / "magnetic" / (std::to_string(path) + what);
    return cli::read_table(file.string(), {.delimiter = ',', .header = false}).values;
  };
  const Matrix location = read("-loc.csv");
  const Matrix field = read("-mag.csv");
  if (location.cols() != 2 || field.cols() != 3 || location.rows() != field.rows()) {
    throw cli::DataError(
        fmt::format("magnetic path {}: {} x {} locations and {} x {} fields, expected N x 2 and "
                    "N x 3",
                    path, location.rows(), location.cols(), field.rows(), field.cols()));
  }
  return {location, field.rowwise().norm()};
}

std::vector<Batch> cut(const Batch& data, Index count) {
  const Index size = data.X.rows() / count;
  std::vector<Batch> batches;
  for (Index b = 0; b < count; ++b) {
    const Index first = b * size;
    const Index rows = b + 1 == count ? data.X.rows() - first : size;
    batches.push_back({data.X.middleRows(first, rows), data.y.segment(first, rows)});
  }
  return batches;
}

}  // namespace ample::experiments
