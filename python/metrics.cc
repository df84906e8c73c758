#include "ample/metrics.h"

#include "bindings.h"

namespace ample::python {

void bind_metrics(nb::module_& m) {
  constexpr auto inside = nb::rv_policy::reference_internal;
  nb::class_<Calibration>(m, "Calibration", "Coverage against level.")
      .def_ro("levels", &Calibration::levels, inside)
      .def_ro("coverage", &Calibration::coverage, inside)
      .def_ro("error", &Calibration::error, "Mean of |coverage − level|.");

  m.def("rmse", &rmse, "y"_a, "mean"_a, "Root mean squared error.");
  m.def("mae", &mae, "y"_a, "mean"_a, "Mean absolute error.");
  m.def("r2", &r2, "y"_a, "mean"_a, "Coefficient of determination.");
  m.def("nlpd", &nlpd, "y"_a, "predicted"_a, R"(
Mean negative log predictive density; the prediction is of observations, not of the function.

>>> p = ample.Prediction(np.ones(2), np.full(2, 4.0))
>>> round(ample.nlpd(np.array([1.0, 3.0]), p), 3)
1.862
)");
  m.def("coverage", &coverage, "y"_a, "predicted"_a, "level"_a,
        "Fraction of the targets inside the central interval of probability `level`.");
  m.def("interval_width", &interval_width, "predicted"_a, "level"_a,
        "Mean width of the central intervals of probability `level`.");
  m.def("calibration_curve", &calibration_curve, "y"_a, "predicted"_a, "levels"_a,
        "The coverage at each of `levels`.");
  m.def("relative_to_exact", &relative_to_exact, "method"_a, "exact"_a, "noise"_a,
        "(method − exact)/|noise − exact| · 100 of any metric.");
  m.def("normal_cdf", &normal_cdf, "x"_a, "Φ(x) of the standard normal distribution.");
  m.def("normal_quantile", &normal_quantile, "p"_a, "Φ⁻¹(p).");
}

}  // namespace ample::python
