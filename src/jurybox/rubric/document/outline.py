"""The outline of a document: its title, its ``##`` sections and their content."""

import bisect
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from jurybox.documents.findings import Findings, Place
from jurybox.rubric.document.blocks import Block, Body, Fence, Heading, Html, Table, Text
from jurybox.rubric.rubric_model import Section
from jurybox.text_format import closest

CRITERIA: Final = "Criteria"
LEXICONS: Final = "Lexicons"
JUDGE_PROMPT: Final = "Judge prompt"

# The ranks of headings: #, ## and ###.
_TITLE, _PART, _CRITERION = 1, 2, 3
_STRUCTURAL = (CRITERIA, LEXICONS, JUDGE_PROMPT)


class DocumentPart(msgspec.Struct, frozen=True, kw_only=True):
    """A ``##`` section: its heading, the blocks below it and the line it ends before."""

    heading: Heading
    blocks: tuple[Block, ...]
    end: int

    @property
    def title(self) -> str:
        """The text of the heading."""
        return self.heading.text

    @property
    def place(self) -> Place:
        """Where the section begins."""
        return Place(self.heading.start + 1)

    @property
    def structure(self) -> str | None:
        """Which of the sections with a meaning this is; case makes no difference."""
        title = self.title.casefold()
        return next((name for name in _STRUCTURAL if name.casefold() == title), None)


class Outline(msgspec.Struct, frozen=True, kw_only=True):
    """The title, the text below it and the sections."""

    title: str
    description: str
    parts: tuple[DocumentPart, ...]

    def part(self, name: str) -> DocumentPart | None:
        """Return the section with a meaning."""
        return next((part for part in self.parts if part.structure == name), None)


def read_outline(
    body: Body, findings: Findings, *, whole: bool, needs_criteria: bool = True
) -> Outline:
    """Split a document at its headings; where it isn't ``whole``, some of them can't be seen."""
    headings = [block for block in body.blocks if isinstance(block, Heading)]
    title = _read_title(body, headings, findings, whole=whole)
    starts = [heading for heading in headings if heading.rank == _PART]
    parts = tuple(
        DocumentPart(heading=heading, blocks=blocks, end=end)
        for heading, blocks, end in below(starts, body.blocks, len(body.lines))
    )
    _check_parts(parts, findings, whole=whole, needs_criteria=needs_criteria)
    title_end = 0 if title is None else title.end
    first_part = starts[0].start if starts else len(body.lines)
    return Outline(
        title="" if title is None else title.text,
        description=body.text(title_end, max(first_part, title_end)),
        parts=parts,
    )


def _read_title(
    body: Body, headings: Sequence[Heading], findings: Findings, *, whole: bool
) -> Heading | None:
    titles = [heading for heading in headings if heading.rank == _TITLE]
    title = titles[0] if titles else None
    if (title is None and whole) or (title is not None and not title.text):
        place = Place(1 if title is None else title.start + 1)
        hint = "add a line such as `# Support answers`"
        findings.add(place, "no-title", "the document has no title", hint)
    for extra in titles[1:]:
        problem = f"a second title (the first is on line {titles[0].start + 1})"
        findings.add(Place(extra.start + 1), "second-title", problem, "make it a `##` section")
    first = body.blocks[0].start if body.blocks else 0
    if title is not None and first < title.start:
        problem, hint = "there is text before the title", "move it below the title"
        findings.add(Place(first + 1), "text-before-title", problem, hint)
    return title


def _check_parts(
    parts: Sequence[DocumentPart], findings: Findings, *, whole: bool, needs_criteria: bool
) -> None:
    for name in _STRUCTURAL:
        found = [part for part in parts if part.structure == name]
        for extra in found[1:]:
            problem = f"a second section `{name}` (the first is on line {found[0].place.line})"
            findings.add(extra.place, "second-section", problem, "keep one")
        if not found and whole:
            _check_missing(name, parts, findings, needed=needs_criteria)
    for part, following in itertools.pairwise(parts):
        # Text above a line of dashes is a heading; an author who writes `##` meant a divider.
        divided = following.heading.underlined and not part.heading.underlined
        if part.structure == CRITERIA and divided:
            problem = (
                f"the dashes below make `{following.title}` a heading, which ends the criteria"
            )
            findings.add(
                following.place, "underlined-text", problem, "leave a blank line above them"
            )


