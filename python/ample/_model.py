"""What the two estimators share: from their parameters to a model."""

from typing import Any

from ._ample import ContinualGP, Kernel, SquaredExponential, Vips


def new_model(parameters: Any, dimension: int, seed: int) -> ContinualGP:
    kernel = parameters.kernel
    if kernel is None:
        # On standardised inputs, points in D dimensions are about √D apart.
        kernel = SquaredExponential(lengthscale=dimension**0.5)
    elif isinstance(kernel, str):
        kernel = Kernel(kernel)
    selection = parameters.selection
    return ContinualGP(
        kernel,
        noise_variance=parameters.noise_variance,
        selection=Vips(parameters.delta) if selection is None else selection,
        standardize=parameters.standardize,
        search_start=parameters.kernel is None,
        refit_every=parameters.refit_every,
        seed=seed,
    )
