#include "rotation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "rotation.cc"
#include "simd_targets.h"

HWY_BEFORE_NAMESPACE();
namespace ample::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

void rotate(double* a, double* b, std::ptrdiff_t n, double cosine, double sine) {
  const hn::ScalableTag<double> d;
  constexpr std::ptrdiff_t kLanes = hn::MaxLanes(d);
  const auto c = hn::Set(d, cosine);
  const auto s = hn::Set(d, sine);
  std::ptrdiff_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto u = hn::LoadU(d, a + i);
    const auto v = hn::LoadU(d, b + i);
    hn::StoreU(hn::MulAdd(c, u, s * v), d, a + i);
    hn::StoreU(hn::NegMulAdd(s, u, c * v), d, b + i);
  }
  for (; i < n; ++i) {
    const double u = a[i];
    a[i] = cosine * u + sine * b[i];
    b[i] = cosine * b[i] - sine * u;
  }
}

}  // namespace ample::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ample {
namespace {
HWY_EXPORT(rotate);
}  // namespace

void rotate(double* a, double* b, std::ptrdiff_t n, double cosine, double sine) {
  AMPLE_DISPATCH(rotate)(a, b, n, cosine, sine);
}

}  // namespace ample
#endif
