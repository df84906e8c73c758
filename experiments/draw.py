#!/usr/bin/env python3
"""Draws the figures of the experiments from what `ample reproduce` wrote.

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

What has not been run yet is left out and named in the figure; a figure of which nothing has been
run is skipped. Exit code 2 for a wrong command line, 3 for a file that is not one of results.
"""

import argparse
import json
import sqlite3
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

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
INK, GREY, PALE = "#1a1a1a", "#5a5a5a", "#c9c9c9"


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
    10: Look("fixed M = 10", "#8fc9ee", "v"),
    20: Look("fixed M = 20", "#3a94d0", "<"),
    30: Look("fixed M = 30", "#00406b", ">"),
    100: Look("fixed M = 100", "#56b4e9", "v"),
    1000: Look("fixed M = 1000", "#00406b", ">"),
}

SCENARIOS = {
    "growing-domain": "growing domain",
    "fixed-domain": "fixed domain",
    "outliers": "outliers",
}
UCI_SETS = ("concrete", "skillcraft", "kin8nm", "naval", "elevators", "bike")
FOLDS = 5
METRICS = ("rmse", "nlpd")

PAPER_NAVAL_SECONDS = {"vips": 15.2, 100: 24.7, 1000: 424.3}  # on an RTX 6000
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

    @property
    def look(self):
        if self.method == "exact":
            return EXACT
        return FIXED[self.parameter] if self.method == "fixed-greedy" else METHODS[self.method]


class Results:
    """The runs of a file of results that have at least one batch."""

    def __init__(self, path):
        self._database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        self._database.row_factory = sqlite3.Row
        batches = defaultdict(list)
        for row in self._database.execute("SELECT * FROM batches ORDER BY run, batch"):
            batches[row["run"]].append(row)
        self._runs = [
            Run(row["run"], row["experiment"], row["data"], row["method"], row["parameter"],
                row["fold"], row["state"] == "done", batches[row["run"]])
            for row in self._database.execute("SELECT * FROM runs ORDER BY run")
            if batches[row["run"]]
        ]

    def runs(self, experiment, **wanted):
        """Those with these members, such as data="naval"."""
        return [run for run in self._runs if run.experiment == experiment and
                all(getattr(run, name) == value for name, value in wanted.items())]

    def some_runs(self, experiment, **wanted):
        """The same, where a figure cannot do without."""
        if runs := self.runs(experiment, **wanted):
            return runs
        raise NotRun(f"ample reproduce {experiment}")

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


def not_run(missing):
    """The methods of which there is nothing, as a line to note; or no line."""
    return [f"{', '.join(METHODS[method].title for method in missing)}: not run"] if missing else []


