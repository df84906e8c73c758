#!/usr/bin/env python3
"""Draws what `ample demo` wrote: data, posterior, inducing points, and model size after each batch.

    .venv/bin/python scripts/plot_demo.py DIR/demo.json FIGURE.png [FIGURE.svg ...]
"""

import argparse
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "svg.hashsalt": "ample",  # the same picture is the same file
}
MODEL, BAND, TRUTH, INDUCING, KEEPING = "#1a1a1a", "#c9c9c9", "#5a5a5a", "#d55e00", "#cc79a7"
# Early to late, from viridis less its palest end: in order, and told apart by every eye.
BATCHES = matplotlib.colormaps["viridis"](np.linspace(0.12, 0.88, 10))


def draw_fit(axes, scenario):
    grid = {name: np.array(values) for name, values in scenario["grid"].items()}
    x, mean, deviation = grid["x"], grid["mean"], grid["std"]
    axes.fill_between(x, mean - 2 * deviation, mean + 2 * deviation, color=BAND, linewidth=0)
    for batch, color in zip(scenario["batches"], BATCHES):
        axes.plot(batch["x"], batch["y"], ".", color=color, markersize=3.6, markeredgewidth=0,
                  rasterized=True)
    axes.plot(x, grid["truth"], color=TRUTH, linewidth=0.9, dashes=(3, 2))
    if other := scenario.get("without_forgetting"):
        axes.plot(x, other["mean"], color=KEEPING, linewidth=1.2)
    axes.plot(x, mean, color=MODEL, linewidth=1.2)
    inducing = np.array(scenario["inducing_inputs"])
    axes.plot(inducing, np.full(inducing.size, -3.85), "|", color=INDUCING, markersize=8,
              markeredgewidth=1.2)
    axes.set(xlim=(x[0], x[-1]), ylim=(-4.2, 3.9), yticks=(-2, 0, 2))
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))

    # The heavy tails of the last stream do not fit into any picture: say what is left out.
    seen = np.concatenate([batch["x"] for batch in scenario["batches"]])
    if left := np.count_nonzero(seen < x[0]):
        note(axes, f"◂ {left} rows, to {seen.min():.0f}", 0.01, "left")
    if right := np.count_nonzero(seen > x[-1]):
        note(axes, f"{right} rows, to {seen.max():.0f} ▸", 0.99, "right")


def note(axes, text, x, side):
    axes.text(x, 0.99, text.replace("-", "−"), transform=axes.transAxes, ha=side, va="top", size=8,
              color=TRUTH)


def draw_size(axes, scenario):
    number = [batch["batch"] for batch in scenario["batches"]]
    size = [batch["inducing"] for batch in scenario["batches"]]
    if other := scenario.get("without_forgetting"):
        axes.plot(number, other["inducing"], color=KEEPING, linewidth=1.2, zorder=1)
        name_last(axes, number, other["inducing"])
    axes.step(number, size, where="mid", color=BAND, linewidth=1.4, zorder=1)
    axes.scatter(number, size, c=BATCHES[: len(number)], s=26, zorder=2, linewidth=0)
    name_last(axes, number, size)
    axes.set_xticks(number, [n if n % 2 == 0 else "" for n in number])


def name_last(axes, number, size):
    axes.annotate(f"{size[-1]}", (number[-1], size[-1]), (0, 5), textcoords="offset points",
                  ha="center", fontsize=8.5)


def draw(demo):
    scenarios = demo["scenarios"]
    figure, axes = plt.subplots(2, len(scenarios), figsize=(11, 4.9), layout="constrained",
                                sharey="row", height_ratios=(1.55, 1))
    for column, scenario in enumerate(scenarios):
        draw_fit(axes[0, column], scenario)
        draw_size(axes[1, column], scenario)
        axes[0, column].set_title(scenario["title"])
        axes[0, column].set_xlabel("input $x$")
        axes[1, column].set_xlabel("batch")
        for row in range(2):
            axes[row, column].text(0, 1.03, "abcdefgh"[row * len(scenarios) + column],
                                   transform=axes[row, column].transAxes, weight="bold", size=10,
                                   va="bottom")
    axes[0, 0].set_ylabel("target $y$")
    axes[1, 0].set_ylabel("inducing points $M$")
    sizes = [b["inducing"] for s in scenarios for b in s["batches"]]
    sizes += [size for s in scenarios for size in s.get("without_forgetting", {}).get("inducing", [])]
    axes[1, 0].set_ylim(0, 1.12 * max(sizes))
    handles = {
        "data, first to last batch": tuple(dot(BATCHES[i]) for i in (0, 3, 6, 9)),
        "posterior mean": Line2D([], [], color=MODEL, linewidth=1.2),
        "± 2 standard deviations": Patch(color=BAND, linewidth=0),
        "true function": Line2D([], [], color=TRUTH, linewidth=0.9, dashes=(3, 2)),
        "the mean, and $M$, without forgetting": Line2D([], [], color=KEEPING, linewidth=1.2),
        "inducing points": Line2D([], [], color=INDUCING, marker="|", markersize=8,
                                  markeredgewidth=1.2, linestyle=""),
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles),
                  handler_map={tuple: HandlerTuple(ndivide=None, pad=0.15)}, columnspacing=1.8)
    return figure


def dot(color):
    return Line2D([], [], color=color, marker=".", markersize=7, markeredgewidth=0, linestyle="")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("demo", type=Path)
    parser.add_argument("figures", type=Path, nargs="+")
    options = parser.parse_args()
    plt.rcParams.update(STYLE)
    figure = draw(json.loads(options.demo.read_text(encoding="utf-8")))
    for path in options.figures:
        # Without a date, which would make every file a new one.
        metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
        figure.savefig(path, dpi=200, metadata=metadata)


if __name__ == "__main__":
    main()
