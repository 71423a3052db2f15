import msgspec
import pytest

from jurybox.rubric import parse_rubric
from jurybox.scoring.rules.rule_compiler import CompiledRules, compile_rules, score_by_rules
from jurybox.scoring.rules.rule_report import AutomatedReport

HEAD = "---\nid: x\nversion: 1.0.0\nscale: 0.0-1.0\n{front}---\n# X\n## Criteria\n"
FENCE = "```"


def document(*rules: str, front: str = "", after: str = "") -> str:
    """Return a document with a criterion `c1`, `c2` ... for each block of rules."""
    blocks = [
        f"### C{number}\n" + (f"{FENCE}yaml rules\n{text}\n{FENCE}\n" if text else "")
        for number, text in enumerate(rules, start=1)
    ]
    return HEAD.format(front=front) + "".join(blocks) + after


def compiled(text: str) -> CompiledRules:
    rules = compile_rules(parse_rubric(text))
    assert rules is not None
    return rules


def scores(text: str, response: str = "", task: str = "") -> list[float]:
    report = score_by_rules(compiled(text), task=task, response=response)
    return [criterion.score for criterion in report.criteria]


def rule(condition: str, amount: str = "add: 0.3") -> str:
    return document(f"base: 0.5\nadjust:\n  - {{{amount}, when: {condition}}}")


def test_a_criterion_without_rules_has_no_score_and_then_there_is_no_overall_one() -> None:
    text = document("base: 0.5", "")
    report = score_by_rules(compiled(text), task="", response="")
    assert [criterion.id for criterion in report.criteria] == ["c1"]
    assert report.overall is None
    assert report.band is None
    assert report.scores == {"c1": 0.5}


def test_a_criterion_without_rules_and_without_weight_does_not_matter() -> None:
    text = document("base: 0.5", "", front="weights: {c2: 0}\n")
    assert score_by_rules(compiled(text), task="", response="").overall == 0.5


@pytest.mark.parametrize(
    ("condition", "task", "response", "holds"),
    [
        ("{response_has: [sad]}", "", "sad", True),
        ("{response_has: [sad]}", "sad", "", False),
        ("{response_lacks: [sad]}", "sad", "", True),
        ("{response_lacks: [sad]}", "", "sad", False),
        ("{user_has: [sad]}", "sad", "", True),
        ("{user_has: [sad]}", "", "sad", False),
        ("{user_lacks: [sad]}", "", "sad", True),
        ("{user_lacks: [sad]}", "sad", "", False),
        ("{signal: question}", "", "a?", True),
        ("{signal: question}", "a?", "", False),
        ("{no_signal: question}", "a?", "", True),
        ("{no_signal: question}", "", "a?", False),
        ("{response_words: 2-3}", "", "a", False),
        ("{response_words: 2-3}", "", "a b", True),
        ("{response_words: 2-3}", "", "a b c", True),
        ("{response_words: 2-3}", "", "a b c d", False),
        ('{response_words: "< 2"}', "", "a", True),
        ('{response_words: "< 2"}', "", "a b", False),
        ('{response_words: "== 0"}', "a", "", True),
        ('{user_words: ">= 2"}', "a b", "", True),
        ('{user_words: ">= 2"}', "a", "a b", False),
        ("{user_has: [sad], response_has: [sorry]}", "sad", "sorry", True),
        ("{user_has: [sad], response_has: [sorry]}", "sad", "", False),
        ("[{user_has: [sad]}, {response_has: [sorry]}]", "sad", "", True),
        ("[{user_has: [sad]}, {response_has: [sorry]}]", "", "sorry", True),
        ("[{user_has: [sad]}, {response_has: [sorry]}]", "", "", False),
        ("{response_has: [sad], response_lacks: [so sad]}", "", "sad", True),
        ("{response_has: [sad], response_lacks: [so sad]}", "", "so sad", False),
    ],
)
def test_each_condition_holds_when_the_document_says_so(
    condition: str, task: str, response: str, *, holds: bool
) -> None:
    assert scores(rule(condition), response, task) == [0.8 if holds else 0.5]


def test_an_adjustment_is_made_once_however_many_of_its_sets_hold() -> None:
    text = rule("[{response_has: [a]}, {response_has: [b]}]")
    report = score_by_rules(compiled(text), task="", response="b a")
    (fired,) = report.criteria[0].trace
    assert report.criteria[0].score == 0.8
    assert [quote.words for quote in fired.quotes] == ["a", "b"]


