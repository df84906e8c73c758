"""Learning and predicting on a Dask cluster.

A pilot learns a sample of all rows and so fixes scaling and hyperparameters. Each partition is then
learnt where it lies, and the models are merged in a tree on the workers. See docs/cluster.md.
"""

from __future__ import annotations

import pickle
import sys
import uuid
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import dask
    import dask.array
    import distributed
except ImportError as error:
    raise ImportError("ample.dask needs Dask with its distributed scheduler: pip install 'ample-gp[dask]'") from error

from . import _cluster
from ._ample import ContinualGP
from ._cluster import FitReport, Merging, Rows, Sample, Shard

__all__ = ["FitReport", "fit", "predict"]

_FIT = "ample.dask.fit"
_PREDICT = "ample.dask.predict"

# Samples that are joined at once; each is small.
_SAMPLES = 16


def fit(
    X: Any,
    y: Any,
    *,
    columns: Sequence[str] | None = None,
    pilot: ContinualGP | None = None,
    pilot_rows: int = 4000,
    batch_size: int = 500,
    fan_in: int = 4,
    nats_per_row: float = 1e-3,
    max_inducing: int | None = None,
    fit: bool = False,
    seed: int = 0,
    progress: bool | None = None,
    client: Any = None,
) -> tuple[ContinualGP, FitReport]:
    """Learns a table that lies in partitions, and returns a model and a report.

    Parameters
    ----------
    X : dask.array.Array [N, D] or dask.dataframe.DataFrame
        The inputs, or a table that has them as columns.
    y : dask.array.Array [N], or str
        The targets; of a DataFrame, the name of their column.
    columns : sequence of str or None
        The inputs' columns of a DataFrame; None takes all but y.
    pilot : ContinualGP or None
        A model that has seen nothing says by its options how to learn: kernel, selection method, size.
        It learns ``pilot_rows`` rows, drawn from all partitions, and the partitions take their scaling
        and hyperparameters from it. A model that has learnt already is used as it is, and no sample is
        drawn. None is a model as ``out_of_the_box()`` says.
    pilot_rows : int
        The size of the sample.
    batch_size : int
        The most rows that are learnt from at once.
    fan_in : int
        How many models are merged at once.
    nats_per_row : float
        What a merge may lose to get rid of points that are worth little, for each row that joins its
        largest model. 0 keeps them all.
    max_inducing : int or None
        The most points that a merge leaves, whatever that costs. None is what the pilot's selection
        method allows.
    fit : bool
        Whether the last merge fits the kernel to all partitions' models. The noise variance stays the
        pilot's: it is in what the partitions have learnt.
    seed : int
        Which rows are in the sample.
    progress : bool or None
        Whether to show a bar. None shows it on a terminal and in a notebook.
    client : distributed.Client or None
        The cluster; None is the client that was made last.

    Returns
    -------
    model : ContinualGP
        It predicts, is saved and goes on learning as if it had seen all rows itself.
    report : FitReport
        Rows, points and what they cost.

    Notes
    -----
    A task is a function of its partition and of the pilot alone. If a worker is lost, Dask runs its
    tasks again elsewhere, and no partition counts twice. Partitions are computed twice, first for the
    sample; ``persist()`` them if that is slow and they fit into memory, or give a ``pilot``.

    Examples
    --------
    >>> import dask.array, distributed, ample.dask
    >>> client = distributed.Client(processes=False, n_workers=1, dashboard_address=":0")
    >>> X = dask.array.random.default_rng(0).uniform(-2, 2, size=(4000, 1), chunks=(1000, 1))
    >>> model, report = ample.dask.fit(X, dask.array.sin(2 * X[:, 0]), pilot_rows=500)
    >>> report.rows, report.partitions, report.inducing == model.size
    (4000, 4, True)
    >>> mean, std = ample.dask.predict(model, X).T
    >>> client.close()
    """
    client = _client(client)
    merging = Merging(fan_in, nats_per_row, max_inducing, fit)
    merging.check(_FIT)
    _cluster.at_least(_FIT, "pilot_rows", pilot_rows, 1)
    _cluster.at_least(_FIT, "batch_size", batch_size, 1)
    partitions = _partitions(X, y, columns)
    run = partial(_run, client, progress)

    model = _cluster.pilot_model(pilot)
    pilot_bytes, sample = pickle.dumps(model), None
    if model.rows_seen == 0:
        pilot_bytes, sample = run(_pilot_task(partitions, pilot_bytes, pilot_rows, batch_size, seed))
    root = run(_root_task(partitions, batch_size, replace(merging, pilot=pilot_bytes)))
    return _cluster.result(_FIT, root, sample)


