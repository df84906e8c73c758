"""What Python costs: a prediction of one row, and partial_fit beside the C++ time within it.

    python bench/python_overhead.py

The targets: under 30 µs a call of predict at M = 100, D = 8; under 5 % of the C++ time for
partial_fit on batches of 100 rows.
"""

import time

import numpy as np

import ample

D, M, CALLS, BLOCK, BATCHES, ROWS = 8, 100, 100_000, 100, 100, 100


def data(n, dimension, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, dimension))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)


def predict_one_row():
    gp = ample.ContinualGP(selection=ample.FixedGreedy(M), max_evaluations=10)
    gp.observe(*data(300, D, 0))
    assert gp.size == M
    x = np.zeros((1, D))
    blocks = []
    for _ in range(CALLS // BLOCK):
        start = time.perf_counter()
        for _ in range(BLOCK):
            gp.predict(x)
        blocks.append((time.perf_counter() - start) / BLOCK)
    return blocks


def partial_fit():
    """Seconds a batch in the estimator and, of these, in C++: the library's own clock of select and fit."""
    model = ample.ContinualGPRegressor()
    X, y = data(BATCHES * ROWS, 2, 1)
    model.partial_fit(X[:ROWS], y[:ROWS])
    total = []
    for i in range(ROWS, len(X), ROWS):
        start = time.perf_counter()
        model.partial_fit(X[i : i + ROWS], y[i : i + ROWS])
        total.append(time.perf_counter() - start)
    inside = [r.seconds_select + r.seconds_fit for r in model.history_[1:]]
    return np.array(total), np.array(inside)


if __name__ == "__main__":
    # Median and mean: on a busy machine other programs' turns are in the mean.
    blocks = 1e6 * np.array(predict_one_row())
    print(
        f"predict, one row, M = {M}, D = {D}, {CALLS} calls: "
        f"median {np.median(blocks):.1f} µs, mean {np.mean(blocks):.1f} µs"
    )
    total, inside = partial_fit()
    overhead = (total - inside) / inside
    print(
        f"partial_fit, {ROWS} rows: median {1e3 * np.median(total):.2f} ms a batch, "
        f"median {100 * np.median(overhead):.2f} % more than C++, "
        f"{100 * (total.sum() - inside.sum()) / inside.sum():.2f} % in all"
    )
