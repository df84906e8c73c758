"""Puts what run.py measured into docs/scaling.md, between its marks, and draws docs/figures/shards.png.

    python bench/cluster/report.py

Nothing is measured here, and what was not measured is said to be missing. Of each case the last measurement
counts. Times of runs on a busy machine are left out.
"""

import json
import re
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
CASES = {
    "shuffled": "as it comes",
    "sorted": "sorted by an input",
    "small pilot": "a pilot of 150 rows",
    "small pilot, fit": "a pilot of 150 rows, fit at the end",
}
MISSING = "Not measured yet: it takes an idle machine."
COLOURS = {"shuffled": "#0072b2", "sorted": "#d55e00", "small pilot": "#888888", "small pilot, fit": "#009e73"}


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def latest(lines, *keys):
    """The last line for each value of the keys."""
    return list({tuple(line.get(key) for key in keys): line for line in lines}.values())


def machine(lines):
    """What they were measured on, and when: a sentence for each machine."""
    seen = {}
    for l in lines:
        seen.setdefault((l["processor"], l["processors"]), set()).add(l["date"])
    return " ".join(f"Measured on {p}, {n} processors, {' and '.join(sorted(d))}." for (p, n), d in sorted(seen.items()))


def engines(lines):
    runs = latest([l for l in lines if l["what"] in ("dask", "spark")], "what", "rows", "workers")
    if not runs:
        return MISSING
    compared = {l["rows"] for l in runs}
    streams = {l["rows"]: l for l in latest([l for l in lines if l["what"] == "stream"], "rows") if l["rows"] in compared}
    rows = []
    for rows_of, stream in sorted(streams.items()):
        rows.append([f"{rows_of:,}", "one stream", 1, f"{stream['cpu']:.0f}", "", f"{stream['peak']:.0f}", stream["M"],
                     f"{stream['rmse']:.4f}", f"{stream['nlpd']:.4f}", "", "", stream["load"]])  # fmt: skip
    alone = {(l["what"], l["rows"]): l["seconds"] for l in runs if l["workers"] == 1}
    for l in runs:
        one = alone.get((l["what"], l["rows"]))
        faster = f"{one / l['seconds']:.2f}" if one else ""
        small = [f"{l['small_rmse']:.4f}", f"{l['small_nlpd']:.4f}"] if "small_rmse" in l else ["", ""]
        rows.append([f"{l['rows']:,}", l["what"].capitalize(), l["workers"], f"{l['seconds']:.0f}", faster,
                     f"{l['peak']:.0f}", l["M"], f"{l['rmse']:.4f}", f"{l['nlpd']:.4f}", *small, l["load"]])  # fmt: skip
    rows.sort(key=lambda r: (int(r[0].replace(",", "")), ("one stream", "Dask", "Spark").index(r[1]), r[2]))
    header = ["rows", "by", "workers", "seconds", "× one worker", "peak MB a worker", "M", "RMSE", "NLPD",
              "RMSE at the stream's M", "NLPD", "load before"]  # fmt: skip
    return table(header, rows) + "\n\n" + machine([*streams.values(), *runs])


def shards(lines):
    runs = latest([l for l in lines if l["what"] == "shards"], "case", "shards")
    rows = []
    for case, title in CASES.items():
        for l in (l for l in runs if l["case"] == case):
            small = [f"{l['small_rmse']:.4f}", f"{l['small_nlpd']:.4f}"] if "small_rmse" in l else ["", ""]
            rows.append([title, l["shards"], l["inducing_before"], l["M"], f"{l['rmse']:.4f}", f"{l['nlpd']:.4f}",
                         f"{l['nats']:.0f}", *small])  # fmt: skip
    header = ["shards", "number", "points of all", "M", "RMSE", "NLPD", "nats lost", "RMSE at one shard's M", "NLPD"]
    return table(header, rows) + "\n\n" + machine(runs)


