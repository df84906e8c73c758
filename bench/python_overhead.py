"""What Python costs: a prediction of one row, and partial_fit beside the C++ time within it.

    python bench/python_overhead.py

The targets: under 30 µs a call of predict at M = 100, D = 8; under 5 % of the C++ time for
partial_fit on batches of 100 rows.
"""

import time

import numpy as np

import ample

D, M, CALLS, BATCHES, ROWS = 8, 100, 100_000, 40, 100


def data(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    return X, np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)


def predict_one_row():
    gp = ample.ContinualGP(selection=ample.FixedGreedy(M), max_evaluations=10)
    gp.observe(*data(300, 0))
    assert gp.size == M
    x = np.zeros((1, D))
    start = time.perf_counter()
    for _ in range(CALLS):
        gp.predict(x)
    return (time.perf_counter() - start) / CALLS


def partial_fit():
    """Seconds in the estimator and, of these, in C++: the library's own clock of select and fit."""
    model = ample.ContinualGPRegressor()
    X, y = data(BATCHES * ROWS, 1)
    model.partial_fit(X[:ROWS], y[:ROWS])
    start = time.perf_counter()
    for i in range(ROWS, len(X), ROWS):
        model.partial_fit(X[i : i + ROWS], y[i : i + ROWS])
    total = time.perf_counter() - start
    return total, sum(r.seconds_select + r.seconds_fit for r in model.history_[1:])


if __name__ == "__main__":
    print(f"predict, one row, M = {M}, D = {D}: {1e6 * predict_one_row():.1f} µs a call")
    total, inside = partial_fit()
    print(
        f"partial_fit, {ROWS} rows: {1e3 * total / (BATCHES - 1):.2f} ms a batch, "
        f"{100 * (total - inside) / inside:.2f} % more than C++"
    )