def predict(model: ContinualGP, X: Any, *, columns: Sequence[str] | None = None, observation: bool = False) -> Any:
    """Mean and standard deviation at X, of the function or of new observations of it; lazily, partition by
    partition.

    Of an array [N, D] it is an array [N, 2], so that ``mean, std = predict(model, X).T``. Of a DataFrame it
    is a DataFrame of the same index, with the columns ``mean`` and ``std``; ``columns`` are the inputs, all
    if None.
    """
    content = pickle.dumps(model)
    if _is_frame(X):
        names = list(X.columns) if columns is None else list(columns)
        _check_columns(_PREDICT, X, names)
        _check_inputs(model, len(names))
        meta = X._meta[[]].assign(mean=np.float64(), std=np.float64())
        return X[names].map_partitions(_predict_frame, content, observation, meta=meta)
    if not isinstance(X, dask.array.Array):
        raise TypeError(f"{_PREDICT}: X is a {type(X).__name__}, but must be a dask array or DataFrame")
    if X.ndim != 2:
        raise ValueError(f"{_PREDICT}: X has {X.ndim} dimensions, but must have 2")
    _check_inputs(model, X.shape[1])
    X = X.rechunk({1: -1})
    return X.map_blocks(
        _predict_block, content, observation, chunks=(X.chunks[0], (2,)), dtype=np.float64, meta=np.empty((0, 0))
    )


# --- The tasks -----------------------------------------------------------------------------------


def _load(X: Any, y: Any, number: int, names: Sequence[str]) -> Rows:
    """A partition as arrays. ``y`` is None if X is a table with the target in its last column."""
    where = f"{_FIT}: partition {number}"
    if y is None:
        table = _numbers(X)
        X, y = table[:, :-1], table[:, -1]
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(X) != len(y):
        raise ValueError(f"{where}: X has {len(X)} rows and y has {len(y)}, but they must be as many")
    _cluster.check_finite(where, X, y, names)
    return X, y


def _numbers(frame: Any) -> NDArray[np.float64]:
    numbers: NDArray[np.float64] = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers


def _sample(X: Any, y: Any, number: int, names: Sequence[str], size: int, seed: int) -> Sample:
    X, y = _load(X, y, number, names)
    return Sample.of(len(y), X, y, size, [seed, number])  # the seed names the partition


def _pilot(pilot: bytes, sample: Sample, batch_size: int) -> tuple[bytes, Sample]:
    if sample.rows == 0:
        raise ValueError(f"{_FIT}: no partition has a row, but there must be at least one")
    return _cluster.learn_pilot(pilot, sample.X, sample.y, batch_size), sample


def _learn(X: Any, y: Any, number: int, names: Sequence[str], pilot: bytes, batch_size: int) -> Shard | None:
    return _cluster.learn([_load(X, y, number, names)], pilot, batch_size)


def _predict_block(X: NDArray[np.float64], model: bytes, observation: bool) -> NDArray[np.float64]:
    if len(X) == 0:
        return np.empty((0, 2))
    with _cluster.one_thread():
        prediction = _restored(model).predict(np.asfortranarray(X, dtype=np.float64), observation=observation)
    return np.column_stack([prediction.mean, prediction.std])


def _predict_frame(frame: Any, model: bytes, observation: bool) -> Any:
    values = _predict_block(_numbers(frame), model, observation)
    return frame[[]].assign(mean=values[:, 0], std=values[:, 1])


@lru_cache(maxsize=2)
def _restored(model: bytes) -> ContinualGP:
    gp: ContinualGP = pickle.loads(model)
    return gp


# --- The graph -----------------------------------------------------------------------------------


class _Partitions:
    """The partitions as Dask knows them, with the names of their columns, the target's last."""

    def __init__(self, X: Sequence[Any], y: Sequence[Any], names: Sequence[str]) -> None:
        self.blocks = list(zip(X, y, strict=True))
        self.names = list(names)


def _task(name: str, function: Any) -> Any:
    """A function whose calls are tasks that the dashboard shows by this name."""
    delayed = dask.delayed(function)
    return lambda *arguments: delayed(*arguments, dask_key_name=f"ample-{name}-{uuid.uuid4().hex}")


def _pilot_task(partitions: _Partitions, pilot: bytes, size: int, batch_size: int, seed: int) -> Any:
    sample, join = _task("sample", _sample), _task("join", _cluster.join)
    samples = [sample(X, y, i, partitions.names, size, seed) for i, (X, y) in enumerate(partitions.blocks)]
    while len(samples) > 1:
        samples = [join(group, size) for group in _groups(samples, _SAMPLES)]
    return _task("pilot", _pilot)(pilot, samples[0], batch_size)


