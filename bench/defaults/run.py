"""Runs the programs of the study on its tables, one after the other, each in a process of its own.

    scripts/bench --defaults [--only PROGRAM ...] [--table NAME ...] [--order ORDER ...] [--again]

Results go to a CSV file, a line as soon as a run is over. What the file has is not run again, unless
with --again.
"""

import argparse
import csv
import fcntl
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

from case import ORDERS
from programs import ORDERLESS, PROGRAMS
from tables import TABLES, UCI

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.csv"
FIELDS = [
    *("program", "table", "order", "rmse", "nlpd", "coverage", "size", "seconds", "cpu_seconds"),
    *("threads", "load", "limit", "date", "processor", "note", "coverage_of_all"),
]
KEY = ("program", "table", "order")


def processor():
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    about = dict(line.split(":", 1) for line in lines if ":" in line)
    about = {name.strip(): value.strip() for name, value in about.items()}
    model = about.get("model name", platform.processor())
    simd = " (AVX-512)" if "avx512f" in about.get("flags", "").split() else ""
    return f"{model}{simd}, {os.cpu_count()} cores"


def key(run):
    return tuple(run[name] for name in KEY)


def read(path):
    """The runs of a results file by program, table and order; the last of each counts."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {key(run): run for run in csv.DictReader(file)}


class Locked:
    """The results file, held by this process alone: two may add to it."""

    def __init__(self, path):
        self._path = path

    def __enter__(self):
        self._folder = os.open(self._path.parent, os.O_RDONLY)
        fcntl.flock(self._folder, fcntl.LOCK_EX)
        return self

    def __exit__(self, *_):
        os.close(self._folder)

    def put(self, run):
        """Adds or replaces a run; the file is whole at any moment."""
        runs = read(self._path)
        runs[key(run)] = run
        places = {name: i for i, name in enumerate([*PROGRAMS, *TABLES, *ORDERS])}
        new = self._path.with_suffix(".new")
        with new.open("w", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(sorted(runs.values(), key=lambda r: (places[r["table"]], places[r["program"]], places[r["order"]])))
        new.replace(self._path)


def measure(program, table, order, options):
    command = [sys.executable, HERE / "programs.py", program, table, order, "--limit", str(options.limit)]
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")
    environment = os.environ | dict.fromkeys(names, str(options.threads))
    run = dict(zip(KEY, (program, table, order)))
    run |= {"threads": options.threads, "load": f"{os.getloadavg()[0]:.1f}", "limit": f"{options.limit:g}"}
    run |= {"date": time.strftime("%Y-%m-%d"), "processor": processor()}
    # A program that looks at the clock ends by itself; three limits are for those that do not.
    most = round(3 * options.limit * options.threads) + 60
    child = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (most, most)),
    )
    try:
        out, said = child.communicate()
    except BaseException:
        os.killpg(child.pid, signal.SIGKILL)
        raise
    if child.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return run | {"note": f"no result within {most} s of processor time"}
    if child.returncode != 0:
        return run | {"note": (said.strip().splitlines() or [f"ended with status {child.returncode}"])[-1]}
    result = json.loads(out.splitlines()[-1])
    for name in ("rmse", "nlpd", "coverage", "seconds", "cpu_seconds", "coverage_of_all"):
        if name in result:
            result[name] = f"{result[name]:.5g}"
    return run | result


def line(run):
    start = f"{run['table']:12}{run['program']:20}{run['order']:9}"
    if not run.get("rmse"):
        return f"{start} {run['note']}"
    size = f"{run['size'] or '-':>5}"
    return (
        f"{start} M {size}  RMSE {float(run['rmse']):8.4f}  NLPD {float(run['nlpd']):8.3f}  "
        f"coverage {float(run['coverage']):.3f}  {float(run['seconds']):7.1f} s  {run['note']}"
    )


def parse():
    parser = argparse.ArgumentParser(prog="scripts/bench --defaults", description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="PROGRAM", nargs="+", choices=PROGRAMS, default=list(PROGRAMS), help=", ".join(PROGRAMS))
    parser.add_argument("--table", metavar="NAME", nargs="+", choices=TABLES, default=list(TABLES), help=", ".join(TABLES))
    parser.add_argument("--order", nargs="+", choices=ORDERS, default=["shuffled", "sorted", "file"])
    parser.add_argument("--again", action="store_true", help="also what the results file has")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds of learning, of the processor, for each thread; default 300")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="for every program; default all cores")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE.csv")
    return parser.parse_args()


def main():
    options = parse()
    tables = options.table
    if "AMPLE_DATA" not in os.environ:
        left_out = [name for name in tables if name in UCI]
        tables = [name for name in tables if name not in UCI]
        if left_out:
            print(f"AMPLE_DATA does not name the folder of the paper's data sets: without {', '.join(left_out)}.")
    jobs = [
        (program, table, order)
        for order in options.order
        for program in options.only
        for table in tables
        if program not in ORDERLESS or order == "shuffled"
    ]
    failed = 0
    for number, job in enumerate(jobs, start=1):
        if not options.again and job in read(options.out):
            continue
        if sys.stdout.isatty():
            print(f"[{number}/{len(jobs)}] {' '.join(job)} …", end="", flush=True)
        run = measure(*job, options)
        failed += not run.get("rmse")
        with Locked(options.out) as results:
            results.put(run)
        print(("\r\033[K" if sys.stdout.isatty() else "") + line(run), flush=True)
    print(f"in full: {options.out}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
