"""Ample, through its Python package."""

import sys
import time

import ample
from peer import main, progress
from stream import scores


def model(options, **settings):
    kernel = ample.SquaredExponential(variance=ample.Positive(1.0, lower=1e-6, upper=2000.0))
    return ample.ContinualGP(kernel, selection=ample.Vips(options.delta), **settings)


def learn(stream, options):
    gp = model(options, fit_tolerance=options.fit_tolerance)
    reports = []
    start = time.perf_counter()
    for batch in stream.batches:
        reports.append(gp.observe(*batch))
        progress(len(reports), len(stream.batches))
    seconds = time.perf_counter() - start
    X, y = stream.test
    return {
        "seconds": seconds,
        "seconds_select": sum(r.seconds_select for r in reports),
        "seconds_fit": sum(r.seconds_fit for r in reports),
        "inducing": gp.size,
        "elbo": sum(r.elbo for r in reports),
        "evaluations": sum(r.fit.evaluations for r in reports),
        "inducing_by_batch": [r.inducing for r in reports],
        "elbo_by_batch": [r.elbo for r in reports],
    } | scores(y, *gp.predict(X, observation=True))


def select(stream, options):
    report = model(options, refit_every=0).observe(*stream.batches[0])
    return {"seconds": report.seconds_select, "inducing": report.inducing}


if __name__ == "__main__":
    sys.exit(main(["ample-gp", "numpy"], learn, select))