def _check_missing(
    name: str, parts: Sequence[DocumentPart], findings: Findings, *, needed: bool
) -> None:
    meant = closest(name, [part.title for part in parts if part.structure is None])
    place = next((part.place for part in parts if part.title == meant), Place(1))
    if name == CRITERIA and needed:
        hint = "add it, with a `###` heading for each criterion"
        if meant is not None:
            hint = f"is `## {meant}` meant to be it?"
        findings.add(place, "no-criteria", f"there is no section `## {CRITERIA}`", hint)
    elif meant is not None and _stem(meant) == _stem(name):
        problem = f"the section `## {meant}` is only text"
        findings.add(place, "unknown-section", problem, f"call it `## {name}` to have it read")


def _stem(title: str) -> str:
    return "".join(char for char in title.casefold() if char.isalpha()).removesuffix("s")


def below(
    headings: Sequence[Heading], blocks: Sequence[Block], end: int
) -> Iterator[tuple[Heading, tuple[Block, ...], int]]:
    """Yield each heading with the blocks down to the next one and the line where that one is."""
    starts = [block.start for block in blocks]
    ends = [*(heading.start for heading in headings[1:]), end]
    for heading, stop in zip(headings, ends, strict=False):
        first, last = (bisect.bisect_left(starts, line) for line in (heading.end, stop))
        yield heading, tuple(blocks[first:last]), stop


def criterion_headings(part: DocumentPart) -> list[Heading]:
    """Return the headings of the criteria in a section."""
    return [
        block for block in part.blocks if isinstance(block, Heading) and block.rank == _CRITERION
    ]


def read_sections(body: Body, parts: Sequence[DocumentPart]) -> tuple[Section, ...]:
    """Keep all other text, also the rest of a structural section.

    Structural sections come first, since their place in a document means nothing.
    """
    structural: dict[str, Section] = {}
    free: list[Section] = []
    for part in parts:
        end, without = part.end, list[Block]()
        name = part.structure
        if name == CRITERIA:
            headings = criterion_headings(part)
            end = headings[0].start if headings else end
        elif name is not None:
            without = [block for block in part.blocks if isinstance(block, Fence)]
        text = body.text(part.heading.end, end, without)
        if name is None:
            free.append(Section(title=part.title, text=text))
        elif text:
            structural[name] = Section(title=name, text=text)
    return (*(structural[name] for name in _STRUCTURAL if name in structural), *free)


RULES_INFO = "yaml rules"
CHECKS_INFO = "yaml checks"
LEXICONS_INFO = "yaml lexicons"

_LOOKS_READ = re.compile(r"(?:ya?ml)?[\s_-]*(?:rules?|checks?|lexicons?)", re.IGNORECASE)
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
            hint = "close it with the marks that open it"
            findings.add(_place(body, block.start), "unclosed-block", problem, hint)
        elif isinstance(block, Html) and (closing := _missing_end(body, block)) is not None:
            whole = False
            problem = "the HTML has no end, so it hides the rest of the document"
            hint = f"close it with `{closing}`"
            findings.add(_place(body, block.start), "unclosed-block", problem, hint)
    return whole


def check_stray(body: Body, read: Sequence[Block], findings: Findings) -> None:
    """Report blocks that were not read; ``read`` are the tables and fenced blocks that were."""
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
        hint = (
            f"put `{RULES_INFO}` or `{CHECKS_INFO}` into a criterion and lexicons"
            f" as `{LEXICONS_INFO}` under `## Lexicons`, not inside a list or a quote"
        )
        problem = f"the fenced block `{info}` is not read in this place"
        findings.add(place, "unread-block", problem, hint)


def _check_header(header: str, place: Place, findings: Findings) -> None:
    if header.strip("*_` ").casefold() == "score":
        problem = "the table of levels is not read in this place"
        hint = "put it below a `###` heading under `## Criteria`, not inside a list or a quote"
        findings.add(place, "unread-block", problem, hint)


def _end_of(text: str) -> str | None:
    return next((end for start, end in _ENDLESS.items() if start.match(text)), None)


def _missing_end(body: Body, block: Html) -> str | None:
    text = "\n".join(body.lines[block.start : block.end]).lstrip().lower()
    closing = _end_of(text)
    return closing if closing is not None and closing not in text else None


def _check_headings(body: Body, block: Html, findings: Findings) -> None:
    """Other HTML continues to the next blank line."""
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
                hint = "leave a blank line above it; a table needs a header and a row of dashes"
                findings.add(_place(body, line), "unread-block", problem, hint)
                break
