"""What tokens cost: a table as data, and one function. An unknown price is unknown, never 0."""

import re
from collections.abc import Mapping
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Annotated

import msgspec

from jurybox.errors import InputError
from jurybox.sample import Usage

_MILLION = 1_000_000
_DATE = re.compile(r"-20\d\d-?\d\d-?\d\d$")


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars for a million tokens; ``date`` is as of when.

    Without a price of its own, input that is read from a cache or written into one costs as much as
    any other. ``batch`` is the share of
    all these that is paid for what is asked in a batch; without one, it is the whole.
    """

    input: float
    output: float
    cached_input: float | None = None
    written_input: float | None = None
    batch: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    date: str = ""


Prices = Mapping[str, Price]


def cost(model: str, usage: Usage, prices: Prices, *, batched: bool = False) -> float | None:
    """Return US dollars, or None where the price or the tokens aren't known.

    ``model`` is looked up as it is, then without its ``@version``, then without its date: a dated
    release has the price of its family unless the table knows better.
    """
    price = _price(model, prices)
    if price is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    told = usage.written_tokens
    written = 0 if told is msgspec.UNSET else min(told, usage.input_tokens - cached)
    cached_price = price.input if price.cached_input is None else price.cached_input
    written_price = price.input if price.written_input is None else price.written_input
    total = (
        (usage.input_tokens - cached - written) * price.input
        + cached * cached_price
        + written * written_price
        + usage.output_tokens * price.output
    )
    share = price.batch if batched and price.batch is not None else 1.0
    return total * share / _MILLION


def _price(model: str, prices: Prices) -> Price | None:
    unversioned = model.partition("@")[0]
    for name in (model, unversioned, _DATE.sub("", unversioned)):
        if name in prices:
            return prices[name]
    return None


def load_prices(own: str | PathLike[str] | None = None) -> Prices:
    """Return the bundled table, with the entries of your own file in place of its own.

    Raises:
        InputError: your file can't be read.

    """
    bundled = files("jurybox.models").joinpath("prices.json").read_bytes()
    prices = msgspec.json.decode(bundled, type=dict[str, Price])
    return prices if own is None else {**prices, **_read(own)}


def _read(file: str | PathLike[str]) -> Prices:
    hint = (
        'write `{"provider/name": {"input": 1.0, "output": 2.0}}`, in US dollars a million tokens'
    )
    try:
        return msgspec.json.decode(Path(file).read_bytes(), type=dict[str, Price])
    except OSError as error:
        problem = f"can't be read ({error.strerror})"
        raise InputError(problem, "check the path", str(file)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"that is no table of prices ({error})", hint, str(file)) from None