def plain(axis):
    """Numbers on a logarithmic axis as 10, 1000 and 0.01 rather than as powers."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}".replace("-", "−")))


# --- Figure 1 -------------------------------------------------------------------------------------

# What changes is seen from one of these to the next; the outliers begin in batch 8.
FIGURE1_BATCHES = {
    "growing-domain": (4, 5, 6), "fixed-domain": (1, 2, 3), "outliers": (7, 8, 9)}


def figure1(results):
    results.some_runs("figure1")
    figure, axes = plt.subplots(4, 3, figsize=(WIDTH, 6.6), layout="constrained", sharey="row",
                                height_ratios=(1, 1, 1, 1.25))
    for column, (data, title) in enumerate(SCENARIOS.items()):
        axes[0, column].set_title(title)
        letter(axes[0, column], column)
        letter(axes[3, column], column + 3)
        runs = results.runs("figure1", data=data)
        shown = FIGURE1_BATCHES[data]
        if curves := next((results.drawings(run) for run in runs if run.fold == 0), None):
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
        "earlier data": dot(PALE),
        "data of the batch": dot(BLUE),
        "mean ± 2 standard deviations": (Patch(color="#ececec"), Line2D([], [], color=INK)),
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
    axes.fill_between(grid, mean - 2 * deviation, mean + 2 * deviation, color="#ececec",
                      linewidth=0)
    for earlier in range(1, batch):
        draw_data(axes, curves[earlier], PALE)
    draw_data(axes, curves[batch], BLUE)
    axes.plot(grid, mean, color=INK, linewidth=1)
    axes.plot(curve["z"], np.full(curve["z"].size, -3.6), "|", color=VERMILION, markersize=6,
              markeredgewidth=1)
    axes.set(xlim=(grid[0], grid[-1]), ylim=(-4.1, 4.4), yticks=(-2, 0, 2))
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    note(axes, [f"batch {batch}, $M$ = {curve['z'].size}"])
    # The tails of the outliers fit into no picture: say what is left out.
    if beyond := np.count_nonzero((curve["x"] < grid[0]) | (curve["x"] > grid[-1])):
        note(axes, [f"{beyond} rows beyond"], x=0.02, side="left")


def draw_data(axes, curve, color):
    axes.plot(curve["x"], curve["y"], ".", color=color, markersize=3, markeredgewidth=0,
              rasterized=True)


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
    results.some_runs("figure2a", done=True)
    figure, axes = plt.subplots(figsize=(COLUMN, 2.9), layout="constrained")
    lines = [("fixed-greedy", 10), ("fixed-greedy", 20), ("fixed-greedy", 30), ("exact", 0),
             ("vips", 0.05)]
    missing = []
    for index, (method, parameter) in enumerate(lines):
        runs = results.runs("figure2a", method=method, parameter=parameter, done=True)
        if not runs:
            missing.append(f"{method} {parameter:g}: not run")
            continue
        number = np.array(runs[0].column("batch"))
        errors = np.array([run.column("rmse") for run in runs])
        mean = errors.mean(axis=0)
        look = runs[0].look
        axes.errorbar(number + 0.05 * (index - 2), mean,
                      (mean - errors.min(axis=0), errors.max(axis=0) - mean), color=look.color,
                      marker=look.marker, elinewidth=0.7, label=look.title)
        if method == "vips":
            sizes = np.mean([run.column("inducing") for run in runs], axis=0)
            for x, size in zip(number, sizes):
                axes.text(x, 1.02, f"{size:.0f}", transform=axes.get_xaxis_transform(),
                          ha="center", va="bottom", color=look.color, size=8)
            axes.text(-0.02, 1.02, "$M$ of VIPS:", transform=axes.transAxes, ha="right",
                      va="bottom", color=look.color, size=7.5)
    axes.set(xlabel="batch", ylabel="RMSE", xticks=(1, 2, 3, 4), xlim=(0.7, 4.3))
    axes.set_ylim(bottom=0)
    note(axes, missing, y=0.5)
    axes.legend(loc="upper left", bbox_to_anchor=(0, 0.98), handlelength=1.8)
    return figure


def figure2b(results):
    results.some_runs("figure2b", done=True)
    figure, axes = plt.subplots(figsize=(COLUMN, 2.9), layout="constrained")
    missing = []
    for method, parameter in (("fixed-greedy", 1000), ("fixed-greedy", 100), ("vips", 0.05)):
        paper = PAPER_NAVAL_SECONDS[method if method == "vips" else parameter]
        runs = results.runs("figure2b", method=method, parameter=parameter, done=True)
        if not runs:
            missing.append(f"{method} {parameter:g}: not run")
            continue
        run = runs[0]
        seconds = np.add(run.column("seconds_select"), run.column("seconds_fit"))
        axes.plot(run.column("batch"), seconds, color=run.look.color, marker=run.look.marker,
                  label=f"{run.look.title}: {seconds.sum():.1f} s (paper's GPU: {paper} s)")
    axes.set(xlabel="batch", ylabel="training time of the batch (s)", yscale="log",
             xticks=(1, 5, 10, 15, 20))
    plain(axes.yaxis)
    note(axes, missing)
    figure.legend(loc="outside upper left", title="naval, in total", alignment="left",
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
        raise NotRun("ample reproduce uci")
    return sweeps


def uci_sweep(results):
    sweeps = read_sweeps(results)
    figure, axes = plt.subplots(4, 3, figsize=(WIDTH, 8.2), layout="constrained")
    for index, data in enumerate(UCI_SETS):
        for row, metric in enumerate(METRICS):
            panel = axes[2 * (index // 3) + row, index % 3]
            draw_tradeoff(panel, sweeps, data, metric)
            panel.set_ylabel(f"{metric.upper()} distance (%)" if index % 3 == 0 else "")
            if row == 0:
                panel.set_title(data)
                note(panel, sweep_notes(results, sweeps, data))
            else:
                panel.set_xlabel("inducing points $M$")
    handles = [Line2D([], [], color=look.color, marker=look.marker, label=look.title)
               for look in METHODS.values()]
    handles.append(Line2D([], [], color=GREY, linewidth=0.8, dashes=(4, 2),
                          label="thresholds, 5 % and 10 %"))
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def draw_tradeoff(axes, sweeps, data, metric):
    for threshold in (5, 10):
        axes.axhline(threshold, color=GREY, linewidth=0.8, dashes=(4, 2), zorder=1)
    for method, look in METHODS.items():
        points = sorted((sets[data].inducing, sets[data].percent[metric])
                        for sets in sweeps[method].values() if data in sets)
        if points:
            axes.plot(*zip(*points), color=look.color, marker=look.marker, markersize=3.2)
    axes.set_xscale("log")
    axes.set_xlim(3, 10000)
    axes.set_yscale("symlog", linthresh=10, linscale=1)
    axes.set_ylim(-3, 20000)
    axes.xaxis.set_major_locator(FixedLocator((10, 100, 1000, 10000)))
    axes.yaxis.set_major_locator(FixedLocator((0, 5, 10, 100, 1000, 10000)))
    axes.yaxis.set_minor_locator(NullLocator())
    plain(axes.xaxis)
    plain(axes.yaxis)


def sweep_notes(results, sweeps, data):
    if not results.runs("uci", data=data, method="exact", done=True):
        return ["exact GP: not run"]
    lines, missing = [], []
    for method, look in METHODS.items():
        folds = [sets[data].folds for sets in sweeps[method].values() if data in sets]
        if not folds:
            missing.append(method)
        elif min(folds) < FOLDS:
            lines.append(f"{look.title}: {min(folds)} of {FOLDS} folds")
    return lines + not_run(missing)


def operating_point(method, sweep, metric, percent, outliers):
    """Of the parameters that are accurate enough on all data sets but the outliers, the one with
    the smallest models; it must have been run wherever the method was."""
    required = set().union(*sweep.values())
    accurate = [
        parameter for parameter, sets in sweep.items() if required <= set(sets) and
        sum(not cell.percent[metric] <= percent for cell in sets.values()) <= outliers
    ]
    return (min if method == "oips" else max)(accurate, default=None)


def count_wins(sweeps, metric, percent, outliers):
    """method → on how many data sets it is accurate enough with the smallest model; None if it has
    no operating point."""
    points = {method: operating_point(method, sweep, metric, percent, outliers)
              for method, sweep in sweeps.items()}
    counts = {method: None if point is None else 0 for method, point in points.items()}
    for data in UCI_SETS:
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
    axes[0, 0].set(xticks=range(3), xticklabels=("none", "one", "two"), ylim=(0, 6.6),
                   yticks=range(0, 7, 2))
    for panel in axes[1]:
        panel.set_xlabel("outliers allowed")
    for panel in axes[:, 0]:
        panel.set_ylabel("wins")
    handles = [Patch(color=look.color, label=judged_on(look, sweeps[method]))
               for method, look in METHODS.items()]
    figure.legend(handles=handles, loc="outside lower left")
    return figure


def draw_wins(axes, outliers, counts):
    for index, (method, count) in enumerate(counts.items()):
        x = outliers + 0.26 * (index - 1)
        axes.bar(x, count or 0, width=0.24, color=METHODS[method].color)
        axes.text(x, (count or 0) + 0.1, "–" if count is None else count, ha="center", va="bottom",
                  size=7.5, color=GREY)


def judged_on(look, sweep):
    required = set().union(*sweep.values())
    if not required:
        return f"{look.title}: not run"
    if len(required) == len(UCI_SETS):
        return f"{look.title}, judged on all six sets"
    return f"{look.title}, judged on {', '.join(data for data in UCI_SETS if data in required)}"


# --- The magnetic field ---------------------------------------------------------------------------

FIELD = matplotlib.colormaps["viridis"]
FIELD_RANGE = (10, 90)  # µT
FADED = 15  # µT of standard deviation at which a colour has faded to white
MAPS = {  # batch → title
    "magnetic-paths": {1: "path 1", 2: "path 2", 3: "path 4", 4: "path 5"},
    "magnetic-stream": {batch: f"batch {batch}" for batch in (1, 5, 10, 15, 20)},
}


def magnetic_paths(results):
    return draw_maps(results, "magnetic-paths", "after path 5, tested on path 3")


def magnetic_stream(results):
    return draw_maps(results, "magnetic-stream", "after batch 20, tested on the other paths")


def draw_maps(results, experiment, tested):
    results.some_runs(experiment)
    titles = MAPS[experiment]
    panel = (WIDTH - 1.5) / len(titles)
    figure, axes = plt.subplots(3, len(titles) + 1, figsize=(WIDTH, 3 * (panel + 0.28) + 0.3),
                                layout="constrained",
                                width_ratios=[1] * len(titles) + [0.16 * len(titles) / 4])
    for row, (method, look) in enumerate(METHODS.items()):
        runs = results.runs(experiment, method=method)
        maps = results.drawings(runs[0]) if runs else {}
        for column, (batch, title) in enumerate(titles.items()):
            cell = axes[row, column]
            if batch in maps:
                draw_map(cell, maps[batch])
            else:
                cell.set(xticks=(), yticks=(), aspect="equal", box_aspect=1)
                cell.text(0.5, 0.5, "not run", transform=cell.transAxes, ha="center", va="center",
                          color=GREY)
            if row == 0:
                cell.set_title(title)
            if batch in maps:
                cell.set_xlabel(f"$M$ = {len(maps[batch]['z'][0])}")
    return figure


def draw_map(axes, field):
    n, low, high = field["n"], np.array(field["low"]), np.array(field["high"])
    mean = np.array(field["mean"]).reshape(n, n)
    deviation = np.array(field["std"]).reshape(n, n)
    half = (high - low) / (n - 1) / 2  # the grid's points are the middles of the cells
    axes.imshow(field_colors(mean, deviation), origin="lower", interpolation="bilinear",
                extent=(low[0] - half[0], high[0] + half[0], low[1] - half[1], high[1] + half[1]))
    axes.plot(*field["path"], color=INK, linewidth=0.6, linestyle=(0, (1, 1.5)))
    axes.plot(*field["z"], ".", color="black", markersize=2.4, markeredgewidth=0, rasterized=True)


def field_colors(mean, deviation):
    low, high = FIELD_RANGE
    colors = FIELD(np.clip((mean - low) / (high - low), 0, 1))
    colors[..., 3] = np.clip(1 - deviation / FADED, 0, 1)
    return colors


# --- Large ----------------------------------------------------------------------------------------


def large(results):
    results.some_runs("large")
    figure, axes = plt.subplots(1, 3, figsize=(WIDTH, 2.5), layout="constrained", sharey=True)
    for column, (data, title) in enumerate(SCENARIOS.items()):
        panel = axes[column]
        panel.set_title(title)
        letter(panel, column)
        missing = []
        for method, look in METHODS.items():
            runs = results.runs("large", data=data, method=method)
            if not runs:
                missing.append(method)
                continue
            panel.plot(np.array(runs[0].column("rows_seen")) / 1000, runs[0].column("inducing"),
                       color=look.color, marker=look.marker, markevery=10)
        panel.axhline(LARGE_CAP, color=GREY, linewidth=0.8, dashes=(4, 2))
        panel.set_xlabel("rows seen (thousands)")
        note(panel, not_run(missing), y=0.9)
    axes[0].set_ylabel("inducing points $M$")
    return figure


# --- Command line ---------------------------------------------------------------------------------

FIGURES = {
    "figure1": figure1,
    "figure2a": figure2a,
    "figure2b": figure2b,
    "uci-sweep": uci_sweep,
    "wins": wins,
    "magnetic-paths": magnetic_paths,
    "magnetic-stream": magnetic_stream,
    "large": large,
}


def save(figure, path):
    # Without dates, which would make every file a new one.
    for suffix, metadata in (("png", {"Software": None}), ("svg", {"Date": None}),
                             ("pdf", {"CreationDate": None})):
        figure.savefig(path.with_suffix(f".{suffix}"), dpi=150 if suffix == "png" else 300,
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
    parser.add_argument("results", type=Path)
    parser.add_argument("--out", type=Path, metavar="FOLDER")
    parser.add_argument("--only", action="append", choices=FIGURES, metavar="NAME")
    options = parser.parse_args()
    if not options.results.is_file():
        complain(f"no file '{options.results}'", 3)
    try:
        results = Results(options.results)
    except sqlite3.Error as error:
        complain(f"'{options.results}' is not a file of results: {error}", 3)

    plt.rcParams.update(STYLE)
    folder = options.out or options.results.parent / "figures"
    for name in options.only or FIGURES:
        try:
            figure = FIGURES[name](results)
        except NotRun as missing:
            print(f"draw.py: {name} skipped, nothing of it was run: {missing}", file=sys.stderr)
            continue
        try:
            folder.mkdir(parents=True, exist_ok=True)
            save(figure, folder / name)
        except OSError as error:
            complain(f"'{folder}' cannot be written: {error.strerror}", 3)


if __name__ == "__main__":
    main()
