"""From names to sockets: what is looked up, what is tried, and in which order."""

import asyncio
import socket
from collections.abc import Callable

import pytest

from jurybox.models.wire import reaching
from jurybox.models.wire.faults import Unreachable
from jurybox.models.wire.reaching import Info, Names, reach

V4: Info = (socket.AF_INET, ("127.0.0.1", 1))
V4_TOO: Info = (socket.AF_INET, ("127.0.0.2", 1))
V6: Info = (socket.AF_INET6, ("::1", 1, 0, 0))
Found = list[tuple[int, int, int, str, tuple[object, ...]]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every name that was looked up."""
    names: list[str] = []
    really = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, **kinds: int) -> Found:
        names.append(host)
        return really(host, port, **kinds)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return names


def with_server(visit: Callable[[int], "asyncio.Future[None] | object"]) -> None:
    async def main() -> None:
        writers: list[asyncio.StreamWriter] = []
        server = await asyncio.start_server(
            lambda _, writer: writers.append(writer), "127.0.0.1", 0
        )
        await visit(server.sockets[0].getsockname()[1])  # type: ignore[misc]
        # A server that is closed while it accepts somebody leaves that connection open.
        seen = -1
        while len(writers) > seen:
            seen = len(writers)
            await asyncio.sleep(0.1)
        server.close()
        for writer in writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)

    asyncio.run(main())


def test_500_connections_are_one_question(asked: list[str]) -> None:
    async def visit(port: int) -> None:
        names = Names()
        for made in await asyncio.gather(*(reach(names, "localhost", port) for _ in range(500))):
            made.close()
        (await reach(names, "localhost", port)).close()

    with_server(visit)
    assert asked == ["localhost"]


def test_a_name_is_asked_for_again_after_a_while(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def visit(port: int) -> None:
        names = Names()
        (await reach(names, "localhost", port)).close()
        monkeypatch.setattr(reaching, "KEPT", -1)
        (await reach(names, "localhost", port)).close()

    with_server(visit)
    assert asked == ["localhost"] * 2


def test_a_name_that_leads_nowhere_is_asked_for_again(asked: list[str]) -> None:
    async def main() -> None:
        names = Names()
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            for _ in range(2):
                with pytest.raises(Unreachable, match="connection refused"):
                    await reach(names, "localhost", closed.getsockname()[1])

    asyncio.run(main())
    assert asked == ["localhost"] * 2


def test_an_address_is_not_looked_up(asked: list[str]) -> None:
    async def visit(port: int) -> None:
        (await reach(Names(), "127.0.0.1", port)).close()

    with_server(visit)
    assert asked == []


def test_a_name_that_is_unknown_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(Unreachable, match=r"^name or service not known$"):
        asyncio.run(reach(Names(), "nowhere", 1))


def test_a_name_that_is_none_says_so() -> None:
    with pytest.raises(Unreachable, match="no host has such a name"):
        asyncio.run(reach(Names(), "ä" * 70, 1))


def test_who_waits_for_a_name_may_give_up_and_the_others_get_it(asked: list[str]) -> None:
    async def visit(port: int) -> None:
        names = Names()
        tasks = [asyncio.create_task(reach(names, "localhost", port)) for _ in range(2)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        (await tasks[1]).close()
        assert tasks[0].cancelled()

    with_server(visit)
    assert asked == ["localhost"]


def test_families_take_turns() -> None:
    assert reaching._interleaved([V6, V4, V4_TOO]) == [V6, V4, V4_TOO]
    assert reaching._interleaved([V4, V4_TOO, V6]) == [V4, V6, V4_TOO]


# ---- several addresses


def race(monkeypatch: pytest.MonkeyPatch, outcomes: dict[Info, object]) -> tuple[Info, list[Info]]:
    """Try all addresses; each hangs, fails or stands. Return which one won and which were tried."""
    tried: list[Info] = []
    made: dict[int, Info] = {}

    async def connect(info: Info) -> socket.socket:
        tried.append(info)
        outcome = outcomes[info]
        if isinstance(outcome, OSError):
            raise outcome
        if outcome == "hangs":
            await asyncio.Event().wait()
        stands = socket.socket()
        made[id(stands)] = info
        return stands

    async def main() -> Info:
        before = asyncio.all_tasks()
        try:
            won = await reaching._race(list(outcomes))
            won.close()
        finally:
            assert asyncio.all_tasks() == before
        return made[id(won)]

    monkeypatch.setattr(reaching, "_connect", connect)
    monkeypatch.setattr(reaching, "_HEAD_START", 0.05)
    return asyncio.run(main()), tried


REFUSED = ConnectionRefusedError(111, "refused")


def test_the_first_address_wins_if_it_stands_and_no_other_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert race(monkeypatch, {V6: "stands", V4: "stands"}) == (V6, [V6])


@pytest.mark.parametrize("outcome", ["hangs", REFUSED])
def test_the_next_address_is_tried_where_the_first_leads_nowhere(
    monkeypatch: pytest.MonkeyPatch, outcome: object
) -> None:
    assert race(monkeypatch, {V6: outcome, V4: "stands"}) == (V4, [V6, V4])


def test_where_none_stands_the_first_error_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConnectionRefusedError):
        race(monkeypatch, {V6: REFUSED, V4: OSError(101, "unreachable")})


# ---- giving up while the others are withdrawn


def left_open(monkeypatch: pytest.MonkeyPatch, *, cancels: int) -> int:
    """Cancel a race that is won, so often; return how many of the sockets stay open."""
    made: list[socket.socket] = []
    given_up, let_go = asyncio.Event(), asyncio.Event()

    def stands() -> socket.socket:
        made.append(socket.socket())
        return made[-1]

    async def connect(info: Info) -> socket.socket:
        if info is V6:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                # It stood in the very moment in which it was given up.
                given_up.set()
                await let_go.wait()
        return stands()

    async def main() -> None:
        racing = asyncio.create_task(reaching._race([V6, V4]))
        await given_up.wait()
        for _ in range(cancels):
            racing.cancel()
        # The race hears of it before the other attempt comes to its end.
        await asyncio.sleep(0)
        let_go.set()
        await asyncio.wait({racing})
        assert racing.cancelled() == (cancels > 0)
        await asyncio.sleep(0.1)

    monkeypatch.setattr(reaching, "_connect", connect)
    monkeypatch.setattr(reaching, "_HEAD_START", 0.01)
    asyncio.run(main())
    assert len(made) == 2
    is_open = [each for each in made if each.fileno() >= 0]
    for each in is_open:
        each.close()
    return len(is_open)


def test_of_a_race_one_socket_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    assert left_open(monkeypatch, cancels=0) == 1


def test_of_a_race_that_is_given_up_when_it_is_won_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert left_open(monkeypatch, cancels=1) == 0
