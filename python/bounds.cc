#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "ample/bound.h"
#include "ample/exact_gp.h"
#include "ample/optimum.h"
#include "ample/posterior.h"
#include "bindings.h"

namespace ample::python {
namespace {

void check_ready(bool ready) {
  if (!ready) throw std::invalid_argument("nothing is factorised: call factorize() before");
}

/// A bound keeps references to its data; here the data live beside it. `ready` is false until
/// there are factors to read: C++ leaves that to the caller, Python must not crash.
struct OwnedBound {
  OwnedBound(State old_state, Matrix X_new, Vector y_new, bool moving)
      : old(std::move(old_state)),
        X(std::move(X_new)),
        y(std::move(y_new)),
        bound(old, X, y, moving ? OnlineBound::Inducing::moving : OnlineBound::Inducing::fixed) {}
  OwnedBound(const OwnedBound&) = delete;
  OwnedBound& operator=(const OwnedBound&) = delete;

  State old;
  Matrix X;
  Vector y;
  OnlineBound bound;
  bool ready = false;
};

struct OwnedEvidence {
  OwnedEvidence(Matrix X_all, Vector y_all)
      : X(std::move(X_all)), y(std::move(y_all)), evidence(X, y) {}
  OwnedEvidence(const OwnedEvidence&) = delete;
  OwnedEvidence& operator=(const OwnedEvidence&) = delete;