def test_only_the_sets_that_hold_are_quoted() -> None:
    text = rule("[{response_has: [a], user_has: [a]}, {response_has: [b]}]")
    report = score_by_rules(compiled(text), task="", response="a b")
    assert [quote.words for quote in report.criteria[0].trace[0].quotes] == ["b"]


def test_lexicons_are_those_of_the_criterion_and_those_that_all_share() -> None:
    text = document(
        "base: 0.0\nlexicons: {own: [here]}\nadjust:\n"
        "  - {add: 0.1, when: {response_has: own}}\n"
        "  - {add: 0.2, when: {response_has: shared}}",
        "base: 0.0\nlexicons: {own: [there]}\nadjust:\n"
        "  - {add: 0.1, when: {response_has: own}}\n"
        "  - {add: 0.2, when: {response_has: shared}}",
        after=f"## Lexicons\n{FENCE}yaml lexicons\nshared: [everywhere]\n{FENCE}\n",
    )
    assert scores(text, "here") == [0.1, 0.0]
    assert scores(text, "there") == [0.0, 0.1]
    assert scores(text, "everywhere") == [0.2, 0.2]
    report = score_by_rules(compiled(text), task="", response="Everywhere")
    assert [quote.source for quote in report.criteria[1].trace[0].quotes] == ["shared"]


def test_what_was_measured_is_told_for_what_rules_ask_about_and_nothing_else() -> None:
    text = rule('[{signal: question}, {response_words: "> 50"}, {user_words: "> 50"}]')
    report = score_by_rules(compiled(text), task="a b c", response="why? why?")
    assert report.measures == {"question": 2, "response_words": 2, "user_words": 3}


def test_what_the_safety_scan_finds_is_a_signal() -> None:
    rules = compiled(rule("{signal: unsafe_content}", "subtract: 0.5"))
    danger = "Go and kill yourself"
    assert score_by_rules(rules, task="", response=danger).criteria[0].score == 0.0


def test_words_are_quoted_whole_and_as_they_are_written() -> None:
    report = score_by_rules(
        compiled(rule("{response_has: [stress, as we said]}")),
        task="",
        response="\u00df  Stre\u00adssful, as\nwe  said\u2026",
    )
    quotes = report.criteria[0].trace[0].quotes
    assert [(quote.words, quote.start) for quote in quotes] == [
        ("Stre\u00adssful", 3),
        ("as\nwe  said", 15),
    ]


def test_a_band_without_a_name_is_none() -> None:
    table = "| Score | Meaning |\n| --- | --- |\n| 1.0 | Good |\n| 0.0 | Bad |\n"
    text = document("base: 0.0").replace("### C1\n", f"### C1\n{table}\n")
    assert score_by_rules(compiled(text), task="", response="").criteria[0].band is None


@pytest.mark.parametrize(
    "text", ["", " ", "\n", "\x00", "\ud800", "\ud83d sad \ude00", "\u200d", "\U0010ffff", "\u0301"]
)
def test_any_text_gets_a_report_that_can_be_stored(text: str) -> None:
    conditions = "[{response_has: [sad]}, {signal: formatting}, {signal: helpful_question}]"
    rules = compiled(rule(conditions))
    report = score_by_rules(rules, task=text, response=f"{text} sad {text}")
    assert report.criteria[0].score == 0.8
    assert msgspec.json.decode(msgspec.json.encode(report), type=AutomatedReport) == report


def test_a_million_characters_are_scored_in_time_that_grows_with_the_length_alone() -> None:
    conditions = "[{response_has: [i, sad, you]}, {user_has: [i]}, {signal: shared_words}]"
    text = "i am sad, are you? " * 50_000
    report = score_by_rules(compiled(rule(conditions)), task=text, response=text)
    assert report.criteria[0].score == 0.8
    assert len(report.criteria[0].trace[0].quotes) < 20


def test_overall_score_needs_every_criterion_that_counts() -> None:
    rubric = parse_rubric(document("base: 0.5", "base: 0.5", front="weights: {c1: 3, c2: 1}\n"))
    assert rubric.overall({"c1": 1.0, "c2": 0.0}) == 0.75
    assert rubric.overall({"c1": 1.0}) is None
