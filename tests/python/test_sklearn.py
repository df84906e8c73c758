"""The scikit-learn estimator: its contract, and what users build around it."""

import copy
import pickle
import types
import warnings

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
from ample._warnings import warn


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    X = rng.uniform(-3, 3, size=(240, 2))
    return X, np.sin(X[:, 0]) * X[:, 1] + 0.05 * rng.standard_normal(240)


SCALING = "weights do not enter the scaling, and repeated rows are so many candidates for points"


@parametrize_with_checks(
    [ample.ContinualGPRegressor()],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": SCALING,
        "check_sample_weight_equivalence_on_sparse_data": SCALING,
    },
)
def test_contract_of_scikit_learn(estimator, check):
    check(estimator)


def test_fit_is_observing_the_batches_in_turn(data):
    X, y = data
    kernel = ample.SquaredExponential(lengthscale=np.sqrt(2))
    model = ample.ContinualGPRegressor(kernel, batch_size=100).fit(X, y)
    seed = model.gp_  # the estimator's own model, built by hand below
    gp = ample.ContinualGP(
        kernel, selection=ample.Vips(0.035), standardize=True
    )
    for start in (0, 100, 200):
        gp.observe(X[start : start + 100], y[start : start + 100])
    np.testing.assert_array_equal(model.predict(X), gp.predict(X).mean)
    assert [r.rows for r in model.history_] == [100, 100, 40]
    assert seed.rows_seen == 240


def test_partial_fit_goes_on_and_fit_forgets(data):
    X, y = data
    model = ample.ContinualGPRegressor(batch_size=120, shuffle=False).fit(X, y)
    parts = ample.ContinualGPRegressor().partial_fit(X[:120], y[:120]).partial_fit(X[120:], y[120:])
    np.testing.assert_array_equal(model.predict(X), parts.predict(X))
    parts.fit(X[:50], y[:50])
    assert parts.gp_.rows_seen == 50 and len(parts.history_) == 1


def test_fit_does_not_depend_on_how_a_table_is_sorted():
    rng = np.random.default_rng(4)
    X = rng.uniform(-2, 2, size=(3000, 3))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.standard_normal(3000)
    test, rows = np.split(np.arange(3000), [300])
    rows = rows[np.argsort(y[rows])]

    model = ample.ContinualGPRegressor().fit(X[rows], y[rows])
    assert np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2)) < 0.12  # the noise is 0.1
    assert min(r.coverage for r in model.history_[1:]) > 0.85
    # Control: in the order of the targets every batch has a level of its own.
    with pytest.warns(ample.AmpleWarning, match="its targets come sorted"):
        model = ample.ContinualGPRegressor(shuffle=False).fit(X[rows], y[rows])
    assert min(r.coverage for r in model.history_[1:]) < 0.8


def test_fit_shuffles_tables_and_no_streams(data):
    X, y = data

    def in_order(**parameters):
        in_turn = ample.ContinualGPRegressor(batch_size=60, **parameters, shuffle=False).fit(X, y)
        model = ample.ContinualGPRegressor(batch_size=60, **parameters).fit(X, y)
        return [r.residuals.tolist() for r in model.history_] == [r.residuals.tolist() for r in in_turn.history_]

    assert not in_order()
    assert in_order(forget="adaptive")
    assert in_order(kernel="se")
    first, again = (ample.ContinualGPRegressor(random_state=3).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.predict(X), again.predict(X))
    weights = np.arange(1.0, 241.0)
    heavy = ample.ContinualGPRegressor("se", shuffle=True, batch_size=240, fixed_hyperparameters=True)
    ordered = ample.ContinualGPRegressor("se", batch_size=240, fixed_hyperparameters=True)
    np.testing.assert_allclose(
        heavy.fit(X, y, sample_weight=weights).predict(X),
        ordered.fit(X, y, sample_weight=weights).predict(X),
        atol=0.05,
    )
    with pytest.raises(ValueError, match="shuffle is True, but must be False or None where time is given"):
        ample.ContinualGPRegressor("se", shuffle=True, forget=ample.Forgetting.after_time(4.0)).fit(X, y, time=np.arange(240))


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


class Failing:
    """Takes a batch's first points; fails, or is interrupted, in the third batch."""

    name = "failing"

    def __init__(self, error):
        self.error, self.calls = error, 0

    def select(self, problem):
        self.calls += 1
        if self.calls == 3:
            raise self.error
        return np.vstack([problem.Z_old.reshape(-1, problem.X.shape[1]), problem.X[:5]])


