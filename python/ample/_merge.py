"""Models that learnt apart become one."""

from collections.abc import Iterable, Sequence
from typing import Any

from ._ample import ContinualGP, Kernel, MergeReport, Positive, merge_models


def _model_of(given: Any, place: int) -> ContinualGP:
    model = getattr(given, "gp_", None) or getattr(given, "gp", None) or given
    if not isinstance(model, ContinualGP):
        raise TypeError(
            f"merge: model {place} is a {type(given).__name__}, but must be a ContinualGP or an "
            "estimator that has learnt"
        )
    return model


def merge(
    models: Iterable[Any],
    *,
    kernel: Kernel | str | None = None,
    noise_variance: float | Positive | Sequence[float] | None = None,
    fit: bool = False,
    nats: float | None = None,
    max_inducing: int | None = None,
    like: ContinualGP | None = None,
) -> tuple[ContinualGP, MergeReport]:
    """One model of what all of them have learnt, from disjoint rows, and a report of what that cost.

    ``models`` are ``ContinualGP`` objects, or estimators that have one. They must agree in their scaling:
    begin each of them with ``empty_like`` from one pilot. At one theta for all, the union of their
    inducing points loses nothing.

    ``kernel`` and ``noise_variance`` are theta of the merged model, by default that of the model that has
    seen most rows; with ``fit`` they are where a fit to all models starts. The points that are worth
    least then go, for at most ``nats`` (None: a thousandth for each row that joins the largest model), and
    until there are no more than ``max_inducing`` (None: what the selection method of the largest allows).

    The merged model goes on learning, with the options of the largest, or of the model ``like``: of a
    pilot, say, whose hyperparameters the others held.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, size=(1200, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(1200)
    >>> pilot = ample.ContinualGP(ample.Matern52(), standardize=True)
    >>> _ = pilot.observe(X[:200], y[:200])
    >>> shards = [ample.empty_like(pilot, fixed_hyperparameters=True) for _ in range(4)]
    >>> for i, shard in enumerate(shards):
    ...     _ = shard.observe(X[i::4], y[i::4])
    >>> model, report = ample.merge(shards)
    >>> model.rows_seen, report.inducing == model.size, report.pruned_nats <= report.allowed_nats
    (1200, True, True)
    """
    if isinstance(kernel, str):
        kernel = Kernel(kernel)
    return merge_models(
        [_model_of(model, place) for place, model in enumerate(models, 1)],
        kernel=kernel,
        noise_variance=noise_variance,
        fit=fit,
        nats=nats,
        max_inducing=max_inducing,
        like=like,
    )
