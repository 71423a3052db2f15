"""The pages of the queue, asked without a browser: what they show, keep back, take and refuse."""

import base64
import gzip
import html
import itertools
import json
import re
from collections.abc import Callable

import httpx
import pytest

from jurybox.app.estimate_run import review_agreement
from jurybox.app.review_desk import ReviewDesk
from jurybox.errors import IncompleteError, InputError
from jurybox.reporting.html.html_render import packed_samples
from jurybox.reporting.stored import plan_of
from jurybox.review.reviews import Circumstances
from jurybox.review.selection import assigned, pair_order
from jurybox.sample import Response, Row, Turn
from jurybox.storage.database import Found, Values
from jurybox.storage.sqlite import SqliteSession
from jurybox.web.app_state import Pending
from pages_client import PagesClient
from stored_runs import Made, MakeRun, answered
from verdicts import scored

RUBRIC = """---
id: answers
version: 1.0.0
scale: 1-5
votes: 1
---
# Answers

## Criteria
### Facts
### Tone
"""
REASON = "Because the judge says so."
REMARKS = (
    '{"reasoning": {"facts": "%s", "tone": "%s"}, "bias_checklist": {%s},'
    ' "safety_concerns": ["it is a danger"], '
)
SAID = REMARKS + '"scores": {"facts": 4, "tone": 3}}'
PAIR = REMARKS + '"preferences": {"facts": "A", "tone": "tie"}, "winner": "A"}'
KINDS = ("authority", "formatting", "position", "self_enhancement", "verbosity")
LISTED = ", ".join(f'"{kind}": "had no effect"' for kind in KINDS)
DESK = "/runs/run-a/review"
SCORES = {"score.facts": "2", "score.tone": "5"}
GIVEN = {"scores": {"facts": 2, "tone": 5}, "safety_concern": False}


def judge(prompt: str) -> str:
    said = PAIR if "second text" in prompt else SAID
    return said % (REASON, REASON, LISTED)


@pytest.fixture
def made(make_run: MakeRun) -> Made:
    return make_run([answered(f"s{number}") for number in range(4)], judge, rubric=RUBRIC)


class Reviewer:
    """Somebody who fills in forms."""

    def __init__(self, pages: PagesClient) -> None:
        self.pages = pages
        self._last: httpx.Response | None = None

    @property
    def last(self) -> httpx.Response:
        """The page that is open."""
        return self._last or self.get(f"{DESK}/name")

    def field(self, name: str) -> str:
        found = re.search(rf'name="{name}" value="([^"]*)"', self.last.text)
        assert found, name
        return html.unescape(found[1])

    def get(self, path: str) -> httpx.Response:
        answer = self.pages.get(path)
        while answer.status_code == 303:
            answer = self.pages.get(answer.headers["location"])
        self._last = answer
        return answer

    def post(self, path: str, **fields: str) -> httpx.Response:
        data = {"csrf": self.field("csrf"), **fields}
        return self.pages.post(path, data=data)

    def name(self, reviewer: str) -> None:
        taken = self.post(f"{DESK}/name", reviewer=reviewer)
        assert taken.status_code == 303
        self.get(taken.headers["location"])

    def send(self, number: int, **fields: str) -> httpx.Response:
        hidden = {name: self.field(name) for name in ("queue", "order", "basis", "reviewer")}
        return self.post(f"{DESK}/{number}", **{**hidden, **fields})


@pytest.fixture
def anna(pages: PagesClient) -> Reviewer:
    return Reviewer(pages)


Open = Callable[..., PagesClient]


def desk(made: Made) -> ReviewDesk:
    return ReviewDesk(made.store, made.row)


def test_the_reveal_has_the_votes_where_judges_differ(make_run: MakeRun, anna: Reviewer) -> None:
    turns = itertools.cycle(["4", "2"])

    def changing(prompt: str) -> str:
        return judge(prompt).replace('"facts": 4', f'"facts": {next(turns)}')

    make_run([answered("s0")], changing, rubric=RUBRIC, votes=2)
    anna.name("Anna")
    anna.send(0, **SCORES, safety_concern="no")
    table = re.sub("<[^>]*>", "", anna.get(f"{DESK}/0/judged").text)
    assert "votes 4, 2" in table


def test_who_has_no_name_is_asked_for_one_and_led_back(made: Made, anna: Reviewer) -> None:
    del made
    for path, asked in (("?queue=random", "?queue=random"), ("/2", "?queue=picked&number=2")):
        answer = anna.pages.get(f"{DESK}{path}")
        assert (answer.status_code, answer.headers["location"]) == (303, f"{DESK}/name{asked}")
    hidden = dict(
        re.findall(r'name="(queue|number)" value="(\w+)"', anna.get(f"{DESK}/name{asked}").text)
    )
    answer = anna.post(f"{DESK}/name", reviewer="Anna", **hidden)
    assert answer.headers["location"] == f"{DESK}/2?queue=picked"


@pytest.mark.parametrize("name", ["", "   ", "x" * 81, "a\u202eb", "a\nb"])
def test_a_name_that_is_none_is_refused_in_the_form(made: Made, anna: Reviewer, name: str) -> None:
    del made
    answer = anna.post(f"{DESK}/name", reviewer=name)
    assert answer.status_code == 400
    assert 'role="alert"' in answer.text


def test_the_name_is_kept_where_no_script_and_no_other_site_gets_it(
    made: Made, anna: Reviewer
) -> None:
    del made
    answer = anna.post(f"{DESK}/name", reviewer="Anna Ö; =")
    (cookie,) = answer.headers.get_list("set-cookie")
    assert cookie.endswith("; path=/; httponly; samesite=strict")
    anna.get(answer.headers["location"])
    assert "Anna Ö; =" in html.unescape(anna.last.text)


@pytest.mark.parametrize("queue", ["flagged", "random"])
def test_what_is_sent_is_stored_with_how_it_was_shown(
    made: Made, anna: Reviewer, queue: str
) -> None:
    anna.name("Anna")
    anna.get(f"{DESK}?queue={queue}")
    number = int(re.search(rf'action="{DESK}/(\d+)\?', anna.last.text)[1])
    answer = anna.send(number, comment=" too short ", **SCORES)
    assert answer.headers["location"].startswith(f"{DESK}/{number}/judged?")
    (review,) = desk(made).reviews()
    assert review.verdict.scores == {"facts": 2, "tone": 5}
    assert (review.reviewer, review.comment, review.number) == ("Anna", "too short", number)
    assert (review.shown.queue, review.shown.blind) == (queue, True)
    told = html.unescape(anna.get(answer.headers["location"]).text)
    assert REASON in told
    assert "You and the judge differ on Facts and Tone." in told
    assert "judge 2 higher" in told


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"score.facts": "2"}, "Tone: the score is missing"),
        ({"score.facts": "2"}, "; give a score, or choose Unclear"),
        ({"score.facts": "6", "score.tone": "1"}, "Facts: the score is 6"),
        ({"score.facts": "2.5", "score.tone": "1"}, "Facts: the score is 2.5"),
        ({"score.facts": "x", "score.tone": "1"}, 'Facts: the score is "x"'),
        ({**SCORES, "comment": "x" * 10_001}, "the comment is too long"),
        ({**SCORES, "comment": "a\x07"}, "control characters"),
    ],
)
def test_what_is_no_verdict_is_refused_and_nothing_is_lost(
    made: Made, anna: Reviewer, fields: dict[str, str], told: str
) -> None:
    anna.name("Anna")
    answer = anna.send(0, **fields)
    assert answer.status_code == 400
    assert told in html.unescape(answer.text)
    assert "Your verdict" in answer.text
    assert desk(made).reviews() == ()
    name = told.partition(":")[0]
    at_fault = re.findall(r'data-title="(\w+)" data-fault>', answer.text)
    assert at_fault == ([name] if name in ("Facts", "Tone") else at_fault)


