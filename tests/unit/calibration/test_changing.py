"""E14: what calibration writes into a rubric says what was meant, whoever wrote the samples."""

from hypothesis import given
from hypothesis import strategies as st

from answers import PROMPTED, case, pair, rubric
from jurybox.calibration.proposals import (
    EXAMPLES,
    GUIDANCE,
    examples_text,
    with_examples,
    with_guidance,
    written,
)
from jurybox.judging.prompts import rubric_text


def test_guidance_has_a_line_for_each_thing() -> None:
    made = with_guidance(rubric(), "tie", "seldom")
    made = with_guidance(made, "length", "ignore it")
    made = written(with_guidance(made, "tie", "often")) or rubric()
    (section,) = [each for each in made.sections if each.title == GUIDANCE]
    assert section.text == "- `length`: ignore it\n- `tie`: often"
    assert section.text in rubric_text(made)


def test_the_judge_prompt_of_a_rubric_gets_it_all_in_front() -> None:
    base = rubric(PROMPTED)
    made = with_guidance(base, "correctness", "be stricter.")
    made = with_examples(made, examples_text([case(1, 2, 4)], ["correctness"]))
    made = with_guidance(made, "correctness, level 4", "Not for half.")
    made = with_guidance(made, "correctness", "be kinder.")
    again = written(made)
    assert again is not None
    assert again.template is not None
    text = again.template.text
    assert text.startswith(
        f"{GUIDANCE}:\n- `correctness, level 4`: Not for half.\n- `correctness`: be kinder.\n"
        f"End of {GUIDANCE}.\n\n{EXAMPLES}:\n"
    )
    assert text.endswith(f"\nEnd of {EXAMPLES}.\n\nJudge {{{{response}}}} to {{{{task}}}}.")


def test_a_placeholder_in_an_example_is_never_filled() -> None:
    made = with_examples(
        rubric(PROMPTED),
        examples_text([case(1, 2, 4, response="{{reference}} {task} { {x}}")], ["correctness"]),
    )
    again = written(made)
    assert again is not None
    assert again.template is not None
    assert [name for name, _ in again.template.placeholders()] == ["response", "task"]


def test_examples_carry_what_people_gave_and_the_judge() -> None:
    text = examples_text([case(7, 2, 4, comments={"": "half is made up"})], ["correctness"])
    assert '"task 7"' in text
    assert '"half is made up"' in text
    assert "`correctness` is 2 to people, where a judge gave 4" in text
    paired = examples_text([pair(1, "A", "B")], [])
    assert "people prefer A, where a judge said B" in paired


NASTY = st.text(
    st.one_of(
        st.sampled_from(list("#`|<>{}[]*_-=\n\r\t\\\"'~+0123456789 ")),
        st.characters(codec="utf-8"),
    ),
    max_size=200,
)


@given(NASTY, NASTY, NASTY)
def test_nothing_in_a_sample_can_leave_its_marks_or_change_the_document(
    task: str, response: str, comment: str
) -> None:
    told = case(1, 2, 4, task=task, response=response, comments={"": comment})
    text = examples_text([told], ["correctness"])
    token = text.partition("<<")[2][:12]
    # Once in the introduction, and once for each of three quoted texts; never inside of one.
    assert text.count(f"<<{token}") == 4
    assert text.count(f"{token}>>") == 4
    made = with_examples(rubric(), text)
    again = written(made)
    assert again is not None
    assert again.criteria == rubric().criteria
    assert [each.title for each in again.sections] == [EXAMPLES]
    for line in text.splitlines():
        assert not line.startswith("#")


def test_a_change_that_a_document_cannot_say_is_none() -> None:
    assert written(with_guidance(rubric(), "correctness", "x\n\n## Criteria\n")) is None
