"""What is handed out: the distribution's name and metadata, the source distribution, the import."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
from email.parser import HeaderParser
from pathlib import Path

import pytest

import ample

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = {"dask": "dask", "plot": "matplotlib", "river": "river", "sklearn": "scikit-learn", "spark": "pyspark"}


@pytest.fixture(scope="module")
def sdist():
    path = os.environ.get("AMPLE_SDIST")
    if not path:
        pytest.skip("AMPLE_SDIST does not name a source distribution")
    return path


def check_metadata(metadata):
    """`metadata` as a mapping from a field's name to all its values."""
    assert metadata("Name") == ["ample-gp"]
    assert metadata("Version") == [ample.__version__]
    assert sorted(metadata("Provides-Extra")) == sorted(EXTRAS)
    required = [requirement.split(";")[0] for requirement in metadata("Requires-Dist")]
    names = [re.match(r"[\w-]+", requirement)[0] for requirement in required]
    assert sorted(names) == sorted(["numpy", *EXTRAS.values()])


def test_metadata_of_the_installed_package():
    check_metadata(importlib.metadata.metadata("ample-gp").get_all)
    assert set(importlib.metadata.packages_distributions()["ample"]) == {"ample-gp"}


def test_metadata_of_the_source_distribution_as_a_file(sdist):
    with tarfile.open(sdist) as archive:
        (path,) = [name for name in archive.getnames() if name.endswith("PKG-INFO")]
        text = archive.extractfile(path).read().decode()
    assert path == f"ample_gp-{ample.__version__}/PKG-INFO"
    metadata = HeaderParser().parsestr(text)
    check_metadata(metadata.get_all)
    assert metadata["License-Expression"] == "Apache-2.0"


def test_metadata_of_the_source_distribution_as_pip_sees_them(sdist):
    report = subprocess.run(
        [sys.executable, "-m", "pip", "--quiet", "install", "--dry-run", "--ignore-installed"]
        + ["--no-deps", "--no-build-isolation", "--report", "-", sdist],
        capture_output=True,
        text=True,
        check=True,
    )
    (install,) = json.loads(report.stdout)["install"]
    metadata = install["metadata"]
    keys = {key.replace("_", "-"): value for key, value in metadata.items()}
    # A value that is not a list stands for one of itself.
    check_metadata(lambda field: [v] if isinstance(v := keys[field.lower()], str) else v)


def test_the_source_distribution_holds_what_compiles_and_nothing_else(sdist):
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        size = sum(member.size for member in archive.getmembers())
    allowed = ("cmake/", "include/ample/", "python/", "src/", "cli/")
    top = {"CMakeLists.txt", "LICENSE", "PKG-INFO", "pyproject.toml"}
    assert top <= names
    assert {name for name in names - top if not name.startswith(allowed)} == set()
    assert {Path(name).suffix for name in names} <= {
        ".cc", ".cmake", ".h", ".in", ".md", ".py", ".pyi", ".toml", ".txt", ".typed", ""
    }  # fmt: skip
    assert size < 2_000_000
    tracked = [
        path.relative_to(ROOT).as_posix()
        for folder in ("cli", "cmake", "include", "src", "python")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    assert set(tracked) <= names


def test_the_program_is_installed_beside_the_package(tmp_path):
    program = Path(sysconfig.get_path("scripts")) / "ample"
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert ample.__version__ in version.stdout
    (tmp_path / "data.csv").write_text("".join(f"{x / 10},{x % 7}\n" for x in range(120)))
    subprocess.run([program, "fit", "data.csv", "--save", "m.ample"], cwd=tmp_path, check=True)
    assert ample.load(str(tmp_path / "m.ample")).rows_seen == 120


def test_no_text_names_the_distribution_of_another_project():
    wrong = re.compile(r"pip install '?\"?ample(?!-gp)\b")
    assert wrong.search("pip install 'ample[plot]'") and not wrong.search("pip install 'ample-gp[plot]'")
    files = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "docs").rglob("*.ipynb"),
        *(ROOT / "python").rglob("*.py"),
        *(ROOT / "python").rglob("*.md"),
    ]
    assert [str(path) for path in files if wrong.search(path.read_text(encoding="utf-8"))] == []


def imported_by(statement):
    """The modules that are loaded after a statement in a new interpreter."""
    program = f"{statement}\nimport sys\nprint(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(result.stdout.split())


def test_import_loads_numpy_and_little_else():
    # To import the optional libraries takes a second; what is needed from the start, milliseconds.
    more = imported_by("import numpy, ample") - imported_by("import numpy")
    assert {name.partition(".")[0] for name in more} <= {"ample", *sys.builtin_module_names}
    assert "sklearn" in imported_by("import ample; ample.ContinualGPRegressor")
