#!/usr/bin/env python3
"""Five robots map the magnetic field of one room, each on its own path; their maps become one.

    ample-reproduce data fetch magnetic
    python examples/fleet.py                    # prints the errors
    python examples/fleet.py --figure fleet.png
    python examples/fleet.py --delta 0.035      # fewer points a robot
    python examples/fleet.py --refit            # and with hyperparameters fitted anew; minutes

Before they part, the robots exchange a few measurements of each path. A pilot learns them, and all robots
take its hyperparameters. Each path is then learnt by a process of its own, piece by piece as it is walked.
It knows nothing of the others and hands over a model, not its measurements. The models are merged.

Four paths are merged and the fifth is predicted, for each of the five in turn. The pilot has not seen the
fifth either. Beside the merged map stands one model that is given the four paths one after another, with the
same hyperparameters. With --refit there are also the maps merged with a last fit of the hyperparameters, and
a stream without a pilot that refits them after every piece.
"""

from __future__ import annotations

import argparse
import copy
import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import ample
import numpy as np

PATHS = (1, 2, 3, 4, 5)
EVERY = 16  # of the measurements one is used: neighbours are millimetres apart
PILOT = 5  # of those that are used, one is exchanged beforehand
PIECES = 4  # in which a path is learnt
DELTA = 0.005  # small: what hardly matters on a robot's own path may matter beside it, where others walk
CELLS = 80  # of a map's side

Models = dict[int, ample.ContinualGP]


def data_folder() -> Path:
    """Where `ample-reproduce data fetch` puts the data, unless AMPLE_DATA says otherwise."""
    named = os.environ.get("AMPLE_DATA")
    return Path(named) if named else Path.home() / ".cache" / "ample" / "data"


@cache
def load(path: int) -> tuple[Any, Any]:
    """Positions in metres, and the strength of the field in µT."""
    folder = data_folder() / "magnetic"
    X = np.loadtxt(folder / f"{path}-loc.csv", delimiter=",")[::EVERY]
    field = np.loadtxt(folder / f"{path}-mag.csv", delimiter=",")[::EVERY]
    return np.asfortranarray(X), np.linalg.norm(field, axis=1)


def new_model(delta: float) -> ample.ContinualGP:
    return ample.ContinualGP(ample.Constant(500.0) + ample.Matern52(), selection=ample.Vips(delta=delta))


def agreement(paths: Iterable[int], delta: float = DELTA) -> ample.ContinualGP:
    """What all robots begin with: kernel and hyperparameters of a pilot, none of its data."""
    X, y = zip(*((X[::PILOT], y[::PILOT]) for X, y in map(load, paths)), strict=True)
    pilot = new_model(delta)
    pilot.observe(np.asfortranarray(np.concatenate(X)), np.concatenate(y))
    return ample.empty_like(pilot, fixed_hyperparameters=True)


def learn(model: ample.ContinualGP, path: int) -> ample.ContinualGP:
    X, y = load(path)
    for rows in np.array_split(np.arange(len(y)), PIECES):
        model.observe(X[rows], y[rows])
    return model


def robot(beginning: bytes, path: int) -> bytes:
    """What one robot is given, and what it sends when it comes home."""
    return pickle.dumps(learn(pickle.loads(beginning), path))


def send_out(beginning: ample.ContinualGP, paths: tuple[int, ...], run: Callable[..., Any] = map) -> Models:
    """The robots' models. `run` is that of a pool of processes, or map."""
    sent = run(robot, [pickle.dumps(beginning)] * len(paths), paths)
    return {path: pickle.loads(model) for path, model in zip(paths, sent, strict=True)}


def one_stream(model: ample.ContinualGP, paths: tuple[int, ...]) -> ample.ContinualGP:
    model = copy.copy(model)
    for path in paths:
        learn(model, path)
    return model


def compare(
    left_out: int, run: Callable[..., Any] = map, delta: float = DELTA, refit: bool = False
) -> dict[str, tuple[float, float, float]]:
    """RMSE, NLPD and M on a path when the other four have been learnt."""
    others = tuple(path for path in PATHS if path != left_out)
    beginning = agreement(others, delta)
    robots = send_out(beginning, others, run)
    X, y = load(left_out)

    def score(model: ample.ContinualGP) -> tuple[float, float, float]:
        p = model.predict(X, observation=True)
        return ample.rmse(y, p.mean), ample.nlpd(y, p), model.size

    scores = {
        "merged": score(ample.merge(robots.values())[0]),
        "one stream": score(one_stream(beginning, others)),
        "best robot": min(map(score, robots.values())),
    }
    if refit:
        scores["merged and fitted"] = score(ample.merge(robots.values(), fit=True)[0])
        scores["refitting stream"] = score(one_stream(new_model(delta), others))
    return scores


