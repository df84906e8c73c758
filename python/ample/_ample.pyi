"""The compiled part of the package `ample`."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, overload

import numpy
import numpy.typing
from numpy.typing import NDArray


class NumericalError(ArithmeticError):
    """
    A computation that could not be carried out; the model is left as it was.
    """

class ModelFileError(OSError):
    """A model file that is missing, damaged or not in the expected format."""

class Positive:
    """
    A hyperparameter: one positive number or one per input dimension, with bounds for the fit.

    Wherever a kernel takes one, a plain number or a sequence of numbers will do.

    >>> ample.Positive(0.5, lower=0.1, upper=10)
    Positive(0.5, lower=0.1, upper=10)
    >>> ample.Positive([1.0, 2.0], fixed=True).values
    [1.0, 2.0]
    """

    @overload
    def __init__(self, value: float, *, lower: float = 1e-06, upper: float = 100000000.0, fixed: bool = False) -> None: ...

    @overload
    def __init__(self, values: Sequence[float], *, lower: float = 1e-06, upper: float = 100000000.0, fixed: bool = False) -> None: ...

    @property
    def values(self) -> list[float]: ...

    @property
    def lower(self) -> float: ...

    @property
    def upper(self) -> float: ...

    @property
    def fixed(self) -> bool: ...

    def __repr__(self) -> str: ...

    def __eq__(self, arg: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __getstate__(self) -> tuple[list[float], float, float, bool]: ...

    def __setstate__(self, arg: tuple[Sequence[float], float, float, bool], /) -> None: ...

class Parameter:
    """One scalar hyperparameter of a kernel."""

    @property
    def name(self) -> str: ...

    @property
    def value(self) -> float: ...

    @property
    def lower(self) -> float: ...

    @property
    def upper(self) -> float: ...

    @property
    def fixed(self) -> bool: ...

    def __repr__(self) -> str: ...

class Kernel:
    """
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
    """

    def __init__(self, text: str) -> None: ...

    @overload
    def __call__(self, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)], Z: Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F')]:
        """The matrix of k(x_i, z_j), [N, M]."""

    @overload
    def __call__(self, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F')]:
        """The matrix of k(x_i, x_j), [N, N]."""

    def diagonal(self, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)]) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
        """k(x_i, x_i), [N]."""

    @property
    def parameters(self) -> list[Parameter]:
        """All scalar parameters, fixed ones too."""

    def with_values(self, values: Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]) -> Kernel:
        """The same kernel at other values of its parameters, in their order."""

    def without_constant(self) -> Kernel:
        """This kernel less its additive constants."""

    def __add__(self, arg: Kernel, /) -> Kernel: ...

    @overload
    def __mul__(self, arg: Kernel, /) -> Kernel: ...

    @overload
    def __mul__(self, arg: float, /) -> Kernel: ...

    def __rmul__(self, arg: float, /) -> Kernel: ...

    def __pow__(self, exponent: int) -> Kernel:
        """k(x, z) to a whole power, with one set of parameters."""

    def __eq__(self, arg: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

    def __reduce__(self) -> tuple[Any, ...]: ...

def SquaredExponential(variance: Positive | float | Sequence[float] = 1.0, lengthscale: Positive | float | Sequence[float] = 1.0, *, dims: Sequence[int] = []) -> Kernel:
    """
    variance · exp(−s/2), s = Σ_d (x_d − z_d)²/lengthscale_d².

    ``lengthscale`` is one number or one per dimension; ``dims`` are the columns it looks at (all).

    >>> ample.SquaredExponential(lengthscale=0.5, dims=[0])
    se(variance=1, lengthscale=0.5, dims=[0])
    """

def Matern12(variance: Positive | float | Sequence[float] = 1.0, lengthscale: Positive | float | Sequence[float] = 1.0, *, dims: Sequence[int] = []) -> Kernel:
    """variance · exp(−√s): continuous, not differentiable paths."""

def Matern32(variance: Positive | float | Sequence[float] = 1.0, lengthscale: Positive | float | Sequence[float] = 1.0, *, dims: Sequence[int] = []) -> Kernel:
    """variance · (1 + √(3s)) exp(−√(3s))."""

def Matern52(variance: Positive | float | Sequence[float] = 1.0, lengthscale: Positive | float | Sequence[float] = 1.0, *, dims: Sequence[int] = []) -> Kernel:
    """variance · (1 + √(5s) + 5s/3) exp(−√(5s))."""

def RationalQuadratic(variance: Positive | float | Sequence[float] = 1.0, lengthscale: Positive | float | Sequence[float] = 1.0, alpha: Positive | float | Sequence[float] = 1.0, *, dims: Sequence[int] = []) -> Kernel:
    """variance · (1 + s/(2 alpha))^(−alpha)."""

def Periodic(variance: Positive | float | Sequence[float] = 1.0, lengthscale: Positive | float | Sequence[float] = 1.0, period: Positive | float | Sequence[float] = 1.0, *, dims: Sequence[int] = []) -> Kernel:
    """variance · exp(−2 Σ_d sin²(π(x_d − z_d)/period)/lengthscale_d²)."""

def Linear(variance: Positive | float | Sequence[float] = 1.0, *, dims: Sequence[int] = []) -> Kernel:
    """Σ_d variance_d x_d z_d."""

def Polynomial(variance: Positive | float | Sequence[float] = 1.0, offset: Positive | float | Sequence[float] = 1.0, degree: int = 2, *, dims: Sequence[int] = []) -> Kernel:
    """(variance · xᵀz + offset)^degree."""

def Constant(variance: Positive | float | Sequence[float] = 1.0) -> Kernel:
    """variance, everywhere: a fitted offset when added to another kernel."""

def ArcCosine(variance: Positive | float | Sequence[float] = 1.0, weight_variance: Positive | float | Sequence[float] = 1.0, bias_variance: Positive | float | Sequence[float] = 1.0, order: int = 1, *, dims: Sequence[int] = []) -> Kernel:
    """
    Arc-cosine kernel of order 0, 1 or 2: an infinitely wide layer of step, ReLU or squared-ReLU units.
    """

class Prediction:
    """
    Gaussian marginals at N query points; unpacks into ``mean, variance``.

    >>> mean, variance = ample.ContinualGP().predict(np.zeros((2, 1)))
    >>> mean, variance
    (array([0., 0.]), array([1., 1.]))
    """

    def __init__(self, mean: Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)], variance: Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]) -> None: ...

    @property
    def mean(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]: ...

    @property
    def variance(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]: ...

    def __iter__(self) -> Iterator[numpy.typing.NDArray[numpy.float64]]: ...

    def __repr__(self) -> str: ...

    @property
    def std(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
        """The standard deviation, [N]."""

class JointPrediction:
    """A joint Gaussian over N query points."""

    @property
    def mean(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]: ...

    @property
    def covariance(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F')]: ...

    def __iter__(self) -> Iterator[numpy.typing.NDArray[numpy.float64]]: ...

    def __repr__(self) -> str: ...

class PredictionGradient:
    """
    Derivatives of mean and variance with respect to each query point, [N, D] each.
    """

    @property
    def mean(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F')]: ...

    @property
    def variance(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F')]: ...

    def __iter__(self) -> Iterator[numpy.typing.NDArray[numpy.float64]]: ...

    def __repr__(self) -> str: ...

class MinimizeSummary:
    """How a fit went."""

    @property
    def termination(self) -> str: ...

    @property
    def message(self) -> str: ...

    @property
    def x(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]: ...

    @property
    def value(self) -> float: ...

    @property
    def initial_value(self) -> float: ...

    @property
    def gradient_norm(self) -> float: ...

    @property
    def iterations(self) -> int: ...

    @property
    def evaluations(self) -> int: ...

    @property
    def failed_evaluations(self) -> int: ...

    def __repr__(self) -> str: ...

class BatchReport:
    """
    What one batch did to the model. Values in nats are in the model's own, scaled units.

    >>> report = ample.ContinualGP().observe(np.zeros((1, 1)), np.zeros(1))
    >>> report.inducing, report.rows_seen
    (1, 1)
    >>> sorted(report.as_dict())[:3]
    ['batch', 'chi_squared', 'coverage']
    """

    @property
    def batch(self) -> int: ...

    @property
    def rows(self) -> int: ...

    @property
    def rows_seen(self) -> int: ...

    @property
    def inducing_before(self) -> int: ...

    @property
    def inducing_added(self) -> int: ...

    @property
    def inducing_removed(self) -> int: ...

    @property
    def inducing(self) -> int: ...

    @property
    def stop(self) -> str: ...

    @property
    def optimum(self) -> float | None: ...

    @property
    def lower_bound(self) -> float | None: ...

    @property
    def noise_bound(self) -> float | None: ...

    @property
    def threshold(self) -> float | None: ...

    @property
    def gap(self) -> float | None: ...

    @property
    def rounding(self) -> float: ...

    @property
    def elbo(self) -> float: ...

    @property
    def kernel(self) -> str: ...

    @property
    def noise_variance(self) -> float: ...

    @property
    def jitter(self) -> float: ...

    @property
    def chi_squared(self) -> float | None: ...

    @property
    def p_value(self) -> float | None: ...

    @property
    def residuals(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]: ...

    @property
    def past_weight(self) -> float: ...

    @property
    def forgot(self) -> str: ...

    @property
    def relearnt(self) -> bool: ...

    @property
    def outliers(self) -> int: ...

    @property
    def pruned_nats(self) -> float: ...

    @property
    def lost_nats(self) -> float | None: ...

    @property
    def coverage(self) -> float | None: ...

    @property
    def found_kernel(self) -> str: ...

    @property
    def warnings(self) -> list[str]: ...

    @property
    def refitted(self) -> bool: ...

    @property
    def seconds_select(self) -> float: ...

    @property
    def seconds_fit(self) -> float: ...

    @property
    def fit(self) -> MinimizeSummary: ...

    def as_dict(self) -> dict[str, Any]:
        """All but the details of the fit, for a table."""

    def __getstate__(self) -> tuple[Any, ...]: ...

    def __setstate__(self, arg: tuple[Any, ...], /) -> None: ...

    def __repr__(self) -> str: ...

class MergeReport:
    """
    What a merge did. Values in nats are in the models' own, scaled units.

    ``largest`` is the model, counted from 0, that the merged one has its options of; ``rows_learnt`` are
    rows that models still held and that were learnt anew; ``inducing_before`` counts the points of all
    models, ``inducing_union`` those that differ. ``carried_nats`` is what the models lose at a theta that
    is not their own, ``pruned_nats`` what removing points cost, of the ``allowed_nats``.
    """

    @property
    def models(self) -> int: ...

    @property
    def largest(self) -> int: ...

    @property
    def rows(self) -> int: ...

    @property
    def rows_learnt(self) -> int: ...

    @property
    def inducing_before(self) -> int: ...

    @property
    def inducing_union(self) -> int: ...

    @property
    def inducing(self) -> int: ...

    @property
    def carried_nats(self) -> float: ...

    @property
    def bound(self) -> float: ...

    @property
    def allowed_nats(self) -> float: ...

    @property
    def pruned_nats(self) -> float: ...

    @property
    def kernel(self) -> str: ...

    @property
    def noise_variance(self) -> float: ...

    @property
    def jitter(self) -> float: ...

    @property
    def fitted(self) -> bool: ...

    @property
    def seconds(self) -> float: ...

    @property
    def fit(self) -> MinimizeSummary: ...

    def as_dict(self) -> dict[str, Any]:
        """All but the details of the fit, for a table."""

    def __getstate__(self) -> tuple[Any, ...]: ...

    def __setstate__(self, arg: tuple[Any, ...], /) -> None: ...

    def __repr__(self) -> str: ...

class State:
    """
    What a model remembers of all the data it has seen; docs/derivation.md §2.

    >>> ample.State.empty(ample.SquaredExponential(), 0.1, dimension=2)
    <State: M = 0, D = 2>
    """

    @staticmethod
    def empty(kernel: Kernel, noise_variance: float, dimension: int) -> State:
        """A model that has seen nothing: it predicts the prior."""

    @property
    def kernel(self) -> Kernel: ...

    @property
    def noise_variance(self) -> float: ...

    @property
    def Z(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F')]:
        """Inducing inputs, [M, D], in the model's scaled units."""

    @property
    def L(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F')]:
        """Lower Cholesky factor of K_bb with jitter, [M, M]."""

    @property
    def A(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F')]:
        """The precision that the data added, whitened, [M, M]."""

    @property
    def c(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
        """The evidence, whitened, [M]."""

    @property
    def L_D(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F')]:
        """Lower Cholesky factor of I + A, [M, M]."""

    @property
    def w(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
        """L_D⁻¹ c, [M]."""

    @property
    def F(self) -> float: ...

    @property
    def jitter(self) -> float: ...

    @property
    def size(self) -> int:
        """M."""

    @property
    def dimension(self) -> int:
        """D."""

    def __repr__(self) -> str: ...

class Posterior:
    """
    Predictions from a state, in its own scaled units.

    >>> nothing = ample.State.empty(ample.SquaredExponential(), 0.1, dimension=1)
    >>> ample.Posterior(nothing).predict(np.zeros((1, 1))).variance
    array([1.])
    """

    def __init__(self, state: State) -> None: ...

    def predict(self, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)], *, observation: bool = False) -> Prediction:
        """Marginals at X."""

class BoundGradient:
    """The gradient of the online bound, natural units."""

    @property
    def theta(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
        """By the kernel's parameters, [P]."""

    @property
    def noise_variance(self) -> float: ...

    @property
    def Z(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F')]:
        """By the inducing inputs, [M, D], if they may move."""

class OnlineBound:
    """
    The online evidence lower bound for one batch, given a state that remembers the past.

    With an empty past it is the collapsed bound of sparse GP regression (SGPR).

    >>> k, X, y = ample.SquaredExponential(), np.array([[0.0], [1.0]]), np.array([0.0, 1.0])
    >>> bound = ample.OnlineBound(ample.State.empty(k, 0.1, 1), X, y)
    >>> bound.factorize(k, 0.1, X)
    True
    >>> bool(bound.value <= ample.optimum(ample.State.empty(k, 0.1, 1), X, y))
    True
    """

    def __init__(self, old: State, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F')], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')], *, moving: bool = False) -> None: ...

    def factorize(self, kernel: Kernel, noise_variance: float, Z: Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)], jitter: float | None = None) -> bool:
        """
        Factorises at these hyperparameters and inducing inputs; False if that fails.
        """

    @property
    def value(self) -> float: ...

    def gradient(self) -> BoundGradient:
        """The gradient at the last factorisation."""

    def upper_bound(self, *, tight: bool = True) -> float | None:
        """
        An upper bound on the optimum, from inducing inputs that begin with the old ones; with tight=False the looser one of the paper. None if a factorisation fails.
        """

    def absorb(self) -> State:
        """
        The state after this batch; factorise anew before anything else is asked.
        """

def optimum(old: State, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)], jitter: float = 0.0) -> float | None:
    """
    L*, the best value that the bound can reach with any inducing inputs; O(N³). With a jitter, the value that is reached with every row of X added, inducing variables of that jitter. None if the factorisation fails.
    """

