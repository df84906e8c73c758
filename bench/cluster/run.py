"""Learns a table of any length in one stream, on Dask, on Spark, and in simulated shards.

    python bench/cluster/run.py stream --rows 10000000          one model, one process, one thread
    python bench/cluster/run.py dask --rows 10000000 --workers 1 2
    python bench/cluster/run.py spark --rows 10000000 --workers 1 2
    python bench/cluster/run.py shards                          1 to 64 shards in one process
    python bench/cluster/run.py overhead                        Dask's own share: tasks that do nothing

Each measurement is a line of bench/cluster/results.jsonl; report.py makes tables and the figure of them.
Workers are processes with one thread; Spark's, which have more, are bound to one processor each, and learn a
small table before the clock starts, as Java is slow until its compiler has seen the work. Partitions are made
where they are learnt. `seconds` are by the clock and need an idle machine; what has `cpu` in its name is the
processor's time, and does not.
"""

import argparse
import contextlib
import copy
import datetime
import json
import os
import pickle
import re
import resource
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import field

import ample
from ample import _cluster

HERE = Path(__file__).parent
PILOT_ROWS = 4000
BATCH = 500
ROWS_OF_PARTITION = 100_000
WARM_UP = 4  # partitions for each of Spark's workers, before the clock starts
LOAD = os.getloadavg()[0]  # before the first run


def machine():
    model = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    return {
        "processor": model[1] if model else "unknown",
        "processors": os.cpu_count(),
        "load": round(LOAD, 2),
        "date": datetime.date.today().isoformat(),
        "ample": ample.__version__,
    }


def record(path, **values):
    print(json.dumps(values), flush=True)
    with path.open("a") as file:
        file.write(json.dumps({**values, **machine()}) + "\n")


def errors(model):
    X, y = field.test_rows()
    prediction = model.predict(X, observation=True)
    return {
        "M": model.size,
        "rmse": ample.rmse(y, prediction.mean),
        "nlpd": ample.nlpd(y, prediction),
        "coverage": ample.coverage(y, prediction, 0.95),
    }


def compressed(model, size):
    """The errors at the size of another model."""
    small = copy.copy(model)
    nats = small.compress_to(size).nats
    return {f"small_{name}": value for name, value in errors(small).items()} | {"small_nats": nats}


