"""The model as a scikit-learn estimator."""

from __future__ import annotations

import copy
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        "ample.ContinualGPRegressor needs scikit-learn 1.6 or later: "
        "pip install 'ample-gp[sklearn]'"
    ) from error

from ._ample import BatchReport, ContinualGP, Kernel, Positive
from ._model import check_unchanged, is_automatic, model_parameters, new_model
from ._progress import follow
from ._warnings import warn

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas
    from numpy.typing import NDArray


def _is_plain(array: Any, dimensions: int) -> bool:
    """Whether this is an array of finite float64 numbers, as it stands."""
    return (
        type(array) is np.ndarray
        and array.dtype == np.float64
        and array.ndim == dimensions
        and len(array) > 0
        and bool(np.isfinite(array.sum()))
    )


def _refuse_times(name: str, data: Any) -> None:
    """NumPy would silently turn them into numbers, such as nanoseconds since 1970."""
    types: Any = getattr(data, "schema", None)  # of polars
    if types is None:
        types = getattr(data, "dtypes", None)  # of pandas
    if not hasattr(types, "items"):
        types = {None: getattr(data, "dtype", None)}  # an array or a single column
    for column, kind in types.items():
        if hasattr(kind, "is_temporal"):
            holds_times = kind.is_temporal()
        else:
            holds_times = getattr(kind, "kind", None) in ("M", "m")
        if holds_times:
            where = name if column is None else f"column {column!r} of {name}"
            raise ValueError(
                f"{where} holds times ({kind}), but must hold numbers: subtract an origin and divide "
                "by a unit, as in (t - t[0]) / numpy.timedelta64(1, 'h')"
            )


class ContinualGPRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Continual Gaussian-process regression that sizes itself, for scikit-learn.

    Parameters
    ----------
    kernel : Kernel, str or None
        Where the kernel starts. None, or "auto", finds one for the first rows and keeps a sample of
        past rows to fit it to (``reservoir``); the model then also decides how much of its past to
        believe, and drops points that are not worth their price.
    delta : float or None
        The accuracy of VIPS: smaller is closer to the exact model, with more inducing points. None
        is 0.005 when no kernel is given, otherwise 0.035, the paper's recommendation.
    max_inducing : int or None
        The most inducing points VIPS may take; a batch that reaches it has ``stop = "cap"`` in its
        report. None is 1000 when no kernel is given, otherwise no limit.
    choose : "variance", "gain" or None
        Which point VIPS takes next: the most uncertain, or the one that raises the bound most, which
        takes longer to find and makes smaller models. None is "gain" when no kernel is given, otherwise
        "variance".
    selection : selection method or None
        Another way to choose inducing points, in place of VIPS with the three settings above.
    noise_variance : float or Positive
        Where the noise variance starts, in scaled units.
    standardize : bool or Scaling
        Whether inputs and targets are scaled to mean 0 and deviation 1 of the first batch.
    batch_size : int
        The most rows that are learnt from at once.
    shuffle : bool or None
        Whether ``fit`` takes the rows in a random order, so that it does not matter how a table is sorted;
        ``partial_fit`` never does. None is True when no kernel, ``forget`` and ``time`` are given: with
        these the order of the rows is that of a stream.
    refit_every : int
        Batches from one fit of the hyperparameters to the next, beginning with the first.
    fixed_hyperparameters : bool
        Whether the hyperparameters stay where they start: no fit at all.
    max_evaluations : int
        The most evaluations of the bound in the fit of one batch; a fit that was cut short has
        ``fit.termination = "max_evaluations"`` in its report.
    max_seconds : float or None
        The most seconds that the fit of one batch may take; a report warns if that cut it short.
    reservoir : int or None
        How many past rows are kept, a sample of all, to fit the hyperparameters to; 0 keeps none.
        None is 4000 when no kernel is given, otherwise 0.
    forget : "never", "adaptive", float, Forgetting or None
        What a row of the past counts: all; as far as each batch contradicts the past; or half after so
        many rows. ``Forgetting.after_time(h)`` is a half-life in the units of ``time``. None is
        "adaptive" when no kernel is given, otherwise "never".
    prune : float or None
        The share of a batch's nats for which inducing points may go again. None is 0.05 when no kernel
        is given, otherwise 0.
    ard : bool
        Whether a kernel that is found must have a lengthscale for each input. Otherwise it has if that
        foresees the first rows better.
    history_size : int or None
        How many of the latest reports ``history_`` keeps; None keeps all.
    progress : bool or callable
        Whether to show progress in a line on standard error; or a function that wraps the sequence of
        batches and shows it, such as ``tqdm``.
    random_state : int, RandomState or None
        For ``shuffle``, and for selection methods that draw random numbers.

    Attributes
    ----------
    gp_ : ContinualGP
        The model.
    history_ : list of BatchReport
        What each batch did, the last ``history_size`` of them. Rows that ``fit`` has shuffled are in the
        batches in that order: for the residual of each row give ``shuffle=False``.
    n_features_in_ : int
        The number of inputs.
    feature_names_in_ : array of str
        Their names, if the data of the first batch had names.

    Notes
    -----
    Threads may predict while another learns; they use the model as it was before the current batch.
    ``batch_size``, ``shuffle``, ``max_seconds``, ``history_size`` and ``progress`` may be changed at any time. The other
    parameters belong to the model: ``partial_fit`` refuses to continue if one has changed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(300, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(300)
    >>> model = ample.ContinualGPRegressor(batch_size=100).fit(X, y)
    >>> len(model.history_), model.score(X, y) > 0.95
    (3, True)
    >>> mean, std = model.predict([[0.0]], return_std=True)
    >>> model.partial_fit(X[:10], y[:10]).gp_.rows_seen
    310
    """

    gp_: ContinualGP
    history_: list[BatchReport]
    _made_with: dict[str, Any]

    def __init__(
        self,
        kernel: Kernel | str | None = None,
        *,
        delta: float | None = None,
        max_inducing: int | None = None,
        choose: str | None = None,
        selection: Any = None,
        noise_variance: float | Positive = 0.1,
        standardize: Any = True,
        batch_size: int = 500,
        shuffle: bool | None = None,
        refit_every: int = 1,
        fixed_hyperparameters: bool = False,
        max_evaluations: int = 1000,
        max_seconds: float | None = None,
        reservoir: int | None = None,
        forget: Any = None,
        prune: float | None = None,
        ard: bool = False,
        history_size: int | None = 1000,
        progress: Any = False,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.delta = delta
        self.max_inducing = max_inducing
        self.choose = choose
        self.selection = selection
        self.noise_variance = noise_variance
        self.standardize = standardize
        self.batch_size = batch_size
        self.shuffle = shuffle
        self.refit_every = refit_every
        self.fixed_hyperparameters = fixed_hyperparameters
        self.max_evaluations = max_evaluations
        self.max_seconds = max_seconds
        self.reservoir = reservoir
        self.forget = forget
        self.prune = prune
        self.ard = ard
        self.history_size = history_size
        self.progress = progress
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, time: Any = None
    ) -> ContinualGPRegressor:
        """Learns from X [N, D] and y [N] in batches of ``batch_size`` rows, forgetting what it learnt before.
        The rows come in a random order, or as they are (``shuffle``).

        A row of weight 2 counts as two rows, or as one measured with half the noise variance; a row of
        weight 0 is left out. Weights do not change how the data are scaled. ``time`` [N] has the time of
        each row, for an estimator that forgets by time.

        After an error or Ctrl-C, the estimator is as it was before.
        """
        new, rows = self._begin(X, y, sample_weight, time)
        for _ in new._learn(*self._shuffled(*rows)):
            pass
        self.__dict__ = new.__dict__
        return self

    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, time: Any = None
    ) -> ContinualGPRegressor:
        """Learns from further data, in batches of at most ``batch_size`` rows.

        After an error or Ctrl-C, every batch before the current one has been learnt and the current one
        has not; ``gp_.rows_seen`` says how far it got.
        """
        if not hasattr(self, "gp_"):
            new, batches = self._begin(X, y, sample_weight, time)
            for _ in new._learn(*batches):
                self.__dict__ = new.__dict__  # from its first batch on
            return self
        check_unchanged(self, self._made_with, "fit() starts again, clone() makes a new estimator")
        ready = self._is_ready_for(X) and _is_plain(y, 1) and len(X) == len(y)
        if ready and sample_weight is None and time is None:
            batches = X, y, None, None
        else:
            batches = self._checked(X, y, sample_weight, time, reset=False)
        for _ in self._learn(*batches):
            pass
        return self

    def _begin(self, X: Any, y: Any, weights: Any, time: Any) -> tuple[ContinualGPRegressor, Any]:
        """An estimator with the same parameters and a new model, and the data it is to learn from."""
        new = copy.copy(self)
        data = new._checked(X, y, weights, time, reset=True)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        new._made_with = model_parameters(self)
        new.gp_, new.history_ = new_model(self, new.n_features_in_, seed), []
        return new, data

    def _checked(
        self, X: Any, y: Any, weights: Any, time: Any, reset: bool
    ) -> tuple[Any, Any, Any, Any]:
        _refuse_times("X", X)
        _refuse_times("y", y)
        # Column-major: a batch of rows is then a view that the library reads in place.
        X, y = validate_data(self, X, y, reset=reset, y_numeric=True, dtype=np.float64, order="F")
        y = np.ascontiguousarray(y, dtype=np.float64)
        if time is not None:
            _refuse_times("time", time)
            time = np.asarray(time, dtype=np.float64)
            if time.shape != (len(X),):
                raise ValueError(f"time has the shape {time.shape}, but must have one entry a row, {len(X)}")
        if weights is not None:
            weights = _check_sample_weight(weights, X, dtype=np.float64, ensure_non_negative=True)
            if not weights.all():
                kept = weights > 0
                X, y, weights = np.asfortranarray(X[kept]), y[kept], weights[kept]
                time = None if time is None else time[kept]
            if len(X) == 0:
                raise ValueError("sample_weight is 0 in every row, but must be positive in one")
        return X, y, weights, time

    def _shuffled(self, X: Any, y: Any, weights: Any, time: Any) -> tuple[Any, Any, Any, Any]:
        """The rows in the order in which ``fit`` takes them."""
        shuffle = self.shuffle
        if shuffle is None:
            shuffle = is_automatic(self.kernel) and self.forget is None and time is None
        elif shuffle and time is not None:
            raise ValueError("shuffle is True, but must be False or None where time is given: times have an order")
        if not shuffle:
            return X, y, weights, time
        order = check_random_state(self.random_state).permutation(len(X))
        weights = None if weights is None else weights[order]
        return np.asfortranarray(X[order]), y[order], weights, None

    def _learn(self, X: Any, y: Any, weights: Any, time: Any) -> Iterator[None]:
        """Learns batch by batch, and stops after each."""
        for name in ("batch_size", "history_size"):
            size = getattr(self, name)
            if size is not None and size < 1:
                raise ValueError(f"{name} is {size}, but must be at least 1")
        size, N = self.batch_size, len(X)
        batches = [slice(start, min(start + size, N)) for start in range(0, N, size)]
        for rows in follow(self.progress, batches, self.gp_):
            observe: Any = partial(self.gp_.observe, max_seconds=self.max_seconds)
            if weights is not None:
                observe = partial(observe, weights=weights[rows])
            if time is not None:
                observe = partial(observe, time=float(time[rows].max()))
            # One call, which Ctrl-C cannot divide: what the model has learnt is in its history.
            self.history_.extend(map(observe, (X[rows],), (y[rows],)))
            if self.history_size is not None:
                del self.history_[: -self.history_size]
            yield
            warn(self.history_[-1])

    def _is_ready_for(self, X: Any) -> bool:
        """Whether scikit-learn's checks of X would change nothing and find nothing: they take 0.2 ms,
        many times a prediction, and more than a tenth of the time of a small batch."""
        return (
            hasattr(self, "gp_")
            and not hasattr(self, "feature_names_in_")
            and _is_plain(X, 2)
            and X.shape[1] == self.n_features_in_
        )

    def _queries(self, X: Any) -> NDArray[np.float64]:
        if not self._is_ready_for(X):
            check_is_fitted(self)
            _refuse_times("X", X)
            X = validate_data(self, X, reset=False, dtype=np.float64, order="F")
        queries: NDArray[np.float64] = X
        return queries

    def predict(
        self,
        X: Any,
        return_std: bool = False,
        return_cov: bool = False,
        *,
        observation: bool = False,
    ) -> Any:
        """The mean at X; with ``return_std`` or ``return_cov``, also the standard deviation [N] or the
        covariance [N, N], of the function or, with ``observation``, of new observations of it.

        scikit-learn's ``GaussianProcessRegressor`` predicts the function if its noise is given as
        ``alpha``, and observations if it is a ``WhiteKernel``. Intervals for new targets are those of
        observations.
        """
        if return_std and return_cov:
            raise ValueError("predict: at most one of return_std and return_cov can be asked for")
        queries = self._queries(X)
        if return_cov:
            joint = self.gp_.predict_joint(queries, observation=observation)
            return joint.mean, joint.covariance
        marginals = self.gp_.predict(queries, observation=observation)
        return (marginals.mean, marginals.std) if return_std else marginals.mean

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> NDArray[np.float64]:
        """Joint samples of the function at X, one a column, [N, n_samples]."""
        seed = int(check_random_state(random_state).randint(2**31 - 1))
        return self.gp_.sample(self._queries(X), n_samples, seed=seed)

    def history_frame(self) -> pandas.DataFrame:
        """``history_`` as a pandas DataFrame, one row a batch."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("history_frame needs pandas: pip install pandas") from error
        check_is_fitted(self)
        return pandas.DataFrame([report.as_dict() for report in self.history_]).set_index("batch")
