"""A text as its words: in normalised form, by content, and which of them it denies.

A word is denied where a negation stands before it in the same clause, among the next few content
words. That is no grammar: it tells "it isn't safe" from "it is safe", and "Paris, not Lyon" from
"not Paris".
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from jurybox.judging.evidence.overlapping import content
from jurybox.judging.figures_in_text import Token, read
from jurybox.judging.quantities import Quantity

_SUPERSCRIPTS: Final = re.compile("[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+")
_FRACTIONS: Final = re.compile("[\u00bc-\u00be\u2150-\u215e]")
_THIN_SPACE: Final = re.compile("(?<=[0-9])[\u00a0\u2009\u202f'\u2019](?=[0-9]{3}(?![0-9]))")
_ACCENTS: Final = re.compile("[\u0300-\u036f]+")
_SPACE: Final = re.compile(r"[^\S\n]+")
_SPACED_LINES: Final = re.compile(r" ?\n[ \n]*")
_EMPHASIS: Final = re.compile(
    r"(?<![\w*`])[*_`]{1,3}(?=[^\s*_`])|(?<=[^\s*_`])[*_`]{1,3}(?![\w*`])"
)
_BULLET: Final = re.compile(r"^(?:[-*#>\u2022]{1,6} )", re.MULTILINE)
_SIGNS: Final = str.maketrans(
    {
        "\u2116": "number ",
        "\u00ba": "\u00b0",
        "\u2018": "'",
        "\u2019": "'",
        "\u2032": "'",
        "\u2044": "/",
        "\u2010": "-",
        "\u2011": "-",
        "\u2012": "-",
        "\u2013": "-",
        "\u2014": "-",
        "\u2212": "-",
    }
)

_SILENT: Final = frozenset(".,;:!?\"'()[]{}\u201c\u201d\u201e\u00ab\u00bb\u3002\u3001-`")
_ARTICLES: Final = frozenset({"a", "an", "the"})
_NEGATION: Final = re.compile(
    r"no|not|never|none|nobody|nothing|nowhere|neither|nor|cannot|without|hardly|scarcely|\w+n't"
    r"|nicht|kein(?:e[nmr]?)?|niemals|pas|jamais|nunca|nao"
)
# What denies nothing, though it begins with a negation.
_IDIOMS: Final = {
    "no": frozenset({"later", "earlier", "sooner", "more", "less", "fewer", "doubt", "matter"}),
    "not": frozenset({"only", "just", "merely", "least"}),
    "nothing": frozenset({"but"}),
}
_CLAUSE: Final = re.compile(
    "but|however|although|though|because|which|while|whereas|unless|except|if|so|instead|rather"
)
_BREAKS: Final = frozenset(".,;:!?()\n")
_OPPOSITE: Final = re.compile(
    r"(?:un|non|dis(?=abl|agree|allow|approv|connect|honest|like|obey|continu)"
    r"|in(?=accura|activ|adequa|complet|correct|direct|effect|eligib|suffic|valid|visib)"
    r"|im(?=possib|prope|moral|mutab)|il(?=legal|logic)|ir(?=regular|relevant|reversib))(\w{3,})"
)
_REACH: Final = 5
_KEY: Final = 5
_VERDICTS: Final = {"yes": True, "true": True, "no": False, "false": False}
_BETWEEN: Final = "\x1f"


class Word(NamedTuple):
    """A content word, by the beginning of its stem.

    ``denial`` is the number of the negation that it stands behind, 0 without one; ``opposite`` is
    the key of what it is the opposite of: of "unsafe", that of "safe".
    """

    key: str
    text: str
    denial: int = 0
    opposite: str = ""


class Wording(msgspec.Struct, frozen=True, kw_only=True):
    """What a text consists of; ``form`` is its normalised form, ``opening`` a yes or no."""

    form: str
    words: tuple[Word, ...]
    quantities: tuple[Quantity, ...]
    opening: bool | None

    @property
    def is_verdict(self) -> bool:
        """Whether the text is a bare yes or no, which stands for itself only as an opening."""
        return self.form in {f"{_BETWEEN}{word}{_BETWEEN}" for word in ("yes", "no")}

    def holds(self, other: "Wording") -> bool:
        """Tell whether the whole of another text stands in this one."""
        if other.is_verdict:
            return self.opening == other.opening
        return len(other.form) > 1 and other.form in self.form


def plain(text: str) -> str:
    """Return a text without marks of layout, accents and variants of signs."""
    text = _THIN_SPACE.sub(",", text).translate(_SIGNS)
    text = _SUPERSCRIPTS.sub(lambda match: f"^{match[0]}", _FRACTIONS.sub(r" \g<0>", text))
    text = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    text = _SPACE.sub(" ", unicodedata.normalize("NFKC", text).translate(_SIGNS))
    text = _SPACED_LINES.sub("\n", text).strip()
    return _EMPHASIS.sub("", _BULLET.sub("", text))


def worded(text: str) -> Wording:
    """Take a text apart."""
    items = tuple(read(plain(text)))
    form = _BETWEEN.join(_form(items))
    first = next((each for each in items if not _is_sign(each)), None)
    return Wording(
        form=f"{_BETWEEN}{form}{_BETWEEN}" if form else "",
        words=tuple(_words(items)),
        quantities=tuple(each for each in items if isinstance(each, Quantity)),
        opening=_VERDICTS.get(first.name) if isinstance(first, Token) else None,
    )


def _is_sign(item: Token | Quantity) -> bool:
    return isinstance(item, Token) and item.kind == "sign"


def _form(items: tuple[Token | Quantity, ...]) -> Iterator[str]:
    for item in items:
        if isinstance(item, Quantity):
            yield from (f"{each.dimension} {each.value:.9g}" for each in item.exact)
        elif item.name not in _ARTICLES and item.text not in _SILENT and item.text.strip():
            yield item.name


def _words(items: tuple[Token | Quantity, ...]) -> Iterator[Word]:
    known: dict[str, str] = {}
    denial, reach = 0, 0
    for at, item in enumerate(items):
        if isinstance(item, Quantity):
            continue
        name = item.name
        if item.text[0] in _BREAKS or _CLAUSE.fullmatch(name):
            reach = 0
        elif _denies(name, items[at + 1 : at + 2]):
            denial, reach = denial + 1, _REACH
        elif item.kind == "word" or name.isalpha():
            if name not in known:
                known[name] = _key(name)
            if known[name]:
                opposite = _OPPOSITE.fullmatch(name)
                bare = _key(opposite[1]) if opposite else ""
                yield Word(known[name], item.text, denial if reach else 0, bare)
                reach = max(reach - 1, 0)


def _denies(name: str, follower: tuple[Token | Quantity, ...]) -> bool:
    if not _NEGATION.fullmatch(name):
        return False
    after = next((each.name for each in follower if isinstance(each, Token)), "")
    return after not in _IDIOMS.get(name, ())


def _key(name: str) -> str:
    """Return what two forms of a word have in common; nothing for one without content."""
    if any(letter.isdigit() for letter in name):
        return name
    stems = [each for each in content(name) if isinstance(each, str)]
    return stems[0][:_KEY] if stems else ""


def denied_against(one: Wording, other: Wording) -> tuple[str, ...]:
    """Return what one text denies and the other says without denying it.

    Words that a text both denies and says tell nothing. Of a denial's words, half must stand in
    the other text: else it is about something else.
    """
    mine, said = _resolved(one, other), _resolved(other, one)
    only_said = _keys(said, denied=False) - _keys(said, denied=True)
    also_said = _keys(mine, denied=False)
    spans: dict[int, dict[str, str]] = {}
    for word in mine:
        if word.denial:
            spans.setdefault(word.denial, {})[word.key] = word.text
    against = only_said - also_said
    found: dict[str, str] = {}
    for span in spans.values():
        shared = {key: text for key, text in span.items() if key in against}
        if 2 * len(shared) >= len(span):
            found.update(shared)
    return tuple(found.values())


def _keys(words: list[Word], *, denied: bool) -> set[str]:
    return {word.key for word in words if bool(word.denial) == denied}


def _resolved(one: Wording, other: Wording) -> list[Word]:
    """Take "unsafe" for a denied "safe" where the other text speaks of "safe"."""
    theirs = {word.key for word in other.words}
    own = {word.key for word in one.words}
    opposed = theirs - own
    last = max((word.denial for word in one.words), default=0)
    turned = {word for word in one.words if word.opposite in opposed and word.key not in theirs}
    # "Not unsafe for children" denies nothing of it.
    cancelled = {word.denial for word in turned}
    found: list[Word] = []
    for word in one.words:
        denial = 0 if word.denial in cancelled else word.denial
        if word in turned:
            last += 1
            found.append(Word(word.opposite, word.text, 0 if word.denial else last))
        else:
            found.append(Word(word.key, word.text, denial))
    return found
