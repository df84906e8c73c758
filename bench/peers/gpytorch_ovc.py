"""GPyTorch: a variational GP fitted to the first batch, then online variational conditioning (OVC).

OVC (Maddox, Stanton & Wilson 2021) is what get_fantasy_model does. It keeps the hyperparameters of the
first batch, and its model grows by every row that it is given.
"""

import sys
import time

import gpytorch
import numpy as np
import torch
from peer import main, progress
from stream import scores

torch.set_default_dtype(torch.float64)


class VariationalGP(gpytorch.models.ApproximateGP):
    def __init__(self, Z, likelihood):
        distribution = gpytorch.variational.CholeskyVariationalDistribution(len(Z))
        super().__init__(gpytorch.variational.VariationalStrategy(self, Z, distribution))
        self.mean_module = gpytorch.means.ZeroMean()
        rbf = gpytorch.kernels.RBFKernel()
        bounds = gpytorch.constraints.Interval(1e-6, 2000.0)
        self.covar_module = gpytorch.kernels.ScaleKernel(rbf, outputscale_constraint=bounds)
        rbf.lengthscale = 1.0
        self.covar_module.outputscale = 1.0
        self.likelihood = likelihood

    def forward(self, X):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(X), self.covar_module(X))


def inducing_points(X, size):
    """Rows of the batch; where it has too few, also rows of it moved by a tenth of a deviation."""
    rng = np.random.default_rng(0)
    extra = max(0, size - len(X))
    moved = X[rng.integers(len(X), size=extra)] + 0.1 * rng.standard_normal((extra, X.shape[1]))
    return torch.from_numpy(np.vstack([X[rng.permutation(len(X))[:size]], moved]))


STEPS = 1000
STEPS_AT_ONCE = 20


def fit(model, likelihood, X, y, deadline):
    """L-BFGS over all parameters, with the tolerances of the others. Returns the bound."""
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(y))
    optimizer = torch.optim.LBFGS(
        model.parameters(),
        max_iter=STEPS_AT_ONCE,
        history_size=10,
        tolerance_grad=1e-5,
        tolerance_change=2.2e-9,
        line_search_fn="strong_wolfe",
    )

    def closure():
        optimizer.zero_grad()
        loss = -bound(model(X), y)
        loss.backward()
        return loss

    model.train()
    steps = 0
    while steps < STEPS and time.perf_counter() < deadline:
        optimizer.step(closure)
        before, steps = steps, optimizer.state_dict()["state"][0]["n_iter"]
        if steps < before + STEPS_AT_ONCE:
            break  # converged
    with torch.no_grad():
        return len(y) * float(bound(model(X), y))


def learn(stream, options):
    batches = [(torch.from_numpy(X), torch.from_numpy(y)) for X, y in stream.batches]
    likelihood = gpytorch.likelihoods.GaussianLikelihood(noise_constraint=gpytorch.constraints.GreaterThan(1e-6))
    likelihood.noise = 0.1
    start = time.perf_counter()
    model = VariationalGP(inducing_points(stream.batches[0][0], options.size), likelihood)
    elbo = fit(model, likelihood, *batches[0], start + options.limit / 2)
    seconds_fit = time.perf_counter() - start
    progress(1, len(batches))
    model.eval()
    likelihood.eval()
    done = 1
    with torch.no_grad():
        for X, y in batches[1:]:
            if time.perf_counter() - start > options.limit:
                break
            model = model.get_fantasy_model(X, y)
            done += 1
            progress(done, len(batches))
        seconds = time.perf_counter() - start
        result = {
            "seconds": seconds,
            "seconds_fit": seconds_fit,
            "inducing": options.size,
            "elbo_of_first_batch": elbo,
            "batches_done": done,
            "batches": len(batches),
        }
        if done == len(batches):
            X, y = stream.test
            f = model(torch.from_numpy(X))
            result |= scores(y, f.mean.numpy(), f.variance.numpy() + float(likelihood.noise))
    return result


if __name__ == "__main__":
    sys.exit(main(["gpytorch", "torch", "numpy"], learn))
