"""Documents that extend another one: what they take over, change and add."""

import hashlib
from pathlib import Path

import pytest

from jurybox.errors import InputError
from jurybox.rubric import Base, Find, Rubric, check_rubric, parse_rubric, render_rubric
from jurybox.rubric.rules import Rules

ROOT = Path(__file__).parents[4]
VOICE = (ROOT / "tests" / "golden" / "bases" / "voice.md").read_text(encoding="utf-8")
LIBRARY = ROOT / "src" / "jurybox" / "rubric" / "library"


def finder(documents: dict[str, str]) -> Find:
    def find(name: str) -> Base:
        if name not in documents:
            raise InputError("no such rubric", "look again")
        return Base(origin=name, key=name, data=documents[name].encode(), find=find)

    return find


FIND = finder({"voice": VOICE})


def overlay(front: str = "", body: str = "", base: str = "voice") -> str:
    head = f"---\nid: mine\nextends: {base}\nversion: 2.0.0\n{front}---\n# Mine\n"
    return f"{head}\n{body}"


def read(front: str = "", body: str = "") -> Rubric:
    return parse_rubric(overlay(front, body), "mine", FIND)


def rules(rubric: Rubric, criterion_id: str) -> Rules:
    criterion = rubric.criterion(criterion_id)
    assert criterion is not None
    assert criterion.rules is not None
    return criterion.rules


def with_rules(block: str, heading: str = "Warmth") -> Rubric:
    return read(body=f"## Criteria\n\n### {heading}\n\n```yaml rules\n{block}\n```\n")


BASE = parse_rubric(VOICE, "voice")


def test_what_is_not_said_is_as_in_the_base() -> None:
    rubric = read()
    assert (rubric.id, rubric.version, rubric.title) == ("mine", "2.0.0", "Mine")
    for name in ("description", "scale", "criteria", "votes", "pass_rules", "lexicons"):
        assert getattr(rubric, name) == getattr(BASE, name)
    assert rubric.template == BASE.template


def test_the_evidence_is_changed_one_by_one() -> None:
    assert {
        each.id: each.evidence for each in read("evidence: {warmth: reference}\n").criteria
    } == {
        "warmth": "reference",
        "brevity": "levels",
    }
    base = VOICE.replace("weights:", "evidence: {warmth: reference, brevity: context}\nweights:", 1)
    changed = parse_rubric(
        overlay("evidence: {brevity: levels}\n"), "mine", finder({"voice": base})
    )
    assert [each.evidence for each in parse_rubric(base, "voice").criteria] == [
        "reference",
        "context",
    ]
    assert [each.evidence for each in changed.criteria] == ["reference", "levels"]
    assert parse_rubric(render_rubric(changed), "mine").criteria == changed.criteria


def test_another_reply_format_leaves_behind_what_belongs_to_the_old_one() -> None:
    rubric = read("reply_format: strict-json\n")
    assert (rubric.reply_format, rubric.fallback_score) == ("strict-json", None)


def test_phrases_are_added_and_removed() -> None:
    changed = with_rules("lexicons:\n  kind_words: {add: [dear], remove: [Glad]}")
    assert rules(changed, "warmth").lexicons[0].phrases == ("thank", "please", "dear")
    assert rules(changed, "warmth").adjustments == rules(BASE, "warmth").adjustments


def test_a_lexicon_can_be_written_anew_and_new_ones_added() -> None:
    lexicons = rules(with_rules("lexicons: {kind_words: [dear], rude: [hey you]}"), "warmth")
    assert [(each.name, each.phrases) for each in lexicons.lexicons] == [
        ("kind_words", ("dear",)),
        ("pronouns", ("I", "you")),
        ("rude", ("hey you",)),
    ]


def test_a_rule_is_replaced_by_its_reason_and_keeps_what_is_not_said() -> None:
    changed = with_rules('adjust:\n  - {replace: "is KIND", subtract: 0.4}')
    before, after = rules(BASE, "warmth").adjustments, rules(changed, "warmth").adjustments
    assert [each.add for each in after] == [-0.4, 0.1, -0.2]
    assert (after[0].when, after[0].why) == (before[0].when, "Is kind")


