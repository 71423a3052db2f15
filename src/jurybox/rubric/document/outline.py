"""The outline of a document: its title, its ``##`` sections and their content."""

import bisect
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from jurybox.documents.findings import Findings, Lines, Place
from jurybox.documents.plain_yaml import Node, read_yaml
from jurybox.rubric.document.blocks import Block, Body, Fence, Heading, Html, Listing, Text
from jurybox.rubric.rubric_model import Section
from jurybox.rubric.template import PLACEHOLDERS, Template
from jurybox.text_format import closest, listed, nearest

CRITERIA: Final = "Criteria"
LEXICONS: Final = "Lexicons"
JUDGE_PROMPT: Final = "Judge prompt"
SCENARIOS: Final = "Scenarios"

# The ranks of headings: #, ## and ###.
_TITLE, _PART, _CRITERION = 1, 2, 3
_STRUCTURAL = (CRITERIA, LEXICONS, JUDGE_PROMPT)
# Allows one missing, extra or swapped letter; `Old judge prompt` scores 0.88.
_SLIP = 0.9


class DocumentPart(msgspec.Struct, frozen=True, kw_only=True):
    """A ``##`` section: its heading, the blocks below it, and the line after its end."""

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
        """The name of the structural section that has this title (ignoring case), or None."""
        title = self.title.casefold()
        return next((name for name in _STRUCTURAL if name.casefold() == title), None)


class Outline(msgspec.Struct, frozen=True, kw_only=True):
    """The title, the text below it and the sections."""

    title: str
    description: str
    parts: tuple[DocumentPart, ...]

    def part(self, name: str) -> DocumentPart | None:
        """Return a structural section."""
        return next((part for part in self.parts if part.structure == name), None)

    def fences(self, name: str) -> list[Fence]:
        """Return the fenced blocks of a structural section."""
        part = self.part(name)
        return [block for block in (part.blocks if part else ()) if isinstance(block, Fence)]


def read_outline(body: Body, findings: Findings, *, needs_criteria: bool = True) -> Outline:
    """Split a document at its headings."""
    headings = [block for block in body.blocks if isinstance(block, Heading)]
    title = _read_title(body, headings, findings)
    starts = [heading for heading in headings if heading.rank == _PART]
    parts = tuple(
        DocumentPart(heading=heading, blocks=blocks, end=end)
        for heading, blocks, end in below(starts, body.blocks, len(body.lines))
    )
    _check_parts(parts, findings, needs_criteria=needs_criteria)
    title_end = 0 if title is None else title.end
    first_part = starts[0].start if starts else len(body.lines)
    return Outline(
        title="" if title is None else title.text,
        description=body.text(title_end, max(first_part, title_end)),
        parts=parts,
    )


def _read_title(body: Body, headings: Sequence[Heading], findings: Findings) -> Heading | None:
    titles = [heading for heading in headings if heading.rank == _TITLE]
    title = titles[0] if titles else None
    if title is None or not title.text:
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
    parts: Sequence[DocumentPart], findings: Findings, *, needs_criteria: bool
) -> None:
    for name in _STRUCTURAL:
        found = [part for part in parts if part.structure == name]
        for extra in found[1:]:
            problem = f"a second section `{name}` (the first is on line {found[0].place.line})"
            findings.add(extra.place, "second-section", problem, "keep one")
        if not found:
            _check_missing(name, parts, findings, needed=needs_criteria)
    if not any(part.title.casefold() == SCENARIOS.casefold() for part in parts):
        _check_missing(SCENARIOS, parts, findings, needed=False)
    for part, following in itertools.pairwise(parts):
        # Text above dashes is a heading; an author who otherwise uses `##` meant a divider.
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
    elif meant is not None and closest(_stem(name), [_stem(meant)], alike=_SLIP):
        problem = f"the section `## {meant}` is only text"
        findings.add(place, "unknown-section", problem, f"call it `## {name}` to have it read")


def _stem(title: str) -> str:
    return "".join(char for char in title.casefold() if char.isalpha()).removesuffix("s")


