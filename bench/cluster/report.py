"""Puts what run.py measured into docs/scaling.md, between its marks, and draws docs/figures/shards.png.

    python bench/cluster/report.py

Nothing is measured here. Of each case the last measurement counts.
"""

import json
import math
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
    "small pilot": "pilot too small",
    "small pilot, fit": "pilot too small, fit at the end",
}
COLOURS = {"shuffled": "#0072b2", "sorted": "#d55e00", "small pilot": "#888888", "small pilot, fit": "#009e73"}


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def latest(lines, *keys):
    """The last line for each value of the keys."""
    return list({tuple(line.get(key) for key in keys): line for line in lines}.values())


def machine(lines):
    """What they were measured on: a sentence for each."""
    seen = {(l["processor"], l["processors"], l["date"]) for l in lines}
    return " ".join(f"Measured on {p}, {n} processors, {d}." for p, n, d in sorted(seen))


def engines(lines):
    streams = {l["rows"]: l for l in latest([l for l in lines if l["what"] == "stream"], "rows")}
    rows = []
    for rows_of, stream in sorted(streams.items()):
        rows.append([f"{rows_of:,}", "one stream", 1, f"{stream['seconds']:.0f}", "", f"{stream['peak']:.0f}", stream["M"],
                     f"{stream['rmse']:.4f}", f"{stream['nlpd']:.4f}", "", ""])  # fmt: skip
    runs = latest([l for l in lines if l["what"] in ("dask", "spark")], "what", "rows", "workers")
    alone = {(l["what"], l["rows"]): l["seconds"] for l in runs if l["workers"] == 1}
    for l in runs:
        faster = alone.get((l["what"], l["rows"]), math.nan) / l["seconds"]
        small = [f"{l['small_rmse']:.4f}", f"{l['small_nlpd']:.4f}"] if "small_rmse" in l else ["", ""]
        rows.append([f"{l['rows']:,}", l["what"].capitalize(), l["workers"], f"{l['seconds']:.0f}", f"{faster:.2f}",
                     f"{l['peak']:.0f}", l["M"], f"{l['rmse']:.4f}", f"{l['nlpd']:.4f}", *small])  # fmt: skip
    rows.sort(key=lambda r: (int(r[0].replace(",", "")), ("one stream", "Dask", "Spark").index(r[1]), r[2]))
    header = ["rows", "by", "workers", "seconds", "× one worker", "peak MB a worker", "M", "RMSE", "NLPD",
              "RMSE at the stream's M", "NLPD"]  # fmt: skip
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
    """Seconds of a merge by the size of its union, and c in seconds = c U³."""
    runs = latest([l for l in lines if l["what"] == "shards" and not l["case"].endswith("fit")], "case", "shards")
    each = [(m["union"], m["seconds"]) for l in runs for m in l["merges"] if m["union"] and l["shards"] > 1]
    bins = {}
    for union, seconds in each:
        bins.setdefault(round(union, -2), []).append(seconds)
    rows = [[f"about {u}", len(s), f"{np.median(s):.2f}", f"{1e9 * np.median(s) / u**3:.2f}"] for u, s in sorted(bins.items()) if u]
    return table(["points in the union U", "merges", "median seconds", "ns a U³"], rows)


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
    axes[0].legend(fontsize=8)
    figure.savefig(path, dpi=150)


def main():
    lines = [json.loads(line) for line in (Path(__file__).parent / "results.jsonl").read_text().splitlines()]
    page = ROOT / "docs" / "scaling.md"
    text = page.read_text(encoding="utf-8")
    for name, function in (("engines", engines), ("shards", shards), ("merges", merges)):
        mark = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        assert mark.search(text), f"{page} has no mark for {name}"
        text = mark.sub(lambda found: found[1] + "\n" + function(lines) + "\n\n" + found[2], text)
    page.write_text(text, encoding="utf-8")
    draw(lines, ROOT / "docs" / "figures" / "shards.png")


if __name__ == "__main__":
    main()
