"""Other libraries compute the same: GPflow, whose values are recorded, and scikit-learn.

gpflow_reference.json was written by gpflow_agreement.py in an environment with GPflow. Where
AMPLE_GPFLOW_PYTHON names the interpreter of such an environment, it is made and compared anew.
"""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from gpflow_agreement import CASES, JITTER, NOISE, data
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process import kernels as sk

import ample

RECORDED = Path(__file__).with_name("gpflow_reference.json")


def close(got, expected, tolerance):
    """Relative to the largest entry, as the components of a gradient share their rounding."""
    got, expected = np.asarray(got), np.asarray(expected)
    error = np.max(np.abs(got - expected)) / max(1.0, np.max(np.abs(expected)))
    assert error <= tolerance, f"relative error {error:.1e}"
    return error


def check_all(reference):
    assert reference["cases"].keys() == CASES.keys()
    X, y, Z, X_new = data()
    worst = {"value": 0.0, "gradient": 0.0, "prediction": 0.0}

    def compare(what, got, expected, tolerance):
        worst[what] = max(worst[what], close(got, expected, tolerance))

    for name, text in CASES.items():
        kernel = ample.Kernel(text)
        expected = reference["cases"][name]["sgpr"]
        bound = ample.OnlineBound(ample.State.empty(kernel, NOISE, 2), X, y)
        assert bound.factorize(kernel, NOISE, Z, jitter=JITTER)
        gradient = bound.gradient()
        compare("value", bound.value, expected["value"], 1e-8)
        compare("gradient", [*gradient.theta, gradient.noise_variance], expected["gradient"], 1e-6)
        assert bound.factorize(kernel, NOISE, Z, jitter=JITTER)
        mean, variance = ample.Posterior(bound.absorb()).predict(X_new)
        compare("prediction", mean, expected["mean"], 1e-8)
        compare("prediction", variance, expected["variance"], 1e-8)

        expected = reference["cases"][name]["gpr"]
        evidence = ample.ExactEvidence(X, y)
        assert evidence.factorize(kernel, NOISE)
        compare("value", evidence.value, expected["value"], 1e-8)
        gradient = evidence.gradient()
        compare("gradient", [*gradient.theta, gradient.noise_variance], expected["gradient"], 1e-6)
        exact = ample.ExactGP(kernel, NOISE)
        exact.condition(X, y)
        compare("prediction", exact.predict(X_new).mean, expected["mean"], 1e-8)
        compare("prediction", exact.predict(X_new).variance, expected["variance"], 1e-8)
    print({what: f"{error:.1e}" for what, error in worst.items()})


def test_agrees_with_recorded_values_of_gpflow():
    check_all(json.loads(RECORDED.read_text()))


def test_the_comparison_can_fail():
    reference = json.loads(RECORDED.read_text())
    reference["cases"]["sum"]["sgpr"]["value"] *= 1 + 1e-6
    with pytest.raises(AssertionError, match="relative error"):
        check_all(reference)


def test_agrees_with_gpflow_itself(tmp_path):
    python = os.environ.get("AMPLE_GPFLOW_PYTHON")
    if not python:
        pytest.skip("AMPLE_GPFLOW_PYTHON does not name a Python with requirements/python-gpflow.txt")
    subprocess.run([python, RECORDED.with_name("gpflow_agreement.py"), tmp_path / "new.json"], check=True)
    check_all(json.loads((tmp_path / "new.json").read_text()))


# By name: the same kernel in scikit-learn, with variances as constant factors.
SKLEARN = {
    "se": 1.3 * sk.RBF(0.8),
    "matern32": 1.3 * sk.Matern(0.8, nu=1.5),
    "matern52": 1.3 * sk.Matern(0.8, nu=2.5),
    "se ard": 0.9 * sk.RBF([0.7, 1.6]),
    "matern32 ard": 0.9 * sk.Matern([0.7, 1.6], nu=1.5),
    "matern52 ard": 0.9 * sk.Matern([0.7, 1.6], nu=2.5),
    "sum": 0.9 * sk.RBF([0.7, 1.6]) + 0.4 * sk.Matern(2.1, nu=1.5),
    "product": (0.9 * sk.Matern([0.7, 1.6], nu=2.5)) * (1.2 * sk.Matern(2.1, nu=1.5)),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_scikit_learn(name):
    X, y, _, X_new = data()
    kernel = ample.Kernel(CASES[name])
    # The noise as a kernel of its own, so that scikit-learn differentiates by it too.
    peer = GaussianProcessRegressor(SKLEARN[name] + sk.WhiteKernel(NOISE), alpha=0, optimizer=None)
    peer.fit(X, y)
    value, gradient = peer.log_marginal_likelihood(peer.kernel_.theta, eval_gradient=True)
    evidence = ample.ExactEvidence(X, y)
    assert evidence.factorize(kernel, NOISE)
    close(evidence.value, value, 1e-8)
    ours = evidence.gradient()
    # Theirs is by logarithms: θ dF/dθ.
    values = np.array([p.value for p in kernel.parameters])
    close([*(ours.theta * values), ours.noise_variance * NOISE], gradient, 1e-6)

    exact = ample.ExactGP(kernel, NOISE)
    exact.condition(X, y)
    mean, std = peer.predict(X_new, return_std=True)
    close(exact.predict(X_new).mean, mean, 1e-8)
    close(exact.predict(X_new, observation=True).variance, std**2, 1e-8)