def report(rows: dict[int, dict[str, tuple[float, float, float]]]) -> None:
    names = list(rows[PATHS[0]])
    print(f"{'':>10}" + "".join(f"{name:>24}" for name in names))
    print(f"{'left out':>10}" + f"{'RMSE':>10}{'NLPD':>8}{'M':>6}" * len(names))
    lines = {str(path): row for path, row in rows.items()}
    lines["mean"] = {name: tuple(np.mean([row[name] for row in rows.values()], axis=0)) for name in names}
    for title, line in lines.items():
        print(f"{title:>10}" + "".join(f"{e:>10.3f}{d:>8.3f}{M:>6.0f}" for e, d, M in line.values()))
    merged, stream = (lines["mean"][name][0] for name in ("merged", "one stream"))
    print(f"\nmerged, against one stream at the same hyperparameters: {100 * (merged / stream - 1):+.1f} % RMSE")


def draw(
    rows: dict[int, dict[str, tuple[float, float, float]]], run: Callable[..., Any], delta: float, file: str
) -> None:
    """Maps of all five paths, and the errors."""
    import matplotlib.pyplot as plt

    beginning = agreement(PATHS, delta)
    robots = send_out(beginning, PATHS, run)
    walked = {path: load(path)[0] for path in PATHS}
    low = np.min([X.min(axis=0) for X in walked.values()], axis=0) - 0.2
    high = np.max([X.max(axis=0) for X in walked.values()], axis=0) + 0.2
    axes = [np.linspace(low[d], high[d], CELLS) for d in (0, 1)]
    grid = np.asfortranarray(np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2))
    maps = [
        *((f"robot {path}", robots[path], (path,)) for path in PATHS),
        ("merged", ample.merge(robots.values())[0], PATHS),
        ("one stream", one_stream(beginning, PATHS), PATHS),
    ]
    figure, panels = plt.subplots(2, 4, figsize=(12, 6), layout="constrained")
    for panel, (title, model, paths) in zip(panels.flat, maps, strict=False):
        p = model.predict(grid)
        # Where a map knows nothing it is white.
        known = np.clip(1.2 - p.std / 8.0, 0, 1).reshape(CELLS, CELLS)
        image = panel.imshow(
            p.mean.reshape(CELLS, CELLS),
            origin="lower",
            extent=(low[0], high[0], low[1], high[1]),
            vmin=25,
            vmax=85,
            alpha=known,
        )
        for path in paths:
            panel.plot(*walked[path].T, color="black", linewidth=0.4)
        panel.plot(*model.inducing_inputs.T, ".", color="tab:red", markersize=2)
        panel.set_title(f"{title}: M = {model.size}", fontsize=10)
        panel.set_xticks([])
        panel.set_yticks([])
    figure.colorbar(image, ax=panels[:, :], label="field / µT", shrink=0.6)
    bars = panels.flat[-1]
    names = ("best robot", "merged", "one stream")
    for offset, name in enumerate(names, start=-1):
        bars.bar([path + 0.27 * offset for path in rows], [rows[path][name][0] for path in rows], 0.25, label=name)
    bars.set_title("RMSE on the path left out / µT", fontsize=10)
    bars.set_xlabel("path")
    bars.legend(fontsize=7)
    figure.savefig(file, dpi=70)


def main() -> None:
    parser = argparse.ArgumentParser(description="Five robots' maps of a magnetic field, merged.")
    parser.add_argument("--figure", help="draw the maps to this file")
    parser.add_argument("--delta", type=float, default=DELTA, help="δ of all models (%(default)s)")
    parser.add_argument("--refit", action="store_true", help="also fit hyperparameters anew")
    arguments = parser.parse_args()
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        rows = {left_out: compare(left_out, pool.map, arguments.delta, arguments.refit) for left_out in PATHS}
        report(rows)
        if arguments.figure:
            draw(rows, pool.map, arguments.delta, arguments.figure)


if __name__ == "__main__":
    main()
