// Any bytes as a table: rows of finite numbers, or a DataError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>

#include "errors.h"
#include "table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const int file = ::memfd_create("table", MFD_CLOEXEC);
  // The first byte chooses; the rest is the table.
  if (::write(file, data + 1, size - 1) != static_cast<ssize_t>(size - 1)) std::abort();
  ::lseek(file, 0, SEEK_SET);
  try {
    ample::cli::TableReader reader(file, "table", {.skip_bad_rows = (data[0] & 1) != 0});
    for (;;) {
      const ample::Matrix rows = reader.next(3);
      if (rows.rows() == 0) break;
      if (!rows.allFinite() || rows.cols() != reader.columns()) std::abort();
    }
  } catch (const ample::cli::DataError&) {
  }
  ::close(file);
  return 0;
}
