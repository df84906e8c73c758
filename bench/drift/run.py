"""Runs the programs of the study on its streams: every batch is predicted, then learnt.

    scripts/bench --drift [--only PROGRAM ...] [--stream NAME ...] [--seeds N] [--limit SECONDS] [--again]

A file of results for each run, in results/; what is there is not run again, unless with --again.
"""

import argparse
import csv
import os
import sys
import time
from pathlib import Path

import numpy as np
from programs import PROGRAMS
from streams import STREAMS

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
SUMMARY = HERE / "results.csv"
FIELDS = [
    *("program", "stream", "seed", "batches", "rmse", "late_rmse", "size", "largest", "cpu_ms", "late_cpu_ms"),
    *("forgot", "alarms_5", "alarms_1", "load", "date", "processor"),
]
KEY = ("program", "stream", "seed")
SEEDS = {"stationary": 20, "endless": 1}  # of the others 3
POINTS = 200  # of a curve that is drawn


def processor():
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{models[0] if models else 'unknown'}, {os.cpu_count()} cores"


def measure(program, name, seed, limit):
    """A summary, and the curves of a figure: squared error, size and milliseconds by batch. A run that has taken
    `limit` seconds of the processor ends there."""
    stream = STREAMS[name]
    model = PROGRAMS[program](name)
    errors, sizes, clock, said, spent = [], [], [], [], 0.0
    shown = time.monotonic()
    for b, (X, y) in enumerate(stream(seed)):
        start = time.process_time()
        if b > 0:
            errors.append(np.mean(np.square(y - model.predict(X))))
        said.append(model.learn(X, y))
        clock.append(1000.0 * (time.process_time() - start))
        sizes.append(model.size)
        spent += clock[-1] / 1000.0
        if spent > limit:
            break
        if sys.stderr.isatty() and time.monotonic() - shown > 1.0:
            shown = time.monotonic()
            print(f"\r{name:12}{program:17}seed {seed}: batch {b + 1} of {stream.batches}", end="\033[K", file=sys.stderr)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    tenth = max(1, len(clock) // 10)
    run = {
        **dict(zip(KEY, (program, name, seed))),
        "batches": len(clock),
        "rmse": f"{np.sqrt(np.mean(errors)):.4f}",
        "late_rmse": f"{np.sqrt(np.mean(errors[-tenth:])):.4f}",
        "cpu_ms": f"{np.mean(clock):.3g}",
        "late_cpu_ms": f"{np.mean(clock[-tenth:]):.3g}",
        "load": f"{os.getloadavg()[0]:.1f}",
        "date": time.strftime("%Y-%m-%d"),
        "processor": processor(),
    }
    if sizes[-1] is not None:
        run |= {"size": sizes[-1], "largest": max(sizes)}
        run["forgot"] = sum(s["gamma"] < 1.0 for s in said)
        values = [s["p_value"] for s in said if s["p_value"] is not None]
        run |= {f"alarms_{p}": f"{np.mean(np.array(values) < p / 100):.4f}" for p in (5, 1) if values}
    return run, curves(errors, sizes, clock)


def curves(errors, sizes, clock):
    """Thinned to means over equal stretches."""
    stretches = np.array_split(np.arange(1, len(clock)), min(POINTS, len(clock) - 1))
    for part in stretches:
        yield {
            "batch": int(part[-1]) + 1,
            "rmse": f"{np.sqrt(np.mean(np.array(errors)[part - 1])):.4f}",
            "size": "" if sizes[0] is None else sizes[part[-1]],
            "cpu_ms": f"{np.mean(np.array(clock)[part]):.3g}",
        }


def read(path):
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {tuple(run[name] for name in KEY): run for run in csv.DictReader(file)}


def write(path, fields, lines):
    """The file is whole at any moment."""
    path.parent.mkdir(exist_ok=True)
    new = path.with_suffix(".new")
    with new.open("w", newline="") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    new.replace(path)


def curve_path(program, stream, seed):
    return RESULTS / f"{stream}-{program}-{seed}.csv"


def parse():
    parser = argparse.ArgumentParser(prog="scripts/bench --drift", description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="PROGRAM", nargs="+", choices=PROGRAMS, default=list(PROGRAMS), help=", ".join(PROGRAMS))
    parser.add_argument("--stream", metavar="NAME", nargs="+", choices=STREAMS, default=list(STREAMS), help=", ".join(STREAMS))
    parser.add_argument("--seeds", type=int, metavar="N", help="of each stream; default 20 stationary, 1 endless, 3 of the others")
    parser.add_argument("--limit", type=float, default=1800.0, metavar="SECONDS", help="of the processor, for a run; default 1800")
    parser.add_argument("--again", action="store_true", help="also what the results have")
    return parser.parse_args()


def main():
    options = parse()
    for stream in options.stream:
        for program in options.only:
            # Twenty are for false alarms, which the others have not, or at every batch.
            most = SEEDS.get(stream, 3) if program in ("ample-none", "ample-adaptive") else min(SEEDS.get(stream, 3), 3)
            for seed in range(options.seeds or most):
                key = (program, stream, str(seed))
                if key in read(SUMMARY) and not options.again:
                    continue
                run, curve = measure(program, stream, seed, options.limit)
                if seed == 0:
                    write(curve_path(*key), ("batch", "rmse", "size", "cpu_ms"), curve)
                runs = read(SUMMARY) | {key: {name: str(run.get(name, "")) for name in FIELDS}}
                places = {name: i for i, name in enumerate([*STREAMS, *PROGRAMS])}
                ordered = sorted(runs.values(), key=lambda r: (places[r["stream"]], places[r["program"]], int(r["seed"])))
                write(SUMMARY, FIELDS, ordered)
                print(f"{stream:12}{program:17}seed {seed:<3} RMSE {run['rmse']}  M {run.get('size', '-'):<5} {run['cpu_ms']} ms a batch")
    return 0


if __name__ == "__main__":
    sys.exit(main())
