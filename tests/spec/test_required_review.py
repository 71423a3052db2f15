"""E11: what a release waits for, how a review settles it, and what overrides it."""

import base64
import gzip
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from commands import Done, call
from jurybox.reporting.run_verdict import Verdict, VerdictReason, verdict_of
from jurybox.reporting.view import finished_view
from jurybox.storage import open_store
from pages_client import pages_of

ITEMS = ("position", "verbosity", "self_enhancement", "formatting", "authority")
JUDGES = f"""
import json
import re

ITEMS = {ITEMS!r}
SCORES = iter((1, 3, 5) * 99)


def _reply(prompt, score, concerns=(), why="It answers the question."):
    ids = dict.fromkeys(re.findall(r"^### .*?\\(`(\\w+)`", prompt, re.M))
    return json.dumps({{
        "reasoning": {{name: f"{{why}} ({{name}})" for name in ids}},
        "bias_checklist": {{item: f"Looked at {{item}}; the text alone counts." for item in ITEMS}},
        "safety_concerns": list(concerns),
        "scores": {{name: score for name in ids}},
    }})


def calm(prompt):
    return _reply(prompt, 5)


def alarmed(prompt):
    return _reply(prompt, 5, ["It opens a backdoor for anyone who knows the header."])


def mute(prompt):
    return "I would rather not say."


def partly(prompt):
    return mute(prompt) if "Task 1" in prompt else calm(prompt)


def garbled(prompt):
    said = {{"safety_concerns": ["It opens a backdoor for anyone who knows."], "scores": {{}}}}
    return json.dumps(said) if "Task 1" in prompt else calm(prompt)


def torn(prompt):
    return _reply(prompt, next(SCORES))
"""
RUBRIC = """---
id: waits
version: 1.0.0
scale: 1-5
votes: 1
{more}
---
# Waits

## Criteria

### Help
It helps.
"""
GATES = 'gates: ["overall_mean >= 0.5"]\npass: ["help >= 3"]'
DECISIONS = """decisions:
  - {decide: rework, when_any: ["overall_mean < 0.3"]}
  - {decide: deploy, when_all: ["overall_mean >= 0.7"]}
  - {decide: ab_test}"""

Jurybox = Callable[..., Done]


@pytest.fixture
def jurybox(monkeypatch: pytest.MonkeyPatch) -> Jurybox:
    Path("judges.py").write_text(JUDGES)
    return partial(call, monkeypatch)


def suite(judge: str, more: str = GATES, rubric: str | None = None, rows: int = 2) -> None:
    Path("waits.md").write_text(RUBRIC.format(more=more))
    lines = [{"id": f"q{n}", "task": f"Task {n}", "response": "Do it."} for n in range(rows)]
    Path("rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    Path("suite.yaml").write_text(
        f"suite: waits\nrubric: {rubric or 'waits.md'}\ndataset: rows.jsonl\n"
        f"judge: {{models: [python/judges:{judge}]}}\n"
    )


def shown(jurybox: Jurybox, *more: str) -> dict[str, Any]:
    return json.loads(jurybox("show", "last", "--json", *more).out)


def review(number: int, *, reviewer: str = "anna", **verdict: object) -> None:
    """Give a verdict as a program does: by the API of `jurybox serve`."""
    store = open_store(".jurybox/jurybox.db")
    pages = pages_of(store)
    token = pages.get("/api/session").json()["csrf"]
    run = store.runs()[0]
    given = {"scores": {"help": 4}, **verdict}
    answer = pages.post(
        f"/api/runs/{run.id}/reviews",
        json={"number": number, "reviewer": reviewer, "verdict": given},
        headers={"X-Jurybox-CSRF": token},
    )
    assert answer.status_code == 200, answer.text
    store.close()


def samples_of(query: str) -> list[str]:
    """Return the ids of the samples that a link leads to."""
    store = open_store(".jurybox/jurybox.db")
    pages = pages_of(store)
    text = pages.get(f"/runs/{store.runs()[0].id}/samples?{query}").text
    store.close()
    return re.findall(r"<bdi>(q\d)</bdi></a>", text)


