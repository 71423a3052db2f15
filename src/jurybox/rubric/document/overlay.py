"""A document that extends another one: what it leaves out is the other's.

Both are brought together as the YAML they are written in, so that the whole is read and checked by
the same readers as any document. What comes from the base has the place of the line that names it:
a finding there is about something that the two don't say together.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from jurybox.documents.findings import Findings, Place
from jurybox.documents.plain_yaml import Items, Node, Pairs, Scalar, read_yaml
from jurybox.errors import Finding
from jurybox.rubric.document.bases import EXTENDS
from jurybox.rubric.document.criteria import CriterionText
from jurybox.rubric.document.outline import JUDGE_PROMPT
from jurybox.rubric.document.overlay_rules import changed_lexicons, changed_rules
from jurybox.rubric.document.rendering import front_matter, lexicons_text, rules_text
from jurybox.rubric.model import Criterion, Indicators, Rubric, Section
from jurybox.wording import closest

# Entry by entry; every other key is taken as a whole.
_MERGED: Final = ("scales", "weights", "evidence", "generation", "without_response", "figures")
_OWN: Final = ("id", "version")
# These belong to one reply format: with another one they would mean nothing.
_OF_FORMAT: Final = ("rationale_words", "fallback_score")
_FORMAT: Final = "reply_format"
_WORD: Final = re.compile(r"[^\W_]+")


class Overlay:
    """What a document takes over from the one that it extends; ``at`` is where it names it."""

    def __init__(self, base: Rubric, at: Place, findings: Findings) -> None:
        self.base = base
        self._at = at
        self._findings = findings
        self._new: tuple[CriterionText, ...] = ()

    def front(self, own: Pairs) -> Pairs:
        """Return the front matter of both: what the document says itself wins."""
        mine = {key.text: (key, value) for key, value in own.pairs if key.text != EXTENDS}
        inherited = {
            key.text: (key, value)
            for key, value in self._inherited(front_matter(self.base)).pairs
            if key.text not in _OWN
        }
        self._check_scales(mine)
        if _FORMAT in mine:
            for key in _OF_FORMAT:
                inherited.pop(key, None)
        for key in _MERGED:
            if key in mine and key in inherited:
                mine[key] = (mine[key][0], _merged(inherited[key][1], mine[key][1]))
        return Pairs(pairs=tuple((inherited | mine).values()), place=own.place)

    def _inherited(self, text: str) -> Pairs:
        node = read_yaml(text, Place(1), Findings())
        moved = Pairs(pairs=(), place=self._at) if node is None else placed(node, self._at)
        return moved if isinstance(moved, Pairs) else Pairs(pairs=(), place=self._at)

    def _check_scales(self, mine: Mapping[str, tuple[Scalar, Node]]) -> None:
        """The levels and rules of the base were written for its scale."""
        mend = "leave it out; a new criterion may have a scale of its own under `scales`"
        if "scale" in mine:
            problem = f"the scale is fixed by the base `{self.base.id}`"
            self._findings.add(mine["scale"][0].place, "fixed-by-base", problem, mend)
        scales = mine["scales"][1] if "scales" in mine else None
        for key, _ in scales.pairs if isinstance(scales, Pairs) else ():
            if self.base.criterion(key.text) is not None:
                problem = f"the scale of `{key.text}` is fixed by the base `{self.base.id}`"
                self._findings.add(key.place, "fixed-by-base", problem, mend)

    def criteria(self, texts: Sequence[CriterionText]) -> list[CriterionText]:
        """Return the base's criteria, each with what the document says of it, and the new ones."""
        own = {text.id: text for text in texts}
        inherited = [self._over(each, own.pop(each.id, None)) for each in self.base.criteria]
        for text in own.values():
            self._check_new(text)
        self._new = tuple(own.values())
        return [*inherited, *own.values()]

    def _over(self, criterion: Criterion, own: CriterionText | None) -> CriterionText:
        if own is None:
            return CriterionText(
                id=criterion.id,
                name=criterion.name,
                place=self._at,
                definition=criterion.definition,
                indicators=criterion.indicators,
                table=None,
                rules=None,
                seen=(),
            )
        return msgspec.structs.replace(
            own,
            definition=own.definition or criterion.definition,
            indicators=_joined(criterion.indicators, own.indicators),
        )

    def _check_new(self, text: CriterionText) -> None:
        """A criterion called almost like one of the base's is a slip: it would change nothing."""
        meant = closest(text.id, [each.id for each in self.base.criteria])
        if meant is not None:
            problem = f"the base `{self.base.id}` has no criterion `{text.id}`"
            name = next(each.name for each in self.base.criteria if each.id == meant)
            mend = f"call it `### {name}` to change that one, or give a new one another name"
            self._findings.add(text.place, "unknown-criterion", problem, mend)

    def warn(self, whole: Rubric, earlier: Sequence[Finding], warnings: Findings) -> None:
        """Note criteria that the document adds and that the base's judge prompt doesn't mention.

        ``earlier`` are the warnings of the base, which hold as long as its judge prompt stands.
        """
        template = whole.template
        if template is None or template != self.base.template:
            return
        for each in earlier:
            warnings.add(self._at, each.code, each.problem, each.mend)
        told = _words(template.text)
        for text in self._new:
            criterion = whole.criterion(text.id)
            if criterion is None or _words(text.id) in told or _words(text.name) in told:
                continue
            prompt = f"the judge prompt of the base `{self.base.id}`"
            problem = f"{prompt} doesn't mention `{text.id}`: {_unjudged(whole, criterion)}"
            mend = f"give this document a `## {JUDGE_PROMPT}` that does"
            warnings.add(text.place, "unjudged-criterion", problem, mend)

    def rules(self, criterion_id: str, own: Pairs | None) -> Pairs | None:
        """Return the rules of a criterion with what the document changes of them."""
        criterion = self.base.criterion(criterion_id)
        if criterion is None or criterion.rules is None:
            return own
        inherited = self._inherited(rules_text(criterion.rules))
        return inherited if own is None else changed_rules(inherited, own, self._findings)

    def lexicons(self, own: Pairs | None) -> Pairs:
        """Return the shared lexicons with what the document changes of them."""
        inherited = self._inherited(lexicons_text(self.base.lexicons))
        return inherited if own is None else changed_lexicons(inherited, own, self._findings)

    def sections(self, own: Sequence[Section]) -> tuple[Section, ...]:
        """Return the base's sections, those of the same title replaced, and the new ones."""
        mine = {section.title: section for section in own}
        inherited = [mine.pop(each.title, each) for each in self.base.sections]
        return (*inherited, *mine.values())


