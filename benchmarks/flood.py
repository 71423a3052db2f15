"""The server under a flood: slow connections from another address, and many readers at once.

Every row is what one reader with the token sees meanwhile: answers, the slowest and the median.
"""

import argparse
import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

PROGRAM = str(Path(sys.executable).with_name("jurybox"))
TOKEN = "a-token-for-the-flood-0123456789"  # noqa: S105 - of nobody
HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
ASKED = (
    f"GET /api/runs HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
    "Connection: close\r\n\r\n"
).encode()


@contextlib.asynccontextmanager
async def served(store: str) -> AsyncIterator[int]:
    """Serve a store on a free port until the end."""
    environment = {**os.environ, "JURYBOX_TOKEN": TOKEN}
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        *("serve", "--port", "0", "--store", store),
        stderr=subprocess.PIPE,
        env=environment,
    )
    assert process.stderr is not None  # noqa: S101 - it was asked for
    line = (await process.stderr.readline()).decode()
    try:
        yield int(line.partition("127.0.0.1:")[2].partition("/")[0])
    finally:
        process.terminate()
        await process.wait()


async def read(port: int, source: str = "127.0.0.1") -> tuple[bool, float]:
    """Ask for the runs; return whether they came, and how long it took."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(60):
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, local_addr=(source, 0)
            )
            writer.write(ASKED)
            answer = await reader.read()
            writer.close()
    except (OSError, TimeoutError):
        return False, time.monotonic() - began
    return b" 200 " in answer[:20], time.monotonic() - began


async def hold(port: int, stop: asyncio.Event) -> None:
    """Open a connection from elsewhere, send half a request, and open another when it is closed."""
    while not stop.is_set():
        try:
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", port, local_addr=("127.0.0.2", 0)
            )
            writer.write(HALF)
            closed = asyncio.ensure_future(reader.read())
            stopped = asyncio.ensure_future(stop.wait())
            await asyncio.wait([closed, stopped], return_when=asyncio.FIRST_COMPLETED)
            for each in (closed, stopped):
                each.cancel()
            writer.close()
        except OSError:
            await asyncio.sleep(0.05)


def row(name: str, answers: list[tuple[bool, float]]) -> str:
    """Return a row of the table."""
    took = [seconds for _, seconds in answers]
    lost = sum(not fine for fine, _ in answers)
    median, slowest = statistics.median(took), max(took)
    return f"{name:36}{len(answers):>6} reads, {lost} lost{median:8.2f} s{slowest:8.2f} s at most"


async def flooded(store: str, slow: int, readers: int, seconds: float) -> list[str]:
    """Return the rows of the table."""
    rows: list[str] = []
    async with served(store) as port:
        rows.append(row("alone", [await read(port) for _ in range(20)]))
        stop = asyncio.Event()
        held = [asyncio.ensure_future(hold(port, stop)) for _ in range(slow)]
        ends = time.monotonic() + seconds
        answers: list[tuple[bool, float]] = []
        while time.monotonic() < ends:
            answers.append(await read(port))
            await asyncio.sleep(0.1)
        rows.append(row(f"{slow} slow connections from elsewhere", answers))
        stop.set()
        await asyncio.gather(*held, return_exceptions=True)
        together = await asyncio.gather(*(read(port) for _ in range(readers)))
        rows.append(row(f"{readers} readers at once", list(together)))
    return rows


def main() -> int:
    """Print the table; return 1 if a reader got no answer."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("store")
    parser.add_argument("--slow", type=int, default=400)
    parser.add_argument("--readers", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=15)
    options = parser.parse_args()
    rows = asyncio.run(flooded(options.store, options.slow, options.readers, options.seconds))
    print("\n".join(rows))
    return int(any(" 0 lost" not in each for each in rows))


if __name__ == "__main__":
    sys.exit(main())
