"""What people's reviews say of a run so far, as a table, and the rest of it in lines."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from jurybox.reporting.html.histograms import Axis, PlottedMetric
from jurybox.review.selection import FEWEST
from jurybox.statistics.estimates import Interval

# What the table shows isn't repeated; an unknown line is rather shown twice.
_TABLED: Final = re.compile(r"(?:\w+ against people|people among themselves), ")
_KAPPA: Final = Axis(low=-1.0, high=1.0, bounded=True)
_DECIMALS: Final = 4


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A figure as far as it is known; ``reason`` is why it isn't."""

    value: float | None = None
    interval: Interval | None = None
    reason: str | None = None


class Against(msgspec.Struct, frozen=True, kw_only=True):
    """A criterion as judged, against people."""

    part: str
    criterion: str
    n: int
    same: Known
    kappa: Known
    difference: Known | None

    @property
    def few(self) -> bool:
        """Whether these are too few samples to rely on."""
        return self.n < FEWEST

    @property
    def drawn(self) -> PlottedMetric:
        """The agreement as a figure on its scale."""
        return PlottedMetric(
            name=f"Kappa of {self.criterion}, {self.part}",
            value=self.kappa.value,
            n=self.n,
            interval=self.kappa.interval,
            reason=self.kappa.reason,
            axis=_KAPPA,
        )


class Among(msgspec.Struct, frozen=True, kw_only=True):
    """How far people agree with each other on a criterion that several of them judged."""

    criterion: str
    n: int
    same: float | None
    alpha: Known

    @property
    def few(self) -> bool:
        """Whether these are too few samples to rely on."""
        return self.n < FEWEST


class People(msgspec.Struct, frozen=True, kw_only=True):
    """What people's reviews say."""

    lines: tuple[str, ...] = ()
    flagged: int = 0
    against: tuple[Against, ...] = ()
    among: tuple[Among, ...] = ()


class _Compared(msgspec.Struct, frozen=True, kw_only=True):
    criterion: str
    n: int
    exact: Known
    kappa: Known
    bias: Known | None = None


class _Agreement(msgspec.Struct, frozen=True, kw_only=True):
    criteria: tuple[_Compared, ...] = ()


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    samples: int = 0
    agreement: _Agreement | None = None


class _Ceiling(msgspec.Struct, frozen=True, kw_only=True):
    n: int
    exact: float | None
    alpha: Known


class _Said(msgspec.Struct, frozen=True, kw_only=True):
    """As much of what ``show --json`` says as a page needs."""

    lines: tuple[str, ...]
    random: _Part = _Part()
    flagged: _Part = _Part()
    people: dict[str, _Ceiling] = {}


def people_of(data: Mapping[str, object]) -> People:
    """Return what ``show --json`` says of people's reviews, for a page."""
    said = msgspec.convert(data, _Said)
    against = (*_against("random part", said.random), *_against("flagged", said.flagged))
    among = tuple(
        Among(criterion=name, n=each.n, same=each.exact, alpha=_rounded(each.alpha))
        for name, each in said.people.items()
    )
    tabled = bool(against or among)
    return People(
        lines=tuple(line for line in said.lines if not (tabled and _TABLED.match(line))),
        flagged=said.flagged.samples,
        against=against,
        among=among,
    )


def _against(part: str, said: _Part) -> Iterator[Against]:
    for each in () if said.agreement is None else said.agreement.criteria:
        yield Against(
            part=part,
            criterion=each.criterion,
            n=each.n,
            same=_rounded(each.exact),
            kappa=_rounded(each.kappa),
            difference=None if each.bias is None else _rounded(each.bias),
        )


def _rounded(known: Known) -> Known:
    """Leave out what rounding made: 2.2e-16 where there is a zero."""
    value, ends = known.value, known.interval
    if ends is not None:
        low, high = round(ends.low, _DECIMALS) + 0.0, round(ends.high, _DECIMALS) + 0.0
        ends = msgspec.structs.replace(ends, low=low, high=high)
    value = None if value is None else round(value, _DECIMALS) + 0.0
    return msgspec.structs.replace(known, value=value, interval=ends)
