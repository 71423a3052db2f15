"""Blocks that look as if they were read, and are not: each would be lost without a word."""

import re
from collections.abc import Sequence

from jurybox.documents.findings import Findings, Place
from jurybox.rubric.document.blocks import Block, Body, Fence, Html, Table, Text

RULES_INFO = "yaml rules"
LEXICONS_INFO = "yaml lexicons"

_LOOKS_READ = re.compile(r"(?:ya?ml)?[\s_-]*(?:rules?|lexicons?)", re.IGNORECASE)
_STRUCTURE_LINE = re.compile(r" {0,3}(?:\||```|~~~)")
_HEADING_LINE = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
# The kinds of HTML that go on, over blank lines, until their end is found.
_ENDLESS = {
    re.compile(r"<!--"): "-->",
    re.compile(r"<\?"): "?>",
    re.compile(r"<!\[cdata\["): "]]>",
    re.compile(r"<![a-z]"): ">",
    re.compile(r"<pre(?:\s|>|$)"): "</pre>",
    re.compile(r"<script(?:\s|>|$)"): "</script>",
    re.compile(r"<style(?:\s|>|$)"): "</style>",
    re.compile(r"<textarea(?:\s|>|$)"): "</textarea>",
}


def check_ends(body: Body, findings: Findings) -> bool:
    """Note blocks without an end; return whether the document can be seen as a whole."""
    whole = True
    for block in body.blocks:
        if isinstance(block, Fence) and not block.closed:
            whole = False
            problem = "the fenced block has no end, so it hides the rest of the document"
            mend = "close it with the marks that open it"
            findings.add(_place(body, block.start), "unclosed-block", problem, mend)
        elif isinstance(block, Html) and (closing := _missing_end(body, block)) is not None:
            whole = False
            problem = "the HTML has no end, so it hides the rest of the document"
            mend = f"close it with `{closing}`"
            findings.add(_place(body, block.start), "unclosed-block", problem, mend)
    return whole


def check_stray(body: Body, read: Sequence[Block], findings: Findings) -> None:
    """Note what nobody read; ``read`` are the tables and fenced blocks that were."""
    taken = {block.start for block in read}
    for block in body.blocks:
        if isinstance(block, Fence) and block.closed and block.start not in taken:
            _check_info(block.info, _place(body, block.start), findings)
        elif isinstance(block, Table) and block.start not in taken:
            _check_header(block.rows[0].cells[0], _place(body, block.start), findings)
        elif isinstance(block, Html):
            _check_headings(body, block, findings)
    for hidden in body.hidden:
        place = _place(body, hidden.line)
        if hidden.info is None:
            _check_header(hidden.header, place, findings)
        else:
            _check_info(hidden.info, place, findings)


def _place(body: Body, line: int) -> Place:
    return Place(line + 1, body.column(line))


def _check_info(info: str, place: Place, findings: Findings) -> None:
    if _LOOKS_READ.fullmatch(info):
        mend = (
            f"put rules as `{RULES_INFO}` into a criterion and lexicons as `{LEXICONS_INFO}`"
            " under `## Lexicons`, not inside a list or a quote"
        )
        problem = f"the fenced block `{info}` is not read where it stands"
        findings.add(place, "unread-block", problem, mend)


def _check_header(header: str, place: Place, findings: Findings) -> None:
    if header.strip("*_` ").casefold() == "score":
        problem = "the table of levels is not read where it stands"
        mend = "put it below a `###` heading under `## Criteria`, not inside a list or a quote"
        findings.add(place, "unread-block", problem, mend)


def _end_of(text: str) -> str | None:
    return next((end for start, end in _ENDLESS.items() if start.match(text)), None)


def _missing_end(body: Body, block: Html) -> str | None:
    text = "\n".join(body.lines[block.start : block.end]).lstrip().lower()
    closing = _end_of(text)
    return closing if closing is not None and closing not in text else None


def _check_headings(body: Body, block: Html, findings: Findings) -> None:
    """Other HTML goes on to the next blank line, whatever stands there."""
    lines = body.lines[block.start : block.end]
    if _end_of(lines[0].lstrip().lower()) is not None:
        return
    for index, line in enumerate(lines):
        if _HEADING_LINE.match(line):
            problem = f"the HTML above makes `{line.strip()}` text, not a heading"
            place = _place(body, block.start + index)
            findings.add(place, "hidden-heading", problem, "leave a blank line above it")


def check_swallowed(body: Body, blocks: Sequence[Block], findings: Findings) -> None:
    """Note rows and fences in a criterion that Markdown takes for text of the block above them."""
    for block in blocks:
        commented = isinstance(block, Html) and _end_of(body.lines[block.start].lstrip().lower())
        if commented or not isinstance(block, Html | Text):
            continue
        for line in range(block.start, block.end):
            if _STRUCTURE_LINE.match(body.lines[line]):
                problem = f"`{body.lines[line].strip()}` is plain text here"
                mend = "leave a blank line above it; a table needs a header and a row of dashes"
                findings.add(_place(body, line), "unread-block", problem, mend)
                break
