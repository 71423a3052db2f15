from jurybox.documents.findings import Place
from jurybox.rubric.document.blocks import (
    Body,
    Fence,
    Heading,
    Html,
    Item,
    Listing,
    Table,
    Text,
)


def kinds(text: str) -> list[str]:
    return [type(block).__name__ for block in Body(text).blocks]


def test_the_blocks_of_a_document_in_their_order() -> None:
    text = "# Title\n\ntext\n\n- item\n\n| a | b |\n| - | - |\n\n```\ncode\n```\n\n> quote\n"
    assert kinds(text) == ["Heading", "Text", "Listing", "Table", "Fence", "Text"]


def test_a_heading_has_a_rank_and_its_words() -> None:
    (heading,) = Body("\n###   Trust  &\tboundaries ###\n").blocks
    assert heading == Heading(start=1, end=2, rank=3, text="Trust & boundaries", underlined=False)


def test_a_heading_may_be_underlined() -> None:
    title, section = Body("Support\nanswers\n===\nCriteria\n---\n").blocks
    assert title == Heading(start=0, end=3, rank=1, text="Support answers", underlined=True)
    assert section == Heading(start=3, end=5, rank=2, text="Criteria", underlined=True)


def test_inline_marks_stay_what_was_written() -> None:
    (heading,) = Body("# *A* [b](c) `d` &amp; \\*e\n").blocks
    assert isinstance(heading, Heading)
    assert heading.text == "*A* [b](c) `d` &amp; \\*e"


def test_a_list_gives_its_items_with_their_lines() -> None:
    (listing,) = Body("- one\n- two\n  goes on\n\n- three\n").blocks
    assert isinstance(listing, Listing)
    assert listing.items == (
        Item(line=0, text="one", number=None),
        Item(line=1, text="two\ngoes on", number=None),
        Item(line=4, text="three", number=None),
    )


def test_the_items_of_a_numbered_list_have_the_numbers_that_were_written() -> None:
    listing, other = Body("5. five\n4. four\n10. ten\n\n1) one\n").blocks
    assert isinstance(listing, Listing)
    assert isinstance(other, Listing)
    assert [item.number for item in listing.items] == [5, 4, 10]
    assert [item.text for item in listing.items] == ["five", "four", "ten"]
    assert [item.number for item in other.items] == [1]


def test_what_is_nested_in_an_item_stays_in_it() -> None:
    (listing,) = Body("1. one\n   - a\n   - b\n\n   more\n2. two\n").blocks
    assert isinstance(listing, Listing)
    assert listing.items == (
        Item(line=0, text="one\n- a\n- b\n\nmore", number=1),
        Item(line=5, text="two", number=2),
    )


def test_blank_lines_behind_a_list_belong_to_nobody() -> None:
    listing, text = Body("- one\n\n\n\ntext\n").blocks
    assert (listing.start, listing.end) == (0, 1)
    assert (text.start, text.end) == (4, 5)


def test_a_table_gives_its_cells_and_counts_those_that_markdown_cuts() -> None:
    (table,) = Body("| a | b |\n| --- | --- |\n| 1 | x \\| y |\n| 2 | x | y |\n| 3 |\n").blocks
    assert isinstance(table, Table)
    assert [row.cells for row in table.rows] == [("a", "b"), ("1", "x | y"), ("2", "x"), ("3", "")]
    assert [row.written for row in table.rows] == [2, 2, 3, 1]
    assert [row.line for row in table.rows] == [0, 2, 3, 4]


def test_a_fence_gives_its_name_and_its_content_to_the_character() -> None:
    (fence,) = Body("~~~  yaml   rules \n a: `b`\n\n```\n~~~\n").blocks
    assert fence == Fence(
        start=0, end=5, info="yaml rules", content=" a: `b`\n\n```\n", closed=True
    )


def test_a_fence_without_an_end_is_known_as_such() -> None:
    (fence,) = Body("````\na\n```\n").blocks
    assert isinstance(fence, Fence)
    assert not fence.closed


def test_an_opening_fence_on_the_last_line_has_no_end() -> None:
    (fence,) = Body("```").blocks
    assert isinstance(fence, Fence)
    assert not fence.closed


def test_everything_else_is_text() -> None:
    assert kinds("> - quote\n\n    code\n\n***\n\nplain\n") == ["Text"] * 4
    assert Body("").blocks == ()


def test_html_goes_on_to_the_next_blank_line_or_to_its_end() -> None:
    tag, comment, text = Body("<br>\n### B\n\n<!-- a\n\nb -->\n\nc\n").blocks
    assert tag == Html(start=0, end=2)
    assert comment == Html(start=3, end=6)
    assert text == Text(start=7, end=8)


def test_text_leaves_out_blocks_and_the_blank_lines_around_them() -> None:
    body = Body("\none\n\n- item\n\n\n two \n\n")
    (listing,) = [block for block in body.blocks if isinstance(block, Listing)]
    assert body.text(0, len(body.lines), [listing]) == "one\n\n two "


def test_a_column_is_where_a_word_or_else_the_line_s_text_begins() -> None:
    body = Body("  | 5 | x |\n")
    assert body.place(0, "5") == Place(1, 5)
    assert body.place(0) == Place(1, 3)
    assert body.place(0, "absent") == Place(1, 3)


def test_blocks_know_their_lines() -> None:
    text = "a\nb\n\n## c\nd\n"
    assert [(block.start, block.end) for block in Body(text).blocks] == [(0, 2), (3, 4), (4, 5)]
    assert isinstance(Body(text).blocks[0], Text)
