"""Writes gpflow_reference.json: GPflow's values for the cases of test_agreement.py.

Runs in an environment of its own, with requirements/python-gpflow.txt:

    python tests/python/gpflow_agreement.py [OUTPUT]

GPflow adds its jitter to K_uu as it is; the same number is given to our bound.
"""

import json
import sys
from pathlib import Path

import numpy as np

JITTER = 1e-6
NOISE = 0.07

# By name: our kernel as text. GPflow's counterpart is in gpflow_kernel().
CASES = {
    "se": "se(variance=1.3, lengthscale=0.8)",
    "matern32": "matern32(variance=1.3, lengthscale=0.8)",
    "matern52": "matern52(variance=1.3, lengthscale=0.8)",
    "se ard": "se(variance=0.9, lengthscale=[0.7, 1.6])",
    "matern32 ard": "matern32(variance=0.9, lengthscale=[0.7, 1.6])",
    "matern52 ard": "matern52(variance=0.9, lengthscale=[0.7, 1.6])",
    "sum": "se(variance=0.9, lengthscale=[0.7, 1.6]) + matern32(variance=0.4, lengthscale=2.1)",
    "product": "matern52(variance=0.9, lengthscale=[0.7, 1.6]) * matern32(variance=1.2, lengthscale=2.1)",
}


def data():
    rng = np.random.default_rng(11)
    X = rng.uniform(-2, 2, size=(60, 2))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.2 * rng.standard_normal(60)
    return X, y, X[::5].copy(), rng.uniform(-3, 3, size=(25, 2))


def gpflow_kernel(name):
    from gpflow.kernels import Matern32, Matern52, SquaredExponential

    leaf = {"se": SquaredExponential, "matern32": Matern32, "matern52": Matern52}
    if name in leaf:
        return leaf[name](variance=1.3, lengthscales=0.8)
    if name == "sum":
        return SquaredExponential(0.9, [0.7, 1.6]) + Matern32(0.4, 2.1)
    if name == "product":
        return Matern52(0.9, [0.7, 1.6]) * Matern32(1.2, 2.1)
    return leaf[name.split()[0]](variance=0.9, lengthscales=[0.7, 1.6])


def reference(model, objective, X_new):
    import tensorflow as tf

    parts = getattr(model.kernel, "kernels", [model.kernel])
    parameters = [p for k in parts for p in (k.variance, k.lengthscales)]
    parameters.append(model.likelihood.variance)
    with tf.GradientTape() as tape:
        value = objective()
    # GPflow differentiates by its unconstrained variables; back to natural units.
    gradient = []
    raw = tape.gradient(value, [p.unconstrained_variable for p in parameters])
    for p, g in zip(parameters, raw):
        u = tf.identity(p.unconstrained_variable)
        with tf.GradientTape() as inner:
            inner.watch(u)
            total = tf.reduce_sum(p.transform.forward(u))
        gradient += np.ravel(g.numpy() / inner.gradient(total, u).numpy()).tolist()
    mean, variance = model.predict_f(X_new)
    return {
        "value": float(value),
        "gradient": gradient,  # kernel parameters in our order, then the noise variance
        "mean": mean.numpy()[:, 0].tolist(),
        "variance": variance.numpy()[:, 0].tolist(),
    }


def main(output):
    import gpflow

    gpflow.config.set_default_float(np.float64)
    gpflow.config.set_default_jitter(JITTER)
    X, y, Z, X_new = data()
    out = {"gpflow": gpflow.__version__, "cases": {}}
    for name in CASES:
        pair = (X, y[:, None])
        sgpr = gpflow.models.SGPR(pair, gpflow_kernel(name), inducing_variable=Z, noise_variance=NOISE)
        gpr = gpflow.models.GPR(pair, gpflow_kernel(name), noise_variance=NOISE)
        out["cases"][name] = {
            "sgpr": reference(sgpr, sgpr.elbo, X_new),
            "gpr": reference(gpr, gpr.log_marginal_likelihood, X_new),
        }
    Path(output).write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("gpflow_reference.json"))