  Matrix X;
  Vector y;
  ExactEvidence evidence;
  bool has_value = false;
  bool ready = false;  // the factor is there: the gradient uses it up, the value stays
};

}  // namespace

void bind_bounds(nb::module_& m) {
  constexpr auto inside = nb::rv_policy::reference_internal;
  nb::class_<State>(m, "State", R"(
What a model remembers of all the data it has seen; docs/derivation.md §2.

>>> ample.State.empty(ample.SquaredExponential(), 0.1, dimension=2)
<State: M = 0, D = 2>
)")
      .def_static("empty", &State::empty, "kernel"_a, "noise_variance"_a, "dimension"_a,
                  "A model that has seen nothing: it predicts the prior.")
      .def_ro("kernel", &State::kernel)
      .def_ro("noise_variance", &State::noise_variance)
      .def_ro("Z", &State::Z, inside, "Inducing inputs, [M, D], in the model's scaled units.")
      .def_ro("L", &State::L, inside, "Lower Cholesky factor of K_bb with jitter, [M, M].")
      .def_ro("A", &State::A, inside, "The precision that the data added, whitened, [M, M].")
      .def_ro("c", &State::c, inside, "The evidence, whitened, [M].")
      .def_ro("L_D", &State::L_D, inside, "Lower Cholesky factor of I + A, [M, M].")
      .def_ro("w", &State::w, inside, "L_D⁻¹ c, [M].")
      .def_ro("F", &State::F)
      .def_ro("jitter", &State::jitter)
      .def_prop_ro("size", &State::size, "M.")
      .def_prop_ro("dimension", &State::dimension, "D.")
      .def("__repr__", [](const State& s) {
        return fmt::format("<State: M = {}, D = {}>", s.size(), s.dimension());
      });

  nb::class_<Posterior>(m, "Posterior", R"(
Predictions from a state, in its own scaled units.

>>> nothing = ample.State.empty(ample.SquaredExponential(), 0.1, dimension=1)
>>> ample.Posterior(nothing).predict(np.zeros((1, 1))).variance
array([1.])
)")
      .def(nb::init<State>(), "state"_a)
      .def(
          "predict",
          [](const Posterior& self, const MatrixRef& X, bool observation) {
            return self.predict(X, observation ? Target::observation : Target::function);
          },
          "X"_a, nb::kw_only(), "observation"_a = false, Unlocked(), "Marginals at X.");

  nb::class_<BoundGradient>(m, "BoundGradient", "The gradient of the online bound, natural units.")
      .def_ro("theta", &BoundGradient::theta, inside, "By the kernel's parameters, [P].")
      .def_ro("noise_variance", &BoundGradient::noise_variance)
      .def_ro("Z", &BoundGradient::Z, inside, "By the inducing inputs, [M, D], if they may move.");

  nb::class_<OwnedBound>(m, "OnlineBound", R"(
The online evidence lower bound for one batch, given a state that remembers the past.

With an empty past it is the collapsed bound of sparse GP regression (SGPR).

>>> k, X, y = ample.SquaredExponential(), np.array([[0.0], [1.0]]), np.array([0.0, 1.0])
>>> bound = ample.OnlineBound(ample.State.empty(k, 0.1, 1), X, y)
>>> bound.factorize(k, 0.1, X)
True
>>> bool(bound.value <= ample.optimum(ample.State.empty(k, 0.1, 1), X, y))
True
)")
      .def(nb::init<State, Matrix, Vector, bool>(), "old"_a, "X"_a, "y"_a, nb::kw_only(),
           "moving"_a = false)
      .def(
          "factorize",
          [](OwnedBound& self, const Kernel& kernel, double noise_variance, const MatrixRef& Z,
             std::optional<double> jitter) {
            self.ready = false;
            self.ready = self.bound.factorize(kernel, noise_variance, Z, jitter);
            return self.ready;
          },
          "kernel"_a, "noise_variance"_a, "Z"_a, "jitter"_a = nb::none(), Unlocked(),
          "Factorises at these hyperparameters and inducing inputs; False if that fails.")
      .def_prop_ro("value",
                   [](const OwnedBound& self) {
                     check_ready(self.ready);
                     return self.bound.value();
                   })
      .def(
          "gradient",
          [](OwnedBound& self) {
            check_ready(self.ready);
            return self.bound.gradient();
          },
          Unlocked(), "The gradient at the last factorisation.")
      .def(
          "upper_bound",
          [](const OwnedBound& self, bool tight) {
            check_ready(self.ready);
            return upper_bound(tight ? UpperBound::tight : UpperBound::paper, self.old,
                               self.bound.factors(), self.y);
          },
          nb::kw_only(), "tight"_a = true, Unlocked(),
          "An upper bound on the optimum, from inducing inputs that begin with the old ones; with "
          "tight=False the looser one of the paper. None if a factorisation fails.")
      .def(
          "absorb",
          [](OwnedBound& self) {
            check_ready(std::exchange(self.ready, false));
            return self.bound.absorb();
          },
          Unlocked(), "The state after this batch; factorise anew before anything else is asked.");

  m.def(
      "optimum",
      [](const State& old, const MatrixRef& X, const VectorRef& y, double jitter) {
        if (!(jitter >= 0.0)) {
          throw std::invalid_argument(
              fmt::format("optimum: jitter is {}, but must be 0 or more", jitter));
        }
        return jitter > 0.0 ? optimum_with_jitter(old, X, y, jitter) : optimum(old, X, y);
      },
      "old"_a, "X"_a, "y"_a, "jitter"_a = 0.0, Unlocked(),
      "L*, the best value that the bound can reach with any inducing inputs; O(N³). With a jitter, "
      "the value that is reached with every row of X added, inducing variables of that jitter. "
      "None if the factorisation fails.");

  nb::class_<EvidenceGradient>(m, "EvidenceGradient", "The gradient of the exact log evidence.")
      .def_ro("theta", &EvidenceGradient::theta, inside, "By the kernel's parameters, [P].")
      .def_ro("noise_variance", &EvidenceGradient::noise_variance);

  nb::class_<OwnedEvidence>(m, "ExactEvidence", "The log evidence of a data set; O(N³).")
      .def(nb::init<Matrix, Vector>(), "X"_a, "y"_a)
      .def(
          "factorize",
          [](OwnedEvidence& self, const Kernel& kernel, double noise_variance) {
            self.has_value = self.ready = false;
            self.has_value = self.ready = self.evidence.factorize(kernel, noise_variance);
            return self.ready;
          },
          "kernel"_a, "noise_variance"_a, Unlocked(),
          "Factorises at these hyperparameters; False if that fails.")
      .def_prop_ro("value",
                   [](const OwnedEvidence& self) {
                     check_ready(self.has_value);
                     return self.evidence.value();
                   })
      .def(
          "gradient",
          [](OwnedEvidence& self) {
            check_ready(std::exchange(self.ready, false));
            return self.evidence.gradient();
          },
          Unlocked(), "The gradient at the last factorisation, which it uses up.");
}

}  // namespace ample::python
