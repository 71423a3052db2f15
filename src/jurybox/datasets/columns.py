"""The fields of a row and the names that they go by."""

import difflib
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from jurybox.wording import closest

ROW_FIELDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "id": (),
        "task": ("input", "question", "user_input"),
        "reference": ("reference_answer", "expected", "ideal", "target"),
        "context": ("provided_context",),
        "response": ("candidate_answer", "output", "answer"),
        "response_b": (),
        "messages": (),
        "scenario": (),
        "metadata": (),
        "latency_e2e_ms": (),
        "latency_model_ms": (),
        "input_tokens": (),
        "output_tokens": (),
        "timed_out": (),
    }
)
"""Every field of a row, each with its other names."""

FIELD_OF: Final[Mapping[str, str]] = MappingProxyType(
    {name: field for field, others in ROW_FIELDS.items() for name in (field, *others)}
)
"""The field of every name."""

# A column is more often somebody's own than a slip, so a slip must look like one.
_ALIKE = 0.75
_LONGEST_DIFFERENCE = 2
_SHORTEST = 4


# Rows of one file have the same columns.
@lru_cache(maxsize=1000)
def slip_of(column: str) -> str | None:
    """Return the name of a field that an unknown column is a likely slip of."""
    name = closest(column, FIELD_OF)
    column = column.casefold()
    if name is None or column == name:
        return name
    apart = abs(len(column) - len(name))
    if apart > _LONGEST_DIFFERENCE or min(len(column), len(name)) < _SHORTEST:
        return None
    alike = difflib.SequenceMatcher(None, column, name).ratio()
    return name if alike >= _ALIKE else None
