"""The report as HTML: what needs attention first, nothing from outside, nothing that runs."""

import base64
import gzip
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from html import unescape
from html.parser import HTMLParser
from typing import TypeVar
from xml.etree import ElementTree as ET

import msgspec
import pytest
from jinja2 import Template

from jurybox.app.review_desk import ReviewDesk
from jurybox.calibration.bias_results import BiasMetric
from jurybox.calibration.calibration_record import (
    Agreement,
    CalibrationStatus,
    Ceiling,
    CriterionAgreement,
    JudgeBias,
)
from jurybox.reporting.attention import Badge, CardResponse, Concern, SampleCard, SamplePlace
from jurybox.reporting.compare_runs import compare_runs
from jurybox.reporting.html import html_render
from jurybox.reporting.html.extras import order_metrics
from jurybox.reporting.html.html_render import environment, report_html
from jurybox.reporting.html.markdown_text import rendered
from jurybox.reporting.html.page import Extras, FailureCause
from jurybox.reporting.reasons import Reason, reasons_of
from jurybox.reporting.review_text import ReviewAgreement, SubsetAgreement
from jurybox.reporting.stored import SampleRecord
from jurybox.reporting.view import finished_view
from jurybox.review.reviews import HumanVerdict
from jurybox.statistics.estimates import Estimate, Interval
from jurybox.statistics.jury_agreement import CriterionVotes, JudgeDissent, JuryAgreement
from verdicts import preferred

HOSTILE = (
    "</style></title><script>alert(1)</script><img src=x onerror=alert(1)>\"'>"
    "<svg/onload=alert(2)><a href=javascript:alert(3)>\u202e\u2066\x00\x07{{ 7 * 7 }}{% if %}"
)
T = TypeVar("T")
CRITERIA = ("correctness", "completeness", "soundness", "clarity", "usefulness")
KINDS = ["judged", "repeated", "calm", "unfinished", "empty", "rules", "pairs"]
VOID = {"meta", "link", "br", "img", "input"}
OURS = {
    "a", "article", "bdi", "body", "br", "button", "circle", "code", "dd", "desc", "details",
    "div", "dl", "dt", "figcaption", "figure", "footer", "h1", "h2", "h3", "head", "header",
    "html", "input", "label", "li", "line", "link", "main", "meta", "nav", "noscript",
    "option", "p", "rect", "script", "section", "select", "small", "span", "strong", "style",
    "summary", "svg",
    "table", "tbody", "td", "text", "th", "thead", "title", "tr", "ul",
}  # fmt: skip


