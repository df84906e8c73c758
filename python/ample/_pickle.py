"""A pickled model is its bytes, and its selection method if that was written in Python."""

import copyreg
from typing import Any

from ._ample import ContinualGP, SelectionMethod, from_bytes


def _restore(model: bytes, selection: object | None) -> ContinualGP:
    return from_bytes(model, selection)


def _reduce(model: ContinualGP) -> tuple[Any, ...]:
    selection = model.selection
    custom = None if isinstance(selection, SelectionMethod) else selection
    return _restore, (model.to_bytes(), custom)


copyreg.pickle(ContinualGP, _reduce)
