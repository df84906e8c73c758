"""A field in three dimensions, of any number of rows, made where they are needed."""

import numpy as np

DIMENSION = 3
NOISE = 0.2
_FEATURES = 100
_LENGTHSCALE = 0.5

# A draw from a Gaussian process with a squared-exponential kernel, by random Fourier features.
_draw = np.random.default_rng(2026)
_FREQUENCIES = _draw.standard_normal((DIMENSION, _FEATURES)) / _LENGTHSCALE
_PHASES = _draw.uniform(0, 2 * np.pi, _FEATURES)
_WEIGHTS = _draw.standard_normal(_FEATURES) * np.sqrt(2 / _FEATURES)


def truth(X):
    return np.cos(X @ _FREQUENCIES + _PHASES) @ _WEIGHTS


def rows(count, *seed):
    """X [count, 3] in a cube of side 2, and y; the same for the same seed."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(count, DIMENSION))
    y = NOISE * rng.standard_normal(count)
    for start in range(0, count, 10_000):  # the features of all rows at once would be large
        y[start : start + 10_000] += truth(X[start : start + 10_000])
    return X, y


def partition(number, count):
    """The rows of one partition of the table."""
    return rows(count, 1, number)


def test_rows():
    """What no model has seen."""
    return rows(10_000, 2)
