"""Drives no tool: what it takes to post the same requests and to read the answers' bytes.

`client` is the HTTP client that jurybox uses, at its own concurrency and with nothing around it;
`socket` is the bytes of one request, made beforehand, over plain sockets. Nothing is judged, kept
or looked at, so no tool can take less.
"""

import asyncio
import json
import select
import socket
from urllib.parse import urlsplit

from material import QUESTION, Done, Job, Peer, nothing

MODEL = "floor-2025-01-01"
PATH = "/chat/completions"


def body_of(job: Job) -> bytes:
    """Return the request: one that was recorded, or else a small one."""
    if job.body is not None:
        return job.body.read_bytes()
    message = {"role": "user", "content": f"{QUESTION}\n\n{next(job.samples()).response}"}
    return json.dumps({"model": MODEL, "messages": [message], "temperature": 0}).encode()


def judge(job: Job) -> Done:
    """Post as many requests as there are samples."""
    if job.variant == "socket":
        return Done(judged=over_sockets(job, body_of(job)), notes="nothing is judged")
    return Done(judged=asyncio.run(over_client(job, body_of(job))), notes="nothing is judged")


async def over_client(job: Job, body: bytes) -> int:
    """Post by the client of jurybox, so many at once."""
    import msgspec

    from jurybox.models.http import HttpClient

    payload = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    # The client encodes the text of every request, and a piece that is bytes already would be free.
    told = {**payload, "messages": msgspec.json.decode(payload["messages"])}
    client = HttpClient(job.base_url, {"Authorization": "Bearer none"})
    numbers = iter(range(job.count))
    got = 0

    async def work() -> None:
        nonlocal got
        for _ in numbers:
            answer = await client.post(PATH, told)
            got += bool(answer.body)

    await asyncio.gather(*(work() for _ in range(job.concurrency)))
    await client.aclose()
    return got


def over_sockets(job: Job, body: bytes) -> int:
    """Post by plain sockets, so many at once."""
    parts = urlsplit(job.base_url)
    head = (
        f"POST {parts.path}{PATH} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    request = head.encode() + body
    poll = select.epoll()
    open_ones: dict[int, socket.socket] = {}
    for _ in range(min(job.concurrency, job.count)):
        sock = socket.create_connection((parts.hostname, parts.port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        open_ones[sock.fileno()] = sock
        poll.register(sock.fileno(), select.EPOLLIN)
        sock.sendall(request)
    sent, got = len(open_ones), 0
    while got < job.count:
        for number, _ in poll.poll():
            sock = open_ones[number]
            received = sock.recv(1 << 16)
            while not whole(received):
                received += sock.recv(1 << 16)
            got += 1
            if sent < job.count:
                sock.sendall(request)
                sent += 1
    for sock in open_ones.values():
        sock.close()
    return got


def whole(answer: bytes) -> bool:
    """Return whether an answer is complete."""
    head, end, body = answer.partition(b"\r\n\r\n")
    return bool(end) and len(body) >= int(head.rpartition(b"Content-Length: ")[2].split(b"\r")[0])


PEER = Peer(
    package="jurybox",
    install=(),
    replies={MODEL: "5"},
    judge=judge,
    survey=nothing,
    starts="import asyncio",
    variants=("client", "socket"),
)
