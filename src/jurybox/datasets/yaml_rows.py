"""Rows in YAML: a list of mappings, or the `rows` of a suite."""

from collections.abc import Iterator

from jurybox.datasets.fields import FIELDS
from jurybox.datasets.row_reader import FileContext, Record
from jurybox.datasets.source import Source
from jurybox.documents.document_text import decode
from jurybox.documents.field_reader import kind_of
from jurybox.documents.findings import Place
from jurybox.documents.plain_yaml import Items, Node, Pairs, Scalar, read_yaml, value_of


def read_yaml_rows(source: Source, context: FileContext) -> Iterator[tuple[int, Record]]:
    """Yield each mapping with its first line number; loads the entire file into memory."""
    data = b"\n".join(line for _, line in source.lines(context.findings))
    text = decode(data, context.findings)
    node = None if text is None else read_yaml(text, Place(1), context.findings)
    if isinstance(node, Pairs):
        node = next((value for key, value in node.pairs if key.text == "rows"), node)
    if node is not None and not isinstance(node, Items):
        problem = f"the rows are {kind_of(node)}, not a list"
        context.note(node.place.line, "wrong-type", problem, "write `- task: ...` for each row")
    for each in node.items if isinstance(node, Items) else ():
        if isinstance(each, Pairs):
            yield (
                each.place.line,
                {key.text: _cell(key.text, value, context) for key, value in each.pairs},
            )
        else:
            problem = f"a row is {kind_of(each)}"
            context.note(each.place.line, "wrong-type", problem, "write `task: ...` and so on")


def _cell(column: str, node: Node, context: FileContext) -> object:
    """Return the value of a column: what belongs to a field of text is text, `5` too."""
    field = context.columns.field(column)
    is_text = field is not None and FIELDS[field].cell == "text"
    if is_text and isinstance(node, Scalar) and node.text not in {"", "~", "null"}:
        return node.text
    return value_of(node)
