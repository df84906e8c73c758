"""Predictions of many rows: a sparse GP of M points in each library, means alone and with variances.

    scripts/bench --peers runs it; python bench/peers/predictions.py --library gpflow for one

Rows are given in blocks, so that no library has to hold them all; the first block, in which functions
are compiled and factors computed, does not count. Ample is the program bench/predictions.cc.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SIZES = [100, 300, 1000]
DIMENSION, BLOCK, SECONDS = 8, 10_000, 4.0


def training(M):
    """The model's points are the first M rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2 * M, DIMENSION))
    return X, np.sin(X.sum(axis=1)) + 0.1 * rng.standard_normal(2 * M)


def gpflow_model(M):
    import gpflow
    import tensorflow as tf

    X, y = training(M)
    kernel = gpflow.kernels.SquaredExponential(lengthscales=np.sqrt(DIMENSION))
    model = gpflow.models.SGPR((X, y[:, None]), kernel, X[:M].copy(), noise_variance=0.1)
    posterior = model.posterior(gpflow.posteriors.PrecomputeCacheType.TENSOR)
    # GPflow has no means alone: what is not used of a compiled function is not computed.
    mean = tf.function(lambda X: posterior.predict_f(X)[0])
    both = tf.function(lambda X: posterior.predict_f(X))
    return (lambda X: mean(X).numpy()), (lambda X: [part.numpy() for part in both(X)])


def gpytorch_model(M):
    import gpytorch
    import torch
    from gpytorch_ovc import VariationalGP

    X, _ = training(M)
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = VariationalGP(torch.from_numpy(X[:M].copy()), likelihood)
    model.covar_module.base_kernel.lengthscale = float(np.sqrt(DIMENSION))
    model.eval()

    def both(X):
        with torch.no_grad(), gpytorch.settings.fast_pred_var():
            p = model(torch.from_numpy(X))
            return p.mean.numpy(), p.variance.numpy()

    def mean(X):
        with torch.no_grad(), gpytorch.settings.skip_posterior_variances():
            return model(torch.from_numpy(X)).mean.numpy()

    return mean, both


def sklearn_model(M):
    """The exact GP of M rows: one triangular solve for a variance, where a sparse model has two."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    X, y = training(M)
    kernel = RBF(np.sqrt(DIMENSION)) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, optimizer=None).fit(X[:M], y[:M])
    return model.predict, lambda X: model.predict(X, return_std=True)


LIBRARIES = {"gpflow": gpflow_model, "gpytorch": gpytorch_model, "scikit-learn": sklearn_model}


def rows_per_second(predict):
    X = np.random.default_rng(1).standard_normal((BLOCK, DIMENSION))
    predict(X)
    best, start = np.inf, time.perf_counter()
    while time.perf_counter() < start + SECONDS:
        before = time.perf_counter()
        predict(X)
        best = min(best, time.perf_counter() - before)
    return BLOCK / best


def measure(library):
    sizes = []
    for M in SIZES:
        mean, both = LIBRARIES[library](M)
        sizes.append({"inducing": M, "rows_per_second": rows_per_second(both), "rows_per_second_mean": rows_per_second(mean)})
    return sizes


def own(program):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "own.json"
        subprocess.run([program, "--rows", "200000", "--json", out], check=True, stdout=subprocess.DEVNULL)
        return [{"inducing": s["inducing"], "rows_per_second": s["rows"] / s["seconds"],
                 "rows_per_second_mean": s["rows"] / s["seconds_mean"]} for s in json.loads(out.read_text())["sizes"]]


def measure_all(program, run=subprocess.run):
    """Each library in a process of its own, after Ample: {"ample": …, "gpflow": …}; those that fail
    have their reason in place of figures."""
    found = {"ample": own(program)}
    for library in LIBRARIES:
        done = run([sys.executable, __file__, "--library", library], capture_output=True, text=True)
        lines = done.stderr.strip().splitlines()
        found[library] = json.loads(done.stdout) if done.returncode == 0 else {"missing": lines[-1] if lines else "it failed"}
    return found


def print_table(found):
    print(f"\nPredictions, rows a second, D = {DIMENSION}\n\n{'':<14}{'M':>6}{'with variance':>16}{'/Ample':>8}{'means alone':>14}{'/Ample':>8}")
    for library, sizes in found.items():
        if "missing" in sizes:
            print(f"{library:<14} missing: {sizes['missing']}")
            continue
        for ample, size in zip(found["ample"], sizes):
            print(f"{library:<14}{size['inducing']:>6}{size['rows_per_second']:>16,.0f}"
                  f"{ample['rows_per_second'] / size['rows_per_second']:>8.1f}{size['rows_per_second_mean']:>14,.0f}"
                  f"{ample['rows_per_second_mean'] / size['rows_per_second_mean']:>8.1f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", choices=LIBRARIES, required=True)
    print(json.dumps(measure(parser.parse_args().library)))
