"""Texts of others: escaped, bounded, and with nothing in them that can't be seen."""

import re

import pytest
from markupsafe import Markup

from jurybox.reporting.html.html_text import prose, relabeled, seen
from jurybox.text_format import visible

TURNING = "\u202e\u2066\u2069\u200f\u061c"


@pytest.mark.parametrize("mark", [*TURNING, "\x00", "\x1b", "\x7f", "\u200b", "\u00ad", "\ud800"])
def test_what_cannot_be_seen_is_shown(mark: str) -> None:
    assert seen(f"a{mark}b") == "<bdi>a\ufffdb</bdi>"
    assert mark not in prose(f"a{mark}b")


def test_every_space_is_a_space() -> None:
    assert visible("a\u00a0b\tc\r\nd") == "a b c  d"


def test_lines_stay_where_they_are_wanted() -> None:
    assert ">a\nb<" in prose("a\r\nb")


def test_markup_is_escaped() -> None:
    for made in (seen("<b onclick=x>"), prose("<b onclick=x>"), prose("<b onclick=x>" * 100)):
        assert "<b" not in made.replace("<bdi", "")
        assert "&lt;b onclick=x&gt;" in made


def test_a_long_name_is_cut_and_whole_for_who_points_at_it() -> None:
    made = seen("n" * 500)
    assert f">{'n' * 79}…<" in made
    assert f'title="{"n" * 500}"' in made


def test_a_long_text_is_folded_up_to_a_bound() -> None:
    made = prose("a" * 25_000)
    assert made.startswith('<details class="long"><summary><bdi>aaa')
    assert made.count("a" * 20_000) == 1
    assert "5,000 more characters omitted." in made
    assert "details" not in prose("short")


def test_a_megabyte_takes_no_more_room_than_the_page_gives_it() -> None:
    text = "<\u202e" * 500_000
    assert len(seen(text)) < 10_000
    assert len(prose(text)) < 120_000


def test_a_swapped_judges_letters_are_marked_and_nothing_else() -> None:
    shown = relabeled(Markup('<p title="A">A beats <b>B</b>&B; for Anna.</p>'))
    assert shown == (
        '<p title="A"><span class="relabeled" data-here="B">A</span> beats '
        '<b><span class="relabeled" data-here="A">B</span></b>&B; for Anna.</p>'
    )
    assert shown.striptags() == "A beats B&B; for Anna."


@pytest.mark.parametrize(
    "text",
    [
        "*A* is right.",
        "*A* and *B* are alike, yet *A*'s steps are clear: *A*, not *B*.",
        "*A*&#39;s tone; *A* isn&#39;t rude. Better: *A*",
        "Response *A* the order is right. Response *A* The order is right.",
        "It is better than *A* at this, and *A* clearly wins over *B*.",
        "*A* names the menu. *A* gives three steps, <em>*A*</em> misses none.",
        "A good answer has steps. A detailed list, as in *B*, helps.",
        "First: A class of errors. <p>A concise text.</p> A previous step. A few words.",
        "&quot;A serious slip&quot; is what *A* calls it. A by-product. A to-do list.",
        "Not A Good Idea. THIS IS A SLIP. Anna and *A*/*B*",
    ],
)
def test_only_the_letters_that_name_a_response_are_translated(text: str) -> None:
    marked = relabeled(Markup(text.replace("*", "")))  # noqa: S704 - a text of this test
    assert re.sub(r'<span class="relabeled" data-here="[AB]">(.)</span>', r"*\1*", marked) == text
