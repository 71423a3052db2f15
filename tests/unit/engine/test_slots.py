"""Places at an endpoint: first come, first served, and none is ever lost."""

import asyncio
import random

import pytest

from jurybox.engine.limiter import ResizableSemaphore


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_no_more_than_there_are_places() -> None:
    async def main() -> int:
        slots = ResizableSemaphore(lambda: 3)
        most = 0

        async def visit() -> None:
            nonlocal most
            await slots.acquire()
            most = max(most, slots.in_use)
            await asyncio.sleep(0)
            slots.release()

        await asyncio.gather(*(visit() for _ in range(50)))
        assert slots.in_use == 0
        assert not slots.waiting
        return most

    assert asyncio.run(main()) == 3


def test_places_are_given_in_the_order_of_asking() -> None:
    async def main() -> list[int]:
        slots = ResizableSemaphore(lambda: 1)
        order: list[int] = []

        async def visit(number: int) -> None:
            await slots.acquire()
            order.append(number)
            await asyncio.sleep(0)
            slots.release()

        await asyncio.gather(*(visit(number) for number in range(10)))
        return order

    assert asyncio.run(main()) == list(range(10))


def test_who_goes_first_waits_for_those_before_him_who_do_too() -> None:
    async def main() -> list[int]:
        slots = ResizableSemaphore(lambda: 1)
        order: list[int] = []

        async def visit(number: int) -> None:
            await slots.acquire(first=number % 3 == 0)
            order.append(number)
            await asyncio.sleep(0)
            slots.release()

        await slots.acquire()
        visits = [asyncio.create_task(visit(number)) for number in range(9)]
        await settle()
        slots.release()
        await asyncio.gather(*visits)
        return order

    assert asyncio.run(main()) == [0, 3, 6, 1, 2, 4, 5, 7, 8]


def test_more_places_let_in_more_and_fewer_send_nobody_away() -> None:
    async def main() -> None:
        size = 1
        slots = ResizableSemaphore(lambda: size)
        tasks = [asyncio.create_task(slots.acquire()) for _ in range(5)]
        await settle()
        assert slots.in_use == 1
        size = 3
        slots.release()
        await settle()
        assert slots.in_use == 3
        size = 1
        slots.release()
        await settle()
        assert (slots.in_use, slots.waiting) == (2, True)
        slots.release()
        slots.release()
        await asyncio.gather(*tasks)

    asyncio.run(main())


@pytest.mark.parametrize("seed", range(20))
def test_no_place_is_lost_whoever_is_cancelled_when(seed: int) -> None:
    async def main() -> None:
        chance = random.Random(seed)  # noqa: S311 - nothing secret
        slots = ResizableSemaphore(lambda: chance.randint(1, 4))

        async def visit() -> None:
            await slots.acquire(first=chance.random() < 0.5)
            try:
                await asyncio.sleep(0)
            finally:
                slots.release()

        tasks = [asyncio.create_task(visit()) for _ in range(60)]
        for task in chance.sample(tasks, 30):
            if chance.random() < 0.5:
                await asyncio.sleep(0)
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (slots.in_use, slots.waiting) == (0, False)

    asyncio.run(main())
