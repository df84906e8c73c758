"""The River-style model: River's own checks, and the promises of its docstring."""

import datetime

import numpy as np
import pytest
from river import checks, metrics, preprocessing

import ample


def check_model():
    return ample.OnlineGPRegressor(batch_size=20)


@pytest.mark.parametrize("check", list(checks.yield_checks(check_model())), ids=lambda c: c.__name__)
def test_contract_of_river(check):
    check(check_model())


def stream(n, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        x = {"a": rng.uniform(-2, 2), "b": rng.uniform(-2, 2)}
        yield x, np.sin(2 * x["a"]) + x["b"]


def test_learns_in_a_pipeline():
    model = preprocessing.StandardScaler() | ample.OnlineGPRegressor(batch_size=25)
    late = metrics.MAE()
    for i, (x, y) in enumerate(stream(300)):
        if i >= 200:
            late.update(y, model.predict_one(x))
        model.learn_one(x, y)
    assert late.get() < 0.1


def test_what_is_not_a_number_blocks_nothing():
    model, clean = ample.OnlineGPRegressor(batch_size=50), ample.OnlineGPRegressor(batch_size=50)
    for i, (x, y) in enumerate(stream(200)):
        if i in (20, 120):
            for bad in (np.nan, np.inf, -1e301):
                with pytest.raises(ValueError, match="learn_one: y is"):
                    model.learn_one(x, bad)
            with pytest.raises(ValueError, match="learn_one: a is inf"):
                model.learn_one({**x, "a": np.inf}, y)
        model.learn_one(x, y)
        clean.learn_one(x, y)
    assert model.gp.rows_seen == 200
    query = {"a": 0.3, "b": 0.1}
    assert model.predict_one(query) == clean.predict_one(query)
    # A feature that is not a number is missing.
    model.learn_one({"a": np.nan, "b": 0.1}, 0.5)
    clean.learn_one({"b": 0.1}, 0.5)
    model.flush()
    clean.flush()
    assert model.predict_one(query) == clean.predict_one(query)
    assert model.predict_one({"a": np.nan, "b": 0.1}) == clean.predict_one({"b": 0.1})


def test_the_buffer_counts_only_once_it_is_flushed():
    model = ample.OnlineGPRegressor(batch_size=50)
    observations = list(stream(70))
    for x, y in observations[:49]:
        model.learn_one(x, y)
    assert model.gp is None
    assert model.predict_one({}) == pytest.approx(np.mean([y for _, y in observations[:49]]))
    for x, y in observations[49:69]:
        model.learn_one(x, y)
    assert model.gp.rows_seen == 50
    before = model.predict_one({"a": 0.3, "b": 0.1})
    model.learn_one(*observations[69])
    assert model.predict_one({"a": 0.3, "b": 0.1}) == before
    model.flush()
    assert model.gp.rows_seen == 70
    assert model.predict_one({"a": 0.3, "b": 0.1}) != before
    mean, std = model.predict_distribution_one({"a": 0.3, "b": 0.1})
    assert mean == model.predict_one({"a": 0.3, "b": 0.1}) and std > 0


def test_missing_features_take_their_mean_and_new_ones_are_ignored():
    model = ample.OnlineGPRegressor(batch_size=50)
    observations = list(stream(50))
    for x, y in observations:
        model.learn_one(x, y)
    mean = float(np.mean([x["b"] for x, _ in observations]))
    expected = model.predict_one({"a": 1.0, "b": mean})
    assert model.predict_one({"a": 1.0}) == expected
    assert model.predict_one({"a": 1.0, "b": mean, "c": 1e9}) == expected
    assert model.predict_one({"a": 1.0, "b": mean + 1}) != expected


def test_changed_parameters_are_refused():
    model = ample.OnlineGPRegressor(batch_size=20)
    observations = list(stream(60))
    for x, y in observations[:30]:
        model.learn_one(x, y)
    model.delta = 0.5
    with pytest.raises(ValueError, match="^delta was None .* 0.5 now"):
        model.flush()
    model.delta = None
    model.flush()
    assert model.gp.rows_seen == 30


def test_parameters_reach_the_model():
    model = ample.OnlineGPRegressor(
        delta=0.001, max_inducing=5, fixed_hyperparameters=True, kernel="se(lengthscale=0.5)", batch_size=20
    )
    for x, y in stream(40):
        model.learn_one(x, y)
    assert model.gp.size == 5 and repr(model.gp.kernel) == "se(variance=1, lengthscale=0.5)"
    with pytest.raises(ValueError, match="delta is .*only for VIPS"):
        refused = ample.OnlineGPRegressor(delta=0.1, selection=ample.Oips())
        refused.learn_one({"a": 1.0}, 1.0)
        refused.flush()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ample.NumericalError])
def test_what_interrupts_learning_keeps_the_buffer(error):
    class Failing:
        name = "failing"
        fails = True

        def select(self, problem):
            if self.fails:
                raise error
            return problem.X[:3]

    method = Failing()
    model = ample.OnlineGPRegressor("se", selection=method, batch_size=10)
    observations = list(stream(10))
    for x, y in observations[:9]:
        model.learn_one(x, y)
    with pytest.raises(error):
        model.learn_one(*observations[9])
    assert model.gp is None
    method.fails = False
    model.flush()
    assert model.gp.rows_seen == 10


def test_what_is_not_a_number_is_refused_by_name():
    model = ample.OnlineGPRegressor()
    with pytest.raises(TypeError, match="learn_one: day is datetime.*must be a number"):
        model.learn_one({"day": datetime.datetime(2026, 1, 1)}, 1.0)
    with pytest.raises(TypeError, match="learn_one: y is 'high'"):
        model.learn_one({"day": 1}, "high")
