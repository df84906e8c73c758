#!/usr/bin/env python3
"""Draws the figures of the experiments from what `ample-reproduce` wrote.

    .venv/bin/python experiments/draw.py RESULTS.sqlite [--out FOLDER] [--only NAME]...

Writes NAME.png, NAME.svg and NAME.pdf into FOLDER, by default `figures` beside the results. The
figures are:

    figure1           three streams, the posterior after three batches of each, and M
    figure2a          RMSE on a synthetic stream: fixed sizes, VIPS, the exact GP
    figure2b          training time per batch on naval
    uci-sweep         accuracy against model size on the UCI sets
    wins              on how many UCI sets a method is accurate enough with the smallest model
    magnetic-main     the magnetic field as VIPS learns it, at the end
    magnetic-paths    the same after each of four paths, all methods
    magnetic-stream   the same along one path, all methods
    large             M on 50,000 rows
    fronts            size against accuracy, for the rules that choose points and remove them

What has not been run yet is left out and named in the figure; a figure of which nothing has been
run is skipped. Exit code 2 for a wrong command line, 3 for a file that is not one of results or
has nothing to draw.
"""

import argparse
import json
import sqlite3
import sys
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import (FixedLocator, FuncFormatter, LogLocator, MaxNLocator,
                               MultipleLocator, NullLocator)

STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "lines.markersize": 4,
    "pdf.fonttype": 42,
    "svg.hashsalt": "ample",  # the same picture is the same file
}
WIDTH = 7.2  # inches, a page's two columns
COLUMN = 3.5  # inches, one of them

# Okabe and Ito's colours, which every eye tells apart; the fixed sizes are all blues.
VERMILION, GREEN, PURPLE, BLUE = "#d55e00", "#009e73", "#cc79a7", "#0072b2"
INK, GREY, PAST, BAND = "#1a1a1a", "#5a5a5a", "#a8a8a8", "#e6e6e6"
LIMIT = {"color": GREY, "linewidth": 0.8, "dashes": (4, 2), "zorder": 1}


@dataclass(frozen=True)
class Look:
    title: str
    color: str
    marker: str


METHODS = {
    "vips": Look("VIPS", VERMILION, "o"),
    "cv": Look("CV", GREEN, "s"),
    "oips": Look("OIPS", PURPLE, "^"),
}
EXACT = Look("exact GP", INK, "D")
FIXED = {  # by size
    10: Look("fixed $M$ = 10", "#a6d4f2", "v"),
    20: Look("fixed $M$ = 20", "#56b4e9", "<"),
    30: Look("fixed $M$ = 30", BLUE, ">"),
    100: Look("fixed $M$ = 100", "#56b4e9", "v"),
    1000: Look("fixed $M$ = 1000", BLUE, ">"),
}


def look_of(method, parameter):
    if method == "exact":
        return EXACT
    return FIXED[parameter] if method == "fixed-greedy" else METHODS[method]


SCENARIOS = {
    "growing-domain": "growing domain",
    "fixed-domain": "fixed domain",
    "outliers": "outliers",
}
UCI_SETS = ("concrete", "skillcraft", "kin8nm", "naval", "elevators", "bike")
FOLDS = 5
METRICS = ("rmse", "nlpd")

PAPER_NAVAL_SECONDS = {  # in total, on an RTX 6000
    ("fixed-greedy", 1000): 424.3, ("fixed-greedy", 100): 24.7, ("vips", 0.05): 15.2}
LARGE_CAP = 5000


class NotRun(Exception):
    """None of a figure's runs is there; the message is what to run."""


# --- Results --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Run:
    key: str
    experiment: str
    data: str
    method: str
    parameter: float
    fold: int
    done: bool
    batches: list  # rows of the table of that name, in order

    def column(self, name):
        return [batch[name] for batch in self.batches]

    @property
    def last(self):
        return self.batches[-1]


