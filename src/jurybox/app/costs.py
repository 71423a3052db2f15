"""What models cost."""

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from jurybox.judging.exchange import Failure, ModelRequest, Outcome
from jurybox.models.prices import Prices, cost, load_prices
from jurybox.scoring.sample_result import ModelUse
from jurybox.settings import Settings


class Spending:
    """Adds up the price of every exchange; one of unknown price makes the sum unknown."""

    def __init__(self, settings: Settings) -> None:
        self._prices = load_prices(settings.prices)
        self._dollars: float | None = 0.0

    def __call__(self, request: ModelRequest, outcome: Outcome) -> None:
        """Add one exchange."""
        if isinstance(outcome, Failure):
            return
        price = cost(request.model, outcome.usage, self._prices)
        if price is None or self._dollars is None:
            self._dollars = None
        else:
            self._dollars += price

    @property
    def dollars(self) -> float | None:
        """The sum in US dollars, or None where it isn't known."""
        return self._dollars


def run_cost(uses: Iterable[ModelUse], prices: Prices, *, batched: bool = False) -> dict[str, Any]:
    """Return what a run cost, by model; cached replies were paid for by another run.

    Where judges were asked in batches, all of them were; the system under test never is.
    """
    rows = [
        (_use_as_data(use, batched=mine), _dollars(use, prices, batched=mine))
        for use in uses
        for mine in [batched and use.role == "judge"]
    ]
    known = [dollars for _, dollars in rows if dollars is not None]
    whole = len(known) == len(rows)
    return {
        "dollars": round(math.fsum(known), 9) if whole else None,
        "models": [{**use, "dollars": dollars} for use, dollars in rows],
    }


def _use_as_data(use: ModelUse, *, batched: bool) -> dict[str, Any]:
    return {
        "model": use.model,
        "role": use.role,
        "calls": use.calls,
        "cached": use.cached,
        "failed": use.failed,
        "batched": batched,
        **msgspec.to_builtins(use.usage),
    }


def _dollars(use: ModelUse, prices: Prices, *, batched: bool) -> float | None:
    """Return the price of a model's use; unknown where a reply didn't say what it used."""
    if use.calls == use.cached + use.failed:
        return 0.0
    return None if use.unknown else cost(use.model, use.usage, prices, batched=batched)
