"""Makes docs/drift.md and its figure from what run.py wrote."""

import csv
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean

from programs import CAP, DELTA, HALF_LIFE
from run import SUMMARY, curve_path, read
from streams import NOISE, PERIOD, STEP, STREAMS, WINDOW

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/drift.md"
FIGURE = ROOT / "docs/figures/drift.png"
NAMES = {
    "ample-none": "Ample, no forgetting",
    "ample-adaptive": "Ample, adaptive",
    "ample-half-life": f"Ample, half-life {HALF_LIFE} rows",
    "river-tree": "River, Hoeffding adaptive tree",
    "river-forest": "River, adaptive random forest",
}
COLOURS = {
    "ample-none": "#cc79a7",
    "ample-adaptive": "#d55e00",
    "ample-half-life": "#0072b2",
    "river-tree": "#8fbf9f",
    "river-forest": "#009e73",
}


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def mean(runs, field):
    values = [float(run[field]) for run in runs if run[field] != ""]
    return fmean(values) if values else None


def cell(value, form):
    return "–" if value is None else format(value, form)


def stream_table(by_stream, stream):
    rows = []
    for program, title in NAMES.items():
        runs = by_stream[stream, program]
        if not runs:
            rows.append([title, "not run", *[""] * 5])
            continue
        reached = mean(runs, "batches")
        rows.append([
            title if reached == STREAMS[stream].batches else f"{title} †",
            cell(mean(runs, "rmse"), ".3f"),
            cell(mean(runs, "late_rmse"), ".3f"),
            cell(mean(runs, "size"), ".0f"),
            cell(mean(runs, "largest"), ".0f"),
            cell(mean(runs, "cpu_ms"), ".3g"),
            cell(mean(runs, "late_cpu_ms"), ".3g"),
        ])
    header = ["", "RMSE", "of the last tenth", "M at the end", "largest M", "ms a batch", "of the last tenth"]
    about = STREAMS[stream]
    seeds = max(len(by_stream[stream, program]) for program in NAMES)
    return (
        f"## {stream.capitalize()}\n\n{about.about[0].upper()}{about.about[1:]}. {about.batches:,} batches of {about.rows} rows, "
        f"{about.inputs} input{'s' if about.inputs > 1 else ''}; {'mean over ' + str(seeds) + ' seeds' if seeds > 1 else 'one seed'}.\n\n"
        f"{table(header, rows)}{stopped(by_stream, stream)}"
    )


def stopped(by_stream, stream):
    """What is said below a table of a program that the limit ended, beside Ample on the same batches."""
    text = ""
    for program, title in NAMES.items():
        reached = mean(by_stream[stream, program], "batches")
        if reached is None or reached == STREAMS[stream].batches:
            continue
        others = [
            f"{NAMES[name]} {rmse_until(curve_path(name, stream, 0), reached):.3f}"
            for name in NAMES
            if name.startswith("ample") and curve_path(name, stream, 0).exists()
        ]
        text += f"\n\n† {title}: ended by the time limit after {reached:,.0f} batches. RMSE up to there: {', '.join(others)}."
    return text


def rmse_until(path, batches):
    curve = read_curve(path)
    return fmean(e**2 for b, e in zip(curve["batch"], curve["rmse"]) if b <= batches) ** 0.5


def alarms(by_stream):
    rows = []
    for program, title in NAMES.items():
        runs = by_stream["stationary", program]
        if not runs or runs[0]["forgot"] == "":
            continue
        forgot = sum(int(run["forgot"]) for run in runs)
        batches = sum(int(run["batches"]) for run in runs)
        rows.append([title, f"{forgot} of {batches:,}", cell(mean(runs, "alarms_5"), ".2%"), cell(mean(runs, "alarms_1"), ".2%")])
    return (
        "## False alarms\n\nOn the stationary streams nothing changes, so whatever is forgotten and every alarm is false.\n\n"
        + table(["", "batches that forgot", "p below 5 %", "p below 1 %"], rows)
        + "\n\nA half-life forgets at every refit, whatever comes: that is what it is for."
    )


def page(runs):
    by_stream = defaultdict(list)
    for run in runs.values():
        by_stream[run["stream"], run["program"]].append(run)
    processors = sorted({run["processor"] for run in runs.values()})
    loads = sorted(float(run["load"]) for run in runs.values())
    shown = [stream for stream in STREAMS if any(by_stream[stream, program] for program in NAMES)]
    parts = [
        f"""# Drift, measured

This page is made by `scripts/bench --drift --publish` from `bench/drift/results.csv`; `scripts/bench --drift` makes that file
anew.

Every batch is predicted before it is learnt (prequential). The functions are samples of a Gaussian process of variance 1 and
lengthscale 1; the noise has deviation {NOISE}, below which no RMSE can be. Ample has the estimators' defaults but for `forget`, δ = {DELTA} and, on the
endless stream, `max_inducing={CAP}`. River's regressors have their defaults and learn row by row. The recurring stream changes every {PERIOD}
batches; the inputs of the endless one are uniform on an interval of length {WINDOW:g} that moves on by {STEP} a batch.

Times are of processor time, predictions included, on {"; ".join(processors)}, under a load of {loads[0]:.0f} to {loads[-1]:.0f}.""",
        "![Error and size along the streams, one seed each](figures/drift.png)",
        *(stream_table(by_stream, stream) for stream in shown),
    ]
    if any(by_stream["stationary", program] for program in NAMES):
        parts.append(alarms(by_stream))
    return "\n\n".join(parts) + "\n"


def read_curve(path):
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    return {name: [float(line[name]) if line[name] else None for line in lines] for name in lines[0]}


def draw(path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = [name for name in STREAMS if name != "stationary"]
    figure, axes = plt.subplots(2, len(names), figsize=(12, 4.8), layout="constrained", sharex="col", height_ratios=(1.4, 1))
    for column, stream in enumerate(names):
        above, below = axes[:, column]
        for program, title in NAMES.items():
            if not curve_path(program, stream, 0).exists():
                continue
            curve = read_curve(curve_path(program, stream, 0))
            look = {"color": COLOURS[program], "linewidth": 1.1, "label": title}
            above.plot(curve["batch"], smooth(curve["rmse"]), **look)
            if curve["size"][0] is not None:
                below.plot(curve["batch"], curve["size"], **look)
        above.axhline(NOISE, color="#5a5a5a", linewidth=0.8, dashes=(4, 2))
        above.set_title(stream, fontsize=10)
        above.set_ylim(0, 1.45)
        below.set_ylim(bottom=0)
        below.set_xlabel("batch")
        for axis in (above, below):
            axis.spines[["top", "right"]].set_visible(False)
            axis.margins(x=0.01)
    axes[0, 0].set_ylabel("prequential RMSE")
    axes[1, 0].set_ylabel("inducing points $M$")
    axes[0, 0].annotate("noise", (0, NOISE), (2, 3), textcoords="offset points", fontsize=8, color="#5a5a5a")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(NAMES), frameon=False, fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, metadata={"Software": None})


def smooth(values, width=5):
    """Means over the last few: errors of single batches jump about."""
    return [fmean(values[max(0, i + 1 - width) : i + 1]) for i in range(len(values))]


def main():
    runs = read(SUMMARY)
    if not runs:
        print(f"report.py: {SUMMARY.name} has no runs; scripts/bench --drift makes them", file=sys.stderr)
        return 1
    PAGE.write_text(page(runs), encoding="utf-8")
    draw(FIGURE)
    print(f"{PAGE.relative_to(ROOT)}, {FIGURE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
