"""A pickled model is its model file, and its selection method if that was written in Python."""

import copyreg
import tempfile
from pathlib import Path
from typing import Any

from ._ample import ContinualGP, SelectionMethod, load


def _restore(model_file: bytes, selection: object | None) -> ContinualGP:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.ample")
        path.write_bytes(model_file)
        return load(str(path), selection)


def _reduce(model: ContinualGP) -> tuple[Any, ...]:
    selection = model.selection
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.ample")
        model.save(str(path))
        custom = None if isinstance(selection, SelectionMethod) else selection
        return _restore, (path.read_bytes(), custom)


copyreg.pickle(ContinualGP, _reduce)