class Outline(HTMLParser):
    """Reads a page and refuses what isn't ours: tags, handlers, addresses, unclosed elements."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[str] = []
        self.said: list[str] = []
        self.ids: list[str] = []
        self.parts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in OURS, tag
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), name
            assert name not in {"style", "src", "srcset", "action"}, name
            if name == "href" and (value or "").startswith("#") and "-" not in (value or ""):
                self.parts.append((value or "")[1:])
            elif name == "href":
                assert (value or "").startswith(
                    ("data:,", "/runs/", "/compare?", "#sample-", "#all-")
                )
            if name == "id":
                self.ids.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "h2":
            self.headings.append(data.strip())
        if not {"style", "script"} & set(self.open):
            self.said.append(data)


def outline(text: str) -> Outline:
    read = Outline()
    read.feed(text)
    read.close()
    assert read.open == []
    assert len(read.ids) == len(set(read.ids))
    assert set(read.parts) <= set(read.ids)
    return read


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_run_is_a_whole_page(made: Callable, report: Callable, kind: str) -> None:
    text = report(made(kind))
    read = outline(text)
    words = {"Ship", "Don't ship", "Not finished", "Needs revision", "No verdict"}
    assert read.headings[0] in words
    assert read.headings[-1] == "Metadata"
    assert "All samples" in read.headings
    for drawing in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        ET.fromstring(drawing)  # noqa: S314 - our own document


def test_the_verdict_comes_first_then_why_then_what_to_look_at(
    made: Callable, report: Callable
) -> None:
    text = report(made("judged"))
    assert text.count(" have no demographic.") == text.count("3 samples have no demographic.") == 1
    assert [head for head in outline(text).headings if head] == [
        "Don't ship",
        "Gates",
        "Why samples don't pass",
        "Needs attention",
        "Worst samples",
        "All samples",
        "Scores by criterion",
        "How scores are spread",
        "By scenario",
        "By demographic",
        "Agreement of the jury",
        "Latency and tokens",
        "Cost",
        "All other metrics",
        "Metadata",
    ]


def test_the_gravest_comes_first(made: Callable, report: Callable) -> None:
    text = report(made("judged"))
    kinds = re.findall(r'class="kind">(?:<bdi>)?([a-z ]+)', text)
    assert kinds == [
        "not scored",
        "no response",
        "failed",
        "lost votes",
        "to review",
    ]


def test_a_page_asks_for_nothing_and_runs_its_own_script_alone(
    made: Callable, report: Callable
) -> None:
    text = report(made("judged"))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert re.match(r"default-src 'none'; style-src 'sha256-\S+'; script-src 'sha256-", policy)
    assert "unsafe" not in policy
    around = re.sub(r"data-samples>[^<]*<|sha256-[^']*", "", text)  # any letters meet in base64
    assert not re.search(r"https?:|//[a-z]|url\(|@import", around)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy


def packed_in(text: str) -> list[dict]:
    """Return the samples in a report."""
    (packed,) = re.findall(r"data-samples>([^<]*)</script>", text)
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def samples_of(run: object) -> list[dict]:
    """Return a run's samples as a report has them."""
    packed = html_render.packed_samples(run.store, run.view, "overall_quality")
    return json.loads(gzip.decompress(base64.b64decode(packed.data)))


def cells(card: str) -> list[list[str]]:
    """Return the cells of a card's criteria as HTML: name, score, votes, confidence, reasoning."""
    rows = re.findall(r"<tr>(.*?)</tr>", card.partition("<tbody>")[2], re.DOTALL)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in rows]


def test_all_samples_are_inside(made: Callable, report: Callable) -> None:
    run = made("judged")
    samples = packed_in(report(run))
    assert [each["number"] for each in samples] == [2, 3, 1, 0]  # the worst first
    for each in samples:  # so that two reports on a run have the same bytes
        assert each["flags"] == sorted(each["flags"])
    assert any(len(each["flags"]) > 2 for each in samples)
    card = samples[-1]["card"]
    outline(card)
    assert re.findall(r"<dt[^>]*>(\w+)</dt>", card)[:2] == ["task", "response"]
    name, score, votes, confidence, opinions = cells(card)[0]
    assert (name, score, confidence) == ("<bdi>Accuracy</bdi>", "2", "moderate")
    assert "<desc>Votes on a scale from 0 to 2: 2.</desc>" in votes
    assert re.findall(r'<small class="muted">(.*?)</small>', opinions) == ["python/judges:one: 2"]
    # The criteria share a reasoning, which is given once.
    assert "as for <bdi>Accuracy</bdi>" in cells(card)[1][-1]
    assert card.partition("<details class=")[2].count("Right.") <= 3


