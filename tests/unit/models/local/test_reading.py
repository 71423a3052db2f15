"""The same prompt is read in the same way, whatever was read before."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from jurybox.models.local.prompt_cache import CacheState, ReadPlan, plan

BATCH = 3
# Few tokens, so that prompts begin alike and questions collide.
segment = st.lists(st.integers(1, 3), min_size=1, max_size=4).map(tuple)
prompt = st.lists(segment, min_size=1, max_size=4).map(tuple)
Prompt = tuple[tuple[int, ...], ...]


class Server:
    """A server that keeps whatever the next prompt begins with, and numbers that depend on it.

    What it computes for a token is what it was read together with, and all of that before it.
    """

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.numbers: list[int] = []

    def read(self, tokens: Sequence[int], *, keep: bool) -> int:
        kept = 0
        while (
            keep and kept < min(len(tokens), len(self.tokens)) and tokens[kept] == self.tokens[kept]
        ):
            kept += 1
        # The last token is read in any case, because somebody wants to know what follows.
        kept = min(kept, len(tokens) - 1)
        del self.tokens[kept:], self.numbers[kept:]
        for start in range(kept, len(tokens), BATCH):
            together = tuple(tokens[start : start + BATCH])
            before = tuple(self.numbers)
            self.numbers += [hash((before, together, at)) for at in range(len(together))]
            self.tokens += together
        return kept

    def write(self, tokens: Sequence[int]) -> None:
        self.tokens += tokens
        self.numbers += [0] * len(tokens)


def follow(server: Server, reading: ReadPlan) -> None:
    for step in reading.steps:
        assert server.read(step.tokens, keep=step.start > 0) == step.start


def alone(segments: Prompt) -> list[int]:
    server = Server()
    follow(server, plan(CacheState(), segments))
    return server.numbers


@given(st.lists(st.tuples(prompt, st.lists(st.integers(0, 3), max_size=2)), max_size=8), prompt)
def test_a_prompt_gives_the_same_numbers_after_any_others(
    others: list[tuple[Prompt, list[int]]], last: Prompt
) -> None:
    server, held = Server(), CacheState()
    for segments, written in others:
        reading = plan(held, segments)
        follow(server, reading)
        assert server.numbers == alone(segments)
        server.write(written)
        held = CacheState(tokens=reading.cache.tokens, cuts=reading.cache.cuts, more=bool(written))
    follow(server, plan(held, last))
    assert server.numbers == alone(last)


@given(prompt, segment)
def test_what_is_shared_is_read_once(shared: Prompt, question: tuple[int, ...]) -> None:
    first = plan(CacheState(), (*shared, question))
    again = plan(first.cache, (*shared, (4, 5)))
    length = sum(len(each) for each in shared)
    assert again.kept == length
    assert [step.start for step in again.steps] == [length]


def test_nothing_is_kept_up_to_a_place_where_the_other_prompt_was_not_cut() -> None:
    whole = plan(CacheState(), ((1, 2, 3, 4),))
    assert plan(whole.cache, ((1, 2), (3, 4))).kept == 0
    cut = plan(CacheState(), ((1, 2), (3, 4)))
    assert plan(cut.cache, ((1, 2, 3), (4,))).kept == 0
    assert plan(cut.cache, ((1,), (2,), (3, 4))).kept == 0


def test_a_question_that_begins_like_the_one_before_is_kept_apart_from_it() -> None:
    held = plan(CacheState(), ((1, 2), (3, 4))).cache
    first, second = plan(held, ((1, 2), (3, 5))).steps
    assert (first.start, first.tokens[:2]) == (2, (1, 2))
    assert first.tokens[2] != 3
    assert (second.start, second.tokens) == (2, (1, 2, 3, 5))


def test_what_the_model_wrote_itself_is_never_taken_for_the_prompt() -> None:
    held = CacheState(tokens=(1, 2), cuts=(0,), more=True)
    assert len(plan(held, ((1, 2), (3,))).steps) == 2
    quiet = CacheState(tokens=(1, 2), cuts=(0,))
    assert len(plan(quiet, ((1, 2), (3,))).steps) == 1
