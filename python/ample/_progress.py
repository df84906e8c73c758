"""What is shown while a long fit goes on."""

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._ample import ContinualGP


def follow(progress: Any, batches: Sequence[slice], gp: "ContinualGP") -> Any:
    """The batches in their order. ``progress`` is False (nothing is shown), True (a line on standard
    error) or a function that wraps a sequence and shows how far it is read, such as ``tqdm``."""
    if callable(progress):
        return progress(batches)
    return _line(batches, gp) if progress else batches


def _line(batches: Sequence[slice], gp: "ContinualGP") -> Iterator[slice]:
    """A terminal sees one line that changes; a file or a notebook gets only the last."""
    terminal = sys.stderr.isatty()
    start, total = time.monotonic(), batches[-1].stop
    text = ""
    try:
        for rows in batches:
            yield rows
            seconds = time.monotonic() - start
            text = f"{rows.stop} of {total} rows, M = {gp.size}, {seconds:.1f} s"
            if terminal and rows.stop < total:
                left = seconds * (total - rows.stop) / rows.stop
                print(f"\r\x1b[K{text}, {left:.0f} s to go", end="", file=sys.stderr, flush=True)
    finally:  # the end, an error or Ctrl-C: what was reached stays on a line of its own
        print(f"\r\x1b[K{text}" if terminal else text, file=sys.stderr)
