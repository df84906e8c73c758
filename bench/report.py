#!/usr/bin/env python3
"""Makes the page of measurements from what the benchmarks wrote.

    bench/report.py RESULTS PAGE FIGURES

RESULTS is the folder of JSON files of scripts/bench, PAGE the Markdown file to write, FIGURES the
folder for its figure. Nothing is measured here, and what was not measured is said to be missing.
"""

import json
import math
import sys
from pathlib import Path


def read(folder, name):
    path = folder / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def table(header, rows):
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def machine_section(machine):
    return (
        f"Machine: {machine['processor']}, {machine['processors']} processors, {machine['memory']}; "
        f"{machine['system']}, {machine['compiler']}. Load before the run: {machine['load']}. "
        f"Ample {machine['ample']}, {machine['date']}.\n\n"
        "Speeds on a shared machine vary by a factor of two from one minute to the next. So all that can be is given as a "
        "ratio to something measured in the same run, and absolute times are for orientation."
    )


def ratios_section(ratios):
    m = ratios["measurements"]
    rows = [
        (name, f"{1e3 * v['seconds']:.2f} ms", f"{1e-9 * v['work'] / v['seconds']:.1f}", f"{100 * v['of_dgemm']:.0f} %")
        for name, v in m.items()
        if "exp" not in name and "kernel" not in name and "product" not in name
    ]
    return (
        "## Near the machine's limit\n\n"
        + table(["operation", "time", "Gflop/s", "of dgemm"], rows)
        + f"\n\n{ratios['threads']} threads, best of {ratios['rounds']} interleaved rounds; dgemm is the faster of BLAS's own "
        "threads and ours. The count of operations that no arrangement avoids is `necessary_flops` in "
        "`bench/machine_ratios.cc`; kernel evaluations and their pull-backs count as nothing. A kernel matrix of "
        f"4000 × 4000 in 8 dimensions takes {ratios['kernel_matrix_over_parts']:.2f} × the time of its exponentials and its "
        "product alone."
    )


def streams_section(streams):
    rows = [
        (
            r["data"], r["method"], r["inducing"], f"{r['rmse']:.4g}", f"{r['nlpd']:.3f}", r["evaluations"],
            f"{r['seconds_select']:.3f}", f"{r['seconds_fit']:.3f}", f"{r['seconds_select'] + r['seconds_fit']:.3f}",
            f"{r['worst_select_over_fit']:.2f}",
        )
        for r in streams["runs"]
    ]
    paper = {"vips 0.05": 15.2, "fixed 100": 24.7, "fixed 1000": 424.3}
    beside = []
    for r in streams["runs"]:
        if r["data"] == "naval" and r["method"] in paper:
            total = r["seconds_select"] + r["seconds_fit"]
            beside.append((r["method"], f"{total:.2f} s", f"{paper[r['method']]} s", f"{paper[r['method']] / total:.0f} ×"))
    return (
        "## Whole streams\n\nThe paper's data under its protocol, seed 0, fold 0; seconds over all batches. *worst* is "
        "the largest ratio of selection to fit of any one batch.\n\n"
        + table(["data", "method", "M", "RMSE", "NLPD", "evaluations", "select", "fit", "total", "worst"], rows)
        + "\n\nNaval beside the totals that the paper gives for its code on an RTX 6000 GPU:\n\n"
        + table(["method", "here", "paper", "ratio"], beside)
    )


def latency_section(latency):
    def row(name, p):
        return (name, *(f"{p[k]:.1f}" for k in ("p50", "p90", "p99", "p99.9", "max")), p["calls"])

    return (
        f"## Latency\n\nOne row at a time, M = {latency['inducing']}, D = {latency['dimension']}, hyperparameters frozen; "
        "microseconds.\n\n"
        + table(
            ["", "p50", "p90", "p99", "p99.9", "max", "calls"],
            [row("update", latency["update_microseconds"]), row("prediction", latency["predict_microseconds"])],
        )
        + "\n\nThe far tail is the machine's: a thread that is not scheduled waits for milliseconds."
    )


def growth_section(growth, figure):
    rows = [
        ("the model's size M, 500 rows", f"{growth['size']['slope']:.2f}", growth["size"]["goal"]),
        ("the batch's rows N, M = 500", f"{growth['rows']['slope']:.2f}", growth["rows"]["goal"]),
        ("the rows already seen, M = 100", f"{growth['seen']['slope']:.3f}", growth["seen"]["goal"]),
    ]
    return (
        "## Growth\n\nThe time of a batch, selection and a fit of five evaluations, against\n\n"
        + table(["", "slope of the logarithms", "goal"], rows)
        + f"\n\n![Time of a batch against M, N and rows seen](figures/{figure})"
    )