def test_every_judge_explains_its_votes_and_a_fallback_score_is_no_vote(
    make_run: Callable, row: Callable
) -> None:
    text = '{"accuracy_score": %s, "faithfulness_score": 2, "rationale": "%s"}'
    replies = iter([text % (2, "Right."), text % (1, "**Vague.**"), text % (2, "Right.")])
    run = make_run([row("a", "x")], lambda _: next(replies), votes=3)
    _, _, votes, confidence, opinions = cells(samples_of(run)[0]["card"])[0]
    assert "<desc>Votes on a scale from 0 to 2: 2, 1, 2.</desc>" in votes
    assert votes.count("<circle") == 3
    assert confidence == "moderate"
    first, second = opinions.split("<small")[1:]
    assert ">python/judges:one: 2 (2 votes)</small>" in first
    assert ">Right.<" in first
    assert ">python/judges:one: 1</small>" in second
    assert "<strong>Vague.</strong>" in second
    run = make_run([row("a")], lambda _: "no idea", rubric="companion", run_id="run-f")
    _, _, votes, confidence, opinions = cells(samples_of(run)[0]["card"])[0]
    assert (votes, confidence) == ("none could be read; this is the fallback score", "")
    assert opinions.strip() == ""
    # What can't be read explains no score: the rules' reasons come first.
    *rules, last = reasons_of(SampleRecord(run.store.sample(run.row.id, 0)))
    assert rules
    assert (last.about, last.text) == ("the judge's reply could not be read", "no idea")


def test_hidden_characters_are_shown_in_the_words_of_a_judge_that_saw_a_pair_swapped(
    make_run: Callable, row: Callable
) -> None:
    def judge(_: str) -> str:
        return preferred("A", CRITERIA, f"A is better. {HOSTILE}")

    run = make_run([row("p", response_b=row("b").response)], judge, rubric="general")
    card = samples_of(run)[0]["card"]
    outline(card)
    assert '<span class="relabeled" data-here="B">A</span> is better.' in card
    assert not set("\u202e\u2066\x00\x07") & set(card)


def test_a_pair_shows_its_winner_with_what_each_judge_saw_first(made: Callable) -> None:
    name, _, votes, _, opinions = cells(samples_of(made("pairs"))[0]["card"])[0]
    judge = "python/judges:one"
    by = f"{judge}: prefers A; {judge}, shown swapped: prefers B"
    assert name == "<bdi>The better response</bdi>"
    assert "<desc>Votes on a scale from A over a tie to B: tie.</desc>" in votes
    assert re.findall("<small[^>]*>(.*?)</small>", opinions) == [by]


def test_every_reply_of_the_judges_is_inside(make_run: Callable, row: Callable) -> None:
    """E15: the report's search finds what any judge says, also in replies that can't be read."""
    replies = iter(
        [
            '{"accuracy_score": 2, "faithfulness_score": 2, "rationale": "It says \\"hold\\"."}',
            '{"accuracy_score": 2, "faithfulness_score": 1, "rationale": "No duration."}',
            *("I can't decide this.",) * 9,
        ]
    )
    run = make_run([row("a", "x")], lambda _: next(replies), votes=3)
    (sample,) = samples_of(run)
    _, _, below = sample["card"].partition("The judges' replies")
    assert [unescape(each) for each in re.findall("<dd[^>]*>(.*?)</dd>", below, re.DOTALL)] == [
        'accuracy_score: 2\nfaithfulness_score: 2\nrationale: It says "hold".',
        "accuracy_score: 2\nfaithfulness_score: 1\nrationale: No duration.",
        "I can't decide this.",
    ]


def test_samples_inside_are_laid_out_as_markdown_without_power(
    make_run: Callable, row: Callable
) -> None:
    answer = row("a", "**Yes** <b>sir</b>", context="Be brief.", metadata={"region": "north"})
    (sample,) = samples_of(make_run([answer], None, rubric="companion"))
    texts = dict(re.findall(r"<dt[^>]*>(.*?)</dt><dd[^>]*>(.*?)</dd>", sample["card"], re.DOTALL))
    assert texts["response"] == "<p><strong>Yes</strong> &lt;b&gt;sir&lt;/b&gt;</p>\n"
    assert texts["context"] == "Be brief."
    assert re.sub("<.*?>", " ", texts["metadata"]).split() == ["region", "north"]


