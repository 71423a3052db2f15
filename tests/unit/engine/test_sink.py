"""The writer: what it can't store it says, to every waiting caller."""

import asyncio
from collections.abc import Sequence

import pytest

from jurybox.engine.records import ExchangeRow, SampleRow
from jurybox.engine.runner import Writer
from jurybox.errors import IncompleteError


class Full:
    def append(self, samples: Sequence[SampleRow], exchanges: Sequence[ExchangeRow]) -> None:
        raise IncompleteError(f"no room for {len(samples)} and {len(exchanges)}")


def exchange(number: int) -> ExchangeRow:
    return ExchangeRow(
        run_id="r",
        number=number,
        position=0,
        role="judge",
        key="",
        frame="",
        material="{}",
        outcome="{}",
        notes="{}",
    )


@pytest.mark.parametrize("rows", [1, 2000])
def test_trouble_is_told_to_whoever_comes_later_and_nobody_waits_for_ever(rows: int) -> None:
    async def main() -> None:
        writer = Writer(Full())  # type: ignore[arg-type]
        for number in range(rows):
            await writer.add_reply(exchange(number))
        assert writer.failed
        for wait in (writer.room, writer.close):
            with pytest.raises(IncompleteError, match="no room for 0 and 1"):
                await asyncio.wait_for(wait(), 10)

    asyncio.run(main())
