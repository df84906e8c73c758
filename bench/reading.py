"""Reading a table against NumPy and pandas, and `ample fit` and `ample predict` from one, end to end.

    python3 bench/reading.py [--build build/release] [--rows 1000000] [--json FILE]

A table of 4 columns. NumPy and pandas are compared with if they can be imported; readers take turns,
and the fastest of three counts. The program learns with its defaults.
"""

import argparse
import json
import math
import random
import subprocess
import tempfile
import time
from pathlib import Path


def make_table(path, rows):
    random.seed(0)
    with open(path, "w", encoding="ascii") as file:
        file.write("a,b,c,y\n")
        for _ in range(rows):
            a, b, c = (random.uniform(-3, 3) for _ in range(3))
            file.write(f"{a!r},{b!r},{c!r},{math.sin(a) * math.cos(b) + random.gauss(0, 0.1)!r}\n")


def seconds(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def readers(build, table):
    def ample():
        out = subprocess.run([build / "bench/table_reading", table, "1"], check=True, capture_output=True, text=True)
        return json.loads(out.stdout)["read"]

    found = {"ample": ample}
    try:
        import numpy

        found["numpy.loadtxt"] = lambda: seconds(lambda: numpy.loadtxt(table, delimiter=",", skiprows=1))
    except ImportError:
        pass
    try:
        import pandas

        found["pandas, C"] = lambda: seconds(lambda: pandas.read_csv(table, engine="c"))
    except ImportError:
        pass
    return found


def end_to_end(build, table):
    """Seconds of the whole programs, and of the learning within `ample fit` by its own report."""
    folder = table.parent

    def run(*arguments):
        command = [build / "bin/ample", *map(str, arguments)]
        return seconds(lambda: subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL))

    fit = run("fit", table, "--save", "m.ample", "--report", "report.jsonl")
    reports = [json.loads(line) for line in (folder / "report.jsonl").read_text().splitlines()]
    return {
        "fit": fit,
        "learning": sum(r["seconds_select"] + r["seconds_fit"] for r in reports),
        "inducing": reports[-1]["inducing"],
        "batches": len(reports),
        "predict": run("predict", "m.ample", table, "--output", "p.csv"),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, default=Path("build/release"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    build = options.build.resolve()
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        make_table(table, options.rows)
        measured = readers(build, table)
        best = dict.fromkeys(measured, math.inf)
        for _ in range(3):
            for name, measure in measured.items():
                best[name] = min(best[name], measure())
        for name, time_taken in best.items():
            print(f"{name:16}{time_taken:9.3f} s{options.rows / time_taken / 1e6:9.2f} M rows/s"
                  f"{time_taken / best['ample']:8.2f} x ample's")
        ends = end_to_end(build, table)
        for name in ("fit", "predict"):
            print(f"ample {name:10}{ends[name]:9.3f} s{options.rows / ends[name] / 1e6:9.2f} M rows/s, of which reading "
                  f"alone would take {100 * best['ample'] / ends[name]:.1f} %")
        print(f"learning alone  {ends['learning']:9.3f} s in {ends['batches']} batches, {ends['inducing']} points")
    if options.json:
        options.json.write_text(json.dumps({"rows": options.rows, "readers": best, **ends}, indent=2) + "\n")


if __name__ == "__main__":
    main()
