"""Asking a store for samples: which of them, in which order, and how many at a time."""

import math
from typing import Final

import msgspec

from jurybox.errors import InputError
from jurybox.scoring.sample_index import FLAGS, Facets
from jurybox.text_format import nearest

MOST: Final = 1000
"""So many samples are on a page at most."""
MOST_GROUPS: Final = 200
"""So many scenarios, and so many demographics, are listed at most."""
LONGEST_SEARCH: Final = 1000
_FARTHEST: Final = 2**62
_FIGURE: Final = "figure:"
_ORDERS: Final = ("number", "urgency", "id")


class SampleQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which samples are asked for; all that is said has to hold.

    Attributes:
        search: a text in the sample's id, task, context, reference, messages or responses. Case
            counts for nothing; where the text has only ASCII in it, that is so for A to Z.
        flags: names of `FLAGS`, all of which a sample has.
        figure: the name of a figure that a sample has, from ``low`` to ``high``, ends included.
        sort: ``number``, ``urgency``, ``id`` or ``figure:NAME``. Samples without the figure come
            last in either direction, and of equals the one that comes first in the run.
        queued: only samples that somebody ought to review.

    """

    search: str = ""
    flags: tuple[str, ...] = ()
    scenario: str | None = None
    demographic: str | None = None
    winner: str | None = None
    figure: str | None = None
    low: float | None = None
    high: float | None = None
    sort: str = "number"
    descending: bool = False
    queued: bool = False
    offset: int = 0
    limit: int = 50

    @property
    def sort_figure(self) -> str | None:
        """The name of the figure by which samples are sorted."""
        return self.sort.removeprefix(_FIGURE) if self.sort.startswith(_FIGURE) else None

    def check(self) -> None:
        """See that the question makes sense.

        Raises:
            InputError: it doesn't.

        """
        if not 1 <= self.limit <= MOST:
            raise InputError(f"a page can't have {self.limit} samples", f"ask for 1 to {MOST}")
        if not 0 <= self.offset <= _FARTHEST:
            raise InputError(f"a page can't begin at {self.offset}", "begin at 0 or later")
        if self.sort not in _ORDERS and not self.sort_figure:
            hint = f"sort by {', '.join(_ORDERS)} or {_FIGURE}NAME"
            raise InputError(f"samples can't be sorted by `{self.sort[:80]}`", hint)
        for name in self.flags:
            if name not in FLAGS:
                hint = nearest(name[:80], FLAGS, f"give some of {', '.join(FLAGS)}")
                raise InputError(f"there is no flag `{name[:80]}`", hint)
        if len(self.search) > LONGEST_SEARCH:
            problem = f"the text to search for has {len(self.search)} characters"
            raise InputError(problem, f"search for at most {LONGEST_SEARCH}")
        for end in (self.low, self.high):
            if end is not None and not math.isfinite(end):
                raise InputError(f"{end} is no end of a range", "give a number")
        if self.figure is None and (self.low, self.high) != (None, None):
            raise InputError("a range needs a figure", "name the figure")


class SamplePage(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the samples that were asked for, and how many there are in all."""

    rows: tuple[Facets, ...]
    total: int


class Groups(msgspec.Struct, frozen=True, kw_only=True):
    """The first scenarios and demographics of a run in the order of their names."""

    scenarios: tuple[str, ...]
    demographics: tuple[str, ...]
