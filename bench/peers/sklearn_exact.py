"""scikit-learn's exact GP, refitted to all rows so far after every batch, from where it was.

Its cost grows with the cube of the rows: it stops at the time limit and says how far it got.
"""

import sys
import time

import numpy as np
from peer import main, progress
from scipy.optimize import minimize
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from stream import scores


class TimeIsUp(Exception):
    pass


def optimizer(deadline):
    """scikit-learn's own choice, L-BFGS-B, with an end."""

    def run(objective, theta, bounds):
        def timed(x):
            if time.perf_counter() > deadline:
                raise TimeIsUp
            return objective(x)

        result = minimize(timed, theta, method="L-BFGS-B", jac=True, bounds=bounds)
        return result.x, result.fun

    return run


def learn(stream, options):
    kernel = ConstantKernel(1.0, (1e-6, 2000.0)) * RBF(1.0, (1e-6, 1e8)) + WhiteKernel(0.1, (1e-6, 1e8))
    seen_X, seen_y, done, gp = [], [], 0, None
    start = time.perf_counter()
    try:
        for X, y in stream.batches:
            seen_X.append(X)
            seen_y.append(y)
            next_gp = GaussianProcessRegressor(kernel, optimizer=optimizer(start + options.limit))
            gp = next_gp.fit(np.vstack(seen_X), np.concatenate(seen_y))
            kernel = gp.kernel_
            done += 1
            progress(done, len(stream.batches))
    except TimeIsUp:
        pass
    result = {
        "seconds": time.perf_counter() - start,
        "inducing": sum(len(y) for y in seen_y[:done]),
        "batches_done": done,
        "batches": len(stream.batches),
    }
    if done == len(stream.batches):
        X, y = stream.test
        mean, deviation = gp.predict(X, return_std=True)  # of observations: the kernel has the noise
        result |= scores(y, mean, deviation**2) | {"elbo": float(gp.log_marginal_likelihood_value_)}
    return result


if __name__ == "__main__":
    sys.exit(main(["scikit-learn", "scipy", "numpy"], learn))
