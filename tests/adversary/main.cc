#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "adversary.h"

namespace ample::adversary {
namespace {

struct Kind {
  const char* name;
  std::uint64_t shortly;
  std::uint64_t at_length;
  std::function<void(std::uint64_t seed, const std::filesystem::path& folder)> attack;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"models", 1000, 100'000, [](std::uint64_t s, const auto&) { attack_model(s); }},
      {"tables", 2000, 10'000, [](std::uint64_t s, const auto& f) { attack_table(s, f); }},
      {"kernels", 2000, 10'000, [](std::uint64_t s, const auto&) { attack_kernel(s); }},
      {"streams", 100, 2'000, [](std::uint64_t s, const auto&) { attack_by_stream(s); }},
      {"options", 60, 2'000, [](std::uint64_t s, const auto& f) { attack_options(s, f); }},
      {"kills", 20, 1'000, [](std::uint64_t s, const auto& f) { attack_by_kill(s, f); }},
      {"full-disks", 10, 200, [](std::uint64_t s, const auto& f) { attack_by_full_disk(s, f); }}};
  return all;
}

/// The number of promises broken.
int attack(const Kind& kind, std::uint64_t count, std::uint64_t seed) {
  namespace fs = std::filesystem;
  std::string name = (fs::temp_directory_path() / "ample-adversary-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) return 1;
  int broken = 0;
  const auto tell = [&](std::uint64_t number, const std::string& how) {
    ++broken;
    fmt::print("{} --seed {}: {}\n", kind.name, number, how);
  };
  for (std::uint64_t i = 0; i < count; ++i) {
    try {
      kind.attack(seed + i, name);
    } catch (const Broken& b) {
      tell(seed + i, b.how);
    } catch (const std::exception& error) {
      tell(seed + i, std::string("an error that was not to be: ") + error.what());
    }
  }
  fs::remove_all(name);
  fmt::print("{}: {} attacks, {} promises broken\n", kind.name, count, broken);
  std::fflush(stdout);
  return broken;
}

}  // namespace
}  // namespace ample::adversary

int main(int argc, char** argv) {
  using namespace ample::adversary;
  CLI::App app("Tries to make Ample break its promises.", "adversary");
  std::signal(SIGPIPE, SIG_IGN);
  std::uint64_t seed = 0;
  bool at_length = false;
  app.add_option("--seed", seed, "Number of the first attack");
  app.add_flag("--long", at_length, "The long form");
  std::vector<std::uint64_t> counts(kinds().size(), 0);
  for (std::size_t i = 0; i < kinds().size(); ++i) {
    app.add_option(std::string("--") + kinds()[i].name, counts[i], "Only these, so many");
  }
  CLI11_PARSE(app, argc, argv);
  bool chosen = false;
  for (const std::uint64_t count : counts) chosen = chosen || count > 0;
  int broken = 0;
  for (std::size_t i = 0; i < kinds().size(); ++i) {
    const Kind& kind = kinds()[i];
    const std::uint64_t count = chosen ? counts[i] : at_length ? kind.at_length : kind.shortly;
    if (count > 0) broken += attack(kind, count, seed);
  }
  return broken == 0 ? 0 : 1;
}
