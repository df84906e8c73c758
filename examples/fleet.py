#!/usr/bin/env python3
"""Five robots map the magnetic field of one room, each on its own path; their maps become one.

    ample-reproduce data fetch magnetic
    python examples/fleet.py                    # prints the errors
    python examples/fleet.py --figure fleet.png

Before they part, the robots agree on a pilot: a model of a few measurements, of which each takes the
hyperparameters. Each path is then learnt by a process of its own, piece by piece as it is walked, which
knows nothing of the others and hands over a model, not its measurements. The models are merged. Beside
it one model sees all paths, one after another. Each is tested on the path that it has not seen: four
paths are merged, the fifth is predicted, for each of the five in turn.
"""

from __future__ import annotations

import argparse
import copy
import os
import pickle
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import ample
import numpy as np

PATHS = (1, 2, 3, 4, 5)
EVERY = 8  # of the measurements one is used: neighbours are millimetres apart
PIECE = 280  # measurements that are learnt at once
PILOT = 2  # of path 1 every second of these is the pilot
CELLS = 80  # of a map's side


def data_folder() -> Path:
    """Where `ample-reproduce data fetch` puts the data, unless AMPLE_DATA says otherwise."""
    named = os.environ.get("AMPLE_DATA")
    return Path(named) if named else Path.home() / ".cache" / "ample" / "data"


def load(path: int) -> tuple[Any, Any]:
    """Positions in metres, and the strength of the field in µT."""
    folder = data_folder() / "magnetic"
    X = np.loadtxt(folder / f"{path}-loc.csv", delimiter=",")[::EVERY]
    field = np.loadtxt(folder / f"{path}-mag.csv", delimiter=",")[::EVERY]
    return np.asfortranarray(X), np.linalg.norm(field, axis=1)


def pilot() -> ample.ContinualGP:
    """What all robots agree on beforehand: units, kernel and hyperparameters."""
    X, y = load(1)
    model = ample.ContinualGP(ample.Constant(500.0) + ample.Matern52())
    for start in range(PILOT):
        model.observe(X[start :: 2 * PILOT], y[start :: 2 * PILOT])
    return model


def learn(model: ample.ContinualGP, path: int) -> ample.ContinualGP:
    X, y = load(path)
    for start in range(0, len(X), PIECE):
        model.observe(X[start : start + PIECE], y[start : start + PIECE])
    return model


def robot(path: int, beginning: bytes) -> bytes:
    """What one robot is given, and what it sends when it comes home."""
    return pickle.dumps(learn(pickle.loads(beginning), path))


def join(models: dict[int, ample.ContinualGP], paths: tuple[int, ...]) -> ample.ContinualGP:
    return ample.merge([models[path] for path in paths])[0]


def one_stream(beginning: ample.ContinualGP, paths: tuple[int, ...]) -> ample.ContinualGP:
    model = copy.copy(beginning)
    for path in paths:
        learn(model, path)
    return model


def compare(
    beginning: ample.ContinualGP, models: dict[int, ample.ContinualGP], tests: tuple[int, ...] = PATHS
) -> list[dict[str, float]]:
    """For each path: what the others know of it, merged and in one stream."""
    rows = []
    for left_out in tests:
        others = tuple(path for path in PATHS if path != left_out)
        merged, stream = join(models, others), one_stream(beginning, others)
        X, y = load(left_out)
        rows.append(
            {
                "path": left_out,
                "merged_rmse": ample.rmse(y, merged.predict(X).mean),
                "stream_rmse": ample.rmse(y, stream.predict(X).mean),
                "alone_rmse": min(ample.rmse(y, models[path].predict(X).mean) for path in others),
                "merged_nlpd": ample.nlpd(y, merged.predict(X, observation=True)),
                "stream_nlpd": ample.nlpd(y, stream.predict(X, observation=True)),
                "merged_inducing": merged.size,
                "stream_inducing": stream.size,
            }
        )
    return rows


def draw(
    beginning: ample.ContinualGP,
    models: dict[int, ample.ContinualGP],
    rows: list[dict[str, float]],
    file: str,
) -> None:
    import matplotlib.pyplot as plt

    walked = {path: load(path)[0] for path in PATHS}
    low = np.min([X.min(axis=0) for X in walked.values()], axis=0) - 0.2
    high = np.max([X.max(axis=0) for X in walked.values()], axis=0) + 0.2
    axes = [np.linspace(low[d], high[d], CELLS) for d in (0, 1)]
    grid = np.asfortranarray(np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2))
    maps = [
        *((f"robot {path}", models[path], [path]) for path in PATHS),
        ("merged", join(models, PATHS), list(PATHS)),
        ("one model, all paths", one_stream(beginning, PATHS), list(PATHS)),
    ]
    figure, panels = plt.subplots(2, 4, figsize=(12, 5.6), layout="constrained")
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
    figure.colorbar(image, ax=panels[:, :], label="field, µT", shrink=0.6)
    bars = panels.flat[-1]
    for offset, (name, label) in enumerate(
        [("alone_rmse", "best robot alone"), ("merged_rmse", "merged"), ("stream_rmse", "one model")]
    ):
        bars.bar([r["path"] + 0.27 * (offset - 1) for r in rows], [r[name] for r in rows], 0.25, label=label)
    bars.set_title("error on the path left out, µT", fontsize=10)
    bars.set_xlabel("path")
    bars.legend(fontsize=7)
    figure.savefig(file, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description="Five robots' maps of a magnetic field, merged.")
    parser.add_argument("--figure", help="draw the maps to this file")
    arguments = parser.parse_args()
    beginning = ample.empty_like(pilot(), fixed_hyperparameters=True)
    with ProcessPoolExecutor() as pool:
        sent = list(pool.map(robot, PATHS, [pickle.dumps(beginning)] * len(PATHS)))
    models = {path: pickle.loads(model) for path, model in zip(PATHS, sent, strict=True)}
    for path, model in zip(PATHS, sent, strict=True):
        print(f"robot {path}: {models[path].rows_seen} rows, M = {models[path].size}, {len(model) // 1024} KiB")
    rows = compare(beginning, models)
    print(f"\n{'path':>5} {'merged':>8} {'stream':>8} {'alone':>8}   {'nlpd':>6} {'stream':>6}   {'M':>4} {'stream':>6}")
    for r in rows:
        print(
            f"{r['path']:>5.0f} {r['merged_rmse']:>8.3f} {r['stream_rmse']:>8.3f} {r['alone_rmse']:>8.3f}   "
            f"{r['merged_nlpd']:>6.3f} {r['stream_nlpd']:>6.3f}   {r['merged_inducing']:>4} {r['stream_inducing']:>6}"
        )
    mean = {name: float(np.mean([r[name] for r in rows])) for name in rows[0]}
    print(f" mean {mean['merged_rmse']:>8.3f} {mean['stream_rmse']:>8.3f} {mean['alone_rmse']:>8.3f}")
    if arguments.figure:
        draw(beginning, models, rows, arguments.figure)


if __name__ == "__main__":
    main()
