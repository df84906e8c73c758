"""Makes the page and the figure of the study from its results.

    scripts/bench --defaults --publish

Nothing is measured here; what was not measured is left empty.
"""

import sys

from case import BATCH, ORDERS
from programs import ORDERLESS, PROGRAMS
from run import HERE, RESULTS, read
from tables import TABLES

ROOT = HERE.parents[1]
PAGE, FIGURE = ROOT / "docs/defaults.md", ROOT / "docs/figures/defaults.png"

# A River regressor is chosen for each table and order, by its error there.
RIVER = {
    "river-forest": "adaptive random forest",
    "river-mondrian": "aggregated Mondrian forest",
    "river-tree": "Hoeffding adaptive tree",
    "river-linear": "linear model",
}
GPS = ("exact", "svgp")  # the peers that are Gaussian processes
NAMES = {
    "ample": "Ample",
    "ample-first-release": "first release",
    "exact": "exact GP",
    "svgp": "SVGP",
    "lightgbm": "LightGBM",
    "river": "River",
}
CAPTIONS = {"shuffled": "shuffled", "sorted": "sorted by the first input", "file": "in the order of the file"}


class Results:
    """Runs by program, table and order, with numbers for their fields."""

    def __init__(self, path):
        self.runs = {}
        for key, run in read(path).items():
            if run["rmse"]:
                numbers = ("rmse", "nlpd", "coverage", "seconds", "cpu_seconds", "load")
                # Of small tables the tenth held out has too few rows to tell a coverage by.
                run["coverage"] = run.get("coverage_of_all") or run["coverage"]
                self.runs[key] = run | {name: float(run[name]) for name in numbers}

    def get(self, program, table, order):
        if program == "river":
            found = [self.runs[r, table, order] for r in RIVER if (r, table, order) in self.runs]
            return min(found, key=lambda run: run["rmse"], default=None)
        return self.runs.get((program, table, "shuffled" if program in ORDERLESS else order))

    def best_gp(self, table, order, field):
        found = [run[field] for name in GPS if (run := self.get(name, table, order))]
        return min(found, default=None)


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def plain(run, field):
    if run is None:
        return ""
    if field == "size":
        return run["size"]
    value = run[field]
    mark = "†" if run["note"] else ""
    if field == "rmse":
        return f"{value:.4f}{mark}" if value < 0.1 else f"{value:.3f}{mark}"
    if field in ("seconds", "cpu_seconds"):
        return f"{value:.2g}" if value < 10 else f"{value:.0f}"
    return f"{value:.2f}"


def section(results, order):
    """What each program did on each table, one figure after the other."""
    parts = [f"## Rows {CAPTIONS[order]}"]
    for field, title in (
        ("rmse", "RMSE, in units of the target's deviation"),
        ("nlpd", "NLPD, mean over the rows held out, in nats"),
        ("coverage", "Share of the rows held out within their 95 % intervals"),
        ("cpu_seconds", "Seconds of processor time to learn"),
    ):
        rows = []
        for name in TABLES:
            runs = [results.get(program, name, order) for program in NAMES]
            cells = [plain(run, field) for run in runs]
            values = [run[field] for run in runs if run]
            if values and field in ("rmse", "nlpd"):
                cells = [f"**{cell}**" if run and run[field] == min(values) else cell for cell, run in zip(cells, runs)]
            size = [plain(runs[0], "size")] if field == "rmse" else []
            rows.append([name, *cells, *size])
        header = ["table", *NAMES.values(), *(["Ample's points"] if field == "rmse" else [])]
        parts.append(f"{title}:\n\n{table(header, rows)}")
    return "\n\n".join(parts)


def count(pairs, holds):
    """"7 of 9", and those for which it does not hold."""
    pairs = [(name, *values) for name, *values in pairs if None not in values]
    missed = [name for name, *values in pairs if not holds(*values)]
    text = f"{len(pairs) - len(missed)} of {len(pairs)}"
    return text + (f" (not {', '.join(missed)})" if missed else "")


def field_of(run, field):
    return run and run[field]