def below(
    headings: Sequence[Heading], blocks: Sequence[Block], end: int
) -> Iterator[tuple[Heading, tuple[Block, ...], int]]:
    """Yield each heading with the blocks below it and the line of the next heading, or ``end``."""
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
    """Return all text that isn't structure, including the rest of structural sections.

    Structural sections come first, since their position in a document doesn't matter.
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

# Blocks that are read if they are in the right place: rules, checks, lexicons and levels.
_LOOKS_READ = re.compile(
    r"[\s>*+.)0-9-]*(?:(?:```+|~~~+)\s*(?P<info>(?:ya?ml)?[\s_-]*(?P<word>rule|check|lexicon)s?)\s*$"
    r"|\|[\s*_`]*score[\s*_`]*\|)",
    re.IGNORECASE,
)
# Blocks that Markdown mistakes for a continuation of the block above.
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_STRUCTURE = re.compile(r" {0,3}(?:\||```|~~~|#{1,6}(?:[ \t]|$))")
_ROW = re.compile(r"\|")
# The kinds of HTML that continue over blank lines until their end tag.
_ENDLESS = re.compile(r"<(!--|\?|!\[cdata\[|![a-z]|(?:pre|script|style|textarea)(?=\s|>|$))")
_ENDS = {"!--": "-->", "?": "?>", "![cdata[": "]]>"}


def check_unread(body: Body, read: Iterable[Block], inside: range, findings: Findings) -> None:
    """Report blocks without an end, and text that looks like a block that should be read.

    ``inside`` contains the lines of the criteria.
    """
    known = {block.start for block in read}
    for block in body.blocks:
        end = _missing_end(body, block)
        if end:
            problem = "the block has no end, so it hides the rest of the document"
            hint = f"close it with {end}"
            findings.add(body.place(block.start), "unclosed-block", problem, hint)
        elif block.start not in known and end is None:
            _check_text(body, block, inside, findings)


def _missing_end(body: Body, block: Block) -> str | None:
    """Return the end that a block lacks; empty for HTML, None if the block is complete."""
    if isinstance(block, Fence):
        return None if block.closed else "the marks that open it"
    text = "\n".join(body.lines[block.start : block.end]).strip().lower()
    kind = _ENDLESS.match(text) if isinstance(block, Html) else None
    if kind is None:
        return None
    end = _ENDS.get(kind[1], f"</{kind[1]}>" if kind[1].isalpha() else ">")
    return "" if end in text else f"`{end}`"


def _check_text(body: Body, block: Block, inside: range, findings: Findings) -> None:
    """Report the first line of a block that looks like rules, checks, lexicons or levels."""
    lines = range(block.start, block.start + 1 if isinstance(block, Fence) else block.end)
    looks = _STRUCTURE if block.start in inside else _HEADING
    if not isinstance(block, Html | Text):
        # Below a list, a table row without indentation continues the last item.
        looks = _ROW if isinstance(block, Listing) and block.start in inside else _LOOKS_READ
    for line in lines:
        found = _LOOKS_READ.match(body.lines[line])
        if found or looks.match(body.lines[line]):
            problem = f"\u201c{body.lines[line].strip()}\u201d is not read here"
            hint = (
                "leave a blank line above it, and don't put it in a list, quote or HTML; levels,"
                f" `{RULES_INFO}` and `{CHECKS_INFO}` belong below the `###` heading of a"
                f" criterion, `{LEXICONS_INFO}` under `## {LEXICONS}`"
            )
            name = f"yaml {found['word'].lower()}s" if found and found["info"] else None
            if found and name not in (None, found["info"]):
                hint = f"call it `{name}`; {hint}"
            findings.add(body.place(line), "unread-block", problem, hint)
            return


def read_fence(body: Body, fence: Fence, findings: Findings) -> Node | None:
    """Read the YAML of a fenced block."""
    start = Place(fence.start + 2, body.place(fence.start).column)
    return read_yaml(fence.content, start, findings)


def only_fence(body: Body, part: DocumentPart, wanted: str, findings: Findings) -> Fence | None:
    """Return the only fenced block of a section; report if there are none or several."""
    fences = [block for block in part.blocks if isinstance(block, Fence)]
    if len(fences) == 1:
        return fences[0]
    place = body.place(fences[1].start) if fences else part.place
    problem = f"`## {part.title}` has {len(fences) or 'no'} fenced blocks"
    findings.add(place, "wrong-blocks", problem, f"give it one {wanted}")
    return None


_DOUBLE = re.compile(r"\{\{([^{}\n]*)\}\}")
_SINGLE = re.compile(r"(?<!\{)\{([A-Za-z_][A-Za-z0-9_]*)\}(?!\})")


def _read_template(text: str, fence: Place, findings: Findings) -> Template:
    """Read the prompt and check its placeholders; ``fence`` is where its block opens."""
    template = Template(text=text)
    lines = Lines(text, Place(fence.line + 1, fence.column))
    if not text.strip():
        findings.add(fence, "bad-template", "the judge prompt is empty", "write it")
        return template
    names = dict(template.placeholders())
    for name, index in template.placeholders():
        if name not in PLACEHOLDERS:
            hint = nearest(name, PLACEHOLDERS, f"use one of {listed(PLACEHOLDERS)}")
            problem = f"there is no placeholder `{name}`"
            findings.add(lines.place(index), "unknown-placeholder", problem, hint)
    _check_braces(text, names, lines, findings)
    written = {*names, *(match[1] for match in _SINGLE.finditer(text))}
    if "response" not in {PLACEHOLDERS.get(name) for name in written}:
        form = "{response}" if names and not _DOUBLE.search(text) else "{{response}}"
        hint = f"put `{form}` where it belongs"
        findings.add(fence, "bad-template", "the judge prompt never shows the response", hint)
    return template


def _check_braces(text: str, names: dict[str, int], lines: Lines, findings: Findings) -> None:
    """Report braces that look like a placeholder but would be sent unchanged."""
    doubles = list(_DOUBLE.finditer(text))
    for match in doubles:
        if match[1].strip() not in names:
            hint = nearest(match[1].strip(), PLACEHOLDERS, f"use one of {listed(PLACEHOLDERS)}")
            problem = f"`{match[0]}` isn't a placeholder"
            findings.add(lines.place(match.start()), "unknown-placeholder", problem, hint)
    for match in _SINGLE.finditer(text) if doubles else ():
        if match[1] in PLACEHOLDERS:
            problem = f"`{match[0]}` is plain text next to placeholders in double braces"
            hint = f"write `{{{match[0]}}}`"
            findings.add(lines.place(match.start()), "unknown-placeholder", problem, hint)


def read_judge_prompt(body: Body, outline: Outline, findings: Findings) -> Template | None:
    """Read the section with the judge's prompt."""
    part = outline.part(JUDGE_PROMPT)
    if part is None:
        return None
    fence = only_fence(body, part, "block with the prompt's text", findings)
    if fence is None:
        return None
    return _read_template(fence.content.removesuffix("\n"), body.place(fence.start), findings)
