"""Which samples a page or a program asks for: the same words in an address for both."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast
from urllib.parse import urlencode

import msgspec

from jurybox.running.finding import LONGEST_SEARCH, MOST, Groups, SampleQuery
from jurybox.scoring.facets import FLAGS
from jurybox.web.parameters import ANY_TEXT, Pairs, Parameter, read_query
from jurybox.web.rendering import harmless

_LONGEST: Final = 300
_DIGEST: Final = "sha256:"
_NAME: Final = {"type": "string", "minLength": 1, "maxLength": _LONGEST, "pattern": ANY_TEXT}
_FARTHEST: Final = 1_000_000_000

FILTERS: Final = (
    Parameter(
        name="search",
        schema={"type": "string", "maxLength": LONGEST_SEARCH, "pattern": ANY_TEXT},
        about="A text in the id, task, context, reference, messages or responses; case is ignored.",
    ),
    Parameter(
        name="flag",
        schema={"type": "string", "enum": list(FLAGS)},
        about="A flag that the samples have; given several times, all of them.",
        many=True,
    ),
    Parameter(name="scenario", schema=_NAME, about="The scenario of the samples."),
    Parameter(name="demographic", schema=_NAME, about="Whom the samples speak for."),
    Parameter(
        name="winner",
        schema={"type": "string", "enum": ["A", "B", "tie"]},
        about="Which of two responses won.",
    ),
    Parameter(
        name="figure",
        schema=_NAME,
        about="The figure that `low` and `high` are about; the overall score where none is named.",
    ),
    Parameter(name="low", schema={"type": "number"}, about="The figure's lowest value."),
    Parameter(name="high", schema={"type": "number"}, about="The figure's highest value."),
    Parameter(
        name="sort",
        schema={
            "type": "string",
            "pattern": r"^(number|urgency|id|figure:[^\u0000]{1,200})$",
            "default": "number",
        },
        about="By what the samples are sorted: `number`, `urgency`, `id` or `figure:NAME`.",
    ),
    Parameter(
        name="descending",
        schema={"type": "boolean", "default": False},
        about="Whether the highest come first; who has no such figure comes last either way.",
    ),
    Parameter(
        name="queued",
        schema={"type": "boolean", "default": False},
        about="Only samples that somebody ought to review.",
    ),
)
OFFSET: Final = Parameter(
    name="offset",
    schema={"type": "integer", "minimum": 0, "maximum": _FARTHEST, "default": 0},
    about="How many are left out at the beginning.",
)
LIMIT: Final = Parameter(
    name="limit",
    schema={"type": "integer", "minimum": 1, "maximum": MOST, "default": 50},
    about="How many are returned at most.",
)
PAGE: Final = Parameter(
    name="page",
    schema={"type": "integer", "minimum": 1, "maximum": 10_000_000, "default": 1},
    about="The number of the page.",
)
AT: Final = Parameter(
    name="at",
    schema={"type": "integer", "minimum": 0, "maximum": _FARTHEST},
    about="The sample's place among those that were asked for.",
)
_DEFAULTS: Final[Mapping[str, Any]] = {"sort": "number", "descending": False, "queued": False}


class Filter(msgspec.Struct, frozen=True):
    """What a page of samples was asked for; it can be written into an address again."""

    values: dict[str, Any]

    def address(self, **changes: Any) -> str:  # noqa: ANN401 - whatever a parameter may be
        """Return the part of an address behind the path; None takes a value out."""
        pairs: list[tuple[str, str]] = []
        for name, value in {**self.values, "page": None, "at": None, **changes}.items():
            if value is None or value in ("", ()) or _DEFAULTS.get(name) == value:
                continue
            many = cast("tuple[object, ...]", value if isinstance(value, tuple) else (value,))
            pairs += [(name, _text(each)) for each in many]
        return f"?{urlencode(pairs, errors='replace')}" if pairs else ""

    def chosen(self, groups: Callable[[], Groups]) -> "Filter":
        """Return it with the groups that forms can only choose by their digests."""
        values = dict(self.values)
        for name, all_of_them in (("scenario", "scenarios"), ("demographic", "demographics")):
            if str(values.get(name, "")).startswith(_DIGEST):
                for each in getattr(groups(), all_of_them):
                    if option(each) == values[name]:
                        values[name] = each
        return Filter(values)

    def query(self, overall: str, **more: int) -> SampleQuery:
        """Return the question to the store; a range without a figure is of the overall score."""
        values: dict[str, Any] = {**self.values, **more}
        for name in ("page", "at"):
            values.pop(name, None)
        values["flags"] = values.pop("flag", ())
        if "figure" not in values and ("low" in values or "high" in values):
            values["figure"] = overall
        return SampleQuery(**values)


def read_filter(pairs: Pairs, more: Sequence[Parameter] = (), *, form: bool) -> Filter:
    """Read what is asked for.

    Raises:
        Refusal: a value can't be one.

    """
    return Filter(read_query((*FILTERS, *more), pairs, form=form))


def option(name: str) -> str:
    """Return what a form sends for a group: its name, or a digest of one that it would change."""
    if harmless(name) == name and "\n" not in name and "\r" not in name and len(name) <= _LONGEST:
        return name
    return _DIGEST + hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
