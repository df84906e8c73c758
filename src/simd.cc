#include "simd.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include <fmt/ranges.h>

#include "check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd.cc"
#include "simd_targets.h"

HWY_BEFORE_NAMESPACE();
namespace ample::simd::HWY_NAMESPACE {
std::int64_t target_in_use() { return HWY_TARGET; }
}  // namespace ample::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ample::simd {
namespace {

HWY_EXPORT(target_in_use);

std::string name_of(std::int64_t target) {
  if (target == HWY_STATIC_TARGET && (target & (HWY_SCALAR | HWY_EMU128)) != 0) return "baseline";
#if HWY_ARCH_X86
  if (target == HWY_AVX3) return "avx512";  // Highway counts differently
#endif
  std::string name = hwy::TargetName(target);
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return name;
}

/// The bits of the targets that are compiled in and that the processor has. A wider one has a lower
/// bit.
std::int64_t runnable() {
  static const std::int64_t bits = (hwy::SupportedTargets() & HWY_TARGETS) | HWY_STATIC_TARGET;
  return bits;
}

template <class Visit>
void for_each_target(const Visit& visit) {
  for (std::int64_t rest = runnable(); rest != 0; rest &= rest - 1) visit(rest & -rest);
}

void use(const char* who, const std::string& name) {
  std::int64_t wanted = 0;
  for_each_target([&](std::int64_t target) {
    if (name_of(target) == name) wanted = target;
  });
  if (wanted == 0) {
    invalid("{}: got \"{}\", but must be one of {}", who, name, fmt::join(targets(), ", "));
  }
  hwy::SetSupportedTargetsForTest(runnable() & ~(wanted - 1));
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace

std::vector<std::string> targets() {
  std::vector<std::string> names;
  for_each_target([&](std::int64_t target) { names.push_back(name_of(target)); });
  return names;
}

std::string target() { return name_of(AMPLE_DISPATCH(target_in_use)()); }

void use_target(const std::string& name) { use("use_target", name); }

void choose_by_environment() {
  if (const char* name = std::getenv(kVariable); name != nullptr) use(kVariable, name);
}

void choose() {
  static const bool chosen = (choose_by_environment(), true);
  static_cast<void>(chosen);
}

}  // namespace ample::simd
#endif
