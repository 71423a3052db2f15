"""What is stored of a finished sample and of a finished run, read again."""

from typing import Any, Final

import msgspec

from jurybox.scoring.sample_result import SampleResult
from jurybox.scoring.summary import Conclusion


class StoredOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored of a finished run beside its samples."""

    conclusion: Conclusion
    cost: dict[str, Any]
    elapsed_s: float | None = None


_RESULT: Final = msgspec.json.Decoder(SampleResult)


def read_result(text: str) -> SampleResult:
    """Read the result of a sample.

    Raises:
        msgspec.DecodeError: it isn't one.

    """
    return _RESULT.decode(text)
