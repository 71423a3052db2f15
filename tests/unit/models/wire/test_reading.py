"""Answers read from bytes that are cut anywhere."""

import gzip
import itertools
import zlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.models.wire import reading
from jurybox.models.wire.faults import BrokenOff, Cut, NotHttp, TooLarge, WireFault
from jurybox.models.wire.reading import LARGEST_HEAD, AnswerReader

LARGEST = 100_000
OK = b"HTTP/1.1 200 OK\r\n"
GOOD = OK + b"Content-Length: 4\r\n\r\nfine"


class Read(msgspec.Struct, frozen=True):
    status: int
    headers: dict[str, str]
    body: bytes
    keeps_alive: bool


def read(*pieces: bytes, closed: bool = False) -> Read:
    reader = AnswerReader(LARGEST)
    for piece in pieces:
        reader.feed(piece)
    if closed:
        reader.finish()
    assert reader.is_whole
    return Read(reader.status, reader.headers, reader.take(), reader.keeps_alive)


def without_head(data: bytes) -> bytes:
    packing = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packing.compress(data) + packing.flush()


PACKINGS: dict[str, Any] = {
    "identity": bytes,
    "gzip": gzip.compress,
    "X-GZip": gzip.compress,
    "deflate": zlib.compress,
    "Deflate": without_head,
}


@st.composite
def chunked(draw: st.DrawFn, body: bytes) -> bytes:
    said = b""
    while body:
        size = draw(st.integers(1, len(body)))
        extension = draw(st.sampled_from([b"", b";a=b", b"  "]))
        said += b"%x%b\r\n%b\r\n" % (size, extension, body[:size])
        body = body[size:]
    return said + b"0\r\n" + draw(st.sampled_from([b"", b"Trailer: x\r\n"])) + b"\r\n"


@st.composite
def answers(draw: st.DrawFn) -> tuple[bytes, Read]:
    """Draw the bytes of an answer that ends by itself, and what is to be read from it."""
    status = draw(st.sampled_from([200, 201, 299, 301, 404, 429, 500, 529]))
    body = draw(st.binary(max_size=3000))
    name, pack = draw(st.sampled_from(list(PACKINGS.items())))
    packed = pack(body)
    lines = {"x-one": draw(st.text("aä b:,", max_size=9)).strip(), "content-encoding": name}
    keeps = draw(st.booleans())
    if not keeps:
        lines["connection"] = "close"
    if draw(st.booleans()):
        lines["content-length"] = str(len(packed))
    else:
        lines["transfer-encoding"] = "chunked"
        packed = draw(chunked(packed))
    head = "".join(f"{key.title()}: {value}\r\n" for key, value in lines.items())
    interim = draw(
        st.sampled_from(
            [b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"]
        )
    )
    said = interim + f"HTTP/1.1 {status} Whatever\r\n{head}\r\n".encode() + packed
    return said, Read(status, lines, body, keeps)


@given(answer=answers(), cuts=st.lists(st.integers(0, 4000)))
def test_an_answer_is_the_same_however_it_is_cut(
    answer: tuple[bytes, Read], cuts: list[int]
) -> None:
    said, expected = answer
    ends = sorted({0, len(said), *(cut for cut in cuts if cut < len(said))})
    assert read(*(said[begin:end] for begin, end in itertools.pairwise(ends))) == expected


@given(answer=answers())
def test_an_answer_is_the_same_byte_by_byte(answer: tuple[bytes, Read]) -> None:
    said, expected = answer
    assert read(*(bytes([byte]) for byte in said)) == expected


@given(answer=answers(), size=st.integers(0, 5000))
def test_half_an_answer_is_never_taken_for_a_whole_one(
    answer: tuple[bytes, Read], size: int
) -> None:
    said, _ = answer
    reader = AnswerReader(LARGEST)
    reader.feed(said[: min(size, len(said) - 1)])
    with pytest.raises((Cut, BrokenOff)):
        reader.finish()


@given(pieces=st.lists(st.binary(max_size=200)), start=st.sampled_from([b"", OK, GOOD[:-2], GOOD]))
def test_no_bytes_do_anything_but_end_or_be_refused(pieces: list[bytes], start: bytes) -> None:
    reader = AnswerReader(LARGEST)
    try:
        for piece in (start, *pieces):
            reader.feed(piece)
        reader.finish()
    except WireFault:
        return
    assert reader.is_whole


# ---- where a body ends


def test_without_a_length_the_end_of_the_connection_is_that_of_the_body() -> None:
    assert read(OK + b"\r\nfi", b"ne", closed=True).body == b"fine"


def test_a_connection_can_not_be_used_after_it_ended() -> None:
    assert not read(OK + b"\r\n", closed=True).keeps_alive


@pytest.mark.parametrize(
    ("said", "keeps"),
    [
        (GOOD, True),
        (GOOD.replace(b"1.1", b"1.0"), False),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", True),
        # Servers announce what else they speak.
        (GOOD.replace(b"\r\n\r\n", b"\r\nUpgrade: h2\r\nConnection: Upgrade\r\n\r\n"), True),
    ],
)
def test_a_connection_is_kept_where_the_answer_says_so(said: bytes, keeps: bool) -> None:  # noqa: FBT001
    assert read(said).keeps_alive is keeps


@pytest.mark.parametrize("more", [b"x", b"\x00", GOOD, GOOD[:9], b"H"])
def test_what_follows_an_answer_spoils_the_connection_and_not_the_answer(more: bytes) -> None:
    found = read(GOOD + more)
    assert (found.status, found.body, found.keeps_alive) == (200, b"fine", False)


def test_one_reader_reads_one_answer_after_the_other() -> None:
    reader = AnswerReader(LARGEST)
    for text in (b"one", b"two"):
        reader.begin()
        reader.feed(OK + b"X-Text: %b\r\nContent-Length: 3\r\n\r\n%b" % (text, text))
        assert reader.is_whole
        assert reader.headers == {"x-text": text.decode(), "content-length": "3"}
        assert reader.take() == text


# ---- what is no answer


@pytest.mark.parametrize(
    "said",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"<html>hello</html>",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET / HTTP/1.1\r\n\r\n",
        b"HTTP/1.1 999999 OK\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nNo colon\r\n\r\n",
        OK + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nfine",
        OK + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\nfine",
        OK + b"Content-Length: -4\r\n\r\nfine",
        OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n\x81",
        b"HTTP/1.1 101 Switching\r\n\r\n",
    ],
)
def test_what_is_no_answer_is_refused(said: bytes) -> None:
    with pytest.raises(NotHttp):
        read(said)


