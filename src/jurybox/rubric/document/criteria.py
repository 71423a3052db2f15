"""A criterion: its heading, its definition and what stands below them."""

import re
import unicodedata
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from jurybox.documents.fields import NAME, NAME_MEND
from jurybox.documents.findings import Findings, Place
from jurybox.rubric.document.blocks import (
    Block,
    Body,
    Fence,
    Heading,
    Table,
    without_closing_hashes,
)
from jurybox.rubric.document.indicators import merge_groups, read_indicators
from jurybox.rubric.document.stray import RULES_INFO, check_swallowed
from jurybox.rubric.model import Indicators

B = TypeVar("B", bound=Block)

_BACKTICKED = re.compile(r"(.*?)\s*\(?`([^`]*)`\)?")
_NUMBERING = re.compile(r"[0-9]+[.)]\s+")


class CriterionText(msgspec.Struct, frozen=True, kw_only=True):
    """A criterion as the document writes it, before the front matter's scale is known."""

    id: str
    name: str
    place: Place
    definition: str
    indicators: tuple[Indicators, ...]
    table: Table | None
    rules: Fence | None
    seen: tuple[Block, ...]


def snake_case(heading: str) -> str:
    """Return the id of a heading: ``2. Trust & Boundaries`` is ``trust_boundaries``."""
    plain = unicodedata.normalize("NFKD", _NUMBERING.sub("", heading, count=1).casefold())
    ascii_only = plain.encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "_", ascii_only).strip("_")


def read_criterion(
    body: Body, heading: Heading, blocks: Sequence[Block], end: int, findings: Findings
) -> CriterionText:
    """Read the blocks below one ``###`` heading."""
    place = Place(heading.start + 1, body.column(heading.start))
    name, criterion_id = _read_heading(heading.text, place, findings)
    tables = [block for block in blocks if isinstance(block, Table)]
    fences = [block for block in blocks if isinstance(block, Fence) and _is_rules(block, findings)]
    table = _only(tables, "table", body, findings)
    rules = _only(fences, "rules block", body, findings)
    check_swallowed(body, blocks, findings)
    structure = [block for block in (table, rules) if block is not None]
    groups = read_indicators(body, blocks, end, structure, findings)
    taken = sorted(
        [*structure, *(block for group in groups for block in group.taken)],
        key=lambda block: block.start,
    )
    return CriterionText(
        id=criterion_id,
        name=name,
        place=place,
        definition=body.text(heading.end, end, taken),
        indicators=merge_groups(groups),
        table=table,
        rules=rules,
        seen=(*tables, *fences),
    )


def _read_heading(text: str, place: Place, findings: Findings) -> tuple[str, str]:
    if match := _BACKTICKED.fullmatch(text):
        name, criterion_id = without_closing_hashes(match[1]) or match[2], match[2]
    else:
        name, criterion_id = text, snake_case(text)
    if NAME.fullmatch(criterion_id) is None:
        problem = f"the heading `{text}` gives no usable id" if text else "a criterion has no name"
        mend = f"put one in backticks behind the heading; {NAME_MEND}"
        findings.add(place, "bad-criterion-id", problem, mend)
    return name, criterion_id


def _is_rules(fence: Fence, findings: Findings) -> bool:
    if fence.info.lower() in {"yaml", "yml"}:
        problem = f"a fenced block `{fence.info}` in a criterion is not read"
        mend = f"call it `{RULES_INFO}` if it holds the automated scoring"
        findings.add(Place(fence.start + 1), "unread-block", problem, mend)
    return fence.info == RULES_INFO and fence.closed


def _only(found: Sequence[B], what: str, body: Body, findings: Findings) -> B | None:
    for block in found[1:]:
        place = Place(block.start + 1, body.column(block.start))
        problem = f"the criterion has a second {what} (the first is on line {found[0].start + 1})"
        findings.add(place, "second-block", problem, "keep one")
    return found[0] if found else None
