"""Values that may come from elsewhere: ``@FILE`` from a file, ``-`` from standard input."""

import sys
from pathlib import Path

import click

from jurybox.errors import InputError

_STDIN = "jurybox.stdin"


class TextValue(click.ParamType):  # pyright: ignore[reportMissingTypeArgument] - newer than 8.2
    """A text, given in place, as ``@FILE`` or as ``-``."""

    name = "text"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the text itself."""
        text = str(value)
        where = "" if param is None else param.opts[0]
        if text == "-":
            if sys.stdin is None:
                raise InputError("standard input is closed", "pipe the text in", where)
            if ctx is not None and ctx.meta.setdefault(_STDIN, where) != where:
                problem = f"{ctx.meta[_STDIN]} has read standard input already"
                raise InputError(problem, "give one of the texts in a file", where)
            return _decoded(sys.stdin.buffer.read(), f"{where} -")
        if text.startswith("@"):
            return _decoded(_read(Path(text[1:]), where), f"{where} {text}")
        # Bytes of an argument that are no UTF-8 come in as halves of characters.
        return _decoded(text.encode("utf-8", "surrogateescape"), where)


def _read(path: Path, where: str) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", None) or error).lower()
        problem, mend = f"{path} can't be read ({reason})", "check the path behind the @"
        raise InputError(problem, mend, where) from None


def _decoded(data: bytes, where: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        problem = f"byte {error.start} is not UTF-8"
        raise InputError(problem, "save the text as UTF-8", where) from None
