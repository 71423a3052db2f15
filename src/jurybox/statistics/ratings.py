"""Ratings as they are given: who gave which item which score. Without numpy, for readers."""

import msgspec


class Ratings(msgspec.Struct, frozen=True, kw_only=True):
    """The ratings of one criterion, column by column.

    ``item``, ``rater`` and ``score`` have an entry for each rating: the places of its item and
    rater among ``items`` and ``raters``, and its score. A rating that is missing has no entry.
    """

    criterion: str | None
    items: tuple[str, ...]
    raters: tuple[str, ...]
    item: tuple[int, ...]
    rater: tuple[int, ...]
    score: tuple[float, ...]