def test_the_same_form_sent_twice_is_one_review(made: Made, anna: Reviewer) -> None:
    anna.name("Anna")
    assert anna.send(0, **SCORES).status_code == 303
    again = anna.send(0, **SCORES)
    assert again.headers["location"].endswith("notice=known")
    other = anna.send(0, **{**SCORES, "score.tone": "1"})
    assert other.status_code == 409
    assert "already reviewed this sample" in other.text
    assert len(desk(made).reviews()) == 1


def test_a_form_that_was_opened_before_an_undo_is_refused(made: Made, anna: Reviewer) -> None:
    anna.name("Anna")
    anna.send(0, **SCORES)
    desk(made).undo("Anna")
    assert anna.send(0, **SCORES).status_code == 409
    assert desk(made).reviews() == ()


def test_a_form_of_another_reviewer_is_refused(made: Made, anna: Reviewer) -> None:
    anna.name("Anna")
    answer = anna.send(0, **{**SCORES, "reviewer": "Ben"})
    assert answer.status_code == 409
    assert "opened by Ben" in answer.text
    assert desk(made).reviews() == ()


def test_a_sample_that_was_reviewed_is_shown_as_such_unless_asked_again(
    made: Made, anna: Reviewer
) -> None:
    anna.name("Anna")
    anna.send(0, **SCORES)
    answer = anna.pages.get(f"{DESK}/0")
    assert answer.headers["location"].startswith(f"{DESK}/0/judged?")
    anna.get(f"{DESK}/0?again=1")
    assert re.search(r'name="score.tone" value="5" checked', anna.last.text)
    anna.send(0, **{**SCORES, "score.tone": "1"})
    (review,) = desk(made).reviews()
    assert (review.verdict.scores["tone"], review.shown.blind) == (1, False)


@pytest.mark.parametrize(
    "path",
    [
        "/runs/nothing/review",
        "/runs/nothing/review/name",
        "/runs/nothing/review/agreement",
        f"{DESK}/99",
        f"{DESK}/" + "9" * 5000,
        f"{DESK}/x",
        f"{DESK}/-1",
        f"{DESK}/0/text/nothing",
        f"{DESK}/99/judged",
    ],
)
def test_what_is_not_there_is_said_plainly(made: Made, anna: Reviewer, path: str) -> None:
    del made
    anna.name("Anna")
    answer = anna.get(path)
    assert answer.status_code == 404
    heading = re.findall("<h1><bdi>(.*)</bdi></h1>", answer.text)[0].lower()
    assert "there is no" in heading or "has no sample" in heading or "has no such" in heading


def test_a_long_text_is_cut_and_can_be_seen_whole(
    make_run: MakeRun, anna: Reviewer, row: Callable[..., Row]
) -> None:
    make_run([row("long", "y" * 1_000_000)], judge, rubric=RUBRIC)
    anna.name("Anna")
    assert len(anna.last.text) < 60_000
    address = re.search(r'href="([^"]+/text/response)"', anna.last.text)[1]
    assert anna.pages.get(address).text == "y" * 1_000_000


def test_a_long_conversation_follows_the_response_wherever_it_is_read(
    make_run: MakeRun, anna: Reviewer
) -> None:
    roles = ("system", *("user", "assistant") * 27)
    turns = [Turn(role=role, content=f"*Turn* {n}.") for n, role in enumerate(roles, start=1)]
    turns[10] = Turn(role="user", content="z" * 30_000)
    made = make_run([answered("s", messages=tuple(turns))], judge, rubric=RUBRIC)
    anna.name("Anna")
    packed = packed_samples(made.store, made.view, "overall").data
    report = json.loads(gzip.decompress(base64.b64decode(packed)))[0]["card"]
    sample = anna.get("/runs/run-a/samples/0").text
    form = anna.get(f"{DESK}/0").text
    for page in (form, sample, report):
        before, _, rest = page.partition("Earlier conversation <small>55 messages</small>")
        assert "Task s" in before
        assert "fine" in before
        first = 6 if page is report else 1
        assert ("5 messages before these are left out" in rest) == (page is report)
        folded, _, last = rest.partition("<dt data-label>54 ")
        assert re.findall(r"<dt data-label>(\d+ \w+)</dt>", folded) == [
            f"{n} {turn.role}" for n, turn in enumerate(turns, start=1) if first <= n <= 53
        ]
        assert folded.count("<details>") == folded.count("</details>") == 1
        assert "<em>Turn</em> 55." in last
    assert "<input" not in report
    for page in (form, sample):
        # Rendering Markdown takes longest, so old messages are as they were written.
        assert "*Turn* 5." in page
        assert "<em>Turn</em> 6." in page
        assert page.count("as written</label>") == 1
        address = re.search(r'href="([^"]+/text/message-10)"', page)[1]
        assert anna.pages.get(address).text == "z" * 30_000
    found = anna.get("/runs/run-a/samples/0?search=turn*+20").text
    assert "<details open><summary data-label>53 older messages" in found


def test_what_is_unclear_is_collected_for_the_authors_of_the_rubric(
    made: Made, anna: Reviewer
) -> None:
    anna.get(f"{DESK}/name")
    anna.name("Anna")
    anna.send(0, **SCORES, comment="fine")
    anna.get(f"{DESK}/1?queue=flagged")
    unclear = {"score.facts": "none", "score.tone": "3", "safety_concern": "none"}
    anna.send(1, **unclear, comment="is a joke a fact?")
    told = anna.get(f"{DESK}/agreement").text
    listed = told.partition("Cases that reviewers found unclear")[2]
    assert "is a joke a fact?" in listed
    assert "fine" not in listed
    assert re.search(r'samples/1"><bdi>s1</bdi>', listed)
    (case,) = review_agreement(desk(made)).unclear
    assert (case.sample_id, case.reviewer) == ("s1", "Anna")
    assert case.criteria == ("facts", "safety_concern")
    assert "safety concern" in listed


def test_the_run_page_tells_how_the_judge_stands_with_people_so_far(
    made: Made, anna: Reviewer
) -> None:
    del made
    assert "and people" not in anna.get("/runs/run-a").text
    anna.get(f"{DESK}/name")
    anna.name("Anna")
    for number in (0, 1):
        anna.get(f"{DESK}/{number}?queue=flagged")
        anna.send(number, **SCORES)
        # The page of a run doesn't wait for it; that of the agreement does.
        anna.get(f"{DESK}/agreement")
        told = anna.get("/runs/run-a").text
        assert f"{number + 1} review" in told
        assert "The judge gives the same score as people on Facts in" in told


@pytest.mark.parametrize("path", ["/0", "/undo", "/name"])
def test_nothing_is_taken_from_other_sites(made: Made, pages: PagesClient, path: str) -> None:
    answer = pages.post(DESK + path, data={"reviewer": "Anna", **SCORES})
    assert answer.status_code == 403
    assert desk(made).reviews() == ()


