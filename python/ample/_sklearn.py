"""The model as a scikit-learn estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError(
        "ample.ContinualGPRegressor needs scikit-learn 1.6 or later: pip install 'ample[sklearn]'"
    ) from error

from ._ample import BatchReport, ContinualGP, Kernel, Positive
from ._model import new_model

if TYPE_CHECKING:
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


class ContinualGPRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Continual Gaussian-process regression that sizes itself, for scikit-learn.

    Parameters
    ----------
    kernel : Kernel, str or None
        Where the kernel starts; None is an isotropic squared exponential of lengthscale √D, or of a
        part of that if it makes the first batch more probable.
    delta : float
        The accuracy of VIPS: smaller is closer to the exact model, with more inducing points.
    selection : selection method or None
        Another way to choose inducing points, in place of VIPS with ``delta``.
    noise_variance : float or Positive
        Where the noise variance starts, in scaled units.
    standardize : bool or Scaling
        Whether inputs and targets are scaled to mean 0 and deviation 1 of the first batch.
    batch_size : int
        The most rows that are learnt from at once.
    refit_every : int
        Batches from one fit of the hyperparameters to the next; 0 for never.
    random_state : int, RandomState or None
        For selection methods that draw random numbers.

    Attributes
    ----------
    gp_ : ContinualGP
        The model.
    history_ : list of BatchReport
        What each batch did.
    n_features_in_ : int
        The number of inputs.
    feature_names_in_ : array of str
        Their names, if the data of the first batch had names.

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

    def __init__(
        self,
        kernel: Kernel | str | None = None,
        *,
        delta: float = 0.035,
        selection: Any = None,
        noise_variance: float | Positive = 0.1,
        standardize: Any = True,
        batch_size: int = 500,
        refit_every: int = 1,
        random_state: Any = 0,
    ) -> None:
        self.kernel = kernel
        self.delta = delta
        self.selection = selection
        self.noise_variance = noise_variance
        self.standardize = standardize
        self.batch_size = batch_size
        self.refit_every = refit_every
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> ContinualGPRegressor:
        """Learns from X [N, D] and y [N] in batches of ``batch_size`` rows, forgetting the past."""
        return self._learn(X, y, first=True)

    def partial_fit(self, X: Any, y: Any) -> ContinualGPRegressor:
        """Learns from further data, in batches of at most ``batch_size`` rows."""
        return self._learn(X, y, first=not hasattr(self, "gp_"))

    def _learn(self, X: Any, y: Any, first: bool) -> ContinualGPRegressor:
        if self.batch_size < 1:
            raise ValueError(f"batch_size is {self.batch_size}, but must be at least 1")
        if not (self._is_ready_for(X) and _is_plain(y, 1) and len(X) == len(y) and not first):
            # Column-major: a batch of rows is then a view that the library reads in place.
            X, y = validate_data(
                self, X, y, reset=first, y_numeric=True, dtype=np.float64, order="F"
            )
            y = np.ascontiguousarray(y, dtype=np.float64)
        if first:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
            gp = new_model(self, X.shape[1], seed)
        else:
            gp = self.gp_
        history: list[BatchReport] = [] if first else self.history_
        for start in range(0, len(X), self.batch_size):
            rows = slice(start, start + self.batch_size)
            history.append(gp.observe(X[rows], y[rows]))
        self.gp_, self.history_ = gp, history
        return self

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
        """The mean at X, with ``return_std`` or ``return_cov`` as a pair with the deviation [N] or
        covariance [N, N]: of the function, or with ``observation`` of new observations of it."""
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
