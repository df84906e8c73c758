"""What Python costs: a prediction of one row, and partial_fit beside the C++ time within it.

    python bench/python_overhead.py

The targets: under 30 µs a call of predict at M = 100, D = 8; under 5 % of the C++ time for
partial_fit on batches of 100 rows. The share depends on how much work a batch is, so it is measured
on an easy stream of 2 inputs, the hardest case for Python, and on one of 8.
"""

import time

import numpy as np

import ample

D, M, CALLS, BLOCK, ROWS = 8, 100, 100_000, 100, 100


def data(n, dimension, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, dimension))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)


def predict_one_row(predict):
    """Seconds a call, for each block of calls."""
    x = np.zeros((1, D))
    blocks = []
    for _ in range(CALLS // BLOCK):
        start = time.perf_counter()
        for _ in range(BLOCK):
            predict(x)
        blocks.append((time.perf_counter() - start) / BLOCK)
    return np.array(blocks)


def partial_fit(dimension, batches):
    """Seconds a batch, and of these the selection and the fit by the library's own clock: what else
    the C++ call does counts as Python's, so the overhead is an upper bound."""
    X, y = data(batches * ROWS, dimension, 1)
    model = ample.ContinualGPRegressor().partial_fit(X[:ROWS], y[:ROWS])
    total = []
    for i in range(ROWS, len(X), ROWS):
        start = time.perf_counter()
        model.partial_fit(X[i : i + ROWS], y[i : i + ROWS])
        total.append(time.perf_counter() - start)
    inside = [r.seconds_select + r.seconds_fit for r in model.history_[1:]]
    return np.array(total), np.array(inside)


if __name__ == "__main__":
    model = ample.ContinualGPRegressor(selection=ample.FixedGreedy(M)).fit(*data(300, D, 0))
    assert model.gp_.size == M
    for name, predict in (("ContinualGP", model.gp_.predict), ("ContinualGPRegressor", model.predict)):
        # Median and mean: on a busy machine other programs' turns are in the mean.
        blocks = 1e6 * predict_one_row(predict)
        print(
            f"{name}.predict, one row, M = {M}, D = {D}, {CALLS} calls: "
            f"median {np.median(blocks):.1f} µs, mean {np.mean(blocks):.1f} µs"
        )
    for dimension, batches in ((2, 200), (8, 20)):
        total, inside = partial_fit(dimension, batches)
        print(
            f"partial_fit, {ROWS} rows, D = {dimension}: median {1e3 * np.median(total):.2f} ms, "
            f"{1e6 * np.median(total - inside):.0f} µs or "
            f"{100 * np.median((total - inside) / inside):.2f} % more than C++"
        )
