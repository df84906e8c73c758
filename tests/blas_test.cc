// Loading the library into a process in which BLAS is at work already, as `import ample` may do.
// The library is a module of src/blas.cc alone, which this program does not contain.
#include <atomic>
#include <dlfcn.h>
#include <filesystem>
#include <iterator>
#include <thread>
#include <vector>

#include <cblas.h>
#include <gtest/gtest.h>

extern "C" {
__attribute__((weak)) extern int blas_num_threads;
__attribute__((weak)) extern int blas_server_avail;
}

namespace ample {
namespace {

constexpr int kSize = 64;

/// Whether the product of a matrix of ones with itself is one of kSize everywhere.
bool product_is_right() {
  const std::vector<double> A(kSize * kSize, 1.0);
  std::vector<double> C(kSize * kSize);
  cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, kSize, kSize, kSize, 1.0, A.data(), kSize,
              A.data(), kSize, 0.0, C.data(), kSize);
  return C == std::vector<double>(kSize * kSize, double(kSize));
}

/// Loads the library and says whether it prepared BLAS; unloads it again.
bool load_and_ask() {
  void* library = dlopen(AMPLE_BLAS_MODULE, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  if (library == nullptr) return false;
  void* address = dlsym(library, "_ZN5ample16blas_is_preparedEv");
  EXPECT_NE(address, nullptr) << dlerror();
  const bool prepared = address != nullptr && reinterpret_cast<bool (*)()>(address)();
  EXPECT_EQ(dlclose(library), 0);
  EXPECT_EQ(dlopen(AMPLE_BLAS_MODULE, RTLD_NOW | RTLD_NOLOAD), nullptr);
  return prepared;
}

long threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

TEST(Blas, IsPreparedOnlyWhereNoOtherThreadCanBeInsideIt) {
  ASSERT_TRUE(product_is_right());
  if (&blas_server_avail == nullptr) GTEST_SKIP() << "this BLAS is not OpenBLAS";
  if (threads_of_process() > 1 + (blas_server_avail != 0 ? blas_num_threads - 1 : 0)) {
    GTEST_SKIP() << "there are threads that are not ours, as an emulator's";
  }
  EXPECT_TRUE(load_and_ask());
  EXPECT_TRUE(product_is_right());

  std::atomic<bool> stop{false};
  std::atomic<int> products{0};
  std::atomic<bool> right{true};
  std::thread other([&] {
    while (!stop) {
      if (!product_is_right()) right = false;
      ++products;
    }
  });
  while (products < 10) std::this_thread::yield();
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(load_and_ask());
  stop = true;
  other.join();
  EXPECT_TRUE(right);
}

}  // namespace
}  // namespace ample
