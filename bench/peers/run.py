"""Runs Ample and its peers on the same batches, one after the other, and prints what each took.

    scripts/bench --peers [--quick] [--only PEER] [--data NAME] [--predictions] [--out FILE.json]
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = ["ample_vips", "gpflow_vips", "gpytorch_ovc", "sklearn_exact", "river_regressor"]
STREAMS = ["concrete", "skillcraft", "naval", "elevators"]
QUICK = ["concrete", "skillcraft"]
SELECTIONS = ["elevators", "kin8nm"]  # the first batch alone, for those that select
SELECTING = ["ample_vips", "gpflow_vips"]


def machine():
    model = ""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text().splitlines()
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")
    return {
        "processor": model or platform.processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_at_start": os.getloadavg()[0],
    }


def export(program, folder, names):
    """The streams as files, written once."""
    missing = [name for name in names if not (folder / name / "stream.json").exists()]
    if missing:
        subprocess.run([program, folder, *missing], check=True)


def run_peer(peer, folder, arguments):
    """The peer's result; {"missing": reason} if it has none."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "result.json"
        command = [sys.executable, HERE / f"{peer}.py", folder, "--out", out, *map(str, arguments)]
        # Its progress goes to standard output; the last it says besides is the reason if it fails.
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        if done.returncode == 0 and out.exists():
            return json.loads(out.read_text())
        said = done.stderr.strip().splitlines()
        return {"missing": said[-1] if said else f"it ended with status {done.returncode}"}


def number(value, format_spec):
    return "-" if value is None else format(value, format_spec)


def without_trace(run):
    if "seconds" not in run:
        return None
    return run["seconds"] - run.get("seconds_trace_select", 0.0) - run.get("seconds_trace_fit", 0.0)


HEAD = f"{'data':<11}{'peer':<17}{'M':>6}{'RMSE':>8}{'NLPD':>8}{'ELBO':>12}{'select s':>10}{'fit s':>9}{'total s':>10}{'/Ample':>8}{'no trace':>10}{'/Ample':>8}"


def row(run, ample):
    """One line of the table; times as multiples of Ample's where Ample has been run."""
    start = f"{run['data']:<11}{run['peer']:<17}"
    if "missing" in run:
        return f"{start} missing: {run['missing']}"
    base = ample.get("seconds") if ample else None
    warm = without_trace(run)
    line = (
        start
        + f"{number(run.get('inducing'), 'd'):>6}{number(run.get('rmse'), '.4f'):>8}{number(run.get('nlpd'), '.3f'):>8}"
        + f"{number(run.get('elbo'), '.2f'):>12}{number(run.get('seconds_select'), '.3f'):>10}"
        + f"{number(run.get('seconds_fit'), '.3f'):>9}{run['seconds']:>10.3f}"
        + f"{number(base and run['seconds'] / base, '.1f'):>8}{warm:>10.3f}{number(base and warm / base, '.1f'):>8}"
    )
    if run.get("batches_done", 0) < run.get("batches", 0):
        line += f"  stopped after batch {run['batches_done']} of {run['batches']}"
    return line


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"only {' and '.join(QUICK)}, without the selections alone")
    parser.add_argument("--only", metavar="PEER", choices=PEERS, help="one of " + ", ".join(PEERS))
    parser.add_argument("--data", metavar="NAME", choices=[*STREAMS, "kin8nm"], help="one data set")
    parser.add_argument("--predictions", action="store_true", help="predictions alone, no streams")
    parser.add_argument("--delta", type=float, default=0.095)
    parser.add_argument("--fit-tolerance", type=float, default=0.0, help="also end a fit by this share of alpha; Ample: 1e-4")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds a stream for the exact GP and for OVC")
    parser.add_argument("--out", metavar="FILE.json", default="build/peers/results.json")
    parser.add_argument("--streams", type=Path, default=Path("build/peers/streams"), help="where the batches are put")
    parser.add_argument("--programs", type=Path, default=Path("build/bench/bench"), help="where dump_batches and predictions are")
    return parser.parse_args()


def main():
    options = parse()
    streams = QUICK if options.quick else STREAMS
    selections = [] if options.quick else SELECTIONS
    if options.data:
        streams = [name for name in STREAMS if name == options.data]
        selections = [name for name in SELECTIONS if name == options.data]
    if options.predictions:
        streams = selections = []
    peers = [options.only] if options.only else PEERS
    export(options.programs / "dump_batches", options.streams, sorted({*streams, *selections}))

    about = machine()
    print(f"{about['processor']}, {about['cores']} cores, load {about['load_at_start']:.2f}; delta {options.delta}")
    runs = []

    def measure(peer, name, ample, extra=()):
        if sys.stdout.isatty():
            print(f"  {name}, {peer} ...", end="", flush=True)
        load = os.getloadavg()[0]
        arguments = ["--delta", options.delta, "--fit-tolerance", options.fit_tolerance]
        arguments += ["--limit", options.limit, *extra]
        run = {"data": name, "peer": peer, "load": load} | run_peer(peer, options.streams / name, arguments)
        runs.append(run)
        clear = "\r\033[K" if sys.stdout.isatty() else ""
        print(clear + row(run, run if peer == "ample_vips" else ample), flush=True)
        return run

    if streams:
        print(f"\nWhole streams\n\n{HEAD}")
    for name in streams:
        # Ample's time is what the others are compared to, and its M is that of the fixed sizes.
        ample = measure("ample_vips", name, None)
        for peer in peers:
            if peer != "ample_vips":
                measure(peer, name, ample, ["--size", ample.get("inducing", 100)])
    if selections:
        print(f"\nSelection on the first batch alone\n\n{HEAD}")
    for name in selections:
        ample = measure("ample_vips", name, None, ["--select"])
        for peer in peers:
            if peer != "ample_vips" and peer in SELECTING:
                measure(peer, name, ample, ["--select"])

    predicted = {}
    if options.predictions or not (options.quick or options.only or options.data):
        import predictions  # NumPy, which --help does without

        predicted = predictions.measure_all(options.programs / "predictions")
        predictions.print_table(predicted)

    out = Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    result = {"machine": about, "delta": options.delta, "fit_tolerance": options.fit_tolerance, "runs": runs,
              "predictions": predicted}
    out.write_text(json.dumps(result, indent=2) + "\n")
    print(f"\nin full: {out}")
    return 1 if any("missing" in run for run in [*runs, *predicted.values()]) else 0


if __name__ == "__main__":
    sys.exit(main())
