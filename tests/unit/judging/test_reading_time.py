"""Reading a reply takes time in proportion to its length, whatever it holds."""

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from growth import grows_with_size_alone
from jurybox import load_rubric
from jurybox.engine.driver import drive_sync
from jurybox.judging.flow import ModelReply
from jurybox.judging.jury import jury
from jurybox.judging.protocol import Judging
from jurybox.rubric import Rubric
from jurybox.sample import Response, Sample

SIZE = 25_000
VERDICT = '{"scores": {}}'
MATERIAL = f"Score: 0.5 | {VERDICT} | I give it 0.5 overall. "
# What readers look for, and the beginnings of it without an end.
PARTS = [
    VERDICT, "{}", "{", '{"', '{"a":', "[", "]", "}", '"', "\\", ":", " ", "\n", "\t", "> ",
    ">", "`", "```", "~~~", "'", "\u2018", "\u2019", "\u201c", "\u201d", "\xab", "*", "_", "(",
    ")", "|", "-", ".", ",", "/", "1", "0.5", "4/5", "out of", "Score", "Score: 0.5",
    "score is ", "correctness: 4 ", "I give it 0.5 overall. ", "give ", "the ", "Reasoning: ",
    "reasoning", "<think>", "</think>", "winner is A", "response A is better", "not ", "no ",
    "if ", "kill ", "unsafe ", "a@b.c ", "\xe9", "\u200b", "A", "4111 ", "--", "=",
]  # fmt: skip


@cache
def rubric(name: str) -> Rubric:
    return load_rubric(name)


def read(name: str, text: str) -> None:
    """Judge a sample by a reply, with all that is done to it until there is a report."""
    judging = Judging(
        rubric=rubric(name), checklist=rubric("bias-awareness"), stop_when_decided=False
    )
    sample = Sample(task="Rate it.", response=Response(text=MATERIAL))
    drive_sync(jury(judging, sample, ["m"], 1), lambda _: ModelReply(text=text, model="m"))


@pytest.mark.parametrize("name", ["general", "companion", "answer-quality"])
@settings(max_examples=25)
@given(
    begin=st.lists(st.sampled_from(PARTS), max_size=2),
    repeated=st.lists(st.sampled_from(PARTS), min_size=1, max_size=3),
    end=st.lists(st.sampled_from(PARTS), max_size=2),
)
def test_a_longer_reply_takes_longer_only_by_its_length(
    name: str, begin: list[str], repeated: list[str], end: list[str]
) -> None:
    unit = "".join(repeated)

    def work(size: int) -> None:
        read(name, "".join(begin) + unit * (size // len(unit)) + "".join(end))

    assert grows_with_size_alone(work, SIZE)


@pytest.mark.parametrize("name", ["general", "companion"])
@pytest.mark.parametrize(
    "unit",
    [
        f"> {VERDICT}\n",
        f"> {VERDICT}",
        "\u2018",
        "\u201c",
        '"a" score: 4\n',
        "Score: 0.5 x ",
        "Score: 0.5 | and so on ",
        "I give it 0.5 overall, ",
    ],
)
def test_what_once_took_the_square_of_its_length(name: str, unit: str) -> None:
    assert grows_with_size_alone(lambda size: read(name, unit * (size // len(unit))), SIZE)
