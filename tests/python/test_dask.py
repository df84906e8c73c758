"""Learning on Dask: the same model however the work was spread, and whatever happened to a worker."""

import os
import pickle
import signal
import weakref
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pytest

import ample
import ample.dask
from ample import _cluster


@pytest.fixture(scope="module")
def client():
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "60s"}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


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


def arrays(X, y, chunks):
    return da.from_array(X, chunks=(chunks, X.shape[1])), da.from_array(y, chunks=chunks)


QUERIES = np.random.default_rng(1).uniform(-2.5, 2.5, size=(50, 2))


def close(model, other, digits=8):
    """Whether two models say the same, but for rounding."""
    a, b = (m.predict(QUERIES) for m in (model, other))
    error = 10.0**-digits
    return np.allclose(a.mean, b.mean, rtol=0, atol=error) and np.allclose(a.variance, b.variance, rtol=0, atol=error)


def merged_here(parts, pilot):
    """The same without a cluster, all partitions at once."""
    models = []
    for X, y in parts:
        gp = ample.empty_like(pilot, fixed_hyperparameters=True)
        gp.observe(X, y)
        models.append(gp)
    return ample.merge(models, nats=0)[0]


def exactly(client, X, y, pilot, **options):
    return ample.dask.fit(X, y, pilot=pilot, nats_per_row=0, client=client, progress=False, **options)


# --- The same model ------------------------------------------------------------------------------


def test_is_the_merge_of_its_partitions_in_any_tree_and_order(client, pilot):
    X, y = field(900)
    parts = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 900, 100)]
    expected = merged_here(parts, pilot)
    for fan_in in (2, 4, 9):
        model, report = exactly(client, *arrays(X, y, 100), pilot, fan_in=fan_in)
        assert close(model, expected) and model.rows_seen == 900
        assert report.depth == {2: 4, 4: 2, 9: 1}[fan_in] and report.partitions == 9 and report.nats == 0
    order = np.random.default_rng(3).permutation(9)
    other = exactly(client, *arrays(*(np.concatenate([p[k] for p in (parts[i] for i in order)]) for k in (0, 1)), 100), pilot)
    assert close(other[0], expected)
    assert not close(merged_here(parts[:-1], pilot), expected)  # a partition less is seen


def test_the_number_of_workers_changes_nothing(client, pilot):
    X, y = field(600)
    two, _ = exactly(client, *arrays(X, y, 60), pilot)
    with (
        distributed.LocalCluster(n_workers=1, processes=False, threads_per_worker=3, dashboard_address=":0") as cluster,
        distributed.Client(cluster, set_as_default=False) as threads,
    ):
        before = ample.threads()
        one, _ = exactly(threads, *arrays(X, y, 60), pilot)
        assert ample.threads() == before
    assert one.to_bytes() == two.to_bytes()


def test_a_table_and_arrays_give_the_same(client, pilot):
    X, y = field(500)
    frame = pd.DataFrame({"a": X[:, 0], "noise": 0.0, "t": y, "b": X[:, 1]})
    table = dd.from_pandas(frame, npartitions=5)
    model, report = exactly(client, table, "t", pilot, columns=["a", "b"])
    other, _ = exactly(client, *arrays(X, y, 100), pilot)
    assert report.partitions == 5
    assert model.to_bytes() == other.to_bytes()


def test_a_lost_worker_changes_nothing(client, pilot, tmp_path):
    X, y = field(800)
    lost = tmp_path / "lost"

    @dask.delayed
    def load(i, kill):
        if kill and i == 5 and not lost.exists():
            lost.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return pd.DataFrame({"a": X[i::8, 0], "b": X[i::8, 1], "t": y[i::8]})

    def learn(kill):
        parts = [load(i, kill) for i in range(8)]
        meta = pd.DataFrame({"a": [0.0], "b": [0.0], "t": [0.0]}).iloc[:0]
        return exactly(client, dd.from_delayed(parts, meta=meta, verify_meta=False), "t", pilot, batch_size=50)

    undisturbed, _ = learn(False)
    assert not lost.exists()
    model, report = learn(True)
    assert lost.exists()
    assert model.to_bytes() == undisturbed.to_bytes()
    assert model.rows_seen == report.rows == 800 and report.partitions == 8


