"""What is asked for one criterion, and what follows from the answers."""

from collections.abc import Callable, Mapping

import msgspec

from jurybox.judging.evidence.probes import Probe

Answers = Mapping[Probe, float]


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What was found for one criterion of one response.

    ``findings`` are sentences that quote what was asked and how probable a yes was. ``share`` is
    how far up the scale they put the response, from 0 to 1; ``strength``, in log-odds, is what
    two responses are compared by.
    """

    findings: tuple[str, ...]
    share: float
    strength: float

    def told(self) -> str:
        """Return the findings as a reasoning."""
        return " ".join(self.findings)


class Inquiry(msgspec.Struct, frozen=True, kw_only=True):
    """The questions for one criterion, and how their answers become evidence."""

    probes: tuple[Probe, ...]
    conclude: Callable[[Answers], Evidence]
