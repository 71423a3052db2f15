"""How far votes agree: by criterion, and who differs from the rest."""

import json
from collections.abc import Callable
from itertools import count

import msgspec
import pytest

from jurybox.engine.plan import plan_text
from jurybox.reporting.html.extras import jury_agreement
from jurybox.reporting.stored import plan_of
from jurybox.statistics.intervals import wilson
from jurybox.statistics.jury_agreement import (
    CriterionVotes,
    JudgeDissent,
    JuryAgreement,
)

JUDGES = ("python/a:judge", "python/b:judge", "python/c:judge")


def verdict(accuracy: int, faithfulness: int) -> str:
    return json.dumps(
        {"accuracy_score": accuracy, "faithfulness_score": faithfulness, "rationale": "So."}
    )


@pytest.fixture
def agreement(make_run: Callable, row: Callable) -> Callable[..., JuryAgreement | None]:
    """Return what holds the votes of several judges together; each vote is two scores, or None."""

    def make(
        *samples: list[tuple[int, int] | None], repeats: int = 1, judges: tuple[str, ...] = JUDGES
    ) -> JuryAgreement | None:
        votes = [vote for sample in samples for vote in sample]
        asked = count()

        def judge(_: str) -> str:
            vote = votes[next(asked)]
            return "no" if vote is None else verdict(*vote)

        rows = [row(f"s{at}") for at in range(len(samples) // repeats)]
        run = make_run(rows, judge, votes=len(samples[0]), repeats=repeats)
        plan = msgspec.structs.replace(plan_of(run.row), judges=judges)
        return jury_agreement(run.store, msgspec.structs.replace(run.row, plan=plan_text(plan)))

    return make


def test_each_criterion_tells_how_often_all_votes_agree(agreement: Callable) -> None:
    found = agreement([(2, 2), (2, 1), (2, 2)], [(1, 0), (1, 1), (1, 0)], [(2, 2), (2, 2), (2, 2)])
    assert found.judges == JUDGES
    assert found.criteria == (
        CriterionVotes(
            criterion="accuracy_score",
            n=3,
            agree=3,
            interval=wilson(3, 3),
            undecided=0,
            dissent=tuple(JudgeDissent(judge=judge, votes=3, differs=0) for judge in JUDGES),
        ),
        CriterionVotes(
            criterion="faithfulness_score",
            n=3,
            agree=1,
            interval=wilson(1, 3),
            undecided=0,
            dissent=tuple(
                JudgeDissent(judge=judge, votes=3, differs=differs)
                for judge, differs in zip(JUDGES, (0, 2, 0), strict=True)
            ),
        ),
    )


def test_without_a_majority_nobody_differs_from_it(agreement: Callable) -> None:
    found = agreement([(0, 2), (1, 2), (2, 2)])
    accuracy, faithfulness = found.criteria
    assert (accuracy.agree, accuracy.undecided) == (0, 1)
    assert {each.votes for each in accuracy.dissent} == {0}
    assert (faithfulness.share, faithfulness.undecided) == (1.0, 0)


def test_one_judge_has_nobody_to_differ_from(agreement: Callable) -> None:
    found = agreement([(2, 2), (2, 1), (2, 2)], judges=JUDGES[:1])
    assert found.judges == ()
    assert [(each.agree, each.dissent) for each in found.criteria] == [(1, ()), (0, ())]


def test_the_repeats_of_a_sample_count_once_in_an_interval(agreement: Callable) -> None:
    found = agreement(*[[(2, 2), (2, 1), (2, 2)]] * 4, repeats=2)
    assert (found.criteria[0].n, found.criteria[0].interval) == (4, wilson(2, 2))