def test_e11_a_sample_stays_in_the_queue_until_its_flag_is_decided(
    made: Made, anna: Reviewer
) -> None:
    anna.name("Anna")
    for number in range(4):
        anna.get(f"{DESK}/{number}?queue=flagged")
        anna.send(number, **SCORES)
    back = anna.get(DESK).text
    assert "Confirm or dismiss the flag: the run waits for it." in back
    assert "4 flags undecided" in back
    anna.send(0, **SCORES, safety_concern="no")
    anna.get(f"{DESK}/1/judged?queue=flagged")
    anna.send(1, **SCORES, safety_concern="yes")
    waiting = anna.get("/runs/run-a/samples?review=awaiting").text
    assert re.findall(r"<bdi>(s\d)</bdi></a>", waiting) == ["s2", "s3"]
    assert re.findall(
        r"<bdi>(s\d)</bdi></a>", anna.get("/runs/run-a/samples?review=confirmed").text
    ) == ["s1"]
    page = anna.get("/runs/run-a").text
    found = re.search(r'samples\?review=awaiting"><bdi>(.*?)</bdi>', page)
    assert found
    assert found[1] == "2 samples need a review before a release (safety)"
    # Who goes past all of them is shown what is left.
    end = anna.get(f"{DESK}?queue=flagged&after=3").text
    assert "2 samples of yours wait until someone confirms or dismisses the flag" in end
    # Someone else can decide too.
    assert desk(made).next("Ben", kind="flagged").number == 2


def test_e11_without_a_reveal_a_reviewer_never_sees_a_verdict_and_may_correct_a_label(
    made: Made, open_pages: Open
) -> None:
    desk(made).submit(0, "Ben", GIVEN, "of Ben", shown=Circumstances(queue="flagged"))
    anna = Reviewer(open_pages(reveal=False, overlap=2))
    anna.name("Anna")
    sent = anna.send(0, **SCORES)
    assert sent.headers["location"] == f"{DESK}?queue=flagged&after=0&notice=saved"
    assert "<bdi>s1</bdi>" in anna.get(sent.headers["location"]).text
    assert "Saved." in anna.last.text
    pages = [anna.get(path).text for path in (f"{DESK}/0/judged", f"{DESK}/0")]
    for number in (1, 2, 3):
        anna.get(f"{DESK}/{number}?queue=flagged")
        anna.send(number, **SCORES)
    pages.append(anna.get(DESK).text)
    assert "until someone confirms or dismisses the flag" in pages[-1]
    assert not any(f in each for each in pages for f in (REASON, "of Ben", "danger"))
    links = {each for page in pages for each in re.findall('href="(/[^"?]*)', page)}
    own = rf"{DESK}(/name|/\d)?|/runs/run-a/rubric|/static/.*|/api/openapi.json"
    assert [each for each in links if not re.fullmatch(own, each)] == []
    anna.get(f"{DESK}/0?queue=flagged")
    assert 'value="2" checked' in anna.last.text
    assert "counts in no metric" not in anna.last.text
    anna.send(0, **{**SCORES, "score.facts": "3", "safety_concern": "no"})
    (label,) = [each for each in desk(made).reviews(blind=True) if each.reviewer == "Anna"][3:]
    assert (label.verdict.scores["facts"], label.shown.revealed) == (3, False)
    # Who comes from a list isn't led back to it.
    (action,) = re.findall(r'action="([^"]*)" class="verdict"', anna.get(f"{DESK}/2?at=2").text)
    changed = anna.post(html.unescape(action), **SCORES, comment="again")
    assert "no review leads back to a list" in anna.get(changed.headers["location"]).text
    # Where verdicts are revealed, the same reviewer can see this one.
    assert not desk(made).case(0, "Anna").blind
    hidden = ReviewDesk(made.store, made.row, reveals=False)
    assert hidden.case(0, "Anna").blind
    assert not hidden.case(0, "Ben").blind
    with pytest.raises(InputError, match="stays hidden"):
        hidden.revealed(0, "Anna")


def test_e11_undo_brings_back_that_safety_was_unclear(made: Made, anna: Reviewer) -> None:
    anna.name("Anna")
    anna.send(0, **SCORES, safety_concern="none")
    (review,) = desk(made).reviews()
    assert review.verdict.as_data()["safety_concern"] is None
    told = anna.get(f"{DESK}/0/judged?queue=flagged").text
    assert "Confirm or dismiss the flag: the run waits for it." in told
    anna.post(f"{DESK}/undo")
    form = anna.get(f"{DESK}/0?queue=flagged").text
    assert re.search(r'name="safety_concern" value="none" checked', form)


@pytest.mark.usefixtures("made")
def test_e11_e15_every_count_is_of_what_is_still_open_and_opens_as_many_samples(
    anna: Reviewer,
) -> None:
    anna.name("Anna")
    anna.get(f"{DESK}/0?queue=flagged")
    anna.send(0, **SCORES, safety_concern="no")
    shown: dict[str, list[str]] = {}
    flagged = "/runs/run-a/samples?flag=safety"
    for path in ("/", "/runs/run-a", "/runs/run-a/samples", flagged):
        for address, words in re.findall(
            r'<a href="(/runs/run-a/samples\?[^"]*review=[^"]*)"[^>]*>(.*?)</a>',
            anna.get(path).text,
        ):
            text = re.sub("<.*?>", "", words)
            number = re.findall(r"\d", text)[0]
            opened = anna.get(html.unescape(address)).text
            assert f" of {number} sample" in opened, (path, text)
            shown.setdefault(path, []).append(text)
    chips = ["to review 3", "to review before release 3"]
    chips += ["flagged, reviewed 1", "concern dismissed 1"]
    assert shown == {
        "/": ["3 samples need a review before a release (safety)", "3 before release"],
        "/runs/run-a": [
            "3 samples need a review before a release (safety)",
            "safety 3",
            "1 sample",
            *("3 of 4 samples still to be reviewed", "3 samples", "safety 3"),
            "safety 1",
            "1 sample",
        ],
        "/runs/run-a/samples": chips,
        flagged: chips,
    }
    concern = f"/runs/run-a/samples/1{'?review=open&flag=safety&at=0'}"
    assert html.escape(concern) in anna.get("/runs/run-a").text
    assert ">1 of 3<" in anna.get(concern).text
    listed = anna.get("/runs/run-a/samples").text
    assert listed.count(">safety, dismissed by Anna</span>") == 1


def test_a_picked_sample_leads_back_to_its_list_and_undo_to_the_queue_of_its_sample(
    made: Made, anna: Reviewer
) -> None:
    anna.name("Anna")
    anna.get(f"{DESK}?queue=random")
    first = desk(made).order.number(0)
    anna.send(first, **SCORES)
    picked = desk(made).order.number(1)
    listed = f"flag=safety&sort=number&at={picked}"
    page = html.unescape(anna.get(f"{DESK}/{picked}?{listed}").text)
    assert f"Undo s{first}</button>" in page  # without a key
    own = f'href="/runs/run-a/samples/{picked}?{listed}"'
    assert f'{own} data-does="back">' in page
    (action,) = re.findall(r'action="([^"]*)" class="verdict"', page)
    told = html.unescape(anna.get(anna.post(action, **SCORES).headers["location"]).text)
    assert f'{own} data-does="back">' in told
    assert f'href="/runs/run-a/samples?flag=safety&sort=number#row-{picked}"' in told
    following = f'/samples/{picked + 1}?flag=safety&sort=number&at={picked + 1}" data-does="next">'
    assert (following in told) is (picked < 3)
    for number, queue in ((picked, "picked"), (first, "random")):
        back = anna.post(f"{DESK}/undo?{listed}", queue="picked", last=anna.field("last"))
        asked = f"{DESK}/{number}?queue={queue}&notice=undone"
        assert back.headers["location"].startswith(asked)
        undone = html.unescape(anna.get(back.headers["location"]).text)
        assert "you may have seen the judge's verdict" in undone