def test_the_line_of_a_sample_has_its_reason_without_the_marks_of_markdown(
    make_run: Callable, row: Callable, report: Callable
) -> None:
    """E15: a row of the report is read at first sight, as on the pages."""
    reply = {"accuracy_score": 0, "faithfulness_score": 1, "rationale": "**Wrong**: `a` < b."}
    text = report(make_run([row("a", "x")], lambda _: json.dumps(reply)))
    for each in (text, packed_in(text)[0]["card"]):
        line = re.search(r'"card-why">(.*?)</summary>', each, re.DOTALL)[1]
        assert "Accuracy 0, Faithfulness 1: Wrong: a &lt; b." in line


def test_of_too_many_samples_for_one_file_the_worst_are_inside_and_it_says_so(
    made: Callable, report: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html_render, "LARGEST", 1)
    text = report(made("judged"))
    assert "Only the worst 1 of 4 samples fit into one file that browsers open" in text
    assert ">The worst samples <small>" in text
    assert [each["number"] for each in packed_in(text)] == [2]
    assert 'data-within=" in this file"' in text


def test_the_style_is_allowed_by_its_hash(made: Callable, report: Callable) -> None:
    text = report(made("calm"))
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    made_hash = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"'sha256-{made_hash}'" in text


def _spoiled(value: object) -> object:
    """Return plain data with something hostile in every text and in every name."""
    match value:
        case str():
            return HOSTILE + value + HOSTILE
        case dict():
            return {key: _spoiled(each) for key, each in value.items()}
        case list() | tuple():
            return [_spoiled(each) for each in value]
        case _:
            return value


CARD = SampleCard(
    number=3,
    id="id",
    repeat=1,
    metric="overall",
    value=0.5,
    passed=False,
    badges=(Badge(text="safety, confirmed by anna", tone="fails", meaning="meaning"),),
    winner="A",
    task="task",
    answers=(CardResponse(label="response", text="text", error="error"),),
    grounds=(Reason(about="about", text="text"),),
    reasoning="about: text",
)

SOME = Interval(low=0.1, high=0.9, level=0.95, method="Wilson")
TONE = CriterionAgreement(
    criterion="tone",
    scale=(1, 5),
    n=3,
    labels=3,
    unscored=0,
    exact=Estimate(value=2 / 3, n=3, interval=SOME),
    kappa=Estimate(value=None, n=3, reason="too few"),
    bias=JudgeBias(value=0.5, interval=SOME, direction="higher", sentence="", reason="reason"),
)
ALPHA = Estimate(value=0.5, n=2, interval=SOME)
PEOPLE = ReviewAgreement(
    reviews=1,
    samples=1,
    reviewers=("anna",),
    open=0,
    random=SubsetAgreement(samples=0),
    flagged=SubsetAgreement(samples=1, agreement=Agreement(n=3, loss=None, criteria=(TONE,))),
    people={"tone": Ceiling(people=2, n=2, exact=None, kappa=None, judge_kappa=None, alpha=ALPHA)},
    drawn=0,
    skipped=0,
    needed=10,
)
CALIBRATION = CalibrationStatus(
    id="id", date="date", rubric_version="1", n=3, agreement={"tone": 0.8}
)
VOTES = JuryAgreement(
    judges=("one", "two"),
    criteria=(
        CriterionVotes(
            criterion="tone",
            n=3,
            agree=2,
            interval=SOME,
            undecided=1,
            dissent=(
                JudgeDissent(judge="one", votes=2, differs=0),
                JudgeDissent(judge="two", votes=0, differs=0),
            ),
        ),
    ),
)
ORDER = tuple(
    BiasMetric(
        name="position.flips.tone",
        value=value,
        n=3,
        samples=3,
        interval=None if value is None else SOME,
        reason="too few",
    )
    for value in (None, None, 0.5)
)


CONCERN = Concern(
    kind="safety", meaning="meaning", count=9, samples=(SamplePlace(id="id", repeat=1, number=3),)
)
CAUSE = FailureCause(cause="cause", words="cause", count=1, share=0.5, query="flag=failed")


def spoiled(value: T) -> T:
    """Return a value with something hostile in every text."""
    return msgspec.convert(_spoiled(msgspec.to_builtins(value)), type(value))