def _root_task(partitions: _Partitions, batch_size: int, merging: Merging) -> Any:
    learn, merge = _task("learn", _learn), _task("merge", _cluster.merge_shards)
    pilot = dask.delayed(merging.pilot, name=f"ample-pilot-{uuid.uuid4().hex}")  # once, not in every task
    nodes = [learn(X, y, i, partitions.names, pilot, batch_size) for i, (X, y) in enumerate(partitions.blocks)]
    while True:
        groups = _groups(nodes, merging.fan_in)
        last = len(groups) == 1
        how = merging if last else replace(merging, pilot=b"")  # which only the root needs
        nodes = [merge(group, how, last) for group in groups]
        if last:
            return nodes[0]


def _groups(nodes: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [nodes[i : i + size] for i in range(0, len(nodes), size)]


def _run(client: Any, progress: bool | None, task: Any) -> Any:
    future = client.compute(task)
    try:
        if _in_notebook() or sys.stdout.isatty() if progress is None else progress:
            distributed.progress(future, notebook=_in_notebook())
        return future.result()
    except BaseException:  # an error of a task, or Ctrl-C: nothing goes on in the background
        future.cancel()
        raise


def _in_notebook() -> bool:
    return bool(distributed.utils.is_kernel())


# --- What the caller gave ------------------------------------------------------------------------


def _client(client: Any) -> Any:
    if client is not None:
        return client
    try:
        return distributed.get_client()
    except ValueError:
        raise ValueError(f"{_FIT}: there is no cluster; make a distributed.Client first, or give one as client") from None


def _is_frame(X: Any) -> bool:
    return hasattr(X, "map_partitions") and hasattr(X, "columns")


def _partitions(X: Any, y: Any, columns: Sequence[str] | None) -> _Partitions:
    if _is_frame(X):
        names = _cluster.inputs_of(_FIT, list(X.columns), y, columns)
        _check_columns(_FIT, X, [*names, y])
        blocks = X[[*names, y]].to_delayed()
        return _Partitions(blocks, [None] * len(blocks), [f"column {name!r}" for name in [*names, y]])
    for name, array, dimensions in (("X", X, 2), ("y", y, 1)):
        if not isinstance(array, dask.array.Array):
            raise TypeError(
                f"{_FIT}: {name} is a {type(array).__name__}, but must be a dask array; or X a dask DataFrame "
                "and y the name of a column"
            )
        if array.ndim != dimensions:
            raise ValueError(f"{_FIT}: {name} has {array.ndim} dimensions, but must have {dimensions}")
        if array.dtype.kind not in "fiub":
            raise ValueError(f"{_FIT}: {name} holds {array.dtype}, but must hold numbers")
    if columns is not None:
        raise ValueError(f"{_FIT}: columns are for a DataFrame, but X is an array")
    X = X.rechunk({1: -1})
    y = _aligned(X, y)
    names = [f"column {d} of X" for d in range(X.shape[1])]
    return _Partitions(X.to_delayed().ravel(), y.to_delayed().ravel(), [*names, "y"])


def _aligned(X: Any, y: Any) -> Any:
    """y in the chunks of X."""
    if X.chunks[0] == y.chunks[0]:
        return y
    known = not np.isnan(sum(X.chunks[0]) + sum(y.chunks[0]))
    if known and len(X) != len(y):
        raise ValueError(f"{_FIT}: X has {len(X)} rows and y has {len(y)}, but they must be as many")
    if not known and X.numblocks[0] == y.numblocks[0]:
        return y  # each task sees whether they fit together
    if not known:
        raise ValueError(
            f"{_FIT}: X has {X.numblocks[0]} chunks of unknown size and y has {y.numblocks[0]}, but they must be as many"
        )
    return y.rechunk((X.chunks[0],))


def _check_columns(where: str, X: Any, names: Sequence[str]) -> None:
    import pandas

    for name in names:
        if name not in X.columns:
            raise ValueError(f"{where}: there is no column {name!r}, only {', '.join(map(repr, X.columns))}")
        kind = X.dtypes[name]
        if not pandas.api.types.is_numeric_dtype(kind):
            raise ValueError(f"{where}: column {name!r} holds {kind}, but must hold numbers")


def _check_inputs(model: ContinualGP, given: int) -> None:
    if model.dimension and given != model.dimension:
        raise ValueError(f"{_PREDICT}: X has {given} columns, but the model has {model.dimension} inputs")
