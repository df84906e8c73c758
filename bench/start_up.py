"""How long the program and the Python package take to start: `ample --version`, `import ample`.

    python3 bench/start_up.py --program build/release/bin/ample [--python PYTHON] [--json FILE]

Median of 21 fresh processes each; for the import, what the statement itself takes, beside the start of
the interpreter. PYTHON is an interpreter that has the package.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

RUNS = 21
IMPORT = "import time; start = time.perf_counter(); import ample; print(time.perf_counter() - start)"


def median(measure):
    measure()  # the files are in memory from here on
    return statistics.median(measure() for _ in range(RUNS))


def seconds(command):
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found = {"ample --version": median(lambda: seconds([options.program, "--version"]))}
    # From elsewhere, so that the package is the installed one.
    run = {"check": True, "capture_output": True, "text": True, "cwd": "/"}
    if subprocess.run([options.python, "-c", "import ample"], capture_output=True, cwd="/").returncode == 0:
        found["import ample"] = median(lambda: float(subprocess.run([options.python, "-c", IMPORT], **run).stdout))
        found["python alone"] = median(lambda: seconds([options.python, "-c", ""]))
    else:
        print(f"{options.python} has no package ample: its import is not measured", file=sys.stderr)
    for name, time_taken in found.items():
        print(f"{name:<18}{1e3 * time_taken:7.1f} ms")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
