"""Reading the head of a GGUF file without believing a word of it.

The layout is that of versions 2 and 3: a magic word, the version, how many tensors and how many
pairs of metadata there are, the pairs, a description of every tensor, then the tensors' data. A
runtime that loads a damaged file may end the whole process, so it is looked at here beforehand.
"""

import struct
from pathlib import Path
from typing import IO, Final

import msgspec

from jurybox.errors import InputError

_MAGIC: Final = b"GGUF"
_VERSIONS: Final = (2, 3)
_ALIGNMENT: Final = 32

# Numbers in a damaged file can be anything; these are far beyond what any model has.
_MOST_PAIRS: Final = 65_536
_MOST_TENSORS: Final = 65_536
_MOST_ELEMENTS: Final = 8_000_000
_MOST_DIMENSIONS: Final = 4
_LONGEST_NAME: Final = 65_535
_LONGEST_TEXT: Final = 16_000_000
_LARGEST_HEAD: Final = 256_000_000
_DEEPEST: Final = 3
_CHUNK: Final = 1 << 20
_LENGTH: Final = struct.Struct("<Q")

_STRING, _ARRAY = 8, 9
_FORMATS: Final = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q",
    12: "<d",
}  # fmt: skip
"""The kinds of plain values, by their numbers."""

_BLOCKS: Final = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34),
    9: (32, 36), 10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210),
    15: (256, 292), 16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18),
    21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8),
    28: (1, 8), 29: (256, 56), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17),
}  # fmt: skip
"""How many weights of a kind stand in one block, and how many bytes the block takes."""


class GgufInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What the head of a file says.

    ``least_bytes`` is how large the file must be to hold every tensor that it describes.
    """

    version: int
    architecture: str
    name: str | None
    context_length: int | None
    has_chat_template: bool
    tensors: int
    bytes: int
    least_bytes: int


def inspect(path: Path) -> GgufInfo:
    """Read the head of a file.

    Raises:
        InputError: it can't be read, is no GGUF file, is damaged, or isn't all there.

    """
    mend = "give a whole GGUF file"
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(0)
            info = _read(_Head(file, size))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"can't be read ({reason})", "check the path", str(path)) from None
    except _Damaged as error:
        raise InputError(str(error), mend, str(path)) from None
    if info.least_bytes > info.bytes:
        problem = f"is cut off: {info.bytes:,} bytes of at least {info.least_bytes:,}"
        raise InputError(problem, mend, str(path))
    return info


class _Damaged(Exception):  # noqa: N818 - it says what the file is
    """What is wrong with a file, without its name."""


class _Head:
    """The beginning of a file, read as far as it is asked for and never beyond its end."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file = file
        self.size = size
        self._start = 0
        self._data = b""
        self._at = 0
        self.elements = 0

    @property
    def at(self) -> int:
        """How many bytes were taken or passed over."""
        return self._start + self._at

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        if self.at + count > self.size:
            raise _Damaged("is cut off in the middle of its head, or damaged")
        if self.at + count > _LARGEST_HEAD:
            raise _Damaged(f"is damaged: its head is larger than {_LARGEST_HEAD:,} bytes")
        if self._at + count > len(self._data):
            rest = self._data[self._at :]
            self._start, self._at = self.at, 0
            self._data = rest + self._file.read(max(count - len(rest), _CHUNK))
            if len(self._data) < count:
                # Somebody made the file shorter since its size was taken.
                raise _Damaged("is cut off in the middle of its head, or damaged")
        taken = self._data[self._at : self._at + count]
        self._at += count
        return taken

    def skip(self, count: int) -> None:
        """Pass over bytes, in pieces, so that no number in the file makes memory run out."""
        while count > 0:
            count -= len(self.take(min(count, _CHUNK)))

    def skip_texts(self, count: int) -> None:
        """Pass over texts; a vocabulary has hundreds of thousands, most of them a few bytes."""
        for _ in range(count):
            at = self._at
            if at + _LENGTH.size <= len(self._data):
                end = at + _LENGTH.size + _LENGTH.unpack_from(self._data, at)[0]
                if end <= len(self._data):
                    self._at = end
                    continue
            self.skip(self.number("<Q"))

    def number(self, form: str) -> int:
        """Return the next number."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self, longest: int) -> str:
        """Return the next text."""
        length = self.number("<Q")
        if length > longest:
            raise _Damaged(f"is damaged: a text of {length:,} bytes in its head")
        return self.take(length).decode("utf-8", "replace")

    def count(self, form: str, most: int, what: str) -> int:
        """Return the next number, where it can be one of how many there are."""
        number = self.number(form)
        if number > most:
            raise _Damaged(f"is damaged: its head speaks of {number:,} {what}")
        return number


def _read(head: _Head) -> GgufInfo:
    version = _version(head)
    tensors = head.count("<Q", _MOST_TENSORS, "tensors")
    pairs = head.count("<Q", _MOST_PAIRS, "pairs of metadata")
    known: dict[str, object] = {}
    for _ in range(pairs):
        key = head.text(_LONGEST_NAME)
        value = _value(head, head.number("<I"), 0)
        if key == "general.alignment" or key.endswith(
            ("general.architecture", "general.name", ".context_length", "tokenizer.chat_template")
        ):
            known[key] = value
    alignment = known.get("general.alignment", _ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
        raise _Damaged("is damaged: its alignment is no power of two")
    end = max((_tensor_end(head) for _ in range(tensors)), default=0)
    architecture = known.get("general.architecture")
    if not isinstance(architecture, str) or not architecture:
        raise _Damaged("doesn't say which architecture its model has")
    name = known.get("general.name")
    length = known.get(f"{architecture}.context_length")
    return GgufInfo(
        version=version,
        architecture=architecture,
        name=name if isinstance(name, str) else None,
        context_length=length if type(length) is int and length > 0 else None,
        has_chat_template=isinstance(known.get("tokenizer.chat_template"), str),
        tensors=tensors,
        bytes=head.size,
        least_bytes=-(-head.at // alignment) * alignment + end if tensors else head.at,
    )


def _version(head: _Head) -> int:
    if head.size < len(_MAGIC) or head.take(len(_MAGIC)) != _MAGIC:
        raise _Damaged("is no GGUF file")
    version = head.number("<I")
    if version not in _VERSIONS:
        # The bytes of a small number the other way around make a very large one.
        if version and not version & 0xFFFF:
            raise _Damaged("is a GGUF file for machines with the other order of bytes")
        raise _Damaged(f"is a GGUF file of version {version}; versions 2 and 3 are known")
    return version


def _value(head: _Head, kind: int, depth: int) -> object:
    """Return a value; of a list only that it was one, because none is needed."""
    if kind in _FORMATS:
        return head.number(_FORMATS[kind])
    if kind == _STRING:
        return head.text(_LONGEST_TEXT)
    if kind != _ARRAY or depth == _DEEPEST:
        raise _Damaged(f"is damaged: its head has a value of the unknown kind {kind}")
    inner = head.number("<I")
    length = head.number("<Q")
    if inner in _FORMATS:
        head.skip(length * struct.calcsize(_FORMATS[inner]))
        return ()
    head.elements += length
    if head.elements > _MOST_ELEMENTS:
        raise _Damaged(f"is damaged: its head has a list of {length:,} elements")
    if inner == _STRING:
        head.skip_texts(length)
        return ()
    for _ in range(length):
        _value(head, inner, depth + 1)
    return ()


def _tensor_end(head: _Head) -> int:
    """Return where a tensor's data end, counted from where the data of all begin."""
    head.text(_LONGEST_NAME)
    weights = 1
    for _ in range(head.count("<I", _MOST_DIMENSIONS, "dimensions")):
        weights *= head.number("<Q")
    kind = head.number("<I")
    offset = head.number("<Q")
    # Of a kind that came later only the place is known.
    per_block, size = _BLOCKS.get(kind, (1, 0))
    return offset + -(-weights // per_block) * size
