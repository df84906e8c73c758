"""Warnings about a model."""

import os
import sys
import warnings
from typing import Any

_PACKAGE = os.path.dirname(__file__)


class AmpleWarning(UserWarning):
    """Something about the data or the model that may make predictions worse than they could be.

    The estimators warn after the batch that shows it; the report of that batch has the same text. The
    usual filters apply:

    >>> import warnings
    >>> warnings.simplefilter("ignore", ample.AmpleWarning)
    """


def warn(report: Any) -> None:
    """Issues a report's warnings as if from the line that called into the package."""
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
