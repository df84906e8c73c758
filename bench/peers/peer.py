"""What every peer's program does around its own work: arguments, repetitions, the result as JSON.

A peer has a function learn(stream, options) that returns a dictionary with at least `seconds`, the
time it took to learn the whole stream. It may have select(stream, options), the choice of inducing
points on the first batch alone, and self_test().
"""

import argparse
import importlib.metadata
import json
import statistics
import sys
from pathlib import Path

from stream import Stream

# A short run is repeated while this lasts, and the one of median time counts.
REPEAT_SECONDS = 10.0
REPEATS = 3


def progress(done, total):
    """How far a stream is; for a person at a terminal only."""
    if sys.stdout.isatty():
        end = "\r\033[K" if done == total else ""
        print(f"\r  batch {done} of {total}", end=end, flush=True)


def repeated(run):
    runs = [run()]
    while len(runs) < REPEATS and sum(r["seconds"] for r in runs) < REPEAT_SECONDS:
        runs.append(run())
    median = statistics.median_low(r["seconds"] for r in runs)
    chosen = next(r for r in runs if r["seconds"] == median)
    return chosen | {"repeats": len(runs)}


def main(packages, learn, select=None, self_test=None, flags=()):
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__.splitlines()[0])
    parser.add_argument("stream", nargs="?", help="folder that dump_batches wrote for a data set")
    parser.add_argument("--delta", type=float, default=0.095, help="share of the information to lose")
    parser.add_argument("--fit-tolerance", type=float, default=0.0, help="also end a fit by this share of alpha")
    parser.add_argument("--batches", type=int, help="learn the first ones of the stream only")
    parser.add_argument("--size", type=int, default=100, help="inducing points, where they are fixed")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for a stream, where it may take hours")
    parser.add_argument("--out", help="where the result goes as JSON; else to standard output")
    if select:
        parser.add_argument("--select", action="store_true", help="choose the points of the first batch only")
    if self_test:
        parser.add_argument("--self-test", action="store_true", help="check this peer against Ample")
    for flag, help_text in flags:
        parser.add_argument(flag, action="store_true", help=help_text)
    options = parser.parse_args()
    if self_test and options.self_test:
        return self_test()
    if not options.stream:
        parser.error("name the folder of a stream")
    stream = Stream(options.stream, options.batches)
    job = select if select and options.select else learn
    result = repeated(lambda: job(stream, options))
    result["versions"] = {p: importlib.metadata.version(p) for p in packages}
    text = json.dumps(result, indent=2) + "\n"
    if options.out:
        Path(options.out).write_text(text)
    else:
        print(text, end="")
    return 0
