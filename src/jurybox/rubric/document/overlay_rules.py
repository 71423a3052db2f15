"""What an overlay changes of a criterion's rules and of lexicons."""

from collections.abc import Sequence
from typing import Final

from jurybox.documents.fields import Fields, kind_of
from jurybox.documents.findings import Findings
from jurybox.documents.plain_yaml import Items, Node, Pairs, Scalar
from jurybox.wording import listed, nearest

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

    Whatever isn't a change that can be made is left as it stands, for the reader of rules to note.
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
            mend = nearest(text, known, "leave it out")
            findings.add(node.place, "unknown-phrase", problem, mend)
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
                problem = f"`{other.text}` means nothing beside `{REMOVE}`"
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
        mend = "give the number of the one that is meant"
    else:
        known = [node.text for rule in rules if isinstance(node := _value_of(rule, "why"), Scalar)]
        otherwise = f"give its `why`, or its number from 1 to {len(rules)}"
        problem = f"the base has no adjustment {kind_of(wanted)}"
        mend = nearest(text, known, otherwise if rules else "it has none at all")
    findings.add(wanted.place, "unknown-rule", problem, mend)
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
