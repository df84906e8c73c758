"""The model in the style of River: one observation at a time."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ._ample import BatchReport, ContinualGP, Kernel, Positive
from ._model import check_unchanged, model_parameters, new_model
from ._warnings import warn

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Base: Any = object
try:  # River's own base class, so that its pipelines, metrics and checks accept the model
    from river.base import Regressor as _Base
except ImportError:
    pass

Features = Mapping[Hashable, float]


_MOST = 1e300  # beyond it differences overflow


def _number(name: Hashable, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(
            f"learn_one: {name} is {value!r}, but must be a number; from a time subtract an origin and "
            "divide by a unit"
        ) from None


class OnlineGPRegressor(_Base):  # type: ignore[misc]
    """Continual Gaussian-process regression for observations that come one by one.

    Observations are buffered, and learnt from when there are ``batch_size`` of them or ``flush`` is
    called; a prediction uses what has been learnt from, not the buffer. Before the first batch it
    is the mean of the buffer's targets.

    The features are those of the first batch, in any order. One that is missing from an observation
    or NaN takes its mean of the first batch; one that appears only later is ignored, since a Gaussian
    process cannot grow a dimension. The parameters are those of ``ContinualGPRegressor``. River
    need not be installed; with it, the class is a ``river.base.Regressor`` and passes all of its
    checks.

    >>> model = ample.OnlineGPRegressor(batch_size=20)
    >>> for i in range(100):
    ...     x = {"t": i / 10, "u": i % 7}
    ...     model.learn_one(x, np.sin(x["t"]))
    >>> bool(abs(model.predict_one({"t": 5.0, "u": 1}) - np.sin(5.0)) < 0.1)
    True
    """

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
        batch_size: int = 50,
        refit_every: int = 1,
        fixed_hyperparameters: bool = False,
        max_evaluations: int = 1000,
        max_seconds: float | None = None,
        reservoir: int | None = None,
        forget: Any = None,
        prune: float | None = None,
        ard: bool = False,
        seed: int = 0,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}, but must be at least 1")
        self.kernel = kernel
        self.delta = delta
        self.max_inducing = max_inducing
        self.choose = choose
        self.selection = selection
        self.noise_variance = noise_variance
        self.standardize = standardize
        self.batch_size = batch_size
        self.refit_every = refit_every
        self.fixed_hyperparameters = fixed_hyperparameters
        self.max_evaluations = max_evaluations
        self.max_seconds = max_seconds
        self.reservoir = reservoir
        self.forget = forget
        self.prune = prune
        self.ard = ard
        self.seed = seed
        self._buffer: list[tuple[dict[Hashable, float], float]] = []
        self._means: dict[Hashable, float] = {}  # by feature, in the order of the model's columns
        self._gp: ContinualGP | None = None
        self._made_with: dict[str, Any] = {}

    @property
    def gp(self) -> ContinualGP | None:
        """The model; None before the first batch."""
        return self._gp

    def learn_one(self, x: Features, y: float) -> None:
        """Takes one observation in; every ``batch_size``-th call learns from all since the last."""
        features = {name: _number(name, x[name]) for name in x}
        known = {name: value for name, value in features.items() if not math.isnan(value)}
        # What the model would refuse must not get in among the others.
        target = _number("y", y)
        for name, value in [*known.items(), ("y", target)]:
            if not abs(value) <= _MOST:
                raise ValueError(f"learn_one: {name} is {value}, but must be finite and at most {_MOST:g}")
        self._buffer.append((known, target))
        if len(self._buffer) >= self.batch_size:
            self.flush()

    def flush(self) -> None:
        """Learns from the buffer now. If that fails or is interrupted, the buffer is kept."""
        if not self._buffer:
            return
        check_unchanged(self, self._made_with, "clone() makes a new estimator")
        if self._gp is None:
            means, made_with = self._first_means(), model_parameters(self)
            gp = new_model(self, len(means), self.seed)
        else:
            means, made_with, gp = self._means, self._made_with, self._gp
        X = np.asfortranarray([self._row(x, means) for x, _ in self._buffer])
        y = np.array([y for _, y in self._buffer])
        reports: list[BatchReport] = []
        try:
            # One call, which Ctrl-C cannot divide: what has been learnt is not learnt again.
            reports.extend(map(partial(gp.observe, max_seconds=self.max_seconds), (X,), (y,)))
        finally:
            if reports:
                self._gp, self._means, self._made_with, self._buffer = gp, means, made_with, []
        warn(reports[0])

    def predict_one(self, x: Features) -> float:
        """The mean at x."""
        if self._gp is None:
            return float(np.mean([y for _, y in self._buffer])) if self._buffer else 0.0
        return float(self._gp.predict(self._query(x)).mean[0])

    def predict_distribution_one(self, x: Features) -> tuple[float, float]:
        """Mean and standard deviation of a new observation at x, once a batch has been learnt."""
        if self._gp is None:
            raise ValueError("predict_distribution_one: no batch has been learnt; call flush()")
        prediction = self._gp.predict(self._query(x), observation=True)
        return float(prediction.mean[0]), float(prediction.std[0])

    def _first_means(self) -> dict[Hashable, float]:
        values: dict[Hashable, list[float]] = {}
        for x, _ in self._buffer:
            for name, value in x.items():
                values.setdefault(name, []).append(value)
        if not values:
            raise ValueError("flush: no observation of the first batch has a feature")
        # Sorted, so that the order of a dictionary's keys has no influence.
        return {name: float(np.mean(values[name])) for name in sorted(values, key=str)}

    @staticmethod
    def _row(x: Features, means: dict[Hashable, float]) -> list[float]:
        given = ((x.get(name, mean), mean) for name, mean in means.items())
        return [mean if math.isnan(value) else value for value, mean in given]

    def _query(self, x: Features) -> NDArray[np.float64]:
        return np.array([self._row(x, self._means)], dtype=np.float64, order="F")