class Results:
    """The runs of a file of results that have at least one batch."""

    def __init__(self, path):
        # Nothing is written, but a connection for reading only would leave a log beside the file.
        self._database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)
        self._database.row_factory = sqlite3.Row
        batches = defaultdict(list)
        for row in self._database.execute(
                "SELECT run, batch, rows_seen, inducing, rmse, nlpd, noise_rmse, noise_nlpd, "
                "seconds_select, seconds_fit FROM batches ORDER BY run, batch"):
            batches[row["run"]].append(row)
        self._runs = [
            Run(*row, batches=batches[row["run"]]) for row in self._database.execute(
                "SELECT run, experiment, data, method, parameter, fold, state = 'done' FROM runs "
                "ORDER BY run") if batches[row["run"]]
        ]

    def close(self):
        self._database.close()

    def runs(self, experiment, **wanted):
        """Those with these members, such as data="naval"."""
        return [run for run in self._runs if run.experiment == experiment and
                all(getattr(run, name) == value for name, value in wanted.items())]

    def require(self, experiment, **wanted):
        """Where there is no figure without any of them."""
        if not self.runs(experiment, **wanted):
            raise NotRun(f"ample-reproduce {experiment}")

    def drawings(self, run):
        """batch → what was kept for its picture"""
        rows = self._database.execute("SELECT batch, json FROM drawings WHERE run = ?", (run.key,))
        return {row["batch"]: json.loads(row["json"]) for row in rows}


# --- Parts of figures -----------------------------------------------------------------------------


def letter(axes, index):
    axes.text(0, 1.03, "abcdefghijkl"[index], transform=axes.transAxes, weight="bold", size=9,
              va="bottom")


def note(axes, lines, x=0.98, y=0.97, side="right"):
    axes.text(x, y, "\n".join(lines), transform=axes.transAxes, ha=side, va="top", size=6.8,
              color=GREY, linespacing=1.3)


def not_run(looks):
    """What to note of those of which there is nothing."""
    return [f"{', '.join(look.title for look in looks)}: not run"] if looks else []


def name_methods(figure, limit):
    handles = [Line2D([], [], color=look.color, marker=look.marker, label=look.title)
               for look in METHODS.values()]
    handles.append(Line2D([], [], label=limit, **LIMIT))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))


