"""Splits a document into front matter and Markdown blocks with line numbers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence

import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token

from jurybox.documents.findings import Findings, Place, decode

# A line of only these is blank in Markdown; Python's strip() removes more.
BLANK = " \t"

_MARKER = re.compile(r"[ \t]*(?:[-+*]|([0-9]{1,9})[.)])(?:[ \t]+|$)")
_BARE_PIPE = re.compile(r"(?<!\\)\|")


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """A top-level block; ``start`` and ``end`` are indexes into the lines, the end excluded."""

    start: int
    end: int


class Heading(Block, frozen=True, kw_only=True):
    """A heading; ``underlined`` if a line of dashes or equals signs below the text marks it."""

    rank: int
    text: str
    underlined: bool


class Fence(Block, frozen=True, kw_only=True):
    """A fenced block; ``info`` is the text after the opening fence."""

    info: str
    content: str
    closed: bool


class TableRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of a table; ``written`` counts the cells in the source; Markdown may drop some."""

    line: int
    cells: tuple[str, ...]
    written: int


class Table(Block, frozen=True, kw_only=True):
    """A table; the first row is its header."""

    rows: tuple[TableRow, ...]


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """An item of a list, with its number if the list is numbered."""

    line: int
    text: str
    number: int | None


class Listing(Block, frozen=True, kw_only=True):
    """A list, bulleted or numbered."""

    items: tuple[Item, ...]


class Html(Block, frozen=True, kw_only=True):
    """Raw HTML, which extends to the next blank line or further."""


class Text(Block, frozen=True, kw_only=True):
    """Anything else: paragraphs, quotes, horizontal rules."""


class Body:
    """The lines of a document and the blocks that they form."""

    def __init__(self, text: str) -> None:
        """Read the block structure."""
        markdown = MarkdownIt("commonmark").enable("table").disable(["inline", "text_join"])
        self.lines = text.split("\n")
        self.blocks = tuple(self._blocks(markdown.parse(text)))

    def text(self, start: int, end: int, without: Sequence[Block] = ()) -> str:
        """Return lines verbatim, without the given blocks and surrounding blank lines."""
        pieces: list[str] = []
        at = start
        for block in [*without, Block(start=end, end=end)]:
            pieces.append(_trim(self.lines[at : block.start]))
            at = block.end
        return "\n\n".join(piece for piece in pieces if piece)

    def place(self, line: int, text: str = "") -> Place:
        """Return the place of ``text`` in a line; by default, of the line's first character."""
        raw = self.lines[line]
        found = raw.find(text) if text else -1
        return Place(line + 1, (found if found >= 0 else len(raw) - len(raw.lstrip(BLANK))) + 1)

    def _blocks(self, tokens: list[Token]) -> Iterator[Block]:
        first = 0
        depth = 0
        for index, token in enumerate(tokens):
            depth += token.nesting
            if depth == 0:
                yield self._block(tokens[first : index + 1])
                first = index + 1

    def _block(self, tokens: list[Token]) -> Block:
        first = tokens[0]
        start, end = first.map or (0, 0)
        # Lists, tables and quotes include the blank lines after them; these belong to no block.
        while end > start + 1 and not self.lines[end - 1].strip(BLANK):
            end -= 1
        match first.type:
            case "heading_open":
                text = without_closing_hashes(" ".join(tokens[1].content.split()))
                underlined = first.markup in {"-", "="}
                rank = int(first.tag[1:])
                return Heading(start=start, end=end, rank=rank, text=text, underlined=underlined)
            case "fence":
                return self._fence(first)
            case "table_open":
                return Table(start=start, end=end, rows=tuple(self._rows(tokens)))
            case "bullet_list_open" | "ordered_list_open":
                return Listing(start=start, end=end, items=tuple(self._items(tokens, end)))
            case "html_block":
                return Html(start=start, end=end)
            case _:
                return Text(start=start, end=end)

    def _fence(self, token: Token) -> Fence:
        start, end = token.map or (0, 0)
        closing = self.lines[end - 1].strip(BLANK)
        closed = (
            end - 1 > start
            and closing == token.markup[0] * len(closing)
            and len(closing) >= len(token.markup)
        )
        info = " ".join(token.info.split())
        return Fence(start=start, end=end, info=info, content=token.content, closed=closed)

    def _rows(self, tokens: list[Token]) -> Iterator[TableRow]:
        line, cells = 0, list[str]()
        for token in tokens:
            match token.type:
                case "tr_open":
                    line, cells = (token.map or (0, 0))[0], []
                case "inline":
                    cells.append(token.content.strip(BLANK))
                case "tr_close":
                    yield TableRow(
                        line=line, cells=tuple(cells), written=_count_cells(self.lines[line])
                    )
                case _:
                    pass

    def _items(self, tokens: list[Token], end: int) -> Iterator[Item]:
        for token in tokens:
            if token.type == "list_item_open" and token.level == tokens[0].level + 1:
                first, last = token.map or (0, 0)
                yield _item(first, self.lines[first : min(last, end)])