def memory_section(memory):
    return (
        "## Memory\n\n"
        + table(
            ["", "measured", "formula", "", "ratio"],
            [
                ("the model", f"{1e-6 * memory['state_bytes']:.0f} MB", "3 M² doubles",
                 f"{1e-6 * memory['state_formula_bytes']:.0f} MB",
                 f"{memory['state_bytes'] / memory['state_formula_bytes']:.2f}"),
                ("peak during a batch", f"{1e-6 * memory['peak_bytes']:.0f} MB", "10 M² + 2 N M doubles",
                 f"{1e-6 * memory['peak_formula_bytes']:.0f} MB",
                 f"{memory['peak_bytes'] / memory['peak_formula_bytes']:.2f}"),
            ],
        )
        + f"\n\nM = {memory['inducing']}, N = {memory['rows']}. The model is L, A and L_D. A batch adds the same three anew, "
        "H, a workspace for the past and two for the gradient, and twice N × M."
    )


def peers_section(peers):
    """Runs come in groups, each led by Ample's; those without an error are selections alone."""
    whole, alone, own = [], [], None
    for run in peers["runs"]:
        if "missing" in run:
            whole.append((run["data"], run["peer"], f"missing: {run['missing']}", *[""] * 5))
            continue
        if run["peer"] == "ample_vips":
            own = run
        ratio = "" if run is own else f"{run['seconds'] / own['seconds']:.0f} ×"
        if "rmse" not in run and "batches_done" not in run:
            alone.append((run["data"], run["peer"], run["inducing"], f"{1e3 * run['seconds']:.1f} ms", ratio))
            continue
        seconds = f"{run['seconds']:.2f} s"
        if run.get("batches_done", 0) < run.get("batches", 0):
            seconds += f", stopped after batch {run['batches_done']} of {run['batches']}"
        whole.append((
            run["data"], run["peer"], seconds, ratio, run.get("inducing", ""),
            *(f"{run[key]:{form}}" if run.get(key) is not None else "" for key, form in
              [("elbo", ".2f"), ("rmse", ".4f"), ("nlpd", ".3f")]),
        ))
    return (
        f"## Peers\n\nThe same batches, start and tolerances, δ = {peers['delta']}; what is comparable and what is not is in "
        "`bench/peers/README.md`. GPflow's time includes the tracing of its compiled functions.\n\n"
        + table(["data", "program", "time", "of Ample's", "M", "sum of bounds", "RMSE", "NLPD"], whole)
        + "\n\nThe selection on the first batch alone:\n\n"
        + table(["data", "program", "M", "time", "of Ample's"], alone)
    )


def draw(growth, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
    series = [
        ("size", "M", "inducing points M"),
        ("rows", "N", "rows of the batch N"),
        ("seen", "rows seen", "rows already seen"),
    ]
    for axis, (key, name, label) in zip(axes, series):
        x, y = growth[key][name], [1e3 * s for s in growth[key]["seconds"]]
        axis.loglog(x, y, "o" if len(x) < 20 else ".", color="#0072b2")
        centre = [sum(map(math.log, v)) / len(v) for v in (x, y)]
        slope = growth[key]["slope"]
        line = [math.exp(centre[1] + slope * (math.log(v) - centre[0])) for v in x]
        axis.loglog(x, line, "-", color="#d55e00", label=f"slope {slope:.2f}")
        axis.set_xlabel(label)
        axis.set_ylabel("time of a batch [ms]")
        axis.grid(True, which="both", alpha=0.25)
        axis.legend(frameon=False)
        if key == "seen":
            axis.set_ylim(min(y) / 3, max(y) * 3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main(arguments):
    if len(arguments) != 3:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    results, page, figures = map(Path, arguments)
    parts = [
        "# Performance",
        "This page is made by `scripts/bench --publish`" + " from one run on one machine.",
    ]
    machine = read(results, "machine")
    if machine:
        parts.append(machine_section(machine))
    growth = read(results, "growth")
    if growth:
        draw(growth, figures / "growth.png")
    for name, section in [
        ("machine_ratios", ratios_section),
        ("streams", streams_section),
        ("peers", peers_section),
        ("latency", latency_section),
        ("growth", lambda g: growth_section(g, "growth.png")),
        ("memory", memory_section),
    ]:
        data = read(results, name)
        parts.append(section(data) if data else f"*{name.replace('_', ' ')}: not measured in this run.*")
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    print(f"{page} written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
