// `ample-reproduce data fetch` and `ample-reproduce data list`: the paper's data sets on this
// machine.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "data_files.h"
#include "diagnostics.h"
#include "download.h"
#include "errors.h"
#include "interrupt.h"
#include "json_text.h"
#include "output.h"
#include "reproduce.h"
#include "stopwatch.h"
#include "terminal.h"
#include "visible_text.h"

namespace ample::experiments {
namespace {

using cli::print;
using cli::UsageError;
using Json = nlohmann::ordered_json;

struct DataOptions {
  std::vector<std::string> names;
  std::string data_dir;
  std::string base_url;
  bool force = false;
  bool json = false;
};

std::string size_text(std::uintmax_t bytes) {
  const auto kilobytes = static_cast<double>(bytes) / 1e3;
  return kilobytes < 1e3 ? fmt::format("{:.0f} kB", kilobytes)
                         : fmt::format("{:.1f} MB", kilobytes / 1e3);
}

std::string url_of(const DataFile& file, std::string_view base) {
  if (base.empty()) return file.address;
  while (base.ends_with('/')) base.remove_suffix(1);
  return fmt::format("{}/{}", base, file.path);
}

void fetch(const DataFile& file, const std::filesystem::path& target, const std::string& base) {
  const cli::StatusLine line;
  std::optional<Stopwatch> since_shown;
  DownloadOptions options;
  options.progress = [&](std::uintmax_t bytes) {
    // Often enough for the eye.
    if (since_shown && since_shown->seconds() < 0.1 && bytes < file.bytes) return;
    since_shown.emplace();
    line.show(
        fmt::format("{} · {} % of {}", file.path, 100 * bytes / file.bytes, size_text(file.bytes)));
  };
  try {
    download({url_of(file, base), target, file.bytes, file.sha256}, options);
  } catch (const cli::Interrupted&) {
    cli::say("ample-reproduce data fetch", "stopped by a signal; run the command again to go on");
    throw;
  }
}

void run_fetch(const DataOptions& options) {
  if (!options.base_url.empty() && !options.base_url.starts_with("http://") &&
      !options.base_url.starts_with("https://")) {
    throw UsageError(
        fmt::format("--base-url is '{}', expected http://… or https://…", options.base_url));
  }
  std::vector<const DataSet*> sets;
  sets.reserve(data_sets().size());
  for (const std::string& name : options.names) sets.push_back(&data_set(name));
  if (options.names.empty()) {
    for (const DataSet& set : data_sets()) sets.push_back(&set);
  }
  const std::filesystem::path folder = data_folder(options.data_dir);
  cli::watch_for_signals();
  for (const DataSet* set : sets) {
    for (const DataFile& file : set->files) {
      const std::filesystem::path target = folder / file.path;
      const bool there = !options.force && state_of(file, folder) == FileState::intact;
      if (!there) fetch(file, target, options.base_url);
      print("{}  {}  {}\n", visible(target.string()), size_text(file.bytes),
            there ? "already there" : "fetched");
      std::fflush(stdout);
    }
  }
}

/// What the files of a set are together: the state they share, or how many are intact.
std::string state_text(const std::vector<FileState>& states) {
  const auto shared = std::ranges::count(states, states.front());
  const auto intact = std::ranges::count(states, FileState::intact);
  return shared == std::ssize(states) ? to_text(states.front())
                                      : fmt::format("{} of {} files intact", intact, states.size());
}

void run_list(const DataOptions& options) {
  const std::filesystem::path folder = data_folder(options.data_dir);
  Json sets = Json::array();
  std::string table = fmt::format("{:<10}  {:>12}  {:>7}  {:<8}  {}\n", "name", "rows x inputs",
                                  "size", "here", "source");
  for (const DataSet& set : data_sets()) {
    std::vector<FileState> states;
    Json files = Json::array();
    for (const DataFile& file : set.files) {
      states.push_back(state_of(file, folder));
      files.push_back({{"path", file.path},
                       {"bytes", file.bytes},
                       {"sha256", file.sha256},
                       {"address", file.address},
                       {"state", to_text(states.back())}});
    }
    sets.push_back({{"name", set.name},
                    {"rows", set.rows},
                    {"inputs", set.inputs},
                    {"bytes", set.bytes()},
                    {"source", set.source},
                    {"state", state_text(states)},
                    {"files", files}});
    table += fmt::format("{:<10}  {:>8} x {:<2}  {:>7}  {:<8}  {}\n", set.name, set.rows,
                         set.inputs, size_text(set.bytes()), state_text(states), set.source);
  }
  if (options.json) {
    const Json all{{"folder", visible(folder.string())}, {"sets", sets}};
    print("{}\n", cli::to_text(all, 2));
  } else {
    print("{}\nin {}\n", table, visible(folder.string()));
  }
}

void add_data_dir(CLI::App& command, DataOptions& options) {
  command
      .add_option("--data-dir", options.data_dir,
                  "Where the data are kept (default: $AMPLE_DATA, else ample/data in the user's "
                  "cache folder)")
      ->type_name("FOLDER");
}

}  // namespace

void add_data(CLI::App& app) {
  CLI::App& command = *app.add_subcommand("data", "Download the paper's data sets, or list them");
  command.require_subcommand(1);
  command.footer(
      "Example:\n  ample-reproduce data list && ample-reproduce data fetch concrete magnetic");
  auto shared = std::make_shared<DataOptions>();
  DataOptions& options = *shared;

  CLI::App& fetch =
      *command.add_subcommand("fetch", "Download what is not there yet, and check it");
  fetch
      .add_option("names", options.names,
                  "Data sets, as `ample-reproduce data list` names them (default: all)")
      ->type_name("NAME");
  add_data_dir(fetch, options);
  fetch
      .add_option("--base-url", options.base_url,
                  "A mirror with the layout of the data folder, instead of the public addresses")
      ->type_name("URL");
  fetch.add_flag("--force", options.force, "Download also what is there");
  fetch.footer(
      "A transfer that was broken off goes on where it stopped. Example:\n"
      "  ample-reproduce data fetch concrete magnetic");
  fetch.callback([shared] { run_fetch(*shared); });

  CLI::App& list = *command.add_subcommand("list", "What there is, and what of it is here, intact");
  add_data_dir(list, options);
  list.add_flag("--json", options.json, "Print it as JSON, with every file");
  list.footer("Example:\n  ample-reproduce data list --json");
  list.callback([shared] { run_list(*shared); });
}

}  // namespace ample::experiments
