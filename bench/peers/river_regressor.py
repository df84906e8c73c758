"""River: an adaptive random forest that learns row by row, with a conformal interval.

The forest is River's strongest regressor for tables; it has no intervals of its own, so that
RegressionJackknife gives it some, of equal width everywhere. An interval of one deviation on both
sides is taken as a Gaussian for the NLPD.
"""

import math
import sys
import time

import numpy as np
from peer import main, progress
from river import conf, forest
from stream import scores

ONE_DEVIATION = math.erf(math.sqrt(0.5))  # the share of a Gaussian within it


def learn(stream, options):
    model = conf.RegressionJackknife(forest.ARFRegressor(seed=0), confidence_level=ONE_DEVIATION)
    batches = [([dict(enumerate(x)) for x in X.tolist()], y.tolist()) for X, y in stream.batches]
    start = time.perf_counter()
    for done, (rows, y) in enumerate(batches, start=1):
        for x, target in zip(rows, y):
            model.learn_one(x, target)
        progress(done, len(batches))
    seconds = time.perf_counter() - start
    X, y = stream.test
    rows = [dict(enumerate(x)) for x in X.tolist()]
    mean = np.array([model.predict_one(x) for x in rows])
    intervals = [model.predict_one(x, with_interval=True) for x in rows]
    deviation = np.array([(i.upper - i.lower) / 2 for i in intervals])
    return {"seconds": seconds} | scores(y, mean, deviation**2)


if __name__ == "__main__":
    sys.exit(main(["river"], learn))