def merges(lines):
    """The processor's time for a merge by the size of its union, and c in time = c U³."""
    runs = latest([l for l in lines if l["what"] == "shards" and not l["case"].endswith("fit")], "case", "shards")
    each = [(m["union"], m["cpu"]) for l in runs for m in l["merges"] if m["union"] and l["shards"] > 1]
    bins = {}
    for union, seconds in each:
        bins.setdefault(round(union, -2), []).append(seconds)
    rows = [[f"about {u}", len(s), f"{np.median(s):.2f}", f"{1e9 * np.median(s) / u**3:.2f}"] for u, s in sorted(bins.items()) if u]
    return table(["points in the union U", "merges", "median seconds of a processor", "ns a U³"], rows)


class CostModel:
    """What a fit takes, from what one process was measured to take. docs/scaling.md has the formulas."""

    def __init__(self, lines):
        stream = max(latest([l for l in lines if l["what"] == "stream"], "rows"), key=lambda l: l["rows"])
        self.pilot = stream["pilot_cpu"]
        self.make = stream["make_cpu"] / stream["rows"]
        self.row = (stream["cpu"] - stream["pilot_cpu"]) / stream["rows"]
        runs = [l for l in lines if l["what"] == "shards" and l["case"] == "shuffled"]
        each = [(m["union"], m["cpu"]) for l in runs for m in l["merges"] if l["shards"] > 1]
        largest = max(u for u, _ in each)
        self.merge = float(np.median([s / u**3 for u, s in each if u > largest / 2]))
        self.byte = float(np.median([l["bytes"] / l["M"] ** 2 for l in runs]))
        overhead = [l for l in lines if l["what"] == "overhead"]
        self.task = overhead[-1]["seconds"] / overhead[-1]["tasks"] if overhead else None
        most = max(runs, key=lambda l: l["shards"])
        self.leaf, self.node = most["inducing_before"] / most["shards"], most["M"]

    def levels(self, partitions, fan_in):
        """For each level of the tree: its merges, and the points in the union of one."""
        width, points = partitions, self.leaf
        while width > 1:
            children = min(fan_in, width)
            width = -(-width // fan_in)
            yield width, children * points
            points = self.node

    def seconds(self, rows, workers, partitions, fan_in=4):
        return {
            "sample": rows * self.make / workers,
            "pilot": self.pilot,
            "learn": -(-partitions // workers) * rows / partitions * self.row,
            "merge": sum(-(-n // workers) * self.merge * u**3 for n, u in self.levels(partitions, fan_in)),
        }

    def tasks(self, partitions, fan_in=4):
        return round(partitions * (2 + 2 + 1 / (fan_in - 1) + 1 / 15))  # X and y, sample and learn, merge, join

    def gigabytes(self, partitions, fan_in=4):
        """Models that change their worker, all together."""
        sent = partitions * self.byte * self.leaf**2
        return (sent + sum(n for n, _ in self.levels(partitions, fan_in)) * self.byte * self.node**2) / 1e9


def cost(lines):
    if not {"stream", "shards"} <= {l["what"] for l in lines}:
        return MISSING
    model = CostModel(lines)
    rows = []
    for l in latest([l for l in lines if l["what"] == "dask"], "rows", "workers"):
        parts = model.seconds(l["rows"], l["workers"], l["partitions"])
        rows.append([f"{l['rows']:,}", l["workers"], f"{l['partitions']:,}", *(f"{v:.1f}" for v in parts.values()),
                     f"{sum(parts.values()):.0f}", f"{l['seconds']:.0f}", "", "", ""])  # fmt: skip
    for n, workers, partitions in ((10**9, 1000, 1000), (10**9, 1000, 4000), (10**9, 1000, 10**4), (10**9, 1000, 10**5)):
        parts = model.seconds(n, workers, partitions)
        rows.append([f"{n:,}", workers, f"{partitions:,}", *(f"{v:.1f}" for v in parts.values()), f"{sum(parts.values()):.0f}",
                     "", f"{model.gigabytes(partitions):.1f}", f"{model.tasks(partitions):,}",
                     f"{model.tasks(partitions) * model.task:.0f}" if model.task else ""])  # fmt: skip
    header = ["rows", "workers", "partitions", "sample s", "pilot s", "learn s", "merge s", "sum", "measured", "models sent, GB",
              "tasks", "scheduler s"]  # fmt: skip
    constants = (
        f"With {1e6 * model.row:.1f} µs to make and learn a row, {1e6 * model.make:.1f} µs to make it, {1e9 * model.merge:.2f} ns · U³ for a "
        f"merge, {model.byte:.0f} M² bytes for a model, M = {model.leaf:.0f} in a partition and {model.node} above"
        + (f", and {1e3 * model.task:.2f} ms for a task in Dask's scheduler." if model.task else ".")
    )
    simulated = latest([l for l in lines if l["what"] == "shards" and l["case"] == "shuffled"], "shards")
    checks = [
        f"{l['shards']} shards {model.seconds(l['rows'], 1, l['shards'])['merge']:.1f} ({sum(m['cpu'] for m in l['merges']):.1f})"
        for l in simulated if l["shards"] >= 8
    ]  # fmt: skip
    check = f"For the merges of the simulated shards it says, in seconds of a processor, and in brackets what they took: {', '.join(checks)}."
    return table(header, rows) + "\n\n" + constants + "\n\n" + check


def draw(lines, path):
    runs = latest([l for l in lines if l["what"] == "shards"], "case", "shards")
    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False})
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.1), layout="constrained")
    for case, title in CASES.items():
        of_case = sorted((l for l in runs if l["case"] == case), key=lambda l: l["shards"])
        if not of_case:
            continue
        count = [l["shards"] for l in of_case]
        style = {"color": COLOURS[case], "marker": "o", "markersize": 3.5, "linewidth": 1.3}
        axes[0].plot(count, [l["M"] for l in of_case], label=title, **style)
        for axis, name in ((axes[1], "rmse"), (axes[2], "nlpd")):
            axis.plot(count, [l[name] for l in of_case], **style)
            # At the size of one shard's model.
            axis.plot(count, [l.get(f"small_{name}", l[name]) for l in of_case], **{**style, "linestyle": ":", "marker": ""})
    for axis, title in zip(axes, ("M", "RMSE", "NLPD"), strict=True):
        axis.set_xscale("log", base=2)
        axis.set_xticks([1, 2, 4, 8, 16, 32, 64], ["1", "2", "4", "8", "16", "32", "64"])
        axis.minorticks_off()
        axis.set_xlabel("shards")
        axis.set_title(title, loc="left")
    axes[0].set_ylim(bottom=0)
    # Wide enough that a hundredth of the error looks like one; below the line there is only noise.
    axes[1].set_ylim(0.198, 0.21)
    axes[2].set_ylim(-0.195, -0.165)
    for axis, floor in ((axes[1], 0.2), (axes[2], -0.1905)):
        axis.axhline(floor, color="#aaaaaa", linewidth=0.8, linestyle="--")
        axis.text(64, floor, "noise", color="#888888", fontsize=8, ha="right", va="top")
    axes[0].legend(fontsize=8)
    figure.savefig(path, dpi=150)


def main():
    lines = [json.loads(line) for line in (Path(__file__).parent / "results.jsonl").read_text().splitlines()]
    page = ROOT / "docs" / "scaling.md"
    text = page.read_text(encoding="utf-8")
    for name, function in (("engines", engines), ("shards", shards), ("merges", merges), ("cost", cost)):
        mark = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        assert mark.search(text), f"{page} has no mark for {name}"
        text = mark.sub(lambda found: found[1] + "\n" + function(lines) + "\n\n" + found[2], text)
    page.write_text(text, encoding="utf-8")
    draw(lines, ROOT / "docs" / "figures" / "shards.png")


if __name__ == "__main__":
    main()
