// What the models return: predictions, the report of a batch, the summary of a fit.
#include <type_traits>

#include <fmt/format.h>

#include "ample/batch_report.h"
#include "ample/merge.h"
#include "bindings.h"

namespace ample::python {
namespace {

template <class Struct, class Field>
using Member = Field Struct::*;

/// Calls `field(name, member)` for each, as for_each_report_field does.
template <class Use>
void fields_of_summary(const Use& field) {
  field("termination", &MinimizeSummary::termination);
  field("message", &MinimizeSummary::message);
  field("x", &MinimizeSummary::x);
  field("value", &MinimizeSummary::value);
  field("initial_value", &MinimizeSummary::initial_value);
  field("gradient_norm", &MinimizeSummary::gradient_norm);
  field("iterations", &MinimizeSummary::iterations);
  field("evaluations", &MinimizeSummary::evaluations);
  field("failed_evaluations", &MinimizeSummary::failed_evaluations);
}

/// A value as Python sees it: an enumerator by its name.
template <class Value>
auto shown(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return std::string(to_string(value));
  } else {
    return value;
  }
}

/// A value as it is pickled: an enumerator by its number.
template <class Value>
nb::object packed(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return nb::cast(static_cast<int>(value));
  } else {
    return nb::cast(value);
  }
}
template <class Value>
void unpack(Value& value, nb::handle from) {
  if constexpr (std::is_enum_v<Value>) {
    value = static_cast<Value>(nb::cast<int>(from));
  } else {
    value = nb::cast<Value>(from);
  }
}

template <class Struct>
auto as_property(nb::class_<Struct>& type) {
  return [&type]<class Field>(const char* name, Member<Struct, Field> member) {
    type.def_prop_ro(name, [member](const Struct& self) { return shown(self.*member); });
  };
}

/// Calls `field(name, member)` for each field of a report but its fit.
template <class Use>
void fields_of(const BatchReport& /*report*/, const Use& field) {
  for_each_report_field(field);
}
template <class Use>
void fields_of(const MergeReport& /*report*/, const Use& field) {
  for_each_merge_field(field);
}

template <class Report>
nb::dict as_dict(const Report& report) {
  nb::dict out;
  fields_of(report, [&](const char* name, auto member) {
    // A table has one value a field.
    if constexpr (!std::is_same_v<decltype(member), Vector Report::*>) {
      out[name] = shown(report.*member);
    }
  });
  out["evaluations"] = report.fit.evaluations;
  return out;
}

template <class Report>
nb::tuple state_of(const Report& report) {
  nb::list values;
  fields_of(report, [&](const char*, auto member) { values.append(packed(report.*member)); });
  fields_of_summary([&](const char*, auto member) { values.append(packed(report.fit.*member)); });
  return nb::tuple(values);
}

template <class Report>
void restore(Report& report, const nb::tuple& values) {
  new (&report) Report();
  std::size_t i = 0;
  fields_of(report, [&](const char*, auto member) { unpack(report.*member, values[i++]); });
  fields_of_summary([&](const char*, auto member) { unpack(report.fit.*member, values[i++]); });
}

/// All fields, as_dict() and how it is pickled.
template <class Report>
void bind_report(nb::class_<Report>& type) {
  fields_of(Report(), as_property(type));
  type.def_ro("fit", &Report::fit)
      .def("as_dict", &as_dict<Report>, nb::sig("def as_dict(self) -> dict[str, typing.Any]"),
           "All but the details of the fit, for a table.")
      .def("__getstate__", &state_of<Report>,
           nb::sig("def __getstate__(self) -> tuple[typing.Any, ...]"))
      .def("__setstate__", &restore<Report>,
           nb::sig("def __setstate__(self, arg: tuple[typing.Any, ...], /) -> None"));
}

