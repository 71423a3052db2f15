"""Decodes the bytes of a document."""

import re
from typing import Final

from jurybox.documents.findings import Findings, Place

MAX_BYTES: Final = 1_000_000
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")

CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")
"""Characters that editors hide, and that YAML and Markdown treat differently."""


def decode(data: bytes, findings: Findings) -> str | None:
    """Return the text with line feeds as line ends; None if the bytes aren't text."""
    if len(data) > MAX_BYTES:
        problem = f"the document is larger than 1 MB ({MAX_BYTES:,} bytes)"
        findings.add(Place(1), "too-large", problem, "split it or shorten it")
        return None
    hint = "save the file as UTF-8"
    if data.startswith(_UTF16_MARKS):
        findings.add(Place(1), "encoding", "the document is UTF-16", hint)
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        line_start = before.rfind(b"\n") + 1
        column = len(before[line_start:].decode("utf-8-sig", "replace")) + 1
        place = Place(before.count(b"\n") + 1, column)
        problem = f"byte 0x{data[error.start]:02x} is not UTF-8"
        findings.add(place, "encoding", problem, hint)
        return None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if match := CONTROL.search(text):
        before = text[: match.start()]
        place = Place(before.count("\n") + 1, match.start() - before.rfind("\n"))
        problem = f"the document contains the control character U+{ord(match[0]):04X}"
        findings.add(place, "encoding", problem, "remove it")
        return None
    return text
