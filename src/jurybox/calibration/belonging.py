"""What belongs together: rows of one cluster, rows with the same words, and all that these join."""

import hashlib
from collections.abc import Sequence

from jurybox.sample import Row


def words_of(row: Row) -> str:
    """Return a digest of what a judge reads of a row; white space makes no difference.

    Nor does the order of two responses, for judges see them in both.
    """
    responses = sorted(
        _folded(each.text) for each in (row.response, row.response_b) if each is not None
    )
    turns = [(turn.role, _folded(turn.content)) for turn in row.messages]
    return digest(repr((_folded(row.task), _folded(row.context or ""), responses, turns)))


def units_of(members: Sequence[tuple[str | None, str]]) -> list[str]:
    """Return the name of the unit that each member is in, by its cluster and its words.

    Those that share either are in one unit, and so are those that a third one joins. The name
    depends on the members of the unit alone, never on their order.
    """
    above: dict[str, str] = {}

    def top(name: str) -> str:
        while above.setdefault(name, name) != name:
            above[name] = above[above[name]]
            name = above[name]
        return name

    named: list[str] = []
    for cluster, words in members:
        name = top(f"text {words}")
        if cluster is not None:
            # The least of the names is on top, so that it is the unit's.
            name, other = sorted((name, top(f"cluster {cluster}")))
            above[other] = name
        named.append(name)
    return [top(name) for name in named]


def digest(text: str) -> str:
    """Return the hash of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _folded(text: str) -> str:
    return " ".join(text.split())
