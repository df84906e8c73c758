"""Learning on Spark: a real one, with executors in processes of their own. It needs Java 17 or later."""

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ample
import ample.spark
from ample import _cluster
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas", "ignore:The copy keyword")


@pytest.fixture(scope="module")
def spark():
    assert shutil.which("java") or os.environ.get("JAVA_HOME"), "Spark needs Java: scripts/setup installs it"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .appName("ample tests")
        .config("spark.ui.enabled", False)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.executor.memory", "1g")
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.task.maxFailures", 4)
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    yield session
    session.stop()


def field(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    return X, np.sin(2 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def pilot():
    """Scaling and hyperparameters that are held; nothing is pruned."""
    gp = ample.ContinualGP(
        ample.SquaredExponential(lengthscale=0.8), noise_variance=0.02, standardize=True, refit_every=0
    )
    gp.observe(*field(100, seed=9))
    return gp


def table(spark, parts, before=lambda number: None):
    """A DataFrame with these partitions, made on the executors."""

    def make(batches):
        number = TaskContext.get().partitionId()
        before(number)
        X, y = parts[number]
        for _ in batches:
            yield pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "t": y})

    return spark.range(len(parts), numPartitions=len(parts)).mapInPandas(make, "a double, b double, t double")


def cut(X, y, count):
    return list(zip(np.array_split(X, count), np.array_split(y, count), strict=True))


def merged_here(parts, pilot):
    models = []
    for X, y in parts:
        gp = ample.empty_like(pilot, fixed_hyperparameters=True)
        if len(y):
            gp.observe(X, y)
        models.append(gp)
    return ample.merge(models, nats=0)[0]


QUERIES = np.random.default_rng(1).uniform(-2.5, 2.5, size=(50, 2))


def close(model, other, digits=8):
    """Whether two models say the same, but for rounding."""
    a, b = (m.predict(QUERIES) for m in (model, other))
    error = 10.0**-digits
    return np.allclose(a.mean, b.mean, rtol=0, atol=error) and np.allclose(a.variance, b.variance, rtol=0, atol=error)


def test_is_the_merge_of_its_partitions_in_any_tree_and_order(spark, pilot):
    parts = cut(*field(700), 7)
    parts[3:3] = [(np.empty((0, 2)), np.empty(0))]  # an empty one
    expected = merged_here(parts, pilot)
    for order, fan_in, depth in ((parts, 2, 3), (parts[::-1], 8, 1)):
        model, report = ample.spark.fit(table(spark, order), "t", pilot=pilot, fan_in=fan_in, nats_per_row=0)
        assert close(model, expected) and model.rows_seen == report.rows == 700
        assert report.partitions == 7 and report.depth == depth and report.nats == 0
    assert not close(merged_here(parts[:-1], pilot), expected)  # a partition less is seen


def test_before_spark_4_1_it_is_the_same(spark, pilot, monkeypatch):
    frame = table(spark, cut(*field(350), 7))
    expected, _ = ample.spark.fit(frame, "t", pilot=pilot, fan_in=2)
    for kind in type(frame).__mro__:
        if "repartitionById" in vars(kind):
            monkeypatch.delattr(kind, "repartitionById")
    assert not hasattr(frame, "repartitionById")
    model, _ = ample.spark.fit(frame, "t", pilot=pilot, fan_in=2)
    assert model.to_bytes() == expected.to_bytes()


def test_a_lost_worker_changes_nothing(spark, pilot, tmp_path):
    lost = tmp_path / "lost"
    parts = cut(*field(400), 4)

    def kill(number):
        if number == 2 and not lost.exists():
            lost.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    undisturbed, _ = ample.spark.fit(table(spark, parts), "t", pilot=pilot)
    model, report = ample.spark.fit(table(spark, parts, kill), "t", pilot=pilot)
    assert lost.exists()
    assert model.to_bytes() == undisturbed.to_bytes()
    assert report.rows == 400 and report.partitions == 4


def test_out_of_the_box(spark):
    X, y = field(4000)
    order = np.argsort(X[:, 0])  # every partition a region of its own
    rows = table(spark, cut(X[order], y[order], 4)).withColumn("other", F.lit("text"))
    model, report = ample.spark.fit(rows, "t", columns=["a", "b"], pilot_rows=800)
    X_new, y_new = field(500, seed=5)
    assert report.rows == model.rows_seen == 4000 and report.pilot_rows == 800 and report.partitions == 4
    assert ample.rmse(y_new, model.predict(X_new).mean) < 0.115
    assert model.observe(X_new, y_new).rows_seen == 4500


