"""Renders Markdown as harmless HTML: HTML tags, images and links in it become text.

No word is lost, because people decide on what they see.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.rules_block.table import escapedSplit, getLine
from markdown_it.token import Token
from markupsafe import Markup, escape

from jurybox.text_format import visible

# Beyond these limits a text is shown as plain text: rendering could take many seconds.
_RENDERED: Final = 150_000
_MOST_LINES: Final = 5_000
_MOST_BRACKETS: Final = 500
_MOST_MARKS: Final = 10_000
_MOST_CELLS: Final = 20_000
_MARKDOWN: Final = re.compile(r"[*_`#|]|\]\(|^\s*(?:[-+>]|\d+\.)\s", re.MULTILINE)
_MARKS: Final = re.compile(r"[*_`<&\\]")
_RULE: Final = re.compile(r"^[ |:>-]*-[ |:>-]*$", re.MULTILINE)


def harmless(value: Any) -> Any:  # noqa: ANN401 - whatever a template shows
    """Return a text without invisible control characters; other values unchanged."""
    if type(value) is str:
        return visible(value, kept="\n\r\t\u00a0")
    return value


def render_markdown(text: str) -> Markup | None:
    """Return a text as HTML; None if it is too long or too deeply nested."""
    return Markup(_rendered(text)) if _is_light(text) else None  # noqa: S704 - without HTML


def rendered(text: str) -> Markup | None:
    """Return a text as HTML, if it looks like Markdown."""
    return render_markdown(text) if _MARKDOWN.search(text) else None


def unmarked(text: str) -> str:
    """Return a text on one line, without Markdown syntax."""
    html = rendered(text)
    return text if html is None else html.striptags()


def _is_light(text: str) -> bool:
    """Return whether a document renders quickly; links and wide tables are slow."""
    if len(text) > _RENDERED:
        return False
    lines = text.count("\n")
    # Every line below the separator line of a table may have a cell in each column.
    columns = max((rule.count("|") for rule in _RULE.findall(text)), default=0)
    return (
        lines <= _MOST_LINES
        and columns * lines <= _MOST_CELLS
        and text.count("[") <= _MOST_BRACKETS
        and len(_MARKS.findall(text)) <= _MOST_MARKS
    )


@cache
def _parser() -> MarkdownIt:
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    markdown.disable(["image", "reference"])
    markdown.block.ruler.at("table", _whole_table, {"alt": ["paragraph", "reference"]})
    markdown.validateLink = lambda url: url != ""  # every link becomes text anyway
    # A wide table scrolls within the text, also by keyboard.
    scroll = '<div class="scroll" role="group" aria-label="Table" tabindex="0">'
    markdown.add_render_rule("table_open", lambda *_: f"{scroll}<table>\n")
    markdown.add_render_rule("table_close", lambda *_: "</table></div>\n")
    markdown.add_render_rule("fence", _fence)
    return markdown


def _whole_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    """Parse a table; what a line has beyond the table's columns is put into its last cell."""
    first = len(state.tokens)
    found = table(state, start, end, silent)
    cells: list[Token] = []
    for token in state.tokens[first:]:
        if token.type == "inline":
            cells.append(token)
        elif token.type == "tr_close" and cells[0].map:
            written = escapedSplit(getLine(state, cells[0].map[0]).strip())
            extra = map(str.strip, written[len(cells) + (written[0] == "") :])
            cells[-1].content = " | ".join((cells[-1].content, *filter(None, extra)))
            cells = []
    return found


def _fence(_: object, tokens: Sequence[Token], place: int, *__: object) -> str:
    """Return a code block, with the words of its first line."""
    said, code = tokens[place].info.strip(), escape(tokens[place].content)
    head = f"<small>{escape(said)}</small>\n" if said else ""
    return f"{head}<pre><code>{code}</code></pre>\n"


@lru_cache(maxsize=32)
def _rendered(text: str) -> str:
    markdown = _parser()
    # The page has its own heading, so the document's headings are one level lower.
    tokens = markdown.parse(harmless(text))
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(6, int(token.tag[1]) + 1)}"
        if style := token.attrs.pop("style", ""):  # of a cell; the policy of pages blocks it
            token.attrs["class"] = str(style).removeprefix("text-align:")
        _unlink(token.children or [])
    # Again, because a character may have been written as an entity.
    return harmless(markdown.renderer.render(tokens, markdown.options, {}))


def _unlink(children: Iterable[Token]) -> None:
    """Put the address of each link after its words, as text."""
    address = ""
    for child in children:
        if child.type == "link_open":
            # If the text of a link is its address, the address is shown once.
            said = " ".join(str(each) for each in child.attrs.values())
            address = "" if child.markup == "autolink" else f" ({said})"
            child.type, child.tag, child.nesting, child.content = "text", "", 0, ""
        elif child.type == "link_close":
            child.type, child.tag, child.nesting, child.content = "text", "", 0, address
