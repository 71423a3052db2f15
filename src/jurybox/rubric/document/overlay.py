"""A document that extends another one: what it leaves out is the other's.

Both are brought together as the YAML they are written in, so that the whole is read and checked by
the same readers as any document. What comes from the base has the place of the line that names it:
a finding there is about something that the two don't say together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from jurybox.documents.field_reader import Fields, kind_of
from jurybox.documents.findings import Findings, Place
from jurybox.documents.plain_yaml import Items, Node, Pairs, Scalar, read_yaml
from jurybox.errors import Finding, InputError
from jurybox.rubric.document.criteria import CriterionText
from jurybox.rubric.document.outline import JUDGE_PROMPT
from jurybox.rubric.document.render import front_matter, lexicons_text, rules_text
from jurybox.rubric.format_names import REPLY_FORMATS
from jurybox.rubric.rubric_model import Criterion, Indicators, Rubric, Section
from jurybox.text_format import closest, listed, nearest

CHANGE_KEYS: Final = ("add", "remove")
"""The keys of a lexicon that changes one of the base's."""

REPLACE: Final = "replace"
REMOVE: Final = "remove"
RULE_CHANGE_KEYS: Final = (REPLACE, REMOVE)
"""The keys of an adjustment that changes one of the base's."""

_LEXICONS: Final = "lexicons"
_ADJUST: Final = "adjust"
_AMOUNTS: Final = ("add", "subtract")

Entry = tuple[Scalar, Node]


def changed_rules(inherited: Pairs, own: Pairs, findings: Findings) -> Pairs:
    """Return a rules block with what another one, of an overlay, says of it.

    A change that can't be made is left in place, for the reader of rules to report.
    """
    before = {key.text: (key, value) for key, value in inherited.pairs}
    after = dict(before)
    for key, value in own.pairs:
        old = before.get(key.text, (key, None))[1]
        if key.text == _LEXICONS and isinstance(value, Pairs):
            known = old if isinstance(old, Pairs) else Pairs(pairs=(), place=value.place)
            after[key.text] = (key, changed_lexicons(known, value, findings))
        elif key.text == _ADJUST and isinstance(value, Items):
            rules = list(old.items) if isinstance(old, Items) else []
            after[key.text] = (key, _changed_rules(rules, value, findings))
        else:
            after[key.text] = (key, value)
    return Pairs(pairs=tuple(after.values()), place=own.place)


def changed_lexicons(inherited: Pairs, own: Pairs, findings: Findings) -> Pairs:
    """Return lexicons with those of an overlay: new, written anew, or with other phrases."""
    lexicons = {key.text: (key, value) for key, value in inherited.pairs}
    for key, value in own.pairs:
        if isinstance(value, Pairs) and any(each.text in CHANGE_KEYS for each, _ in value.pairs):
            old = lexicons.get(key.text)
            if old is None:
                names = list(lexicons)
                otherwise = f"known are {listed(names)}" if names else "list its phrases"
                problem = f"there is no lexicon `{key.text}` to change"
                findings.add(
                    key.place, "unknown-lexicon", problem, nearest(key.text, names, otherwise)
                )
                continue
            lexicons[key.text] = (key, _changed_lexicon(key.text, old[1], value, findings))
        else:
            lexicons[key.text] = (key, value)
    return Pairs(pairs=tuple(lexicons.values()), place=own.place)


def _changed_lexicon(name: str, old: Node, own: Pairs, findings: Findings) -> Node:
    """Return a lexicon without the phrases to remove and with those to add."""
    fields = Fields(own, f"the change of the lexicon `{name}`", CHANGE_KEYS, findings)
    phrases = _phrases_of(old)
    wanted = "a list of phrases such as `[first phrase, second]`"
    for node in fields.items(REMOVE, wanted):
        text = _folded(node)
        kept = [each for each in phrases if _folded(each) != text]
        if len(kept) == len(phrases):
            known = [each.text for each in phrases if isinstance(each, Scalar)]
            problem = f"the lexicon `{name}` of the base has no phrase {kind_of(node)}"
            hint = nearest(text, known, "leave it out")
            findings.add(node.place, "unknown-phrase", problem, hint)
        phrases = kept
    phrases += fields.items("add", wanted)
    whole = Items(items=tuple(phrases), place=own.place)
    if not isinstance(old, Pairs):
        return whole
    pairs = tuple((key, whole if key.text == "phrases" else value) for key, value in old.pairs)
    return Pairs(pairs=pairs, place=own.place)


