"""The bindings: values, layouts, errors, threads, signals, and methods written in Python."""

import copy
import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest

import ample


@pytest.fixture
def data():
    rng = np.random.default_rng(2)
    X = rng.uniform(-3, 3, size=(150, 2))
    return X, np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(150)


def trained(data, **options):
    gp = ample.ContinualGP(ample.Matern32(), standardize=True, **options)
    gp.observe(*data)
    return gp


KERNELS = [
    ample.SquaredExponential(2.0, [0.5, 1.5]),
    ample.Matern12(lengthscale=np.array([0.5, 1.5])),
    ample.Matern32(lengthscale=(0.5, 1.5), dims=[1, 0]),
    ample.Matern52(variance=ample.Positive(0.3, lower=0.1, upper=2, fixed=True)),
    ample.RationalQuadratic(alpha=0.7),
    ample.Periodic(period=2.5),
    ample.Linear([1.0, 3.0]),
    ample.Polynomial(offset=0.5, degree=3),
    ample.Constant(2),
    ample.ArcCosine(order=2),
    (ample.Constant(2.0) + ample.Matern52()) * ample.Periodic() ** 2 * 3.0,
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_a_kernel_is_its_text(kernel):
    for same in (
        ample.Kernel(repr(kernel)),
        pickle.loads(pickle.dumps(kernel)),
        copy.deepcopy(kernel),
        kernel.with_values(np.array([p.value for p in kernel.parameters])),
    ):
        assert same == kernel and hash(same) == hash(kernel)
    X = np.random.default_rng(0).normal(size=(6, 2))
    K = kernel(X)
    assert kernel != kernel + ample.Constant(1.0)
    np.testing.assert_allclose(np.diag(K), kernel.diagonal(X), rtol=1e-12)
    np.testing.assert_allclose(K, K.T, rtol=1e-12)
    np.testing.assert_array_equal(K, kernel(X, X))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_a_hyperparameter_is_its_value_and_bounds(duplicate):
    for p in (ample.Positive(0.3), ample.Positive([1.0, 2.0], lower=0.5, upper=3.0, fixed=True)):
        assert duplicate(p) == p != ample.Positive(0.3, fixed=True)


def test_composition_is_pointwise():
    X = np.random.default_rng(0).normal(size=(5, 2))
    a, b = ample.Matern32(lengthscale=0.7), ample.Linear()
    np.testing.assert_allclose((a + b)(X), a(X) + b(X))
    np.testing.assert_allclose((a * b)(X), a(X) * b(X))
    np.testing.assert_allclose((a**3)(X), a(X) ** 3)
    np.testing.assert_allclose((2.0 * a * 3.0)(X), 6 * a(X))
    assert len((a**3).parameters) == 2


def test_bounds_and_fixed_parameters_reach_the_fit(data):
    kernel = ample.SquaredExponential(
        ample.Positive(1.0, fixed=True), ample.Positive(0.2, lower=0.1, upper=0.3)
    )
    names = {p.name: p for p in kernel.parameters}
    assert names["se.variance"].fixed and names["se.lengthscale"].upper == 0.3
    gp = ample.ContinualGP(kernel)
    gp.observe(*data)
    fitted = {p.name: p.value for p in gp.kernel.parameters}
    assert fitted["se.variance"] == 1.0 and 0.1 <= fitted["se.lengthscale"] <= 0.3


@pytest.mark.parametrize(
    "layout",
    [
        np.asfortranarray,
        np.ascontiguousarray,
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: np.asfortranarray(np.vstack([X, X]))[: len(X)],
        lambda X: X[::-1][::-1],
    ],
)
def test_every_layout_gives_the_same_bits(data, layout):
    X, y = data
    expected = trained((np.asfortranarray(X), y)).predict(np.asfortranarray(X))
    gp = trained((layout(X), y))
    np.testing.assert_array_equal(gp.predict(layout(X)).mean, expected.mean)
    np.testing.assert_array_equal(gp.predict(layout(X)).variance, expected.variance)


def test_other_numbers_are_converted_and_inputs_left_alone(data):
    X, y = np.round(data[0] * 10), np.round(data[1] * 10)
    before = X.copy()
    X.flags.writeable = False
    expected = trained((X, y)).predict(X).mean
    np.testing.assert_array_equal(X, before)
    for kind in (np.float32, np.int64):
        gp = trained((X.astype(kind), y.astype(kind)))
        np.testing.assert_array_equal(gp.predict(X.astype(kind)).mean, expected)


def test_results_outlive_what_they_came_from(data):
    X = data[0]
    mean = trained(data).predict(X).mean
    Z = trained(data).state.Z
    expected = trained(data)
    np.testing.assert_array_equal(mean, expected.predict(X).mean)
    np.testing.assert_array_equal(Z, expected.state.Z)


def test_joint_predictions_samples_and_gradients_agree_with_the_marginals(data):
    gp, X = trained(data), np.asfortranarray(data[0][:6])
    mean, variance = gp.predict(X)
    joint = gp.predict_joint(X)
    np.testing.assert_allclose(joint.mean, mean)
    np.testing.assert_allclose(np.diag(joint.covariance), variance, rtol=1e-6)
    assert gp.sample(X, 3, seed=1).shape == (6, 3)
    np.testing.assert_array_equal(gp.sample(X, 3, seed=1), gp.sample(X, 3, seed=1))
    step = 1e-5
    for d in range(2):
        shift = np.zeros(2)
        shift[d] = step
        up, down = gp.predict(X + shift), gp.predict(X - shift)
        gradient = gp.gradient(X)
        np.testing.assert_allclose(
            gradient.mean[:, d], (up.mean - down.mean) / (2 * step), rtol=1e-4, atol=1e-5
        )
        np.testing.assert_allclose(
            gradient.variance[:, d], (up.variance - down.variance) / (2 * step), rtol=1e-3, atol=1e-5
        )


def test_errors_are_pythons_own(data, tmp_path):
    gp = trained(data)
    with pytest.raises(ValueError, match="X has 3 columns, but must have 2"):
        gp.predict(np.zeros((1, 3)))
    with pytest.raises(ValueError, match="must be finite"):
        gp.observe(np.full((1, 2), np.nan), np.zeros(1))
    with pytest.raises(ValueError):
        ample.Kernel("matern(")
    with pytest.raises(ValueError):
        ample.Vips(delta=-1)
    with pytest.raises(ValueError, match="pool"):
        ample.Vips(pool="sea")
    with pytest.raises(ValueError, match="'variance' or 'gain'"):
        ample.Vips(choose="luck")
    with pytest.raises(TypeError):
        gp.predict("X")
    with pytest.raises(TypeError, match="select"):
        ample.ContinualGP(selection=3)
    with pytest.raises(ample.ModelFileError, match="nowhere"):
        ample.load(str(tmp_path / "nowhere"))
    with pytest.raises(ValueError, match="factorize"):
        ample.ExactEvidence(*data).gradient()
    with pytest.raises(ValueError, match="factorize"):
        ample.ExactEvidence(*data).value
    with pytest.raises(ValueError, match="factorize"):
        ample.OnlineBound(ample.State.empty(ample.Linear(), 0.1, 2), *data).gradient()
    assert issubclass(ample.NumericalError, ArithmeticError)


@pytest.mark.parametrize(
    "method",
    [
        ample.Vips(0.1),
        ample.Vips(0.1, pool="old_and_batch"),
        ample.Vips(0.1, choose="gain"),
        ample.Vips(0.1, reference="upper_bound", max_inducing=9),
        ample.ConditionalVariance(5.0),
        ample.Oips(0.8),
        ample.FixedGreedy(12),
        ample.FixedGradient(5),
    ],
    ids=repr,
)
def test_every_selection_method_works_and_is_saved(data, method, tmp_path):
    gp = ample.ContinualGP(selection=method, max_evaluations=20)
    report = gp.observe(*data)
    assert report.inducing == gp.size > 0
    assert gp.selection == method != ample.Vips(0.2)
    gp.save(str(tmp_path / "model"))
    for same in (ample.load(str(tmp_path / "model")), pickle.loads(pickle.dumps(gp))):
        assert same.selection == method
        np.testing.assert_array_equal(same.predict(data[0]).mean, gp.predict(data[0]).mean)


class EveryTenth:
    """The old points, and every tenth of the batch."""

    name = "every-tenth"

    def select(self, problem):
        assert problem.targets.count >= len(problem.y)
        assert problem.kernel == problem.old.kernel
        return np.vstack([problem.Z_old.reshape(-1, problem.X.shape[1]), problem.X[::10]])


def test_a_selection_method_written_in_python(data):
    X, y = data
    gp = ample.ContinualGP(selection=EveryTenth())
    first, second = gp.observe(X[:100], y[:100]), gp.observe(X[100:], y[100:])
    assert (first.inducing, second.inducing) == (10, 15)
    assert (second.inducing_added, second.inducing_removed) == (5, 0)
    same = pickle.loads(pickle.dumps(gp))
    assert isinstance(same.selection, EveryTenth)
    np.testing.assert_array_equal(same.predict(X).mean, gp.predict(X).mean)


def test_a_method_may_return_a_selection_or_ask_another_method(data):
    class Capped:
        name = "capped"

        def select(self, problem):
            selection = ample.Vips(0.01).select(problem)
            Z = selection.Z[:4]
            self.values = [problem.lower_bound(selection.Z[:m]) for m in (1, 4, len(selection.Z))]
            self.optimum, self.noise = problem.optimum(), problem.noise_bound()
            return ample.Selection(Z, added=4, stop="cap", lower_bound=self.values[1])

    method = Capped()
    report = ample.ContinualGP(selection=method).observe(*data)
    assert (report.inducing, report.stop) == (4, "cap")
    assert report.lower_bound == method.values[1]
    assert method.values == sorted(method.values) and method.values[-1] <= method.optimum
    reference = ample.ContinualGP().observe(*data)
    assert method.optimum == reference.optimum and method.noise == reference.noise_bound


@pytest.mark.parametrize("result", [None, "Z", np.zeros(3)])
def test_a_method_that_returns_nonsense_leaves_the_model_as_it_was(data, result):
    class Nonsense:
        name = "nonsense"

        def select(self, problem):
            return result

    gp = ample.ContinualGP(selection=Nonsense())
    with pytest.raises(TypeError, match="Selection"):
        gp.observe(*data)
    assert gp.batches == 0


def test_an_exception_in_a_method_reaches_the_caller(data):
    class Broken:
        name = "broken"

        def select(self, problem):
            raise KeyError("lost")

    gp = ample.ContinualGP(selection=Broken())
    with pytest.raises(KeyError, match="lost"):
        gp.observe(*data)
    assert gp.batches == 0


def test_a_stopping_rule_sees_every_added_point(data):
    seen = []

    def ten(M, lower_bound, optimum, noise_bound):
        seen.append((M, lower_bound))
        assert lower_bound <= optimum
        return M >= 10

    gp = ample.ContinualGP(selection=ample.GreedyUntil(ten))
    report = gp.observe(*data)
    assert report.inducing == 10 and [M for M, _ in seen] == list(range(1, 11))
    assert [value for _, value in seen] == sorted(value for _, value in seen)
    assert report.lower_bound == seen[-1][1]

    gp = ample.ContinualGP(selection=ample.GreedyUntil(lambda *_: False))
    assert gp.observe(*data).stop in ("pool used up", "no variance left")


def vips_rule(M, lower_bound, optimum, noise_bound):
    return optimum - lower_bound <= 0.035 * abs(optimum - noise_bound)


def test_vips_as_a_stopping_rule_is_vips(data):
    X, y = data
    own = ample.ContinualGP(selection=ample.GreedyUntil(vips_rule), fit_tolerance=0)
    built_in = ample.ContinualGP(fit_tolerance=0)
    for rows in (slice(0, 80), slice(80, 150)):
        own.observe(X[rows], y[rows])
        built_in.observe(X[rows], y[rows])
    np.testing.assert_array_equal(own.state.Z, built_in.state.Z)
    np.testing.assert_array_equal(own.predict(X).mean, built_in.predict(X).mean)


@pytest.mark.parametrize("noise_variance", [0.1, 3e-9, 1e-12])
def test_vips_as_a_stopping_rule_is_vips_at_any_noise(noise_variance):
    # The jitter follows the noise where there is hardly any: the same points must see the same bound.
    X = np.linspace(0, 10, 60)[:, None]
    y = np.sin(X[:, 0])

    def ten(M, lower_bound, optimum, noise_bound):
        return M >= 10

    def report(selection):
        gp = ample.ContinualGP(
            noise_variance=ample.Positive(noise_variance, lower=1e-13),
            selection=selection,
            refit_every=0,
        )
        return gp.observe(X, y)

    own, built_in = report(ample.GreedyUntil(ten)), report(ample.Vips(1e-9, max_inducing=10))
    assert own.inducing == built_in.inducing == 10
    assert own.lower_bound == built_in.lower_bound


def test_threads_predict_while_another_learns():
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.uniform(-3, 3, size=(400, 2)))
    y = np.sin(3 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(400)
    batches = [slice(start, start + 20) for start in range(0, 400, 20)]
    queries = np.asfortranarray(rng.uniform(-3, 3, size=(40, 2)))

    def new():
        return ample.ContinualGP(ample.Matern32(), max_evaluations=5)

    # What the model predicts after each batch, so what a thread may see.
    serial = new()
    allowed = {serial.predict(queries).mean.tobytes()}
    for rows in batches:
        serial.observe(X[rows], y[rows])
        allowed.add(serial.predict(queries).mean.tobytes())

    for _ in range(5):
        gp, done, wrong, count = new(), threading.Event(), [], [0, 0]

        def read(thread):
            try:
                while not done.is_set():
                    if gp.predict(queries).mean.tobytes() not in allowed:
                        wrong.append("a prediction of no model that there was")
                    assert gp.inducing_inputs.shape[1] in (0, 2) and gp.state is not gp.kernel
                    copy.copy(gp)
                    repr(gp)
                    count[thread] += 1
            except Exception as error:
                wrong.append(error)

        readers = [threading.Thread(target=read, args=(i,)) for i in range(2)]
        for reader in readers:
            reader.start()
        for rows in batches:
            gp.observe(X[rows], y[rows])
        done.set()
        for reader in readers:
            reader.join()
        assert not wrong and min(count) > 0
        np.testing.assert_array_equal(gp.predict(queries).mean, serial.predict(queries).mean)


class Waiting:
    """A selection method that tells when it is asked, and answers when it is told."""

    name = "waiting"

    def __init__(self):
        self.asked, self.answer = threading.Event(), threading.Event()

    def select(self, problem):
        self.asked.set()
        assert self.answer.wait(60)
        return problem.X[:5]


def test_a_prediction_does_not_wait_for_a_batch_and_the_next_batch_does(data):
    X, y = data
    method = Waiting()
    gp = ample.ContinualGP(selection=method)
    prior = gp.predict(X).mean
    reports = []
    learners = [
        threading.Thread(target=lambda: reports.append(gp.observe(X, y).batch)) for _ in range(2)
    ]
    learners[0].start()
    assert method.asked.wait(60)
    learners[1].start()
    np.testing.assert_array_equal(gp.predict(X).mean, prior)
    assert gp.batches == 0 and reports == []
    method.answer.set()
    for learner in learners:
        learner.join()
    assert sorted(reports) == [1, 2] and gp.batches == 2


def test_a_batch_inside_a_batch_is_refused(data):
    class Recursive:
        name = "recursive"

        def select(self, problem):
            gp.observe(*data)

    gp = ample.ContinualGP(selection=Recursive())
    with pytest.raises(RuntimeError, match="learning already"):
        gp.observe(*data)
    assert gp.batches == 0


def test_ctrl_c_ends_waiting_for_another_batch(data, ctrl_c):
    method = Waiting()
    gp = ample.ContinualGP(selection=method)
    learner = threading.Thread(target=gp.observe, args=data)
    learner.start()
    assert method.asked.wait(60)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        gp.observe(*data)
    method.answer.set()
    learner.join()
    assert gp.batches == 1


def test_threads_predict_while_an_exact_model_is_fitted(data):
    X, y = data
    gp, done, wrong = ample.ExactGP(ample.Matern32()), threading.Event(), []
    allowed = {gp.predict(X).mean.tobytes()}
    for n in (50, 150):
        gp.condition(X[:n], y[:n])
        allowed.add(gp.predict(X).mean.tobytes())

    def read():
        try:
            while not done.is_set():
                if gp.predict(X).mean.tobytes() not in allowed:
                    wrong.append("a prediction of no model that there was")
        except Exception as error:
            wrong.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for _ in range(200):
        for n in (50, 150):
            gp.condition(X[:n], y[:n])
    done.set()
    for reader in readers:
        reader.join()
    assert not wrong


def test_the_lock_is_released_during_work():
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.normal(size=(1500, 2)))
    y = np.sin(X[:, 0])
    gp = ample.ExactGP(ample.Matern32())
    work = threading.Thread(target=gp.fit, args=(X, y), kwargs={"max_evaluations": 3})
    work.start()
    steps = 0
    while work.is_alive():
        steps += 1
        time.sleep(0.001)
    # With the lock held, this loop would get a turn only once or twice.
    assert steps > 20
    assert gp.size == 1500


