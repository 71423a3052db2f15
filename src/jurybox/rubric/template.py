"""A judge prompt that a document brings along, with its placeholders."""

import re
from collections.abc import Iterator, Mapping
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
    "response": "response",
    "candidate_answer": "response",
    "assistant_response": "response",
    "response_b": "response_b",
}
"""Each placeholder with the part of the sample that fills it."""

_DOUBLE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_SINGLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Template(msgspec.Struct, frozen=True, kw_only=True):
    """The text of a judge prompt, to the character.

    Placeholders are ``{{task}}`` or ``{task}``; where a template has one of the first form, the
    second form is plain text, so that a template may show JSON.
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
        """Put the parts of a sample in place, in one pass.

        One pass, because a message may hold text that looks like a placeholder; it must reach the
        judge as it came and never be filled itself.
        """
        return self._pattern.sub(lambda match: parts[PLACEHOLDERS[match[1]]], self.text)
