"""E14: what is tried next, by rule, from where judge and people disagree."""

from collections.abc import Sequence

from answers import case, cases, rubric
from jurybox.calibration.gold import Gold, GoldCase, JudgeVerdict
from jurybox.calibration.judge_comparison import Options, compare
from jurybox.calibration.proposals import EXAMPLES, Proposal, propose, written
from jurybox.judging.prompts import rubric_text
from jurybox.rubric.rubric_model import Rubric

RUBRIC = rubric()
LEVELS = RUBRIC.criteria[0].levels


def proposed(made: Sequence[GoldCase], tried: Sequence[str] = ()) -> Proposal | None:
    return propose(RUBRIC, made, compare(made, RUBRIC, Options()), frozenset(tried))


def all_of(made: Sequence[GoldCase]) -> list[Proposal]:
    found: list[Proposal] = []
    while (each := proposed(made, [one.key for one in found])) is not None:
        found.append(each)
    return found


def test_a_judge_who_scores_too_high_is_asked_to_be_stricter() -> None:
    found = proposed(cases(20, lambda _, people: min(5, people + 1)))
    assert found is not None
    assert (found.kind, found.criterion) == ("anchors", "correctness")
    assert "about 1 higher than people; asked to be stricter" in found.hypothesis
    assert "- `correctness`: be stricter" in rubric_text(found.rubric)


def test_what_could_be_chance_is_no_bias() -> None:
    kinds = [each.kind for each in all_of(cases(20, lambda n, people: people + (-1) ** n))]
    assert "anchors" not in kinds


def test_levels_that_are_mixed_up_are_told_apart() -> None:
    made = [case(n, 2 if n % 2 else 4, 4 if n % 2 else 2) for n in range(12)]
    found = [each for each in all_of(made) if each.kind == "levels"]
    assert len(found) == 2
    (section,) = found[0].rubric.sections
    assert section.text == (
        "- `correctness, level 4`: Judges often give this where people give 2 (Most of it is"
        " wrong); give 2 where that describes the response as well."
    )


def test_every_kind_has_its_turn_before_one_has_a_second() -> None:
    made = [case(n, 1 + n % 2, (4, 5)[n % 2] if n % 3 else 3) for n in range(24)]
    kinds = [each.kind for each in all_of(made)]
    assert set(kinds[:3]) == {"anchors", "levels", "examples"}


def test_examples_are_the_worst_first_and_then_the_next() -> None:
    made = [case(n, 1, 5 if n < 2 else 2) for n in range(6)]
    examples = [each for each in all_of(made) if each.kind == "examples"]
    assert [each.key for each in examples] == ["examples s000 s001 s002 s003", "examples s004 s005"]
    assert [each.title for each in examples[0].rubric.sections] == [EXAMPLES]


def test_several_criteria_that_are_off_alike_are_mended_together_first() -> None:
    made = [
        case(
            n,
            2,
            4,
            gold=Gold(scores={"correctness": {"1": 1 + n % 3}, "clarity": {"1": 1 + n % 3}}),
            verdict=JudgeVerdict(scores={"correctness": 2 + n % 3, "clarity": 3 + n % 3}),
        )
        for n in range(20)
    ]
    found = proposed(made)
    assert found is not None
    assert found.key == "anchors all higher"
    (section,) = found.rubric.sections
    assert section.text.count(": be stricter") == 2


def for_narrow(made: Sequence[GoldCase], start: Rubric = RUBRIC) -> list[Proposal]:
    metrics = compare(made, start, Options())
    found: list[Proposal] = []
    while (
        each := propose(start, made, metrics, frozenset(one.key for one in found), narrow=True)
    ) is not None:
        found.append(each)
    return found


def ends_of(proposal: Proposal) -> tuple[str, str]:
    criterion = proposal.rubric.criterion("correctness")
    assert criterion is not None
    return criterion.levels[-1].meaning, criterion.levels[0].meaning


def test_judges_with_narrow_questions_are_only_told_other_ends() -> None:
    best, worst = (each.meaning for each in (LEVELS[-1], LEVELS[0]))
    found = for_narrow(cases(20, lambda _, people: min(5, people + 1)))
    assert [ends_of(each) for each in found] == [
        (f"Clearly and throughout: {best}", f"At least in part: {worst}")
    ]
    assert {each.kind for each in found} == {"levels"}
    assert "`correctness` about" in found[0].hypothesis
    assert (
        "higher than people; asked whether the best and the worst level hold" in found[0].hypothesis
    )


def test_what_an_earlier_round_changed_is_not_changed_again() -> None:
    made = cases(20, lambda _, people: min(5, people + 1))
    (first,) = for_narrow(made)
    assert written(first.rubric) is not None
    assert for_narrow(made, first.rubric) == []


def test_every_change_can_be_written_down() -> None:
    made = [case(n, 1 + n % 2, (4, 5)[n % 2]) for n in range(24)]
    assert all(written(each.rubric) is not None for each in all_of(made))