@pytest.fixture
def ctrl_c():
    """Ctrl-C as at a terminal, also where the tests run in the background and ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_stops_a_fit_and_leaves_the_model_as_it_was(data, ctrl_c):
    gp = trained(data)
    before = gp.predict(data[0]).mean
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.uniform(-3, 3, size=(1500, 2)))
    y = np.sin(9 * X[:, 0]) * np.cos(7 * X[:, 1]) + 0.3 * rng.standard_normal(1500)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        for _ in range(1000):
            copy.copy(gp).observe(X, y)
            gp_unused = ample.ContinualGP(ample.Matern12())
            gp_unused.observe(X, y)
    np.testing.assert_array_equal(gp.predict(data[0]).mean, before)


def test_ctrl_c_inside_observe_is_not_swallowed(data, ctrl_c):
    class Interrupting:
        name = "interrupting"

        def select(self, problem):
            signal.raise_signal(signal.SIGINT)  # Python would see it at its next instruction
            return problem.X[:10]

    gp = ample.ContinualGP(selection=Interrupting())
    with pytest.raises(KeyboardInterrupt):
        gp.observe(*data)
    assert gp.batches == 0


def test_metrics_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    y, mean, variance = rng.normal(size=50), rng.normal(size=50), rng.uniform(0.5, 2, size=50)
    predicted = ample.Prediction(mean, variance)
    assert ample.rmse(y, mean) == pytest.approx(np.sqrt(np.mean((y - mean) ** 2)))
    assert ample.mae(y, mean) == pytest.approx(np.mean(abs(y - mean)))
    density = 0.5 * np.log(2 * np.pi * variance) + 0.5 * (y - mean) ** 2 / variance
    assert ample.nlpd(y, predicted) == pytest.approx(density.mean())
    z = ample.normal_quantile(0.95)
    inside = abs(y - mean) <= z * predicted.std
    assert ample.coverage(y, predicted, 0.9) == pytest.approx(inside.mean())
    assert ample.interval_width(predicted, 0.9) == pytest.approx(2 * z * predicted.std.mean())
    curve = ample.calibration_curve(y, predicted, np.array([0.5, 0.9]))
    assert curve.coverage[1] == ample.coverage(y, predicted, 0.9)
    assert ample.relative_to_exact(2.0, 1.0, 3.0) == 50
    assert ample.normal_cdf(ample.normal_quantile(0.3)) == pytest.approx(0.3)


def test_reports_survive_pickling(data):
    gp = ample.ContinualGP()
    report = gp.observe(*data)
    same = pickle.loads(pickle.dumps(report))
    assert same.as_dict() == report.as_dict()
    assert (same.fit.termination, same.fit.message) == (report.fit.termination, report.fit.message)
    np.testing.assert_array_equal(same.fit.x, report.fit.x)
    assert report.gap == report.optimum - report.lower_bound


def test_threads_can_be_limited():
    before = ample.threads()
    ample.set_threads(1)
    assert ample.threads() == 1
    ample.set_threads(before)
    with pytest.raises(ValueError):
        ample.set_threads(0)
