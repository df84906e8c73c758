#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nanobind/stl/map.h>

#include "ample/continual_gp.h"
#include "ample/exact_gp.h"
#include "ample/merge.h"
#include "ample/snapshot.h"
#include "bindings.h"
#include "published.h"

namespace ample::python {
namespace {

/// The C++ model and its selection method as Python knows it.
struct Model : Published<ContinualGP> {
  Model(ContinualGP gp, Method method) : Published(std::move(gp)), selection(std::move(method)) {}

  Method selection;
};
using Exact = Published<ExactGP>;

/// A property that is read from the model of the moment.
template <class Value>
auto read(Value (ContinualGP::*member)() const) {
  return [member](const Model& gp) { return (*gp.now().*member)(); };
}

Target target(bool observation) { return observation ? Target::observation : Target::function; }

MinimizeOptions fit_options(int max_evaluations, double gradient_tolerance) {
  MinimizeOptions options;
  options.max_evaluations = max_evaluations;
  options.gradient_tolerance = gradient_tolerance;
  return options;
}

/// `get` is given the method that the user gave in place of the stored one, if any.
template <class Get>
Model restored(const nb::object& selection, const Get& get) {
  Method method = Method::from(selection);
  ContinualGP model = selection.is_none() ? get() : get(method.method);
  if (selection.is_none()) method = {model.checkpoint()->options.selection, {}};
  return {std::move(model), std::move(method)};
}

Model load_model(const std::string& path, const nb::object& selection) {
  return restored(selection, [&](const auto&... method) { return load(path, method...); });
}

Model model_from_bytes(const nb::bytes& bytes, const nb::object& selection) {
  return restored(selection, [&](const auto&... method) {
    return from_bytes(std::string_view(bytes.c_str(), bytes.size()), method...);
  });
}

nb::bytes model_to_bytes(const Model& gp, const Notes& notes) {
  std::string bytes;
  {
    const nb::gil_scoped_release unlocked;
    bytes = to_bytes(*gp.now(), notes);
  }
  return nb::bytes(bytes.data(), bytes.size());
}

/// A rule by its name, a number of rows, or a Forgetting.
using ForgetLike = std::variant<std::string, double, Forgetting>;

Forgetting forgetting(const ForgetLike& like) {
  if (const auto* given = std::get_if<Forgetting>(&like)) return *given;
  if (const auto* rows = std::get_if<double>(&like)) return Forgetting::after_rows(*rows);
  const std::string& rule = std::get<std::string>(like);
  for (const Forgetting& known : {Forgetting::never(), Forgetting::adaptive()}) {
    if (rule == to_string(known.rule)) return known;
  }
  throw std::invalid_argument(fmt::format(
      "ContinualGP: forget is '{}', but must be 'never', 'adaptive', a number of rows or a "
      "Forgetting",
      rule));
}

Model make_model(const std::optional<Kernel>& kernel, const PositiveLike& noise_variance,
                 const nb::object& selection, const std::variant<bool, Scaling>& standardize,
                 bool search_start, bool find_kernel, bool ard, Index warm_up, Index refit_rows,
                 Index reservoir, const ForgetLike& forget, double refit_seconds, double prune,
                 Index refit_every, int max_evaluations, double gradient_tolerance,
                 double fit_tolerance, std::uint64_t seed) {
  Method method = Method::from(selection);
  ContinualGPOptions options;
  options.find_kernel = find_kernel;
  options.ard = ard;
  options.warm_up = warm_up;
  options.refit_rows = refit_rows;
  options.reservoir = reservoir;
  options.forget = forgetting(forget);
  options.refit_seconds = refit_seconds;
  options.prune = prune;
  if (kernel) options.start.kernel = *kernel;
  options.start.noise_variance = positive(noise_variance);
  options.selection = method.method;
  options.search_start = search_start;
  options.refit_every = refit_every;
  if (const auto* scaling = std::get_if<Scaling>(&standardize)) {
    options.scaling = *scaling;
  } else if (std::get<bool>(standardize)) {
    options.scaling = Standardize::first_batch;
  }
  options.fit = fit_options(max_evaluations, gradient_tolerance);
  options.fit_tolerance = fit_tolerance;
  options.seed = seed;
  return {ContinualGP(std::move(options)), std::move(method)};
}

nb::tuple merge_models(const std::vector<const Model*>& models, const std::optional<Kernel>& kernel,
                       const std::optional<PositiveLike>& noise_variance, bool fit,
                       std::optional<double> nats, std::optional<Index> max_inducing,
                       const Model* like) {
  std::vector<ContinualGP> given;
  given.reserve(models.size());
  for (const Model* model : models) given.push_back(*model->now());
  MergeOptions options{.kernel = kernel,
                       .fit = fit,
                       .nats = nats,
                       .max_inducing = max_inducing,
                       .should_stop = stop_on_signal};
  if (noise_variance) options.noise_variance = positive(*noise_variance);
  if (like != nullptr) options.like = like->now()->checkpoint()->options;
  std::optional<Merged> merged;
  {
    const nb::gil_scoped_release unlocked;
    merged.emplace(merge(given, options));
  }
  const auto largest = static_cast<std::size_t>(merged->report.largest);
  const Model& whose = like != nullptr ? *like : *models[largest];
  return nb::make_tuple(Model(std::move(merged->model), whose.selection),
                        std::move(merged->report));
}

}  // namespace

void bind_models(nb::module_& m) {
  constexpr auto inside = nb::rv_policy::reference_internal;
  const ContinualGPOptions defaults;

  nb::class_<Scaling>(m, "Scaling", "A fixed affine scaling of inputs and targets.")
      .def(
          "__init__",
          [](Scaling* self, const VectorRef& input_mean, const VectorRef& input_scale,
             double target_mean, double target_scale) {
            new (self) Scaling{input_mean, input_scale, target_mean, target_scale};
          },
          "input_mean"_a, "input_scale"_a, "target_mean"_a = 0.0, "target_scale"_a = 1.0)
      .def_static("from_data", &Scaling::standardize, "X"_a, "y"_a,
                  "To mean 0 and standard deviation 1 over these data.")
      .def_ro("input_mean", &Scaling::input_mean, inside)
      .def_ro("input_scale", &Scaling::input_scale, inside)
      .def_ro("target_mean", &Scaling::target_mean)
      .def_ro("target_scale", &Scaling::target_scale);

  nb::class_<Forgetting>(m, "Forgetting", R"(
What a row of the past counts when new ones come.

>>> ample.Forgetting.after_rows(5000)
Forgetting.after_rows(5000)
>>> gp = ample.ContinualGP(forget=ample.Forgetting.after_time(3600), prune=0.05)
>>> report = gp.observe(np.zeros((1, 1)), np.zeros(1), time=0.0)
>>> report = gp.observe(np.zeros((1, 1)), np.zeros(1), time=3600.0)
>>> report.past_weight, report.forgot
(0.5, 'half-life')
)")
      .def_static("never", &Forgetting::never, "Every row counts alike, however old.")
      .def_static("adaptive", &Forgetting::adaptive,
                  "Each batch decides by its evidence how much of the past to believe.")
      .def_static("after_rows", &Forgetting::after_rows, "rows"_a,
                  "A row counts half after so many others.")
      .def_static("after_time", &Forgetting::after_time, "time"_a,
                  "A row counts half after so much time, in the units of observe()'s ``time``.")
      .def(
          "__eq__", [](const Forgetting& a, const Forgetting& b) { return a == b; },
          nb::is_operator(), nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def("__hash__",
           [](const Forgetting& f) {
             return nb::hash(nb::make_tuple(static_cast<int>(f.rule), f.by_time(), f.half_life));
           })
      .def("__getstate__",
           [](const Forgetting& f) {
             return std::tuple(static_cast<int>(f.rule), static_cast<int>(f.clock), f.half_life);
           })
      .def("__setstate__",
           [](Forgetting& f, const std::tuple<int, int, double>& state) {
             new (&f)
                 Forgetting{static_cast<Forgetting::Rule>(std::get<0>(state)),
                            static_cast<Forgetting::Clock>(std::get<1>(state)), std::get<2>(state)};
           })
      .def("__repr__", [](const Forgetting& f) {
        if (f.rule != Forgetting::Rule::half_life) {
          return fmt::format("Forgetting.{}()", to_string(f.rule));
        }
        return fmt::format("Forgetting.{}({})", f.by_time() ? "after_time" : "after_rows",
                           f.half_life);
      });

  nb::class_<Compression>(m, "Compression", "What it cost to make a model smaller.")
      .def_ro("inducing_before", &Compression::inducing_before)
      .def_ro("inducing", &Compression::inducing)
      .def_ro("nats", &Compression::nats,
              "The divergence of the smaller model from the one before.")
      .def("__repr__", [](const Compression& c) {
        return fmt::format("<Compression: M = {}, before {}, {:.4g} nats>", c.inducing,
                           c.inducing_before, c.nats);
      });

  nb::class_<Model>(m, "ContinualGP", R"(
Continual Gaussian-process regression that sizes itself.

Batches go in and are not kept; after each, the model has chosen how many inducing points it needs,
refitted its hyperparameters, and predicts. Any thread may call any method at any time: while one
learns, the others predict from the model as it was before the batch, and a second ``observe`` waits
for the first. Ctrl-C during ``observe`` leaves the model as it was before the batch.

``kernel`` and ``noise_variance`` are where the fit starts, with bounds; ``standardize`` scales the
data by the first batch (True), not at all (False) or by a given ``Scaling``; ``search_start`` begins
at shorter lengthscales if they make the first batch more probable; ``refit_every`` is the number of
batches from one refit to the next, 0 for none.

``find_kernel`` chooses the kernel by what it foresees of the first rows, with ``ard`` only among those
with a lengthscale for each input; ``warm_up`` rows are held
before the model begins; ``refit_rows`` collects small batches for a refit; ``reservoir`` rows of the
past are kept to fit hyperparameters to; ``forget`` is "never", "adaptive", which lets each batch decide
how much of the past to believe, a number of rows after which a row counts half, or a ``Forgetting``;
``refit_seconds`` brings a refit after so long, however few rows have come; ``prune`` is the share of a batch's nats for which points may go again. ``out_of_the_box()``
has the values of all these that the estimators use when no kernel is given.

>>> rng = np.random.default_rng(0)
>>> X = rng.uniform(0, 10, size=(200, 1))
>>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(200)
>>> gp = ample.ContinualGP(ample.Matern52(), standardize=True)
>>> for i in range(0, 200, 50):
...     report = gp.observe(X[i:i + 50], y[i:i + 50])
>>> mean, variance = gp.predict(np.array([[np.pi / 2]]))
>>> bool(abs(mean[0] - 1) < 0.1), gp.rows_seen
(True, 200)
)")
      .def(
          "__init__",
          [](Model* self, const std::optional<Kernel>& kernel, const PositiveLike& noise_variance,
             const nb::object& selection, const std::variant<bool, Scaling>& standardize,
             bool search_start, bool find_kernel, bool ard, Index warm_up, Index refit_rows,
             Index reservoir, const ForgetLike& forget, double refit_seconds, double prune,
             Index refit_every, int max_evaluations, double gradient_tolerance,
             double fit_tolerance, std::uint64_t seed) {
            new (self) Model(make_model(kernel, noise_variance, selection, standardize,
                                        search_start, find_kernel, ard, warm_up, refit_rows,
                                        reservoir, forget, refit_seconds, prune, refit_every,
                                        max_evaluations, gradient_tolerance, fit_tolerance, seed));
          },
          "kernel"_a = nb::none(), nb::kw_only(), "noise_variance"_a = defaults.start.noise(),
          "selection"_a = nb::none(), "standardize"_a = false,
          "search_start"_a = defaults.search_start, "find_kernel"_a = defaults.find_kernel,
          "ard"_a = defaults.ard, "warm_up"_a = defaults.warm_up,
          "refit_rows"_a = defaults.refit_rows, "reservoir"_a = defaults.reservoir,
          "forget"_a = to_string(defaults.forget.rule), "refit_seconds"_a = defaults.refit_seconds,
          "prune"_a = defaults.prune, "refit_every"_a = defaults.refit_every,
          "max_evaluations"_a = defaults.fit.max_evaluations,
          "gradient_tolerance"_a = defaults.fit.gradient_tolerance,
          "fit_tolerance"_a = defaults.fit_tolerance, "seed"_a = defaults.seed)
      .def_static("default_kernel", &ContinualGPOptions::default_kernel, "dimension"_a,
                  "Where to begin without a kernel of one's own: a squared exponential for "
                  "standardised inputs, whose points are about √dimension apart.")
      .def(
          "observe",
          [](Model& gp, const MatrixRef& X, const VectorRef& y,
             const std::optional<Vector>& weights, std::optional<double> max_seconds,
             std::optional<double> time) {
            ObserveOptions options{
                .weights = weights.value_or(Vector()), .time = time, .should_stop = stop_on_signal};
            if (max_seconds) options.max_seconds = *max_seconds;
            return gp.change([&](ContinualGP& next) { return next.observe(X, y, options); });
          },
          "X"_a, "y"_a, nb::kw_only(), "weights"_a = nb::none(), "max_seconds"_a = nb::none(),
          "time"_a = nb::none(), Unlocked(),
          "Learns from a batch X [N, D], y [N]. A row of weight 2 counts as two rows, or as one "
          "measured with half the noise variance. A fit ends after ``max_seconds``, with the best "
          "hyperparameters so far. ``time`` is that of the latest row, for a model that forgets by "
          "time.")
      .def(
          "predict",
          [](const Model& gp, const MatrixRef& X, bool observation) {
            return gp.now()->predict(X, target(observation));
          },
          "X"_a, nb::kw_only(), "observation"_a = false, Unlocked(),
          "Mean and variance of the function, or of a new observation of it; before the first "
          "batch, the prior's.")
      .def(
          "predict_joint",
          [](const Model& gp, const MatrixRef& X, bool observation) {
            return gp.now()->predict_joint(X, target(observation));
          },
          "X"_a, nb::kw_only(), "observation"_a = false, Unlocked(),
          "Mean [N] and covariance [N, N].")
      .def(
          "sample",
          [](const Model& gp, const MatrixRef& X, Index count, std::uint64_t seed,
             bool observation) { return gp.now()->sample(X, count, seed, target(observation)); },
          "X"_a, "count"_a = 1, nb::kw_only(), "seed"_a = 0, "observation"_a = false, Unlocked(),
          "Joint samples, one a column, [N, count].")
      .def(
          "gradient", [](const Model& gp, const MatrixRef& X) { return gp.now()->gradient(X); },
          "X"_a, Unlocked(), "Derivatives of mean and variance with respect to the query points.")
      .def(
          "prices", [](const Model& gp) { return gp.now()->prices(); }, Unlocked(),
          "What dropping each inducing point would cost, in nats, [M].")
      .def(
          "compression_curve", [](const Model& gp) { return gp.now()->compression_curve(); },
          Unlocked(), "What a model of m points would cost, in nats, m = 0 ... M, [M + 1].")
      .def(
          "compress",
          [](Model& gp, double nats) {
            return gp.change([&](ContinualGP& next) { return next.compress(nats); });
          },
          "nats"_a, Unlocked(),
          "Removes the inducing points that are worth least, for at most so many nats in all. "
          "Predictions then differ by no more than what it cost.")
      .def(
          "compress_to",
          [](Model& gp, Index points) {
            return gp.change([&](ContinualGP& next) { return next.compress_to(points); });
          },
          "points"_a, Unlocked(), "The same until no more than so many are left.")
      .def_prop_ro(
          "kernel", [](const Model& gp) { return gp.now()->kernel(); }, "As fitted so far.")
      .def_prop_ro("noise_variance", read(&ContinualGP::noise_variance),
                   "As fitted so far, in scaled units.")
      .def_prop_ro("size", read(&ContinualGP::size), "M, the number of inducing points.")
      .def_prop_ro("inducing_inputs", read(&ContinualGP::inducing_inputs),
                   "[M, D], in the units of the data.")
      .def_prop_ro("rows_seen", read(&ContinualGP::rows_seen))
      .def_prop_ro("batches", read(&ContinualGP::batches))
      .def_prop_ro("dimension", read(&ContinualGP::dimension),
                   "Columns of X; 0 before the first batch.")
      .def_prop_ro(
          "state",
          [](const Model& gp) -> std::optional<State> {
            const auto predictor = gp.now()->predictor();
            if (!predictor) return std::nullopt;
            return predictor->state();
          },
          "A copy of what the model remembers; None before the first batch.")
      .def_prop_ro("scaling",
                   [](const Model& gp) -> Scaling {
                     const auto predictor = gp.now()->predictor();
                     return predictor ? predictor->scaling() : Scaling();
                   })
      .def_prop_ro(
          "selection",
          [](const Model& gp) {
            return gp.selection.custom.is_valid() ? gp.selection.custom : nb::cast(gp.selection);
          },
          "The selection method.")
      .def(
          "save",
          [](const Model& gp, const std::string& path, const Notes& notes) {
            save(*gp.now(), path, notes);
          },
          "path"_a, "notes"_a = Notes(), Unlocked(),
          "Writes a model file, which the C++ library and the program `ample` read too, and "
          "`safetensors` opens. `notes` are texts to keep beside the model.")
      .def("to_bytes", &model_to_bytes, "notes"_a = Notes(), "What save() would write.")
      .def("__copy__", [](const Model& gp) { return gp; })
      .def("__repr__", [](const Model& model) {
        const auto gp = model.now();
        return fmt::format("<ContinualGP: {}, noise variance {:.4g}, M = {}, {} rows seen>",
                           gp->kernel().to_string(), gp->noise_variance(), gp->size(),
                           gp->rows_seen());
      });

  m.def("load", &load_model, "path"_a, "selection"_a = nb::none(),
        "Reads a model file. A model with a selection method written in Python needs it again.");
  m.def("from_bytes", &model_from_bytes, "bytes"_a, "selection"_a = nb::none(),
        "The model that to_bytes() or the content of a model file describes. As with load(), a "
        "selection method written in Python is needed again.");
  m.def(
      "load_notes", [](const std::string& path) { return load_snapshot(path).notes; }, "path"_a,
      "The texts kept beside the model in a file.");

  m.def("merge_models", &merge_models, "models"_a, nb::kw_only(), "kernel"_a.none() = nb::none(),
        "noise_variance"_a = nb::none(), "fit"_a = false, "nats"_a = nb::none(),
        "max_inducing"_a = nb::none(), "like"_a.none() = nb::none(),
        nb::sig("def merge_models(models: collections.abc.Sequence[ContinualGP], *, kernel: Kernel "
                "| None "
                "= None, noise_variance: Positive | float | collections.abc.Sequence[float] | None "
                "= None, fit: bool = False, nats: float | None = None, max_inducing: int | None = "
                "None, like: ContinualGP | None = None) -> tuple[ContinualGP, MergeReport]"),
        "What ample.merge() calls.");
  m.def(
      "empty_like",
      [](const Model& pilot, bool fixed_hyperparameters) {
        return Model(empty_like(*pilot.now(), fixed_hyperparameters), pilot.selection);
      },
      "pilot"_a, nb::kw_only(), "fixed_hyperparameters"_a = false, R"(
A model that has seen nothing, with the scaling, hyperparameters and options of a pilot, so that what
several such models learn can be merged. Hyperparameters start there. If they are fixed they stay there,
and the model does not weigh its past: all rows count alike, whatever their order.
)");

  m.def(
      "out_of_the_box",
      [] {
        const ContinualGPOptions box = ContinualGPOptions::out_of_the_box();
        nb::dict options;
        options["selection"] = Method{box.selection, {}};
        options["standardize"] = true;
        options["find_kernel"] = box.find_kernel;
        options["warm_up"] = box.warm_up;
        options["refit_rows"] = box.refit_rows;
        options["reservoir"] = box.reservoir;
        options["forget"] = to_string(box.forget.rule);
        options["prune"] = box.prune;
        return options;
      },
      nb::sig("def out_of_the_box() -> dict[str, object]"),
      "What suits a stranger's data: the options of ContinualGP that the estimators use when no "
      "kernel "
      "is given.");

  nb::class_<Exact>(m, "ExactGP", R"(
Gaussian-process regression on all data at once; O(N³). The prior mean is zero: centre the targets.

>>> gp = ample.ExactGP(ample.SquaredExponential(), noise_variance=0.01)
>>> gp.condition(np.array([[0.0], [1.0]]), np.array([0.0, 1.0]))
>>> mean, variance = gp.predict(np.array([[1.0]]))
>>> round(float(mean[0]), 2)
0.98
)")
      .def(
          "__init__",
          [](Exact* self, const Kernel& kernel, const PositiveLike& noise_variance) {
            new (self)
                Exact(ExactGP({.kernel = kernel, .noise_variance = positive(noise_variance)}));
          },
          "kernel"_a, "noise_variance"_a = defaults.start.noise())
      .def(
          "fit",
          [](Exact& gp, const MatrixRef& X, const VectorRef& y, int max_evaluations,
             double gradient_tolerance) {
            return gp.change([&](ExactGP& next) {
              return next.fit(X, y, fit_options(max_evaluations, gradient_tolerance), nullptr,
                              stop_on_signal);
            });
          },
          "X"_a, "y"_a, nb::kw_only(), "max_evaluations"_a = defaults.fit.max_evaluations,
          "gradient_tolerance"_a = defaults.fit.gradient_tolerance, Unlocked(),
          "Maximises the evidence from the present hyperparameters on, and conditions.")
      .def(
          "condition",
          [](Exact& gp, const MatrixRef& X, const VectorRef& y) {
            gp.change([&](ExactGP& next) { next.condition(X, y); });
          },
          "X"_a, "y"_a, Unlocked(), "Conditions on the data at the present hyperparameters.")
      .def(
          "predict",
          [](const Exact& gp, const MatrixRef& X, bool observation) {
            return gp.now()->predict(X, target(observation));
          },
          "X"_a, nb::kw_only(), "observation"_a = false, Unlocked(),
          "Mean and variance of the function, or of a new observation of it.")
      .def_prop_ro("log_evidence", [](const Exact& gp) { return gp.now()->log_evidence(); })
      .def_prop_ro("kernel", [](const Exact& gp) { return gp.now()->hyperparameters().kernel; })
      .def_prop_ro("noise_variance",
                   [](const Exact& gp) { return gp.now()->hyperparameters().noise(); })
      .def_prop_ro(
          "size", [](const Exact& gp) { return gp.now()->size(); },
          "The number of data conditioned on.");
}

}  // namespace ample::python
