"""Learning and predicting on a Spark cluster.

A pilot learns a sample of all rows and so fixes scaling and hyperparameters. Each partition is then
learnt where it lies, and the models are merged in a tree on the executors. See docs/cluster.md.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import pandas
    import pyarrow as _pyarrow  # noqa: F401  Spark hands rows to Python by it
    from pyspark import TaskContext
    from pyspark.sql import functions as F
    from pyspark.sql.types import BooleanType, NumericType
except ImportError as error:
    raise ImportError("ample.spark needs PySpark with pandas and PyArrow: pip install 'ample-gp[spark]'") from error

from . import _cluster
from ._ample import ContinualGP
from ._cluster import FitReport, Merging, Rows, Sample

__all__ = ["FitReport", "fit", "predict", "predict_udf"]

_FIT = "ample.spark.fit"
_PREDICT = "ample.spark.predict"

# A model on its way up the tree. `node` is its place among its siblings.
_SHARD = "node long, shard binary"

# Spark draws each row by itself, so a sample has more rows or fewer; with this many times what is
# needed and some more, hardly ever fewer.
_MARGIN = 1.1
_SPARE = 100


def fit(
    table: Any,
    y: str,
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
) -> tuple[ContinualGP, FitReport]:
    """Learns a table that lies in partitions, and returns a model and a report.

    Parameters
    ----------
    table : pyspark.sql.DataFrame
        The table.
    y : str
        The name of the target's column.
    columns : sequence of str or None
        The inputs' columns; None takes all but y.
    pilot, pilot_rows, batch_size, fan_in, nats_per_row, max_inducing, fit, seed
        As in ``ample.dask.fit``.

    Returns
    -------
    model : ContinualGP
        It predicts, is saved and goes on learning as if it had seen all rows itself.
    report : FitReport
        Rows, points and what they cost.

    Notes
    -----
    The table is computed three times: to count its rows and check them, for the sample, and to learn.
    ``cache()`` it if that is slow. With a ``pilot`` that has learnt already it is computed once. If an
    executor is lost, Spark runs its tasks again elsewhere, and no partition counts twice.

    Rows stream through a task in Arrow batches, so a partition may be larger than memory.
    """
    merging = Merging(fan_in, nats_per_row, max_inducing, fit)
    merging.check(_FIT)
    _cluster.at_least(_FIT, "pilot_rows", pilot_rows, 1)
    _cluster.at_least(_FIT, "batch_size", batch_size, 1)
    names = _cluster.inputs_of(_FIT, table.columns, y, columns)
    rows = _numbers(_FIT, table, [*names, y])

    model, sample = _cluster.pilot_model(pilot), None
    pilot_bytes = pickle.dumps(model)
    if model.rows_seen == 0:
        sample = _draw(rows, _count(rows), pilot_rows, seed)
        pilot_bytes = _cluster.learn_pilot(pilot_bytes, sample.X, sample.y, batch_size)
    shards = rows.mapInPandas(_learner(pilot_bytes, batch_size), _SHARD).persist()
    try:
        root = _merge(shards, replace(merging, pilot=pilot_bytes))
    finally:
        shards.unpersist()
    return _cluster.result(_FIT, root, sample)


def predict(model: ContinualGP, table: Any, *, columns: Sequence[str], observation: bool = False) -> Any:
    """The table with two more columns, ``mean`` and ``std``: of the function, or of new observations of it.

    ``columns`` are the inputs, in the order in which the model learnt them.
    """
    for name in ("mean", "std"):
        if name in table.columns:
            raise ValueError(f"{_PREDICT}: the table has a column {name!r} already; rename it, or use predict_udf")
    _numbers(_PREDICT, table, columns)
    answer = predict_udf(model, observation=observation)(*columns)
    kept = [F.col(_quoted(name)) for name in table.columns]
    return table.select(*kept, answer.alias("_ample")).select(*kept, "_ample.mean", "_ample.std")


def predict_udf(model: ContinualGP, *, observation: bool = False) -> Callable[..., Any]:
    """A function of the inputs' columns that gives a column of structs ``mean``, ``std``.

    For example ``table.withColumn("p", predict_udf(model)("x", "y"))``, and then ``p.mean``.
    """
    content = pickle.dumps(model)

    def predictions(batches: Iterator[pandas.DataFrame]) -> Iterator[pandas.DataFrame]:
        gp: ContinualGP = pickle.loads(content)
        for inputs in batches:
            with _cluster.one_thread():
                marginals = gp.predict(_array(inputs), observation=observation)
            yield pandas.DataFrame({"mean": marginals.mean, "std": marginals.std})

    # Spark reads the types, which here are only text.
    predictions.__annotations__ = {"batches": Iterator[pandas.DataFrame], "return": Iterator[pandas.DataFrame]}
    udf: Any = F.pandas_udf("mean double, std double")(predictions)

    def of_columns(*columns: Any) -> Any:
        if model.dimension and len(columns) != model.dimension:
            raise ValueError(f"{_PREDICT}: {len(columns)} columns are given, but the model has {model.dimension} inputs")
        inputs = [F.col(_quoted(c)) if isinstance(c, str) else c for c in columns]
        numbers = [c.cast("double").alias(f"x{d}") for d, c in enumerate(inputs)]
        return udf(F.struct(*numbers))

    return of_columns


# --- Rows ----------------------------------------------------------------------------------------


def _quoted(name: str) -> str:
    """A name that may hold dots."""
    return "`" + name.replace("`", "``") + "`"


def _numbers(where: str, table: Any, names: Sequence[str]) -> Any:
    """These columns as numbers."""
    kinds = {field.name: field.dataType for field in table.schema.fields}
    for name in names:
        if name not in kinds:
            raise ValueError(f"{where}: there is no column {name!r}, only {', '.join(map(repr, kinds))}")
        if not isinstance(kinds[name], NumericType | BooleanType):
            raise ValueError(f"{where}: column {name!r} holds {kinds[name].simpleString()}, but must hold numbers")
    return table.select(*(F.col(_quoted(name)).cast("double").alias(name) for name in names))


def _count(rows: Any) -> int:
    """How many rows there are, if all of their values are finite."""
    bad = []
    for name in rows.columns:
        value = F.col(_quoted(name))
        finite = value.isNotNull() & ~F.isnan(value) & (F.abs(value) < np.inf)
        bad.append(F.count(F.when(~finite, 1)))
    count, *found = rows.agg(F.count(F.lit(1)), *bad).first()
    for name, number in zip(rows.columns, found, strict=True):
        if number:
            raise ValueError(
                f"{_FIT}: column {name!r} is null or not finite in {number} of {count} rows, but must be finite in all"
            )
    if count == 0:
        raise ValueError(f"{_FIT}: no partition has a row, but there must be at least one")
    return int(count)


def _draw(rows: Any, count: int, size: int, seed: int) -> Sample:
    fraction = min(1.0, (_MARGIN * size + _SPARE) / count)
    drawn = rows if fraction == 1.0 else rows.sample(fraction=fraction, seed=seed)
    values = np.array(drawn.collect(), dtype=np.float64).reshape(-1, len(rows.columns))
    return _cluster.Sample.of(count, values[:, :-1], values[:, -1], size, [seed])


def _array(frame: Any) -> NDArray[np.float64]:
    return np.asfortranarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))


# --- The tasks -----------------------------------------------------------------------------------


def _learner(pilot: bytes, batch_size: int) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Makes one row of a partition: its model."""

    def learn(batches: Iterable[Any]) -> Iterator[Any]:
        number = TaskContext.get().partitionId()
        shard = _cluster.learn(_pieces(batches, number), pilot, batch_size)
        if shard is not None:
            yield _row(number, shard)

    return learn