# --- Partitions of all kinds ---------------------------------------------------------------------


def test_empty_and_tiny_partitions(client, pilot):
    X, y = field(230)
    X, y = X[np.argsort(X[:, 0])], y[np.argsort(X[:, 0])]
    cuts = (1, 2, 0, 3, 100, 0, 0, 124)
    parts = np.split(np.arange(230), np.cumsum(cuts)[:-1])
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "t": y})
    table = dd.from_map(lambda rows: frame.iloc[rows], parts, meta=frame.iloc[:0])
    model, report = exactly(client, table, "t", pilot)
    assert report.partitions == 5 and report.rows == 230
    assert close(model, merged_here([(X[p], y[p]) for p in parts if len(p)], pilot))


def test_no_rows_at_all_are_refused(client, pilot):
    frame = pd.DataFrame({"a": [1.0, 2.0], "t": [0.0, 1.0]})
    table = dd.from_pandas(frame, npartitions=2)
    for given in (pilot, None):
        with pytest.raises(ValueError, match="^ample.dask.fit: no partition has a row"):
            exactly(client, table[table.a > 5], "t", given)


def test_a_source_that_changes_between_passes_is_noticed():
    shard = _cluster.learn([field(50)], pickle.dumps(_learnt()), 50)
    sample = _cluster.Sample.of(49, *field(10), 10, [0])
    with pytest.raises(RuntimeError, match="had 49 rows when they were sampled, but 50 when they were learnt"):
        _cluster.result("fit", shard, sample)


def _learnt():
    gp = ample.ContinualGP(refit_every=0)
    gp.observe(*field(20))
    return gp


# --- The pilot -----------------------------------------------------------------------------------


def test_out_of_the_box(client):
    X, y = field(6000)
    order = np.argsort(X[:, 0])  # every partition a region of its own
    model, report = ample.dask.fit(*arrays(X[order], y[order], 1500), pilot_rows=800, client=client, progress=False)
    X_new, y_new = field(500, seed=5)
    assert report.rows == model.rows_seen == 6000 and report.pilot_rows == 800
    assert report.inducing == model.size < report.inducing_before
    assert 0 < report.nats <= 6 * report.depth
    assert ample.rmse(y_new, model.predict(X_new).mean) < 0.115
    assert ample.coverage(y_new, model.predict(X_new, observation=True), 0.95) > 0.9


def test_the_sample_is_of_all_partitions():
    parts = [(np.full((n, 1), float(i)), np.zeros(n)) for i, n in enumerate((1000, 0, 3000, 10))]
    samples = [_cluster.Sample.of(len(y), X, y, 400, [0, i]) for i, (X, y) in enumerate(parts)]
    joined = _cluster.join([_cluster.join(samples[:2], 400), _cluster.join(samples[2:], 400)], 400)
    assert joined.rows == 4010 and len(joined.y) == 400
    shares = [(joined.X == i).mean() for i in range(3)]
    assert abs(shares[0] - 0.25) < 0.07 and shares[1] == 0 and abs(shares[2] - 0.75) < 0.07


def test_a_pilot_that_has_seen_nothing_says_how_to_learn(client):
    X, y = field(400)
    options = ample.ContinualGP(ample.Matern32(), selection=ample.Vips(0.05, max_inducing=25), standardize=True)
    model, report = ample.dask.fit(*arrays(X, y, 100), pilot=options, pilot_rows=200, client=client, progress=False)
    assert report.kernel.startswith("matern32") and model.size <= 25 and options.rows_seen == 0
    with pytest.raises(ValueError, match="begun"):
        waiting = ample.ContinualGP(warm_up=100)
        waiting.observe(X[:5], y[:5])
        exactly(client, *arrays(X, y, 100), waiting)


