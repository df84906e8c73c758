// The data of the paper's experiments and the protocol they are used with (derivation §10):
//
//   - inputs and target standardised over the whole set, (v − mean)/(std + 1e-6), std over N;
//   - rows sorted by the first input, ties in random order, and cut into equal batches, the last
//     taking the remainder: 20 batches, or 50 from 12,000 rows on;
//   - every batch shuffled and split in 5 folds, of which one is held out.
//
// `folder` is where the data sets are, laid out as `ample-reproduce data fetch` does. Throws
// cli::DataError for a file that is missing or not what it should be.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "ample/types.h"

namespace ample::experiments {

constexpr Index kFolds = 5;

/// The six sets, smallest first.
[[nodiscard]] const std::vector<std::string>& uci_names();

/// The rows of `data` in this order.
[[nodiscard]] Batch rows_of(const Batch& data, const std::vector<Index>& rows);

/// A data set in the order of its stream, and which rows each batch trains on and holds out.
struct Stream {
  Batch all;
  std::vector<std::vector<std::vector<Index>>> held_out;  // [batch][fold] rows

  [[nodiscard]] Index batches() const { return static_cast<Index>(held_out.size()); }
  /// What a batch (from 0) trains on in a fold.
  [[nodiscard]] Batch train(Index batch, Index fold) const;
  /// The training parts of the first `seen` batches, for a model that sees everything at once.
  [[nodiscard]] Batch train_until(Index seen, Index fold) const;
  /// The test set after `seen` batches: what they held out.
  [[nodiscard]] Batch test(Index seen, Index fold) const;
};

/// Cuts data, in the order they are in, into equal batches and these into shuffled folds.
[[nodiscard]] Stream split(Batch data, Index batches, std::uint64_t seed);

/// A UCI set under the paper's protocol.
[[nodiscard]] Stream load_uci(const std::filesystem::path& folder, const std::string& name,
                              std::uint64_t seed);

/// One path of the magnetic data, 1 to 5, in the order it was walked: positions in metres, and the
/// Euclidean norm of the field in µT. Nothing is standardised.
[[nodiscard]] Batch load_magnetic(const std::filesystem::path& folder, int path);

/// Data cut into `count` batches in the order they are in, the last taking the remainder.
[[nodiscard]] std::vector<Batch> cut(const Batch& data, Index count);

}  // namespace ample::experiments
