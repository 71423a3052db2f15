"""From the bytes of a document to its text, its front matter and its body."""

import hashlib

import msgspec

from jurybox.documents.findings import Findings, Place
from jurybox.documents.text import decode

_FENCE = "---"


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
    text = decode(data, findings)
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
