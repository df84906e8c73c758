"""The programs of the study. Each learns from a case and predicts observations at its test rows.

    python bench/defaults/programs.py PROGRAM TABLE ORDER [--limit SECONDS]    # one run, as JSON

A program is a function (case, limit) that returns a Result. Libraries are imported where they
are used, so that each runs beside no other's threads.
"""

import argparse
import json
import math
import os
import time
from typing import NamedTuple

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

import numpy as np
from case import ORDERS, TENTHS, Case, Scaler, scores
from tables import TABLES

SEED = 0
THREADS = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))


class Result(NamedTuple):
    time: dict  # of learning
    mean: np.ndarray
    variance: np.ndarray  # of observations
    size: int | None = None  # inducing points, or rows that the model keeps
    note: str = ""


class Clock:
    """Tells the time since it was made, and whether the limit is over. The limit is in processor time, so
    that a program gets as far on a busy machine as on a quiet one."""

    def __init__(self, limit):
        self._start, self._cpu_start, self._limit = time.perf_counter(), time.process_time(), limit

    def over(self):
        return time.process_time() - self._cpu_start > self._limit * THREADS

    def stop(self):
        """Seconds on the wall, and of all cores: the second is the better measure on a busy machine."""
        return {
            "seconds": time.perf_counter() - self._start,
            "cpu_seconds": time.process_time() - self._cpu_start,
        }


def _stopped(done, whole):
    return "" if done == whole else f"stopped after {done} of {whole} rows"


def ample(case, limit):
    """Ample with no settings."""
    from ample import ContinualGPRegressor, set_threads

    set_threads(THREADS)
    model = ContinualGPRegressor(random_state=SEED)  # which rows are kept; nothing else hangs on it
    clock, done = Clock(limit), 0
    for X, y in case.batches():
        model.partial_fit(X, y)
        done += len(y)
        if clock.over():
            break
    taken = clock.stop()
    mean, deviation = model.predict(case.X_test, return_std=True, observation=True)
    return Result(taken, mean, deviation**2, model.gp_.size, _stopped(done, len(case.y)))


def ample_first_release(case, limit):
    """Ample with what the first release did by default: one lengthscale, VIPS with δ = 0.035, no
    rows kept, hyperparameters fitted to the bound at every batch."""
    from ample import ContinualGP, SquaredExponential, set_threads

    set_threads(THREADS)
    gp = ContinualGP(
        SquaredExponential(lengthscale=math.sqrt(case.X.shape[1])), search_start=True, standardize=True
    )
    clock, done = Clock(limit), 0
    for X, y in case.batches():
        gp.observe(X, y)
        done += len(y)
        if clock.over():
            break
    taken = clock.stop()
    prediction = gp.predict(case.X_test, observation=True)
    return Result(taken, prediction.mean, prediction.variance, gp.size, _stopped(done, len(case.y)))