def plain(axis):
    """Numbers on a logarithmic axis as 10, 1000 and 0.01 rather than as powers."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


# --- Figure 1 -------------------------------------------------------------------------------------

# What changes is seen from one of these to the next; the outliers begin in batch 8.
FIGURE1_BATCHES = {
    "growing-domain": (4, 5, 6), "fixed-domain": (1, 2, 3), "outliers": (7, 8, 9)}


def figure1(results):
    results.require("figure1", done=True)
    figure, axes = plt.subplots(4, 3, figsize=(WIDTH, 6.6), layout="constrained", sharey="row",
                                height_ratios=(1, 1, 1, 1.25))
    for column, (data, title) in enumerate(SCENARIOS.items()):
        axes[0, column].set_title(title)
        letter(axes[0, column], column)
        letter(axes[3, column], column + 3)
        runs = results.runs("figure1", data=data, done=True)
        shown = FIGURE1_BATCHES[data]
        if curves := next((results.drawings(run) for run in runs if run.fold == 0), {}):
            for row, batch in enumerate(shown):
                draw_curve(axes[row, column], curves, batch)
        else:
            note(axes[0, column], ["seed 0: not run"])
        draw_sizes(axes[3, column], runs, shown)
        for row in range(2):
            axes[row, column].tick_params(labelbottom=False)
        axes[2, column].set_xlabel("input $x$")
        axes[3, column].set_xlabel("batch")
    for row in range(3):
        axes[row, 0].set_ylabel("target $y$")
    axes[3, 0].set_ylabel("inducing points $M$")
    axes[3, 0].set_ylim(bottom=0)
    handles = {
        "earlier data": dot(PAST),
        "data of the batch": dot(BLUE),
        "mean ± 2 standard deviations": (Patch(color=BAND), Line2D([], [], color=INK)),
        "inducing points": Line2D([], [], color=VERMILION, marker="|", linestyle="", markersize=7,
                                  markeredgewidth=1.1),
        "other seeds": Line2D([], [], color=VERMILION, linewidth=0.6, alpha=0.6),
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles),
                  columnspacing=1.5)
    return figure


def draw_curve(axes, curves, batch):
    curve = {name: np.array(values) for name, values in curves[batch].items()}
    grid, mean, deviation = curve["grid"], curve["mean"], curve["std"]
    axes.fill_between(grid, mean - 2 * deviation, mean + 2 * deviation, color=BAND, linewidth=0)
    for earlier in range(1, batch):
        draw_data(axes, curves[earlier], PAST)
    axes.plot(grid, mean, color=INK, linewidth=0.9)
    draw_data(axes, curves[batch], BLUE)
    axes.plot(curve["z"], np.full(curve["z"].size, -3.6), "|", color=VERMILION, markersize=6,
              markeredgewidth=1)
    axes.set(xlim=(grid[0], grid[-1]), ylim=(-4.1, 4.4), yticks=(-2, 0, 2))
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    note(axes, [f"batch {batch}, $M$ = {curve['z'].size}"])
    # The tails of the outliers fit into no picture: say what is left out.
    if beyond := np.count_nonzero((curve["x"] < grid[0]) | (curve["x"] > grid[-1])):
        note(axes, [f"rows beyond: {beyond}"], x=0.02, side="left")


def draw_data(axes, curve, color):
    axes.plot(curve["x"], curve["y"], ".", color=color, markersize=3.6, markeredgewidth=0,
              rasterized=True, zorder=2)


def draw_sizes(axes, runs, shown):
    axes.axvspan(shown[0] - 0.5, shown[-1] + 0.5, color="#f2f2f2", linewidth=0)
    for run in runs:
        first = run.fold == 0
        axes.plot(run.column("batch"), run.column("inducing"), color=VERMILION,
                  marker="o" if first else None, linewidth=1.3 if first else 0.6,
                  alpha=1 if first else 0.6, markersize=3.5, zorder=3 if first else 2)
    axes.set(xticks=range(1, 11), xlim=(0.4, 10.6))


def dot(color):
    return Line2D([], [], color=color, marker=".", markersize=6, markeredgewidth=0, linestyle="")


# --- Figure 2 -------------------------------------------------------------------------------------


def figure2a(results):
    results.require("figure2a", done=True)
    figure, axes = plt.subplots(figsize=(COLUMN, 3), layout="constrained")
    lines = [("fixed-greedy", 10), ("fixed-greedy", 20), ("fixed-greedy", 30), ("exact", 0),
             ("vips", 0.05)]
    missing = []
    for index, (method, parameter) in enumerate(lines):
        look = look_of(method, parameter)
        runs = results.runs("figure2a", method=method, parameter=parameter, done=True)
        if not runs:
            missing.append(look)
            continue
        number = np.array(runs[0].column("batch"))
        errors = np.array([run.column("rmse") for run in runs])
        mean = errors.mean(axis=0)
        axes.errorbar(number + 0.05 * (index - 2), mean,
                      (mean - errors.min(axis=0), errors.max(axis=0) - mean), color=look.color,
                      marker=look.marker, elinewidth=0.7, label=look.title,
                      linestyle="--" if method == "exact" else "-")
        if method == "vips":
            sizes = np.mean([run.column("inducing") for run in runs], axis=0)
            for x, size in zip(number, sizes):
                axes.text(x, 1.02, f"{size:.0f}", transform=axes.get_xaxis_transform(),
                          ha="center", va="bottom", color=look.color, size=8)
            axes.text(-0.02, 1.02, "$M$ of VIPS:", transform=axes.transAxes, ha="right",
                      va="bottom", color=look.color, size=7.5)
    axes.set(xlabel="batch", ylabel="RMSE, mean and range of seeds", xticks=(1, 2, 3, 4),
             xlim=(0.7, 4.3))
    axes.set_ylim(bottom=0)
    note(axes, not_run(missing), x=0.03, side="left")
    figure.legend(loc="outside lower center", ncols=3, columnspacing=1.2)
    return figure


def figure2b(results):
    results.require("figure2b", done=True)
    figure, axes = plt.subplots(figsize=(COLUMN, 3), layout="constrained")
    missing = []
    for method, parameter in PAPER_NAVAL_SECONDS:
        look = look_of(method, parameter)
        runs = results.runs("figure2b", method=method, parameter=parameter, done=True)
        if not runs:
            missing.append(look)
            continue
        seconds = np.add(runs[0].column("seconds_select"), runs[0].column("seconds_fit"))
        paper = PAPER_NAVAL_SECONDS[method, parameter]
        axes.plot(runs[0].column("batch"), seconds, color=look.color, marker=look.marker,
                  label=f"{look.title}: {seconds.sum():.1f} s (paper's GPU: {paper} s)")
    axes.set(xlabel="batch", ylabel="training time of the batch (s)", yscale="log",
             xticks=(1, 5, 10, 15, 20))
    plain(axes.yaxis)
    note(axes, not_run(missing))
    figure.legend(loc="outside upper left", title="Whole stream of naval:", alignment="left",
                  title_fontsize=8)
    return figure


# --- The UCI sets ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """Means over the folds of a data set at one parameter, after the last batch."""
    folds: int
    inducing: float
    percent: dict  # metric → distance to the exact GP, 100 being that of the noise model


def read_sweep(results, method):
    """parameter → data set → what was measured; a fold without its exact GP does not count."""
    exact = {(run.data, run.fold): run.last
             for run in results.runs("uci", method="exact", done=True)}
    folds = defaultdict(lambda: defaultdict(list))
    for run in results.runs("uci", method=method, done=True):
        if (run.data, run.fold) in exact:
            folds[run.parameter][run.data].append((run.last, exact[run.data, run.fold]))
    return {parameter: {data: measured(pairs) for data, pairs in sets.items()}
            for parameter, sets in folds.items()}


def measured(pairs):
    def percent(metric):
        return fmean((last[metric] - exact[metric]) /
                     abs(exact[f"noise_{metric}"] - exact[metric]) * 100 for last, exact in pairs)

    return Measured(len(pairs), fmean(last["inducing"] for last, _ in pairs),
                    {metric: percent(metric) for metric in METRICS})


def read_sweeps(results):
    sweeps = {method: read_sweep(results, method) for method in METHODS}
    if not any(sweeps.values()):
        raise NotRun("ample-reproduce uci")
    return sweeps


def uci_sweep(results):
    sweeps = read_sweeps(results)
    figure, axes = plt.subplots(4, 3, figsize=(WIDTH, 8.2), layout="constrained")
    for index, data in enumerate(UCI_SETS):
        for row, metric in enumerate(METRICS):
            panel = axes[2 * (index // 3) + row, index % 3]
            draw_tradeoff(panel, sweeps, data, metric)
            panel.set_ylabel(f"{metric.upper()} above exact (%)" if index % 3 == 0 else "")
            if row == 0:
                panel.set_title(data)
                note(panel, sweep_notes(results, sweeps, data))
            else:
                panel.set_xlabel("inducing points $M$")
    name_methods(figure, limit="thresholds, 5 % and 10 %")
    return figure


def draw_tradeoff(axes, sweeps, data, metric):
    axes.set(xscale="log", xlim=(10, 10000))
    axes.set_yscale("symlog", linthresh=10, linscale=1)
    for method, look in METHODS.items():
        points = [(sets[data].inducing, sets[data].percent[metric])
                  for _, sets in sorted(sweeps[method].items()) if data in sets]
        if points:
            axes.plot(*zip(*points), color=look.color, marker=look.marker, markeredgecolor="white",
                      markeredgewidth=0.3, zorder=3 if method == "vips" else 2)
            axes.autoscale(axis="x")
    for threshold in (5, 10):
        axes.axhline(threshold, **LIMIT)
    bottom, top = axes.get_ylim()
    axes.set_ylim(min(bottom, -3), max(top, 50))
    left, right = axes.get_xlim()
    if right < 5 * left:  # room for two labels
        left, right = axes.set_xlim(left / 2, right * 2)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 3) if right < 100 * left else (1,)))
    axes.yaxis.set_major_locator(FixedLocator((0, 5, 10, 30, 100) if top < 300 else
                                              (0, 5, 10, 100, 1000, 10000)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
        plain(axis)


def sweep_notes(results, sweeps, data):
    if not results.runs("uci", data=data, method="exact", done=True):
        return ["exact GP: not run"]
    lines, missing = [], []
    for method, look in METHODS.items():
        folds = [sets[data].folds for sets in sweeps[method].values() if data in sets]
        if not folds:
            missing.append(look)
        elif min(folds) < FOLDS:
            lines.append(f"{look.title}: {min(folds)} of {FOLDS} folds")
    return lines + not_run(missing)


NOT_RUN = "not run"  # instead of an operating point: later runs may yet be it


def operating_point(method, sweep, metric, percent, outliers, required):
    """Of the parameters that are accurate enough on the required data sets but the outliers, the
    one with the smallest models; None if there is none, NOT_RUN if one with smaller models was not
    run on all of them and may be accurate enough."""
    for parameter in sorted(sweep, reverse=method != "oips"):
        cells = [sweep[parameter][data] for data in required if data in sweep[parameter]]
        if sum(not cell.percent[metric] <= percent for cell in cells) > outliers:
            continue
        return parameter if len(cells) == len(required) else NOT_RUN
    return None


def common_sets(sweeps):
    """The data sets that every method was run on: elsewhere nobody can win."""
    everywhere = set.intersection(*(set().union(*sweep.values()) for sweep in sweeps.values()))
    return [data for data in UCI_SETS if data in everywhere]


def count_wins(sweeps, metric, percent, outliers):
    """method → on how many data sets it is accurate enough with the smallest model; None if it has
    no operating point. NOT_RUN for all if that of one is not known."""
    sets = common_sets(sweeps)
    points = {method: operating_point(method, sweep, metric, percent, outliers, sets)
              for method, sweep in sweeps.items()}
    if NOT_RUN in points.values():
        return dict.fromkeys(points, NOT_RUN)
    counts = {method: None if point is None else 0 for method, point in points.items()}
    for data in sets:
        sizes = {}
        for method, point in points.items():
            cell = sweeps[method].get(point, {}).get(data)
            if cell and cell.percent[metric] <= percent:
                sizes[method] = cell.inducing
        if sizes:
            counts[min(sizes, key=sizes.get)] += 1
    return counts


def wins(results):
    sweeps = read_sweeps(results)
    sets = common_sets(sweeps)
    if not sets:
        raise NotRun("ample-reproduce uci, for a data set that all methods were run on")
    figure, axes = plt.subplots(2, 2, figsize=(WIDTH, 4.6), layout="constrained", sharex=True,
                                sharey=True)
    for row, percent in enumerate((5, 10)):
        for column, metric in enumerate(METRICS):
            panel = axes[row, column]
            panel.set_title(f"within {percent} % of the exact GP's {metric.upper()}")
            letter(panel, 2 * row + column)
            for outliers in range(3):
                if (metric, percent, outliers) == ("nlpd", 5, 0):
                    panel.text(0, 0.2, "not in\nthe paper", ha="center", size=6.8, color=GREY)
                    continue
                draw_wins(panel, outliers, count_wins(sweeps, metric, percent, outliers))
    axes[0, 0].set(xticks=range(3), xticklabels=("none", "one", "two"), ylim=(0, len(sets) + 0.6),
                   yticks=range(len(sets) + 1))
    for panel in axes[1]:
        panel.set_xlabel("outliers allowed")
    for panel in axes[:, 0]:
        panel.set_ylabel(f"wins, of {len(sets)} sets")
    handles = [Patch(color=look.color, label=look.title) for look in METHODS.values()]
    handles.append(Line2D([], [], linestyle="", marker="_", color=GREY, markersize=5,
                          label="no parameter is accurate enough"))
    figure.legend(handles=handles, loc="outside lower left", ncols=4, alignment="left",
                  title=f"Judged and counted on {', '.join(sets)}, which all methods were run on",
                  title_fontsize=7.5)
    return figure


def draw_wins(axes, outliers, counts):
    if NOT_RUN in counts.values():
        axes.text(outliers, 0.2, NOT_RUN, ha="center", size=6.8, color=GREY)
        return
    for index, (method, count) in enumerate(counts.items()):
        x = outliers + 0.26 * (index - 1)
        axes.bar(x, count or 0, width=0.24, color=METHODS[method].color)
        axes.text(x, (count or 0) + 0.1, "–" if count is None else count, ha="center", va="bottom",
                  size=7.5, color=GREY)


# --- The magnetic field ---------------------------------------------------------------------------

FIELD = matplotlib.colormaps["viridis"]
FIELD_RANGE = (10, 90)  # µT
FADED = 10  # µT of standard deviation at which a colour has faded to white
MAPS = {  # batch → title
    "magnetic-paths": {1: "after path 1", 2: "after path 2", 3: "after path 4", 4: "after path 5"},
    "magnetic-stream": {batch: f"after batch {batch}" for batch in (1, 5, 10, 15, 20)},
}


def magnetic_main(results):
    figure = draw_maps(results, [[("magnetic-paths", "vips", 4), ("magnetic-stream", "vips", 20)]],
                       2.3)
    for panel, title in zip(figure.axes, ("paths 1, 2, 4 and 5, one by one", "path 3, in pieces")):
        panel.set_title(title)
    return figure


def magnetic_paths(results):
    return compare_maps(results, "magnetic-paths")


def magnetic_stream(results):
    return compare_maps(results, "magnetic-stream")


def compare_maps(results, experiment):
    titles = MAPS[experiment]
    figure = draw_maps(results, [[(experiment, method, batch) for batch in titles]
                                 for method in METHODS], 5.5 / len(titles))
    for panel, title in zip(figure.axes, titles.values()):
        panel.set_title(title)
    for panel, look in zip(figure.axes[::len(titles)], METHODS.values()):
        panel.annotate(look.title, (0, 0.5), (-36, 0), xycoords="axes fraction", rotation=90,
                       textcoords="offset points", ha="center", va="center", weight="bold",
                       color=look.color)
    return figure


def draw_maps(results, cells, width):
    """Rows of cells (experiment, method, batch), each a map this many inches wide."""
    fields = {}
    for experiment, method in dict.fromkeys(cell[:2] for row in cells for cell in row):
        for run in results.runs(experiment, method=method, done=True):
            for batch, field in results.drawings(run).items():
                fields[experiment, method, batch] = field, run.batches[batch - 1]["rmse"]
    if not fields:
        names = dict.fromkeys(experiment for row in cells for experiment, _, _ in row)
        raise NotRun(f"ample-reproduce {' '.join(names)}")

    field, _ = next(iter(fields.values()))  # all maps are of the same part of the room
    shape = (field["high"][1] - field["low"][1]) / (field["high"][0] - field["low"][0])
    figure, axes = map_grid(len(cells), len(cells[0]), width, shape * width)
    for panel, cell in zip(axes.flat, (cell for row in cells for cell in row)):
        if cell not in fields:
            panel.text(0.5, 0.5, "not run", transform=panel.transAxes, ha="center", va="center",
                       color=GREY)
            continue
        field, rmse = fields[cell]
        draw_map(panel, field)
        experiment, _, batch = cell
        size = f"$M$ = {len(field['z'][0])}"
        last = batch == max(MAPS[experiment])
        panel.set_xlabel(f"{size}\nRMSE {rmse:.2f} µT" if last else size, labelpad=2)
    return figure


def map_grid(rows, columns, width, height):
    """Panels of a size in inches, on the right the key to their colours, below that to the rest."""
    left, right, bottom, top, between, below = 0.62, 1.05, 0.78, 0.22, 0.07, 0.52
    total_width = left + columns * width + (columns - 1) * between + right
    total_height = bottom + rows * height + (rows - 1) * below + top
    figure = plt.figure(figsize=(total_width, total_height))
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True, gridspec_kw={
        "left": left / total_width, "right": 1 - right / total_width, "wspace": between / width,
        "bottom": bottom / total_height, "top": 1 - top / total_height, "hspace": below / height})
    for panel in axes.flat:
        panel.spines[:].set_visible(True)
        panel.tick_params(length=2, labelsize=6.5, labelbottom=True)
    for panel in axes[:, 0]:
        panel.set_ylabel("$y$ (m)", labelpad=1)

    figure.legend(handles=[
        Line2D([], [], linestyle="", marker=".", color="black", markersize=4, label="inducing point"),
        Line2D([], [], color=INK, linewidth=0.8, linestyle=(0, (1, 1.5)), label="path walked"),
        Patch(facecolor="white", edgecolor=GREY, linewidth=0.5,
              label="the paler, the larger the marginal variance; axes in metres"),
    ], loc="lower left", ncols=3, bbox_to_anchor=(left / total_width, 0), borderaxespad=0.3,
        handlelength=1.4)

    middle = (bottom + total_height - top) / 2
    key = figure.add_axes((1 - 0.5 / total_width, (middle - 0.6) / total_height,
                           0.35 / total_width, 1.2 / total_height))
    mean, deviation = np.meshgrid(np.linspace(*FIELD_RANGE, 100), np.linspace(0, FADED, 50),
                                  indexing="ij")
    key.imshow(field_colors(mean, deviation), origin="lower", aspect="auto",
               extent=(0, FADED, *FIELD_RANGE))
    key.set(xticks=(0, FADED), yticks=(10, 30, 50, 70, 90))
    key.set_xlabel("std. dev.\n(µT)", labelpad=1)
    key.set_ylabel("mean (µT)", labelpad=1)
    return figure, axes


def draw_map(axes, field):
    n, low, high = field["n"], np.array(field["low"]), np.array(field["high"])
    mean = np.array(field["mean"]).reshape(n, n)
    deviation = np.array(field["std"]).reshape(n, n)
    half = (high - low) / (n - 1) / 2  # the grid's points are the middles of the cells
    axes.imshow(field_colors(mean, deviation), origin="lower", interpolation="bilinear",
                aspect="auto",
                extent=(low[0] - half[0], high[0] + half[0], low[1] - half[1], high[1] + half[1]))
    axes.plot(*field["path"], color=INK, linewidth=0.6, linestyle=(0, (1, 1.5)))
    axes.plot(*field["z"], ".", color="black", markersize=2.4 if len(field["z"][0]) < 500 else 1.2,
              markeredgewidth=0, rasterized=True)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    axes.xaxis.set_major_locator(MultipleLocator(2))
    axes.yaxis.set_major_locator(MultipleLocator(2))


def field_colors(mean, deviation):
    low, high = FIELD_RANGE
    colors = FIELD(np.clip((mean - low) / (high - low), 0, 1))
    colors[..., 3] = np.clip(1 - deviation / FADED, 0, 1)
    return colors


# --- Large ----------------------------------------------------------------------------------------


def large(results):
    results.require("large")
    figure, axes = plt.subplots(1, 3, figsize=(WIDTH, 2.7), layout="constrained", sharey=True)
    for column, (data, title) in enumerate(SCENARIOS.items()):
        panel = axes[column]
        panel.set_title(title)
        letter(panel, column)
        missing = []
        for method, look in METHODS.items():
            runs = results.runs("large", data=data, method=method, done=True)
            if not runs:
                missing.append(look)
                continue
            panel.plot(np.array(runs[0].column("rows_seen")) / 1000, runs[0].column("inducing"),
                       color=look.color, marker=look.marker, markevery=(9, 10))
        panel.axhline(LARGE_CAP, **LIMIT)
        panel.set(xlabel="rows seen (thousands)", xlim=(0, 51))
        note(panel, not_run(missing), y=0.86)
    axes[0].set(ylabel="inducing points $M$", yscale="log", ylim=(80, 8000))
    axes[0].yaxis.set_major_locator(FixedLocator((100, 200, 500, 1000, 2000, 5000)))
    axes[0].yaxis.set_minor_locator(NullLocator())
    plain(axes[0].yaxis)
    name_methods(figure, limit="limit for CV")
    return figure


# --- Fronts ---------------------------------------------------------------------------------------

FRONTS = {  # start and way of choosing
    ("paper", "variance"): Look("the paper's start, by variance", INK, ""),
    ("paper", "gain"): Look("the paper's start, by gain", BLUE, ""),
    ("default", "variance"): Look("default start, by variance", PURPLE, ""),
    ("default", "gain"): Look("default start, by gain", VERMILION, ""),
}
PRUNED = {"0": ("o", "-"), "0.01": ("s", (0, (4, 1.5))), "0.05": ("^", (0, (1.2, 1.2)))}  # β


def read_fronts(results):
    """(start, choice, β) → data set → [(δ, M, RMSE, NLPD)], and data set → folds. Means over the folds
    that all rules were run on. The paper's rule is that of the experiments uci and magnetic-paths."""
    found = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    for run in (*results.runs("uci", method="vips", done=True),
                *results.runs("magnetic-paths", method="vips", done=True)):
        found["paper", "variance", "0"][run.data][run.parameter][run.fold] = run.last
    for run in results.runs("fronts", done=True):
        if run.method.count("-") > 2:  # a cap of its own, which makes no front
            continue
        found[tuple(run.method.split("-"))][run.data][run.parameter][run.fold] = run.last
    common = {}
    for sets in found.values():
        for data, points in sets.items():
            for folds in points.values():
                common[data] = common.get(data, set(folds)) & set(folds)
    fronts = {rule: {data: [(delta, *(fmean(folds[fold][name] for fold in common[data])
                                      for name in ("inducing", *METRICS)))
                            for delta, folds in sorted(points.items())]
                     for data, points in sets.items() if common[data]}
              for rule, sets in found.items()}
    return fronts, common