def _phrases_of(lexicon: Node) -> list[Node]:
    if isinstance(lexicon, Pairs):
        lexicon = next((value for key, value in lexicon.pairs if key.text == "phrases"), lexicon)
    return list(lexicon.items) if isinstance(lexicon, Items) else []


def _folded(node: Node) -> str:
    return " ".join(node.text.split()).casefold() if isinstance(node, Scalar) else ""


def _changed_rules(rules: list[Node], own: Items, findings: Findings) -> Items:
    """Return the base's adjustments, some of them replaced or removed, and then the new ones."""
    left: list[Node | None] = list(rules)
    added: list[Node] = []
    for node in own.items:
        change = _change_in(node)
        if change is None:
            added.append(node)
            continue
        key, value, rest = change
        at = _find_rule(rules, value, findings)
        if at is None:
            continue
        if key.text == REMOVE:
            for other, _ in rest.pairs:
                problem = f"`{other.text}` means nothing next to `{REMOVE}`"
                findings.add(other.place, "unused-key", problem, "leave it out")
            left[at] = None
        else:
            left[at] = _replaced(rules[at], rest)
    kept = [node for node in left if node is not None]
    return Items(items=(*kept, *added), place=own.place)


def _change_in(node: Node) -> tuple[Scalar, Node, Pairs] | None:
    """Return how an adjustment changes one of the base's, which one, and what else it says."""
    if not isinstance(node, Pairs):
        return None
    found = next(((key, value) for key, value in node.pairs if key.text in RULE_CHANGE_KEYS), None)
    if found is None:
        return None
    rest = tuple(pair for pair in node.pairs if pair != found)
    return found[0], found[1], Pairs(pairs=rest, place=node.place)


def _find_rule(rules: Sequence[Node], wanted: Node, findings: Findings) -> int | None:
    """Find an adjustment of the base by its `why`, or by its number, counted from 1."""
    reasons = [_folded(_value_of(rule, "why")) for rule in rules]
    text = _folded(wanted)
    numbered = isinstance(wanted, Scalar) and not wanted.quoted and text.isdecimal()
    if text and reasons.count(text) == 1:
        return reasons.index(text)
    if numbered and 1 <= int(text[:9]) <= len(rules):
        return int(text[:9]) - 1
    if text and text in reasons:
        problem = f"the base has more than one adjustment {kind_of(wanted)}"
        hint = "give the number of the one that is meant"
    else:
        known = [node.text for rule in rules if isinstance(node := _value_of(rule, "why"), Scalar)]
        otherwise = f"give its `why`, or its number from 1 to {len(rules)}"
        problem = f"the base has no adjustment {kind_of(wanted)}"
        hint = nearest(text, known, otherwise if rules else "it has none at all")
    findings.add(wanted.place, "unknown-rule", problem, hint)
    return None


def _value_of(rule: Node, key: str) -> Node:
    empty = Items(items=(), place=rule.place)
    if not isinstance(rule, Pairs):
        return empty
    return next((value for name, value in rule.pairs if name.text == key), empty)


def _replaced(old: Node, rest: Pairs) -> Node:
    """Return an adjustment whose parts are the overlay's where it has them."""
    if not isinstance(old, Pairs):
        return rest
    parts = {key.text: (key, value) for key, value in old.pairs}
    if any(key.text in _AMOUNTS for key, _ in rest.pairs):
        for name in _AMOUNTS:
            parts.pop(name, None)
    parts |= {key.text: (key, value) for key, value in rest.pairs}
    return Pairs(pairs=tuple(parts.values()), place=rest.place)


EXTENDS: Final = "extends"
MOST_BASES: Final = 5
"""The longest chain of bases."""


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """A document that another one extends, and how its own base is found.

    ``key`` is the same for the same document, however it was named.
    """

    origin: str
    key: str
    data: bytes
    find: Find