def test_a_review_that_moves_its_sample_leads_on_in_the_list_as_it_was(
    made: Made, anna: Reviewer
) -> None:
    del made
    anna.name("Anna")
    for number, after in ((1, 2), (3, None)):  # a concern comes first in the list
        page = html.unescape(anna.get(f"{DESK}/{number}?at={number}").text)
        (action,) = re.findall(r'action="([^"]*)" class="verdict"', page)
        told = anna.get(anna.post(action, **SCORES, safety_concern="yes").headers["location"]).text
        link, words = re.findall(r'href="([^"]*)" data-does="next">([^<]*) <', told)[0]
        if after is None:
            assert words == "Back to the list"
        else:
            assert link.startswith(f"/runs/run-a/samples/{after}")
            assert f'rel="next" href="/runs/run-a/samples/{after + 1}' in anna.get(link).text
            assert f'href="{DESK}/{after}?at={after}"' in anna.last.text  # no matter how often


def test_e11_an_undone_decision_can_be_made_again(made: Made, anna: Reviewer) -> None:
    anna.name("Anna")
    anna.send(0, **SCORES)
    asked = anna.get(f"{DESK}/0/judged?queue=flagged").text
    assert re.findall(r'data-does="(confirm|dismiss)"', asked) == ["confirm", "dismiss"]
    assert "aria-pressed" not in asked
    loses = "(a new label won't count)"
    assert loses in asked
    dismissed = anna.send(0, **SCORES, safety_concern="no", decision=anna.field("decision"))
    said = anna.get(dismissed.headers["location"]).text
    assert "Saved: you dismissed the concern." in said
    assert loses not in said  # the label of the first review stays
    decided = anna.get(f"{DESK}/0/judged?queue=flagged").text
    assert 'aria-pressed="true">You dismissed it</button>' in decided
    # A stray key changes nothing; the other button does.
    assert re.findall(r'data-does="(confirm|dismiss)"', decided) == []
    assert re.findall(r'name="safety_concern" value="(\w+)"', decided) == ["yes"]
    back = anna.post(f"{DESK}/undo", queue="flagged", last=anna.field("last"))
    assert "notice=restored" in back.headers["location"]
    undone = anna.get(back.headers["location"]).text
    assert "Your last change was taken back; your review before it counts again." in undone
    assert "Confirm or dismiss the flag: the run waits for it." in undone
    assert re.findall(r'data-does="(confirm|dismiss)"', undone) == ["confirm", "dismiss"]
    anna.send(0, **SCORES, safety_concern="yes")
    (review,) = desk(made).reviews()
    assert review.verdict.safety_concern is True


def test_e11_a_dispute_names_who_confirmed_and_who_dismissed(made: Made, anna: Reviewer) -> None:
    scores = {"facts": None, "tone": 3}
    seen = {"scores": scores, "safety_concern": True}
    desk(made).submit(0, "Ben", seen, shown=Circumstances(queue="flagged"))
    anna.name("Anna")
    anna.get(f"{DESK}/0?queue=flagged")
    anna.send(0, **SCORES)
    text = anna.get(f"{DESK}/0/judged").text
    assert [
        " ".join(re.sub("<.*?>", " ", each).split())
        for each in re.findall('data-name="others">(.*?)</td>', text)[:2]
    ] == ["Ben unclear", "Ben 3"]
    assert " Safety concern: confirmed by Ben.<" in text
    anna.send(0, **SCORES, safety_concern="no")
    text = anna.get(f"{DESK}/0/judged").text
    assert "Disputed safety concern: confirmed by Ben; dismissed by you." in text
    (row,) = re.findall(
        r'<tr class="differs">\s*<th scope="row">Safety concern.*?</tr>', text, re.DOTALL
    )
    assert (
        " ".join(re.sub("<.*?>", " ", row).split()) == "Safety concern no flagged differs Ben yes"
    )
    lead = "You and the judge differ on Facts and Tone. On safety, you differ."
    assert f'<p class="lead">{lead}</p>' in text
    anna.send(0, **SCORES, safety_concern="yes")
    same = re.sub(r"\s+", " ", re.sub("<.*?>", " ", anna.get(f"{DESK}/0/judged").text))
    assert " Safety concern yes flagged same Ben yes " in same
    agreed = r'<tr>\s*<th scope="row">Safety concern'
    assert re.search(agreed, anna.get(f"{DESK}/0/judged").text)  # only Ben differs
    assert "You and the judge differ on Facts and Tone. On safety, you agree." in same


def test_a_sample_without_a_vote_reveals_why(make_run: MakeRun, anna: Reviewer) -> None:
    made = make_run([answered("s1")], lambda _: "no verdict", rubric=RUBRIC)
    desk(made).submit(0, "Anna", GIVEN, shown=Circumstances(queue="flagged"))
    anna.name("Anna")
    text = anna.get(f"{DESK}/0/judged").text
    assert "No judge gave a valid vote: 1 x the reply contains no JSON object" in text
    assert "confidence" not in text
    assert "Flagged as" not in text


def test_agreement_is_stated_on_what_both_scored(made: Made, anna: Reviewer) -> None:
    del made
    anna.name("Anna")
    anna.send(0, **{**SCORES, "score.facts": "4", "score.tone": "none"})
    told = anna.get(f"{DESK}/0/judged").text
    assert '<p class="lead">You and the judge agree on Facts.</p>' in told


def test_who_answers_unclear_is_told_so(made: Made, anna: Reviewer) -> None:
    del made
    anna.name("Anna")
    anna.send(0, **dict.fromkeys(SCORES, "none"))
    told = anna.get(f"{DESK}/0/judged").text
    assert '<p class="lead">You answered unclear, so there is nothing to compare.</p>' in told


def test_the_agreement_leads_to_labels_and_to_a_command_that_calibrates_on_them(
    made: Made, anna: Reviewer
) -> None:
    assert "No one has reviewed this run yet" in anna.get(f"{DESK}/agreement").text
    anna.get(f"{DESK}/name")
    anna.name("Anna")
    anna.send(0, **SCORES)
    told = html.unescape(anna.get(f"{DESK}/agreement").text)
    assert "jurybox calibrate" not in told  # on a single label
    assert told.count("a single label") == 2
    assert "Kappa of Facts" not in told
    assert "since one person has reviewed" in told
    assert f'href="{DESK}/gold.jsonl"' in told
    sent = anna.pages.get(f"{DESK}/gold.jsonl")
    assert sent.headers["content-disposition"].endswith("''run-a-labels.jsonl")
    (label,) = map(json.loads, sent.text.splitlines())
    assert label["gold"] == {"facts": {"Anna": 2}, "tone": {"Anna": 5}}
    for number in range(1, 10):
        desk(made).submit(number % 4, f"r{number}", GIVEN, shown=Circumstances(queue="flagged"))
    plan = plan_of(made.row)
    judges = " ".join(f"--judge {name}" for name in plan.judges)
    command = f"jurybox calibrate --rubric {plan.rubric.origin} --gold run-a-labels.jsonl {judges}"
    told = html.unescape(anna.get(f"{DESK}/agreement").text)
    assert f"<code data-copy>{command}</code>" in told


