"""E16: an agent is the judge, its prompts and its replies held to the protocol (E4 to E8)."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from commands import Done
from jurybox import load_rubric, pairwise_eval_prompt, rubric_eval_prompt

ROOT = Path(__file__).parents[2]
TASK = "Add a function that doubles a number."
GOOD = "def double(n):\n    return 2 * n"
POOR = "def double(n):\n    return n"
CHANGE = ("--rubric", "code-review", "--task", TASK, "--response", GOOD)
PAIR = (*CHANGE, "--response-b", POOR)
CRITERIA = [each.id for each in load_rubric("code-review").criteria]

Jurybox = Callable[..., Done]


def reply(verdict: object, **changes: object) -> str:
    name = "scores" if isinstance(verdict, int) else "preferences"
    items = [each.id for each in load_rubric("bias-awareness").criteria]
    whole = {
        "reasoning": {each: f"double(3) is followed for {each}." for each in CRITERIA},
        "bias_checklist": {each: f"Considered {each} for double()." for each in items},
        "safety_concerns": [],
        name: dict.fromkeys(CRITERIA, verdict),
        **({} if name == "scores" else {"winner": verdict}),
        **changes,
    }
    return json.dumps(whole)


def check(jurybox: Jurybox, *replies: str, about: tuple[str, ...] = CHANGE) -> Done:
    given = [part for each in replies for part in ("--reply", each)]
    return jurybox("check-reply", *about, *given, "--json")


def test_the_prompt_is_printed_to_the_character(jurybox: Jurybox) -> None:
    done = jurybox("prompt", *CHANGE)
    whole = rubric_eval_prompt(load_rubric("code-review"), task=TASK, response=GOOD)
    assert (done.code, done.out) == (0, f"{whole}\n")


def test_a_pair_is_asked_in_both_orders(jurybox: Jurybox) -> None:
    prompts = jurybox("prompt", *PAIR, "--json").json["prompts"]
    rubric = load_rubric("code-review")
    straight = pairwise_eval_prompt(rubric, task=TASK, response_a=GOOD, response_b=POOR)
    swapped = pairwise_eval_prompt(rubric, task=TASK, response_a=POOR, response_b=GOOD)
    assert [(each["asks"], each["text"]) for each in prompts] == [
        ("A before B", straight),
        ("B before A", swapped),
    ]
    shown = jurybox("prompt", *PAIR).out
    assert shown == (
        f"--- prompt 1 of 2: A before B\n{straight}\n--- prompt 2 of 2: B before A\n{swapped}\n"
    )


@pytest.mark.parametrize(
    ("score", "code", "decision"), [(5, 0, "approve"), (3, 1, "revise"), (1, 1, "reject")]
)
def test_a_valid_reply_is_a_report_with_the_codes_of_evaluate(
    jurybox: Jurybox, score: int, code: int, decision: str
) -> None:
    done = check(jurybox, reply(score))
    assert (done.code, done.json["decision"]) == (code, decision)
    assert done.json["judges"] == ["agent"]
    assert (done.json["votes_valid"], done.json["votes_requested"]) == (1, 1)
    assert done.json["confidence"] == "moderate"


@pytest.mark.parametrize(
    ("changes", "defect"),
    [
        ({"reasoning": {}}, '"reasoning"'),  # E4
        ({"scores": dict.fromkeys(CRITERIA, 3.5)}, "3.5"),  # E5
        ({"scores": {}}, '"scores"'),
        ({"bias_checklist": {}}, '"bias_checklist"'),
    ],
)
def test_an_invalid_reply_gets_its_defect_and_the_next_prompt(
    jurybox: Jurybox, changes: dict[str, object], defect: str
) -> None:
    done = check(jurybox, reply(4, **changes))
    assert done.code == 2
    (prompt,) = done.json["prompts"]
    assert defect in prompt["defect"]
    assert prompt["defect"] in prompt["messages"][-1]["content"]
    assert prompt["text"] == prompt["messages"][-1]["content"]
    assert f"the last reply: {prompt['defect'].removesuffix('.')}; answer" in done.err
    assert done.json["complete"] is False


def test_an_exchange_with_a_reasked_reply_ends_in_a_report(jurybox: Jurybox) -> None:
    first = json.dumps({"scores": {"correctness": 5}})
    asked = jurybox("check-reply", *CHANGE, "--reply", first)
    assert asked.code == 2
    assert asked.out.startswith("Your reply can't be used: ")
    assert check(jurybox, first, reply(5)).json["decision"] == "approve"


def test_a_reply_that_stays_invalid_is_unscored(jurybox: Jurybox) -> None:
    done = check(jurybox, "No.", "No.", "No.")
    assert done.code == 3
    assert (done.json["total_score"], done.json["votes_valid"]) == (None, 0)


def test_two_verdicts_in_one_reply_are_refused(jurybox: Jurybox) -> None:
    done = check(jurybox, f"{reply(1)}\n{reply(5)}")  # E7
    assert done.code == 2


@pytest.mark.parametrize(("second", "stable", "winner"), [("B", True, "A"), ("A", False, "tie")])
def test_the_second_order_is_mapped_back(
    jurybox: Jurybox, second: str, *, stable: bool, winner: str
) -> None:
    report = check(jurybox, reply("A"), reply(second), about=PAIR).json
    assert (report["stable"], report["winner"]) == (stable, winner)  # E8


def test_half_a_pair_waits_for_the_other_order(jurybox: Jurybox) -> None:
    done = check(jurybox, reply("A"), about=PAIR)
    assert done.code == 2
    assert [each["asks"] for each in done.json["prompts"]] == ["B before A"]
    assert "reply 2 is missing (B before A)" in done.err


def test_a_defect_in_half_a_pair_is_reported_after_the_other_half(jurybox: Jurybox) -> None:
    done = check(jurybox, "B.", reply("B"), about=PAIR)
    assert "A before B: it contains no JSON object" in done.err
    assert [each["asks"] for each in done.json["prompts"]] == ["A before B"]
    assert check(jurybox, "B.", reply("B"), reply("A"), about=PAIR).json["winner"] == "A"


def test_more_replies_than_were_asked_for_are_refused(jurybox: Jurybox) -> None:
    done = check(jurybox, reply(5), reply(4))
    assert done.code == 2
    assert "2 replies were given, but only 1 can be used" in done.err


def test_measures_count_as_with_evaluate(jurybox: Jurybox) -> None:
    about = ("--rubric", "answer-quality", "--task", "2 + 2?", "--response", "4")
    about += ("--reference", "4", "--context", "2 + 2 = 4")
    verdict = '{"accuracy_score": 2, "faithfulness_score": 2, "rationale": "Right."}'
    assert check(jurybox, verdict, about=about).code == 1
    given = ("--latency-e2e-ms", "900", "--input-tokens", "30", "--output-tokens", "3")
    assert check(jurybox, verdict, about=(*about, *given)).code == 0


def test_an_empty_response_has_no_prompt(jurybox: Jurybox) -> None:
    done = jurybox("prompt", "--rubric", "general", "--task", "Hi", "--response", " ")
    assert done.code == 2
    assert "the response is empty" in done.err


def test_the_skill_judges_a_change_as_it_says(jurybox: Jurybox, tmp_path: Path) -> None:
    skill = (ROOT / "skills" / "evaluate" / "SKILL.md").read_text(encoding="utf-8")
    head = skill.split("---\n")[1]
    assert "name: evaluate\n" in head
    assert "description: Judge a code change before it is merged" in head
    files = {"task.md": TASK, "change.diff": GOOD, "reply-1.json": reply(5)}
    files |= {"a.txt": "Four.", "b.txt": "Five."}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    commands = re.findall(r"^ *jurybox (.*)", skill, re.MULTILINE)
    lines = [command.split() for command in commands]
    *first, pair = lines[:-1]
    assert [line[0] for line in lines] == ["prompt", "check-reply"] * 2
    assert [jurybox(*line).code for line in (*first, pair)] == [0, 0, 0]
    whole = load_rubric("general")
    preferences = dict.fromkeys([each.id for each in whole.criteria], "A")
    for name, side in (("a-before-b.json", "A"), ("b-before-a.json", "B")):
        reasons = dict.fromkeys(preferences, "Two and two are four.")
        sides = dict.fromkeys(preferences, side)
        given = reply(side, reasoning=reasons, preferences=sides)
        (tmp_path / name).write_text(given)
    done = jurybox(*lines[-1])
    assert done.code == 0
    assert "winner  A, in both orders" in done.out
