#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/operators.h>
#include <nanobind/stl/tuple.h>

#include "ample/kernel.h"
#include "bindings.h"

namespace ample::python {
namespace {

std::string positive_text(const Positive& p) {
  std::string text = p.values.size() == 1 ? fmt::format("{}", p.values.front())
                                          : fmt::format("[{}]", fmt::join(p.values, ", "));
  if (p.lower != Positive::kDefaultLower) text += fmt::format(", lower={}", p.lower);
  if (p.upper != Positive::kDefaultUpper) text += fmt::format(", upper={}", p.upper);
  if (p.is_fixed) text += ", fixed=True";
  return fmt::format("Positive({})", text);
}

Positive make_positive(std::vector<double> values, double lower, double upper, bool fixed) {
  Positive p(std::move(values));
  p.lower = lower;
  p.upper = upper;
  p.is_fixed = fixed;
  return p;
}

}  // namespace

void bind_kernels(nb::module_& m) {
  nb::class_<Positive>(m, "Positive", R"(
A hyperparameter: one positive number or one per input dimension, with bounds for the fit.

Wherever a kernel takes one, a plain number or a sequence of numbers will do.

>>> ample.Positive(0.5, lower=0.1, upper=10)
Positive(0.5, lower=0.1, upper=10)
>>> ample.Positive([1.0, 2.0], fixed=True).values
[1.0, 2.0]
)")
      .def(
          "__init__",
          [](Positive* self, double value, double lower, double upper, bool fixed) {
            new (self) Positive(make_positive({value}, lower, upper, fixed));
          },
          "value"_a, nb::kw_only(), "lower"_a = Positive::kDefaultLower,
          "upper"_a = Positive::kDefaultUpper, "fixed"_a = false)
      .def(
          "__init__",
          [](Positive* self, std::vector<double> values, double lower, double upper, bool fixed) {
            new (self) Positive(make_positive(std::move(values), lower, upper, fixed));
          },
          "values"_a, nb::kw_only(), "lower"_a = Positive::kDefaultLower,
          "upper"_a = Positive::kDefaultUpper, "fixed"_a = false)
      .def_ro("values", &Positive::values)
      .def_ro("lower", &Positive::lower)
      .def_ro("upper", &Positive::upper)
      .def_ro("fixed", &Positive::is_fixed)
      .def("__repr__", &positive_text)
      .def(
          "__eq__",
          [](const Positive& a, const Positive& b) { return positive_text(a) == positive_text(b); },
          nb::is_operator(), nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__", [](const Positive& a) { return std::hash<std::string>()(positive_text(a)); })
      .def("__getstate__",
           [](const Positive& p) { return std::tuple(p.values, p.lower, p.upper, p.is_fixed); })
      .def("__setstate__",
           [](Positive& p, const std::tuple<std::vector<double>, double, double, bool>& state) {
             new (&p) Positive(std::apply(make_positive, state));
           });

  nb::class_<Parameter>(m, "Parameter", "One scalar hyperparameter of a kernel.")
      .def_ro("name", &Parameter::name)
      .def_ro("value", &Parameter::value)
      .def_ro("lower", &Parameter::lower)
      .def_ro("upper", &Parameter::upper)
      .def_ro("fixed", &Parameter::fixed)
      .def("__repr__", [](const Parameter& p) {
        return fmt::format("<{} = {} in [{}, {}]{}>", p.name, p.value, p.lower, p.upper,
                           p.fixed ? ", fixed" : "");
      });

  nb::class_<Kernel>(m, "Kernel", R"(
A covariance function: an immutable value, composed with ``+``, ``*`` and ``**``.

It is written as one of the named kernels or as text; its ``repr`` is that text, exact to the last
bit.

>>> k = ample.Constant(2.0) + ample.Matern52(lengthscale=[1.0, 2.0])
>>> k
constant(variance=2) + matern52(variance=1, lengthscale=[1, 2])
>>> ample.Kernel(repr(k)) == k
True
>>> k(np.zeros((1, 2)), np.zeros((3, 2)))
array([[3., 3., 3.]])
)")
      .def(
          "__init__",
          [](Kernel* self, const std::string& text) { new (self) Kernel(Kernel::parse(text)); },
          "text"_a)
      .def(
          "__call__",
          [](const Kernel& k, const MatrixRef& X, const MatrixRef& Z) { return k(X, Z); }, "X"_a,
          "Z"_a, Unlocked(), "The matrix of k(x_i, z_j), [N, M].")
      .def(
          "__call__", [](const Kernel& k, const MatrixRef& X) { return k(X, X); }, "X"_a,
          Unlocked(), "The matrix of k(x_i, x_j), [N, N].")
      .def("diagonal", &Kernel::diagonal, "X"_a, Unlocked(), "k(x_i, x_i), [N].")
      .def_prop_ro("parameters", &Kernel::parameters, "All scalar parameters, fixed ones too.")
      .def("with_values", &Kernel::with_values, "values"_a,
           "The same kernel at other values of its parameters, in their order.")
      .def("without_constant", &Kernel::without_constant,
           "This kernel less its additive constants.")
      .def(nb::self + nb::self)
      .def(nb::self * nb::self)
      .def(nb::self * double())
      .def(double() * nb::self)
      .def(
          "__pow__", [](const Kernel& k, int exponent) { return pow(k, exponent); }, "exponent"_a,
          nb::is_operator(), "k(x, z) to a whole power, with one set of parameters.")
      .def(
          "__eq__", [](const Kernel& a, const Kernel& b) { return a.to_string() == b.to_string(); },
          nb::is_operator(), nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__", [](const Kernel& k) { return std::hash<std::string>()(k.to_string()); })
      .def("__repr__", &Kernel::to_string)
      .def(
          "__reduce__",
          [](nb::handle self) {
            return nb::make_tuple(self.type(),
                                  nb::make_tuple(nb::cast<const Kernel&>(self).to_string()));
          },
          nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));

  // The named kernels are functions: what they return is a Kernel like any composition of them.
  const double one = 1.0;
  const auto stationary = [&]<class Struct>(const char* name, Struct, const char* doc) {
    m.def(
        name,
        [](const PositiveLike& variance, const PositiveLike& lengthscale, const Dimensions& dims) {
          return Kernel(Struct{
              .variance = positive(variance), .lengthscale = positive(lengthscale), .dims = dims});
        },
        "variance"_a = one, "lengthscale"_a = one, nb::kw_only(), "dims"_a = Dimensions(), doc);
  };
  stationary("SquaredExponential", SquaredExponential{}, R"(
variance · exp(−s/2), s = Σ_d (x_d − z_d)²/lengthscale_d².

``lengthscale`` is one number or one per dimension; ``dims`` are the columns it looks at (all).

>>> ample.SquaredExponential(lengthscale=0.5, dims=[0])
se(variance=1, lengthscale=0.5, dims=[0])
)");
  stationary("Matern12", Matern12{}, "variance · exp(−√s): continuous, not differentiable paths.");
  stationary("Matern32", Matern32{}, "variance · (1 + √(3s)) exp(−√(3s)).");
  stationary("Matern52", Matern52{}, "variance · (1 + √(5s) + 5s/3) exp(−√(5s)).");
  m.def(
      "RationalQuadratic",
      [](const PositiveLike& variance, const PositiveLike& lengthscale, const PositiveLike& alpha,
         const Dimensions& dims) {
        return Kernel(
            RationalQuadratic{positive(variance), positive(lengthscale), positive(alpha), dims});
      },
      "variance"_a = one, "lengthscale"_a = one, "alpha"_a = one, nb::kw_only(),
      "dims"_a = Dimensions(), "variance · (1 + s/(2 alpha))^(−alpha).");
  m.def(
      "Periodic",
      [](const PositiveLike& variance, const PositiveLike& lengthscale, const PositiveLike& period,
         const Dimensions& dims) {
        return Kernel(Periodic{positive(variance), positive(lengthscale), positive(period), dims});
      },
      "variance"_a = one, "lengthscale"_a = one, "period"_a = one, nb::kw_only(),
      "dims"_a = Dimensions(), "variance · exp(−2 Σ_d sin²(π(x_d − z_d)/period)/lengthscale_d²).");
  m.def(
      "Linear",
      [](const PositiveLike& variance, const Dimensions& dims) {
        return Kernel(Linear{positive(variance), dims});
      },
      "variance"_a = one, nb::kw_only(), "dims"_a = Dimensions(), "Σ_d variance_d x_d z_d.");
  m.def(
      "Polynomial",
      [](const PositiveLike& variance, const PositiveLike& offset, int degree,
         const Dimensions& dims) {
        return Kernel(Polynomial{positive(variance), positive(offset), degree, dims});
      },
      "variance"_a = one, "offset"_a = one, "degree"_a = 2, nb::kw_only(), "dims"_a = Dimensions(),
      "(variance · xᵀz + offset)^degree.");
  m.def(
      "Constant", [](const PositiveLike& variance) { return Kernel(Constant{positive(variance)}); },
      "variance"_a = one, "variance, everywhere: a fitted offset when added to another kernel.");
  m.def(
      "ArcCosine",
      [](const PositiveLike& variance, const PositiveLike& weight_variance,
         const PositiveLike& bias_variance, int order, const Dimensions& dims) {
        return Kernel(ArcCosine{positive(variance), positive(weight_variance),
                                positive(bias_variance), order, dims});
      },
      "variance"_a = one, "weight_variance"_a = one, "bias_variance"_a = one, "order"_a = 1,
      nb::kw_only(), "dims"_a = Dimensions(),
      "Arc-cosine kernel of order 0, 1 or 2: an infinitely wide layer of step, ReLU or "
      "squared-ReLU "
      "units.");
}

}  // namespace ample::python
