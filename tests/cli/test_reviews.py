"""From reviews to metrics and gold: `show`, `report`, `estimate`, `bias`, `export`, `calibrate`."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from commands import Done
from jurybox.app.review_desk import ReviewDesk
from jurybox.documents.numbers import metric_value
from jurybox.review.reviews import Circumstances
from jurybox.storage import open_store
from reviewed import make_run, worth

STORE = ".jurybox/jurybox.db"
Jurybox = Callable[..., Done]


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> str:
    return make_run(monkeypatch, None)


def review(
    queue: str,
    count: int,
    name: str = "anna",
    comment: str = "",
    *,
    newest: bool = False,
    **changes: object,
) -> None:
    store = open_store(STORE)
    desk = ReviewDesk(store, store.runs()[0 if newest else -1], overlap=9)
    for _ in range(count):
        case = desk.next(name, kind=queue)
        given = {"scores": {"clarity": worth(case.number), "depth": 0.5}}
        shown = msgspec.structs.replace(case.shown, **changes)
        desk.submit(case.number, name, given, comment, shown=shown)
    store.close()


@pytest.mark.usefixtures("judged")
def test_without_reviews_nothing_is_said_and_the_desk_isnt_needed(jurybox: Jurybox) -> None:
    assert jurybox("show", "last", "--json").json["people"] is None
    assert "people so far" not in jurybox("show", "last").out
    code = (
        "import sys; from jurybox.cli.app import run; run(['show', 'last']);"
        "assert 'jurybox.app.review_desk' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.usefixtures("judged")
def test_show_and_the_reports_tell_how_the_judges_stand_with_people(jurybox: Jurybox) -> None:
    review("flagged", 3)
    review("random", 12)
    review("random", 6, "ben")
    assert "people so far  21 reviews of " in jurybox("show", "last").out
    assert jurybox("report", "last", "-o", "report.md").code == 0
    shown = Path("report.md").read_text()
    assert "## People so far" in shown
    assert "by 2 people: anna, ben" in shown
    assert "judge against people, random subset, clarity: the same in 0%, kappa " in shown
    assert "judge against people, flagged, clarity: the same in 0%" in shown
    assert "people among themselves, random subset, clarity: the same in 100%" in shown
    assert "clarity: corrected by " in shown
    assert "would halve the interval" in shown or "can't halve the interval" in shown
    people = jurybox("show", "last", "--json").json["people"]
    assert (people["reviews"], people["reviewers"]) == (21, ["anna", "ben"])
    assert people["random"]["agreement"]["criteria"][0]["bias"]["value"] == 1
    assert [each["metric"] for each in people["estimates"]] == ["overall", "clarity", "depth"]
    assert people["lines"][0] in shown
    jurybox("report", "last", "-o", "report.json")
    assert json.loads(Path("report.json").read_text())["people"] == people


@pytest.mark.usefixtures("judged")
def test_a_name_cant_write_markdown_or_commands_of_a_terminal(jurybox: Jurybox) -> None:
    review("flagged", 1, "<b>[x](http://e.example)</b> **bold**")
    jurybox("report", "last", "-o", "report.md")
    text = Path("report.md").read_text()
    assert "<b>" not in text
    assert "[x](" not in text
    assert "**bold**" not in text


@pytest.mark.usefixtures("judged")
def test_estimate_takes_the_random_subset_and_leaves_flagged_samples_out(jurybox: Jurybox) -> None:
    review("random", 12)
    random = jurybox("estimate", "last", "--json")
    assert random.json["labeled"] == 12
    assert random.err == "labels are taken from reviews: 12 samples of the random subset\n"
    truth = sum(worth(number) for number in range(30)) / 30
    clarity = random.json["estimates"][1]["mean"]
    assert clarity["judge"]["value"] == pytest.approx(truth + 1)
    # Which samples are drawn is left to chance, so the interval may miss; the value comes near.
    assert abs(clarity["corrected"]["value"] - truth) < 0.9
    # People who work through the flagged ones as well change nothing in it, but for those that
    # the random subset has anyway.
    store = open_store(STORE)
    desk = ReviewDesk(store, store.runs()[0])
    part = desk.random_subset().labeled
    store.close()
    review("flagged", len({3, 13, 23} - part))
    both = jurybox("estimate", "last", "--json")
    assert both.json["estimates"] == random.json["estimates"]
    left = len({3, 13, 23} - part)
    assert (f"left out: {left} reviewed sample" in both.err) == bool(left)


@pytest.mark.usefixtures("judged")
def test_the_report_shows_the_corrected_metric_next_to_the_raw_one(jurybox: Jurybox) -> None:
    jurybox("report", "last", "-o", "before.html")
    assert "corrected by" not in Path("before.html").read_text()
    review("random", 12)
    jurybox("report", "last", "-o", "after.html")
    overall = jurybox("estimate", "last", "--json").json["estimates"][0]["mean"]["corrected"][
        "value"
    ]
    found = re.search(r"corrected by 12 reviewed samples: (\S+) \(", Path("after.html").read_text())
    assert found is not None
    assert float(found[1]) == pytest.approx(overall, abs=0.001)
    source = jurybox("show", "last", "--json").json["run_id"]
    jurybox("rescore", "last", "--rubric", "answers.md")
    refused = jurybox("estimate", "last").err
    assert f"the same replies are reviewed in another run: `jurybox estimate {source}`" in refused


def gates(done: Done) -> dict[str, Any]:
    return {each["gate"]: (each["value"], each["passed"]) for each in done.json["gates"]}


def test_a_gate_goes_by_the_corrected_metric_when_asked(
    jurybox: Jurybox, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The judge's mean is 3.47 and the truth 2.47. Which samples are reviewed is left to chance, but
    # none of their means comes near this gate.
    wanted = ["clarity_mean >= 3.4", "unscored_rate <= 0"]
    make_run(monkeypatch, None, gates=wanted)
    corrected = ("gate", "last", "--accept-unreviewed", "--corrected", "--json")
    assert gates(jurybox("gate", "last", "--accept-unreviewed", "--json"))[wanted[0]][1] is True
    early = jurybox(*corrected)
    assert (early.code, gates(early)[wanted[0]]) == (1, (None, False))
    assert early.json["corrected"] == [
        "clarity_mean isn't corrected yet: 10 more reviews from the random queue are needed",
        "unscored_rate isn't corrected: reviews correct only mean scores, pass rates and win rates",
    ]
    review("random", 12)
    estimated = jurybox("estimate", "last", "--json").json["estimates"][1]["mean"]["corrected"][
        "value"
    ]
    done = jurybox(*corrected)
    assert done.code == 1
    assert gates(done)[wanted[0]] == (estimated, False)
    assert gates(done)[wanted[1]][1] is True
    assert done.json["corrected"][0].startswith("clarity: corrected by 12 labels it is ")
    assert done.json["release_ready"] is False
    table = jurybox(*corrected[:-1]).out
    assert re.search(r"unscored_rate <= 0 +0.0%, not corrected ", table)
    assert table.count("not corrected ") == 1
    # The verdict of the report goes by the judge, and says that people would decide otherwise.
    jurybox("report", "last", "-o", "gated.html")
    near = f"corrected by them, clarity mean is {metric_value('', estimated)} and has to be"
    plain = jurybox("gate", "last", "--json").json
    assert (plain["passed"], plain["review_doubt"]) == (True, "but see reviews")
    assert f"{near} at least" in plain["people_say"]
    written = Path("gated.html").read_text()
    assert f"{near} at least" in written
    assert "--corrected</code> uses the corrected ones." in written
    assert '<small class="warn">fails corrected</small>' in written
    (sentence,) = re.findall(r'<h2 id="decision-head">.*?</h2>\n<p>.*?</p>', written, re.DOTALL)
    assert "corrected" not in sentence
    review("random", 18)
    truth = sum(worth(number) for number in range(30)) / 30
    assert gates(jurybox(*corrected))[wanted[0]][0] == pytest.approx(truth)
    assert gates(jurybox("gate", "last", "--json"))[wanted[0]][1] is True


def test_a_gate_on_the_pass_rate_goes_by_people_s_scores_when_asked(
    jurybox: Jurybox, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(monkeypatch, None, gates=["pass_rate >= 0.6"], **{"pass": ["clarity >= 3"]})
    judged = sum(worth(number) + 1 >= 3 for number in range(30)) / 30
    asked = ("gate", "last", "--accept-unreviewed", "--json")
    assert gates(jurybox(*asked)) == {"pass_rate >= 0.6": (pytest.approx(judged), True)}
    early = jurybox(*asked, "--corrected")
    assert early.code == 1
    assert early.json["corrected"] == [
        "pass_rate isn't corrected yet: 10 more reviews from the random queue are needed"
    ]
    review("random", 30)
    truth = sum(worth(number) >= 3 for number in range(30)) / 30
    done = jurybox(*asked, "--corrected")
    assert gates(done) == {"pass_rate >= 0.6": (pytest.approx(truth), False)}
    assert done.json["corrected"][0].startswith("pass_rate: every sample has a label")
    jurybox("report", "last", "-o", "report.html")
    written = Path("report.html").read_text()
    assert f"corrected by 30 reviewed samples: {metric_value('pass_rate', truth)} (" in written
    assert '<small class="warn">fails corrected</small>' in written


def test_the_overall_mean_is_corrected_if_the_rubric_has_another_name_for_it_too(
    jurybox: Jurybox, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(monkeypatch, None, gates=["overall_mean >= 0.1"], metrics={"mine": "mean of overall"})
    early = jurybox("gate", "last", "--accept-unreviewed", "--json", "--corrected")
    assert early.json["corrected"] == [
        "overall_mean isn't corrected yet: 10 more reviews from the random queue are needed"
    ]


def test_reviews_can_correct_no_gate_on_something_else(
    jurybox: Jurybox, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(monkeypatch, None, gates=["unscored_rate <= 0"])
    done = jurybox("gate", "last", "--corrected")
    assert done.code == 2
    assert "no gate uses a score, so reviews correct nothing; add a gate on one of" in done.err


@pytest.mark.usefixtures("judged")
def test_estimate_says_how_many_reviews_are_missing(jurybox: Jurybox) -> None:
    review("flagged", 3)
    done = jurybox("estimate", "last")
    assert done.code == 2
    assert "left out: 3 reviewed samples not drawn at random" in done.err
    assert "10 more reviews from the random queue are needed" in done.err
    assert "no sample of the run has a label" in done.err


@pytest.mark.usefixtures("judged")
def test_a_file_of_gold_goes_before_reviews(jurybox: Jurybox) -> None:
    review("random", 12)
    row = {"id": "s1", "gold": {"clarity": 1}}
    Path("labels.jsonl").write_text(json.dumps(row) + "\n")
    done = jurybox("estimate", "last", "--gold", "labels.jsonl", "--json")
    assert (done.json["labeled"], done.err) == (1, "")


@pytest.mark.usefixtures("judged")
def test_exported_gold_doesnt_get_round_the_random_subset(jurybox: Jurybox) -> None:
    review("flagged", 3)
    review("random", 12)
    jurybox("export", "last", "--gold", "-o", "gold.jsonl")
    done = jurybox("estimate", "last", "--gold", "gold.jsonl")
    assert done.code == 2
    assert "its labels are reviews, of which only those of the random queue count" in done.err
    assert "use `jurybox estimate RUN` without --gold on the run that was reviewed" in done.err


def test_gold_of_the_rows_counts_until_there_are_enough_reviews(
    jurybox: Jurybox, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(monkeypatch, None)
    lines = [json.loads(line) for line in Path("rows.jsonl").read_text().splitlines()]
    for number, row in enumerate(lines[:20]):
        row["gold"] = {"clarity": worth(number)}
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in lines))
    assert jurybox("run", "suite.yaml", "--allow-unpinned", "--accept-unreviewed").code == 0
    before = jurybox("estimate", "last", "--json").json
    review("random", 1, newest=True)
    after = jurybox("estimate", "last", "--json")
    assert after.json == before
    assert "labels are taken from the run's rows" in after.err
    assert "9 more reviews from the random queue are needed" in after.err
    review("random", 9, newest=True)
    assert jurybox("estimate", "last", "--json").json["labeled"] == 10


@pytest.mark.usefixtures("judged")
def test_bias_is_measured_at_equal_quality_where_people_have_reviewed(jurybox: Jurybox) -> None:
    def known() -> set[str]:
        biases = jurybox("bias", "last", "--json").json["biases"]
        metrics = [metric for bias in biases for metric in bias["metrics"]]
        return {metric["name"] for metric in metrics if metric["n"]}

    before = known()
    review("random", 30)
    assert "labels are taken from the reviews of 30 samples" in jurybox("bias", "last").err
    assert known() > before


def test_each_repeat_is_a_row_of_gold(jurybox: Jurybox, monkeypatch: pytest.MonkeyPatch) -> None:
    make_run(monkeypatch, None, 3, repeats=2)
    review("random", 6)
    jurybox("export", "last", "--gold", "-o", "gold.jsonl")
    rows = [json.loads(line) for line in Path("gold.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == [
        "s0",
        "s1",
        "s2",
        *(f"s{n} (repeat 1)" for n in range(3)),
    ]
    assert all(len(row["metadata"]["reviews"]) == 1 for row in rows)


@pytest.mark.usefixtures("judged")
def test_reviews_are_exported_as_gold_that_calibrate_reads(jurybox: Jurybox) -> None:
    review("random", 20, comment="seen\nby me")
    review("random", 5, "ben")
    done = jurybox("export", "last", "--gold", "-o", "gold.jsonl", "--json")
    assert done.json == {"written": "gold.jsonl", "rows": 20}
    rows = [json.loads(line) for line in Path("gold.jsonl").read_text().splitlines()]
    assert len(rows) == 20
    row = next(row for row in rows if len(row["gold"]["clarity"]) == 2)
    number = int(row["id"].removeprefix("s"))
    assert row["gold"] == {
        "clarity": {"anna": worth(number), "ben": worth(number)},
        "depth": {"anna": 0.5, "ben": 0.5},
    }
    assert row["task"] == f"Task {number}"
    assert row["gold_reasoning"] == "anna: seen\nby me"
    assert row["metadata"]["model"] == "secret"
    assert [each["reviewer"] for each in row["metadata"]["reviews"]] == ["anna", "ben"]
    assert row["metadata"]["reviews"][0]["queue"] == "random"
    made = jurybox(
        *("calibrate", "--rubric", "answers.md", "--gold", "gold.jsonl", "--allow-unpinned"),
        *("--judge", "python/kind_judges:kind", "--json"),
    )
    assert made.code == 0, made.err
    clarity = made.json["metrics"]["criteria"][0]
    assert (clarity["n"], clarity["bias"]["value"]) == (20, 1.0)
    assert clarity["ceiling"]["people"] == 2


def test_pairs_are_exported_with_their_winners(
    jurybox: Jurybox, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(monkeypatch, None, 12, pairs=True)
    store = open_store(STORE)
    desk = ReviewDesk(store, store.runs()[0])
    for number in range(12):
        case = desk.case(number, "anna")
        side = "A" if case.order == "AB" else "B"
        desk.submit(number, "anna", {"winner": side}, shown=case.shown)
    store.close()
    jurybox("export", "last", "--gold", "-o", "gold.jsonl")
    rows = [json.loads(line) for line in Path("gold.jsonl").read_text().splitlines()]
    assert [row["gold_winner"] for row in rows] == [{"anna": "A"}] * 12
    made = jurybox(
        *("calibrate", "--rubric", "answers.md", "--gold", "gold.jsonl", "--allow-unpinned"),
        *("--judge", "python/kind_judges:kind", "--json"),
    )
    assert made.json["metrics"]["criteria"][0]["exact"]["value"] == 1


@pytest.mark.usefixtures("judged")
def test_what_is_no_gold_is_left_out_and_said(jurybox: Jurybox) -> None:
    nobody = jurybox("export", "last", "--gold", "-o", "gold.jsonl")
    assert nobody.code == 2
    assert "no sample of the run has a label from a reviewer" in nobody.err
    assert not Path("gold.jsonl").exists()
    review("random", 2)
    review("random", 1, blind=False)
    store = open_store(STORE)
    desk = ReviewDesk(store, store.runs()[0])
    number = desk.next("anna", kind="random").number
    nothing = {"scores": {"clarity": None, "depth": None}}
    desk.submit(number, "anna", nothing, shown=Circumstances())
    store.close()
    done = jurybox("export", "last", "--gold", "-o", "gold.jsonl")
    assert "left out: 1 review made after seeing the judges' verdict" in done.err
    assert "left out: 1 sample that no reviewer could judge" in done.err
    assert "wrote gold.jsonl: 2 rows" in done.err


@pytest.mark.usefixtures("judged")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("-o", "gold.csv"), "gold is written as JSON Lines; end the name with .jsonl"),
        (("-o", "gold.jsonl", "--raw"), "--gold and --raw exclude each other"),
    ],
)
def test_gold_in_another_form_is_refused(
    jurybox: Jurybox, arguments: tuple[str, ...], says: str
) -> None:
    done = jurybox("export", "last", "--gold", *arguments)
    assert done.code == 2
    assert says in done.err
