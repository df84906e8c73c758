#include "ample/hyperparameters.h"

#include <algorithm>
#include <cmath>

#include "check.h"

namespace ample {
namespace {

/// The logarithms of one member of every free parameter.
Vector logs(const Hyperparameters& h, auto member) {
  const std::vector<Parameter> parameters = h.parameters();
  Vector x(static_cast<Index>(parameters.size()));
  Index n = 0;
  for (const Parameter& p : parameters) {
    if (!p.fixed) x[n++] = std::log(p.*member);
  }
  return x.head(n);
}

}  // namespace

PositiveNumber::PositiveNumber(const Positive& positive)
    : value(0.0), lower(positive.lower), upper(positive.upper), is_fixed(positive.is_fixed) {
  if (positive.values.size() != 1) {
    invalid("PositiveNumber: {} numbers are given, but it must be one", positive.values.size());
  }
  value = positive.values.front();
}

void Hyperparameters::check(std::string_view where) const {
  check_positive(where, "the lower bound of noise_variance", noise_variance.lower);
  check_positive(where, "the upper bound of noise_variance", noise_variance.upper);
  // Written so that a NaN, and bounds in the wrong order, fail too.
  if (!(noise() >= noise_variance.lower && noise() <= noise_variance.upper)) {
    invalid("{}: noise_variance is {}, but must lie in [{}, {}]", where, noise(),
            noise_variance.lower, noise_variance.upper);
  }
}

std::vector<Parameter> Hyperparameters::parameters() const {
  std::vector<Parameter> all = kernel.parameters();
  all.push_back({.name = "noise_variance",
                 .kind = Parameter::Kind::noise,
                 .value = noise(),
                 .lower = noise_variance.lower,
                 .upper = noise_variance.upper,
                 .fixed = noise_variance.is_fixed});
  return all;
}

Index Hyperparameters::size() const {
  return static_cast<Index>(
      std::ranges::count_if(parameters(), [](const Parameter& p) { return !p.fixed; }));
}

Vector Hyperparameters::pack() const { return logs(*this, &Parameter::value); }
Vector Hyperparameters::lower() const { return logs(*this, &Parameter::lower); }
Vector Hyperparameters::upper() const { return logs(*this, &Parameter::upper); }

Hyperparameters Hyperparameters::unpack(const Vector& x) const {
  check_rows("unpack", "x", x.size(), size(), "the free parameters");
  const std::vector<Parameter> all = parameters();
  Vector values(static_cast<Index>(all.size()));
  Index next = 0;
  for (Index i = 0; const Parameter& p : all) {
    values[i++] = p.fixed ? p.value : std::clamp(std::exp(x[next++]), p.lower, p.upper);
  }
  const Index P = kernel.num_parameters();
  Hyperparameters out{.kernel = kernel.with_values(values.head(P)),
                      .noise_variance = noise_variance};
  out.noise_variance.value = values[P];
  return out;
}

void Hyperparameters::chain(const Vector& theta_gradient, double noise_gradient,
                            Vector& out) const {
  const Index P = kernel.num_parameters();
  check_rows("chain", "theta_gradient", theta_gradient.size(), P, "the kernel's parameters");
  out.resize(size());
  Index next = 0;
  for (Index i = 0; const Parameter& p : parameters()) {
    if (!p.fixed) out[next++] = p.value * (i < P ? theta_gradient[i] : noise_gradient);
    ++i;
  }
}

}  // namespace ample
