// An adversary of the library and the program: it alters model files, tables, kernel texts and
// options at random, kills and fills disks, and looks whether what docs/reliability.md promises
// still holds.
//
//   adversary                     the short form, part of the tests
//   adversary --long              100,000 model files, 10,000 tables and kernel texts, 1,000 kills
//   adversary --models 5 --seed 7 one kind alone
//
// One attack is a function of the seed alone, so that what it finds can be repeated.
#pragma once

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace ample::adversary {

/// What random numbers are for here.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : bits_(seed) {}
  /// From 0 to n − 1.
  std::size_t below(std::size_t n) { return n == 0 ? 0 : bits_() % n; }
  bool one_in(std::size_t n) { return below(n) == 0; }
  double number();  // of any size, not always finite
  template <class T>
  const T& one_of(const std::vector<T>& choices) {
    return choices[below(choices.size())];
  }

 private:
  std::mt19937_64 bits_;
};

/// The text with some of its bytes changed, removed, doubled or moved.
[[nodiscard]] std::string altered(std::string text, Dice& dice);

/// The text of a kernel, or what is almost one.
[[nodiscard]] std::string some_kernel(Dice& dice);

/// Thrown when a promise is broken; the message says how.
struct Broken {
  std::string how;
};

/// A program that has ended.
struct Ended {
  int code = 0;  // exit code, or −signal
  std::string out;
  std::string err;
};

/// How the program is run.
struct Conditions {
  std::string input;                // on standard input
  int kill_after_microseconds = 0;  // 0: not at all
  long file_size_limit = 0;         // bytes; 0: none
};
Ended run_ample(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
                const Conditions& conditions = {});

// Each does one attack, in a folder of its own where it needs one, and throws Broken.
void attack_model(std::uint64_t seed);
void attack_table(std::uint64_t seed, const std::filesystem::path& folder);
void attack_kernel(std::uint64_t seed);
void attack_by_stream(std::uint64_t seed);
void attack_options(std::uint64_t seed, const std::filesystem::path& folder);
void attack_by_kill(std::uint64_t seed, const std::filesystem::path& folder);
void attack_by_full_disk(std::uint64_t seed, const std::filesystem::path& folder);

}  // namespace ample::adversary
