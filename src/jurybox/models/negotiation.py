"""Sending a request, giving way where the endpoint won't have a part of it."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet

from jurybox.models.http import HttpAnswer, HttpClient
from jurybox.models.model_errors import StatusError
from jurybox.models.parameter_fallback import Accepted, concede, less_of

Payload = dict[str, object]


class Negotiation:
    """What one model at an endpoint takes; learned once, and not tried again."""

    def __init__(
        self,
        client: HttpClient,
        path: str,
        *,
        needed: frozenset[str] = frozenset(),
        within: frozenset[str] = frozenset(),
    ) -> None:
        """Post to ``path``.

        The parameters in ``needed`` are never given up; those in ``within`` stand inside others.
        """
        self._client = client
        self._path = path
        self._needed = needed
        self._within = within
        self._accepted = Accepted()

    @property
    def accepted(self) -> Accepted:
        """What is known to be taken."""
        return self._accepted

    def learn(self, trouble: StatusError, accepted: Accepted, sent: AbstractSet[str]) -> bool:
        """Give way after a refusal of what was sent under ``accepted``; tell whether that helps.

        Many requests of a batch may be refused for different parts of them.
        """
        less = concede(accepted, trouble, sent - self._needed)
        if less is None:
            return False
        self._accepted = less_of(self._accepted, less)
        return True

    async def post(self, build: Callable[[Accepted], Payload]) -> tuple[HttpAnswer, Payload]:
        """Send what ``build`` makes of what is accepted; return the answer and what went out."""
        accepted = self._accepted
        while True:
            payload = build(accepted)
            try:
                answer = await self._client.post(self._path, payload)
            except StatusError as trouble:
                sent = payload.keys() | (self._within - accepted.without)
                less = concede(accepted, trouble, sent - self._needed)
                if less is None:
                    raise
                accepted = less
            else:
                self._accepted = accepted
                return answer, payload
