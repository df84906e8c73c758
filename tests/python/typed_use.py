"""Checked by mypy --strict, not run."""

import numpy as np

import ample
import ample.dask
import ample.spark

X, y = np.zeros((3, 2)), np.zeros(3)
kernel: ample.Kernel = 2.0 * ample.Matern52(lengthscale=[1.0, 2.0]) + ample.Constant(3.0) ** 2
gp = ample.ContinualGP(kernel, noise_variance=ample.Positive(0.1, fixed=True), standardize=True)
report: ample.BatchReport = gp.observe(X, y)
size: int = report.inducing
gap: float | None = report.gap
mean, variance = gp.predict(X)
total: float = float(mean.sum() + variance.sum())


class Own:
    name = "own"

    def select(self, problem: ample.SelectionProblem) -> ample.Selection:
        return ample.Vips(0.1).select(problem)


def enough(M: int, lower_bound: float, optimum: float | None, noise_bound: float) -> bool:
    return M > 10


for selection in (Own(), ample.GreedyUntil(enough), ample.Oips()):
    ample.ContinualGP(selection=selection)

model = ample.ContinualGPRegressor(delta=0.1).fit(X, y)
error: float = ample.rmse(y, model.gp_.predict(X).mean)
online = ample.OnlineGPRegressor(batch_size=3)
online.learn_one({"a": 1.0}, 2.0)
prediction: float = online.predict_one({"a": 1.0})

whole, made = ample.dask.fit(None, "t", columns=["a"], pilot=gp)
rows: int = made.rows
spread = ample.spark.fit(None, "t", fit=True)[0].predict(X).std