def test_the_last_merge_fits_if_asked(client):
    X, y = field(1200)
    wrong = ample.ContinualGP(ample.SquaredExponential(lengthscale=0.2), noise_variance=0.01, refit_every=0)
    wrong.observe(*field(50, seed=9))
    held, _ = exactly(client, *arrays(X, y, 300), wrong)
    fitted, _ = exactly(client, *arrays(X, y, 300), wrong, fit=True)
    lengthscales = [model.kernel.parameters[1].value for model in (held, fitted)]
    assert lengthscales[0] == 0.2 and lengthscales[1] > 0.6
    X_new, y_new = field(300, seed=5)
    nlpd = [ample.nlpd(y_new, m.predict(X_new, observation=True)) for m in (held, fitted)]
    assert nlpd[1] < nlpd[0] - 0.1


def test_the_model_goes_on(client, tmp_path):
    X, y = field(1500)
    model, _ = ample.dask.fit(*arrays(X, y, 500), pilot_rows=500, client=client, progress=False)
    model.save(str(tmp_path / "model.ample"))
    again = ample.load(str(tmp_path / "model.ample"))
    assert pickle.loads(pickle.dumps(model)).to_bytes() == model.to_bytes() == again.to_bytes()
    for gp in (model, again):
        reports = [gp.observe(*field(500, seed=s)) for s in (6, 7, 8)]
    assert again.rows_seen == 3000
    assert any(r.refitted for r in reports)  # with the pilot's options, which are not to hold θ
    today, _ = ample.dask.fit(*arrays(*field(600, seed=8), 300), pilot=model, client=client, progress=False)
    assert ample.merge([model, today])[0].rows_seen == 3600 or model.kernel != today.kernel


# --- Predictions ---------------------------------------------------------------------------------


def test_predictions_are_the_local_models(client, pilot):
    X, _ = field(70)
    for observation in (False, True):
        expected = pilot.predict(X, observation=observation)
        mean, std = ample.dask.predict(pilot, da.from_array(X, chunks=(30, 1)), observation=observation).T
        assert np.array_equal(mean.compute(), expected.mean) and np.array_equal(std.compute(), expected.std)
        frame = pd.DataFrame({"b": X[:, 1], "other": "text", "a": X[:, 0]}, index=np.arange(100, 170))
        table = dd.from_pandas(frame, npartitions=3)
        answer = ample.dask.predict(pilot, table, columns=["a", "b"], observation=observation)
        assert list(answer.columns) == ["mean", "std"]
        here = answer.compute()
        assert np.array_equal(here.index, frame.index)
        assert np.array_equal(here["mean"], expected.mean) and np.array_equal(here["std"], expected.std)
    nothing = ample.dask.predict(pilot, table[table.a > 9], columns=["a", "b"]).compute()
    assert len(nothing) == 0 and list(nothing.columns) == ["mean", "std"]


# --- Bounded memory, and what the scheduler sees -------------------------------------------------


def test_a_partition_is_cut_into_batches_and_not_held():
    X, y = field(1000)
    alive = []

    def pieces():
        for i in range(0, 1000, 70):
            piece = X[i : i + 70].copy(), y[i : i + 70].copy()
            alive.append(weakref.ref(piece[0]))
            assert sum(ref() is not None for ref in alive) <= 200 / 70 + 2
            yield piece
            del piece

    batches = [(len(b), Xb, b) for Xb, b in _cluster.cut(pieces(), 200)]
    assert [n for n, _, _ in batches] == [200] * 5
    assert np.array_equal(np.concatenate([b for _, _, b in batches]), y)
    assert np.array_equal(np.concatenate([Xb for _, Xb, _ in batches]), X)


