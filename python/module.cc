#include "ample/model_file_error.h"
#include "ample/threads.h"
#include "ample/version.h"
#include "bindings.h"

namespace ample::python {

bool stop_on_signal() {
  const nb::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  return false;
}

}  // namespace ample::python

// NOLINTNEXTLINE(performance-unnecessary-value-param): the macro's signature
NB_MODULE(_ample, m) {
  using namespace ample::python;  // NOLINT(google-build-using-namespace)
  // A method written in Python and its model may refer to each other through a script's globals;
  // such a circle lives until the process ends, and is no fault to be reported then.
  nb::set_leak_warnings(false);
  m.doc() = "The compiled part of the package `ample`.";

  nb::exception<ample::NumericalError>(m, "NumericalError", PyExc_ArithmeticError).attr("__doc__") =
      "A computation that could not be carried out; the model is left as it was.";
  nb::exception<ample::ModelFileError>(m, "ModelFileError", PyExc_OSError).attr("__doc__") =
      "A model file that is missing, damaged or not in the expected format.";

  bind_kernels(m);
  bind_results(m);
  bind_bounds(m);
  bind_selection(m);
  bind_models(m);
  bind_metrics(m);

  m.def("version", &ample::version, "The version of the library.");
  m.def("set_threads", &ample::set_threads, "count"_a,
        "Limits the threads of the library and its BLAS, for the whole process.");
  m.def("threads", &ample::threads, "The limit in force.");
}
