"""The pictures show what they say."""

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pytest

import ample
from ample import plot


@pytest.fixture(autouse=True)
def close_figures():
    plt.close("all")  # of the examples in docstrings
    yield
    plt.close("all")


@pytest.fixture
def model():
    X = np.linspace(0, 6, 90)[:, None]
    return ample.ContinualGPRegressor("se", batch_size=30).fit(X, np.sin(X[:, 0]))


@pytest.fixture
def map_model():
    X = np.random.default_rng(0).uniform(-2, 2, size=(200, 2))
    return ample.ContinualGPRegressor("se").fit(X, X[:, 0] ** 2 - X[:, 1])


def labels(ax):
    return ax.get_legend_handles_labels()[1]


def test_posterior_draws_the_mean_and_the_inducing_points(model):
    ax = plot.posterior(model, np.linspace(0, 6, 50), data=([1.0], [2.0]))
    lines = {line.get_label(): line for line in ax.get_lines()}
    expected = model.predict(np.linspace(0, 6, 50)[:, None])
    np.testing.assert_allclose(lines["mean"].get_ydata(), expected)
    (points,) = [c for c in ax.collections if "inducing" in str(c.get_label())]
    assert points.get_label() == f"{model.gp_.size} inducing points"
    np.testing.assert_array_equal(points.get_offsets()[:, 0], model.gp_.inducing_inputs[:, 0])
    prices = model.gp_.prices()
    assert np.argmax(points.get_array()) == np.argmax(prices)
    assert points.get_array().min() >= min(1e-3 * prices.max(), prices.min())
    np.testing.assert_array_equal(lines["data"].get_ydata(), [2.0])


def test_growth_draws_size_and_gap(model):
    fig, ax = plt.subplots()
    assert plot.growth(model, ax=ax) is ax
    np.testing.assert_array_equal(
        ax.get_lines()[0].get_ydata(), [r.inducing for r in model.history_]
    )
    (right,) = [other for other in fig.axes if other is not ax]
    np.testing.assert_array_equal(right.get_lines()[0].get_ydata(), [r.gap for r in model.history_])


@pytest.mark.parametrize("what", ["mean", "std"])
def test_field_draws_the_map(map_model, what):
    ax = plot.field(map_model, what=what, extent=(-1, 1, -2, 2), resolution=11)
    values = ax.get_images()[0].get_array()
    mean, std = map_model.predict([[-1.0, 2.0]], return_std=True)
    assert values[-1, 0] == pytest.approx((mean if what == "mean" else std)[0])


def test_calibration_draws_the_curve(model):
    predicted = ample.Prediction(np.zeros(200), np.ones(200))
    y = np.random.default_rng(0).normal(size=200)
    ax = plot.calibration(y, predicted)
    levels, covered = ax.get_lines()[1].get_data()
    assert covered[10] == ample.coverage(y, predicted, levels[10])


def test_live_draws_anew_and_leaves_nothing_behind(map_model):
    view = plot.live(draw=lambda ax: plot.field(map_model, ax=ax))
    for _ in range(3):
        view.update()
    assert len(view.figure.axes) == 2 and len(view.ax.get_images()) == 1
    number = view.figure.number
    view.close()
    assert not plt.fignum_exists(number)


def test_wrong_use_is_told(model, map_model):
    with pytest.raises(ValueError, match="must have 1"):
        plot.posterior(map_model)
    with pytest.raises(ValueError, match="must have 2"):
        plot.field(model)
    with pytest.raises(ValueError, match="not seen any data"):
        plot.posterior(ample.ContinualGP())
    with pytest.raises(ValueError, match="'mean' or 'std'"):
        plot.field(map_model, what="median")
    with pytest.raises(ValueError, match="either"):
        plot.live()