/// A result of two arrays, `first, second = result`.
template <class Result>
nb::class_<Result> bind_pair(nb::module_& m, const char* name, const char* first_name, auto first,
                             const char* second_name, auto second, const char* doc) {
  nb::class_<Result> type(m, name, doc);
  type.def_ro(first_name, first, nb::rv_policy::reference_internal)
      .def_ro(second_name, second, nb::rv_policy::reference_internal)
      .def(
          "__iter__",
          [=](nb::handle self) {
            return nb::iter(nb::make_tuple(self.attr(first_name), self.attr(second_name)));
          },
          nb::sig("def __iter__(self) -> "
                  "collections.abc.Iterator[numpy.typing.NDArray[numpy.float64]]"))
      .def("__repr__", [=](const Result& r) {
        return fmt::format("<{} of {} points>", name, (r.*first).rows());
      });
  return type;
}

}  // namespace

void bind_results(nb::module_& m) {
  bind_pair<Prediction>(m, "Prediction", "mean", &Prediction::mean, "variance",
                        &Prediction::variance, R"(
Gaussian marginals at N query points; unpacks into ``mean, variance``.

>>> mean, variance = ample.ContinualGP().predict(np.zeros((2, 1)))
>>> mean, variance
(array([0., 0.]), array([1., 1.]))
)")
      .def(
          "__init__",
          [](Prediction* self, const VectorRef& mean, const VectorRef& variance) {
            new (self) Prediction{mean, variance};
          },
          "mean"_a, "variance"_a)
      .def_prop_ro(
          "std", [](const Prediction& p) { return Vector(p.variance.cwiseSqrt()); },
          "The standard deviation, [N].");
  bind_pair<JointPrediction>(m, "JointPrediction", "mean", &JointPrediction::mean, "covariance",
                             &JointPrediction::covariance, "A joint Gaussian over N query points.");
  bind_pair<PredictionGradient>(
      m, "PredictionGradient", "mean", &PredictionGradient::mean, "variance",
      &PredictionGradient::variance,
      "Derivatives of mean and variance with respect to each query point, [N, D] each.");

  nb::class_<MinimizeSummary> summary(m, "MinimizeSummary", "How a fit went.");
  fields_of_summary(as_property(summary));
  summary.def("__repr__", [](const MinimizeSummary& s) {
    return fmt::format("<fit: {} after {} evaluations, {}>", to_string(s.termination),
                       s.evaluations, s.message);
  });

  nb::class_<BatchReport> report(m, "BatchReport", R"(
What one batch did to the model. Values in nats are in the model's own, scaled units.

>>> report = ample.ContinualGP().observe(np.zeros((1, 1)), np.zeros(1))
>>> report.inducing, report.rows_seen
(1, 1)
>>> sorted(report.as_dict())[:3]
['batch', 'chi_squared', 'coverage']
)");
  bind_report(report);
  report.def("__repr__", [](const BatchReport& r) {
    return fmt::format("<batch {}: {} rows, M = {} (+{}, -{}), ELBO {:.6g}>", r.batch, r.rows,
                       r.inducing, r.inducing_added, r.inducing_removed, r.elbo);
  });

  nb::class_<MergeReport> merge_report(m, "MergeReport", R"(
What a merge did. Values in nats are in the models' own, scaled units.

``largest`` is the model, counted from 0, that the merged one has its options of; ``rows_learnt`` are
rows that models still held and that were learnt anew; ``inducing_before`` counts the points of all
models, ``inducing_union`` those that differ. ``carried_nats`` is what the models lose at a theta that
is not their own, ``pruned_nats`` what removing points cost, of the ``allowed_nats``.
)");
  bind_report(merge_report);
  merge_report.def("__repr__", [](const MergeReport& r) {
    return fmt::format("<merge of {} models: {} rows, M = {}, before {}, {:.4g} nats>", r.models,
                       r.rows, r.inducing, r.inducing_before, r.pruned_nats);
  });
}

}  // namespace ample::python
