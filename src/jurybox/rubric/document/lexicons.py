"""The phrase lists of a document."""

from collections.abc import Iterable, Iterator
from typing import Final

from jurybox.documents.fields import NAME, NAME_MEND, Fields, kind_of
from jurybox.documents.findings import Findings
from jurybox.documents.plain_yaml import Items, Node, Pairs, Scalar
from jurybox.rubric.rules import GAP, MATCHES, WORD_LISTS, Lexicon, Match

LEXICON_KEYS: Final = ("match", "phrases")


def read_lexicons(pairs: Iterable[tuple[Scalar, Node]], findings: Findings) -> Iterator[Lexicon]:
    """Read lexicons by name, each a list or a mapping with its way to match."""
    for key, value in pairs:
        if NAME.fullmatch(key.text) is None:
            problem = f"`{key.text}` can't be the name of a lexicon"
            findings.add(key.place, "bad-name", problem, NAME_MEND)
        match: Match = "word-start"
        phrases: Node | None = value
        if isinstance(value, Pairs):
            inner = Fields(value, f"the lexicon `{key.text}`", LEXICON_KEYS, findings)
            match = inner.choice("match", MATCHES) or "word-start"
            inner.require("phrases", "list its phrases")
            phrases = inner.node("phrases")
        if phrases is not None:
            what = f"the lexicon `{key.text}`"
            lexicon = Lexicon(
                name=key.text, phrases=read_phrases(phrases, what, findings), match=match
            )
            _check_shapes(lexicon, phrases, what, findings)
            yield lexicon


def read_phrases(node: Node, what: str, findings: Findings) -> tuple[str, ...]:
    """Read a list of phrases, each once and none of them empty."""
    if not isinstance(node, Items) or not node.items:
        problem = f"{what} is {'empty' if isinstance(node, Items) else kind_of(node)}"
        findings.add(
            node.place, "bad-lexicon", problem, "list its phrases: `[first phrase, second]`"
        )
        return ()
    phrases: dict[str, str] = {}
    for item in node.items:
        if not isinstance(item, Scalar) or not item.text.strip():
            problem = f"a phrase of {what} is {kind_of(item)}"
            findings.add(item.place, "bad-lexicon", problem, "write the phrase as text")
            continue
        phrase = " ".join(item.text.split())
        if phrase.casefold() in phrases:
            problem = f"{what} lists `{phrase}` twice"
            findings.add(
                item.place, "bad-lexicon", problem, "remove one (case makes no difference)"
            )
        phrases.setdefault(phrase.casefold(), phrase)
    return tuple(phrases.values())


def _check_shapes(lexicon: Lexicon, node: Node, what: str, findings: Findings) -> None:
    """Find phrases that would never be found in a text."""
    for phrase in lexicon.phrases:
        parts = [part.strip() for part in phrase.split(GAP)]
        if lexicon.name in WORD_LISTS and " " in phrase:
            problem = f"{what} is read word by word, and `{phrase}` has several"
            findings.add(node.place, "bad-lexicon", problem, "list single words")
        elif lexicon.match == "pattern" and not all(parts):
            problem = f"`{phrase}` of {what} has a gap with nothing on one side of it"
            findings.add(node.place, "bad-lexicon", problem, f"put `{GAP}` between words")
