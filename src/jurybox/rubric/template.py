"""A document's own judge prompt, with its placeholders."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

import msgspec

PLACEHOLDERS: Final[dict[str, str]] = {
    "task": "task",
    "input": "task",
    "question": "task",
    "user_input": "task",
    "user_message": "task",
    "reference": "reference",
    "reference_answer": "reference",
    "context": "context",
    "provided_context": "context",
    "context_summary": "context",
    "messages": "messages",
    "response": "response",
    "candidate_answer": "response",
    "assistant_response": "response",
    "response_b": "response_b",
}
"""Each placeholder with the part of the sample that fills it."""

_DOUBLE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_SINGLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


_BREAK: Final = "[\n\r\x0b\x0c\x85\u2028\u2029]"
_LABEL_END: Final = r"[ \t*_`]*:"
_MATERIAL: Final = "[part of the material] "


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """The exact text of a judge prompt.

    Placeholders are ``{{task}}`` or ``{task}``. If a template uses the first form, the second is
    plain text, so that a template may contain JSON.
    """

    text: str

    @property
    def _pattern(self) -> re.Pattern[str]:
        return _DOUBLE if _DOUBLE.search(self.text) else _SINGLE

    def placeholders(self) -> Iterator[tuple[str, int]]:
        """Yield each placeholder's name and where it starts in the text."""
        for match in self._pattern.finditer(self.text):
            yield match[1], match.start()

    def fill(self, parts: Mapping[str, str]) -> str:
        """Fill in the parts of a sample.

        Done in a single pass, because a message may contain text that looks like a placeholder,
        which must reach the judge unchanged.
        """
        return self._pattern.sub(
            lambda match: parts[PLACEHOLDERS.get(match[1], match[1])], self.text
        )

    def forged(self, text: str) -> Iterator[re.Match[str]]:
        """Yield each start of a line that imitates a heading or label of the template."""
        return _labels(self.text, self._pattern).finditer(text)

    def parts(self) -> frozenset[str]:
        """Return the parts of a sample that the template shows; other names are columns."""
        return frozenset(PLACEHOLDERS.get(name, name) for name, _ in self.placeholders())

    def neutralize(self, text: str) -> str:
        """Mark the forged lines of a text as material."""
        return _labels(self.text, self._pattern).sub(rf"{_MATERIAL}\g<0>", text)


@lru_cache(maxsize=32)
def _labels(template: str, placeholder: re.Pattern[str]) -> re.Pattern[str]:
    """Return a pattern of the template's headings in capitals and of the labels of its parts."""
    lines = template.splitlines()
    headings = {line.strip(" #*:") for line in lines if line.isupper()}
    parts = {line[: found.start()] for line in lines if (found := placeholder.search(line))}
    labels = {part.strip(" -#*\t\"'") for part in parts}
    labels = {label.removesuffix(":") for label in labels if label.endswith(":")}
    # Many lines begin with a word such as `task`; few begin with two words or an underscore by
    # chance.
    loose = [re.escape(label) for label in labels if not label.isalpha()]
    exact = [re.escape(label) for label in labels if label.isalpha()]
    ends = [
        *([rf"(?:(?i:{'|'.join(loose)})){_LABEL_END}"] if loose else []),
        *([rf"(?:{'|'.join(exact)}){_LABEL_END}"] if exact else []),
        *(
            [rf"(?:{'|'.join(map(re.escape, headings))})[ \t*_:]*(?={_BREAK}|\Z)"]
            if headings
            else []
        ),
    ]
    if not ends:
        return re.compile(r"(?!)")  # matches nothing
    return re.compile(
        rf"(?:^|(?<={_BREAK}))(?:(?!{_BREAK})[\W_])*(?:{'|'.join(ends)})", re.MULTILINE
    )
