"""Runs the examples of Markdown pages that show what they print.

    python docs/check_examples.py --bin DIR PAGE ...

Python blocks with >>> are doctests, one session a page. In console blocks each line after `$ ` is
run by bash, with DIR first on PATH, all of a page in one temporary folder; what it prints must be
the lines that follow, and a failing command may be one that is meant to fail.
"""

import argparse
import doctest
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def check_python(page, text):
    examples = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    result = doctest.DocTestRunner().run(examples)
    return result.attempted, result.failed


def check_console(page, text, environment, folder):
    attempted = failed = 0
    for block in CONSOLE.finditer(text):
        for part in re.split(r"^\$ ", block[1], flags=re.MULTILINE)[1:]:
            command, _, expected = part.partition("\n")
            done = subprocess.run(
                ["bash", "-c", command], cwd=folder, env=environment, text=True, timeout=60,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )
            attempted += 1
            if done.stdout != expected:
                failed += 1
                print(f"{page}: $ {command}\nexpected:\n{expected}got:\n{done.stdout}")
    return attempted, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, required=True)
    parser.add_argument("pages", nargs="+", type=Path)
    options = parser.parse_args()
    environment = {**os.environ, "LC_ALL": "C", "PATH": f"{options.bin.resolve()}:{os.environ['PATH']}"}
    failed = 0
    for page in options.pages:
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            python = check_python(page, text)
            console = check_console(page, text, environment, folder)
        failed += python[1] + console[1]
        if python[0] or console[0]:
            print(f"{page}: {python[0]} Python and {console[0]} console examples", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
