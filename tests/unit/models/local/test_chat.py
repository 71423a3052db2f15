"""A conversation in a model's template: words stay words."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.models.local.prompt_cache import (
    Piece,
    Prompts,
    UnanswerableError,
    cut,
    placeholder,
    segments,
)
from jurybox.sample import Turn

words = st.text(max_size=30)
turns = st.lists(
    st.builds(Turn, role=st.sampled_from(["system", "user", "assistant"]), content=words),
    min_size=1,
    max_size=4,
)


def chatml(messages: Sequence[dict[str, str]]) -> str:
    said = "".join(f"<|{turn['role']}|>{turn['content']}<|end|>" for turn in messages)
    return f"{said}<|assistant|>"


def letters(piece: Piece) -> tuple[int, ...]:
    """Return a number for every character, and others for what stands in the template."""
    begin = (-1,) if piece.opens else ()
    return (*begin, *(ord(char) + (2_000_000 if piece.marks else 0) for char in piece.text))


def around(messages: Sequence[Turn]) -> tuple[str, ...]:
    named = [{"role": turn.role, "content": placeholder(at)} for at, turn in enumerate(messages)]
    return cut(chatml(named), len(messages))


@given(turns, st.lists(st.integers(-3, 40), max_size=4))
def test_the_pieces_make_the_whole_conversation(messages: list[Turn], shared: list[int]) -> None:
    parts = segments(around(messages), messages, shared)
    whole = "".join(piece.text for pieces in parts for piece in pieces)
    assert whole == chatml([{"role": t.role, "content": t.content} for t in messages])
    said = "".join(piece.text for pieces in parts for piece in pieces if not piece.marks)
    assert said == "".join(turn.content for turn in messages)


def test_it_is_cut_after_the_characters_that_are_shared() -> None:
    messages = (Turn(role="system", content="Be fair."), Turn(role="user", content="Rubric. A?"))
    first, second = segments(around(messages), messages, (8, 0, 99))
    assert "".join(piece.text for piece in first) == "<|system|>Be fair.<|end|><|user|>Rubric. "
    assert second == (Piece("A?", marks=False), Piece("<|end|><|assistant|>", marks=True))


@pytest.mark.parametrize(
    "rendered", ["<|user|>", f"{placeholder(0)}{placeholder(0)}", placeholder(1)]
)
def test_a_template_that_does_not_say_each_message_once_is_refused(rendered: str) -> None:
    with pytest.raises(UnanswerableError, match="chat template"):
        cut(rendered, 1)


def test_a_prompt_that_leaves_no_room_for_an_answer_is_refused() -> None:
    prompts = Prompts(chatml, letters)
    messages = [Turn(role="user", content="ab")]
    (tokens,) = prompts.segments(messages, (), most=100)
    assert prompts.segments(messages, (), most=len(tokens) + 1)
    with pytest.raises(
        UnanswerableError, match=f"has {len(tokens)} tokens.*at most {len(tokens) - 1}"
    ):
        prompts.segments(messages, (), most=len(tokens))


def test_a_template_that_begins_with_nothing_still_opens_the_prompt() -> None:
    prompts = Prompts(lambda messages: messages[0]["content"], letters)
    (tokens,) = prompts.segments([Turn(role="user", content="a")], (), most=100)
    assert tokens == (-1, ord("a"))