@pytest.mark.parametrize(
    ("gates", "says"),
    [
        ("facts_mean >= 1", "instead of 0.750; no gate changes its outcome."),
        ("facts_mean >= 3", "Corrected, 1 gate changes to failed: facts mean."),
        ("", "instead of 0.750."),
    ],
)
def test_agreement_says_which_gates_change_once_reviews_correct_them(
    make_run: MakeRun, anna: Reviewer, gates: str, says: str
) -> None:
    rubric = RUBRIC.replace("votes: 1", f"votes: 1\ngates: [{gates}]")
    rows = [answered(f"s{number}") for number in range(14)]
    made = make_run(rows, lambda _: scored({"facts": 4, "tone": 4}), rubric=rubric)
    for _ in range(12):
        case = desk(made).next("Ben", kind="random")
        desk(made).submit(case.number, "Ben", GIVEN, shown=case.shown)
    page = re.sub("<[^>]*>", "", anna.get(f"{DESK}/agreement").text)
    assert says in page


def test_agreement_counts_each_label(made: Made, anna: Reviewer) -> None:
    # The judge gives facts 4 and tone 3; the mean of people's 1 and 5 is that 3.
    for number, who, facts, tone in ((2, "Anna", 3, 1), (2, "Ben", 3, 5), (1, "Anna", 1, 3)):
        given = {"scores": {"facts": facts, "tone": tone}}
        desk(made).submit(number, who, given, shown=Circumstances(queue="flagged"))
    told = html.unescape(re.sub("<[^>]*>", "", anna.get(f"{DESK}/agreement").text))
    assert "on Facts in 0% of cases (0 of 3), on Tone in 33% (1 of 3): 2 flagged samples" in told
    assert "each of their labels is compared with the judge" in told
    # People gave facts 1 once and 3 twice, the judge always 4.
    cells = re.findall(r"People (\d)</th>(.*?)</tr>", anna.last.text)
    counts = (re.sub("<(?!td)[^>]*>", "", row) for _, row in cells[:5])
    facts = [
        (*cells[at][:1], re.findall(r'"number">([^<]*)', row)) for at, row in enumerate(counts)
    ]
    assert facts == [
        ("1", ["", "", "", "1", ""]),
        ("2", ["", "", "", "", ""]),
        ("3", ["", "", "", "2 in 1", ""]),
        ("4", ["", "", "", "", ""]),
        ("5", ["", "", "", "", ""]),
    ]


def test_the_samples_on_which_judge_and_people_differ_are_listed_farthest_apart_first(
    make_run: MakeRun, anna: Reviewer
) -> None:
    made = make_run([answered(f"s{number}") for number in range(40)], judge, rubric=RUBRIC)
    # The judge gives facts 4 and tone 3.
    given = [(0, "Anna", 4, 3), (1, "Anna", 2, 3), (1, "Ben", 1, 3), (2, "Anna", 4, 5)]
    for number, who, facts, tone in (*given, *((n, "Anna", 5, 3) for n in range(3, 33))):
        scores = {"scores": {"facts": facts, "tone": tone}}
        desk(made).submit(number, who, scores, "Two.", shown=Circumstances(queue="flagged"))

    def listed(query: str = "") -> list[tuple[str, ...]]:
        row = r'/samples/(\d+)\?[^"]*">.*?criterion">(\w+)<.*?"number">(\d)<.*?people">(.*?)</td>'
        found = re.findall(row, anna.get(f"{DESK}/agreement{query}").text, re.DOTALL)
        return [(*each, re.sub("<[^>]*>", "", people)) for *each, people in found]

    assert listed()[:2] == [("1", "Facts", "4", "Anna 2, Ben 1"), ("2", "Tone", "3", "Anna 5")]
    assert (len(listed()), len(listed("?page=2")), len(listed("?page=99"))) == (25, 7, 7)
    (link,) = re.findall(r'<a href="([^"]*)" aria-label="1 sample with [^>]*>1</a>', anna.last.text)
    assert listed(html.unescape(link).partition("/agreement")[2].partition("#")[0]) == [
        ("2", "Tone", "3", "Anna 5")
    ]
    assert listed("?people=true") == [("1", "Facts", "4", "Anna 2, Ben 1")]
    assert "Because the judge says so." in anna.last.text
    assert "Anna: Two. · Ben: Two." in anna.last.text


def test_every_count_of_differences_opens_as_many_also_where_people_differ_too(
    make_run: MakeRun, anna: Reviewer
) -> None:
    made = make_run([answered(f"s{number}") for number in range(40)], judge, rubric=RUBRIC)
    # The judge gives facts 4 and tone 3. Anna and Ben differ on facts of 30 samples, on tone of 3.
    for number in range(40):
        for who, facts, tone in (("Anna", 5, 2), ("Ben", 5 - (number < 30), 2 - (number < 3))):
            scores = {"scores": {"facts": facts, "tone": tone}}
            desk(made).submit(number, who, scores, shown=Circumstances(queue="random"))

    def rows(address: str) -> int:
        """Count the rows of a list and of the pages that follow."""
        table = anna.get(address).text.partition('id="differ"')[2]
        following = re.search(r'<a rel="next" href="([^"]*)"', table)
        found = len(re.findall(r'<td data-name="criterion">', table))
        return found + (rows(html.unescape(following[1])) if following else 0)

    def counts(query: str) -> dict[str, int]:
        """Return the counts that keep the query, once each opens as many rows."""
        page = anna.get(f"{DESK}/agreement?{query}").text
        (chips,) = re.findall(r'<nav class="facets".*?</nav>', page, re.DOTALL)
        found = re.findall(r'<a href="([^"]*)"[^>]*>([^<]*)(?: <small>(\d+)</small>)?</a>', chips)
        kept = [each for each in found if each[1] != "people differ too"]
        assert all(query in html.unescape(address) for address, _, _ in kept)
        counted = {words: int(count) for _, words, count in kept if count}
        assert {words: rows(html.unescape(address)) for address, words, _ in kept} == {
            "random samples": sum(counted.values()),
            "flagged samples": sum(counted.values()),
            "every criterion": sum(counted.values()),
        } | counted
        return counted

    assert counts("") == {"Facts": 40, "Tone": 40}
    assert counts("people=true") == {"Facts": 30, "Tone": 3}


def test_a_revealed_pair_has_the_names_of_the_run(make_run: MakeRun, anna: Reviewer) -> None:
    row = {"response_b": Response(text="the second text")}
    make_run([answered(f"s{number}", **row) for number in range(8)], judge, rubric=RUBRIC)
    number = next(each for each in range(8) if pair_order("run-a", each, "Anna") == "BA")
    anna.name("Anna")
    shown = anna.get(f"{DESK}/{number}?queue=random").text
    assert shown.index("the second text") < shown.index("<h2>Response B</h2>")
    refused = html.unescape(anna.send(number).text)
    assert "The better response: that isn't one of the responses; choose a response" in refused
    anna.send(number, winner="A")
    told = anna.get(f"{DESK}/{number}/judged").text
    titles = re.findall("<h2>(Response .*?)</h2>", told)
    assert titles == ["Response B, shown to you as A", "Response A, shown to you as B"]
    assert told.index(titles[0]) < told.index("the second text") < told.index(titles[1])
    assert re.findall('<td class="own"[^>]*>(.*?)</td>', told)[0] == "B (your A)"
    assert re.findall("<h3><bdi>(.*?)</bdi>", told) == ["Facts (tie)", "Tone (tie)"]


def test_where_people_differ_from_a_judge_that_follows_the_order_another_judge_is_asked_for(
    make_run: MakeRun, anna: Reviewer
) -> None:
    second = Response(text="second text")
    made = make_run(
        [answered(f"s{each}", response_b=second) for each in range(12)], judge, rubric=RUBRIC
    )
    for number in range(12):
        given = {"winner": "AB"[number % 2]}
        desk(made).submit(number, "Ben", given, shown=Circumstances(queue="random"))
    page = html.unescape(anna.get(f"{DESK}/agreement").text)
    (link,) = re.findall('On <a href="([^"]*)">12 of 12 differing samples</a>, the judge', page)
    assert " of 12 samples" in anna.get(link).text
    assert "make the rubric clearer" not in page
    assert "the judge always gives the same<" in page
    assert re.search('class="button primary" href="[^"]*gold.jsonl"', page)


