#!/usr/bin/env python3
"""Makes the page of measurements from what the benchmarks wrote.

    bench/report.py RESULTS PAGE FIGURES

RESULTS is the folder of JSON files of scripts/bench, with a folder for each instruction set that was
measured, PAGE the Markdown file to write, FIGURES the folder for its figure. Nothing is measured here,
and what was not measured is said to be missing.
"""

import json
import math
import sys
from pathlib import Path


SIMD = {"avx512": "AVX-512", "avx2": "AVX2", "sse4": "SSE4", "neon": "NEON"}


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


def read_each(results, name):
    """What was measured, by instruction set: {"AVX-512": …, "AVX2": …}."""
    found = {title: read(results / key, name) for key, title in SIMD.items()}
    return {title: data for title, data in found.items() if data}


def milliseconds(seconds):
    digits = max(0, 2 - math.floor(math.log10(1e3 * seconds)))
    return f"{1e3 * seconds:.{digits}f} ms"


def ratios_section(each):
    def is_product(name):
        return "exp" not in name and "kernel" not in name and "product" not in name

    names = [name for name in next(iter(each.values()))["measurements"] if is_product(name)]
    rows = []
    for name in names:
        row = [name]
        for ratios in each.values():
            v = ratios["measurements"][name]
            row += [milliseconds(v["seconds"]), f"{1e-9 * v['work'] / v['seconds']:.1f}", f"{100 * v['of_dgemm']:.0f} %"]
        rows.append(row)
    header = ["operation"] + [f"{title}: {what}" if what == "time" else what for title in each for what in ("time", "Gflop/s", "of dgemm")]
    kernel = ", ".join(f"{ratios['kernel_matrix_over_parts']:.2f} × ({title})" for title, ratios in each.items())
    cores = ", ".join(f"{ratios['blas_core']} ({title})" for title, ratios in each.items())
    one = next(iter(each.values()))
    return (
        "## Near the machine's limit\n\n"
        + table(header, rows)
        + f"\n\n{one['threads']} threads, best of {one['rounds']} interleaved rounds; OpenBLAS's kernels: {cores}. dgemm is the "
        "faster of BLAS's own threads and ours. The count of operations that no arrangement avoids is `necessary_flops` in "
        "`bench/machine_ratios.cc`; kernel evaluations and their pull-backs count as nothing, which is most of a small model's "
        "time. A kernel matrix of 4000 × 4000 in 8 dimensions, beside the time of its exponentials and its product alone, takes "
        f"{kernel}."
    )


def predictions_section(each):
    rows = []
    for title, data in each.items():
        for v in data["sizes"]:
            rows.append((
                title, v["inducing"], v["rows"], f"{v['rows'] / v['seconds']:,.0f}", f"{100 * v['of_dgemm']:.0f} %",
                f"{v['rows'] / v['seconds_mean']:,.0f}", f"{v['seconds_mean'] / v['seconds_kernel_matrix']:.2f} ×",
            ))
    return (
        "## Predictions\n\nMany rows in 8 dimensions; a mean with its variance takes 2 M² operations, a mean alone a row of the "
        "kernel matrix.\n\n"
        + table(["", "M", "rows", "rows a second", "of dgemm", "means alone, rows a second", "of the kernel matrix's time"], rows)
    )


def total(run):
    return run["seconds_select"] + run["seconds_fit"]


def streams_section(each):
    main, *others = each.items()
    paper = {"vips 0.05": 15.2, "fixed 100": 24.7, "fixed 1000": 424.3}
    by_key = [{(r["data"], r["method"]): r for r in data["runs"]} for _, data in others]
    rows, beside = [], []
    for r in main[1]["runs"]:
        key = (r["data"], r["method"])
        rows.append((
            r["data"], r["method"], r["inducing"], f"{r['rmse']:.4g}", f"{r['nlpd']:.3f}", r["evaluations"],
            f"{r['seconds_select']:.3f}", f"{r['seconds_fit']:.3f}", f"{total(r):.3f}", f"{r['worst_select_over_fit']:.2f}",
            *(f"{total(runs[key]):.3f}" if key in runs else "" for runs in by_key),
        ))
        if r["data"] == "naval" and r["method"] in paper:
            beside.append((r["method"], f"{total(r):.2f} s", f"{paper[r['method']]} s", f"{paper[r['method']] / total(r):.0f} ×"))
    return (
        f"## Whole streams\n\nThe paper's data under its protocol, seed 0, fold 0; seconds over all batches, {main[0]}"
        + "".join(f", and the total with {title}" for title, _ in others)
        + ". *worst* is the largest ratio of selection to fit of any one batch.\n\n"
        + table(["data", "method", "M", "RMSE", "NLPD", "evaluations", "select", "fit", "total", "worst",
                 *(f"total, {title}" for title, _ in others)], rows)
        + "\n\nNaval beside the totals that the paper gives for its code on an RTX 6000 GPU:\n\n"
        + table(["method", "here", "paper", "ratio"], beside)
    )


def latency_section(each):
    rows = []
    for title, data in each.items():
        for size in data["sizes"]:
            for name, key in [("update", "update_microseconds"), ("prediction", "predict_microseconds")]:
                p = size[key]
                rows.append((title, size["inducing"], name,
                             *(f"{p[k]:.1f}" for k in ("p50", "p90", "p99", "p99.9", "max")), p["calls"]))
    return (
        "## Latency\n\nOne row at a time, D = 8, hyperparameters frozen; microseconds.\n\n"
        + table(["", "M", "", "p50", "p90", "p99", "p99.9", "max", "calls"], rows)
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


def peers_tables(peers):
    """Runs come in groups, each led by Ample's; those without an error are selections alone."""
    whole, alone, own = [], [], None
    for run in peers["runs"]:
        if "missing" in run:
            whole.append((run["data"], run["peer"], f"missing: {run['missing']}", *[""] * 6))
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
        tracing = run.get("seconds_trace_select", 0.0) + run.get("seconds_trace_fit", 0.0)
        traced = f"{(run['seconds'] - tracing) / own['seconds']:.0f} ×" if tracing else ""
        whole.append((
            run["data"], run["peer"], seconds, ratio, traced, run.get("inducing", ""),
            *(f"{run[key]:{form}}" if run.get(key) is not None else "" for key, form in
              [("elbo", ".2f"), ("rmse", ".4f"), ("nlpd", ".3f")]),
        ))
    return (
        table(["data", "program", "time", "of Ample's", "without tracing", "M", "sum of bounds", "RMSE", "NLPD"], whole)
        + ("\n\nThe selection on the first batch alone:\n\n" + table(["data", "program", "M", "time", "of Ample's"], alone) if alone else "")
    )


def peers_section(each):
    delta = next(iter(each.values()))["delta"]
    return (
        f"## Peers\n\nThe same batches, start and tolerances, δ = {delta}; what is comparable and what is not is in "
        "`bench/peers/README.md`. GPflow's time includes the tracing of its compiled functions; the column beside it leaves that "
        "out.\n\n"
        + "\n\n".join(f"### {title}\n\n{peers_tables(peers)}" for title, peers in each.items())
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


def missing(name):
    return f"*{name.replace('_', ' ')}: not measured in this run.*"


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
        ("predictions", predictions_section),
        ("streams", streams_section),
        ("peers", peers_section),
        ("latency", latency_section),
    ]:
        each = read_each(results, name)
        parts.append(section(each) if each else missing(name))
    for name, section in [("growth", lambda g: growth_section(g, "growth.png")), ("memory", memory_section)]:
        data = read(results, name)
        parts.append(section(data) if data else missing(name))
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    print(f"{page} written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