def summary(results):
    def against_gps(field):
        return [(t, field_of(results.get("ample", t, "shuffled"), field), results.best_gp(t, "shuffled", field)) for t in TABLES]

    def sorted_pairs():
        for t in TABLES:
            first = results.get("ample-first-release", t, "sorted")
            whole = first if first and not first["note"] else None  # it saw all rows
            yield t, field_of(results.get("ample", t, "sorted"), "rmse"), field_of(whole, "rmse")

    def coverages():
        for order in ORDERS:
            for t in TABLES:
                exact = results.get("exact", t, "shuffled")
                yield f"{t} {order}", field_of(results.get("ample", t, order), "coverage"), exact["coverage"] if exact else 0.95

    def times():
        for order in ORDERS:
            for t in TABLES:
                yield f"{t} {order}", *(field_of(results.get(p, t, order), "cpu_seconds") for p in ("ample", "svgp"))

    rows = [
        ["RMSE at or below the better of exact GP and SVGP, shuffled", count(against_gps("rmse"), lambda a, b: a <= b)],
        ["the same, within 2 %", count(against_gps("rmse"), lambda a, b: a <= 1.02 * b)],
        ["NLPD at or below the better of exact GP and SVGP, shuffled", count(against_gps("nlpd"), lambda a, b: a <= b)],
        ["sorted, RMSE at most 2 % above the first release's, where that ends within the limit", count(sorted_pairs(), lambda a, b: a <= 1.02 * b)],
        ["sorted, RMSE below the first release's", count(sorted_pairs(), lambda a, b: a < b)],
        [
            "coverage within 0.92–0.98, or as near to 0.95 as the exact GP's on shuffled rows, all orders",
            count(coverages(), lambda a, b: 0.92 <= a <= 0.98 or abs(a - 0.95) <= abs(b - 0.95)),
        ],
        ["at most a third of SVGP's processor time, all orders", count(times(), lambda a, b: 3 * a <= b)],
    ]
    lines = ["| | |", "|---|---|"] + [f"| {what} | {how} |" for what, how in rows]
    return "## In short\n\n" + "\n".join(lines) + "\n\n" + missing(results)


def missing(results):
    """What the counts leave out because it was not measured."""
    parts = []
    for program in NAMES:
        orders = ("shuffled",) if program in ORDERLESS else ORDERS
        left = {order: [t for t in TABLES if not results.get(program, t, order)] for order in orders}
        for order, tables in left.items():
            which = "all tables" if len(tables) == len(TABLES) else ", ".join(tables)
            if tables:
                parts.append(f"{NAMES[program]} ({order}: {which})")
    if not parts:
        return "Everything was measured."
    alone = [t for t in TABLES if not results.get("svgp", t, "shuffled") and results.get("exact", t, "shuffled")]
    text = f"Not measured: {'; '.join(parts)}."
    return text + (f" On {', '.join(alone)} the better of exact GP and SVGP is the exact GP alone." if alone else "")


def intro(results):
    runs = results.runs.values()
    processors = sorted({run["processor"] for run in runs})
    threads = sorted({run["threads"] for run in runs})
    loads = sorted(run["load"] for run in runs)
    programs = "\n".join(
        f"- **{NAMES[name]}**: {' '.join(PROGRAMS['river-tree' if name == 'river' else name].__doc__.split())}" for name in NAMES
    )
    measured = {run["program"] for run in runs}
    regressors = ", ".join(RIVER[name] for name in RIVER if name in measured)
    return f"""# The defaults, on tables as they come

This page is made by `scripts/bench --defaults --publish` from `bench/defaults/results.csv`. `scripts/bench --defaults` makes
that file anew; `--only ample` measures Ample alone.

A tenth of each table's rows is held out, chosen at random once. The others come in batches of {BATCH}, in one pass: shuffled,
sorted by the first input, or as in the file. No program is given a setting for a table. Errors are in units of the
deviation of the targets held out.

{programs}

Of River's regressors ({regressors}) the one with the smallest error on the rows held out is shown, which is more than a user could know. LightGBM and SVGP go
through all rows many times in an order of their own, and were run once a table. Only Ample and River learn in one pass; Ample
keeps a sample of the rows, the first release and River none, the others all; the exact GP learns from the first 1,500 alone.

Processor: {"; ".join(processors)}; threads for each program: {", ".join(threads)}. The load of the machine was
{loads[0]:.0f} to {loads[-1]:.0f}, so times are given as processor time of the learning, all threads together; the time on
the wall is in the CSV file.
† ended by the time limit; the reason is in the CSV file. Bold: the smallest. Diabetes has 44 rows held out and Concrete 103: a
share within intervals that is 0.95 in truth is measured there within ±0.06 and ±0.04. On these two the coverage of Ample and of the exact GP
is that of all rows, each tenth held out in turn."""


def tables_section():
    rows = [[name, t.source, f"{t.rows:,}", str(t.inputs), t.about] for name, t in TABLES.items()]
    lines = ["| table | from | rows | inputs | |", "|---|---|---:|---:|---|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return (
        "## The tables\n\n" + "\n".join(lines) + "\n\nRows with a missing value are left out; ordered categories and yes/no "
        "become integers in their order. Targets are as they are, without logarithms. `bench/defaults/tables.py` has the details, "
        "and `python bench/defaults/tables.py FOLDER` writes them as CSV."
    )


