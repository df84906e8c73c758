"""The streams of the study: smooth functions that change, or that never end.

Every function is a sample of a Gaussian process of variance 1 and lengthscale 1, by random Fourier
features; the noise has deviation 0.2. The same seed makes the same stream.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

NOISE = 0.2
FEATURES = 500
PERIOD = 25  # batches for which the recurring stream stays with one function
STEP = 0.1  # by which the window of the endless stream moves on with each batch
WINDOW = 10.0


class Smooth:
    """A function of variance 1 and lengthscale 1."""

    def __init__(self, rng, inputs):
        self._W = rng.standard_normal((inputs, FEATURES))
        self._phase = rng.uniform(0.0, 2.0 * np.pi, FEATURES)
        self._weights = rng.standard_normal(FEATURES) * np.sqrt(2.0 / FEATURES)

    def __call__(self, X):
        return np.cos(X @ self._W + self._phase) @ self._weights


@dataclass(frozen=True)
class Stream:
    """``about`` says what changes. The function is that of two which lies at ``angle(batch, batches)`` from the
    first to the second, so its variance stays what it is."""

    about: str
    batches: int
    rows: int  # of a batch
    inputs: int
    angle: Callable = lambda b, batches: 0.0

    def __call__(self, seed):
        """The batches, (X, y) each."""
        rng = np.random.default_rng(seed)
        first, second = Smooth(rng, self.inputs), Smooth(rng, self.inputs)
        for b in range(self.batches):
            X = self._inputs(rng, b)
            angle = self.angle(b, self.batches)
            f = np.cos(angle) * first(X) + np.sin(angle) * second(X)
            yield X, f + NOISE * rng.standard_normal(self.rows)

    def _inputs(self, rng, b):
        return rng.uniform(-2.0, 2.0, (self.rows, self.inputs))


class Endless(Stream):
    def _inputs(self, rng, b):
        return b * STEP + rng.uniform(0.0, WINDOW, (self.rows, self.inputs))


def _jump(b, batches):
    return 0.0 if b < batches // 2 else np.pi / 2


def _turn(b, batches):
    return 2.0 * np.pi * b / batches


def _recurring(b, batches):
    return 0.0 if b // PERIOD % 2 == 0 else np.pi / 2


STREAMS = {
    "stationary": Stream("nothing changes", 200, 50, 2),
    "jump": Stream("another function from batch 101 on", 200, 50, 2, _jump),
    "gradual": Stream("turns slowly into another function, its opposite, and back", 200, 50, 2, _turn),
    "recurring": Stream(f"two functions in turn, {PERIOD} batches each", 200, 50, 2, _recurring),
    "endless": Endless("the range of the input moves on for ever: 10,000 batches, 1,000 lengthscales", 10_000, 10, 1),
}