def test_no_task_depends_on_much(pilot):
    X, y = arrays(*field(4000), 100)
    partitions = ample.dask._partitions(X, y, None)
    merging = _cluster.Merging(4, 0.0, None, False, pickle.dumps(pilot))
    root = ample.dask._root_task(partitions, 50, merging)
    graph = dict(root.__dask_graph__())
    kinds = {}
    for key, task in graph.items():
        name = dask.utils.key_split(key)
        kinds.setdefault(name, []).append(len(getattr(task, "dependencies", ())))
    assert len(kinds["ample-learn"]) == 40 and set(kinds["ample-learn"]) == {3}  # X, y and the pilot
    assert len(kinds["ample-merge"]) == 10 + 3 + 1 and max(kinds["ample-merge"]) == 4
    assert len(kinds["ample-pilot"]) == 1


# --- Bad input -----------------------------------------------------------------------------------


def refused(client, message, X, y, error=ValueError, **options):
    with pytest.raises(error) as caught:
        ample.dask.fit(X, y, client=client, progress=False, **options)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_rows_that_are_not_finite_are_refused_by_place(client, pilot):
    X, y = field(300)
    for given in (None, pilot):
        bad = X.copy()
        bad[137, 1] = np.nan
        refused(client, "partition 1, row 37: column 1 of X is nan", *arrays(bad, y, 100), pilot=given)
        bad = y.copy()
        bad[299] = np.inf
        refused(client, "partition 2, row 99: y is inf", *arrays(X, bad, 100), pilot=given)
        frame = pd.DataFrame({"a": X[:, 0], "t": y}).convert_dtypes()
        frame.loc[5, "a"] = pd.NA
        refused(client, "partition 0, row 5: column 'a' is nan", dd.from_pandas(frame, npartitions=2), "t")


def test_what_cannot_be_learnt_is_refused_before_anything_runs(client):
    X, y = arrays(*field(100), 50)
    frame = pd.DataFrame({"a": [1.0, 2.0], "s": ["u", "v"], "d": pd.to_datetime(["2026-01-01", "2026-01-02"]), "t": [0.0, 1.0]})
    table = dd.from_pandas(frame, npartitions=1)
    refused(client, "there is no column 'z', only 'a', 's', 'd', 't'", table, "z")
    refused(client, "there is no column 'b'", table, "t", columns=["b"])
    refused(client, "column 's' holds", table, "t")
    refused(client, "column 'd' holds datetime64", table, "t", columns=["a", "d"])
    refused(client, "'t' is the target", table, "t", columns=["a", "t"])
    refused(client, "there are no inputs", table[["t"]], "t")
    refused(client, "y is a Series", table, table["t"], error=TypeError)
    refused(client, "X is a ndarray", np.zeros((3, 1)), y, error=TypeError)
    refused(client, "X has 1 dimensions, but must have 2", y, y)
    refused(client, "X has 100 rows and y has 50", X, y[:50])
    refused(client, "X holds", X.astype(str), y)
    refused(client, "columns are for a DataFrame", X, y, columns=["a"])
    for option, value in (("pilot_rows", 0), ("batch_size", 0), ("fan_in", 1), ("nats_per_row", -1.0), ("max_inducing", 0)):
        refused(client, f"{option} is {value}", X, y, **{option: value})


def test_predictions_refuse_other_inputs(pilot):
    with pytest.raises(ValueError, match="X has 3 columns, but the model has 2 inputs"):
        ample.dask.predict(pilot, da.zeros((5, 3)))
    with pytest.raises(ValueError, match="there is no column 'b'"):
        ample.dask.predict(pilot, dd.from_pandas(pd.DataFrame({"a": [1.0]}), npartitions=1), columns=["a", "b"])
    with pytest.raises(TypeError, match="X is a ndarray"):
        ample.dask.predict(pilot, np.zeros((5, 2)))


def test_without_a_cluster_it_says_what_is_missing():
    code = "import dask.array as da, ample.dask; ample.dask.fit(da.zeros((4, 1)), da.zeros(4))"
    assert "there is no cluster; make a distributed.Client first" in _last_line(code)


def test_without_dask_it_says_what_to_install():
    code = "import sys; sys.modules['distributed'] = None; import ample.dask"
    assert _last_line(code).endswith("pip install 'ample-gp[dask]'")


def _last_line(code):
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parent)
    assert done.returncode == 1
    return done.stderr.strip().splitlines()[-1]
