#!/usr/bin/env python3
"""Makes the page of measurements from what the benchmarks wrote.

    bench/report.py RESULTS PAGE FIGURES

RESULTS is the folder of JSON files of scripts/bench, with a folder for each instruction set that was
measured, PAGE the Markdown file to write, FIGURES the folder for its figure. Nothing is measured here,
and what was not measured is said to be missing. Why a figure misses its goal is in bench/reasons.json,
by the figure's name; the page quotes it where that is so.
"""

import json
import math
import sys
from pathlib import Path


SMALL = [f"bound + gradient M={M} N={N}" for M, N in ((10, 50), (30, 100), (50, 100))]
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
        return "exp" not in name and "kernel" not in name and "product" not in name and name not in SMALL

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
        "`bench/machine_ratios.cc`; kernel evaluations and their pull-backs count as nothing. L* is that of N rows on top of a "
        "model of M points. A kernel matrix of 4000 × 4000 in 8 dimensions, beside the time of its exponentials and its product "
        f"alone, takes {kernel}.\n\n"
        + small_models(each)
    )


def small_models(each):
    """One evaluation of bound and gradient beside what its operations alone would take."""
    rows = []
    for name in SMALL:
        row = [name.removeprefix("bound + gradient ")]
        for ratios in each.values():
            v = ratios["measurements"].get(name)
            if not v:
                return ""
            alone = v["seconds"] * v["of_dgemm"]
            row += [f"{1e6 * v['seconds']:.1f} µs", f"{1e6 * alone:.1f} µs", f"{1e6 * (v['seconds'] - alone):.1f} µs"]
        rows.append(row)
    header = ["bound + gradient"] + [f"{title}: {what}" if what == "time" else what
                                     for title in each for what in ("time", "its flops at dgemm's rate", "the rest")]
    return (
        "Small models, D = 8; the rest is exponentials and their derivatives, factorisations too small for BLAS's rate, and "
        "calls.\n\n" + table(header, rows)
    )


def predictions_section(each):
    rows = []
    for title, data in each.items():
        for v in data["sizes"]:
            rows.append((
                title, v["inducing"], f"{v['rows']:,}", f"{v['rows'] / v['seconds']:,.0f}", f"{100 * v['of_dgemm']:.0f} %",
                f"{v['rows'] / v['seconds_mean']:,.0f}", f"{100 * v['mean_of_parts']:.0f} %",
            ))
    return (
        "## Predictions\n\nMany rows in 8 dimensions. By (3) a mean with its variance takes 2 M² operations, which are what counts here; a factor "
        "that is made once for all rows halves them, so shares may be above 100 %. Kernel evaluations count as nothing. A mean alone is compared with what it is made of: a product, an exponential and a sum for each of M points.\n\n"
        + table(["", "M", "rows", "rows a second", "of dgemm", "means alone, rows a second", "of their parts' rate"], rows)
    )


def reading_section(each):
    rows = []
    for title, data in each.items():
        own, count = data["readers"]["ample"], data["rows"]
        for name, seconds in data["readers"].items():
            rows.append((title, f"reading: {name}", f"{seconds:.3f} s", f"{count / seconds:,.0f}",
                         "" if name == "ample" else f"{seconds / own:.2f} × Ample's time"))
        together = data["learning"] + own
        rows.append((title, "`ample fit`", f"{data['fit']:.2f} s", f"{count / data['fit']:,.0f}",
                     f"reading alone {100 * own / data['fit']:.1f} %; learning alone {data['learning']:.2f} s in "
                     f"{data['batches']} batches, {data['inducing']} points; the whole takes {data['fit'] / together:.2f} × both"))
        rows.append((title, "`ample predict`", f"{data['predict']:.2f} s", f"{count / data['predict']:,.0f}",
                     f"reading alone {100 * own / data['predict']:.0f} %"))
    count = next(iter(each.values()))["rows"]
    return (
        f"## From a table\n\nA CSV file of {count:,} × 4, with the program's defaults, from its start to the model or the "
        "predictions on disk. The table is read ahead on a thread of its own.\n\n"
        + table(["", "", "time", "rows a second", ""], rows)
    )


