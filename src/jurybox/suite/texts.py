"""The small texts of a suite file: where something is, and which model is meant."""

import re
from typing import Final

from jurybox.errors import Unreadable

LANGFUSE: Final = "langfuse:"

# What is behind the slash is the provider's affair, and checked where providers are known.
_MODEL = re.compile(r"[A-Za-z0-9_-]+/\S(?:.*\S)?")


def parse_path(text: str) -> str:
    """Read a path or a name.

    Raises:
        Unreadable: it is blank or spans lines.

    """
    if not text.strip():
        raise Unreadable("the path is empty", "name a file")
    if "\n" in text:
        raise Unreadable("the path has several lines", "write it in one line")
    return text


def parse_dataset(text: str) -> str:
    """Read where a dataset is: a path, or ``langfuse:NAME``.

    Raises:
        Unreadable: it is neither.

    """
    if text.startswith(LANGFUSE) and not text.removeprefix(LANGFUSE).strip():
        raise Unreadable(f"`{text}` names no dataset", f"write `{LANGFUSE}NAME`")
    return parse_path(text)


def parse_prompt(text: str) -> str:
    """Read where a prompt is: a path, or ``langfuse:NAME@VERSION``.

    Raises:
        Unreadable: it is neither; without its version a prompt may change between two runs.

    """
    if text.startswith(LANGFUSE):
        name, _, version = text.removeprefix(LANGFUSE).rpartition("@")
        if not name.strip() or not version.strip():
            raise Unreadable(
                f"`{text}` names no version of a prompt", f"write `{LANGFUSE}NAME@VERSION`"
            )
    return parse_path(text)


def parse_model(text: str) -> str:
    """Read what looks like ``provider/name``.

    Raises:
        Unreadable: it doesn't.

    """
    if _MODEL.fullmatch(text) is None:
        mend = "write `provider/name`, such as `openai/gpt-4.1-2025-04-14`"
        raise Unreadable(f"`{text}` isn't the name of a model", mend)
    return text
