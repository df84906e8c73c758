#include "ample/selection.h"

#include <memory>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>

#include "ample/bound.h"
#include "ample/greedy_search.h"
#include "ample/optimum.h"
#include "bindings.h"

namespace ample::python {
namespace {

/// A problem that outlives the call: a method written in Python may keep it.
struct OwnedProblem {
  State old;
  Matrix X;
  Sites sites;
  TargetStatistics targets;
  std::uint64_t seed;

  [[nodiscard]] SelectionProblem view() const { return {old, X, sites, targets, seed}; }

  [[nodiscard]] double lower_bound(const MatrixRef& Z) const {
    OnlineBound bound(old, X, sites);
    if (!bound.factorize(old.kernel, old.noise_variance, Z)) {
      throw NumericalError("lower_bound: the bound cannot be factorised at this Z");
    }
    return bound.value();
  }

  [[nodiscard]] double noise_bound() const { return ample::noise_bound(view()); }
};

/// A search keeps references to its problem; here that lives beside it.
struct OwnedSearch {
  explicit OwnedSearch(OwnedProblem p) : problem(std::move(p)), search(problem.view()) {}

  OwnedProblem problem;
  GreedySearch search;
};

/// How many rows of `old` are rows of Z; for the report of a method that returns Z alone.
Index count_common(const Matrix& old, const Matrix& Z) {
  Index common = 0;
  for (Index i = 0; i < old.rows() && Z.cols() == old.cols(); ++i) {
    common += static_cast<Index>(((Z.rowwise() - old.row(i)).array() == 0).rowwise().all().any());
  }
  return common;
}

/// A Python object as a C++ selection method. It may be copied and destroyed without the lock.
class PythonMethod {
 public:
  explicit PythonMethod(nb::object method)
      : method_(new nb::object(std::move(method)), [](nb::object* object) {
          const nb::gil_scoped_acquire lock;
          delete object;
        }) {}

  [[nodiscard]] Selection select(const SelectionProblem& p) const {
    const nb::gil_scoped_acquire lock;
    const nb::object result =
        method_->attr("select")(OwnedProblem{p.old, p.X, p.sites, p.targets, p.seed});
    Selection selection;
    if (nb::try_cast(result, selection)) return selection;
    if (!nb::try_cast(result, selection.Z)) {
      throw nb::type_error("select() must return a Selection or inducing inputs Z, a 2-D array");
    }
    const Index kept = count_common(p.old.Z, selection.Z);
    selection.added = selection.Z.rows() - kept;
    selection.removed = p.old.size() - kept;
    selection.stop = SelectionStop::size;
    return selection;
  }

  [[nodiscard]] std::string name() const {
    const nb::gil_scoped_acquire lock;
    if (nb::hasattr(*method_, "name")) return nb::cast<std::string>(nb::str(method_->attr("name")));
    return nb::cast<std::string>(method_->type().attr("__name__"));
  }

