"""Continual Gaussian-process regression that sizes itself.

>>> import numpy as np, ample
>>> rng = np.random.default_rng(0)
>>> gp = ample.ContinualGP(ample.Matern32(), standardize=True)
>>> for _ in range(3):
...     X = rng.uniform(-3, 3, size=(100, 2))
...     report = gp.observe(X, np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(100))
>>> report.rows_seen, report.inducing == gp.size
(300, True)
>>> mean, variance = gp.predict(np.zeros((1, 2)))

``ContinualGPRegressor`` is the same model as a scikit-learn estimator, ``OnlineGPRegressor`` learns
one observation at a time as River's models do, ``ample.dask`` and ``ample.spark`` learn on clusters, and
``ample.plot`` draws with Matplotlib; each needs its library only when it is used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from . import _pickle as _pickle  # registers how models are pickled
from ._ample import (
    ArcCosine,
    BatchReport,
    BoundGradient,
    Calibration,
    Compression,
    ConditionalVariance,
    Constant,
    ContinualGP,
    EvidenceGradient,
    ExactEvidence,
    ExactGP,
    FixedGradient,
    FixedGreedy,
    Forgetting,
    Greedy,
    JointPrediction,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    MergeReport,
    MinimizeSummary,
    ModelFileError,
    TargetStatistics,
    NumericalError,
    Oips,
    OnlineBound,
    Parameter,
    Periodic,
    Polynomial,
    Positive,
    Posterior,
    Prediction,
    PredictionGradient,
    RationalQuadratic,
    Scaling,
    Selection,
    SelectionMethod,
    SelectionProblem,
    SquaredExponential,
    State,
    Vips,
    calibration_curve,
    coverage,
    empty_like,
    from_bytes,
    interval_width,
    load,
    load_notes,
    mae,
    nlpd,
    normal_cdf,
    normal_quantile,
    optimum,
    out_of_the_box,
    r2,
    relative_to_exact,
    rmse,
    set_threads,
    threads,
    version,
)
from ._merge import merge
from ._stopping import GreedyUntil
from ._warnings import AmpleWarning

__version__ = version()

if TYPE_CHECKING:
    from . import dask, plot, spark
    from ._river import OnlineGPRegressor
    from ._sklearn import ContinualGPRegressor

# Loaded on first use: the libraries that these need are optional and slow to import.
_LAZY = {
    "ContinualGPRegressor": ("ample._sklearn", "ContinualGPRegressor"),
    "OnlineGPRegressor": ("ample._river", "OnlineGPRegressor"),
    "dask": ("ample.dask", None),
    "plot": ("ample.plot", None),
    "spark": ("ample.spark", None),
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'ample' has no attribute {name!r}")
    module, attribute = _LAZY[name]
    loaded = importlib.import_module(module)
    value = loaded if attribute is None else getattr(loaded, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})


__all__ = [
    "AmpleWarning", "ArcCosine", "BatchReport", "BoundGradient", "Calibration",
    "Compression", "ConditionalVariance", "Constant", "ContinualGP", "ContinualGPRegressor", "EvidenceGradient",
    "ExactEvidence", "ExactGP", "FixedGradient", "FixedGreedy", "Forgetting", "Greedy",
    "GreedyUntil", "JointPrediction", "Kernel", "Linear", "Matern12", "Matern32", "Matern52",
    "MergeReport", "MinimizeSummary",
    "ModelFileError", "NumericalError", "Oips", "OnlineBound", "OnlineGPRegressor", "Parameter",
    "Periodic", "Polynomial", "Positive", "Posterior", "Prediction", "PredictionGradient",
    "RationalQuadratic", "Scaling", "Selection", "SelectionMethod", "SelectionProblem",
    "SquaredExponential", "State", "TargetStatistics", "Vips", "__version__", "calibration_curve",
    "coverage", "empty_like", "from_bytes", "interval_width", "load", "load_notes", "mae", "merge", "nlpd",
    "normal_cdf", "normal_quantile", "optimum", "out_of_the_box", "plot", "r2", "relative_to_exact", "rmse", "set_threads",
    "threads", "version",
]