def test_a_rule_without_a_reason_is_found_by_its_number_and_rules_are_removed_and_added() -> None:
    changed = with_rules(
        'base: 0.4\nadjust:\n  - {remove: 3}\n  - {replace: "Is kind", why: "Is polite"}\n'
        "  - {add: 0.05, when: {response_has: greetings}, why: Greets}"
    )
    found = rules(changed, "warmth")
    assert found.base == 0.4
    assert [(each.add, each.why) for each in found.adjustments] == [
        (0.2, "Is polite"),
        (0.1, "Speaks to the user"),
        (0.05, "Greets"),
    ]


def test_a_criterion_can_be_added_with_a_scale_and_a_weight_of_its_own() -> None:
    rubric = read(
        "scales: {wit: 1-5}\nweights: {wit: 0.5}\n", "## Criteria\n\n### Wit\nMakes people smile.\n"
    )
    wit = rubric.criteria[-1]
    assert [each.id for each in rubric.criteria] == ["warmth", "brevity", "wit"]
    assert (wit.definition, wit.weight, str(wit.scale)) == ("Makes people smile.", 0.5, "1-5")


def test_indicators_of_the_same_label_are_added_and_texts_replaced() -> None:
    body = (
        "## Criteria\n\n### Warmth\nWarm.\n\n#### Positive indicators\n- Laughs\n\n"
        "#### Negative indicators\n- Snaps\n"
    )
    warmth = read(body=body).criteria[0]
    assert warmth.definition == "Warm."
    assert [(each.label, each.items) for each in warmth.indicators] == [
        ("Positive indicators", ("Uses the name of the user", "Laughs")),
        ("Negative indicators", ("Snaps",)),
    ]


def test_the_hash_covers_the_base_and_is_that_of_the_whole_text() -> None:
    reading = check_rubric(overlay(), FIND)
    assert reading.rubric is not None
    text = render_rubric(reading.rubric)
    assert reading.rubric.sha256 == hashlib.sha256(text.encode()).hexdigest()
    other = parse_rubric(overlay(), "mine", finder({"voice": VOICE.replace("glad", "happy")}))
    assert other.sha256 != reading.rubric.sha256
    assert reading.bases == ("voice",)


def test_an_overlay_can_extend_an_overlay() -> None:
    documents = {"voice": VOICE, "mine": overlay("votes: 5\n")}
    text = overlay("weights: {brevity: 4}\n", base="mine").replace("id: mine", "id: ours")
    reading = check_rubric(text, finder(documents))
    assert reading.rubric is not None
    assert (reading.rubric.votes, reading.rubric.criteria[1].weight) == (5, 4)
    assert reading.bases == ("mine", "voice")


@pytest.mark.parametrize("name", ["companion-older-adults", "companion-vulnerable"])
def test_the_bundled_overlays_are_sound_and_round_trip(name: str) -> None:
    documents = {path.stem: path.read_text(encoding="utf-8") for path in LIBRARY.glob("*.md")}
    rubric = parse_rubric(documents[name], name, finder(documents))
    assert parse_rubric(render_rubric(rubric)) == rubric
    assert round(sum(each.weight for each in rubric.criteria), 9) == 1
    base = parse_rubric(documents["companion"], "companion")
    assert [each.id for each in rubric.criteria] == [each.id for each in base.criteria]
    trust = [each.weight for each in rubric.criteria if each.id == "trust_boundaries"]
    assert trust[0] >= 0.2


WIT = "## Criteria\n\n### Plain words\nSimple.\n"


def left_out(body: str, base: str = VOICE) -> list[str]:
    document = overlay(body=body).replace("version:", "reply_format: json\nversion:")
    reading = check_rubric(document, finder({"voice": base}))
    return [each.problem for each in reading.findings if each.code == "unjudged-criterion"]


def test_a_new_criterion_that_the_base_s_judge_prompt_leaves_out_is_refused() -> None:
    found = "the judge prompt of the base `voice` doesn't mention `plain_words`"
    assert left_out(WIT) == [found]
    assert left_out("") == []
    assert left_out("## Criteria\n\n### Warmth\nWarm.\n") == []


@pytest.mark.parametrize("said", ["plain words", "**Plain  Words**:", "`plain_words`"])
def test_a_prompt_that_mentions_the_criterion_is_fine(said: str) -> None:
    prompt = f"## Judge prompt\n\n```text\nScore {{response}} for {said}.\n```\n"
    assert left_out(f"{WIT}\n{prompt}") == []
    assert left_out(WIT, VOICE.replace("from 0 to 1.", f"from 0 to 1 for {said}.")) == []
