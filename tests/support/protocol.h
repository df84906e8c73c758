// The data of the paper's experiments and the protocol they are used with (derivation §10):
//
//   - inputs and target standardised over the whole set, (v − mean)/(std + 1e-6), std over N;
//   - rows sorted by the first input, ties in random order, and cut into equal batches, the last
//     taking the remainder: 20 batches, or 50 from 12,000 rows on;
//   - every batch shuffled and split in 5 folds, of which one is held out.
//
// The files are not part of the project. They are looked for in the folder that the environment
// variable AMPLE_DATA names, else in ../shared/data beside the sources; a test without them is
// skipped: `if (!has_data()) GTEST_SKIP() << no_data();`.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ample/types.h"
#include "support/random.h"
#include "table.h"

namespace ample::testing {

constexpr Index kFolds = 5;

inline std::filesystem::path data_dir() {
  if (const char* named = std::getenv("AMPLE_DATA")) return named;
  return std::filesystem::path(AMPLE_SOURCE_DIR).parent_path() / "shared" / "data";
}
inline bool has_data() { return std::filesystem::is_directory(data_dir() / "uci"); }
inline std::string no_data() {
  return "no data in " + data_dir().string() + "; set AMPLE_DATA to the folder with uci/";
}

inline const std::vector<std::string>& uci_names() {
  static const std::vector<std::string> names{"concrete",  "skillcraft", "kin8nm",
                                              "elevators", "naval",      "bike"};
  return names;
}

/// The rows of `data` in this order.
inline Batch rows_of(const Batch& data, const std::vector<Index>& rows) {
  return {data.X(rows, Eigen::all), data.y(rows)};
}

/// A data set in the order of its stream, and which rows each batch trains on and holds out.
struct PaperData {
  Batch all;
  std::vector<std::vector<std::vector<Index>>> held_out;  // [batch][fold] rows

  [[nodiscard]] Index batches() const { return static_cast<Index>(held_out.size()); }

  /// What a batch (from 0) trains on in a fold.
  [[nodiscard]] Batch train(Index batch, Index fold) const {
    std::vector<Index> rows;
    add_training(batch, fold, rows);
    return rows_of(all, rows);
  }
  /// The training parts of all batches, for a model that sees everything at once.
  [[nodiscard]] Batch train(Index fold) const {
    std::vector<Index> rows;
    for (Index batch = 0; batch < batches(); ++batch) add_training(batch, fold, rows);
    return rows_of(all, rows);
  }
  /// The test set after `seen` batches: what they held out.
  [[nodiscard]] Batch test(Index seen, Index fold) const {
    std::vector<Index> rows;
    for (Index batch = 0; batch < seen; ++batch) {
      const auto& part = folds(batch)[static_cast<std::size_t>(fold)];
      rows.insert(rows.end(), part.begin(), part.end());
    }
    return rows_of(all, rows);
  }

 private:
  [[nodiscard]] const std::vector<std::vector<Index>>& folds(Index batch) const {
    return held_out[static_cast<std::size_t>(batch)];
  }
  void add_training(Index batch, Index fold, std::vector<Index>& rows) const {
    for (Index other = 0; other < kFolds; ++other) {
      if (other == fold) continue;
      const auto& part = folds(batch)[static_cast<std::size_t>(other)];
      rows.insert(rows.end(), part.begin(), part.end());
    }
  }
};

enum class Deviation { population, sample };  // divides by N or by N − 1

inline void standardize(Eigen::Ref<Vector> v, Deviation deviation) {
  v.array() -= v.mean();
  const auto n = static_cast<double>(v.size() - (deviation == Deviation::sample ? 1 : 0));
  v /= std::sqrt(v.squaredNorm() / n) + 1e-6;
}

/// Cuts data, in the order they are in, into equal batches and these into shuffled folds.
inline PaperData split(Batch data, Index batches, std::uint64_t seed) {
  Random random(seed);
  const Index N = data.X.rows();
  const Index size = N / batches;
  PaperData out{std::move(data), {}};
  for (Index b = 0; b < batches; ++b) {
    const Index first = b * size;
    const Index last = b + 1 == batches ? N : first + size;
    std::vector<std::vector<Index>> folds(kFolds);
    std::size_t next = 0;
    for (const Index i : random.permutation(last - first)) {
      folds[next++ % folds.size()].push_back(first + i);
    }
    out.held_out.push_back(std::move(folds));
  }
  return out;
}

/// A UCI set as published: inputs, and the target last. Naval loses its constant inputs (columns 9
/// and 12) and the turbine decay (18); its target is the compressor decay (17).
inline Batch read_uci(const std::string& name) {
  const bool text = name == "kin8nm" || name == "naval";
  const auto path = data_dir() / "uci" / (name + (text ? ".txt" : ".csv.gz"));
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

/// A UCI set under the paper's protocol.
inline PaperData load_uci(const std::string& name, std::uint64_t seed,
                          Deviation deviation = Deviation::population) {
  Batch data = read_uci(name);
  for (Index d = 0; d < data.X.cols(); ++d) standardize(data.X.col(d), deviation);
  standardize(data.y, deviation);
  // Ties in a random order: the first input of naval has nine values, and in the order of the file
  // its other inputs would be sorted too, so that each batch shows less of them.
  std::vector<Index> order = Random(seed).permutation(data.X.rows());
  std::ranges::stable_sort(order, {}, [&](Index row) { return data.X(row, 0); });
  return split(rows_of(data, order), data.X.rows() < 12'000 ? 20 : 50, seed);
}

/// One path of the magnetic data, 1 to 5, in the order it was walked: positions in metres, and the
/// Euclidean norm of the field in µT. Nothing is standardised.
inline Batch load_magnetic(int path) {
  const auto read = [&](const char* what) {
    const auto file = data_dir() / "magnetic" / (std::to_string(path) + what);
    return cli::read_table(file.string(), {.delimiter = ',', .header = false}).values;
  };
  const Matrix location = read("-loc.csv");
  const Matrix field = read("-mag.csv");
  if (location.cols() != 2 || field.cols() != 3 || location.rows() != field.rows()) {
    throw std::runtime_error("magnetic: the files of one path do not fit together");
  }
  return {location, field.rowwise().norm()};
}

}  // namespace ample::testing