def page_of(place: str) -> str:
    """Return the page of a sample of the last run, or their list."""
    store = open_store(".jurybox/jurybox.db")
    pages = pages_of(store)
    text = pages.get(f"/runs/{store.runs()[0].id}/samples{place}").text
    store.close()
    return text


def facets() -> dict[str, int]:
    """Return the facets of the samples of the last run, with their counts."""
    found = re.findall(r">([^<>]+) <small>(\d+)</small>", page_of(""))
    return {name: int(count) for name, count in found}


def verdict() -> Verdict:
    """Return what the pages say of the last run."""
    store = open_store(".jurybox/jurybox.db")
    said = verdict_of(finished_view(store.runs()[0], store))
    store.close()
    return said


def samples_in_report() -> list[dict[str, Any]]:
    """Return the samples in the report."""
    (packed,) = re.findall(r"data-samples>([^<]*)</script>", Path("report.html").read_text())
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def badges_of(sample: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the badges of a sample in the report, each with its tone."""
    return re.findall(r'class="badge (\w+)"[^>]*><bdi>(.*?)</bdi>', sample["card"])


def test_e11_a_flagged_run_is_not_release_ready_and_says_why(jurybox: Jurybox) -> None:
    suite("alarmed")
    done = jurybox("run", "suite.yaml")
    assert done.code == 1
    assert done.out.startswith("Awaiting review: every gate passes; 2 samples need a review")
    run = shown(jurybox)
    assert run["release_ready"] is False
    assert run["release_reasons"] == ["awaiting review: 2 samples (safety)"]
    (gate,) = run["gates"]
    assert (gate["gate"], gate["value"], gate["passed"]) == ("overall_mean >= 0.5", 1.0, True)
    assert (run["review"]["awaiting"], run["summary"]["pass_rate"]) == (2, 1.0)
    assert jurybox("gate", "last").code == 1
    assert jurybox("verify", "last").code == 0
    for name in ("report.md", "report.html", "report.junit.xml"):
        jurybox("report", "last", "-o", name)
        stated = "2 samples need a review" if name.endswith("html") else "awaiting review: 2"
        assert stated in Path(name).read_text()


def test_e11_without_a_flag_nothing_waits(jurybox: Jurybox) -> None:
    suite("calm")
    assert jurybox("run", "suite.yaml").code == 0
    assert shown(jurybox)["release_ready"] is True
    assert samples_of("review=awaiting") == []


def test_e11_dismissed_flags_release_and_a_confirmed_one_never_does(jurybox: Jurybox) -> None:
    suite("alarmed")
    jurybox("run", "suite.yaml")
    assert "1 of 1 gates pass, awaiting review: 2 samples (safety)" in jurybox("runs").out
    review(0, safety_concern=False)
    assert shown(jurybox)["review"]["awaiting"] == 1
    # What a review has settled is queued no more.
    assert (shown(jurybox)["review"]["queued"], shown(jurybox)["review"]["reviewed"]) == (1, 1)
    assert shown(jurybox)["review"]["reasons"] == {"safety": 1}
    # The counts of the page and of the report lead to these samples and no others.
    assert samples_of("review=open") == samples_of("review=open&flag=safety") == ["q1"]
    assert samples_of("review=awaiting") == ["q1"]
    assert "A judge sees a danger (dismissed by anna)." in page_of("/0")
    assert re.findall(">(safety[, a-z]*)</span>", page_of("?sort=number")) == [
        "safety, dismissed by anna",
        "safety",
    ]
    assert "Needs review: a judge sees a danger." in page_of("/1")
    jurybox("report", "last", "-o", "report.html")
    first, second = samples_in_report()
    # The report has the badges and the states of review of the page.
    assert badges_of(first)[1:] == [("warned", "safety, dismissed by anna")]
    assert badges_of(second)[1:] == [("fails", "safety")]
    assert (first["open"], first["states"]) == ([], ["done", "dismissed", "reviewed"])
    assert '<bdi>anna</bdi></th><td data-name="verdict">Help 4, no safety concern<' in first["card"]
    assert (second["open"], second["states"]) == (["safety"], ["open", "awaiting"])
    review(1)  # scores alone neither confirm nor dismiss the flag
    assert shown(jurybox)["review"]["awaiting"] == 1
    review(1, safety_concern=False)
    assert shown(jurybox)["release_ready"] is True
    assert (shown(jurybox)["review"]["queued"], shown(jurybox)["review"]["reasons"]) == (0, {})
    assert json.loads(jurybox("runs", "--json").out)["runs"][0]["queued"] == 0
    assert " gates pass " in jurybox("runs").out.replace("1 of 1 gates", "")
    assert jurybox("gate", "last").code == 0
    review(1, reviewer="ben", safety_concern=True)
    assert "A judge sees a danger (confirmed by ben; dismissed by anna)." in page_of("/1")
    run = shown(jurybox)
    assert run["release_ready"] is False
    assert run["release_reasons"] == ["safety concern that reviewers disagree about: 1 sample"]
    assert (run["review"]["confirmed"], run["review"]["disputed"]) == (0, 1)
    assert "safety concern that reviewers disagree about: 1 sample" in jurybox("runs").out
    said = verdict()
    assert (said.word, said.tone) == ("Don't ship", "fails")
    assert said.sentence == "1 safety concern that reviewers disagree about"
    assert jurybox("gate", "last", "--accept-unreviewed").code == 1
    assert jurybox("verify", "last").code == 0


def needs_attention() -> list[str]:
    """Return the lines under "Needs attention" on the page of the last run, without links."""
    store = open_store(".jurybox/jurybox.db")
    pages = pages_of(store)
    text = pages.get(f"/runs/{store.runs()[0].id}").text
    store.close()
    part = text[text.index('id="attention"') :].partition("</section>")[0]
    items = re.findall(r'<li class="concern.*?</li>', part, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]*>", "", each).split()) for each in items]


def test_e11_a_safety_gate_says_what_people_decided_on_its_flags(jurybox: Jurybox) -> None:
    suite("alarmed", 'gates: ["safety_rate <= 0"]', rows=3)
    jurybox("run", "suite.yaml")
    rule = "safety rate is {} and has to be at most 0%"
    said = f"{rule.format('100.0%')} (judges flagged 3 samples)"
    assert verdict().reasons[0] == VerdictReason(said, "flag=safety", "gate")
    review(0, safety_concern=False)
    said = f"{rule.format('66.7%')} (judges flagged 3 samples, people dismissed 1)"
    assert verdict().reasons[0].text == said
    review(1, safety_concern=True)
    people = "people dismissed 1 and confirmed 1"
    for command in ("show", "gate"):
        said = f"safety_rate  judges flagged 3 samples, {people}"
        assert said in " ".join(jurybox(command, "last").out.split("\n"))
    jurybox("report", "last", "-o", "report.html")
    report = Path("report.html").read_text()
    row = report[report.index('<code class="muted"><bdi>safety_rate') :].partition("</tr>")[0]
    said = "judges flagged 3 samples, people dismissed 1, confirmed 1"
    assert said in re.sub("<[^>]*>", "", row)
    assert samples_of("flag=safety") == ["q1", "q0", "q2"]
    assert samples_of("review=dismissed") == ["q0"]
    review(1, safety_concern=False)
    review(2, safety_concern=False)
    assert jurybox("gate", "last").code == 0
    data = json.loads(jurybox("show", "last", "--json").out)
    assert (data["gates"][0]["value"], data["release_ready"]) == (0, True)
    assert data["summary"]["safety_rate"] == 1  # the judges' flags
    assert jurybox("verify", "last").code == 0


def test_e11_a_safety_gate_counts_what_only_people_see(jurybox: Jurybox) -> None:
    suite("calm", 'gates: ["overall_mean >= 0.5", "safety_rate <= 0"]', rows=2)
    jurybox("run", "suite.yaml")
    review(1, safety_concern=True)
    done = jurybox("gate", "last")
    assert done.code == 1
    assert "judges flagged 0 samples, people raised 1 more" in " ".join(done.out.split())
    corrected = " ".join(jurybox("gate", "last", "--corrected").out.split())
    assert "safety_rate <= 0 50.0% 9.5% to 90.5% no -50.0 points" in corrected


def test_e11_people_examine_for_safety_what_no_judge_did(jurybox: Jurybox) -> None:
    suite("partly", 'gates: ["safety_rate <= 0"]', rows=4)
    jurybox("run", "suite.yaml")
    review(1, safety_concern=True)
    (gate,) = json.loads(jurybox("gate", "last", "--json").out)["gates"]
    assert gate["value"] == pytest.approx(1 / 4)  # of 3 with a vote and this one
    assert gate["interval"]["low"] == pytest.approx(0.0456, abs=1e-4)  # Wilson's for 1 of 4


def test_e11_confirming_a_danger_in_an_unreadable_reply_lowers_no_rate(jurybox: Jurybox) -> None:
    suite("garbled", 'gates: ["safety_rate <= 0.2"]', rows=4)
    jurybox("run", "suite.yaml")
    before = json.loads(jurybox("gate", "last", "--json").out)["gates"]
    review(1, safety_concern=True)
    assert json.loads(jurybox("gate", "last", "--json").out)["gates"] == before
    assert before[0]["passed"] is False


def test_e11_what_reviewers_confirm_comes_first_and_who_disagrees_is_named(
    jurybox: Jurybox,
) -> None:
    suite("alarmed", rows=3)
    jurybox("run", "suite.yaml")
    review(0, safety_concern=True)
    review(1, safety_concern=True)
    review(1, reviewer="ben", safety_concern=False)
    disputed = "1 safety concern that reviewers disagree about"
    assert needs_attention()[:3] == [
        "concern by people 1 safety concern confirmed by reviewers q0",
        f"concern disputed {disputed}, until one of them changes their review q1",
        "safety 1 of 3 samples still to be reviewed: a judge sees a danger q2",
    ]
    assert samples_of("review=confirmed") == ["q0"]
    assert samples_of("review=disputed") == ["q1"]
    assert {"concern by people": 1, "concern disputed": 1}.items() <= facets().items()
    assert [
        page_of(f"?review={name}").count(">safety: ") for name in ("confirmed", "disputed")
    ] == [
        1,
        1,
    ]
    assert [(each.text, each.query) for each in verdict().reasons[:2]] == [
        ("1 safety concern confirmed by reviewers", "review=confirmed"),
        (disputed, "review=disputed"),
    ]
    reasons = shown(jurybox)["release_reasons"]
    assert reasons[-2:] == [
        "safety concern confirmed by reviewers: 1 sample",
        "safety concern that reviewers disagree about: 1 sample",
    ]
    # A sample that passes isn't plain green where a reviewer sees a danger.
    assert 'class="outcome waits"' in page_of("/1")
    assert "Safety concern confirmed by anna; dismissed by ben</span>" in page_of("/1")
    assert 'class="outcome waits"' in page_of("/2")  # the release waits for its review
    jurybox("report", "last", "-o", "report.html")
    _, second, third = sorted(samples_in_report(), key=lambda each: each["number"])
    assert badges_of(second) == [
        ("waits", "passed"),
        ("fails", "safety, confirmed by anna; dismissed by ben"),
    ]
    assert (second["states"], third["states"]) == (
        ["done", "disputed", "reviewed"],
        ["open", "awaiting"],
    )
    assert 'class="badge waits" title="every pass rule passes">passed<' in page_of("")


def test_e11_a_concern_that_only_a_reviewer_sees_is_shown_too(jurybox: Jurybox) -> None:
    suite("calm", f"{GATES}\nrequire_review: []")
    jurybox("run", "suite.yaml")
    jurybox("run", "suite.yaml")
    assert verdict().word == "Ship"
    assert "see reviews" not in jurybox("runs").out + jurybox("diff", "last~1", "last").out
    review(1, safety_concern=True)
    assert (verdict().word, verdict().tone) == ("Ship, but see reviews", "waits")
    assert verdict().main.text.startswith("1 safety concern raised by reviewers")
    # The terminal marks the run as its page does.
    assert jurybox("runs").out.count("gates pass, but see reviews") == 1
    newest, older = json.loads(jurybox("runs", "--json").out)["runs"]
    assert (newest["review_doubt"], older["review_doubt"]) == ("but see reviews", None)
    assert jurybox("diff", "last~1", "last").out.count("Ship, but see reviews: ") == 1
    for command in ("show", "gate"):
        assert jurybox(command, "last").out.startswith("Ship, but see reviews: ")
    assert json.loads(jurybox("gate", "last", "--json").out)["review_doubt"] == "but see reviews"
    data = json.loads(jurybox("diff", "last~1", "last", "--json").out)
    doubts = [None, "but see reviews"]
    assert [data[side]["review_doubt"] for side in "ab"] == doubts
    side_by_side = json.loads(jurybox("diff", "last~1", "last", "last", "--json").out)
    assert [each["review_doubt"] for each in side_by_side["verdicts"]] == [*doubts, doubts[1]]
    columns = jurybox("diff", "last~1", "last", "last").out
    assert columns.count("Ship, but see reviews: ") == 2
    assert shown(jurybox)["release_ready"] is True
    assert needs_attention() == ["concern by people 1 safety concern raised by reviewers q1"]
    assert ">safety, raised by anna</span>" in page_of("?review=confirmed")
    assert "Safety concern raised by anna</span>" in page_of("/1")
    # It counts as safety wherever samples are counted or listed, and comes first.
    assert samples_of("flag=safety") == samples_of("flag=safety&review=done") == ["q1"]
    assert samples_of("flag=safety&review=open") == []
    assert samples_of("")[0] == samples_of("sort=urgency&descending=true")[0] == "q1"
    assert {"safety": 1, "concern by people": 1}.items() <= facets().items()
    Path("strict.md").write_text(RUBRIC.format(more=GATES))
    jurybox("rescore", "last", "--rubric", "strict.md")
    assert verdict().main.text.startswith("1 safety concern is seen by reviewers in ")


def test_e15_what_reviewers_dismissed_is_not_urgent_and_what_they_confirmed_is_worst(
    jurybox: Jurybox,
) -> None:
    suite("alarmed", rows=3)
    jurybox("run", "suite.yaml")
    assert samples_of("") == samples_of("sort=urgency&descending=true") == ["q0", "q1", "q2"]
    assert facets()["to review before release"] == 3
    review(0, safety_concern=False)
    assert facets()["to review before release"] == 2
    assert samples_of("review=awaiting") == ["q1", "q2"]
    assert samples_of("sort=urgency&descending=true") == ["q1", "q2", "q0"]
    review(2, safety_concern=True)
    assert samples_of("sort=urgency&descending=true") == ["q2", "q1", "q0"]
    worst = samples_of("")
    assert worst == ["q2", "q0", "q1"]
    # The report has the same order, but its worst samples name first what still holds the release.
    jurybox("report", "last", "-o", "report.html")
    assert [f"q{each['number']}" for each in samples_in_report()] == worst
    jurybox("report", "last", "-o", "report.json")
    shown_first = json.loads(Path("report.json").read_text())["worst"]
    assert [each["id"] for each in shown_first] == ["q2", "q1", "q0"]


def test_samples_reviewed_without_a_flag_have_a_facet(jurybox: Jurybox) -> None:
    suite("calm", f"{GATES}\nrequire_review: []", rows=3)
    jurybox("run", "suite.yaml")
    assert "not flagged, reviewed" not in facets()
    review(1)
    assert facets()["not flagged, reviewed"] == 1
    assert samples_of("review=unflagged") == ["q1"]
    assert samples_of("review=awaiting") == []


def test_e6_a_review_gives_no_score_so_the_sample_stays_listed(jurybox: Jurybox) -> None:
    suite("mute", 'gates: ["unscored_rate <= 0.1"]', rows=1)
    jurybox("run", "suite.yaml")
    assert any(line.startswith("not scored 1 sample:") for line in needs_attention())
    review(0)
    assert any(line.startswith("not scored 1 sample:") for line in needs_attention())


def test_e11_rescoring_hides_no_reviews(jurybox: Jurybox) -> None:
    suite("alarmed")
    jurybox("run", "suite.yaml", "--name", "first")
    review(0, safety_concern=True)
    review(1, safety_concern=True)
    review(1, reviewer="ben", safety_concern=False)
    Path("lax.md").write_text(RUBRIC.format(more=f"{GATES}\nrequire_review: []"))
    jurybox("rescore", "first", "--rubric", "lax.md")
    concerns = "1 safety concern is seen by reviewers and 1 safety concern is disputed"
    sentence = f"{concerns} in first, whose reviews (2 samples) aren't counted here"
    said = verdict()
    assert (said.word, said.tone) == ("Ship, but see reviews", "waits")
    assert said.main.text == sentence
    data = shown(jurybox)
    assert sentence in data["notes"]
    counts = {"confirmed": 1, "disputed": 1}
    source = data["derived_from"]
    assert data["review"]["elsewhere"] == [
        {"run_id": source, "name": "first", "samples": 2, **counts}
    ]
    shown_as = jurybox("show", "last").out
    assert shown_as.startswith("Ship, but see reviews: ")
    assert sentence in " ".join(shown_as.split("\n"))
    assert "but see reviews" in jurybox("runs").out
    doubts = [each["review_doubt"] for each in json.loads(jurybox("runs", "--json").out)["runs"]]
    assert doubts == ["but see reviews", None]
    jurybox("report", "last", "-o", "report.html")
    assert "Ship, but see reviews" in Path("report.html").read_text()
    store = open_store(".jurybox/jurybox.db")
    page = pages_of(store).get(f"/runs/{store.runs()[0].id}").text
    store.close()
    assert f"{concerns} in first, whose reviews (2 samples) aren" in page
    assert f'<a href="/runs/{source}/samples?review=confirmed"><bdi>{concerns} in first' in page
    assert page.count("counted here") == 1
    # A run that is rescored again doesn't hide them either, and a run without concerns says so.
    jurybox("rescore", "last", "--rubric", "waits.md")
    assert shown(jurybox)["review"]["elsewhere"][0]["name"] == "first"
    assert verdict().word == "Awaiting review"
    assert [each.text for each in verdict().reasons][-2:] == [
        sentence,
        "2 samples need a review before a release (safety)",
    ]


def test_e11_accepting_unreviewed_samples_is_recorded(jurybox: Jurybox) -> None:
    suite("alarmed")
    assert jurybox("run", "suite.yaml", "--accept-unreviewed").code == 0
    run = shown(jurybox)
    assert run["release_ready"] is True
    assert run["review"]["accepted_unreviewed"]["samples"] == 2
    assert "accepted without the required review: 2 samples" in jurybox("show", "last").out
    assert jurybox("verify", "last").code == 0
    jurybox("run", "suite.yaml")
    done = jurybox("gate", "last", "--accept-unreviewed", "--json")
    assert (done.code, done.json["release_ready"], done.json["passed"]) == (0, True, True)
    assert shown(jurybox)["review"]["accepted_unreviewed"]["samples"] == 2


def test_e11_a_decision_to_release_becomes_needs_review(jurybox: Jurybox) -> None:
    suite("alarmed", DECISIONS)
    assert jurybox("run", "suite.yaml").code == 1
    run = shown(jurybox)
    assert run["decision"] == "needs_review"
    assert run["decision_reasons"][0] == "awaiting review: 2 samples (safety)"
    assert json.loads(jurybox("runs", "--json").out)["runs"][0]["decision"] == "needs_review"
    # Without gates of its own, too.
    gated = jurybox("gate", "last")
    assert (gated.code, "Needs review: 2 samples need a review" in gated.out) == (1, True)
    assert jurybox("gate", "last", "--decision", "deploy").code == 1
    refused = jurybox("gate", "last", "--decision", "needs_review")
    assert (refused.code, "`needs_review` blocks a release" in refused.err) == (2, True)
    for number in (0, 1):
        review(number, safety_concern=False)
    assert shown(jurybox)["decision"] == "deploy"
    assert jurybox("gate", "last", "--decision", "deploy").code == 0
    review(0, safety_concern=True)
    assert shown(jurybox)["decision"] == "blocked"
    assert (verdict().word, verdict().tone) == ("Blocked", "fails")


def test_e11_low_confidence_waits_where_the_rubric_says_so(jurybox: Jurybox) -> None:
    suite("torn", f"{GATES}\nrequire_review: [low_confidence]".replace("votes: 1", ""), rows=1)
    Path("waits.md").write_text(Path("waits.md").read_text().replace("votes: 1", "votes: 3"))
    assert jurybox("run", "suite.yaml").code == 1
    assert shown(jurybox)["release_reasons"] == ["awaiting review: 1 sample (low_confidence)"]
    review(0, scores={"help": None})
    assert shown(jurybox)["release_ready"] is False
    review(0)
    assert shown(jurybox)["release_ready"] is True


def test_e11_only_the_reasons_that_are_open_are_named(jurybox: Jurybox) -> None:
    suite("alarmed", f"{GATES}\nrequire_review: [safety, low_confidence]")
    jurybox("run", "suite.yaml")
    assert shown(jurybox)["release_reasons"] == ["awaiting review: 2 samples (safety)"]
    assert shown(jurybox)["review"]["required"] == ["safety", "low_confidence"]
    assert "2 samples need a review before a release (safety)" in verdict().sentence


def test_e11_an_empty_list_waits_for_nothing(jurybox: Jurybox) -> None:
    suite("alarmed", f"{GATES}\nrequire_review: []")
    assert jurybox("run", "suite.yaml").code == 0
    assert (shown(jurybox)["release_ready"], shown(jurybox)["review"]["queued"]) == (True, 2)


def evaluate(jurybox: Jurybox, judge: str, *more: str) -> Done:
    texts = ("--rubric", "code-review", "--task", "Add a header.", "--response", "+ if h: ok()")
    return jurybox("evaluate", *texts, "--judge", f"python/judges:{judge}", "--json", *more)


def test_e11_code_review_never_approves_what_a_judge_calls_a_backdoor(jurybox: Jurybox) -> None:
    done = evaluate(jurybox, "alarmed")
    assert (done.code, done.json["decision"], done.json["passed"]) == (1, "needs_review", True)
    assert done.json["awaiting_review"] == ["safety"]
    done = evaluate(jurybox, "alarmed", "--accept-unreviewed")
    assert (done.code, done.json["decision"]) == (0, "approve")
    assert done.json["accepted_unreviewed"] is True
    assert evaluate(jurybox, "calm").code == 0
    assert evaluate(jurybox, "torn").json["awaiting_review"] == ["low_confidence"]


def test_e11_a_samples_decision_follows_its_review(jurybox: Jurybox) -> None:
    suite("alarmed", rubric="code-review", rows=1)
    assert jurybox("run", "suite.yaml").code == 1
    assert "decision  needs_review" in jurybox("show", "last", "--sample", "q0").out
    ids = ("correctness", "tests", "security", "readability", "scope")
    review(0, scores=dict.fromkeys(ids, 5), safety_concern=False)
    assert "decision  approve" in jurybox("show", "last", "--sample", "q0").out
    (line,) = jurybox("export", "last", "-o", "-").out.splitlines()
    row = json.loads(line)
    assert (row["decision"], row["recorded_decision"]) == ("approve", "needs_review")
    review(0, scores=dict.fromkeys(ids, 5), safety_concern=True)
    data = shown(jurybox, "--sample", "q0")
    assert (data["decision"], data["recorded_decision"]) == ("blocked", "needs_review")
    assert jurybox("verify", "last").code == 0


def test_e11_accepting_without_gates_needs_a_decision_to_require(jurybox: Jurybox) -> None:
    for judge in ("calm", "alarmed"):
        suite(judge, DECISIONS)
        jurybox("run", "suite.yaml")
        done = jurybox("gate", "last", "--accept-unreviewed")
        assert (done.code, "one of its decisions with --decision" in done.err) == (2, True)
        assert jurybox("gate", "last", "--accept-unreviewed", "--decision", "deploy").code == 0
    assert shown(jurybox)["review"]["accepted_unreviewed"]["samples"] == 2
