"""How Sphinx makes the site of these pages; scripts/docs runs it."""

import __future__
import importlib.machinery
import importlib.util
import re
import sys
from pathlib import Path

from pygments.lexers.special import TextLexer
from sphinx.util import logging


class StubLoader(importlib.machinery.SourceFileLoader):
    def get_source(self, fullname):
        """The stub, with an array called an array; shapes are in the docstrings."""
        array = r"Annotated\[NDArray\[numpy\.float64\], dict\(.*?\)\]"
        return re.sub(rf"{array}(?=[,:) ]|$)", "numpy.ndarray", super().get_source(fullname))

    def get_code(self, fullname):
        flags = __future__.annotations.compiler_flag  # a stub may name what comes later
        return compile(self.get_source(fullname), self.path, "exec", flags)


def use_stub():
    """Puts the stub of the installed package in the place of its compiled part.

    It says the same, which the tests ensure, and it is Python: order, types and overloads can be read.
    """
    package = Path(importlib.util.find_spec("ample").origin).parent
    loader = StubLoader("ample._ample", str(package / "_ample.pyi"))
    stub = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(stub)
    sys.modules[loader.name] = stub


use_stub()
import ample

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "build" / "notebooks"  # with their outputs

project = "Ample"
copyright = "the authors of Ample, Apache-2.0"
release = re.search(r"project\(\s*Ample\s+VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]

extensions = ["myst_nb", "breathe", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
highlight_language = "none"
# Breathe names the namespace of each header anew.
suppress_warnings = ["duplicate_declaration.cpp"]

html_theme = "furo"
html_title = f"Ample {release}"
html_copy_source = False
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_show_sphinx = False

myst_heading_anchors = 3
nb_execution_mode = "off"  # scripts/notebooks has run them
nb_merge_streams = True

breathe_projects = {"Ample": str(ROOT / "build" / "docs" / "doxygen")}
breathe_default_project = "Ample"
breathe_show_include = False

autodoc_member_order = "bysource"
autodoc_default_options = {
    "members": True,
    "undoc-members": True,
    # What scikit-learn adds to every estimator, and attributes that a docstring lists already.
    "exclude-members": "set_fit_request, set_partial_fit_request, set_predict_request, "
    "set_score_request, gp_, history_",
}
autodoc_typehints = "signature"
autodoc_mock_imports = ["pyspark"]  # half a gigabyte, for four signatures
napoleon_google_docstring = False


def complete(app):
    """Warns of a header or a name that is missing from its page."""
    cpp, python = ((ROOT / "docs" / f"api-{name}.md").read_text() for name in ("cpp", "python"))
    headers = sorted(path.name for path in (ROOT / "include" / "ample").glob("*.h"))
    names = sorted({*ample.__all__} - {"__version__", "plot"})
    missing = [header for header in headers if f"{{doxygenfile}} {header}\n" not in cpp]
    missing += [f"ample.{name}" for name in names if f":: ample.{name}\n" not in python]
    for name in missing:
        logging.getLogger(__name__).warning("%s is not in the interface's page", name)


RECORDS = """
```{toctree}
:hidden:
:glob:
0*
```
"""


def complete_source(app, docname, source):
    """Notebooks are stored without outputs, and the site shows the copies that were run. The page
    of decisions has a table of them; the site needs to know that they belong to it."""
    if docname == "decisions/README":
        source[0] += RECORDS
    if docname.startswith("notebooks/"):
        source[0] = (NOTEBOOKS / f"{Path(docname).name}.ipynb").read_text(encoding="utf-8")


def plain_docstring(app, what, name, obj, options, lines):
    """Docstrings are for help(), where a bar is a bar."""
    for i, line in enumerate(lines):
        if "``" not in line and not line.lstrip().startswith((">>>", "...")):
            lines[i] = line.replace("|", r"\|")


def setup(app):
    app.connect("builder-inited", complete)
    app.add_lexer("kernel", TextLexer)  # a kernel as text, and a message
    app.add_lexer("error", TextLexer)
    app.connect("source-read", complete_source)
    app.connect("autodoc-process-docstring", plain_docstring)
