"""The prices of tokens. An unknown price is None, never 0."""

import re
from collections.abc import Mapping
from typing import Annotated

import msgspec

from jurybox.sample import Usage

_MILLION = 1_000_000
_DATE = re.compile(r"-20\d\d-?\d\d-?\d\d$")


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars per million tokens as of ``date``.

    Cached input without its own price costs as much as other input. ``batch`` is the fraction of
    these prices that batches cost; without it, they cost the full price.
    """

    input: float
    output: float
    cached_input: float | None = None
    written_input: float | None = None
    batch: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    date: str = ""


Prices = Mapping[str, Price]


def cost(model: str, usage: Usage, prices: Prices, *, batched: bool = False) -> float | None:
    """Return the cost in US dollars; None if the price or the tokens are unknown.

    A free model costs 0, even if the tokens are unknown.

    ``model`` is looked up by its full name, then without its ``@version``, then without its date,
    so a dated release has the price of its family unless the table lists it. A price for
    ``provider/`` applies to all other models of that provider.
    """
    return cost_at(price_of(model, prices), usage, batched=batched)


def cost_at(price: Price | None, usage: Usage, *, batched: bool = False) -> float | None:
    """Return the cost in US dollars at a price; None if the price or the tokens are unknown."""
    if price is not None and not price.input and not price.output:
        return 0.0
    if price is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    cached = min(usage.cached_tokens or 0, usage.input_tokens)
    written = usage.written_tokens
    written = 0 if written is msgspec.UNSET else min(written, usage.input_tokens - cached)
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


def price_of(model: str, prices: Prices) -> Price | None:
    """Return the price of a model, looked up as described in `cost`."""
    unversioned = model.partition("@")[0]
    provider = f"{model.partition('/')[0]}/"
    for name in (model, unversioned, _DATE.sub("", unversioned), provider):
        if name in prices:
            return prices[name]
    return None