COLOURS = {
    "ample": "#c1272d",
    "ample-first-release": "#e8a0a0",
    "exact": "#1f4e79",
    "svgp": "#4a90c4",
    "lightgbm": "#5b8c3e",
    "river": "#9a9a9a",
}
MARKERS = {"ample": "o", "ample-first-release": "o", "exact": "s", "svgp": "D", "lightgbm": "^", "river": "v"}


def draw(results, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    names = list(TABLES)
    size = (13, 0.42 * len(names) + 1.6)
    figure, axes = plt.subplots(1, 4, figsize=size, sharey=True, layout="constrained", width_ratios=[3, 3, 3, 2.6])
    left, right = 0.4, 30.0
    # Side by side rather than on top of each other; Ample in the middle.
    heights = dict(zip(NAMES, (0.0, 0.3, -0.2, -0.36, 0.2, 0.4)))
    for axis, order in zip(axes, ("shuffled", "sorted", "file")):
        for program in reversed(NAMES):
            if program in ORDERLESS and order != "shuffled":
                continue
            points = []
            for y, name in enumerate(names):
                run, unit = results.get(program, name, order), results.best_gp(name, "shuffled", "rmse")
                if run and unit:
                    points.append((min(max(run["rmse"] / unit, left), right), y + heights[program]))
            if points:
                own = program == "ample"
                axis.scatter(
                    *zip(*points), s=70 if own else 26, c=COLOURS[program], marker=MARKERS[program], label=NAMES[program],
                    zorder=4 if own else 3, edgecolors="white", linewidths=0.5, clip_on=False,
                )
        axis.axvline(1, color="#555555", linewidth=0.9, zorder=1)
        axis.set_xscale("log")
        axis.set_xlim(left, right)
        axis.xaxis.set_major_locator(FixedLocator([0.5, 1, 2, 5, 10, right]))
        axis.xaxis.set_minor_locator(NullLocator())
        axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"≥{x:g}" if x == right else f"{x:g}"))
        axis.set_title(CAPTIONS[order], fontsize=10)
    axes[1].set_xlabel("RMSE relative to the best GP peer on shuffled rows")
    shades = {"shuffled": "#c1272d", "sorted": "#e07b39", "file": "#7a4fa3"}
    axes[3].axvspan(0.92, 0.98, color="#dfead7", zorder=0)
    axes[3].axvline(0.95, color="#555555", linewidth=0.9, zorder=1)
    for height, (order, shade) in zip((-0.2, 0.0, 0.2), shades.items()):
        found = [(y + height, results.get("ample", name, order)) for y, name in enumerate(names)]
        points = [(max(run["coverage"], 0.8), y) for y, run in found if run]
        if points:
            axes[3].scatter(*zip(*points), s=42, c=shade, label=order, edgecolors="white", linewidths=0.6, zorder=3, clip_on=False)
    axes[3].set_xlim(0.8, 1.0)
    axes[3].set_xticks([0.8, 0.85, 0.9, 0.95, 1.0], ["≤.80", ".85", ".90", ".95", "1"])
    axes[3].set_title("Ample: coverage of\n95 % intervals", fontsize=10)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].invert_yaxis()
    for axis in axes:
        axis.grid(axis="y", color="#ececec", linewidth=0.8)
        axis.set_axisbelow(True)
        axis.tick_params(length=0)
        for side in ("top", "right", "left"):
            axis.spines[side].set_visible(False)
    found = [zip(*axis.get_legend_handles_labels()[::-1]) for axis in axes[:3]]
    drawn = {label: handle for pairs in found for label, handle in pairs}
    shown = [name for name in NAMES.values() if name in drawn]
    figure.legend([drawn[name] for name in shown], shown, loc="outside lower left", ncols=len(NAMES), frameon=False, fontsize=9)
    handles, labels = axes[3].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower right", ncols=3, frameon=False, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def main():
    results = Results(RESULTS)
    if not results.runs:
        print("report.py: the results file has no runs; scripts/bench --defaults makes them", file=sys.stderr)
        return 1
    figure = (
        f"![RMSE of each program relative to the best GP peer, and coverage](figures/{FIGURE.name})\n\n"
        "*RMSE relative to the better of exact GP and SVGP on shuffled rows: left of 1 is better. Right: the share of rows "
        "held out within Ample's 95 % intervals; the band is 0.92 to 0.98.*"
    )
    parts = [intro(results), summary(results), figure, tables_section()]
    parts += [section(results, order) for order in ("shuffled", "sorted", "file")]
    PAGE.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    draw(results, FIGURE)
    print(f"{PAGE.relative_to(ROOT)}, {FIGURE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
