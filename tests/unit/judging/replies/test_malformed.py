"""Replies that are no verdict: each is a defect that says what to fix (E4 to E7, A3, C15).

The replies are kept in ``tests/golden/replies/malformed.jsonl``; where the words matter, ``says``
holds what the defect must name.
"""

import pytest

from readers import READERS, golden, problem

MALFORMED = golden("malformed")


@pytest.mark.parametrize("form", READERS)
def test_a_malformed_reply_is_a_defect_that_says_what_to_mend(form: str) -> None:
    rows = [row for row in MALFORMED if row["format"] == form]
    assert len(rows) >= 30
    for row in rows:
        said = problem(form, row["reply"])
        assert [words for words in row.get("says", []) if words not in said] == [], row
        assert said.endswith("."), row
        assert "\n" not in said, row
        assert len(said) < 600, row
        # It goes back to the model and into the record, and neither takes half a character.
        said.encode()
