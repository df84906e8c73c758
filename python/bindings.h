// What the sources of the extension module share. The bindings hold no logic: each line names a
// part of the C++ library, and what it is called in Python.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include <nanobind/eigen/dense.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "ample/continual_gp.h"
#include "ample/selection.h"
#include "ample/types.h"

namespace nb = nanobind;

namespace ample::python {

using namespace nb::literals;  // NOLINT(google-build-using-namespace): "name"_a

/// For all that computes: other Python threads run meanwhile. A callback takes the lock again.
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

/// What Python may write for a hyperparameter.
using PositiveLike = std::variant<Positive, double, std::vector<double>>;
inline Positive positive(const PositiveLike& value) {
  return std::visit([](const auto& v) { return Positive(v); }, value);
}

/// A selection method, and the Python object behind it if it was written in Python.
struct Method {
  SelectionMethod method;
  nb::object custom;

  /// `method` is None (the default), a Method, or any object with select() and name.
  static Method from(const nb::object& method);
};

/// For MinimizeOptions::should_stop. Ctrl-C is thrown as Python's exception, which passes through
/// the optimiser and leaves the model as it was before the call.
bool stop_on_signal();

void bind_kernels(nb::module_& m);
void bind_results(nb::module_& m);
void bind_bounds(nb::module_& m);
void bind_selection(nb::module_& m);
void bind_models(nb::module_& m);
void bind_metrics(nb::module_& m);

}  // namespace ample::python