def fronts(results):
    results.require("fronts", done=True)
    rules, folds = read_fronts(results)
    figure, axes = plt.subplots(4, 4, figsize=(WIDTH, 8.6), layout="constrained")
    for index, data in enumerate((*UCI_SETS, "magnetic")):
        for row, metric in enumerate(METRICS):
            panel = axes[2 * (index // 4) + row, index % 4]
            draw_front(panel, rules, data, metric)
            unit = " (µT)" if data == "magnetic" and metric == "rmse" else ""
            panel.set_ylabel(metric.upper() + unit if index % 4 == 0 or unit else "")
            if row == 0:
                panel.set_title(data)
                count = len(folds.get(data, ()))
                if count < FOLDS and data != "magnetic":
                    note(panel, [f"{count} of {FOLDS} folds"])
            else:
                panel.set_xlabel("inducing points $M$")
    for panel in axes[2:, 3]:
        panel.axis("off")
    handles = [Line2D([], [], color=look.color, label=look.title) for look in FRONTS.values()]
    handles += [Line2D([], [], color=GREY, marker=marker, linestyle=line, label=f"β = {beta}")
                for beta, (marker, line) in PRUNED.items()]
    axes[2, 3].legend(handles=handles, loc="upper left", borderaxespad=0, handlelength=2.6,
                      title="along each line δ, from 0.2 (left)\nto 0.02 (right) or further",
                      alignment="left", title_fontsize=7.5)
    return figure


def draw_front(axes, rules, data, metric):
    axes.set_xscale("log")
    for (start, choice, beta), sets in sorted(rules.items(), reverse=True):
        if data not in sets:
            continue
        marker, line = PRUNED[beta]
        _, sizes, *errors = zip(*sets[data])
        values = errors[METRICS.index(metric)]
        own = (start, choice, beta) == ("paper", "variance", "0")
        axes.plot(sizes, values, color=FRONTS[start, choice].color, marker=marker, linestyle=line,
                  markersize=3.4, linewidth=1.6 if own else 0.9, markeredgecolor="white",
                  markeredgewidth=0.3, zorder=4 if own else 2)
    if metric == "rmse" and axes.dataLim.ymax > 8 * axes.dataLim.ymin:
        axes.set_yscale("log")
        plain(axes.yaxis)
    left, right = axes.get_xlim()
    if right < 10 * left:  # room for two labels
        left, right = axes.set_xlim(left / 1.5, right * 1.5)
    # Not LogLocator, which counts in steps of 100 where only one of its own ticks would be seen.
    ticks = [digit * 10**power for power in range(5) for digit in (1, 3)]
    axes.xaxis.set_major_locator(FixedLocator([tick for tick in ticks if left <= tick <= right]))
    axes.xaxis.set_minor_locator(NullLocator())
    plain(axes.xaxis)


# --- Command line ---------------------------------------------------------------------------------

FIGURES = {
    "figure1": figure1,
    "figure2a": figure2a,
    "figure2b": figure2b,
    "uci-sweep": uci_sweep,
    "wins": wins,
    "magnetic-main": magnetic_main,
    "magnetic-paths": magnetic_paths,
    "magnetic-stream": magnetic_stream,
    "large": large,
    "fronts": fronts,
}


def draw(results, names, folder):
    """The names of those that were drawn."""
    drawn = []
    plt.rcParams.update(STYLE)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        try:
            save(FIGURES[name](results), folder / name)
            drawn.append(name)
        except NotRun as missing:
            print(f"draw.py: {name} skipped, nothing of it was run: {missing}", file=sys.stderr)
    return drawn


def save(figure, path):
    # Without dates, which would make every file a new one.
    for suffix, metadata in (("png", {"Software": None}), ("svg", {"Date": None}),
                             ("pdf", {"CreationDate": None})):
        figure.savefig(path.with_suffix(f".{suffix}"), dpi=150 if suffix == "png" else 200,
                       metadata=metadata)
    plt.close(figure)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        complain(message, 2)


def complain(message, code):
    print(f"draw.py: {message}", file=sys.stderr)
    sys.exit(code)


def main():
    parser = Parser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, metavar="RESULTS.sqlite")
    parser.add_argument("--out", type=Path, metavar="FOLDER")
    parser.add_argument("--only", action="append", choices=FIGURES, metavar="NAME")
    options = parser.parse_args()
    if not options.results.is_file():
        complain(f"no file '{options.results}'", 3)
    folder = options.out or options.results.parent / "figures"
    try:
        with closing(Results(options.results)) as results:
            if not draw(results, options.only or FIGURES, folder):
                complain("there is nothing to draw yet", 3)
    except sqlite3.Error as error:
        complain(f"'{options.results}' cannot be read as results: {error}", 3)
    except OSError as error:
        complain(f"'{folder}' cannot be written: {error.strerror}", 3)


if __name__ == "__main__":
    main()