 private:
  std::shared_ptr<nb::object> method_;
};

std::string method_text(const Method& m) {
  if (m.custom.is_valid()) return nb::cast<std::string>(nb::repr(m.custom));
  std::vector<std::string> settings;
  for (const auto& [name, value] : m.method.settings()) {
    settings.push_back(fmt::format("{}={}", name, value));
  }
  return fmt::format("{}({})", m.method.name(), fmt::join(settings, ", "));
}

Method method(SelectionMethod m) { return {std::move(m), {}}; }

/// Checks the settings by the library's own rules, which a struct alone does not.
template <class Struct>
Method checked(const Struct& m) {
  return method(make_selection(m.name(), m.settings()));
}

Index cap(std::optional<Index> max_inducing) { return max_inducing.value_or(kNoCap); }

SelectionStop stop_from(const std::string& name) {
  for (const auto stop :
       {SelectionStop::threshold, SelectionStop::pool_used_up, SelectionStop::no_variance,
        SelectionStop::jitter, SelectionStop::rounding, SelectionStop::cap, SelectionStop::size}) {
    if (to_string(stop) == name) return stop;
  }
  throw std::invalid_argument(fmt::format("Selection: stop is '{}', which is no reason", name));
}

}  // namespace

Method Method::from(const nb::object& method) {
  if (method.is_none()) return {Vips{}, {}};
  Method known{Vips{}, {}};
  if (nb::try_cast(method, known)) return known;
  if (!nb::hasattr(method, "select")) {
    throw nb::type_error("selection must be a selection method: an object with select() and name");
  }
  return {PythonMethod(method), method};
}

void bind_selection(nb::module_& m) {
  constexpr auto inside = nb::rv_policy::reference_internal;
  nb::class_<Selection>(m, "Selection", R"(
What a selection method returns: the inducing inputs and how they came about.

>>> ample.Selection(np.zeros((2, 1)), added=2).Z.shape
(2, 1)
)")
      .def(
          "__init__",
          [](Selection* self, const MatrixRef& Z, Index added, Index removed,
             const std::string& stop, bool moving, std::optional<double> optimum,
             std::optional<double> lower_bound, std::optional<double> threshold) {
            Selection selection;
            selection.Z = Z;
            selection.added = added;
            selection.removed = removed;
            selection.stop = stop_from(stop);
            selection.moving = moving;
            selection.optimum = optimum;
            selection.lower_bound = lower_bound;
            selection.threshold = threshold;
            new (self) Selection(std::move(selection));
          },
          "Z"_a, nb::kw_only(), "added"_a = 0, "removed"_a = 0, "stop"_a = "size",
          "moving"_a = false, "optimum"_a = nb::none(), "lower_bound"_a = nb::none(),
          "threshold"_a = nb::none())
      .def_ro("Z", &Selection::Z, inside)
      .def_ro("added", &Selection::added)
      .def_ro("removed", &Selection::removed)
      .def_prop_ro("stop", [](const Selection& s) { return std::string(to_string(s.stop)); })
      .def_ro("moving", &Selection::moving)
      .def_rw("optimum", &Selection::optimum)
      .def_rw("lower_bound", &Selection::lower_bound)
      .def_rw("threshold", &Selection::threshold)
      .def("__repr__", [](const Selection& s) {
        return fmt::format("<Selection: M = {} (+{}, -{}), {}>", s.Z.rows(), s.added, s.removed,
                           to_string(s.stop));
      });

  nb::class_<TargetStatistics>(m, "TargetStatistics", "Running mean and variance of all targets.")
      .def_ro("count", &TargetStatistics::count)
      .def_ro("mean", &TargetStatistics::mean)
      .def_prop_ro("variance", &TargetStatistics::variance);

  nb::class_<OwnedProblem>(m, "SelectionProblem", "What a selection method is given.")
      .def_ro("old", &OwnedProblem::old, inside, "The state before this batch.")
      .def_ro("X", &OwnedProblem::X, inside, "The batch, [N, D], in the model's scaled units.")
      .def_prop_ro(
          "y", [](const OwnedProblem& p) -> const Vector& { return p.sites.target; }, inside,
          "Its targets, [N].")
      .def_prop_ro(
          "weights",
          [](const OwnedProblem& p) -> Vector {
            return p.sites.weighted() ? p.sites.weight : Vector::Ones(p.sites.size());
          },
          "Their weights, [N].")
      .def_prop_ro(
          "Z_old", [](const OwnedProblem& p) -> const Matrix& { return p.old.Z; }, inside,
          "The inducing inputs before this batch, [M, D].")
      .def_prop_ro("kernel", [](const OwnedProblem& p) { return p.old.kernel; })
      .def_prop_ro("noise_variance", [](const OwnedProblem& p) { return p.old.noise_variance; })
      .def_ro("targets", &OwnedProblem::targets, inside)
      .def_ro("seed", &OwnedProblem::seed)
      .def("lower_bound", &OwnedProblem::lower_bound, "Z"_a, Unlocked(),
           "The bound with these inducing inputs at the present hyperparameters; O(N M²).")
      .def(
          "optimum", [](const OwnedProblem& p) { return optimum(p.old, p.X, p.sites); }, Unlocked(),
          "The best value the bound can reach; O(N³). None if the factorisation fails.")
      .def("noise_bound", &OwnedProblem::noise_bound,
           "The log density of the targets under the model that explains nothing.");

  nb::class_<OwnedSearch>(m, "Greedy", R"(
Greedy-variance search over a batch, one point at a time, with the lower bound kept up to date.

The old inducing points are in it from the start.
)")
      .def(nb::init<OwnedProblem>(), "problem"_a)
      .def(
          "take_next", [](OwnedSearch& self) { return self.search.take_next(); }, Unlocked(),
          "Takes the most uncertain point; False when no point adds anything.")
      .def_prop_ro(
          "size", [](const OwnedSearch& self) { return self.search.size(); },
          "Inducing points so far, old ones included.")
      .def_prop_ro(
          "lower_bound", [](const OwnedSearch& self) { return self.search.lower_bound(); },
          "The bound with these points.")
      .def(
          "selection",
          [](const OwnedSearch& self, bool exhausted) {
            return self.search.selection(exhausted ? self.search.why_exhausted()
                                                   : SelectionStop::threshold);
          },
          "exhausted"_a = false, "The points taken so far as a result.");

  nb::class_<Method>(m, "SelectionMethod", R"(
How inducing points are chosen, as a value. Any object with ``select(problem)`` and ``name`` is one.

>>> ample.Vips(delta=0.05).settings["delta"]
0.05
>>> ample.SelectionMethod("oips", rho=0.9).name
'oips'
)")
      .def(
          "__init__",
          [](Method* self, const std::string& name, const nb::kwargs& settings) {
            SelectionSettings values;
            for (auto [key, value] : settings) {
              values[nb::cast<std::string>(key)] = nb::cast<double>(value);
            }
            new (self) Method{make_selection(name, values), {}};
          },
          "name"_a, "settings"_a,
          nb::sig("def __init__(self, name: str, **settings: float) -> None"))
      .def_prop_ro("name", [](const Method& self) { return self.method.name(); })
      .def_prop_ro("settings", [](const Method& self) { return self.method.settings(); })
      .def(
          "select",
          [](const Method& self, const OwnedProblem& p) { return self.method.select(p.view()); },
          "problem"_a, Unlocked())
      .def("__repr__", &method_text)
      .def(
          "__eq__",
          [](const Method& a, const Method& b) { return method_text(a) == method_text(b); },
          nb::is_operator(), nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__", [](const Method& a) { return std::hash<std::string>()(method_text(a)); })
      .def("__getstate__",
           [](const Method& self) { return std::pair(self.method.name(), self.method.settings()); })
      .def("__setstate__",
           [](Method& self, const std::pair<std::string, SelectionSettings>& state) {
             new (&self) Method{make_selection(state.first, state.second), {}};
           });

  // As with kernels, the named methods are functions that return one type.
  m.def(
      "Vips",
      [](double delta, double floor, const std::string& pool, const std::string& reference,
         const std::string& choose, std::optional<Index> max_inducing) {
        Vips v{.delta = delta, .floor = floor, .max_inducing = cap(max_inducing)};
        if (pool == "old_and_batch") {
          v.pool = Vips::Pool::old_and_batch;
        } else if (pool != "batch") {
          throw std::invalid_argument("Vips: pool must be 'batch' or 'old_and_batch'");
        }
        if (reference == "optimum") {
          v.reference = Vips::Reference::optimum;
        } else if (reference == "upper_bound") {
          v.reference = Vips::Reference::upper_bound;
        } else if (reference != "automatic") {
          throw std::invalid_argument(
              "Vips: reference must be 'automatic', 'optimum' or 'upper_bound'");
        }
        if (choose == "gain") {
          v.choose = Vips::Choose::gain;
        } else if (choose != "variance") {
          throw std::invalid_argument("Vips: choose must be 'variance' or 'gain'");
        }
        return checked(v);
      },
      "delta"_a = Vips{}.delta, nb::kw_only(), "floor"_a = Vips{}.floor, "pool"_a = "batch",
      "reference"_a = "automatic", "choose"_a = "variance", "max_inducing"_a = nb::none(), R"(
VIPS: points are added, the most uncertain first, until the bound is within the fraction ``delta``
of what separates its optimum from a model that explains nothing, or within ``floor`` nats a row.

``pool='old_and_batch'`` also drops old points that no longer help; ``reference`` says what stands
for the optimum; ``choose='gain'`` adds first what raises the bound most.
)");
  m.def(
      "ConditionalVariance",
      [](double eta, std::optional<Index> max_inducing) {
        return checked(ConditionalVariance{eta, cap(max_inducing)});
      },
      "eta"_a = ConditionalVariance{}.eta, nb::kw_only(), "max_inducing"_a = nb::none(),
      "Greedy variance until what is left over old points and batch is at most eta.");
  m.def(
      "Oips",
      [](double rho, Index k_min, std::optional<Index> max_inducing) {
        return checked(Oips{rho, k_min, cap(max_inducing)});
      },
      "rho"_a = Oips{}.rho, nb::kw_only(), "k_min"_a = Oips{}.k_min, "max_inducing"_a = nb::none(),
      "OIPS: a point is taken if its largest correlation with an inducing point is below rho.");
  m.def(
      "FixedGreedy", [](Index size) { return checked(FixedGreedy{size}); },
      "size"_a = FixedGreedy{}.size, "Greedy variance at a constant number of points.");
  m.def(
      "FixedGradient", [](Index size) { return checked(FixedGradient{size}); },
      "size"_a = FixedGradient{}.size,
      "A constant number of points, fitted together with the hyperparameters.");
}

}  // namespace ample::python