def _pieces(batches: Iterable[Any], number: int) -> Iterator[Rows]:
    for frame in batches:
        values = _array(frame)
        X, y = values[:, :-1], values[:, -1]
        names = [f"column {name!r}" for name in frame.columns]
        _cluster.check_finite(f"{_FIT}: partition {number}", X, y, names)
        yield X, y


def _row(node: int, shard: Any) -> Any:
    return pandas.DataFrame({"node": [node], "shard": [pickle.dumps(shard)]})


def _merge(shards: Any, merging: Merging) -> Any:
    """The tree. The first pass learns the partitions, keeps their models and tells how high the tree is."""
    nodes = [row.node for row in shards.select("node").collect()]
    if not nodes:
        return None
    width = max(nodes) + 1
    while True:
        last = width <= merging.fan_in
        parent = F.floor(F.col("node") / merging.fan_in)
        shards = shards.groupBy(parent).applyInPandas(_merger(merging, last), _SHARD)
        width = -(-width // merging.fan_in)
        if last:
            return pickle.loads(shards.first().shard)


def _merger(merging: Merging, last: bool) -> Callable[[Any], Any]:
    def merge(group: Any) -> Any:
        siblings = group.sort_values("node")  # whatever order the shuffle made
        shards = [pickle.loads(shard) for shard in siblings["shard"]]
        return _row(int(siblings["node"].iloc[0]) // merging.fan_in, _cluster.merge_shards(shards, merging, last))

    return merge