class EvidenceGradient:
    """The gradient of the exact log evidence."""

    @property
    def theta(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
        """By the kernel's parameters, [P]."""

    @property
    def noise_variance(self) -> float: ...

class ExactEvidence:
    """The log evidence of a data set; O(N³)."""

    def __init__(self, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F')], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]) -> None: ...

    def factorize(self, kernel: Kernel, noise_variance: float) -> bool:
        """Factorises at these hyperparameters; False if that fails."""

    @property
    def value(self) -> float: ...

    def gradient(self) -> EvidenceGradient:
        """The gradient at the last factorisation, which it uses up."""

class Selection:
    """
    What a selection method returns: the inducing inputs and how they came about.

    >>> ample.Selection(np.zeros((2, 1)), added=2).Z.shape
    (2, 1)
    """

    def __init__(self, Z: Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)], *, added: int = 0, removed: int = 0, stop: str = 'size', moving: bool = False, optimum: float | None = None, lower_bound: float | None = None, threshold: float | None = None) -> None: ...

    @property
    def Z(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F')]: ...

    @property
    def added(self) -> int: ...

    @property
    def removed(self) -> int: ...

    @property
    def stop(self) -> str: ...

    @property
    def moving(self) -> bool: ...

    @property
    def optimum(self) -> float | None: ...

    @optimum.setter
    def optimum(self, arg: float | None, /) -> None: ...

    @property
    def lower_bound(self) -> float | None: ...

    @lower_bound.setter
    def lower_bound(self, arg: float | None, /) -> None: ...

    @property
    def threshold(self) -> float | None: ...

    @threshold.setter
    def threshold(self, arg: float | None, /) -> None: ...

    def __repr__(self) -> str: ...

class TargetStatistics:
    """Running mean and variance of all targets."""

    @property
    def count(self) -> int: ...

    @property
    def mean(self) -> float: ...

    @property
    def variance(self) -> float: ...

class SelectionProblem:
    """What a selection method is given."""

    @property
    def old(self) -> State:
        """The state before this batch."""

    @property
    def X(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F')]:
        """The batch, [N, D], in the model's scaled units."""

    @property
    def y(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
        """Its targets, [N]."""

    @property
    def weights(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
        """Their weights, [N]."""

    @property
    def Z_old(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F')]:
        """The inducing inputs before this batch, [M, D]."""

    @property
    def kernel(self) -> Kernel: ...

    @property
    def noise_variance(self) -> float: ...

    @property
    def targets(self) -> TargetStatistics: ...

    @property
    def seed(self) -> int: ...

    def lower_bound(self, Z: Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)]) -> float:
        """
        The bound with these inducing inputs at the present hyperparameters; O(N M²).
        """

    def optimum(self) -> float | None:
        """
        The best value the bound can reach; O(N³). None if the factorisation fails.
        """

    def noise_bound(self) -> float:
        """The log density of the targets under the model that explains nothing."""

class Greedy:
    """
    Greedy-variance search over a batch, one point at a time, with the lower bound kept up to date.

    The old inducing points are in it from the start.
    """

    def __init__(self, problem: SelectionProblem) -> None: ...

    def take_next(self) -> bool:
        """Takes the most uncertain point; False when no point adds anything."""

    @property
    def size(self) -> int:
        """Inducing points so far, old ones included."""

    @property
    def lower_bound(self) -> float:
        """The bound with these points."""

    def selection(self, exhausted: bool = False) -> Selection:
        """The points taken so far as a result."""

class SelectionMethod:
    """
    How inducing points are chosen, as a value. Any object with ``select(problem)`` and ``name`` is one.

    >>> ample.Vips(delta=0.05).settings["delta"]
    0.05
    >>> ample.SelectionMethod("oips", rho=0.9).name
    'oips'
    """

    def __init__(self, name: str, **settings: float) -> None: ...

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> dict[str, float]: ...

    def select(self, problem: SelectionProblem) -> Selection: ...

    def __repr__(self) -> str: ...

    def __eq__(self, arg: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __getstate__(self) -> tuple[str, dict[str, float]]: ...

    def __setstate__(self, arg: tuple[str, Mapping[str, float]], /) -> None: ...

def Vips(delta: float = 0.035, *, floor: float = 0.0, pool: str = 'batch', reference: str = 'automatic', choose: str = 'variance', max_inducing: int | None = None) -> SelectionMethod:
    """
    VIPS: points are added, the most uncertain first, until the bound is within the fraction ``delta``
    of what separates its optimum from a model that explains nothing, or within ``floor`` nats a row.

    ``pool='old_and_batch'`` also drops old points that no longer help; ``reference`` says what stands
    for the optimum; ``choose='gain'`` adds first what raises the bound most.
    """

def ConditionalVariance(eta: float = 0.5, *, max_inducing: int | None = None) -> SelectionMethod:
    """
    Greedy variance until what is left over old points and batch is at most eta.
    """

def Oips(rho: float = 0.93, *, k_min: int = 10, max_inducing: int | None = None) -> SelectionMethod:
    """
    OIPS: a point is taken if its largest correlation with an inducing point is below rho.
    """

def FixedGreedy(size: int = 100) -> SelectionMethod:
    """Greedy variance at a constant number of points."""

def FixedGradient(size: int = 100) -> SelectionMethod:
    """A constant number of points, fitted together with the hyperparameters."""

class Scaling:
    """A fixed affine scaling of inputs and targets."""

    def __init__(self, input_mean: Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)], input_scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)], target_mean: float = 0.0, target_scale: float = 1.0) -> None: ...

    @staticmethod
    def from_data(X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]) -> Scaling:
        """To mean 0 and standard deviation 1 over these data."""

    @property
    def input_mean(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]: ...

    @property
    def input_scale(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]: ...

    @property
    def target_mean(self) -> float: ...

    @property
    def target_scale(self) -> float: ...