@pytest.mark.parametrize("line", [b"X: y\r\n", b"X: " + b"y" * 1000, b"HTTP/1.1 100 C\r\n\r\n"])
def test_a_head_without_end_is_refused(line: bytes) -> None:
    begin = b"" if line.startswith(b"HTTP") else OK
    with pytest.raises(NotHttp, match="its head is too large"):
        read(begin, *[line] * (2 * LARGEST_HEAD // len(line)))


CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n"


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (b"0\r\nX: ", b"y" * 1000),
        (b"0\r\n", b"X: y\r\n"),
        (b"1;", b"y" * 1000),
        (b"0", b"0" * 1000),
    ],
)
def test_what_comes_around_a_body_is_bounded_too(begin: bytes, more: bytes) -> None:
    with pytest.raises(NotHttp, match="too much comes around its body"):
        read(CHUNKED + begin, *[more] * (2 * LARGEST_HEAD // len(more)))


def test_a_body_in_small_chunks_may_take_more_than_a_head_around_them() -> None:
    count = LARGEST_HEAD // 2
    chunk = b"1;extension\r\na\r\n"
    trailer = b"0\r\nX: %b\r\n\r\n" % (b"y" * 30_000)
    assert read(CHUNKED, *[chunk * 64] * (count // 64), trailer).body == b"a" * (count + 1)


def test_names_that_a_server_makes_up_are_not_kept_for_ever() -> None:
    for begin in range(0, 5000, 500):
        head = b"".join(b"X-%d: y\r\n" % number for number in range(begin, begin + 500))
        assert len(read(OK + head + b"Content-Length: 0\r\n\r\n").headers) == 501
    assert len(reading._names) <= reading._MOST_NAMES


def test_a_header_that_is_no_text_is_still_one() -> None:
    found = read(OK + b"X: \xff\xc3\xa4\r\nContent-Length: 0\r\n\r\n")
    assert found.headers["x"] == "\ufffdä"


# ---- sizes


def framed(body: bytes, encoding: str) -> bytes:
    return OK + b"Content-Encoding: %b\r\nContent-Length: %d\r\n\r\n%b" % (
        encoding.encode(),
        len(body),
        body,
    )


@pytest.mark.parametrize("encoding", PACKINGS)
def test_a_body_may_be_as_large_as_permitted_and_no_larger(encoding: str) -> None:
    body = bytes(LARGEST)
    assert read(framed(PACKINGS[encoding](body), encoding)).body == body
    with pytest.raises(TooLarge):
        read(framed(PACKINGS[encoding](body + b"x"), encoding))


def test_a_bomb_is_stopped_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    made = zlib.decompressobj

    class Watched:
        def __init__(self, window: int) -> None:
            self._inner = made(window)

        def decompress(self, piece: bytes, most: int) -> bytes:
            plain = self._inner.decompress(piece, most)
            sizes.append(len(plain))
            return plain

        def __getattr__(self, name: str) -> object:
            return getattr(self._inner, name)

    monkeypatch.setattr(zlib, "decompressobj", Watched)
    with pytest.raises(TooLarge):
        read(framed(gzip.compress(bytes(50_000_000)), "gzip"))
    assert sum(sizes) == LARGEST + 1


def test_empty_blocks_without_end_are_too_large() -> None:
    empty = b"\x00\x00\x00\xff\xff"
    with pytest.raises(TooLarge):
        read(framed(b"\x78\x9c" + empty * LARGEST, "deflate"))


FINE_PACKED = gzip.compress(b"fine", mtime=0)
BADLY_PACKED = {
    "no gzip": ("gzip", b"no gzip"),
    "no deflate": ("deflate", b"\xff\xff\xff"),
    "cut off": ("gzip", FINE_PACKED[:-1]),
    "goes on": ("gzip", FINE_PACKED + b"x"),
    "twice": ("gzip", FINE_PACKED * 2),
    "not offered": ("br", b"fine"),
    "in two layers": ("gzip, gzip", gzip.compress(FINE_PACKED, mtime=0)),
}


@pytest.mark.parametrize(("encoding", "body"), BADLY_PACKED.values(), ids=BADLY_PACKED.keys())
def test_what_can_not_be_unpacked_is_refused_in_one_piece_and_in_many(
    encoding: str, body: bytes
) -> None:
    said = framed(body, encoding)
    for pieces in ((said,), tuple(bytes([byte]) for byte in said)):
        with pytest.raises(BrokenOff):
            read(*pieces)


def test_nothing_at_all_needs_no_unpacking() -> None:
    assert read(framed(b"", "gzip")).body == b""


def test_without_a_limit_nothing_is_unpacked() -> None:
    reader = AnswerReader(None)
    reader.feed(framed(b"as it comes", "gzip"))
    assert reader.take() == b"as it comes"
