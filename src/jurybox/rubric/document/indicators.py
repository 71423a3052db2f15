"""The lists of a criterion: what to look for, for a response or against it."""

import itertools
from collections.abc import Iterator, Sequence

import msgspec

from jurybox.documents.findings import Findings, Place
from jurybox.rubric.document.blocks import (
    BLANK,
    Block,
    Body,
    Heading,
    Item,
    Listing,
    Text,
    without_closing_hashes,
)
from jurybox.rubric.model import UNLABELLED, Indicators

SEPARATOR = "<!-- list -->"
"""Keeps the canonical text from making a label of a line that only looks like one."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A label with its lists, what is said about them, and the blocks that this takes up."""

    label: str
    text: str
    items: tuple[str, ...]
    taken: tuple[Block, ...]


def read_indicators(
    body: Body,
    blocks: Sequence[Block],
    end: int,
    structure: Sequence[Block],
    findings: Findings,
) -> list[Group]:
    """Read the lists of a criterion, each under the label it stands below.

    A heading is the label of the lists down to the next heading, with whatever is said in between.
    A line of its own just above a list can be the label too.
    """
    headings = [index for index, block in enumerate(blocks) if isinstance(block, Heading)]
    lead = blocks[: headings[0]] if headings else blocks
    groups = _lead_groups(body, lead, findings)
    for first, last in itertools.pairwise([*headings, len(blocks)]):
        stop = blocks[last].start if last < len(blocks) else end
        groups += _heading_groups(body, blocks[first:last], stop, structure, findings)
    return groups


def _lead_groups(body: Body, blocks: Sequence[Block], findings: Findings) -> list[Group]:
    groups: list[Group] = []
    for listing, above in _label_lines(body, blocks, below_heading=False):
        label = UNLABELLED if above is None else _bare(body.lines[above.start])
        groups.append(_own_group(body, label, listing, above, findings))
    return groups


def _heading_groups(
    body: Body,
    blocks: Sequence[Block],
    stop: int,
    structure: Sequence[Block],
    findings: Findings,
) -> list[Group]:
    heading, *inside = blocks
    lists = list(_label_lines(body, inside, below_heading=True))
    groups = [
        _own_group(body, _bare(body.lines[above.start]), listing, above, findings)
        for listing, above in lists
        if above is not None
    ]
    mine = [listing for listing, above in lists if above is None]
    if mine and isinstance(heading, Heading):
        others = [block for group in groups for block in group.taken]
        holes = [block for block in inside if block in structure or block in others]
        without = sorted([*holes, *mine], key=lambda block: block.start)
        group = Group(
            label=_bare(heading.text) or UNLABELLED,
            text=_without_separator(body.text(heading.end, stop, without)),
            items=tuple(item for listing in mine for item in _items(body, listing, findings)),
            taken=_around(Block(start=heading.start, end=stop), holes),
        )
        groups.insert(0, group)
    return groups


def _own_group(
    body: Body, label: str, listing: Listing, above: Block | None, findings: Findings
) -> Group:
    taken = (listing,) if above is None else (above, listing)
    return Group(label=label, text="", items=tuple(_items(body, listing, findings)), taken=taken)


def _without_separator(text: str) -> str:
    lines = text.split("\n")
    while lines and lines[-1].strip(BLANK) in {"", SEPARATOR}:
        lines.pop()
    return "\n".join(lines)


def _around(whole: Block, holes: Sequence[Block]) -> tuple[Block, ...]:
    """Return what is left of a stretch of lines beside the blocks that others take."""
    pieces: list[Block] = []
    at = whole.start
    for hole in holes:
        pieces.append(Block(start=at, end=hole.start))
        at = hole.end
    pieces.append(Block(start=at, end=whole.end))
    return tuple(piece for piece in pieces if piece.start < piece.end)


def _label_lines(
    body: Body, blocks: Sequence[Block], *, below_heading: bool
) -> Iterator[tuple[Listing, Block | None]]:
    """Yield each list with the line that is its label, where it has one of its own."""
    before: Block | None = None
    label: Block | None = None
    for index, block in enumerate(blocks):
        if isinstance(block, Listing):
            # A list right behind a list goes on with its label: Markdown has split one in two.
            if not isinstance(before, Listing):
                plain = not below_heading and index > 1
                found = before is not None and _is_label(body, before, plain=plain)
                label = before if found else None
            yield block, label
        before = block


def _is_label(body: Body, block: Block, *, plain: bool) -> bool:
    """Tell whether a line is a label; the definition itself never is, ``plain`` or not."""
    if not isinstance(block, Text) or block.end - block.start != 1:
        return False
    return is_label(body.lines[block.start], plain=plain)


def is_label(raw: str, *, plain: bool = False) -> bool:
    """Tell whether a line is a label by its looks: bold, or what it is of with a colon."""
    line = raw.strip()
    bare = _bare(line)
    bold = line.startswith(("**", "__")) and line.rstrip(": ").endswith(("**", "__"))
    polar = bare.casefold().startswith(("positive", "negative"))
    ends_in_colon = line.rstrip("*_ ").endswith(":")
    return bool(bare) and (bold or ((polar or plain) and ends_in_colon))


def _bare(label: str) -> str:
    """Return a label without its marks; what is left has none."""
    bare, before = " ".join(label.split()), ""
    while bare != before:
        before, bare = bare, without_closing_hashes(bare.strip("*_: "))
    return bare


def _items(body: Body, listing: Listing, findings: Findings) -> list[str]:
    tables = {hidden.line for hidden in body.hidden}
    _check_numbers(listing.items, findings)
    for item in listing.items:
        if not item.text:
            mend = "write it out or remove it"
            findings.add(Place(item.line + 1), "empty-indicator", "an indicator is empty", mend)
        # Without a blank line between them, Markdown takes a table for more of the item above it.
        rows = [row for row, line in enumerate(item.text.split("\n")) if line.startswith("|")]
        swallowed = [item.line + row for row in rows if row > 0]
        if swallowed and swallowed[0] not in tables:
            problem = "the table is part of the list above it"
            mend = "leave a blank line above the table"
            findings.add(Place(swallowed[0] + 1), "unread-block", problem, mend)
    return [item.text for item in listing.items if item.text]


def _check_numbers(items: Sequence[Item], findings: Findings) -> None:
    """Numbers that don't count up are scores, which a list would lose."""
    numbers = [item.number for item in items if item.number is not None]
    counted = all(later == earlier + 1 for earlier, later in itertools.pairwise(numbers))
    # Markdown authors also number every item 1 and leave the counting to the reader.
    if numbers and not (counted and numbers[0] in (0, 1)) and set(numbers) != {1}:
        problem = "the numbers of this list don't count 1, 2, 3 and would be lost"
        mend = "put scores into a table of levels, or use dashes"
        findings.add(Place(items[0].line + 1), "list-numbers", problem, mend)


def merge_groups(groups: Sequence[Group]) -> tuple[Indicators, ...]:
    """Return the indicators; lists with the same label are one."""
    items: dict[str, list[str]] = {}
    texts: dict[str, list[str]] = {}
    for group in groups:
        items.setdefault(group.label, []).extend(group.items)
        texts.setdefault(group.label, []).extend([group.text] if group.text else [])
    return tuple(
        Indicators(label=label, items=tuple(found), text="\n\n".join(texts[label]))
        for label, found in items.items()
    )
