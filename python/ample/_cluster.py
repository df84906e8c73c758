"""What the engines share: a pilot, a model for each partition, and a tree of merges.

The pilot learns a sample of all rows and so fixes scaling and hyperparameters. Each partition is then
learnt with these, by itself, and the models are merged in a tree. Everything here is a function of its
arguments alone, so that an engine may run it anywhere, and again when a worker is lost.
"""

from __future__ import annotations

import contextlib
import pickle
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._ample import ContinualGP, empty_like, out_of_the_box, set_threads, threads
from ._merge import merge

Rows = tuple[NDArray[np.float64], NDArray[np.float64]]  # X [N, D] and y [N]


@dataclass(frozen=True)
class FitReport:
    """What a fit on a cluster did."""

    rows: int
    """Rows that were learnt."""
    partitions: int
    """Partitions that had rows."""
    inducing_before: int
    """The points of all partitions' models together."""
    inducing: int
    """M, the points of the result."""
    nats: float
    """What pruning after the merges cost, all of them together."""
    depth: int
    """Merges from a partition to the result."""
    pilot_rows: int
    """Rows that scaling and hyperparameters were found on; 0 if the pilot was given."""
    kernel: str
    """The kernel of the result."""
    noise_variance: float
    """Its noise variance, in scaled units."""


@dataclass(frozen=True)
class Shard:
    """The model of some partitions on its way up the tree."""

    model: bytes
    rows: int
    partitions: int
    inducing: int
    nats: float
    depth: int


@dataclass(frozen=True)
class Sample:
    """A sample of rows, each equally likely to be in it: those with the smallest random keys."""

    rows: int
    keys: NDArray[np.float64]
    X: NDArray[np.float64]
    y: NDArray[np.float64]

    @staticmethod
    def of(rows: int, X: NDArray[np.float64], y: NDArray[np.float64], size: int, seed: Sequence[int]) -> Sample:
        """At most ``size`` of the rows given, which are all ``rows`` or a sample of them."""
        return _smallest(rows, np.random.default_rng(seed).random(len(y)), X, y, size)


@dataclass(frozen=True)
class Merging:
    """How the models of partitions become one."""

    fan_in: int
    nats_per_row: float
    max_inducing: int | None
    fit: bool
    pilot: bytes = b""
    """The model whose options the result has."""

    def check(self, where: str) -> None:
        at_least(where, "fan_in", self.fan_in, 2)
        if not (np.isfinite(self.nats_per_row) and self.nats_per_row >= 0):
            raise ValueError(f"{where}: nats_per_row is {self.nats_per_row}, but must be 0 or more, and finite")
        if self.max_inducing is not None:
            at_least(where, "max_inducing", self.max_inducing, 1)


def at_least(where: str, name: str, value: int, least: int) -> None:
    if value < least:
        raise ValueError(f"{where}: {name} is {value}, but must be at least {least}")


def inputs_of(where: str, available: Sequence[str], target: Any, columns: Sequence[str] | None) -> list[str]:
    """The names of the inputs: those given, or all but the target."""
    if not isinstance(target, str):
        raise TypeError(f"{where}: y is a {type(target).__name__}, but must be the name of the target's column")
    if isinstance(columns, str):
        columns = [columns]
    names = [name for name in available if name != target] if columns is None else list(columns)
    for name in [target, *names]:
        if name not in available:
            raise ValueError(f"{where}: there is no column {name!r}, only {', '.join(map(repr, available))}")
    if target in names:
        raise ValueError(f"{where}: {target!r} is the target and cannot be an input too")
    if not names:
        raise ValueError(f"{where}: there are no inputs, but there must be at least one column beside {target!r}")
    return names


def check_finite(where: str, X: NDArray[np.float64], y: NDArray[np.float64], names: Sequence[str]) -> None:
    """Refuses the first row that holds something else than finite numbers."""
    if np.isfinite(X.sum()) and np.isfinite(y.sum()):
        return
    for name, column in zip(names, [*X.T, y], strict=True):
        bad = np.flatnonzero(~np.isfinite(column))
        if len(bad):
            raise ValueError(f"{where}, row {bad[0]}: {name} is {column[bad[0]]}, but must be finite")


# --- The pilot -----------------------------------------------------------------------------------


def join(samples: Sequence[Sample], size: int) -> Sample:
    """The sample of all their partitions."""
    parts = [sample for sample in samples if sample.rows]
    if not parts:
        return samples[0]
    keys = np.concatenate([part.keys for part in parts])
    X = np.concatenate([part.X for part in parts])
    y = np.concatenate([part.y for part in parts])
    return _smallest(sum(part.rows for part in parts), keys, X, y, size)


