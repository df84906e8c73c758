"""The scikit-learn estimator: its contract, and what users build around it."""

import copy
import pickle

import numpy as np
import pandas
import polars
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import ample


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    X = rng.uniform(-3, 3, size=(240, 2))
    return X, np.sin(X[:, 0]) * X[:, 1] + 0.05 * rng.standard_normal(240)


@parametrize_with_checks([ample.ContinualGPRegressor()])
def test_contract_of_scikit_learn(estimator, check):
    check(estimator)


def test_fit_is_observing_the_batches_in_turn(data):
    X, y = data
    model = ample.ContinualGPRegressor(batch_size=100).fit(X, y)
    seed = model.gp_  # the estimator's own model, built by hand below
    gp = ample.ContinualGP(
        ample.SquaredExponential(lengthscale=np.sqrt(2)), selection=ample.Vips(0.035), standardize=True
    )
    for start in (0, 100, 200):
        gp.observe(X[start : start + 100], y[start : start + 100])
    np.testing.assert_array_equal(model.predict(X), gp.predict(X).mean)
    assert [r.rows for r in model.history_] == [100, 100, 40]
    assert seed.rows_seen == 240


def test_partial_fit_goes_on_and_fit_forgets(data):
    X, y = data
    model = ample.ContinualGPRegressor(batch_size=120).fit(X, y)
    parts = ample.ContinualGPRegressor().partial_fit(X[:120], y[:120]).partial_fit(X[120:], y[120:])
    np.testing.assert_array_equal(model.predict(X), parts.predict(X))
    parts.fit(X[:50], y[:50])
    assert parts.gp_.rows_seen == 50 and len(parts.history_) == 1


def test_deviation_and_covariance_agree(data):
    X, y = data
    model = ample.ContinualGPRegressor().fit(X, y)
    mean, std = model.predict(X[:20], return_std=True)
    joint_mean, covariance = model.predict(X[:20], return_cov=True)
    np.testing.assert_allclose(mean, joint_mean, rtol=1e-9)
    np.testing.assert_allclose(std**2, np.diag(covariance), rtol=1e-6)
    _, noisy = model.predict(X[:20], return_std=True, observation=True)
    noise = model.gp_.noise_variance * model.gp_.scaling.target_scale**2
    np.testing.assert_allclose(noisy**2 - std**2, noise, rtol=1e-9)
    with pytest.raises(ValueError, match="at most one"):
        model.predict(X, return_std=True, return_cov=True)


def test_samples_have_the_predicted_moments(data):
    X, y = data
    model = ample.ContinualGPRegressor().fit(X, y)
    samples = model.sample_y(X[:5], n_samples=4000, random_state=3)
    mean, std = model.predict(X[:5], return_std=True)
    assert samples.shape == (5, 4000)
    np.testing.assert_allclose(samples.mean(axis=1), mean, atol=5 * std.max() / np.sqrt(4000))
    np.testing.assert_allclose(samples.std(axis=1), std, rtol=0.1)
    np.testing.assert_array_equal(samples, model.sample_y(X[:5], 4000, random_state=3))
    assert not np.array_equal(samples, model.sample_y(X[:5], 4000, random_state=4))


@pytest.mark.parametrize("duplicate", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy])
def test_a_copy_goes_on_with_the_same_bits(data, duplicate):
    X, y = data
    model = ample.ContinualGPRegressor().fit(X[:150], y[:150])
    other = duplicate(model)
    assert [r.as_dict() for r in other.history_] == [r.as_dict() for r in model.history_]
    model.partial_fit(X[150:], y[150:])
    assert other.gp_.rows_seen == 150
    other.partial_fit(X[150:], y[150:])
    np.testing.assert_array_equal(model.predict(X), other.predict(X))


def test_clone_keeps_parameters_and_drops_what_was_learnt(data):
    kernel = ample.Matern52(lengthscale=ample.Positive([1.0, 2.0], lower=0.5))
    model = ample.ContinualGPRegressor(kernel, selection=ample.Oips(0.8), batch_size=7).fit(*data)
    fresh = clone(model)
    assert fresh.kernel == kernel and fresh.selection == ample.Oips(0.8) and fresh.batch_size == 7
    assert not hasattr(fresh, "gp_")
    assert fresh.set_params(delta=0.5).get_params()["delta"] == 0.5


def test_grid_search_and_pipeline(data):
    X, y = data
    pipeline = make_pipeline(
        StandardScaler(), PolynomialFeatures(1, include_bias=False), ample.ContinualGPRegressor()
    )
    search = GridSearchCV(
        pipeline,
        {
            "continualgpregressor__delta": [0.05, 0.9],
            "continualgpregressor__kernel": ["se()", ample.Matern32()],
        },
        cv=2,
    ).fit(X, y)
    assert search.best_score_ > 0.9
    assert search.best_params_["continualgpregressor__delta"] == 0.05
    assert cross_val_score(pipeline, X, y, cv=2).min() > 0.8


@pytest.mark.parametrize("frame", [pandas.DataFrame, polars.DataFrame])
def test_data_frames_give_feature_names(data, frame):
    X, y = data
    table = frame({"a": X[:, 0], "b": X[:, 1]})
    model = ample.ContinualGPRegressor().fit(table, y)
    assert list(model.feature_names_in_) == ["a", "b"]
    np.testing.assert_array_equal(model.predict(table), model.gp_.predict(X).mean)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame({"b": X[:, 1], "a": X[:, 0]}))


def test_history_as_a_data_frame(data):
    model = ample.ContinualGPRegressor(batch_size=100).fit(*data)
    history = model.history_frame()
    assert list(history.index) == [1, 2, 3]
    assert list(history["inducing"]) == [r.inducing for r in model.history_]


def test_a_failed_fit_leaves_the_estimator_as_it_was(data):
    X, y = data
    model = ample.ContinualGPRegressor().fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError):
        model.set_params(kernel="nonsense(").fit(X, y)
    np.testing.assert_array_equal(model.predict(X), before)
    with pytest.raises(ValueError, match="batch_size"):
        ample.ContinualGPRegressor(batch_size=0).fit(X, y)