class Forgetting:
    """
    What a row of the past counts when new ones come.

    >>> ample.Forgetting.after_rows(5000)
    Forgetting.after_rows(5000)
    >>> gp = ample.ContinualGP(forget=ample.Forgetting.after_time(3600), prune=0.05)
    >>> report = gp.observe(np.zeros((1, 1)), np.zeros(1), time=0.0)
    >>> report = gp.observe(np.zeros((1, 1)), np.zeros(1), time=3600.0)
    >>> report.past_weight, report.forgot
    (0.5, 'half-life')
    """

    @staticmethod
    def never() -> Forgetting:
        """Every row counts alike, however old."""

    @staticmethod
    def adaptive() -> Forgetting:
        """Each batch decides by its evidence how much of the past to believe."""

    @staticmethod
    def after_rows(rows: float) -> Forgetting:
        """A row counts half after so many others."""

    @staticmethod
    def after_time(time: float) -> Forgetting:
        """
        A row counts half after so much time, in the units of observe()'s ``time``.
        """

    def __eq__(self, arg: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __getstate__(self) -> tuple[int, int, float]: ...

    def __setstate__(self, arg: tuple[int, int, float], /) -> None: ...

    def __repr__(self) -> str: ...

class Compression:
    """What it cost to make a model smaller."""

    @property
    def inducing_before(self) -> int: ...

    @property
    def inducing(self) -> int: ...

    @property
    def nats(self) -> float:
        """The divergence of the smaller model from the one before."""

    def __repr__(self) -> str: ...

class ContinualGP:
    """
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
    """

    def __init__(self, kernel: Kernel | None = None, *, noise_variance: Positive | float | Sequence[float] = 0.1, selection: object | None = None, standardize: bool | Scaling = False, search_start: bool = False, find_kernel: bool = False, ard: bool = False, warm_up: int = 0, refit_rows: int = 0, reservoir: int = 0, forget: str | float | Forgetting = 'never', refit_seconds: float = 0.0, prune: float = 0.0, refit_every: int = 1, max_evaluations: int = 1000, gradient_tolerance: float = 1e-05, fit_tolerance: float = 0.0001, seed: int = 0) -> None: ...

    @staticmethod
    def default_kernel(dimension: int) -> Kernel:
        """
        Where to begin without a kernel of one's own: a squared exponential for standardised inputs, whose points are about √dimension apart.
        """

    def observe(self, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)], *, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')] | None = None, max_seconds: float | None = None, time: float | None = None) -> BatchReport:
        """
        Learns from a batch X [N, D], y [N]. A row of weight 2 counts as two rows, or as one measured with half the noise variance. A fit ends after ``max_seconds``, with the best hyperparameters so far. ``time`` is that of the latest row, for a model that forgets by time.
        """

    def predict(self, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)], *, observation: bool = False) -> Prediction:
        """
        Mean and variance of the function, or of a new observation of it; before the first batch, the prior's.
        """

    def predict_joint(self, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)], *, observation: bool = False) -> JointPrediction:
        """Mean [N] and covariance [N, N]."""

    def sample(self, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)], count: int = 1, *, seed: int = 0, observation: bool = False) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F')]:
        """Joint samples, one a column, [N, count]."""

    def gradient(self, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)]) -> PredictionGradient:
        """Derivatives of mean and variance with respect to the query points."""

    def prices(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
        """What dropping each inducing point would cost, in nats, [M]."""

    def compression_curve(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]:
        """What a model of m points would cost, in nats, m = 0 ... M, [M + 1]."""

    def compress(self, nats: float) -> Compression:
        """
        Removes the inducing points that are worth least, for at most so many nats in all. Predictions then differ by no more than what it cost.
        """

    def compress_to(self, points: int) -> Compression:
        """The same until no more than so many are left."""

    @property
    def kernel(self) -> Kernel:
        """As fitted so far."""

    @property
    def noise_variance(self) -> float:
        """As fitted so far, in scaled units."""

    @property
    def size(self) -> int:
        """M, the number of inducing points."""

    @property
    def inducing_inputs(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='F')]:
        """[M, D], in the units of the data."""

    @property
    def rows_seen(self) -> int: ...

    @property
    def batches(self) -> int: ...

    @property
    def dimension(self) -> int:
        """Columns of X; 0 before the first batch."""

    @property
    def state(self) -> State | None:
        """A copy of what the model remembers; None before the first batch."""

    @property
    def scaling(self) -> Scaling: ...

    @property
    def selection(self) -> object:
        """The selection method."""

    def save(self, path: str, notes: Mapping[str, str] = {}) -> None:
        """
        Writes a model file, which the C++ library and the program `ample` read too, and `safetensors` opens. `notes` are texts to keep beside the model.
        """

    def to_bytes(self, notes: Mapping[str, str] = {}) -> bytes:
        """What save() would write."""

    def __copy__(self) -> ContinualGP: ...

    def __repr__(self) -> str: ...