def start_up_section(found):
    rows = [(f"`{name}`" if "ample" in name else name, f"{1e3 * seconds:.1f} ms") for name, seconds in found.items()]
    return "## Start-up\n\nMedian of fresh processes; of the import, the statement itself.\n\n" + table(["", "time"], rows)


# --- Goals ----------------------------------------------------------------------------------------

PEERS_OF_PREDICTIONS = ["gpflow", "gpytorch", "scikit-learn"]


def at_least(goal):
    return goal, lambda value: value >= goal


def at_most(goal):
    return goal, lambda value: value <= goal


def percent(value):
    return f"{100 * value:.0f} %"


def times(value):
    return f"{value:.1f} ×" if value < 10 else f"{value:.0f} ×"


def goal_rows(results):
    """Every figure that has a goal: (name, {instruction set: value}, goal, how it is written)."""
    ratios, predicted = read_each(results, "machine_ratios"), read_each(results, "predictions")
    tables, peers = read_each(results, "reading"), read_each(results, "peers")

    def ratio(name):
        return {t: r["measurements"][name]["of_dgemm"] for t, r in ratios.items() if name in r["measurements"]}

    for name, goal in [
        ("Cholesky 1000", 0.5), ("bound + gradient M=1000 N=1000", 0.6), ("bound + gradient M=2000 N=300", 0.6),
        ("bound + gradient M=300 N=2000", 0.55), *((f"L* M=300 N={N}", 0.6) for N in (500, 1000, 2000)),
    ]:
        yield f"{name}, of dgemm", ratio(name), at_least(goal), percent
    kernel = {t: r["kernel_matrix_over_parts"] for t, r in ratios.items()}
    yield "kernel matrix, of its exp and product", kernel, at_most(1.4), lambda v: f"{v:.2f} ×"
    for i, M in enumerate((100, 300, 1000)):
        sizes = {t: d["sizes"][i] for t, d in predicted.items()}
        yield f"predictions M={M}, of dgemm", {t: s["of_dgemm"] for t, s in sizes.items()}, at_least(0.6), percent
        yield f"means alone M={M}, of their parts", {t: s["mean_of_parts"] for t, s in sizes.items()}, at_least(0.6), percent
    for library in PEERS_OF_PREDICTIONS:
        for i, M in enumerate((100, 300, 1000)):
            for key, what in [("rows_per_second", "predictions"), ("rows_per_second_mean", "means alone")]:
                found = {t: p["predictions"] for t, p in peers.items() if "missing" not in p.get("predictions", {}).get(library, {"missing": 1})}
                yield (f"{what} M={M}, {library}'s time", {t: f["ample"][i][key] / f[library][i][key] for t, f in found.items()},
                       at_least(5.0), times)
    for name, goal in [("numpy.loadtxt", 5.0), ("pandas, C", 0.8)]:
        values = {t: d["readers"][name] / d["readers"]["ample"] for t, d in tables.items() if name in d["readers"]}
        yield f"reading a table, {name}'s time", values, at_least(goal), times
    for data, goal in [("concrete", 20.0), ("skillcraft", 20.0), ("naval", 20.0), ("elevators", 12.0)]:
        values = {t: v for t, p in peers.items() if (v := gpflow_ratio(p, data)) is not None}
        yield f"{data}, GPflow's time, tracing included", values, at_least(goal), times
    start = read(results, "start_up") or {}
    for name in ("ample --version", "import ample"):
        value = {"all": start[name]} if name in start else {}
        yield f"`{name}`", value, at_most(0.05), lambda v: f"{1e3 * v:.0f} ms"


def gpflow_ratio(peers, data):
    runs = {r["peer"]: r for r in peers["runs"] if r["data"] == data and "rmse" in r}
    if not {"ample_vips", "gpflow_vips"} <= runs.keys():
        return None
    return runs["gpflow_vips"]["seconds"] / runs["ample_vips"]["seconds"]


