"""Replies that are no verdict: each is a defect that says what to fix (E4 to E7, A3, C15).

The replies are kept in ``tests/golden/replies/malformed.jsonl``; where the words matter, ``says``
holds what the defect must name.
"""

from collections import Counter
from typing import Any

import pytest

from readers import READERS, golden, problem, title

MALFORMED = golden("malformed")


@pytest.mark.parametrize("row", MALFORMED, ids=title)
def test_a_malformed_reply_is_a_defect_that_says_what_to_mend(row: dict[str, Any]) -> None:
    said = problem(row["format"], row["reply"])
    assert [words for words in row.get("says", []) if words not in said] == [], said
    assert said.endswith(".")
    assert "\n" not in said
    assert len(said) < 600
    # It goes back to the model and into the record, and neither takes half a character.
    said.encode()


def test_there_are_enough_of_them() -> None:
    counts = Counter(row["format"] for row in MALFORMED)
    assert set(counts) == set(READERS)
    assert min(counts.values()) >= 30
    assert sum(counts.values()) >= 400
