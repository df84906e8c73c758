// The paper's streams as files, so that other programs learn from the very same batches.
//
//   dump_batches FOLDER NAME...
//
// For each data set, of seed 0 and fold 0: FOLDER/NAME/train.f64 and test.f64, rows of inputs and
// then the target, as raw doubles, and stream.json with the number of columns and the rows of every
// batch. Needs the data sets (AMPLE_DATA).
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "protocol.h"
#include "support/data.h"

namespace ample {
namespace {

void write(const std::filesystem::path& path, const Batch& data) {
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> rows(data.X.rows(),
                                                                              data.X.cols() + 1);
  rows << data.X, data.y;
  std::ofstream file(path, std::ios::binary);
  file.exceptions(std::ios::failbit | std::ios::badbit);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the bytes of the matrix
  file.write(reinterpret_cast<const char*>(rows.data()),
             static_cast<std::streamsize>(sizeof(double)) * rows.size());
}

void dump(const std::filesystem::path& folder, const std::string& name) {
  const experiments::Stream data = experiments::load_uci(testing::data_dir(), name, 0);
  std::filesystem::create_directories(folder);
  std::vector<Index> rows;
  rows.reserve(static_cast<std::size_t>(data.batches()));
  for (Index b = 0; b < data.batches(); ++b) rows.push_back(data.train(b, 0).X.rows());
  write(folder / "train.f64", data.train_until(data.batches(), 0));
  write(folder / "test.f64", data.test(data.batches(), 0));
  std::ofstream(folder / "stream.json")
      << nlohmann::json{{"name", name}, {"columns", data.all.X.cols() + 1}, {"rows", rows}} << '\n';
}

}  // namespace
}  // namespace ample

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: dump_batches FOLDER NAME...\n");
    return 2;
  }
  if (!ample::testing::has_data()) {
    fmt::print(stderr, "dump_batches: {}\n", ample::testing::no_data());
    return 3;
  }
  for (int i = 2; i < argc; ++i) ample::dump(std::filesystem::path(argv[1]) / argv[i], argv[i]);
  return 0;
}