def test_the_random_subset_says_that_flagged_reviews_may_count(made: Made, anna: Reviewer) -> None:
    anna.name("Anna")
    assert "already reviewed" not in anna.get(f"{DESK}?queue=random").text
    desk(made).submit(1, "Ben", GIVEN, shown=Circumstances(queue="flagged"))
    shown = anna.get(f"{DESK}?queue=random").text
    assert "4 are needed to correct metrics; flagged samples that are already reviewed" in shown


@pytest.mark.parametrize(
    ("required", "overlap", "shown"),
    [
        ("safety", 1, ", all before a release<"),
        ("safety", 2, ", all before a release<"),
        ("", 2, "<"),
    ],
)
def test_e11_the_desk_says_how_many_reviews_a_release_waits_for(
    make_run: MakeRun, open_pages: Open, required: str, overlap: int, shown: str
) -> None:
    rubric = RUBRIC.replace("votes: 1", f"votes: 1\nrequire_review: [{required}]")
    make_run([answered(f"s{number}") for number in range(4)], judge, rubric=rubric)
    reviewer = Reviewer(open_pages(overlap=overlap))
    reviewer.name("Anna")
    assert f"<span>4 open{shown}" in reviewer.last.text
    reviewer.send(0, **SCORES)  # leaves the flag undecided
    assert f"<span>4 open{shown}" in reviewer.get(f"{DESK}?queue=flagged").text
    reviewer.get(f"{DESK}/0/judged")
    reviewer.send(0, **SCORES, safety_concern="no")
    settled = reviewer.get(f"{DESK}?queue=flagged").text
    assert f"<span>3 open{shown}" in settled


