"""A stream of batches as bench/dump_batches writes it, and the scores of predictions."""

import json
from pathlib import Path

import numpy as np


class Stream:
    """`batches` of (X, y) in their order, all or the `first`, and the test set (X, y) of the whole stream."""

    def __init__(self, folder, first=None):
        folder = Path(folder)
        about = json.loads((folder / "stream.json").read_text())
        self.name = about["name"]

        def read(name):
            rows = np.fromfile(folder / name).reshape(-1, about["columns"])
            return rows[:, :-1].copy(), rows[:, -1].copy()

        X, y = read("train.f64")
        ends = np.cumsum(about["rows"])
        self.batches = [(X[end - n : end], y[end - n : end]) for n, end in zip(about["rows"], ends)][:first]
        self.test = read("test.f64")

    @property
    def rows(self):
        return sum(len(y) for _, y in self.batches)

    @property
    def dimension(self):
        return self.test[0].shape[1]


def scores(y, mean, variance):
    """RMSE and mean negative log density of observations; the variance includes the noise."""
    error = y - mean
    nlpd = 0.5 * np.mean(np.log(2 * np.pi * variance) + error**2 / variance)
    return {"rmse": float(np.sqrt(np.mean(error**2))), "nlpd": float(nlpd)}
