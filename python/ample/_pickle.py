"""A pickled model is its model file, and its selection method if that was written in Python."""

import copyreg
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ._ample import ContinualGP, SelectionMethod, load

if TYPE_CHECKING:
    from pathlib import Path


@contextmanager
def _file() -> Iterator["Path"]:
    # Imported here: together they take as long as all of the package.
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder, "model.ample")


def _restore(model_file: bytes, selection: object | None) -> ContinualGP:
    with _file() as path:
        path.write_bytes(model_file)
        return load(str(path), selection)


def _reduce(model: ContinualGP) -> tuple[Any, ...]:
    selection = model.selection
    with _file() as path:
        model.save(str(path))
        custom = None if isinstance(selection, SelectionMethod) else selection
        return _restore, (path.read_bytes(), custom)


copyreg.pickle(ContinualGP, _reduce)
