"""What the two estimators share: from their parameters to a model."""

from typing import Any

import numpy as np

from ._ample import (
    ContinualGP,
    Kernel,
    SelectionMethod,
    Vips,
    out_of_the_box,
)

# What a model is made with and cannot change afterwards. The seed has a name of its own in each.
_PARAMETERS = (
    "kernel",
    "delta",
    "max_inducing",
    "choose",
    "selection",
    "noise_variance",
    "standardize",
    "refit_every",
    "fixed_hyperparameters",
    "max_evaluations",
    "reservoir",
    "forget",
    "prune",
    "ard",
    "random_state",
    "seed",
)


def model_parameters(estimator: Any) -> dict[str, Any]:
    """The parameters of a model that is made now."""
    return {name: getattr(estimator, name) for name in _PARAMETERS if hasattr(estimator, name)}


def check_unchanged(estimator: Any, made_with: dict[str, Any], remedy: str) -> None:
    """Refuses to go on with parameters that are not those the model was made with."""
    for name, before in made_with.items():
        now = getattr(estimator, name)
        if now is not before and not np.all(now == before):
            raise ValueError(
                f"{name} was {before!r} when the model was made and is {now!r} now, but cannot "
                f"change once the model has learnt: {remedy}"
            )


def is_automatic(kernel: Any) -> bool:
    """Whether a kernel is to be found."""
    return kernel is None or (isinstance(kernel, str) and kernel == "auto")


def new_model(estimator: Any, dimension: int, seed: int) -> ContinualGP:
    kernel, fixed = estimator.kernel, estimator.fixed_hyperparameters
    options: dict[str, Any] = {}
    automatic = is_automatic(kernel)
    as_it_comes = automatic and not fixed
    if automatic:
        kernel = ContinualGP.default_kernel(dimension)
    if as_it_comes:
        options = dict(out_of_the_box())
        del options["selection"], options["standardize"]
    if isinstance(kernel, str):
        kernel = Kernel(kernel)
    for name in ("reservoir", "forget", "prune"):
        if (value := getattr(estimator, name)) is not None:
            options[name] = value
    if estimator.ard:
        if not as_it_comes:
            raise ValueError(
                "ard is True, but is only for a kernel that is found: with a kernel of your own, give it a "
                "lengthscale for each input"
            )
        options["ard"] = True
    if estimator.refit_every < 1:
        raise ValueError(
            f"refit_every is {estimator.refit_every}, but must be at least 1; "
            "fixed_hyperparameters=True does without any fit"
        )
    return ContinualGP(
        kernel,
        noise_variance=estimator.noise_variance,
        selection=_selection(estimator, as_it_comes),
        standardize=estimator.standardize,
        refit_every=0 if fixed else estimator.refit_every,
        max_evaluations=estimator.max_evaluations,
        seed=seed,
        **options,
    )


# The parameters that are settings of VIPS.
_VIPS = ("delta", "max_inducing", "choose")


def _selection(estimator: Any, as_it_comes: bool) -> Any:
    given = {name: getattr(estimator, name) for name in _VIPS if getattr(estimator, name) is not None}
    if estimator.selection is None:
        if not as_it_comes:
            return Vips(**given)
        common: Any = out_of_the_box()["selection"]
        checked = Vips(**given).settings
        # Settings are numbers, and one at its default is left out.
        changed = {name: checked.get(name, 0.0) for name in given}
        return SelectionMethod(common.name, **{**common.settings, **changed})
    for name, value in given.items():
        raise ValueError(
            f"{name} is {value!r}, but is only for VIPS: with selection = "
            f"{estimator.selection!r}, leave it out"
        )
    return estimator.selection
