"""Overlays for the rows of a demographic, and what judges and reviewers see of a scenario (C13)."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from commands import Done
from jurybox.app.rescore_run import rescore_run
from jurybox.app.run_suite import run
from jurybox.app.view_run import load_run
from jurybox.engine.plan import TargetPlan
from jurybox.errors import InputError
from jurybox.judging.protocol import Judging
from jurybox.reporting.export_rows import exported_rows
from jurybox.rubric import parse_rubric
from jurybox.rubric.document.criteria import scenario_texts
from jurybox.rubric.rubric_model import Generation
from jurybox.rubric.template import Template
from jurybox.rubric_files import RubricFiles
from jurybox.sample import Response, Row, Turn
from jurybox.scoring.rules.rule_compiler import compile_rules, score_by_rules
from jurybox.storage.audit import audit
from jurybox.wiring import find_run, open_run_store

Write = Callable[..., str]
Jurybox = Callable[..., Done]

FILES = RubricFiles(Path("no-such-folder"))
COMPANION = FILES.parse(FILES.read("companion"))
OVERLAYS = {
    "younger_18_30": "companion-younger-adults",
    "older_31_64": "companion-older-adults",
    "older_65_plus": "companion-older-adults",
    "vulnerable": "companion-vulnerable",
}
FOCUS = "Empathy, emotional intelligence, supportive responses that validate without enabling."
KEY = "Trust-building through understanding (research-informed)"

OWN = """\
suite: own
rubric: {rubric}
overlays: {overlays}
rows:
  - {{id: a, task: "I feel lonely.", response: "I'm here.", metadata: {{demographic: old}}}}
  - {{id: b, task: "I feel lonely.", response: "I'm here."}}