def load(path: str, selection: object | None = None) -> ContinualGP:
    """
    Reads a model file. A model with a selection method written in Python needs it again.
    """

def from_bytes(bytes: bytes, selection: object | None = None) -> ContinualGP:
    """
    The model that to_bytes() or the content of a model file describes. As with load(), a selection method written in Python is needed again.
    """

def load_notes(path: str) -> dict[str, str]:
    """The texts kept beside the model in a file."""

def merge_models(models: Sequence[ContinualGP], *, kernel: Kernel | None = None, noise_variance: Positive | float | Sequence[float] | None = None, fit: bool = False, nats: float | None = None, max_inducing: int | None = None, like: ContinualGP | None = None) -> tuple[ContinualGP, MergeReport]:
    """What ample.merge() calls."""

def empty_like(pilot: ContinualGP, *, fixed_hyperparameters: bool = False) -> ContinualGP:
    """
    A model that has seen nothing, with the scaling, hyperparameters and options of a pilot, so that what
    several such models learn can be merged. Hyperparameters start there. If they are fixed they stay there,
    and the model does not weigh its past: all rows count alike, whatever their order.
    """

def out_of_the_box() -> dict[str, object]:
    """
    What suits a stranger's data: the options of ContinualGP that the estimators use when no kernel is given.
    """

