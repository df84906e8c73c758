"""Pictures of a model on Matplotlib axes.

Each function draws on ``ax``, or on the current axes, and returns the axes. A model is a
``ContinualGP`` or an estimator that holds one.

>>> X = np.linspace(0, 6, 50)[:, None]
>>> model = ample.ContinualGPRegressor().fit(X, np.sin(X[:, 0]))
>>> ax = ample.plot.posterior(model, data=(X, np.sin(X[:, 0])))
>>> ax = ample.plot.growth(model.history_)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._ample import (
    BatchReport,
    ContinualGP,
    Prediction,
    calibration_curve,
    normal_quantile,
)

try:
    import matplotlib.pyplot as plt
    from matplotlib.colors import LinearSegmentedColormap, LogNorm
    from matplotlib.ticker import MaxNLocator
except ImportError as error:
    raise ImportError("ample.plot needs Matplotlib: pip install 'ample-gp[plot]'") from error

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

# Blue for the model, black for data, orange for inducing points, in every picture (colours of
# Wong 2011, distinct to colour-blind readers too).
_MODEL, _DATA, _INDUCING = "#0072B2", "#333333", "#D55E00"

# From a point that is worth little to one that is worth much.
_PRICES = LinearSegmentedColormap.from_list("prices", ["#FBE3D3", _INDUCING, "#5A2600"])


def _model(model: Any) -> ContinualGP:
    for name in ("gp_", "gp"):
        model = getattr(model, name, model)
    if not isinstance(model, ContinualGP):
        raise TypeError(f"a ContinualGP or an estimator that has learnt, but got {model!r}")
    if model.batches == 0:
        raise ValueError("the model has not seen any data")
    return model


def _range(values: NDArray[np.float64]) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


def _by_price(gp: ContinualGP) -> dict[str, Any]:
    """Colours of the inducing points for Matplotlib's ``scatter``, by price on a logarithmic scale."""
    prices = gp.prices()
    dearest = max(float(prices.max()), 1e-300)
    # Below a thousandth of the dearest all are cheap; a few may cost nothing at all.
    cheapest = max(float(prices.min()), 1e-3 * dearest)
    norm = LogNorm(cheapest, max(dearest, 1.01 * cheapest), clip=True)
    return {"c": np.maximum(prices, cheapest), "cmap": _PRICES, "norm": norm}


def _legend_above(ax: Axes, lines: Sequence[Any], labels: Sequence[str]) -> None:
    """Where it can hide nothing."""
    ax.legend(
        lines,
        labels,
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=3 if len(labels) <= 3 else 2,
        columnspacing=1.0,
        handlelength=1.5,
        frameon=False,
        fontsize="small",
    )