def lightgbm(case, limit):
    """LightGBM, trained anew on all rows so far at ten points of the stream. A tenth of the rows so far
    decides when to stop; the variance is that of the errors there, equal everywhere."""
    from lightgbm import LGBMRegressor, early_stopping

    settings = {"random_state": SEED, "verbosity": -1, "n_jobs": THREADS}
    generator = np.random.default_rng(SEED)
    clock = Clock(limit)
    for share in range(1, 11):
        rows = generator.permutation(round(len(case.y) * share / 10))
        inner, kept = np.split(rows, [len(rows) // 10])
        trial = LGBMRegressor(n_estimators=1000, **settings)
        trial.fit(
            case.X[kept],
            case.y[kept],
            eval_X=case.X[inner],
            eval_y=case.y[inner],
            callbacks=[early_stopping(30, verbose=False)],
        )
        variance = np.mean((case.y[inner] - trial.predict(case.X[inner])) ** 2)
        model = LGBMRegressor(n_estimators=max(1, trial.best_iteration_), **settings).fit(case.X[rows], case.y[rows])
    taken = clock.stop()
    return Result(taken, model.predict(case.X_test), np.full(len(case.y_test), variance))


def exact(case, limit, rows=1500):
    """scikit-learn's exact GP on the first 1,500 rows: SE with one lengthscale per input, a WhiteKernel.
    L-BFGS-B as in scikit-learn, with the same evidence, but its gradient by products of matrices: many
    times as fast as scikit-learn's own. It ends early where the limit does."""
    from scipy.optimize import minimize
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    clock, note = Clock(limit), ""
    best = (math.inf, None)
    scaler = Scaler(case.X[:rows], case.y[:rows])
    X, y = scaler.inputs(case.X[:rows]), scaler.targets(case.y[:rows])
    D = X.shape[1]

    def optimise(_, theta, bounds):
        def timed(theta):
            nonlocal best
            if clock.over():
                raise TimeoutError
            value, gradient = _negative_evidence(theta, X, y)
            if value < best[0]:
                best = (value, theta.copy())
            return value, gradient

        try:
            minimize(timed, theta, method="L-BFGS-B", jac=True, bounds=bounds)
        except TimeoutError:
            nonlocal note
            note = "fit ended by the limit"
        return best[1], best[0]

    kernel = ConstantKernel(1.0, (1e-4, 1e4)) * RBF(np.full(D, math.sqrt(D)), (1e-2, 1e4)) + WhiteKernel(0.1, (1e-6, 10))
    gp = GaussianProcessRegressor(kernel, optimizer=optimise).fit(X, y)
    taken = clock.stop()
    mean, deviation = gp.predict(scaler.inputs(case.X_test), return_std=True)  # the kernel has the noise
    return Result(taken, *scaler.back(mean, deviation**2), len(X), note)


def _negative_evidence(theta, X, y):
    """-log p(y) and its gradient, for θ = log(variance, lengthscales, noise)."""
    from scipy.linalg import LinAlgError, cho_solve, cholesky
    from scipy.linalg.lapack import dpotri

    variance, lengthscales, noise = np.exp(theta[0]), np.exp(theta[1:-1]), np.exp(theta[-1])
    scaled = X / lengthscales
    squares = (scaled**2).sum(axis=1)
    K = squares[:, None] + squares - 2 * scaled @ scaled.T
    np.maximum(K, 0, out=K)
    np.exp(-0.5 * K, out=K)
    K *= variance
    C = K.copy()
    C[np.diag_indices_from(C)] += noise + 1e-10  # scikit-learn's alpha
    try:
        L = cholesky(C, lower=True, overwrite_a=True)
    except LinAlgError:
        return np.inf, np.zeros_like(theta)
    weights = cho_solve((L, True), y)
    value = 0.5 * y @ weights + np.log(np.diag(L)).sum() + 0.5 * len(y) * math.log(2 * math.pi)
    inverse, _ = dpotri(L, lower=True)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    W = inverse - np.outer(weights, weights)  # ∂value = ½ tr(W ∂C)
    noise_part = 0.5 * noise * np.trace(W)
    W *= K
    rows = W.sum(axis=1)
    lengthscale_part = scaled.T**2 @ rows - np.einsum("nd,nd->d", scaled, W @ scaled)
    return value, np.concatenate([[0.5 * rows.sum()], lengthscale_part, [noise_part]])


def svgp(case, limit, inducing=500, minibatch=500):
    """GPflow's SVGP: 500 inducing points that start at the centres of k-means and are fitted too, SE with
    one lengthscale per input. Natural gradients for q(u) and Adam for all else, in turn, on minibatches
    of 500 rows: 20 epochs, or 600 steps if that is more, and fewer once 100 steps raise the bound by less
    than 0.002 nats a row."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(THREADS)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    import gpflow
    from sklearn.cluster import MiniBatchKMeans

    clock = Clock(limit)
    scaler, (N, D) = Scaler(case.X, case.y), case.X.shape
    X, y = scaler.inputs(case.X), scaler.targets(case.y)[:, None]
    Z = X.copy()
    if N > inducing:
        Z = MiniBatchKMeans(inducing, random_state=SEED, n_init=1, batch_size=2048).fit(X).cluster_centers_
    model = gpflow.models.SVGP(
        gpflow.kernels.SquaredExponential(lengthscales=np.full(D, math.sqrt(D))),
        gpflow.likelihoods.Gaussian(0.1),
        inducing_variable=Z,
        num_data=N,
    )
    gpflow.set_trainable(model.q_mu, False)  # by Adam
    gpflow.set_trainable(model.q_sqrt, False)
    natural, adam = gpflow.optimizers.NaturalGradient(gamma=0.1), tf.optimizers.Adam(0.02)

    @tf.function
    def step(X, y):
        natural.minimize(model.training_loss_closure((X, y), compile=False), [(model.q_mu, model.q_sqrt)])
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(model.trainable_variables)
            loss = model.training_loss((X, y))
        adam.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    generator = np.random.default_rng(SEED)
    batches = max(1, N // minibatch)
    most = max(600, 20 * batches)
    done, before, losses = 0, math.inf, []
    while done < most and not clock.over():
        for rows in np.array_split(generator.permutation(N), batches):
            # All of one size, so that the step is compiled once.
            rows = rows[: N // batches]
            losses.append(float(step(tf.constant(X[rows]), tf.constant(y[rows]))) / N)
            done += 1
        if len(losses) >= 100:
            now, losses = np.mean(losses), []
            if before - now < 0.002:
                break
            before = now
    taken = clock.stop()
    mean, variance = model.predict_y(scaler.inputs(case.X_test))
    note = f"stopped after {done} steps by the limit" if clock.over() else ""
    return Result(taken, *scaler.back(mean.numpy()[:, 0], variance.numpy()[:, 0]), len(Z), note)


def _river(make):
    def run(case, limit):
        """River, row by row. Its regressors have no variance: that of the errors on the last 1,000 rows, each
        predicted before it is learnt, is used."""
        model = make()
        rows = [dict(enumerate(x)) for x in case.X.tolist()]
        targets = case.y.tolist()
        errors = []
        clock, done = Clock(limit), 0
        for x, y in zip(rows, targets):
            if done >= len(rows) - 1000 and (mean := model.predict_one(x)) is not None:
                errors.append(y - mean)
            model.learn_one(x, y)
            done += 1
            if done % 100 == 0 and clock.over():
                break
        taken = clock.stop()
        mean = np.array([model.predict_one(dict(enumerate(x))) for x in case.X_test.tolist()])
        variance = np.mean(np.square(errors)) if errors else case.y[:done].var()
        return Result(taken, mean, np.full(len(mean), variance), note=_stopped(done, len(rows)))

    return run


def _forest():
    from river.forest import ARFRegressor

    return ARFRegressor(seed=SEED)


def _mondrian():
    from river.forest import AMFRegressor

    return AMFRegressor(seed=SEED)


def _tree():
    from river import preprocessing, tree

    return preprocessing.StandardScaler() | tree.HoeffdingAdaptiveTreeRegressor(seed=SEED)


def _linear():
    from river import linear_model, preprocessing

    return preprocessing.StandardScaler() | preprocessing.TargetStandardScaler(linear_model.LinearRegression())


PROGRAMS = {
    "ample": ample,
    "ample-first-release": ample_first_release,
    "lightgbm": lightgbm,
    "exact": exact,
    "svgp": svgp,
    "river-forest": _river(_forest),
    "river-mondrian": _river(_mondrian),
    "river-tree": _river(_tree),
    "river-linear": _river(_linear),
}
# What these learn depends on the order of the rows in nothing but a seed: one run serves all orders.
ORDERLESS = ("lightgbm", "svgp")
# Of these, on small tables, the coverage is measured with each tenth held out in turn.
ALL_TENTHS = ("ample", "exact")


def run(program, case, limit):
    result = PROGRAMS[program](case, limit)
    return result, scores(case.y_test, result.mean, result.variance)


def coverage_of_all(program, table, order, limit, first):
    """The share of all rows of a table that lie in the intervals of a model that has not seen them."""
    cases = [Case(table, order, tenth) for tenth in range(1, TENTHS)]
    return sum([run(program, case, limit)[1]["coverage"] for case in cases], start=first) / TENTHS


def main():
    parser = argparse.ArgumentParser(description="One run of the study.")
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("order", choices=ORDERS)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of learning, of the processor, for each thread")
    options = parser.parse_args()
    case = Case(options.table, options.order)
    result, score = run(options.program, case, options.limit)
    told = result.time | {"size": result.size, "note": result.note} | score
    if case.is_small and options.program in ALL_TENTHS:
        arguments = (options.program, options.table, options.order, options.limit)
        told["coverage_of_all"] = coverage_of_all(*arguments, first=score["coverage"])
    print(json.dumps(told))


if __name__ == "__main__":
    main()
