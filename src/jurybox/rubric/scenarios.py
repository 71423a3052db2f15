"""The scenarios of a rubric document: the focus and key criteria of each (C13)."""

import re
from typing import Final

from jurybox.rubric.document.criteria import heading_id
from jurybox.rubric.document.outline import SCENARIOS
from jurybox.rubric.rubric_model import Rubric

_HEADING: Final = re.compile(r"^### +(.+)$", re.MULTILINE)
_LABEL: Final = re.compile(r"\**([A-Za-z][\w ]*):")
_SHOWN: Final = ("focus", "key criteria")


def scenario_texts(rubric: Rubric) -> dict[str, str]:
    """Return the text on each scenario that judges and reviewers are shown, by its id.

    Below ``## Scenarios`` each ``###`` heading is a scenario, named like a criterion; what follows
    ``Focus:`` and ``Key criteria:`` is shown, and other labels such as ``Examples:`` are not.
    """
    texts: dict[str, str] = {}
    for section in rubric.sections:
        if section.title.casefold() == SCENARIOS.casefold():
            _, *parts = _HEADING.split(section.text)
            for heading, text in zip(parts[::2], parts[1::2], strict=True):
                name, scenario = heading_id(heading.strip())
                if lines := _shown_lines(text):
                    texts[scenario] = "\n".join([f"Scenario: {name}", *lines])
    return texts


def _shown_lines(text: str) -> list[str]:
    lines: list[str] = []
    shown = False
    for line in text.splitlines():
        label = _LABEL.match(line)
        if label is not None:
            shown = label[1].casefold() in _SHOWN
        if shown and line.strip():
            lines.append(line.strip())
    return lines
