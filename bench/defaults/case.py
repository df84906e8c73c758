"""A table split and ordered, and the scores of a program on it: the same for every program."""

import numpy as np
from tables import load

ORDERS = ("file", "shuffled", "sorted")
BATCH = 500
HELD_OUT = 0.1
TENTHS = round(1 / HELD_OUT)
FEW = 2000  # rows of a table; a tenth of fewer is too little to tell a coverage by


class Case:
    """`X`, `y` to learn from, in their order, and `X_test`, `y_test`, which do not depend on the order. The
    scores are those of the first tenth held out."""

    def __init__(self, name, order, tenth=0):
        X, y = load(name)
        generator = np.random.default_rng(7)
        held_out = round(HELD_OUT * len(X))
        rows = np.roll(generator.permutation(len(X)), -tenth * held_out)
        test, train = np.sort(rows[:held_out]), rows[held_out:]
        self.is_small = len(X) < FEW
        if order == "file":
            train = np.sort(train)
        elif order == "sorted":
            train = np.sort(train)
            train = train[np.argsort(X[train, 0], kind="stable")]
        self.X, self.y = np.asfortranarray(X[train]), y[train]
        self.X_test, self.y_test = np.asfortranarray(X[test]), y[test]

    def batches(self):
        for first in range(0, len(self.X), BATCH):
            yield self.X[first : first + BATCH], self.y[first : first + BATCH]


class Scaler:
    """Inputs and targets to mean 0 and deviation 1 of the rows given; constant columns are only centred."""

    def __init__(self, X, y):
        self._mean, self._deviation = X.mean(axis=0), X.std(axis=0)
        self._deviation[self._deviation < 1e-12 * (1 + abs(self._mean))] = 1.0
        self._offset, self._unit = y.mean(), y.std()

    def inputs(self, X):
        return (X - self._mean) / self._deviation

    def targets(self, y):
        return (y - self._offset) / self._unit

    def back(self, mean, variance):
        return self._offset + self._unit * mean, self._unit**2 * variance


def scores(y, mean, variance):
    """In units of the deviation of y. The variance is that of observations."""
    unit = y.std()
    error, variance = (y - mean) / unit, variance / unit**2
    return {
        "rmse": float(np.sqrt(np.mean(error**2))),
        "nlpd": float(0.5 * np.mean(np.log(2 * np.pi * variance) + error**2 / variance)),
        "coverage": float(np.mean(np.abs(error) <= 1.959964 * np.sqrt(variance))),
    }
