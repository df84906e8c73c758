"""Reading a table against NumPy and pandas, and its share of `ample fit` and `ample predict`.

    python3 bench/reading.py [--build build/release] [--rows 1000000]

NumPy and pandas are compared with if they can be imported. All in one run, each the fastest of
three, in turn; the ratios are what counts.
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, default=Path("build/release"))
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        make_table(table, options.rows)
        program = str(options.build.resolve() / "bin/ample")

        def run(*arguments):
            return seconds(lambda: subprocess.run([program, *map(str, arguments)], check=True, cwd=folder,
                                                  stdout=subprocess.DEVNULL))

        measured = readers(options.build.resolve(), table)
        best = dict.fromkeys(measured, math.inf)
        for _ in range(3):
            for name, measure in measured.items():
                best[name] = min(best[name], measure())
        for name, time_taken in best.items():
            print(f"{name:16}{time_taken:9.3f} s{options.rows / time_taken / 1e6:9.2f} M rows/s"
                  f"{time_taken / best['ample']:8.2f} x ample's")
        fit = run("fit", table, "--save", "m.ample", "--batch-size", 10000)
        predict = run("predict", "m.ample", table, "--output", "p.csv")
        for name, time_taken in {"ample fit": fit, "ample predict": predict}.items():
            print(f"{name:16}{time_taken:9.3f} s{options.rows / time_taken / 1e6:9.2f} M rows/s, of which reading "
                  f"alone would take {100 * best['ample'] / time_taken:.0f} %")


if __name__ == "__main__":
    main()
