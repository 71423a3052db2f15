import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup, escape

from jurybox.reporting.html.html_text import marked
from jurybox.reporting.html.markdown_text import render_markdown


def test_words_that_differ_are_marked() -> None:
    first, second = Markup("<p>The cat sat here.</p>"), Markup("<p>The dog sat here!</p>")
    assert marked(first, second) == (
        '<p>The <mark class="b">dog</mark> sat here<mark class="b">!</mark></p>'
    )
    assert marked(second, first, "a").startswith('<p>The <mark class="a">cat</mark> sat')


def test_words_are_compared_in_their_longest_runs_and_as_they_are_read() -> None:
    plain, laid_out = (
        escape('The bank\'s app: say "no".'),
        Markup("The bank's app: say &quot;no&quot;."),
    )
    assert "<mark" not in marked(plain, laid_out)
    trouble = Markup("Sorry for the trouble. Remove the second seat.")
    assert marked(trouble, Markup("Remove the second seat.")) == "Remove the second seat."


def _unrelated(words: int, seed: int) -> str:
    chosen = random.Random(seed)  # noqa: S311 - of tests
    return ". ".join(
        f"{chosen.choice(['the', 'of', 'and', 'to'])} w{chosen.random()}" for _ in range(words)
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        *((_unrelated(words, 1), _unrelated(words, 2)) for words in (60, 400, 1200)),
        ("a " * 15_000, "b a " * 7_500),
        ("a b " * 7_500, "b a a " * 5_000),
        (". " * 15_000, ", . " * 7_500),
        ("a" * 30_000, "b " * 15_000),
        ("." * 30_000, "," * 30_000),
    ],
)
def test_no_two_texts_take_long(one: str, other: str) -> None:
    began = time.process_time()
    marked(escape(one), escape(other), most=30_000)
    # It takes less than a tenth; a busy machine takes a while longer.
    assert time.process_time() - began < 5


@given(st.text("ab *`&<>|-\n", max_size=30), st.text("ab *`&<>|-\n", max_size=30))
def test_marks_change_nothing_else_of_what_is_laid_out(one: str, other: str) -> None:
    first, second = render_markdown(one), render_markdown(other)
    assert first is not None
    assert second is not None
    made = marked(first, second)
    assert made.replace('<mark class="b">', "").replace("</mark>", "") == second


def test_of_texts_with_little_in_common_nothing_is_marked() -> None:
    assert marked(Markup("<p>One.</p>"), Markup("<p>Quite another.</p>")) == "<p>Quite another.</p>"


def test_additions_to_a_short_text_are_marked_and_nothing_in_it() -> None:
    short = Markup("<p>The cat sat here.</p>")
    longer = Markup("<p>The cat sat here. Then it slept for two hours on the sofa.</p>")
    assert '<mark class="b">Then it slept' in marked(short, longer)
    assert marked(longer, short, "a") == short