def _smallest(rows: int, keys: Any, X: Any, y: Any, size: int) -> Sample:
    first = np.argsort(keys)[:size]
    return Sample(rows, keys[first], X[first], y[first])


def pilot_model(pilot: ContinualGP | None) -> ContinualGP:
    if pilot is None:
        options: Any = out_of_the_box()
        return ContinualGP(**options)
    return pilot


def learn_pilot(pilot: bytes, X: NDArray[np.float64], y: NDArray[np.float64], batch_size: int) -> bytes:
    """The pilot after the sample."""
    model: ContinualGP = pickle.loads(pilot)
    for batch in cut([(X, y)], batch_size):
        model.observe(*batch)
    return pickle.dumps(model)


# --- A partition ---------------------------------------------------------------------------------


def learn(pieces: Iterable[Rows], pilot: bytes, batch_size: int) -> Shard | None:
    """The model of one partition, which may come in pieces; None if it has no rows.

    Scaling and hyperparameters are the pilot's, and nothing else of it: its rows are in the partitions.
    """
    with one_thread():
        model: ContinualGP = empty_like(pickle.loads(pilot), fixed_hyperparameters=True)
        for batch in cut(pieces, batch_size):
            model.observe(*batch)
    if model.rows_seen == 0:
        return None
    return Shard(pickle.dumps(model), model.rows_seen, 1, model.size, 0.0, 0)


def cut(pieces: Iterable[Rows], size: int) -> Iterator[Rows]:
    """The same rows in batches of ``size``, the last one smaller; holds one batch and one piece."""
    held: list[Rows] = []
    missing = size
    for X, y in pieces:
        start = 0
        while len(y) - start >= missing:
            held.append((X[start : start + missing], y[start : start + missing]))
            yield _joined(held)
            start, held, missing = start + missing, [], size
        if start < len(y):
            held.append((X[start:], y[start:]))
            missing -= len(y) - start
    if held:
        yield _joined(held)


def _joined(held: Sequence[Rows]) -> Rows:
    X = np.concatenate([X for X, _ in held])
    return np.asfortranarray(X), np.concatenate([y for _, y in held])


# --- The tree ------------------------------------------------------------------------------------


def merge_shards(shards: Sequence[Shard | None], merging: Merging, last: bool) -> Shard | None:
    """One node of the tree. ``last``: its root, where the hyperparameters are fitted if asked, and the model
    gets the pilot's options, by which it goes on learning."""
    there = [shard for shard in shards if shard is not None]
    if not there or (len(there) == 1 and not last):
        return there[0] if there else None
    rows = sum(shard.rows for shard in there)
    joining = rows - max(shard.rows for shard in there)
    with one_thread():
        model, report = merge(
            [pickle.loads(shard.model) for shard in there],
            nats=merging.nats_per_row * joining,
            max_inducing=merging.max_inducing,
            fit=merging.fit and last,
            like=pickle.loads(merging.pilot) if last else None,
        )
    return Shard(
        pickle.dumps(model),
        rows,
        sum(shard.partitions for shard in there),
        sum(shard.inducing for shard in there),
        sum(shard.nats for shard in there) + report.pruned_nats,
        max(shard.depth for shard in there) + (len(there) > 1),
    )


def result(where: str, root: Shard | None, sampled: Sample | None) -> tuple[ContinualGP, FitReport]:
    """The model at the root, and what it took."""
    if root is None:
        raise ValueError(f"{where}: no partition has a row, but there must be at least one")
    model: ContinualGP = pickle.loads(root.model)
    rows = root.rows if sampled is None else sampled.rows
    if not model.rows_seen == root.rows == rows:
        raise RuntimeError(
            f"{where}: the partitions had {rows} rows when they were sampled, but {root.rows} when they were "
            "learnt: they must be the same each time they are computed"
        )
    report = FitReport(
        rows=root.rows,
        partitions=root.partitions,
        inducing_before=root.inducing,
        inducing=model.size,
        nats=root.nats,
        depth=root.depth,
        pilot_rows=0 if sampled is None else len(sampled.y),
        kernel=repr(model.kernel),
        noise_variance=model.noise_variance,
    )
    return model, report


# --- Threads -------------------------------------------------------------------------------------

_lock = threading.Lock()
_users = 0
_before = 1


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Holds the library to one thread: an engine runs one task for each processor already."""
    global _users, _before
    with _lock:
        if _users == 0:
            _before = threads()
            set_threads(1)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                set_threads(_before)