def test_the_headline_says_that_reviews_are_being_compared(
    made: Made, anna: Reviewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk(made).submit(1, "Ben", GIVEN, shown=Circumstances(queue="random"))
    monkeypatch.setattr("jurybox.web.pages.run_page.soon", lambda *_: Pending())
    headline = anna.get("/runs/run-a").text.partition('class="tiles"')[2].partition("</section>")[0]
    assert "what other runs and reviews say about them will follow" in headline


def test_the_end_of_the_queue_says_what_is_true(made: Made, anna: Reviewer) -> None:
    anna.name("Anna")
    anna.send(0, **SCORES, safety_concern="no")
    seen = {**GIVEN, "safety_concern": True}
    for number, given in ((0, seen), (1, GIVEN), (2, GIVEN)):
        desk(made).submit(number, "Ben", given, shown=Circumstances(queue="flagged"))
    desk(made).next("Cleo")  # holds the last one
    end = html.unescape(anna.get(DESK).text)
    now = end[end.index("The run's verdict now:") :].partition("</p>")[0]
    assert re.findall(r'<a href="/runs/run-a/samples\?(.*?)">(?:<bdi>)?([^<]*)', now) == [
        ("review=disputed", "1 safety concern that reviewers disagree about"),
        ("review=awaiting", "1 sample needs a review before a release (safety)"),
    ]
    actions = end[end.index('<p class="actions">') :].partition("</p>")[0]
    assert re.findall(r">([^<]+) <kbd", actions) == ["Back to the run"]
    words = " ".join(re.sub("<.*?>", "", end).split())
    others = "2 others have enough reviews (1 is enough). 1 other is with another reviewer"
    assert f"You reviewed 1 of 4 flagged samples. {others} for up to an hour." in words
    assert '<a href="/runs/run-a/samples/1"><bdi>s1</bdi></a>' in end
    (disputed,) = re.findall(r"disagree about the safety of <a href=\"([^\"]*)", end)
    assert "is settled when one of you changes the answer" in end
    assert "You can change your answer here." in anna.get(disputed).text
    assert "You have reviewed every" not in end
    assert "You reviewed 1 of 4 samples. 2 others have" in anna.get(f"{DESK}?queue=random").text


def test_a_review_made_again_leaves_the_sample_to_another_person(
    made: Made, anna: Reviewer
) -> None:
    order = desk(made).order
    first, last = order.number(0), order.number(3)
    shown = Circumstances(queue="random")
    anna.name("Anna")
    desk(made).submit(first, "Anna", GIVEN, shown=shown)
    desk(made).undo("Anna")
    for place in (0, 1, 2):
        desk(made).submit(order.number(place), "Anna", GIVEN, shown=shown)
    waits = f'2 wait for <a href="{DESK}/{first}?queue=random"><bdi>s{first}</bdi></a>, earlier'
    assert f"{waits} in the random order" in anna.get(f"{DESK}?queue=random").text
    desk(made).submit(last, "Anna", GIVEN, shown=shown)
    end = " ".join(re.sub("<.*?>", "", anna.get(f"{DESK}?queue=random").text).split())
    assert f"Another person has to review s{first}, because your review of it counts in no" in end
    anna.name("Ben")
    assert f'action="{DESK}/{first}?queue=random"' in anna.get(f"{DESK}?queue=random").text


def test_where_nothing_is_flagged_the_random_subset_comes_next(
    make_run: MakeRun, anna: Reviewer
) -> None:
    make_run([answered("s1")], lambda _: scored({"facts": 4, "tone": 4}), rubric=RUBRIC)
    anna.name("Anna")
    end = html.unescape(anna.get(DESK).text)
    assert "<h1>Nothing is flagged</h1>" in end
    assert "verdict now" not in end  # its metrics would influence a reviewer who has scored nothing
    assert "0 of 0" not in end
    (first,) = re.findall(r'class="button primary" href="([^"]*)"', end)
    assert first == f"{DESK}?queue=random"


def test_the_end_of_the_queue_says_which_gate_fails_by_peoples_scores(
    make_run: MakeRun, anna: Reviewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    rubric = RUBRIC.replace("votes: 1", "votes: 1\ngates: [facts_mean >= 3]")
    rows = [answered(f"s{number}") for number in range(10)]
    made = make_run(rows, lambda _: scored({"facts": 4, "tone": 4}), rubric=rubric)
    for number in range(10):
        desk(made).submit(number, "Anna", GIVEN, shown=Circumstances(queue="random"))
    anna.name("Anna")
    end = html.unescape(anna.get(DESK).text)
    assert 'http-equiv="refresh"' not in end
    now = " ".join(end[end.index("verdict now") :].partition("</section>")[0].split())
    assert f'<a class="warn" href="{DESK}/agreement">People\'s reviews cast doubt' in now
    assert "corrected by them, facts mean is 2.000 and has to be at least 3</a>." in now
    monkeypatch.setattr("jurybox.web.app_state.soon", lambda *_: Pending())
    early = anna.get(DESK).text
    assert "Ship, reviews not yet compared" in early
    assert 'http-equiv="refresh"' in early

    def damaged(*_: object) -> None:
        raise IncompleteError("a sample is damaged")

    monkeypatch.setattr("jurybox.web.app_state.soon", damaged)
    late = html.unescape(anna.get(DESK).text)
    assert "The reviews can't be compared: a sample is damaged</bdi>." in late
    assert 'http-equiv="refresh"' not in late


def test_every_second_opinion_moves_the_counts_of_the_random_subset(
    made: Made, open_pages: Open
) -> None:
    for number in range(4):
        desk(made).submit(number, "Ben", GIVEN, shown=Circumstances(queue="random"))
    reviewer = Reviewer(open_pages(overlap=2))
    reviewer.name("Anna")
    seen: list[list[str]] = []
    for number in range(3):
        text = reviewer.get(f"{DESK}?queue=random").text
        line = text[text.index('class="progress-line"') :].partition("</div>")[0]
        seen.append(re.findall(r"<span>([^;<]*)", line)[:2])
        desk(made).submit(number, "Anna", GIVEN, shown=Circumstances(queue="random"))
    assert seen == [
        ["0 samples reviewed by you", "4 of all 4 by anyone, 0 by 2 or more"],
        ["1 sample reviewed by you", "4 of all 4 by anyone, 1 by 2 or more"],
        ["2 samples reviewed by you", "4 of all 4 by anyone, 2 by 2 or more"],
    ]


def test_progress_counts_the_reviewers_own_share(made: Made, open_pages: Open) -> None:
    names = ("Anna", "Ben")
    shares = [
        [each for each in range(4) if name in assigned("run-a", each, names, 1)] for name in names
    ]
    for name, share in zip(names, shares, strict=True):
        reviewer = Reviewer(open_pages(reviewers=names))
        reviewer.name(name)
        assert f"0 of your {len(share)} flagged reviewed by you" in reviewer.last.text
        for number in share:
            desk(made).submit(number, name, GIVEN, shown=Circumstances(queue="flagged"))
        end = reviewer.get(DESK).text
        assert f"{len(share)} of your {len(share)} flagged reviewed by you<" in end
        own = "1 flagged sample that is" if len(share) == 1 else f"all {len(share)} flagged samples"
        assert f"You have reviewed {own}" in end
        others = next(each for each in names if each != name)
        random = re.sub("<[^>]*>", "", reviewer.get(f"{DESK}?queue=random").text)
        assert f"assigned to you; the other {4 - len(share)} " in random
        assert f"assigned to {others}." in random
        assert "enough reviews" not in random
    # Nothing is left for those who come last, nor for those without a share.
    chris = Reviewer(open_pages())
    chris.name("Chris")
    names = tuple("abcdefgh")
    idle = next(
        name for name in names if not any(name in assigned("run-a", n, names, 1) for n in range(4))
    )
    reviewer = Reviewer(open_pages(reviewers=names))
    reviewer.name(idle)
    for page in (chris.last.text, reviewer.last.text):
        assert "flagged reviewed by you" not in page
    assert "No flagged sample is assigned to you; 4 are assigned to" in reviewer.last.text


def test_a_sample_page_says_of_each_review_whether_it_counts(
    made: Made, pages: PagesClient
) -> None:
    """E11: only blind reviews are compared with the judge."""
    first, both = desk(made), {"facts": 4, "tone": 3}
    blind, seen = Circumstances(queue="random"), Circumstances(queue="picked", blind=False)
    first.submit(0, "anna", {"scores": both}, shown=blind)
    first.submit(0, "anna", {"scores": both}, shown=blind)  # after the judge's verdict was shown
    first.submit(0, "ben", {"scores": both}, shown=blind)
    first.undo("ben")
    first.submit(0, "cleo", {"scores": dict.fromkeys(both)}, shown=blind)
    first.submit(0, "dora", {"scores": both}, shown=seen)
    first.submit(0, "eve", {"scores": both}, shown=Circumstances(queue="random", blind=False))
    page = pages.get("/runs/run-a/samples/0").text
    found = re.findall(r'<bdi>(\w+)</bdi></th>.*?data-name="counts">([^<]*)<', page)
    assert found == [
        ("anna", "yes"),
        ("anna", "no: after seeing the judge"),
        ("ben", "no: taken back"),
        ("ben", ""),
        ("cleo", "no: unclear"),
        ("dora", "no: picked, not given by a queue"),
        ("eve", "no: after seeing the judge"),
    ]


def test_a_reveal_says_what_the_scores_mean_and_who_gave_none(
    make_run: MakeRun, anna: Reviewer
) -> None:
    levels = ("| Score | Label | Meaning |", "| --- | --- | --- |", "| 4-5 | Good | Right |")
    rubric = RUBRIC.replace("### Tone", "\n".join((*levels, "| 1-3 | Bad | No |", "### Tone")))
    make_run([answered(f"s{number}") for number in range(2)], _judge_of_some, rubric=rubric)
    anna.name("Anna")
    anna.get(f"{DESK}/0?queue=random")
    told = anna.get(anna.send(0, **SCORES).headers["location"]).text
    own = re.findall('<td class="own"[^>]*>(.*?)</td>', told)
    assert own[:2] == ["2 <small>Bad</small>", "4 <small>Good</small>"]
    assert own[2:4] == ["5", "3"]
    anna.get(f"{DESK}/1?queue=random")
    told = anna.get(anna.send(1, **SCORES).headers["location"]).text
    assert "The judge gave no score, so there is nothing to compare." in told


def _judge_of_some(prompt: str) -> str:
    return judge(prompt) if "Task s0" in prompt else "no"


def test_a_sample_with_two_reasons_is_one_to_review_beside_a_broken_judge(
    make_run: MakeRun, anna: Reviewer
) -> None:
    spread = iter((1, 3, 5))

    def torn(prompt: str) -> str:
        score = next(spread) if "Task s0" in prompt else 0
        return (
            scored({"facts": score, "tone": score}, REASON, ["it is a danger"]) if score else "no"
        )

    rows = [answered(f"s{each}") for each in range(4)]
    made = make_run(rows, torn, rubric=RUBRIC, votes=3)
    assert made.view.conclusion.review["reasons"] == {
        "low_confidence": 1,
        "safety": 1,
        "unscored": 3,
    }
    assert made.view.release.unscorable == 3
    anna.name("Anna")
    assert "<span>3 wait for a repaired judge</span>" in anna.last.text
    assert ">3</a> wait for a repaired judge" in anna.get("/runs/run-a").text


def test_the_end_of_the_flagged_queue_leads_to_random_samples_that_are_needed(
    make_run: MakeRun, anna: Reviewer
) -> None:
    def calm(prompt: str) -> str:
        return judge(prompt).replace('"it is a danger"', '"it is a danger"' * ("s0" in prompt))

    made = make_run([answered(f"s{number}") for number in range(12)], calm, rubric=RUBRIC)
    anna.name("Anna")
    anna.send(0, **SCORES, safety_concern="no")
    end = html.unescape(anna.get(DESK).text)
    assert "can be trusted: 10 more are needed to correct metrics." in end
    assert re.findall(r">([^<]+) <kbd", end[end.index('<p class="actions">') :]) == [
        "Review the random subset"
    ]
    for number in range(1, 12):
        desk(made).submit(number, "Anna", GIVEN, shown=Circumstances(queue="random"))
    end = anna.get(DESK).text
    assert "Review the random subset" not in end
    assert 'data-does="next">Back to the run' in end


def test_where_few_samples_have_a_score_a_repair_is_asked_for_instead_of_reviews(
    make_run: MakeRun, anna: Reviewer
) -> None:
    made = make_run([answered(f"s{each}") for each in range(12)], _judge_of_some, rubric=RUBRIC)
    why = "nly 1 of 12 samples has a score; repair the judge and run the suite again"
    anna.name("Anna")
    asked = "1 open, before a release"
    wait = "11 wait for a repaired judge"
    assert all(f"<span>{each}</span>" in anna.last.text for each in (asked, wait))
    chips = re.sub("<[^>]*>", "", anna.get("/runs/run-a/samples").text)
    assert "to review 1\n" in chips
    assert "not scored, for a repaired judge 11\n" in chips
    assert " of 1 sample," in anna.get("/runs/run-a/samples?review=open").text
    before = anna.get(f"{DESK}/agreement").text
    anna.get(f"{DESK}/0?queue=flagged")
    anna.send(0, **SCORES, safety_concern="no")
    end = re.sub("<[^>]*>", "", anna.get(f"{DESK}?after=0").text)
    assert "11 samples wait for a repaired judge; reviews can't replace their scores" in end
    assert ">Review the random subset<" not in anna.last.text
    assert "gives samples that count" not in anna.get(f"{DESK}/1").text
    for number in range(12):
        desk(made).submit(number, "Anna", GIVEN, shown=Circumstances(queue="random"))
    after = anna.get(f"{DESK}/agreement").text
    assert "Too few samples have a score to rely on any number" in after
    # People's scores replace none of the judge's.
    assert "<span>11 wait for a repaired judge</span>" in anna.get(DESK).text
    shown = re.sub("<[^>]*>", "", anna.get("/runs/run-a").text)
    assert "11 wait for a repaired judge" in shown
    for page in (before, after, anna.get(f"{DESK}?queue=random").text):
        assert why in page
        assert ">Review the random subset<" not in page
        assert "needed" not in page


def test_a_picked_sample_says_before_and_after_scoring_that_it_counts_in_no_metric(
    made: Made, anna: Reviewer
) -> None:
    anna.name("Anna")
    why = "counts in no metric: the sample was picked, not given by a queue"
    form = anna.get(f"{DESK}/1").text
    assert why in form
    assert "flagged reviewed by you" not in form
    assert "<span>0 samples reviewed by you</span>" in form
    revealed = anna.get(anna.send(1, **SCORES).headers["location"]).text
    assert f"Your review {why}." in revealed
    assert desk(made).reviews(blind=True) == ()
    # What a queue gave counts, also after a decision on its flag, made on the page of the sample.
    assert "no metric:" not in anna.get(f"{DESK}/2?queue=random").text
    assert "no metric:" not in anna.get(anna.send(2, **SCORES).headers["location"]).text
    anna.get(f"{DESK}/2/judged")
    decided = anna.send(2, **SCORES, safety_concern="no")
    assert "no metric:" not in anna.get(decided.headers["location"]).text
    again = html.unescape(anna.get(f"{DESK}/2?queue=random&again=1").text)
    assert "counts in no metric: you may have seen the judge's verdict" in again


def test_of_a_sample_without_a_response_only_safety_and_a_comment_are_asked(
    make_run: MakeRun, anna: Reviewer, row: Callable[..., Row]
) -> None:
    missing = Response(text="", error="the backend answered 500")
    made = make_run([row("s0", response=missing)], judge, rubric=RUBRIC)
    anna.name("Anna")
    form = anna.get(f"{DESK}/0?queue=random").text
    assert "There is no response to score." in form
    assert re.findall(r'data-title="([^"]*)"', form) == ["Safety concern"]
    given = {name: anna.field(name) for name in SCORES}
    told = anna.get(anna.send(0, **given, comment="down").headers["location"]).text
    assert "There is no response, so there are no scores to compare." in told
    assert "unclear" not in told
    (review,) = desk(made).reviews()
    assert (review.verdict.is_label, review.comment) == (False, "down")
    assert review_agreement(desk(made)).unclear == ()


def test_a_run_of_few_samples_says_in_one_way_that_they_are_too_few(
    make_run: MakeRun, open_pages: Open
) -> None:
    made = make_run([answered("s0")], judge, rubric=RUBRIC)
    anna = Reviewer(open_pages(overlap=2))
    anna.name("Anna")
    assert "the reviews correct the metrics" not in anna.get(f"{DESK}/agreement").text
    assert "1 is needed to correct metrics" in anna.get(f"{DESK}?queue=random").text
    assert ">Review the random subset</a>" in anna.get(f"{DESK}/agreement").text
    desk(made).submit(0, "Anna", GIVEN, shown=Circumstances(queue="random"))
    head = anna.get(f"{DESK}?queue=random").text
    assert "1 reviewed sample counts, enough to correct metrics, but too few to measure the" in head
    found = anna.get(f"{DESK}/agreement").text
    assert "All samples that count are reviewed, but too few to measure the agreement" in found
    assert "every sample has a label: people&#39;s own value needs no correction" in found
    assert ">unknown<" not in found.partition("Corrected metrics")[2]
    assert ">Review the random subset</a>" not in found


def test_a_page_reads_the_reviews_of_a_run_once(
    made: Made, anna: Reviewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna.name("Anna")
    anna.send(0, **SCORES)
    reads: list[str] = []
    read = type(made.store).reviews
    monkeypatch.setattr(
        type(made.store), "reviews", lambda store, run: reads.append(run) or read(store, run)
    )
    for path in ("?queue=flagged", "/1?queue=random", "/0/judged", "/name"):
        reads.clear()
        anna.pages.get(DESK + path)
        assert reads == ["run-a"], path


@pytest.mark.parametrize(
    ("wanted", "shown"), [("menu", "Anna:</small> A <mark>menu</mark>."), ("Anna", "reviewer:</sm")]
)
def test_a_comment_that_is_found_has_its_author_once(
    made: Made, anna: Reviewer, wanted: str, shown: str
) -> None:
    del made
    anna.name("Anna")
    anna.send(0, **SCORES, comment="A menu.")
    assert shown in anna.get(f"/runs/run-a/samples?search={wanted}").text
    assert "(Anna)" not in anna.last.text


def test_a_list_reads_its_samples_and_their_reviews_together(
    made: Made, anna: Reviewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna.name("Anna")
    anna.send(0, **SCORES)
    asked: list[str] = []
    rows = SqliteSession.rows

    def counted(session: SqliteSession, statement: str, values: Values = ()) -> Found:
        asked.append(statement)
        return rows(session, statement, values)

    monkeypatch.setattr(SqliteSession, "rows", counted)
    page = anna.pages.get("/runs/run-a/samples").text
    assert page.count('id="row-') == len([*made.store.numbers("run-a")])
    assert sum("FROM samples" in each for each in asked) == 1
    assert sum("SELECT number FROM facets" in each for each in asked) == 1
    assert sum("FROM reviews WHERE run_id = ? AND number" in each for each in asked) == 1


def test_e15_what_is_open_of_a_flag_leaves_out_a_concern_that_only_a_reviewer_saw(
    make_run: MakeRun, anna: Reviewer
) -> None:
    def flags_two(prompt: str) -> str:
        said = judge(prompt)
        return said if "danger 1" in prompt else said.replace('["it is a danger"]', "[]")

    make_run([answered(f"s{at}", f"danger {at % 2}") for at in range(4)], flags_two, rubric=RUBRIC)
    anna.name("Anna")
    anna.get(f"{DESK}/0")
    anna.send(0, **SCORES, safety_concern="yes")
    listed = anna.get("/runs/run-a/samples?flag=safety").text
    states = re.findall(r'<a href="([^"]*review=[^"]*)"[^>]*>([^<]*) <small>(\d)</small>', listed)
    assert [(words, number) for _, words, number in states] == [
        ("to review", "2"),
        ("to review before release", "2"),
        ("flagged, reviewed", "1"),
        ("concern by people", "1"),
        ("not flagged, reviewed", "1"),
    ]
    for address, _, number in states:
        assert f" of {number} sample" in anna.get(html.unescape(address)).text, address