class ExactGP:
    """
    Gaussian-process regression on all data at once; O(N³). The prior mean is zero: centre the targets.

    >>> gp = ample.ExactGP(ample.SquaredExponential(), noise_variance=0.01)
    >>> gp.condition(np.array([[0.0], [1.0]]), np.array([0.0, 1.0]))
    >>> mean, variance = gp.predict(np.array([[1.0]]))
    >>> round(float(mean[0]), 2)
    0.98
    """

    def __init__(self, kernel: Kernel, noise_variance: Positive | float | Sequence[float] = 0.1) -> None: ...

    def fit(self, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)], *, max_evaluations: int = 1000, gradient_tolerance: float = 1e-05) -> MinimizeSummary:
        """
        Maximises the evidence from the present hyperparameters on, and conditions.
        """

    def condition(self, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]) -> None:
        """Conditions on the data at the present hyperparameters."""

    def predict(self, X: Annotated[NDArray[numpy.float64], dict(shape=(None, None), writable=False)], *, observation: bool = False) -> Prediction:
        """Mean and variance of the function, or of a new observation of it."""

    @property
    def log_evidence(self) -> float: ...

    @property
    def kernel(self) -> Kernel: ...

    @property
    def noise_variance(self) -> float: ...

    @property
    def size(self) -> int:
        """The number of data conditioned on."""

