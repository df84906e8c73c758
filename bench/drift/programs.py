"""What learns the streams. Each has predict(X), learn(X, y), size, and what it says of the batch it learnt."""

import numpy as np

HALF_LIFE = 500  # rows
DELTA = 0.035  # the paper's recommendation
CAP = 200  # inducing points, on the endless stream


class Ample:
    """What the estimators use when no kernel is given, but for δ and what it forgets."""

    def __init__(self, stream, forget):
        import ample

        ample.set_threads(1)
        box = dict(ample.out_of_the_box())
        settings = {**box["selection"].settings, "delta": DELTA}
        if stream == "endless":
            settings["max_inducing"] = CAP
        box["selection"] = ample.SelectionMethod(box["selection"].name, **settings)
        self._gp = ample.ContinualGP(**{**box, "forget": forget})

    def predict(self, X):
        return self._gp.predict(X).mean

    def learn(self, X, y):
        report = self._gp.observe(X, y)
        return {"gamma": report.past_weight, "p_value": report.p_value}

    @property
    def size(self):
        return self._gp.size


class River:
    """Row by row, with its defaults."""

    def __init__(self, model):
        self._model = model

    def predict(self, X):
        return np.array([self._model.predict_one(x) for x in rows(X)])

    def learn(self, X, y):
        for x, target in zip(rows(X), y.tolist()):
            self._model.learn_one(x, target)
        return {}

    @property
    def size(self):
        return None


def rows(X):
    return [dict(enumerate(x)) for x in X.tolist()]


def river_tree(stream):
    """River's Hoeffding adaptive tree, inputs standardised."""
    from river import preprocessing, tree

    return River(preprocessing.StandardScaler() | tree.HoeffdingAdaptiveTreeRegressor(seed=0))


def river_forest(stream):
    """River's adaptive random forest."""
    from river.forest import ARFRegressor

    return River(ARFRegressor(seed=0))


PROGRAMS = {
    "ample-none": lambda stream: Ample(stream, "never"),
    "ample-adaptive": lambda stream: Ample(stream, "adaptive"),
    "ample-half-life": lambda stream: Ample(stream, HALF_LIFE),
    "river-tree": river_tree,
    "river-forest": river_forest,
}
