"""Examples in docstrings run; the types that are promised are the types there are."""

import doctest
import inspect
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest

import ample
import ample.dask
import ample.plot
import ample.spark

matplotlib.use("Agg")
HERE = Path(__file__).parent
CONFIG = str(HERE.parents[1] / "pyproject.toml")


def documented():
    modules = [ample, ample.dask, ample.plot, ample.spark]
    for module in modules:
        yield module.__name__, module.__doc__
        for name in getattr(module, "__all__", None) or vars(module):
            value = getattr(module, name)
            if name.startswith("_") or inspect.ismodule(value):
                continue
            yield f"{module.__name__}.{name}", value.__doc__
            if inspect.isclass(value):
                for member, attribute in vars(value).items():
                    if not member.startswith("_"):
                        yield f"{module.__name__}.{name}.{member}", attribute.__doc__


EXAMPLES = [(name, text) for name, text in documented() if text and ">>>" in text]


def test_there_are_examples():
    assert len(EXAMPLES) >= 15


@pytest.mark.parametrize("name,text", EXAMPLES, ids=[name for name, _ in EXAMPLES])
def test_example(name, text):
    examples = doctest.DocTestParser().get_doctest(
        inspect.cleandoc(text), {"np": np, "ample": ample}, name, None, None
    )
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples).failed == 0


def test_every_public_name_has_a_docstring():
    for name in ample.__all__:
        if name != "__version__":
            assert (getattr(ample, name).__doc__ or "").strip(), name


def test_the_stub_is_up_to_date(tmp_path):
    stub = tmp_path / "_ample.pyi"
    subprocess.run(
        [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "ample._ample", "-o", stub], check=True
    )
    committed = HERE.parents[1] / "python" / "ample" / "_ample.pyi"
    assert stub.read_text() == committed.read_text(), (
        "make it anew: python -m nanobind.stubgen -m ample._ample -o python/ample/_ample.pyi"
    )


def mypy(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--config-file", CONFIG, *arguments],
        capture_output=True,
        text=True,
    )


def test_the_package_is_typed_strictly():
    result = mypy("-p", "ample")
    assert result.returncode == 0, result.stdout


def test_types_of_correct_use_pass_and_of_wrong_use_fail(tmp_path):
    good = mypy(str(HERE / "typed_use.py"))
    assert good.returncode == 0, good.stdout
    wrong = tmp_path / "wrong.py"
    wrong.write_text('import ample\nample.ContinualGP(ample.Matern32(), seed="one")\n')
    bad = mypy(str(wrong))
    assert bad.returncode == 1 and "incompatible type" in bad.stdout