def goals_section(results):
    reasons = json.loads((Path(__file__).parent / "reasons.json").read_text(encoding="utf-8"))
    titles = [title for key, title in SIMD.items() if (results / key).is_dir()]
    rows, missed = [], []
    for name, values, (goal, met), write in goal_rows(results):
        bound = "at least" if met(goal + 1.0) else "at most"
        cells = []
        for title in titles:
            value = values.get(title, values.get("all"))
            mark = "" if value is None or met(value) else " ✗"
            cells.append("not measured" if value is None else write(value) + mark)
        rows.append((name, *cells, f"{bound} {write(goal)}"))
        if any(cell.endswith("✗") for cell in cells):
            missed.append(f"- {name}: {reasons.get(name, 'the reason is not known yet.')}")
    text = "## Goals\n\nEvery figure with a goal; ✗ marks a miss.\n\n" + table(["", *titles, "goal"], rows)
    return text + ("\n\nWhat misses its goal, and why:\n\n" + "\n".join(missed) if missed else "")


def dgemm_rate(results):
    """In flop/s, on the instruction set of the main columns; None if it was not measured."""
    for ratios in read_each(results, "machine_ratios").values():
        return max(v["work"] / v["seconds"] for name, v in ratios["measurements"].items() if name.startswith("dgemm"))
    return None


def total(run):
    return run["seconds_select"] + run["seconds_fit"]


def streams_section(each, dgemm):
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
        + (slow_selections(main[1]["runs"], dgemm) if dgemm else "")
        + "\n\nNaval beside the totals that the paper gives for its code on an RTX 6000 GPU:\n\n"
        + table(["method", "here", "paper", "ratio"], beside)
    )


def slow_selections(runs, dgemm):
    """Streams with a batch whose selection took longer than its fit, and what that batch is; dgemm's rate in flop/s."""
    slow = []
    for r in runs:
        if r["worst_select_over_fit"] <= 1.0:
            continue
        w = r["worst"]
        N, M = w["rows"], w["inducing_before"]
        at_best = (2 * N * M * M + 2 * N * N * M + N**3 / 3) / dgemm
        slow.append(
            f"- {r['data']}, {r['method']}: {r['worst_select_over_fit']:.2f} × in a batch of {N} rows that takes the model from "
            f"{M} to {w['inducing']} points. Its fit is {w['evaluations']} evaluations, {milliseconds(w['seconds_fit'])}; its "
            f"selection takes {milliseconds(w['seconds_select'])}, in which the operations of L* alone, at dgemm's rate, are "
            f"{milliseconds(at_best)}."
        )
    if not slow:
        return ""
    return (
        "\n\nWhere a batch's selection takes longer than its fit, the model has so few points that all evaluations of the fit "
        "cost less than a factorisation of the batch's rows, which L* takes:\n\n" + "\n".join(slow)
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
        + "\n\n".join(f"### {title}\n\n{peers_tables(peers)}"
            + (f"\n\n{peers_predictions(peers['predictions'])}" if peers.get("predictions") else "") for title, peers in each.items())
    )


def peers_predictions(predicted):
    rows = []
    for library, sizes in predicted.items():
        if "missing" in sizes:
            rows.append((library, "", f"missing: {sizes['missing']}", "", "", ""))
            continue
        for own, size in zip(predicted["ample"], sizes):
            row = [library, size["inducing"]]
            for key in ("rows_per_second", "rows_per_second_mean"):
                row += [f"{size[key]:,.0f}", "" if size is own else times(own[key] / size[key])]
            rows.append(row)
    return "Predictions, rows a second:\n\n" + table(
        ["", "M", "with variance", "Ample's rate over it", "means alone", "Ample's rate over it"], rows)


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
    parts.append(goals_section(results))
    growth = read(results, "growth")
    if growth:
        draw(growth, figures / "growth.png")
    for name, section in [
        ("machine_ratios", ratios_section),
        ("predictions", predictions_section),
        ("reading", reading_section),
        ("streams", lambda each: streams_section(each, dgemm_rate(results))),
        ("peers", peers_section),
        ("latency", latency_section),
    ]:
        each = read_each(results, name)
        parts.append(section(each) if each else missing(name))
    for name, section in [("start_up", start_up_section), ("growth", lambda g: growth_section(g, "growth.png")), ("memory", memory_section)]:
        data = read(results, name)
        parts.append(section(data) if data else missing(name))
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    print(f"{page} written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