@pytest.mark.parametrize("error", [KeyboardInterrupt, ample.NumericalError])
def test_what_interrupts_a_fit_leaves_the_old_model_whole(data, error):
    X, y = data
    names = pandas.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    model = ample.ContinualGPRegressor().fit(names, y)
    before = model.predict(names)
    model.set_params(selection=Failing(error), batch_size=20)
    with pytest.raises(error):
        model.fit(X[:, :1], y)
    np.testing.assert_array_equal(model.predict(names), before)
    assert model.n_features_in_ == 2 and list(model.feature_names_in_) == ["a", "b"]
    assert len(model.history_) == 1
    # A fit that succeeds takes all over.
    model.set_params(selection=None).fit(X[:, :1], y)
    assert model.n_features_in_ == 1 and not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("error", [KeyboardInterrupt, ample.NumericalError])
@pytest.mark.parametrize("first", [True, False], ids=["first call", "later call"])
def test_what_interrupts_partial_fit_leaves_whole_batches(data, error, first):
    X, y = data
    method = Failing(error)
    model = ample.ContinualGPRegressor("se", selection=method, batch_size=20)
    if not first:
        method.calls = -1
        model.partial_fit(X[:20], y[:20])
        method.calls = 0
    with pytest.raises(error):
        model.partial_fit(X, y)
    learnt = 40 if first else 60
    assert model.gp_.rows_seen == learnt == sum(report.rows for report in model.history_)
    model.partial_fit(X[40:], y[40:])
    assert model.gp_.rows_seen == learnt + 200


