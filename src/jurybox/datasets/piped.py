"""Rows from a file, or from standard input where it is called ``-``."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from jurybox.datasets.source import Source, open_source
from jurybox.errors import InputError


@contextmanager
def open_or_stdin(path: Path, what: str) -> Generator[Source]:
    """Open a file, or standard input, of which ``what`` is expected.

    Raises:
        InputError: there is no such file, or standard input is closed.

    """
    if str(path) != "-":
        with open_source(path) as source:
            yield source
    elif sys.stdin is None:
        raise InputError("standard input is closed", f"pipe the {what} in", "-")
    else:
        yield Source(sys.stdin.buffer, "standard input", size=0)
