"""What a verdict on a pair of answers is."""

from collections.abc import Hashable
from typing import Literal

import msgspec

Outcome = Literal["a", "b", "tie"]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Which of two models' answers was preferred; ``item`` says to what they answered."""

    a: str
    b: str
    winner: Outcome
    item: Hashable = None