def _words(text: str) -> str:
    """Return the words of a text, each with a space on both sides."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _unjudged(rubric: Rubric, criterion: Criterion) -> str:
    """Say what becomes of a criterion that judges aren't told about."""
    match rubric.protocol.reply_format:
        case "json":
            return "judges are told no more of it than its id"
        case "strict-json":
            return "judges won't score it, and their replies are refused without it"
        case _:
            return "nobody scores it" if criterion.rules is None else "only its rules score it"


def _merged(inherited: Node, own: Node) -> Node:
    if not isinstance(inherited, Pairs) or not isinstance(own, Pairs):
        return own
    pairs = {key.text: (key, value) for key, value in (*inherited.pairs, *own.pairs)}
    return Pairs(pairs=tuple(pairs.values()), place=own.place)


def _joined(inherited: Sequence[Indicators], own: Sequence[Indicators]) -> tuple[Indicators, ...]:
    """Return the base's lists with the items that lists of the same label add, and new lists."""
    mine = {each.label: each for each in own}
    lists = [_longer(each, mine.pop(each.label, None)) for each in inherited]
    return (*lists, *mine.values())


def _longer(inherited: Indicators, own: Indicators | None) -> Indicators:
    if own is None:
        return inherited
    items = tuple(dict.fromkeys((*inherited.items, *own.items)))
    return Indicators(label=inherited.label, items=items, text=own.text or inherited.text)


def placed(node: Node, place: Place) -> Node:
    """Return a value as if all of it stood at one place."""
    match node:
        case Scalar():
            return msgspec.structs.replace(node, place=place)
        case Items(items=items):
            return Items(items=tuple(placed(each, place) for each in items), place=place)
        case Pairs(pairs=pairs):
            moved = tuple(_pairs_at(pairs, place))
            return Pairs(pairs=moved, place=place)


def _pairs_at(pairs: Sequence[tuple[Scalar, Node]], place: Place) -> Iterator[tuple[Scalar, Node]]:
    for key, value in pairs:
        yield msgspec.structs.replace(key, place=place), placed(value, place)
