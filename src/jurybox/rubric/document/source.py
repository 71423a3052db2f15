"""From the bytes of a document to its text, its front matter and its body."""

import hashlib
import re

import msgspec

from jurybox.rubric.document.findings import Findings, Place

MAX_BYTES = 1_000_000
MAX_YAML_CHARACTERS = 200_000
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_FENCE = "---"

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")
"""Characters that no text needs: they hide in an editor, and YAML and Markdown disagree on them."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A document split in two.

    The body still has the front matter's lines, left empty, so its line numbers are the file's.
    """

    sha256: str
    front_matter: str | None
    first_line: int
    body: str


def read_source(data: bytes, findings: Findings) -> Source | None:
    """Decode and split a document; None where that can't be done."""
    text = _decode(data, findings)
    if text is None:
        return None
    lines = text.split("\n")
    start = next((index for index, line in enumerate(lines) if line.strip()), 0)
    if lines[start].rstrip() != _FENCE:
        mend = "begin the file with a line `---`, then `id`, `version` and `scale`, then `---`"
        findings.add(Place(1), "no-front-matter", "the document has no front matter", mend)
        return Source(sha256="", front_matter=None, first_line=1, body=text)
    if start > 0:
        problem = "the front matter doesn't begin on the first line"
        findings.add(Place(start + 1), "no-front-matter", problem, "remove the lines above it")
    end = next((i for i, line in enumerate(lines) if i > start and line.rstrip() == _FENCE), None)
    if end is None:
        problem = "the front matter has no end, so it hides the whole document"
        mend = "close it with a second line `---`"
        findings.add(Place(start + 1), "no-front-matter", problem, mend)
        return None
    return Source(
        sha256=hashlib.sha256(data).hexdigest(),
        front_matter="\n".join(lines[start + 1 : end]),
        first_line=start + 2,
        body="\n".join([""] * (end + 1) + lines[end + 1 :]),
    )


def _decode(data: bytes, findings: Findings) -> str | None:
    if len(data) > MAX_BYTES:
        problem = f"the document is larger than 1 MB ({MAX_BYTES:,} bytes)"
        findings.add(Place(1), "too-large", problem, "split it or shorten it")
        return None
    mend = "save the file as UTF-8"
    if data.startswith(_UTF16_MARKS):
        findings.add(Place(1), "encoding", "the document is UTF-16", mend)
        return None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        line_start = before.rfind(b"\n") + 1
        column = len(before[line_start:].decode("utf-8-sig", "replace")) + 1
        place = Place(before.count(b"\n") + 1, column)
        problem = f"byte 0x{data[error.start]:02x} is not UTF-8"
        findings.add(place, "encoding", problem, mend)
        return None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if match := CONTROL.search(text):
        before = text[: match.start()]
        place = Place(before.count("\n") + 1, match.start() - before.rfind("\n"))
        problem = f"the document holds the control character U+{ord(match[0]):04X}"
        findings.add(place, "encoding", problem, "remove it")
        return None
    return text