@pytest.mark.parametrize(
    "change",
    [
        {"kernel": "matern32()"},
        {"delta": 0.5},
        {"max_inducing": 3},
        {"selection": ample.Oips()},
        {"noise_variance": ample.Positive(0.2)},
        {"standardize": False},
        {"refit_every": 2},
        {"fixed_hyperparameters": True},
        {"max_evaluations": 3},
        {"random_state": 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_changed_parameters_are_refused_by_partial_fit_and_taken_by_fit(data, change):
    X, y = data
    model = ample.ContinualGPRegressor().fit(X, y)
    before = model.predict(X)
    ((name, old),) = {name: getattr(model, name) for name in change}.items()
    model.set_params(**change)
    with pytest.raises(ValueError, match=f"^{name} was .* when the model was made"):
        model.partial_fit(X, y)
    np.testing.assert_array_equal(model.predict(X), before)
    model.fit(X, y).partial_fit(X[:10], y[:10])
    with pytest.raises(ValueError, match=name):
        model.set_params(**{name: old}).partial_fit(X, y)


def test_equal_parameters_and_those_of_a_call_may_change(data):
    X, y = data
    model = ample.ContinualGPRegressor(ample.Matern32(), noise_variance=ample.Positive(0.2)).fit(X, y)
    model.set_params(kernel=ample.Matern32(), noise_variance=ample.Positive(0.2))
    model.set_params(batch_size=100, history_size=2).partial_fit(X, y)
    assert [report.rows for report in model.history_] == [100, 40]
    for duplicate in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        duplicate.partial_fit(X, y)


@pytest.mark.parametrize("parameter", [{"delta": 0.1}, {"delta": 0.035}, {"max_inducing": 10}])
def test_parameters_of_vips_are_refused_with_another_method(data, parameter):
    (name,) = parameter
    with pytest.raises(ValueError, match=f"{name} is .*only for VIPS.*oips"):
        ample.ContinualGPRegressor(selection=ample.Oips(), **parameter).fit(*data)


def test_without_a_kernel_the_model_is_as_it_comes_out_of_the_box(data):
    X, y = data
    for kernel in (None, "auto"):
        model = ample.ContinualGPRegressor(kernel, shuffle=False).fit(X, y)
        by_hand = ample.ContinualGP(**ample.out_of_the_box())
        by_hand.observe(X, y)
        np.testing.assert_array_equal(model.predict(X), by_hand.predict(X).mean)
        assert model.history_[0].found_kernel
    assert not ample.ContinualGPRegressor("se").fit(X, y).history_[0].found_kernel
    # The setting of one's own goes before.
    assert ample.ContinualGPRegressor(max_inducing=5).fit(X, y).gp_.size == 5


def test_a_fit_ends_at_its_limit_of_seconds(data):
    X, y = data
    with pytest.warns(ample.AmpleWarning, match="the fit ended at its limit of 1e-09 seconds"):
        model = ample.ContinualGPRegressor(max_seconds=1e-9).fit(X, y)
    assert model.gp_.rows_seen == len(X)
    model.set_params(max_seconds=None).partial_fit(X, y)  # may change at any time


def test_budgets(data):
    full = ample.ContinualGPRegressor("se", delta=0.001).fit(*data)
    model = ample.ContinualGPRegressor(
        "se", delta=0.001, max_inducing=12, max_evaluations=4
    ).fit(*data)
    (report,) = model.history_
    assert full.history_[0].inducing > 12 == report.inducing and report.stop == "cap"
    assert full.history_[0].fit.evaluations > 4 == report.fit.evaluations
    assert report.fit.termination == "max_evaluations"


def test_fixed_hyperparameters_stay_and_refitting_begins_with_the_first_batch(data):
    X, y = data
    kernel = ample.Matern52(lengthscale=0.7)
    fixed = ample.ContinualGPRegressor(kernel, fixed_hyperparameters=True).fit(X, y)
    assert fixed.gp_.kernel == kernel and not fixed.history_[0].refitted
    rare = ample.ContinualGPRegressor(kernel, refit_every=3, batch_size=60).fit(X, y)
    assert [report.refitted for report in rare.history_] == [True, False, False, True]
    with pytest.raises(ValueError, match="refit_every is 0, .*fixed_hyperparameters"):
        ample.ContinualGPRegressor(refit_every=0).fit(X, y)


def test_history_is_bounded(data):
    X, y = data
    model = ample.ContinualGPRegressor(batch_size=20, history_size=3).fit(X, y)
    assert [report.batch for report in model.history_] == [10, 11, 12]
    assert list(model.partial_fit(X[:20], y[:20]).history_frame().index) == [11, 12, 13]
    assert len(ample.ContinualGPRegressor(batch_size=20, history_size=None).fit(X, y).history_) == 12
    with pytest.raises(ValueError, match="history_size is 0"):
        ample.ContinualGPRegressor(history_size=0).fit(X, y)


def test_a_weight_is_so_many_rows(data):
    X, y = data
    weights = np.random.default_rng(0).integers(0, 3, size=len(y))
    repeated = np.repeat(np.arange(len(y)), weights)
    options = {
        "kernel": ample.Matern32(),
        "standardize": False,
        "fixed_hyperparameters": True,
        "selection": ample.FixedGreedy(30),
    }
    weighted = ample.ContinualGPRegressor(**options).fit(X, y, sample_weight=weights)
    rows = ample.ContinualGPRegressor(**options).fit(X[repeated], y[repeated])
    plain = ample.ContinualGPRegressor(**options).fit(X[weights > 0], y[weights > 0])
    np.testing.assert_array_equal(weighted.gp_.inducing_inputs, plain.gp_.inducing_inputs)
    np.testing.assert_array_equal(weighted.gp_.inducing_inputs, rows.gp_.inducing_inputs)
    for of in ({}, {"return_std": True}):
        got, same, other = (np.asarray(m.predict(X, **of)) for m in (weighted, rows, plain))
        np.testing.assert_allclose(got, same, rtol=1e-6, atol=1e-8)
        assert not np.allclose(got, other, rtol=1e-3)
    more = weighted.partial_fit(X[:5], y[:5], sample_weight=[1, 0, 2, 0, 1])
    assert more.history_[-1].rows == 3
    for call in (weighted.fit, weighted.partial_fit):
        with pytest.raises(ValueError, match="(0 in every row|non-zero)"):  # ours or scikit-learn's
            call(X, y, sample_weight=np.zeros(len(y)))
        with pytest.raises(ValueError, match="[Nn]egative"):
            call(X, y, sample_weight=-np.ones(len(y)))


TIMES = np.arange("2026-01-01", "2026-01-11", dtype="datetime64[D]")


@pytest.mark.parametrize(
    "X",
    [
        TIMES[:, None],
        (TIMES - TIMES[0])[:, None],
        pandas.DataFrame({"t": TIMES}),
        pandas.DataFrame({"a": np.arange(10.0), "t": pandas.Series(TIMES).dt.tz_localize("UTC")}),
        polars.DataFrame({"a": np.arange(10.0), "t": TIMES}),
        polars.DataFrame({"t": TIMES}),
    ],
    ids=["dates", "durations", "pandas", "pandas with a zone", "polars", "polars alone"],
)
def test_times_are_refused_as_inputs(X):
    with pytest.raises(ValueError, match="holds times .*must hold numbers"):
        ample.ContinualGPRegressor().fit(X, np.arange(10.0))
    model = ample.ContinualGPRegressor().fit(np.zeros((3, X.shape[1])), np.arange(3.0))
    for call in (model.predict, lambda X: model.partial_fit(X, np.arange(10.0))):
        with pytest.raises(ValueError, match="holds times"):
            call(X)


@pytest.mark.parametrize("y", [TIMES, pandas.Series(TIMES), polars.Series(TIMES)])
def test_times_are_refused_as_targets(y):
    with pytest.raises(ValueError, match="y holds times"):
        ample.ContinualGPRegressor().fit(np.zeros((10, 1)), y)


def test_a_long_fit_shows_its_progress(data, capsys):
    X, y = data
    seen = []

    def bar(batches):
        for i, batch in enumerate(batches):
            yield batch
            seen.append((i + 1, len(batches)))

    ample.ContinualGPRegressor(batch_size=100, progress=bar).fit(X, y)
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert capsys.readouterr() == ("", "")
    model = ample.ContinualGPRegressor(batch_size=100, progress=True).fit(X, y)
    out, err = capsys.readouterr()
    assert out == "" and err.startswith(f"240 of 240 rows, M = {model.gp_.size}, ")
    assert err.count("\n") == 1


def test_a_report_that_warns_makes_a_warning_of_the_callers_line():
    report = types.SimpleNamespace(warnings=["nearly every row is an inducing point"])
    with pytest.warns(ample.AmpleWarning, match="nearly every row") as caught:
        warn(report)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ample.AmpleWarning)
        warn(report)
        warn(types.SimpleNamespace(warnings=[]))


def test_estimators_warn_of_what_a_batch_reports(data, monkeypatch):
    # Stands in for the model's own report, whatever it has to say.
    monkeypatch.setattr(
        "ample._sklearn.warn", lambda report: warn(types.SimpleNamespace(warnings=[str(report.batch)]))
    )
    X, y = data
    model = ample.ContinualGPRegressor(batch_size=100)
    with pytest.warns(ample.AmpleWarning) as caught:
        model.fit(X, y)
    assert [str(w.message) for w in caught] == ["1", "2", "3"]
    assert {w.filename for w in caught} == {__file__}


def _flipping(rows=40, batches=20):
    """A wave that turns over in the middle of the stream, with the time of each row."""
    rng = np.random.default_rng(5)
    n = rows * batches
    X = rng.uniform(-3, 3, size=(n, 1))
    sign = np.where(np.arange(n) < n // 2, 1.0, -1.0)
    y = sign * np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(n)
    return X, y, np.arange(n) / 10.0


def test_forgetting_is_a_parameter():
    X, y, _ = _flipping()
    query = np.linspace(-2.5, 2.5, 50)[:, None]
    truth = -np.sin(2 * query[:, 0])

    def error(forget):
        model = ample.ContinualGPRegressor("se", batch_size=40, forget=forget, prune=0.05).fit(X, y)
        return float(np.sqrt(np.mean((model.predict(query) - truth) ** 2)))

    assert error("adaptive") < 0.1
    assert error(40) < 0.3  # ten half-lives after the change
    assert error("never") > 0.2  # the control
    for wrong in ("sometimes", -1.0, 0):
        with pytest.raises(ValueError, match="forget|half-life"):
            ample.ContinualGPRegressor("se", forget=wrong).fit(X, y)


def test_half_lives_may_be_in_time():
    X, y, time = _flipping()
    model = ample.ContinualGPRegressor("se", batch_size=40, forget=ample.Forgetting.after_time(4.0))
    model.fit(X, y, time=time)
    assert [round(report.past_weight, 6) for report in model.history_[1:3]] == [0.5, 0.5]
    model.partial_fit(X[:5], y[:5], time=np.full(5, time[-1] + 8.0))
    assert round(model.history_[-1].past_weight, 6) == 0.25
    with pytest.raises(ValueError, match="no time is given"):
        model.partial_fit(X[:5], y[:5])
    with pytest.raises(ValueError, match=r"time has the shape \(3,\)"):
        model.partial_fit(X[:5], y[:5], time=np.zeros(3))


def test_a_lengthscale_for_each_input_on_request():
    rng = np.random.default_rng(6)
    X = rng.uniform(-2, 2, size=(200, 3))
    y = np.sin(np.linalg.norm(X, axis=1)) + 0.3 * rng.standard_normal(200)
    names = [p.name for p in ample.ContinualGPRegressor(ard=True).fit(X, y).gp_.kernel.parameters]
    assert sum("lengthscale" in name for name in names) == 3
    with pytest.raises(ValueError, match="ard is True"):
        ample.ContinualGPRegressor("se", ard=True).fit(X, y)


def test_surprise_tells_the_wrong_row():
    X, y, _ = _flipping()
    model = ample.ContinualGPRegressor("se", batch_size=400).fit(X[:400], y[:400])
    wild = y[:50].copy()
    wild[7] += 4.0
    report = model.partial_fit(X[:50], wild).history_[-1]
    assert report.p_value < 1e-6 and np.argmax(np.abs(report.residuals)) == 7
    assert "residuals" not in report.as_dict() and "p_value" in report.as_dict()