def test_predictions_are_the_local_models(spark, pilot):
    X, y = field(70)
    rows = table(spark, cut(X, y, 3)).withColumnRenamed("b", "b.c")
    for observation in (False, True):
        answer = ample.spark.predict(pilot, rows, columns=["a", "b.c"], observation=observation)
        assert answer.columns == ["a", "b.c", "t", "mean", "std"]
        here = answer.toPandas()
        expected = pilot.predict(here[["a", "b.c"]].to_numpy(), observation=observation)
        assert np.array_equal(here["mean"], expected.mean) and np.array_equal(here["std"], expected.std)
    column = ample.spark.predict_udf(pilot)(F.col("a"), F.col("t") * 2)
    here = rows.select("a", "t", column.alias("p")).select("a", "t", "p.mean").toPandas()
    assert np.array_equal(here["mean"], pilot.predict(np.column_stack([here["a"], 2 * here["t"]])).mean)


def refused(message, *arguments, error=ValueError, **options):
    with pytest.raises(error) as caught:
        ample.spark.fit(*arguments, **options)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_bad_input_is_refused_in_one_line(spark, pilot):
    rows = table(spark, cut(*field(50), 2))
    refused("there is no column 'z', only 'a', 'b', 't'", rows, "z")
    refused("there is no column 'z'", rows, "t", columns=["a", "z"])
    refused("y is a Column", rows, rows.t, error=TypeError)
    refused("column 's' holds string", rows.withColumn("s", F.lit("x")), "t")
    refused("column 's' holds date", rows.withColumn("s", F.current_date()), "t")
    refused("partition 0, row 0: column 'a' is nan, but must be finite", rows.withColumn("a", F.lit(None).cast("double")), "t")
    refused("partition 0, row 0: column 'b' is -inf, but must be finite", rows.withColumn("b", F.lit(-np.inf)), "t")
    refused("no partition has a row", rows.where("a > 9"), "t")
    refused("no partition has a row", rows.where("a > 9"), "t", pilot=pilot)
    refused("fan_in is 1", rows, "t", fan_in=1)
    with pytest.raises(ValueError, match="1 columns are given, but the model has 2 inputs"):
        ample.spark.predict(pilot, rows, columns=["a"])
    with pytest.raises(ValueError, match="has a column 'mean' already"):
        ample.spark.predict(pilot, rows.withColumn("mean", F.lit(1.0)), columns=["a", "b"])


def test_a_bad_row_is_named_where_it_lies(spark, pilot):
    X, y = field(50)
    y[45] = np.nan
    with pytest.raises(Exception, match="partition 1, row 20: column 't' is nan, but must be finite"):
        ample.spark.fit(table(spark, cut(X, y, 2)), "t", pilot=pilot)


def test_a_partition_streams_through_its_task():
    held = []

    def batches():
        for i in range(20):
            X, y = field(100, seed=i)
            held.append(i)
            yield pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "t": y})

    pieces = ample.spark._pieces(batches(), 0)
    for taken, batch in enumerate(_cluster.cut(pieces, 250), start=1):
        assert len(batch[1]) == 250
        assert len(held) == -(-250 * taken // 100)  # no further than the batch asks


def test_the_example_of_the_guide(spark, tmp_path, monkeypatch):
    page = Path(__file__).resolve().parents[2] / "docs" / "cluster.md"
    (example,) = re.findall(r"^```python\n(import ample\.spark\n.*?)^```$", page.read_text(encoding="utf-8"), re.M | re.S)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(example, names)
    assert ample.load("height.ample").rows_seen == names["report"].rows == 8000
    answers = names["answers"].toPandas()
    assert np.abs(answers["mean"] - answers["height"]).max() < 0.01
    intervals = names["with_intervals"].toPandas()
    assert ((intervals["low"] < answers["height"]) & (answers["height"] < intervals["high"])).mean() > 0.9


def test_without_spark_it_says_what_to_install():
    code = "import sys; sys.modules['pyspark'] = None; import ample.spark"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.strip().endswith("pip install 'ample-gp[spark]'")