"""


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.chdir(tmp_path)

    def write(overlays: str = "{}", rubric: str = "companion") -> str:
        Path("suite.yaml").write_text(OWN.format(rubric=rubric, overlays=overlays))
        return "suite.yaml"

    return write


def test_c13_every_demographic_of_the_scenarios_is_scored_with_its_overlay() -> None:
    samples = run("companion-scenarios", responses="bad").samples
    assert {each.inputs.metadata.get("demographic"): each.result.overlay for each in samples} == {
        None: None,
        **OVERLAYS,
    }
    for each in samples:
        overlay = OVERLAYS.get(each.inputs.metadata.get("demographic", ""), "companion")
        rules = compile_rules(FILES.parse(FILES.read(overlay)))
        assert rules is not None
        row = each.inputs
        again = score_by_rules(rules, task=row.task, response=each.response, messages=row.messages)
        assert each.scores["overall_quality"] == again.overall


def test_c13_the_record_says_which_overlay_and_an_audit_derives_it_again() -> None:
    result = run("companion-scenarios", responses="bad")
    named = result.metadata["overlays"]
    assert {name: each["id"] for name, each in named.items()} == OVERLAYS
    overlay = FILES.parse(FILES.read("companion-vulnerable"))
    assert named["vulnerable"] == {
        "id": overlay.id,
        "version": overlay.version,
        "sha256": overlay.sha256,
    }
    with closing(open_run_store(None)) as store:
        row = find_run(store, result.run_id)
        assert audit(store, row).difference is None
        exported = {each["id"]: each["overlay"] for each in exported_rows(store, row)}
        assert exported["age-demographic-dependency-vulnerable"] == "companion-vulnerable"
        assert exported["basic-hello"] is None
        again = rescore_run(row, "companion", store).view
        assert audit(store, find_run(store, again.run_id)).difference is None
        whole = rescore_run(row, "companion-vulnerable", store).view
    assert again.summary == result.summary
    assert again.metadata["overlays"] == named
    # One rubric for all rows, where it isn't the one that the overlays extend.
    assert "overlays" not in whole.metadata
    assert {each.result.overlay for each in load_run(whole.run_id).samples} == {None}


def test_c13_another_rubric_scores_all_rows() -> None:
    result = run("companion-scenarios", responses="bad", rubric="companion-vulnerable")
    assert {each.result.overlay for each in result.samples} == {None}
    assert "overlays" not in result.metadata


@pytest.mark.parametrize(
    ("overlays", "said"),
    [
        ("{old: no-such}", "no such rubric"),
        ("{old: general}", "`general` doesn't extend `companion`"),
        ("{old: more.md}", "`more` and `companion` have different criteria"),
        ("[old]", "overlays"),
        ("{old: [x]}", "`overlays` of `old` is a list"),
    ],
)
def test_c13_an_overlay_that_cant_be_applied_is_refused(
    write: Write, overlays: str, said: str
) -> None:
    more = "---\nid: more\nextends: companion\nversion: 1.0.0\n---\n# More\n## Criteria\n"
    Path("more.md").write_text(f"{more}### Plain words\nPlain.\n```yaml rules\nbase: 1\n```\n")
    with pytest.raises(InputError) as caught:
        run(write(overlays))
    assert said in str(caught.value)


def test_c13_an_overlay_of_the_users_own_is_applied(write: Write) -> None:
    weights = "{appropriateness: 1, conversational_quality: 0, helpfulness: 0}"
    Path("own.md").write_text(
        f"---\nid: own\nextends: companion\nversion: 1.0.0\nweights: {weights}\n---\n# Own\n"
    )
    result = run(write("{old: own.md}"))
    first, second = result.samples
    assert (first.result.overlay, second.result.overlay) == ("own", None)
    assert first.scores["trust_boundaries"] == second.scores["trust_boundaries"]
    assert first.scores["overall_quality"] != second.scores["overall_quality"]


def test_c13_an_overlay_that_no_row_gets_is_warned_of(write: Write, jurybox: Jurybox) -> None:
    done = jurybox("run", write("{vulnerabel: companion-vulnerable}"))
    assert "no row has the demographic `vulnerabel`, which has an overlay" in done.err
    assert "overlay" not in jurybox("run", write("{old: companion-vulnerable}")).err


def test_c13_judges_see_the_focus_and_the_key_criteria_and_the_target_does_not() -> None:
    checklist = FILES.parse(FILES.read("bias-awareness"))
    row = Row(id="a", task="I feel low.", context="The user is 22.", scenario="emotional_support")
    prompt = Judging(rubric=COMPANION, checklist=checklist).score_question(
        row.sample(Response(text="Oh no.")), "Oh no."
    )
    context = prompt.text.partition("Conversation context: ")[2].partition("Provide your")[0]
    assert FOCUS in context
    assert KEY in context
    assert "The user is 22." in context
    assert "Example test cases" not in context
    asked = TargetPlan(model="m", generation=Generation(), timeout=60).request(row)
    assert FOCUS not in str(asked)
    unnamed = Row(id="a", task="I feel low.", scenario="another").sample(Response(text="Oh no."))
    assert (
        'context: ""'
        in Judging(rubric=COMPANION, checklist=checklist).score_question(unnamed, "Oh no.").text
    )


def test_c13_every_scenario_of_the_suite_has_its_focus() -> None:
    rows = {each.inputs.scenario for each in run("companion-scenarios", responses="good").samples}
    assert set(scenario_texts(COMPANION)) == rows


def test_c13_earlier_turns_are_where_the_prompt_shows_them() -> None:
    row = Row(id="a", task="And now?", messages=(Turn(role="user", content="Hi"),))
    template = Template(text="History:\n{{messages}}\nNow: {{task}}")
    target = TargetPlan(model="m", generation=Generation(), timeout=60, prompt=template.text)
    assert [each.content for each in target.request(row).messages] == [
        "History:\nuser: Hi\nNow: And now?"
    ]
    plain = TargetPlan(model="m", generation=Generation(), timeout=60, prompt="{{task}}")
    assert [each.content for each in plain.request(row).messages] == ["Hi", "And now?"]


def test_c13_a_judge_prompt_may_show_the_turns_apart_from_the_context() -> None:
    document = (
        "---\nid: own\nversion: 1.0.0\nscale: 1-5\n---\n# Own\n## Criteria\n### Tone\nKind.\n"
        "## Judge prompt\n```text\nTurns: {{messages}}\nContext: {{context}}\n"
        "Task: {{task}}\nResponse: {{response}}\nScore tone.\n```\n"
    )
    row = Row(id="a", task="T", context="C", messages=(Turn(role="user", content="Hi"),))
    judging = Judging(
        rubric=parse_rubric(document), checklist=FILES.parse(FILES.read("bias-awareness"))
    )
    text = judging.score_question(row.sample(Response(text="R")), "R").text
    assert text.startswith("Turns: user: Hi\nContext: C\n")


def test_c13_the_focus_is_shown_with_a_sample(jurybox: Jurybox) -> None:
    assert jurybox("run", "companion-scenarios", "--responses", "good").code == 0
    shown = jurybox("show", "last", "--sample", "emotional-support-lonely").out
    assert FOCUS in shown
    vulnerable = "age-demographic-dependency-vulnerable"
    shown = jurybox("show", "last", "--sample", vulnerable).out
    assert "overlay  companion-vulnerable" in shown
    data = json.loads(jurybox("show", "last", "--sample", vulnerable, "--json").out)
    assert data["overlay"] == "companion-vulnerable"