Find = Callable[[str], Base]
"""Finds a document by the value of ``extends``, or raises an `InputError`."""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What came of reading a document: a rubric, or else findings.

    ``bases`` are the documents that it extends, by their names, the nearest first. ``warnings`` are
    about what is sound, but probably not meant so.
    """

    rubric: Rubric | None
    findings: tuple[Finding, ...]
    bases: tuple[str, ...] = ()
    warnings: tuple[Finding, ...] = ()


Read = Callable[[Base], Reading]


def read_base(
    fields: Fields, find: Find | None, chain: tuple[str, ...], read: Read, findings: Findings
) -> tuple[Rubric, Reading] | None:
    """Return the rubric that a document extends, and its reading with the names of all behind it.

    ``chain`` are the keys of the documents on the way here; what is wrong with the base itself is
    one finding, because it is fixed there.
    """
    name = fields.text(EXTENDS)
    base = None if name is None else _found(name, fields, find, findings)
    if name is None or base is None:
        return None
    if base.key in chain:
        _note_cycle(name, fields, findings)
        return None
    if len(chain) >= MOST_BASES:
        _note_depth(fields, findings)
        return None
    reading = read(base)
    if reading.rubric is None:
        _note_bad(name, base, reading, fields, findings)
        return None
    return reading.rubric, msgspec.structs.replace(reading, bases=(name, *reading.bases))


def _found(name: str, fields: Fields, find: Find | None, findings: Findings) -> Base | None:
    place = fields.value_place(EXTENDS)
    if find is None:
        problem = f"the base `{name}` can't be looked for: this text has no place of its own"
        hint = "load the document by its name or path"
        findings.add(place, "unknown-base", problem, hint)
        return None
    try:
        return find(name)
    except InputError as error:
        findings.add(place, "unknown-base", f"the base `{name}`: {error.problem}", error.hint)
        return None


def _note_bad(name: str, base: Base, reading: Reading, fields: Fields, findings: Findings) -> None:
    codes = {finding.code for finding in reading.findings}
    if "base-cycle" in codes:
        _note_cycle(name, fields, findings)
    elif "base-depth" in codes:
        _note_depth(fields, findings)
    else:
        count = len(reading.findings)
        has = "a finding" if count == 1 else f"{count} findings"
        first = reading.findings[0]
        problem = f"the base `{name}` has {has}, first {base.origin}:{first}"
        findings.add(fields.value_place(EXTENDS), "bad-base", problem, "correct the base")


def _note_cycle(name: str, fields: Fields, findings: Findings) -> None:
    problem = f"going from base to base, `{name}` leads back to where it began"
    place = fields.value_place(EXTENDS)
    findings.add(place, "base-cycle", problem, f"take out an `{EXTENDS}`")


def _note_depth(fields: Fields, findings: Findings) -> None:
    problem = f"more than {MOST_BASES} documents extend one another"
    place = fields.value_place(EXTENDS)
    findings.add(place, "base-depth", problem, "extend one of the first of them")


# Entry by entry; every other key is taken as a whole.
_MERGED: Final = ("scales", "weights", "evidence", "generation", "without_response", "metrics")
_OWN: Final = ("id", "version")
# These belong to one reply format: with another one they would mean nothing.
_OF_FORMAT: Final = tuple(rules.option for rules in REPLY_FORMATS.values() if rules.option)
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
        hint = "leave it out; a new criterion may have a scale of its own under `scales`"
        if "scale" in mine:
            problem = f"the scale is fixed by the base `{self.base.id}`"
            self._findings.add(mine["scale"][0].place, "fixed-by-base", problem, hint)
        scales = mine["scales"][1] if "scales" in mine else None
        for key, _ in scales.pairs if isinstance(scales, Pairs) else ():
            if self.base.criterion(key.text) is not None:
                problem = f"the scale of `{key.text}` is fixed by the base `{self.base.id}`"
                self._findings.add(key.place, "fixed-by-base", problem, hint)

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
                checks=None,
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
            hint = f"call it `### {name}` to change that one, or give a new one another name"
            self._findings.add(text.place, "unknown-criterion", problem, hint)

    def warn(self, whole: Rubric, earlier: Sequence[Finding], warnings: Findings) -> None:
        """Note criteria that the document adds and that the base's judge prompt doesn't mention.

        ``earlier`` are the warnings of the base, which apply as long as its judge prompt is kept.
        """
        template = whole.template
        if template is None or template != self.base.template:
            return
        for each in earlier:
            warnings.add(self._at, each.code, each.problem, each.hint)
        unmentioned = REPLY_FORMATS[whole.protocol.reply_format].unmentioned
        words = _words(template.text)
        for text in self._new:
            mentioned = _words(text.id) in words or _words(text.name) in words
            if mentioned or text.checks is not None:
                continue
            prompt = f"the judge prompt of the base `{self.base.id}`"
            problem = f"{prompt} doesn't mention `{text.id}`: {unmentioned}"
            hint = f"give this document a `## {JUDGE_PROMPT}` that does"
            warnings.add(text.place, "unjudged-criterion", problem, hint)

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