@cache
def template() -> Template:
    return environment().get_template("report.html")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("linked", ["", "linked"])
def test_nothing_hostile_gets_through_in_any_field(
    made: Callable, page: Callable, kind: str, linked: str
) -> None:
    run = made(kind)
    plain = page(run)
    texts = {"suite", "run_id", "status", "metadata", "cost", "digest", "created_at", "notes"}
    view = msgspec.structs.replace(
        plain.view, **{name: _spoiled(getattr(plain.view, name)) for name in texts}
    )
    extras = Extras(
        worst=(spoiled(CARD),),
        baseline=msgspec.structs.replace(compare_runs(run.store, run.view, run.view), a=view),
        calibration=spoiled(CALIBRATION),
        people=spoiled(PEOPLE),
        jury_agreement=spoiled(VOTES),
        position=tuple(map(spoiled, ORDER)),
        unstable=(spoiled(CARD),),
    )
    spoiling = {"concerns": (spoiled(CONCERN),), "failures": (spoiled(CAUSE),)}
    shown = msgspec.structs.replace(plain, view=view, extras=extras, **spoiling)
    if linked:
        text = template().render(
            page=shown,
            sample_url="/runs/x/{}".format,
            list_url="/runs/x?{}".format,
            packed=None,
            **dict.fromkeys(("style", "script", "style_hash", "script_hash"), ""),
        )
        assert "/runs/x/3" in text
    else:
        text = report_html(shown)
    read = outline(text)
    assert "alert(1)" in "".join(read.said)
    assert "{{ 7 * 7 }}" in "".join(read.said)
    assert not set("\u202e\u2066\x00\x07") & set(text)


def test_hostile_samples_are_shown_as_they_were_written(
    make_run: Callable, row: Callable, report: Callable
) -> None:
    said = (
        '{"accuracy_score": 0, "faithfulness_score": 0, "rationale": "<script>alert(4)</script>"}'
    )
    rows = [
        row("<b>a</b>", HOSTILE * 10_000, task=HOSTILE, scenario=HOSTILE),
        row("b", "x" * 1_000_000, metadata={"demographic": HOSTILE}),
    ]
    text = report(make_run(rows, lambda _: said))
    read = outline(text)
    assert "<script>alert(4)</script>" in "".join(read.said)
    assert "980,000 more characters omitted." in text
    assert len(text) < 1_000_000
    for each in packed_in(text):
        card = outline(each["card"])
        assert "<script>alert(4)</script>" in "".join(card.said)
        assert not set("\u202e\u2066\x00\x07") & set(each["card"])


def test_an_unfinished_run_says_so(made: Callable, report: Callable) -> None:
    text = report(made("unfinished"))
    assert "not finished: 3 of 4 samples" in text
    assert "The run has to be finished before anything is decided</bdi>; <bdi>so far" in text
    assert (
        "not yet: the run isn&#39;t finished" in text or "not yet: the run isn't finished" in text
    )


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (None, "Never calibrated"),
        ("can't be read", "can&#39;t be read"),
        (CALIBRATION, "calibrated: tone 0.8"),
    ],
)
def test_the_report_says_how_the_judges_stand_with_people(
    made: Callable, report: Callable, told: object, said: str
) -> None:
    assert said in report(made("calm"), calibration=told)


def test_nothing_is_said_of_people_where_nobody_looked(made: Callable, report: Callable) -> None:
    assert "and people" not in report(made("calm"))


def test_reviews_so_far_are_told(made: Callable, report: Callable) -> None:
    text = report(made("calm"), people=msgspec.structs.replace(PEOPLE, reviewers=("<b>Ann</b>",)))
    assert "as people on tone in 67% of flagged samples (2 of 3). Flagged" in text
    count = '<a href="#all-samples?review=reviewed">1 sample</a>'
    assert f"1 review of {count} by <bdi>1 person: &lt;b&gt;Ann&lt;/b&gt;" in text