def without_closing_hashes(text: str) -> str:
    """Drop the closing sequence of a Markdown heading."""
    words = text.split(" ")
    while words and not words[-1].strip("#"):
        words.pop()
    return " ".join(words)


def _item(line: int, lines: list[str]) -> Item:
    marker = _MARKER.match(lines[0])
    width = 0 if marker is None else marker.end()
    number = None if marker is None or marker[1] is None else int(marker[1])
    rest = [_unindent(each.expandtabs(4), width) for each in lines[1:]]
    text = _trim([lines[0][width:].strip(BLANK), *rest]).strip(BLANK)
    return Item(line=line, text=text, number=number)


def _unindent(line: str, width: int) -> str:
    indent = len(line) - len(line.lstrip(" "))
    return line[min(indent, width) :].rstrip(BLANK)


def _trim(lines: list[str]) -> str:
    """Join lines, without the blank ones at both ends."""
    start, end = 0, len(lines)
    while start < end and not lines[start].strip(BLANK):
        start += 1
    while end > start and not lines[end - 1].strip(BLANK):
        end -= 1
    return "\n".join(lines[start:end])


def _count_cells(line: str) -> int:
    inner = line.strip(BLANK)
    inner = inner.removeprefix("|")
    if inner.endswith("|") and not inner.endswith("\\|"):
        inner = inner[:-1]
    return len(_BARE_PIPE.findall(inner)) + 1


_FENCE = "---"


class MarkdownSource(msgspec.Struct, frozen=True, kw_only=True):
    """A document, split into front matter and body.

    In the body, the front matter's lines are empty, so that line numbers match the file.
    """

    sha256: str
    front_matter: str | None
    first_line: int
    body: str


def read_source(data: bytes, findings: Findings) -> MarkdownSource | None:
    """Decode and split a document; None if it is not text or its front matter has no end."""
    text = decode(data, findings)
    if text is None:
        return None
    lines = text.split("\n")
    start = next((index for index, line in enumerate(lines) if line.strip()), 0)
    if lines[start].rstrip() != _FENCE:
        hint = "begin the file with a line `---`, then `id`, `version` and `scale`, then `---`"
        findings.add(Place(1), "no-front-matter", "the document has no front matter", hint)
        return MarkdownSource(sha256="", front_matter=None, first_line=1, body=text)
    if start > 0:
        problem = "the front matter doesn't begin on the first line"
        findings.add(Place(start + 1), "no-front-matter", problem, "remove the lines above it")
    end = next((i for i, line in enumerate(lines) if i > start and line.rstrip() == _FENCE), None)
    if end is None:
        problem = "the front matter has no end, so it hides the whole document"
        hint = "close it with a second line `---`"
        findings.add(Place(start + 1), "no-front-matter", problem, hint)
        return None
    return MarkdownSource(
        sha256=hashlib.sha256(data).hexdigest(),
        front_matter="\n".join(lines[start + 1 : end]),
        first_line=start + 2,
        body="\n".join([""] * (end + 1) + lines[end + 1 :]),
    )
