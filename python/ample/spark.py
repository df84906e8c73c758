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

# What goes up a tree, pickled. `node` is its place among its siblings.
_NODE = "node long, content binary"

# Samples that are joined at once; each is small.
_SAMPLES = 32

# Tasks for each group of siblings, where groups go to tasks by a hash: with one for each some would get
# several, and the others wait for them. Of an even number two groups would get one task.
_TASKS = 3


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
    The table is computed twice: to check its rows and draw the sample, and to learn. ``cache()`` it if
    that is slow. With a ``pilot`` that has learnt already it is computed once. If an executor is lost,
    Spark runs its tasks again elsewhere, and no partition counts twice.

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
        sample = _draw(rows, pilot_rows, seed)
        pilot_bytes = _cluster.learn_pilot(pilot_bytes, sample.X, sample.y, batch_size)
    shards = rows.mapInPandas(_learner(pilot_bytes, batch_size), _NODE)
    root = _tree(shards, fan_in, _merger(replace(merging, pilot=pilot_bytes)))
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


def _draw(rows: Any, size: int, seed: int) -> Sample:
    """A sample of the rows, if all of their values are finite."""

    def join(samples: list[Any], last: bool) -> Any:
        refused = [sample for sample in samples if isinstance(sample, str)]
        return refused[0] if refused else _cluster.join(samples, size)

    sample = _tree(rows.mapInPandas(_sampler(size, seed), _NODE), _SAMPLES, join)
    if sample is None:
        raise ValueError(f"{_FIT}: no partition has a row, but there must be at least one")
    if isinstance(sample, str):
        raise ValueError(sample)
    drawn: Sample = sample
    return drawn


def _array(frame: Any) -> NDArray[np.float64]:
    return np.asfortranarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))


# --- The tasks -----------------------------------------------------------------------------------


def _sampler(size: int, seed: int) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Makes one row of a partition: its sample, or what is wrong with it."""

    def draw(batches: Iterable[Any]) -> Iterator[Any]:
        number = TaskContext.get().partitionId()
        sample: Sample | None = None
        try:
            for piece, (X, y) in enumerate(_pieces(batches, number)):
                drawn = Sample.of(len(y), X, y, size, [seed, number, piece])  # the seed names the rows
                sample = drawn if sample is None else _cluster.join([sample, drawn], size)
        except ValueError as error:
            yield _row(number, str(error))  # for the driver to raise, without Spark's pages around it
            return
        if sample is not None:
            yield _row(number, sample)

    return draw


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


def _row(node: int, content: Any) -> Any:
    return pandas.DataFrame({"node": [node], "content": [pickle.dumps(content)]})


def _merger(merging: Merging) -> Callable[[list[Any], bool], Any]:
    return lambda shards, last: _cluster.merge_shards(shards, merging, last)


# --- The tree ------------------------------------------------------------------------------------


def _tree(leaves: Any, fan_in: int, join: Callable[[list[Any], bool], Any]) -> Any:
    """What ``join`` makes of all leaves, ``fan_in`` siblings at a time; None if there are none.

    The first pass computes the leaves, keeps them and tells how high the tree is.
    """
    leaves = leaves.persist()
    try:
        nodes = [row.node for row in leaves.select("node").collect()]
        if not nodes:
            return None
        width = max(nodes) + 1
        level = leaves.coalesce(-(-width // fan_in))  # they are computed: a task hands on several
        while True:
            groups = -(-width // fan_in)
            children = _spread(level.withColumn("parent", F.floor(F.col("node") / fan_in)), groups)
            level, width = children.mapInPandas(_joiner(join, groups == 1), _NODE), groups
            if groups == 1:
                return pickle.loads(level.first().content)
    finally:
        leaves.unpersist()


def _spread(children: Any, groups: int) -> Any:
    """All siblings in one task, and each group of them in a task of its own if that can be had. Spark itself
    would put all groups, which are small in its eyes, into one task or two."""
    if hasattr(children, "repartitionById"):  # since Spark 4.1
        return children.repartitionById(groups, F.col("parent").cast("int"))
    return children.repartition(_TASKS * groups, "parent")


def _joiner(join: Callable[[list[Any], bool], Any], last: bool) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Makes one row of each group of siblings in a task."""

    def of_siblings(batches: Iterable[Any]) -> Iterator[Any]:
        children = pandas.concat([pandas.DataFrame(columns=["node", "parent", "content"]), *batches])
        for parent, siblings in children.groupby("parent"):
            siblings = siblings.sort_values("node")  # whatever order the shuffle made
            contents = [pickle.loads(content) for content in siblings["content"]]
            yield _row(int(parent), join(contents, last))

    return of_siblings
