"""Shows untrusted texts on a page: bounded, isolated, and without invisible characters.

Texts from models and datasets are never trusted: markup is shown as text, characters that change
the direction of a line or hide parts of it are shown as U+FFFD, and long texts are cut.
"""

import re
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

from markupsafe import Markup

from jurybox.documents.numbers import metric_value
from jurybox.reporting.judge_votes import LETTER
from jurybox.text_format import counted, cut, visible

NAME: Final = 80
"""The maximum number of characters of a name that are shown."""

_TITLE: Final = 1000
_SHORT: Final = 320
_WHOLE: Final = 20_000


def seen(text: object, most: int = NAME) -> Markup:
    """Return a short text on one line; hovering shows the part that was cut off."""
    whole = str(text)
    short = visible(cut(whole, most))
    if len(whole) <= most:
        return Markup("<bdi>{}</bdi>").format(short)
    return Markup('<bdi title="{}">{}</bdi>').format(visible(cut(whole, _TITLE)), short)


def prose(text: str) -> Markup:
    """Return a text with its lines, up to a limit; a long one is folded after its beginning."""
    body = Markup('<div class="prose" dir="auto">{}</div>').format(
        visible(text[:_WHOLE].replace("\r\n", "\n"), kept="\n")
    )
    if len(text) > _WHOLE:
        note = counted(len(text) - _WHOLE, "more character")
        body += Markup('<p class="left-out">{} omitted.</p>').format(note)
    if len(text) <= _SHORT:
        return body
    return Markup('<details class="long"><summary><bdi>{}</bdi></summary>{}</details>').format(
        visible(cut(text, _SHORT)), body
    )


_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z", re.ASCII)


def sentence(text: str) -> str:
    """Return a text that starts with a capital letter."""
    return text[:1].upper() + text[1:]


def percent(share: float) -> str:
    """Return a percentage; 100% and 0% are shown only if they are exact."""
    if 0 < share < 0.001:  # noqa: PLR2004 - would be rounded to 0%
        return "under 0.1%"
    if 0.999 < share < 1:  # noqa: PLR2004 - would be rounded to 100%
        return "over 99.9%"
    return metric_value("share_rate", share)


def moment(utc: str) -> str:
    """Return a time to the minute: ``2026-03-01 09:14 UTC``."""
    return f"{utc[:10]} {utc[11:16]} UTC" if _TIME.fullmatch(utc) else utc


_TOKENS: Final = re.compile(r"(?:<[^>]*>|&[^;\s]+;|\w+(?:['\u2019]\w+)*|[^\w\s])\s*|\s+")
_UNREAD: Final = re.compile(r"<[^>]*>|\s")
_BETWEEN_TAGS: Final = re.compile(r"(^|>|\n)(\s*)([^<>\n]*[^<>\s])")
_MARKED: Final = 6000
_LETTERS: Final = re.compile(rf"<[^>]*>|&[^;\s]+;|({LETTER.pattern})")


def relabeled(html: Markup) -> Markup:
    """Mark what a judge that saw two responses swapped calls A and B with their letters here.

    The style sheet shows these in brackets, so that the words stay the judge's.
    """

    def mark(found: re.Match[str]) -> str:
        letter = found[1]
        here = {"A": "B", "B": "A"}.get(letter)
        return f'<span class="relabeled" data-here="{here}">{letter}</span>' if here else found[0]

    return Markup(_LETTERS.sub(mark, html))  # noqa: S704 - it is HTML already


@lru_cache(maxsize=4)  # two texts are compared once, and marked on both sides
def _opcodes(first: str, other: str) -> list[tuple[str, int, int, int, int]]:
    # Without the space after them, so that words in a row are found as one run.
    left, right = ([each.strip() for each in _TOKENS.findall(text)] for text in (first, other))
    return list(SequenceMatcher(None, left, right).get_opcodes())


def marked(first: Markup, other: Markup, side: str = "b", most: int = _MARKED) -> Markup:
    """Return ``other``, marking the words that ``first`` lacks.

    Nothing is marked if less than half of the shorter text is in both.
    """
    if max(len(first), len(other)) > most:
        return other
    # Markdown and plain texts escape quotation marks differently.
    ours, base = (
        str(each).replace("&#39;", "'").replace("&#34;", "&quot;") for each in (other, first)
    )
    tokens, pieces, shared = _TOKENS.findall(ours), list[str](), 0
    ordered = (ours, base) if side == "a" else (base, ours)
    for kind, *ends in _opcodes(*ordered):
        start, end = ends[:2] if side == "a" else ends[2:]
        words = "".join(tokens[start:end])
        if kind == "equal":
            shared += len(_UNREAD.sub("", words))
        else:
            words = _BETWEEN_TAGS.sub(rf'\1\2<mark class="{side}">\3</mark>', words)
        pieces.append(words)
    # Tags are whole tokens, so that no mark begins or ends within one.
    alike = shared * 2 > min(len(_UNREAD.sub("", each)) for each in (base, ours))
    return Markup("".join(pieces)) if alike else other  # noqa: S704 - both are HTML already
