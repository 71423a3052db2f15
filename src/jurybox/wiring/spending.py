"""What an evaluation costs, added up while it goes on."""

from jurybox.judging.exchange import Failure, ModelRequest, Outcome
from jurybox.models.prices import cost, load_prices
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
