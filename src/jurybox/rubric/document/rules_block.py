"""The automated rules of a criterion and the lexicons, read from fenced YAML."""

from collections.abc import Sequence
from typing import Final

from jurybox.documents.fields import Fields, kind_of
from jurybox.documents.findings import Findings, Place
from jurybox.documents.numbers import show_number
from jurybox.documents.plain_yaml import Node, Pairs, read_yaml
from jurybox.rubric.document.blocks import Fence
from jurybox.rubric.document.conditions import CONDITION_KEYS, ConditionReader
from jurybox.rubric.document.lexicons import LEXICON_KEYS, read_lexicons
from jurybox.rubric.rules import Adjustment, Lexicon, Rules
from jurybox.rubric.scale import Scale

__all__ = [
    "ADJUSTMENT_KEYS",
    "CONDITION_KEYS",
    "LEXICON_KEYS",
    "RULES_BLOCK",
    "RULES_KEYS",
    "build_lexicons",
    "build_rules",
    "open_block",
    "open_lexicons",
]

RULES_KEYS: Final = ("base", "adjust", "lexicons")
ADJUSTMENT_KEYS: Final = ("add", "subtract", "when", "why")
RULES_BLOCK: Final = "the rules block"


def open_block(fence: Fence, indent: int, what: str, findings: Findings) -> Pairs | None:
    """Read the YAML of a fenced block; ``indent`` is how far the block is moved in."""
    node = read_yaml(fence.content, Place(fence.start + 2, indent + 1), findings)
    if node is None or isinstance(node, Pairs):
        return node
    findings.add(node.place, "wrong-type", f"{what} is {kind_of(node)}", "write `key: value` lines")
    return None


def open_lexicons(fence: Fence, indent: int, findings: Findings) -> Pairs | None:
    """Read the YAML of the shared lexicons; an empty block is a slip."""
    node = open_block(fence, indent, "the lexicons block", findings)
    if node is not None and not node.pairs:
        mend = "list phrases, such as `greetings: [hello, hi]`"
        findings.add(Place(fence.start + 1), "bad-lexicon", "the lexicons block is empty", mend)
    return node


def build_lexicons(node: Pairs, findings: Findings) -> tuple[Lexicon, ...]:
    """Return the lexicons that a mapping from names to phrases gives."""
    return tuple(read_lexicons(node.pairs, findings))


def build_rules(
    node: Pairs, scale: Scale | None, shared: Sequence[Lexicon], findings: Findings
) -> Rules:
    """Return the rules that a mapping gives, held against the criterion's scale."""
    fields = Fields(node, "a rules block", RULES_KEYS, findings)
    if scale is not None and not scale.continuous:
        problem = f"automated rules give fractions, and the scale {scale} has whole numbers only"
        mend = f"use a continuous scale such as `{float(scale.low)}-{float(scale.high)}`"
        findings.add(node.place, "rules-scale", problem, mend)
    fields.require("base", "say which score to start from")
    base = fields.number("base")
    outside = scale is not None and scale.continuous and not scale.accepts(base or 0)
    if base is not None and outside:
        problem = f"the base {show_number(base)} is outside the scale {scale}"
        findings.add(fields.value_place("base"), "out-of-range", problem, "start within the scale")
    lexicons = tuple(read_lexicons(fields.pairs("lexicons", "a mapping"), findings))
    for key, _ in fields.pairs("lexicons", "a mapping"):
        if any(key.text == lexicon.name for lexicon in shared):
            problem = f"`{key.text}` is a shared lexicon already"
            findings.add(key.place, "name-taken", problem, "rename it, or use the shared one")
    reader = ConditionReader((*lexicons, *shared), findings)
    adjustments = [
        _read_adjustment(item, reader, findings)
        for item in fields.items("adjust", "a list of adjustments")
    ]
    return Rules(
        base=float(base or 0),
        adjustments=tuple(each for each in adjustments if each is not None),
        lexicons=lexicons,
    )


def _read_adjustment(node: Node, reader: ConditionReader, findings: Findings) -> Adjustment | None:
    if not isinstance(node, Pairs):
        problem = f"an adjustment is {kind_of(node)}"
        findings.add(node.place, "bad-adjustment", problem, "write `{add: 0.2, when: {...}}`")
        return None
    fields = Fields(node, "an adjustment", ADJUSTMENT_KEYS, findings)
    amounts = [key for key in ("add", "subtract") if key in fields]
    if len(amounts) != 1:
        has = "has both `add` and" if amounts else "has neither `add` nor"
        problem = f"an adjustment {has} `subtract`"
        findings.add(node.place, "bad-adjustment", problem, "give one of the two")
        return None
    amount = fields.number(amounts[0])
    if amount is not None and amount <= 0:
        problem = f"`{amounts[0]}` is {show_number(amount)}"
        mend = "use a number above zero, with `add` or `subtract` as the direction"
        findings.add(fields.value_place(amounts[0]), "out-of-range", problem, mend)
    fields.require("when", "say when it applies, such as `when: {signal: question}`")
    when = fields.node("when")
    sets = () if when is None else tuple(reader.read_sets(when))
    if amount is None:
        return None
    sign = 1 if amounts[0] == "add" else -1
    return Adjustment(add=float(sign * amount), when=sets, why=fields.text("why") or "")
