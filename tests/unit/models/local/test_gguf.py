"""The head of a GGUF file: read, and never believed."""

import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jurybox.errors import InputError
from jurybox.models.local.gguf import GgufInfo, inspect

U32, STRING, ARRAY, U64 = 4, 8, 9, 10
F32, Q4_1 = 0, 3


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def pair(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def strings(*values: str) -> bytes:
    return struct.pack("<IQ", STRING, len(values)) + b"".join(text(value) for value in values)


def tensor(name: str, dimensions: tuple[int, ...], kind: int, offset: int) -> bytes:
    shape = struct.pack(f"<I{len(dimensions)}Q", len(dimensions), *dimensions)
    return text(name) + shape + struct.pack("<IQ", kind, offset)


PAIRS = (
    pair("general.architecture", STRING, text("llama")),
    pair("general.name", STRING, text("Tiny")),
    pair("llama.context_length", U32, struct.pack("<I", 512)),
    pair("tokenizer.ggml.tokens", ARRAY, strings("a", "b", "", "ü" * 3)),
    pair("tokenizer.ggml.scores", ARRAY, struct.pack("<IQ3f", 6, 3, 1.0, 2.0, 3.0)),
    pair("tokenizer.chat_template", STRING, text("{{ messages }}")),
)
TENSORS = (tensor("a", (8,), F32, 0), tensor("b", (32, 2), Q4_1, 32))
DATA = 32 + 2 * 20


def document(
    *,
    magic: bytes = b"GGUF",
    version: int = 3,
    pairs: tuple[bytes, ...] = PAIRS,
    tensors: tuple[bytes, ...] = TENSORS,
    data: int = DATA,
) -> bytes:
    head = magic + struct.pack("<IQQ", version, len(tensors), len(pairs))
    head += b"".join(pairs) + b"".join(tensors)
    return head + b"\0" * (-len(head) % 32) + b"\1" * data


def look(data: bytes) -> GgufInfo:
    path = Path("model.gguf")
    path.write_bytes(data)
    return inspect(path)


def refusal(data: bytes) -> str:
    with pytest.raises(InputError) as raised:
        look(data)
    line = str(raised.value)
    assert line.startswith("model.gguf: ")
    assert "\n" not in line
    return line


@pytest.mark.parametrize("version", [2, 3])
def test_the_head_says_what_a_runtime_needs_to_know(version: int) -> None:
    data = document(version=version)
    assert look(data) == GgufInfo(
        version=version,
        architecture="llama",
        name="Tiny",
        context_length=512,
        has_chat_template=True,
        tensors=2,
        bytes=len(data),
        least_bytes=len(data),
    )


def test_what_is_not_there_is_unknown() -> None:
    info = look(document(pairs=PAIRS[:1]))
    assert (info.name, info.context_length, info.has_chat_template) == (None, None, False)


def test_an_alignment_of_its_own_moves_the_data() -> None:
    alignment = pair("general.alignment", U32, struct.pack("<I", 4096))
    data = document(pairs=(*PAIRS, alignment), data=0)
    assert "is cut off" in refusal(data)
    assert look(data.ljust(4096, b"\0") + b"\1" * DATA).least_bytes == 4096 + DATA


def test_a_file_without_its_last_byte_is_cut_off() -> None:
    data = document()
    assert f"is cut off: {len(data) - 1:,} bytes of at least {len(data):,}" in refusal(data[:-1])


def test_a_tensor_of_an_unknown_kind_must_at_least_begin_in_the_file() -> None:
    later = tensor("c", (32,), 999, 10_000)
    assert "is cut off" in refusal(document(tensors=(*TENSORS, later)))
    assert look(document(tensors=(*TENSORS, later), data=10_000)).tensors == 3


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is no GGUF file"),
        (b"GG", "is no GGUF file"),
        (b"PK\3\4 a zip archive", "is no GGUF file"),
        (b"version https://git-lfs", "is no GGUF file"),
        (document(version=1), "version 1"),
        (document(version=4), "version 4"),
        (document(version=3 << 24), "the other order of bytes"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**63, 1), "speaks of 9,223,372,036,854,775,808 tensors"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1, 2**63), "pairs of metadata"),
        (document(pairs=()), "architecture"),
        (document(pairs=(pair("general.architecture", U32, b"\0" * 4),)), "architecture"),
        (document(pairs=(pair("x", 13, b""), *PAIRS)), "unknown kind 13"),
        (document(pairs=(pair("x", STRING, struct.pack("<Q", 2**62)),)), "a text of"),
        (document(pairs=(pair("x", ARRAY, struct.pack("<IQ", STRING, 2**60)),)), "a list of"),
        (document(pairs=(pair("x", ARRAY, struct.pack("<IQ", U64, 2**60)),)), "is cut off"),
        (
            document(pairs=(*PAIRS, pair("general.alignment", U32, struct.pack("<I", 0)))),
            "alignment",
        ),
        (document(tensors=(tensor("a", (1,) * 5, F32, 0),)), "5 dimensions"),
        (document(tensors=(tensor("a", (2**40, 2**40), F32, 0),)), "is cut off"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(data: bytes, problem: str) -> None:
    assert problem in refusal(data)


def test_lists_in_lists_in_lists_have_an_end() -> None:
    nested = struct.pack("<IQ", ARRAY, 1) * 50 + struct.pack("<IQ", U32, 0)
    assert "is damaged" in refusal(document(pairs=(pair("x", ARRAY, nested),)))


def test_a_file_that_is_not_there_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be read"):
        inspect(tmp_path / "none.gguf")
    with pytest.raises(InputError, match="can't be read"):
        inspect(tmp_path)


WHOLE = document()
HEAD = len(WHOLE) - DATA


@settings(max_examples=settings.default.max_examples * 4)
@given(st.data())
def test_no_damage_is_more_than_a_refusal(data: st.DataObject) -> None:
    bytes_ = bytearray(WHOLE[: data.draw(st.integers(0, len(WHOLE)))])
    for _ in range(data.draw(st.integers(0, 4))):
        if bytes_:
            bytes_[data.draw(st.integers(0, len(bytes_) - 1))] = data.draw(st.integers(0, 255))
    try:
        info = look(bytes(bytes_))
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either outcome is fine, a crash is not
    else:
        assert info.least_bytes <= info.bytes == len(bytes_)


@given(st.integers(0, len(WHOLE) - 1))
def test_no_beginning_of_a_file_passes_for_the_whole(length: int) -> None:
    refusal(WHOLE[:length])


@given(st.binary(max_size=400))
def test_garbage_behind_the_magic_word_is_refused(garbage: bytes) -> None:
    refusal(b"GGUF" + struct.pack("<I", 3) + b"\xff" + garbage)
