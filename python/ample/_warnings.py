"""How a model says that something is wrong with it."""

import os
import sys
import warnings
from typing import Any

_PACKAGE = os.path.dirname(__file__)


class AmpleWarning(UserWarning):
    """Something about the data or the model that makes its predictions less than they could be.

    The estimators warn after the batch in which it was noticed; the texts are in the report of that
    batch too. As with any warning, a filter hides it or makes it an error:

    >>> import warnings
    >>> warnings.simplefilter("ignore", ample.AmpleWarning)
    """


def warn(report: Any) -> None:
    """Shows what a batch's report warns of, as of the line that called into the package."""
    messages = getattr(report, "warnings", ())
    if not messages:
        return
    level = 1
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        level += 1
    for message in messages:
        warnings.warn(message, AmpleWarning, stacklevel=level)