def posterior(
    model: Any,
    X: NDArray[np.float64] | None = None,
    *,
    data: tuple[Any, Any] | None = None,
    level: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """A model of one input: its mean, the central interval of probability ``level`` of the function
    (dark) and of observations (light), the inducing inputs (ticks, the darker the more nats dropping
    them would cost), and ``data`` = (X, y) if given.

    ``X`` are the points to draw at; by default they span the inducing inputs and the data.
    """
    gp = _model(model)
    if gp.dimension != 1:
        raise ValueError(f"posterior: the model has {gp.dimension} inputs, but must have 1")
    ax = ax or plt.gca()
    Z = gp.inducing_inputs[:, 0]
    if X is None:
        seen = Z if data is None else np.concatenate([Z, np.ravel(data[0])])
        X = np.linspace(*_range(seen), 400)
    x = np.ravel(X)
    queries = np.asfortranarray(x[:, None], dtype=np.float64)
    z = normal_quantile(0.5 + level / 2)
    function, observation = gp.predict(queries), gp.predict(queries, observation=True)
    if data is not None:
        ax.plot(
            np.ravel(data[0]), np.ravel(data[1]), ".", color=_DATA, ms=3, alpha=0.5, label="data"
        )
    for prediction, alpha, label in (
        (observation, 0.15, f"{level:.0%} of observations"),
        (function, 0.3, f"{level:.0%} of the function"),
    ):
        low, high = prediction.mean - z * prediction.std, prediction.mean + z * prediction.std
        ax.fill_between(x, low, high, color=_MODEL, alpha=alpha, lw=0, label=label)
    ax.plot(x, function.mean, color=_MODEL, lw=1.8, label="mean")
    ax.scatter(
        Z,
        np.full_like(Z, 0.015),
        marker="|",
        s=81,
        linewidths=1.5,
        transform=ax.get_xaxis_transform(),
        label=f"{gp.size} inducing points",
        **_by_price(gp),
    )
    ax.set_xlim(x.min(), x.max())
    ax.set_xlabel("x")
    ax.set_ylabel("y")
    _legend_above(ax, *ax.get_legend_handles_labels())
    return ax


def growth(history: Any, *, ax: Axes | None = None) -> Axes:
    """The number of inducing points after each batch and, on the right axis, the gap between the
    bound and its optimum with the threshold it had to reach.

    ``history`` is a list of reports or an estimator with ``history_``.
    """
    reports: Sequence[BatchReport] = getattr(history, "history_", history)
    if not reports:
        raise ValueError("growth: there are no reports")
    ax = ax or plt.gca()
    batch = [r.batch for r in reports]
    (size,) = ax.step(
        batch, [r.inducing for r in reports], where="post", color=_INDUCING, lw=2, marker="o", ms=3
    )
    ax.set_xlabel("batch")
    ax.set_ylabel("inducing points M", color=_INDUCING)
    ax.set_ylim(bottom=0)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    lines, labels = [size], ["M"]
    gaps = [np.nan if r.gap is None else r.gap for r in reports]
    thresholds = [np.nan if r.threshold is None else r.threshold for r in reports]
    if np.isfinite(gaps).any():
        right = ax.twinx()
        (gap,) = right.plot(batch, gaps, color=_MODEL, lw=1.5, marker=".")
        lines, labels = [*lines, gap], [*labels, "gap"]
        if np.isfinite(thresholds).any():
            (line,) = right.plot(batch, thresholds, color=_MODEL, lw=1, ls="--")
            lines, labels = [*lines, line], [*labels, "threshold"]
        right.set_ylabel("nats", color=_MODEL)
        right.set_ylim(bottom=0)
    _legend_above(ax, lines, labels)
    return ax


def field(
    model: Any,
    *,
    what: str = "mean",
    extent: tuple[float, float, float, float] | None = None,
    resolution: int = 120,
    ax: Axes | None = None,
    colorbar: bool = True,
    **options: Any,
) -> Axes:
    """A map of a model of two inputs: its ``what`` = "mean" or "std", with the inducing inputs, the
    darker the more nats dropping them would cost.

    ``extent`` is (x_min, x_max, y_min, y_max), by default around the inducing inputs; ``options``
    go to Matplotlib's ``imshow``.
    """
    gp = _model(model)
    if gp.dimension != 2:
        raise ValueError(f"field: the model has {gp.dimension} inputs, but must have 2")
    if what not in ("mean", "std"):
        raise ValueError(f"field: what is {what!r}, but must be 'mean' or 'std'")
    ax = ax or plt.gca()
    Z = gp.inducing_inputs
    extent = extent or (*_range(Z[:, 0]), *_range(Z[:, 1]))
    horizontal, vertical = np.meshgrid(
        np.linspace(*extent[:2], resolution), np.linspace(*extent[2:], resolution)
    )
    prediction = gp.predict(np.asfortranarray(np.column_stack([horizontal.ravel(), vertical.ravel()])))
    options = {"cmap": "viridis" if what == "mean" else "magma", "aspect": "auto", **options}
    values = getattr(prediction, what).reshape(horizontal.shape)
    image = ax.imshow(values, origin="lower", extent=extent, **options)
    ax.scatter(
        Z[:, 0],
        Z[:, 1],
        s=18,
        edgecolors="white",
        linewidths=0.8,
        label=f"{gp.size} inducing points",
        **_by_price(gp),
    )
    ax.set_xlim(*extent[:2])
    ax.set_ylim(*extent[2:])
    ax.set_xlabel("x₀")
    ax.set_ylabel("x₁")
    ax.set_title(f"{'mean' if what == 'mean' else 'standard deviation'}, M = {gp.size}", fontsize="medium")
    if colorbar:
        ax.figure.colorbar(image, ax=ax)
    return ax


def calibration(y: Any, predicted: Prediction, *, ax: Axes | None = None) -> Axes:
    """The fraction of ``y`` inside the central intervals of ``predicted`` against their probability.

    On the diagonal the model is calibrated; below it, too sure of itself. ``predicted`` is of
    observations: ``gp.predict(X, observation=True)``.
    """
    ax = ax or plt.gca()
    curve = calibration_curve(np.asarray(y, dtype=np.float64), predicted, np.linspace(0.01, 0.99, 50))
    ax.plot([0, 1], [0, 1], color=_DATA, lw=1, ls="--", label="calibrated")
    ax.plot(curve.levels, curve.coverage, color=_MODEL, lw=2, label=f"mean error {curve.error:.3f}")
    ax.fill_between(curve.levels, curve.levels, curve.coverage, color=_MODEL, alpha=0.15, lw=0)
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="probability of the interval", ylabel="coverage")
    ax.set_aspect("equal")
    ax.legend(loc="upper left", fontsize="small")
    return ax


class live:
    """A picture that follows a model while it learns, in a notebook or a window.

    ``draw`` is called with the axes at each update; by default it is ``posterior`` of ``model``.

    >>> gp = ample.ContinualGP(standardize=True)
    >>> view = ample.plot.live(gp)
    >>> for start in (0.0, 2.0, 4.0):
    ...     X = np.linspace(start, start + 2, 30)[:, None]
    ...     report = gp.observe(X, np.sin(X[:, 0]))
    ...     view.update()
    >>> view.close()
    """

    figure: Figure
    ax: Axes

    def __init__(
        self, model: Any = None, draw: Callable[[Axes], object] | None = None, **figure_options: Any
    ) -> None:
        if (model is None) == (draw is None):
            raise ValueError("live: give either a model or a function that draws")
        self._draw = draw or (lambda ax: posterior(model, ax=ax))
        self.figure, self.ax = plt.subplots(**figure_options)
        self._handle: Any = None

    def update(self) -> None:
        """Draws anew."""
        for other in self.figure.axes:
            if other is not self.ax:
                other.remove()  # a second axis or a colour bar of the last drawing
        self.ax.clear()
        self._draw(self.ax)
        if _in_notebook():
            from IPython.display import display

            if self._handle is None:
                self._handle = display(self.figure, display_id=True)
            else:
                self._handle.update(self.figure)
        else:
            self.figure.canvas.draw_idle()
            self.figure.canvas.flush_events()

    def close(self) -> None:
        """Ends the updates; in a notebook the last picture stays, once."""
        plt.close(self.figure)


def _in_notebook() -> bool:
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    return type(get_ipython()).__name__ == "ZMQInteractiveShell"
