#include "sha256.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <openssl/evp.h>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "errors.h"

namespace ample::experiments {
namespace {

void check(int result) {
  if (result != 1) throw std::runtime_error("SHA-256 is not available");
}

}  // namespace

std::string sha256_of(const std::filesystem::path& file) {
  const auto fail = [&] {
    throw cli::DataError(fmt::format("{}: cannot read: {}", file.string(), std::strerror(errno)));
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> in(std::fopen(file.c_str(), "rbe"),
                                                           std::fclose);
  if (!in) fail();
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(),
                                                                   EVP_MD_CTX_free);
  check(EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr));
  std::array<char, 1 << 16> block{};
  while (const std::size_t count = std::fread(block.data(), 1, block.size(), in.get())) {
    check(EVP_DigestUpdate(context.get(), block.data(), count));
  }
  if (std::ferror(in.get()) != 0) fail();  // a folder, say
  std::array<unsigned char, 32> sum{};
  check(EVP_DigestFinal_ex(context.get(), sum.data(), nullptr));
  return fmt::format("{:02x}", fmt::join(sum, ""));
}

}  // namespace ample::experiments