def peak_memory():
    """Of this process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def make_pilot(rows):
    X, y = field.rows(rows, 3)
    return _cluster.learn_pilot(pickle.dumps(_cluster.pilot_model(None)), X, y, BATCH)


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def sizes(options):
    partitions = max(1, options.rows // ROWS_OF_PARTITION)
    return partitions, options.rows // partitions


def last_stream(path, rows):
    """M of the single stream of as many rows, if it was measured."""
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    found = [line["M"] for line in lines if line["what"] == "stream" and line["rows"] == rows]
    return found[-1] if found else None


# --- One stream ----------------------------------------------------------------------------------


def run_stream(options):
    partitions, count = sizes(options)
    ample.set_threads(1)
    start, start_cpu = time.perf_counter(), time.process_time()
    pilot = make_pilot(PILOT_ROWS)
    pilot_cpu = time.process_time() - start_cpu
    making = 0.0

    def pieces():
        nonlocal making
        for number in range(partitions):
            progress(f"{number} of {partitions} partitions, {time.perf_counter() - start:.0f} s")
            before = time.process_time()
            made = field.partition(number, count)
            making += time.process_time() - before
            yield made

    shard = _cluster.learn(pieces(), pilot, BATCH)
    seconds, cpu = time.perf_counter() - start, time.process_time() - start_cpu
    model = pickle.loads(shard.model)
    record(
        options.out, what="stream", rows=model.rows_seen, seconds=seconds, cpu=cpu, pilot_cpu=pilot_cpu,
        make_cpu=making, peak=peak_memory(), **errors(model),
    )  # fmt: skip


# --- Dask ----------------------------------------------------------------------------------------


def run_dask(options):
    import dask
    import dask.array
    import distributed

    import ample.dask

    partitions, count = sizes(options)
    for workers in options.workers:
        with (
            distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
            distributed.Client(cluster) as client,
        ):
            made = [dask.delayed(field.partition)(i, count) for i in range(partitions)]
            blocks = [(dask.array.from_delayed(m[0], (count, field.DIMENSION), float),
                       dask.array.from_delayed(m[1], (count,), float)) for m in made]  # fmt: skip
            X = dask.array.concatenate([X for X, _ in blocks])
            y = dask.array.concatenate([y for _, y in blocks])
            start = time.perf_counter()
            model, report = ample.dask.fit(X, y, pilot_rows=PILOT_ROWS, batch_size=BATCH, client=client)
            seconds = time.perf_counter() - start
            peaks = list(client.run(peak_memory).values())
        finish("dask", options, workers, seconds, peaks, model, report)


def run_overhead(options):
    import cloudpickle
    import distributed

    import ample.dask

    def nothing(*arguments):
        return None

    # The graph of a fit, of tasks that do nothing.
    ample.dask._learn, _cluster.merge_shards = nothing, nothing
    partitions = ample.dask._Partitions([None] * options.partitions, [None] * options.partitions, ["a", "y"])
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        start = time.perf_counter()
        merging = _cluster.Merging(4, 0.0, None, False, b"pilot")
        root = ample.dask._root_task(partitions, BATCH, merging)
        graph = dict(root.__dask_graph__())
        client.compute(root).result()
        seconds = time.perf_counter() - start
    size = len(cloudpickle.dumps(graph))
    record(options.out, what="overhead", partitions=options.partitions, tasks=len(graph), seconds=seconds, bytes=size)


def finish(what, options, workers, seconds, peaks, model, report):
    size = last_stream(options.out, model.rows_seen)
    record(
        options.out, what=what, rows=model.rows_seen, workers=workers, seconds=seconds, peak=max(peaks),
        partitions=report.partitions, inducing_before=report.inducing_before, nats=report.nats, depth=report.depth,
        **errors(model), **(compressed(model, size) if size and size < model.size else {}),
    )  # fmt: skip


# --- Spark ---------------------------------------------------------------------------------------


def run_spark(options):
    import pandas
    from pyspark import TaskContext
    from pyspark.sql import SparkSession

    import ample.spark

    partitions, count = sizes(options)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = f"{HERE}:{os.environ.get('PYTHONPATH', '')}"

    def make(batches):
        number = TaskContext.get().partitionId()
        for _ in batches:
            X, y = field.partition(number, count)
            yield pandas.DataFrame(X, columns=["a", "b", "c"]).assign(t=y)

    def peaks_of(batches):
        for _ in batches:
            yield pandas.DataFrame({"peak": [peak_memory()]})

    for workers in options.workers:
        with contextlib.closing(_Session(SparkSession, workers)) as session:
            spark = session.spark
            bind_executors(spark, workers)

            def learn(partitions, spark=spark):
                table = spark.range(partitions, numPartitions=partitions).mapInPandas(
                    make, "a double, b double, c double, t double"
                )
                return ample.spark.fit(table, "t", pilot_rows=PILOT_ROWS, batch_size=BATCH)

            learn(WARM_UP * workers)
            start = time.perf_counter()
            model, report = learn(partitions)
            seconds = time.perf_counter() - start
            # Python workers are kept for the next job.
            asked = spark.range(4 * workers, numPartitions=4 * workers).mapInPandas(peaks_of, "peak double")
            peaks = [row.peak for row in asked.collect()]
        finish("spark", options, workers, seconds, peaks, model, report)


def bind_executors(spark, workers):
    """Gives each executor a processor of its own, with the Python processes that it will start.

    One worker's Java and Python would otherwise keep more than one processor busy, and what a second
    worker brings could not be seen on a machine of two.
    """
    spark.range(workers, numPartitions=workers).count()  # starts them
    commands = {path.parent: path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")}
    executors = sorted(path for path, command in commands.items() if b"CoarseGrainedExecutorBackend" in command)
    if len(executors) != workers:
        raise RuntimeError(f"{len(executors)} executors were found, expected {workers}")
    for number, executor in enumerate(executors):
        for thread in (executor / "task").iterdir():
            os.sched_setaffinity(int(thread.name), {number % os.cpu_count()})


class _Session:
    def __init__(self, session, workers):
        self.spark = (
            session.builder.master(f"local-cluster[{workers},1,2048]")
            .config("spark.executor.memory", "2g")
            .config("spark.ui.enabled", False)
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.log.level", "ERROR")
            .getOrCreate()
        )

    def close(self):
        self.spark.stop()


# --- Shards in one process -----------------------------------------------------------------------


def run_shards(options):
    ample.set_threads(1)
    X, y = field.rows(options.rows, 1)
    by_input = np.argsort(X[:, 0])
    pilots = {rows: make_pilot(rows) for rows in (PILOT_ROWS, options.small_pilot)}
    cases = [
        ("shuffled", PILOT_ROWS, np.arange(len(y))),
        ("sorted", PILOT_ROWS, by_input),
        ("small pilot", options.small_pilot, np.arange(len(y))),
        ("small pilot, fit", options.small_pilot, np.arange(len(y))),
    ]
    for name, pilot_rows, order in cases:
        size = None
        for count in options.counts:
            progress(f"{name}: {count} shards")
            pilot = pilots[pilot_rows]
            merging = _cluster.Merging(options.fan_in, options.nats_per_row, None, name.endswith("fit"), pilot)
            model, values = in_shards(X[order], y[order], count, merging)
            if count == 1:
                size = model.size
            small = compressed(model, size) if size and size < model.size else {}
            record(
                options.out, what="shards", case=name, rows=len(y), pilot_rows=pilot_rows, shards=count,
                fan_in=options.fan_in, **values, **errors(model), **small,
            )  # fmt: skip


def in_shards(X, y, count, merging):
    """The model of so many shards, and what each step took: as the engines do it, one after the other."""
    cpu, merges = [], []
    nodes = []
    for rows in np.array_split(np.arange(len(y)), count):
        start = time.process_time()
        nodes.append(_cluster.learn([(X[rows], y[rows])], merging.pilot, BATCH))
        cpu.append(time.process_time() - start)
    inducing_before = sum(shard.inducing for shard in nodes)
    while True:
        groups = [nodes[i : i + merging.fan_in] for i in range(0, len(nodes), merging.fan_in)]
        nodes = []
        for group in groups:
            union = sum(pickle.loads(shard.model).size for shard in group)
            start = time.process_time()
            nodes.append(_cluster.merge_shards(group, merging, len(groups) == 1))
            merges.append({"union": union, "cpu": time.process_time() - start})
        if len(groups) == 1:
            break
    root = nodes[0]
    return pickle.loads(root.model), {
        "inducing_before": inducing_before,
        "nats": root.nats,
        "depth": root.depth,
        "learn_cpu": sum(cpu),
        "merges": merges,
        "bytes": len(root.model),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE / "results.jsonl")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, function in (("stream", run_stream), ("dask", run_dask), ("spark", run_spark)):
        command = commands.add_parser(name)
        command.set_defaults(function=function)
        command.add_argument("--rows", type=int, default=10_000_000)
        if name != "stream":
            command.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    overhead = commands.add_parser("overhead")
    overhead.set_defaults(function=run_overhead)
    overhead.add_argument("--partitions", type=int, default=10_000)
    shards = commands.add_parser("shards")
    shards.set_defaults(function=run_shards)
    shards.add_argument("--rows", type=int, default=128_000)
    shards.add_argument("--counts", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 64])
    shards.add_argument("--small-pilot", type=int, default=150)
    shards.add_argument("--fan-in", type=int, default=4)
    shards.add_argument("--nats-per-row", type=float, default=1e-3)
    options = parser.parse_args()
    options.function(options)


if __name__ == "__main__":
    main()