def test_metrics_of_the_run_are_on_the_page(made: Callable, report: Callable) -> None:
    text = report(made("judged"))
    said = " ".join("".join(outline(text).said).split())
    for each in ("run-a", "4 samples", "pass_rate >= 0.85", "-60.0 points", "Wrong.", "Task poor"):
        assert each in said
    assert "95% interval" in said


def test_only_the_page_itself_loads_jinja() -> None:
    program = "import jurybox.reporting.reports, jurybox.reporting.html.html_render, sys"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}; print('jinja2' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"


def test_an_unreadable_vote_is_not_called_valid(
    make_run: Callable, row: Callable, report: Callable
) -> None:
    made = make_run([row("a"), row("b")], lambda _: "no idea", rubric="companion")
    text = report(made)
    assert "In 2 of 2 samples the judge&#39;s reply could not be read: only the rubric" in text
    assert "<dt>valid</dt><dd>0</dd>" in text
    assert ", replaced by the fallback score</dd>" in text
    assert "<dt>independent</dt>" not in text


def test_a_decision_is_the_verdict_and_its_reasons_the_sentence(
    make_run: Callable, row: Callable, report: Callable
) -> None:
    text = report(make_run([row("a", "ok.")], None, rubric="companion"))
    verdict = text[text.index('id="decision"') : text.index("</section>")]
    assert outline(text).headings[0] == "Needs revision"
    assert "Personalization &amp; continuity averages 0.400, below 0.5" in verdict
    assert re.findall(r"\d\.\d{4}|\w_\w", re.sub("<[^>]+>", "", verdict)) == []
    assert verdict.count("Needs revision: average score") == 1
    assert "No sample is flagged; the verdict comes from the averages." in text
    # Without the edge of what needs attention.
    assert 'class="attention undecided"' in text


def test_a_wide_table_of_a_text_can_be_scrolled_by_keyboard() -> None:
    html = str(rendered("| a | b |\n| --- | --: |\n| 1 | 2 |"))
    assert html.startswith(
        '<div class="scroll" role="group" aria-label="Table" tabindex="0"><table>'
    )
    # By a class, because the policy of the pages blocks a style in a text.
    assert "style=" not in html
    assert '<td class="right">2</td>' in html


@pytest.mark.parametrize(
    "text",
    [
        "| a | b |\n| --- | --- |\n| 1 | 2 | Kind **regards** |",
        "> | a | b |\n> | --- | --- |\n> 1 | 2 | Kind | regards.",
        "- see\n\n  | a |\n  | --- |\n  | 1 | 2 | Kind regards",
        "```json Kind regards\n{}\n```",
        '[a](http://b "Kind regards") ![c](d "Kind")',
        "*Kind* regards\n\n[a]: http://b 'Kind regards'",
    ],
)
def test_no_word_of_a_document_is_hidden(text: str) -> None:
    shown = str(rendered(text).striptags())
    assert set(re.findall(r"\w+", text)) == set(re.findall(r"\w+", shown))


def test_a_run_that_passes_says_ship(made: Callable, report: Callable) -> None:
    text = report(made("calm"))
    assert outline(text).headings[0] == "Ship"
    verdict = re.sub("<[^>]+>", "", text[text.index('id="decision"') :])
    assert "Every gate passes. Not certain yet: pass rate" in verdict
    assert "No sample is flagged." in text
    assert 'class="attention calm"' in text


def test_the_headlines_say_how_they_changed_against_the_baseline(
    made: Callable, make_run: Callable, row: Callable, report: Callable
) -> None:
    good = '{"accuracy_score": 2, "faithfulness_score": 2, "rationale": "Right."}'
    before, now = make_run([row("good")], lambda _: good, run_id="before"), made("judged")
    text = report(now, baseline=compare_runs(now.store, before.view, now.view))
    verdict = text[text.index('id="decision"') : text.index("</section>")]
    assert "points against" not in verdict  # of other samples
    again = make_run([row("good")], lambda _: good.replace('": 2', '": 0'), run_id="again")
    worse = report(again, baseline=compare_runs(now.store, before.view, again.view))
    assert "-100.0 points against before" in worse
    equal = "equal in every metric on the 1 sample in both"
    assert f"Against <bdi>before</bdi>: <bdi>{equal}</bdi>" in verdict


def test_a_failed_gate_is_the_reason_not_to_ship(made: Callable, report: Callable) -> None:
    sentence = re.search(r'id="decision-head">[^<]*</h2>\s*<p>(.*?)</p>', report(made("judged")))
    assert "pass rate is 25.0% and has to be at least 85%" in sentence[1]
    assert sentence[1].count(";") <= 2


def test_a_rate_of_unstable_pairs_needs_pairs(made: Callable, report: Callable) -> None:
    assert "unstable_rate" not in report(made("judged"))
    assert "unstable_rate" in report(made("pairs"))


def test_pairs_that_the_order_decided_are_shown_with_their_reasoning(
    made: Callable, report: Callable
) -> None:
    text = report(made("pairs"))
    section = text[text.index('id="unstable"') : text.index('id="metrics"')]
    assert section.count('<details class="card">') == 3
    assert "The first is better." in section
    assert "response B" in section


def test_reviewed_pairs_stay_among_the_unstable_ones(made: Callable, report: Callable) -> None:
    run = made("pairs")
    desk = ReviewDesk(run.store, run.row)
    desk.submit(0, "anna", HumanVerdict(winner="A"), shown=desk.case(0, "anna").shown)
    run = msgspec.structs.replace(run, view=finished_view(run.row, run.store))
    assert run.view.release.settled["unstable"] == (0,)
    text = report(run)
    part = text[text.index('id="unstable"') :].partition("</section>")[0]
    assert re.findall(r'"sample"><bdi>(p\d)', part) == ["p0", "p1", "p2"]


def test_a_report_on_pairs_tells_what_the_order_does(made: Callable, report: Callable) -> None:
    text = report(made("many pairs"))
    section = text[text.index('id="position"') : text.index('id="jury"')]
    said = " ".join(" ".join(outline(text).said).split())
    assert "The first position wins, in calls with a winner 100.0%" in said
    assert section.count("The preference flips with the order") == 5


def test_of_a_large_run_the_first_pairs_are_looked_at(made: Callable) -> None:
    run = made("many pairs")
    found, *_ = order_metrics(run.store, run.row, most=11)
    assert (found.value, found.samples, found.n) == (1.0, 11, 22)


def test_e9_a_single_vote_is_never_sure_and_the_report_says_so(
    made: Callable, report: Callable
) -> None:
    assert "Moderate: most do, or there is only one vote." in report(made("judged"))


def test_votes_are_held_together_by_criterion(
    make_run: Callable, row: Callable, report: Callable
) -> None:
    good = '{"accuracy_score": 2, "faithfulness_score": 2, "rationale": "Right."}'
    text = report(make_run([row("a")], lambda _: good, votes=3))
    said = " ".join(" ".join(outline(text).said).split())
    assert "All votes agree 95% interval No majority n Accuracy 100.0% 20.7% to 100.0% 0 1" in said


def test_without_a_rule_to_pass_nothing_fails(
    make_run: Callable, row: Callable, report: Callable
) -> None:
    rows = [row("late", "", late=True), row("good")]
    text = report(make_run(rows, None, rubric="companion"))
    cards = text[text.index('id="worst"') :]
    assert ">failed<" not in cards.partition('id="all-samples"')[0]


def test_narrow_pages_break_long_names_rather_than_hide_metrics() -> None:
    from jurybox.reporting.html.html_render import style_sheet

    usual, narrow = style_sheet().split("@media (max-width: 620px)")
    rule = r"tbody th bdi \{[^}]*max-width: (\d+)em;[^}]*\}"
    assert "overflow-wrap: break-word" in re.search(rule, usual)[0]
    # Half of the 26 em that a narrow screen has, at 15 pixels each.
    assert int(re.search(rule, narrow)[1]) <= 13
