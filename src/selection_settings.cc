// Selection methods by name, and their settings as numbers: what model files and command lines
// hold.
#include <cmath>

#include "ample/selection.h"
#include "check.h"

namespace ample {
namespace {

/// Reads settings by name, so that an unknown one is noticed. Ranges are checked by the methods.
class SettingsReader {
 public:
  SettingsReader(std::string_view method, const SelectionSettings& settings)
      : method_(method), left_(settings) {}

  void number(const char* name, double& value) {
    const auto it = left_.find(name);
    if (it == left_.end()) return;
    value = it->second;
    left_.erase(it);
  }
  void count(const char* name, Index& value) {
    const auto it = left_.find(name);
    if (it == left_.end()) return;
    if (!(it->second >= 1.0) || !(it->second <= 1e9) || it->second != std::floor(it->second)) {
      invalid("{}: {} is {}, but must be a whole number from 1", method_, name, it->second);
    }
    value = static_cast<Index>(it->second);
    left_.erase(it);
  }
  template <class Enum>
  void choice(const char* name, Enum& value, int last) {
    const auto it = left_.find(name);
    if (it == left_.end()) return;
    if (!(it->second >= 0) || !(it->second <= last) || it->second != std::floor(it->second)) {
      invalid("{}: {} is {}, but must be from 0 to {}", method_, name, it->second, last);
    }
    value = static_cast<Enum>(static_cast<int>(it->second));
    left_.erase(it);
  }
  void finish() const {
    if (!left_.empty()) invalid("{}: it has no setting '{}'", method_, left_.begin()->first);
  }

 private:
  std::string_view method_;
  SelectionSettings left_;
};

void check_count(std::string_view method, std::string_view name, Index value) {
  if (value < 1) invalid("{}: {} is {}, but must be at least 1", method, name, value);
}

void put_cap(SelectionSettings& settings, Index cap) {
  if (cap != kNoCap) settings["max_inducing"] = static_cast<double>(cap);
}

}  // namespace

void Vips::validate() const {
  constexpr double kMost = 1e100;  // so that α is finite
  check_positive(name(), "delta", delta);
  if (!(delta <= kMost)) invalid("{}: delta is {}, but must be at most {}", name(), delta, kMost);
  if (!(floor >= 0.0) || !(floor <= kMost)) {
    invalid("{}: floor is {}, but must be from 0 to {}", name(), floor, kMost);
  }
  check_count(name(), "max_inducing", max_inducing);
}

void ConditionalVariance::validate() const {
  check_positive(name(), "eta", eta);
  check_count(name(), "max_inducing", max_inducing);
}

void Oips::validate() const {
  if (!(rho > 0.0) || !(rho <= 1.0)) invalid("{}: rho is {}, but must be in (0, 1]", name(), rho);
  check_count(name(), "k_min", k_min);
  check_count(name(), "max_inducing", max_inducing);
}

void FixedGreedy::validate() const { check_count(name(), "size", size); }

void FixedGradient::validate() const { check_count(name(), "size", size); }

SelectionSettings Vips::settings() const {
  // Defaults are omitted, so files rarely contain enum codes.
  SelectionSettings s{{"delta", delta}};
  if (floor > 0.0) s["floor"] = floor;
  if (pool != Pool::batch) s["pool"] = static_cast<double>(pool);
  if (reference != Reference::automatic) s["reference"] = static_cast<double>(reference);
  if (choose != Choose::variance) s["choose"] = static_cast<double>(choose);
  put_cap(s, max_inducing);
  return s;
}

SelectionSettings ConditionalVariance::settings() const {
  SelectionSettings s{{"eta", eta}};
  put_cap(s, max_inducing);
  return s;
}

SelectionSettings Oips::settings() const {
  SelectionSettings s{{"rho", rho}, {"k_min", static_cast<double>(k_min)}};
  put_cap(s, max_inducing);
  return s;
}

SelectionSettings FixedGreedy::settings() const { return {{"size", static_cast<double>(size)}}; }

SelectionSettings FixedGradient::settings() const { return {{"size", static_cast<double>(size)}}; }

SelectionMethod make_selection(std::string_view name, const SelectionSettings& settings) {
  SettingsReader read(name, settings);
  const auto finished = [&](auto method) {
    read.finish();
    method.validate();
    return SelectionMethod(method);
  };
  if (name == Vips::name()) {
    Vips m;
    read.number("delta", m.delta);
    read.number("floor", m.floor);
    read.choice("pool", m.pool, 1);
    read.choice("reference", m.reference, 2);
    read.choice("choose", m.choose, 1);
    read.count("max_inducing", m.max_inducing);
    return finished(m);
  }
  if (name == ConditionalVariance::name()) {
    ConditionalVariance m;
    read.number("eta", m.eta);
    read.count("max_inducing", m.max_inducing);
    return finished(m);
  }
  if (name == Oips::name()) {
    Oips m;
    read.number("rho", m.rho);
    read.count("k_min", m.k_min);
    read.count("max_inducing", m.max_inducing);
    return finished(m);
  }
  if (name == FixedGreedy::name()) {
    FixedGreedy m;
    read.count("size", m.size);
    return finished(m);
  }
  if (name == FixedGradient::name()) {
    FixedGradient m;
    read.count("size", m.size);
    return finished(m);
  }
  invalid("selection: unknown method '{}', expected vips, cv, oips, fixed-greedy or fixed-gradient",
          name);
}

}  // namespace ample
