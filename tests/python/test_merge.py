"""Models that learnt apart, as one: the bindings, and the worked example."""

import importlib.util
import pickle
from pathlib import Path

import numpy as np
import pytest

import ample

EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet.py"


@pytest.fixture
def data():
    rng = np.random.default_rng(4)
    X = rng.uniform(-3, 3, size=(600, 2))
    return X, np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(600)


def shards_of(data, count=3, **options):
    X, y = data
    pilot = ample.ContinualGP(ample.Matern52(), standardize=True)
    pilot.observe(X[:150], y[:150])
    shards = [ample.empty_like(pilot, **options) for _ in range(count)]
    for i, shard in enumerate(shards):
        assert shard.rows_seen == 0
        shard.observe(X[i::count], y[i::count])
    return pilot, shards


def test_shards_become_one_model_that_goes_on(data):
    X, y = data
    pilot, shards = shards_of(data, fixed_hyperparameters=True)
    assert shards[0].kernel == pilot.kernel
    # As they come from elsewhere.
    model, report = ample.merge(pickle.loads(pickle.dumps(shards)))
    assert (model.rows_seen, report.rows, report.models) == (600, 600, 3)
    assert report.carried_nats == 0.0 and report.pruned_nats <= report.allowed_nats
    assert report.inducing == model.size < report.inducing_before == sum(s.size for s in shards)
    truth = np.sin(X[:, 0]) * X[:, 1]
    error = ample.rmse(truth, model.predict(X).mean)
    assert error < min(ample.rmse(truth, s.predict(X).mean) for s in shards)
    assert ample.rmse(truth, np.zeros(600)) > 5 * error
    model.observe(X[:10], y[:10])
    assert model.rows_seen == 610 and shards[0].rows_seen == 200
    same = pickle.loads(pickle.dumps(report))
    assert same.as_dict() == report.as_dict()


def test_hyperparameters_are_the_largest_models_given_or_fitted(data):
    _, shards = shards_of(data)
    shards[1].observe(data[0][:1], data[1][:1])
    usual, report = ample.merge(iter(shards))
    assert report.largest == 1 and usual.kernel == shards[1].kernel and not report.fitted
    given, _ = ample.merge(shards, kernel="matern52(1.5, 2)", noise_variance=0.02)
    assert given.kernel == ample.Matern52(1.5, 2) and given.noise_variance == 0.02
    fitted, report = ample.merge(shards, fit=True, nats=0)
    assert report.fitted and report.bound > ample.merge(shards, nats=0)[1].bound
    small, report = ample.merge(shards, max_inducing=7)
    assert small.size == 7 and report.pruned_nats > report.allowed_nats


def test_estimators_are_merged_too(data):
    sklearn = pytest.importorskip("sklearn")
    assert sklearn
    X, y = data
    scaling = ample.Scaling.from_data(X, y)
    first, second = (
        ample.ContinualGPRegressor("matern52", standardize=scaling).fit(X[i::2], y[i::2]) for i in range(2)
    )
    online = ample.OnlineGPRegressor("matern52", standardize=scaling, batch_size=10)
    for x, target in zip(X[:10], y[:10], strict=True):
        online.learn_one(dict(enumerate(x)), target)
    model, report = ample.merge([first, second, online])
    assert model.rows_seen == 610 and report.rows_learnt == 0
    with pytest.raises(TypeError, match="model 2 is a OnlineGPRegressor, but must be a ContinualGP or an est"):
        ample.merge([first, ample.OnlineGPRegressor()])


def test_refusals_say_which_and_what(data):
    X, y = data
    _, shards = shards_of(data)
    with pytest.raises(ValueError, match="merge: no models are given"):
        ample.merge([])
    with pytest.raises(ValueError, match="merge: model 2 is model 1 again; its rows would count twice"):
        ample.merge([shards[0], shards[0]])
    other = ample.ContinualGP(ample.Matern52(), standardize=True)
    other.observe(X[:50], y[:50])
    with pytest.raises(ValueError, match="merge: model 2 scales input 0 by mean .*; begin all of them like one pilot"):
        ample.merge([shards[0], other])
    with pytest.raises(ValueError, match="nats is -1, but must be 0 or more"):
        ample.merge(shards, nats=-1)
    with pytest.raises(ValueError, match="the pilot has seen 0 rows"):
        ample.empty_like(ample.ContinualGP())


def test_a_selection_method_in_python_goes_along(data):
    class EveryFifth:
        name = "every-fifth"

        def select(self, problem):
            return np.vstack([problem.old.Z, problem.X[::5]])

    X, y = data
    models = []
    for i in range(2):
        gp = ample.ContinualGP(ample.Matern52(), selection=EveryFifth())
        gp.observe(X[i:200:2], y[i:200:2])
        models.append(gp)
    model, _ = ample.merge(models, nats=0)
    assert model.size == 40 and isinstance(model.selection, EveryFifth)
    model.observe(X[200:250], y[200:250])
    assert model.size == 50


def test_the_fleets_map_is_as_good_as_that_of_one_stream():
    """On the paper's magnetic paths; skipped without them."""
    spec = importlib.util.spec_from_file_location("fleet", EXAMPLE)
    fleet = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fleet)
    if not (fleet.data_folder() / "magnetic").is_dir():
        pytest.skip(f"no data in {fleet.data_folder()}; set AMPLE_DATA")
    rows = [fleet.compare(left_out) for left_out in fleet.PATHS]
    rmse = {name: np.mean([row[name][0] for row in rows]) for name in rows[0]}
    assert rmse["merged"] <= 1.05 * rmse["one stream"]
    assert rmse["merged"] < 0.6 * rmse["best robot"]
