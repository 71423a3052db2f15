"""The bytes of a file, in lines and hashed."""

import hashlib
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.datasets.source import Source
from jurybox.documents.findings import Findings
from jurybox.errors import IncompleteError


def source(data: bytes, *, most: int = 1000) -> Source:
    return Source(io.BytesIO(data), "x", size=len(data), most=most)


LINES = st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=20)


@given(LINES, st.sampled_from([b"", b"\n"]))
def test_lines_are_whole_and_hashed(lines: list[bytes], end: bytes) -> None:
    data = b"\n".join(lines) + end
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        return
    one = source(data)
    found = dict(one.lines(Findings()))
    expected = dict(enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1))
    assert {number: line for number, line in expected.items() if line} == {
        number: line for number, line in found.items() if line
    }
    assert (one.sha256, one.bytes) == (hashlib.sha256(data).hexdigest(), len(data))


@given(st.lists(st.integers(0, 60), max_size=15), st.sampled_from([b"", b"\n"]))
def test_a_line_that_is_too_long_is_noted_and_left_out(lengths: list[int], end: bytes) -> None:
    lines = [b"x" * length for length in lengths]
    findings = Findings()
    one = source(b"\n".join(lines) + end, most=20)
    found = {number: line for number, line in one.lines(findings) if line}
    assert found == {n: line for n, line in enumerate(lines, 1) if 0 < len(line) <= 20}
    assert [each.line for each in findings.in_order()] == [
        number for number, length in enumerate(lengths, 1) if length > 20
    ]


def test_a_line_that_is_too_long_says_so() -> None:
    findings = Findings()
    data = b"a\n" + b"x" * 64 + b"\nb"
    assert list(source(data, most=20).lines(findings)) == [(1, b"a"), (3, b"b")]
    assert [str(each) for each in findings.in_order()] == [
        "2:1: the line is longer than 2e-05 MB; give each row a line [too-long]"
    ]


def test_a_disk_that_fails_is_no_fault_of_the_file() -> None:
    class Failing(io.BytesIO):
        def readline(self, _: int | None = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    one = Source(Failing(), "rows.jsonl", size=1)
    with pytest.raises(IncompleteError, match=r"^rows\.jsonl: reading failed \(input/output"):
        list(one.lines(Findings()))


def test_the_whole_file_can_be_hashed_wherever_reading_stood() -> None:
    one = source(b"abc")
    one.file.read(2)
    one.read_whole()
    assert (one.sha256, one.bytes) == (hashlib.sha256(b"abc").hexdigest(), 3)