class Calibration:
    """Coverage against level."""

    @property
    def levels(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]: ...

    @property
    def coverage(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C')]: ...

    @property
    def error(self) -> float:
        """Mean of |coverage − level|."""

def rmse(y: Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)], mean: Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]) -> float:
    """Root mean squared error."""

def mae(y: Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)], mean: Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]) -> float:
    """Mean absolute error."""

def r2(y: Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)], mean: Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]) -> float:
    """Coefficient of determination."""

def nlpd(y: Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)], predicted: Prediction) -> float:
    """
    Mean negative log predictive density; the prediction is of observations, not of the function.

    >>> p = ample.Prediction(np.ones(2), np.full(2, 4.0))
    >>> round(ample.nlpd(np.array([1.0, 3.0]), p), 3)
    1.862
    """

def coverage(y: Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)], predicted: Prediction, level: float) -> float:
    """
    Fraction of the targets inside the central interval of probability `level`.
    """

def interval_width(predicted: Prediction, level: float) -> float:
    """Mean width of the central intervals of probability `level`."""

def calibration_curve(y: Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)], predicted: Prediction, levels: Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]) -> Calibration:
    """The coverage at each of `levels`."""

def relative_to_exact(method: float, exact: float, noise: float) -> float:
    """(method − exact)/|noise − exact| · 100 of any metric."""

def normal_cdf(x: float) -> float:
    """Φ(x) of the standard normal distribution."""

def normal_quantile(p: float) -> float:
    """Φ⁻¹(p)."""

def version() -> str:
    """The version of the library."""

def set_threads(count: int) -> None:
    """Limits the threads of the library and its BLAS, for the whole process."""

def threads() -> int:
    """The limit in force."""
