// How fast tables are read: table_reading FILE [TIMES]. Seconds of the fastest of TIMES passes over
// the file, as JSON: nothing but line ends looked for, and all numbers parsed.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stopwatch.h"
#include "table.h"

namespace {

using ample::Index;

/// The least that any reader must do.
double scan(const std::string& path) {
  const ample::Stopwatch watch;
  std::ifstream file(path, std::ios::binary);
  std::vector<char> block(1 << 18);
  std::size_t lines = 0;
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount() > 0) {
    const char* p = block.data();
    const char* const end = p + file.gcount();
    while ((p = static_cast<const char*>(
                std::memchr(p, '\n', static_cast<std::size_t>(end - p)))) != nullptr) {
      ++lines;
      ++p;
    }
  }
  return lines == 0 ? 0.0 : watch.seconds();
}

double read(const std::string& path, Index& rows) {
  const ample::Stopwatch watch;
  ample::cli::TableReader reader(path);
  rows = 0;
  for (;;) {
    const ample::Matrix part = reader.next(1000);
    if (part.rows() == 0) return watch.seconds();
    rows += part.rows();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: table_reading FILE [TIMES]\n");
    return 2;
  }
  const std::string path = argv[1];
  const int times = argc > 2 ? std::atoi(argv[2]) : 3;
  double scanning = 1e300;
  double reading = 1e300;
  Index rows = 0;
  for (int i = 0; i < times; ++i) {
    scanning = std::min(scanning, scan(path));
    reading = std::min(reading, read(path, rows));
  }
  fmt::print("{{\"rows\": {}, \"scan\": {}, \"read\": {}}}\n", rows, scanning, reading);
}
