"""Texts that mean harm, in every field: nothing of them becomes a part of a page."""

import json
import re
import time
from html.parser import HTMLParser
from urllib.parse import urlencode

import pytest

from jurybox.judging.flow import Failure
from jurybox.sample import Response, Turn
from pages_client import PagesClient
from stored_runs import MakeRun, answered

SCRIPT = "<script>alert(1)</script>"
EVIL = (
    f'{SCRIPT}"><img src=x onerror=alert(1)>\'"><svg onload=alert(1)>'
    '<a href="javascript:alert(1)">x</a>{{7*7}}{% raw %}</textarea></title></style>'
    "\u061c\u202e\u2066gnp.exe\u2069\u200f <!-- ]]> &lt; \u0001\u0085\u2028"
)
LINE = EVIL + "x" * 200_000
CHECKED = ("position", "verbosity", "self_enhancement", "formatting", "authority")
RUBRIC = f"""---
id: hostile
version: 1.0.0
scale: 1-5
votes: 1
reasks: 0
pass: ["accuracy >= 3"]
gates: ["accuracy_mean >= 3"]
---
# {SCRIPT}<img src=x onerror=alert(1)>

{SCRIPT} <img src=x onerror=alert(1)> [x](javascript:alert(1)) ![x](https://evil.example/x.png)
<https://evil.example/>

## Criteria
### <img src=x onerror=alert(1)> `accuracy`
[y](data:text/html,x) {SCRIPT} &#x202e;gnp.exe &#x2066; &#x61c;
"""
OURS = tuple(f"/static/{name}.js" for name in ("copy", "keys", "live", "review", "runs"))
ADDRESSES = ("href", "src", "action", "formaction", "data", "poster", "xlink:href", "srcset")
PATHS = (
    "/",
    "/compare",
    "/compare?a=run-a&b=run-b",
    "/rubrics",
    "/rubrics/hostile",
    "/runs/run-a",
    "/runs/run-a/panels",
    "/runs/run-a/rubric",
    "/runs/run-a/samples",
    "/runs/run-a/samples/0",
    "/runs/run-a/samples/1",
    "/runs/run-a/samples/2",
    "/runs/run-b",
    "/runs/run-b/samples/0",
)


class Looked(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.headings = 0
        self.labeled: set[str] = set()
        self.inputs: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.headings += tag == "h1"
        if tag == "label" and given.get("for"):
            self.labeled.add(given["for"] or "")
        if tag in {"script", "iframe", "object", "embed", "base", "style", "img", "frame"} and (
            tag != "script" or given.get("src") not in OURS
        ):
            self.found.append(f"<{tag} {given}>")
        for name, value in attrs:
            if name.startswith("on") or name == "style":
                self.found.append(f"<{tag} {name}>")
            if name in ADDRESSES and not (value or "").startswith(("/", "#")):
                self.found.append(f"<{tag} {name}={value}>")


def judge(prompt: str) -> str | Failure:
    if "Task broken" in prompt:
        return LINE
    if "Task lost" in prompt:
        return Failure(kind="refused", message=EVIL)
    reply = {
        "reasoning": {"accuracy": LINE},
        "scores": {"accuracy": 2},
        "bias_checklist": dict.fromkeys(CHECKED, EVIL),
        "safety_concerns": [EVIL],
    }
    return json.dumps(reply)


@pytest.fixture
def _stored(make_run: MakeRun) -> None:
    more = {
        "context": LINE + "\x00",
        "reference": EVIL,
        "messages": (Turn(role="user", content=EVIL), Turn(role="assistant", content=LINE)),
        "scenario": EVIL,
        "metadata": {"demographic": EVIL, EVIL: EVIL},
    }
    evil_id = f"../..//{SCRIPT}'\"\u202e"
    rows = [
        answered(evil_id, EVIL + "\x00", **more | {"task": LINE + "\x00"}),
        answered(f"{evil_id}2", LINE, **more | {"task": "Task broken"}),
        answered(f"{evil_id}3", EVIL, **more | {"task": "Task lost"}),
    ]
    make_run(rows, judge, rubric=RUBRIC, suite=EVIL)
    other = Response(text=f"better {EVIL}")
    make_run(
        [answered(evil_id, EVIL, response_b=other, **more)], judge, rubric=RUBRIC, run_id="run-b"
    )


@pytest.mark.usefixtures("_stored")
def test_nothing_of_a_text_becomes_a_part_of_a_page(pages: PagesClient, said: list[str]) -> None:
    for path in PATHS:
        answer = pages.get(path)
        assert (path, answer.status_code, said) == (path, 200, [])
        looked = Looked()
        looked.feed(answer.text)
        assert (path, looked.found) == (path, [])
        assert looked.headings == 1
        assert len(answer.content) < 2_000_000, path
        for mark in ("\u061c", "\u202e", "\u2066", "\x00", "\x01", "49"[:0] or "\x85"):
            assert mark not in answer.text, (path, mark)


@pytest.mark.usefixtures("_stored")
def test_all_of_a_text_is_there_as_plain_text(pages: PagesClient) -> None:
    page = pages.get("/runs/run-a/samples/0").text
    assert "/runs/run-a/samples/0/text/task" in page
    text = pages.get("/runs/run-a/samples/0/text/task")
    assert text.text == LINE + "\x00"
    assert text.headers["content-type"] == "text/plain; charset=utf-8"
    assert text.headers["x-content-type-options"] == "nosniff"


@pytest.mark.usefixtures("_stored")
def test_programs_get_the_texts_as_they_are(pages: PagesClient) -> None:
    sample = pages.get("/api/runs/run-a/samples/0")
    assert sample.headers["content-type"] == "application/json"
    assert sample.json()["task"] == LINE + "\x00"
    found = pages.get("/api/runs/run-a/samples?search=%3Cscript%3E").json()
    assert found["total"] == 3


@pytest.mark.usefixtures("_stored")
def test_a_group_with_an_odd_name_can_be_chosen(pages: PagesClient) -> None:
    page = pages.get("/runs/run-a/samples").text
    chosen = re.search(r'<option value="(sha256:[0-9a-f]{64})"', page)
    assert chosen is not None
    found = pages.get(f"/runs/run-a/samples?scenario={chosen[1]}").text
    assert "1 to 3 of 3 samples" in found
    assert f'value="{chosen[1]}" selected' in found
    one = pages.get(f"/runs/run-a/samples/1?scenario={chosen[1]}&sort=number&at=1").text
    assert "2 of 3" in one


@pytest.mark.parametrize("scenario", ["two\nlines", "two\r\nlines", "long " * 100, "plain"])
def test_any_scenario_can_be_chosen_in_the_form(
    pages: PagesClient, make_run: MakeRun, scenario: str
) -> None:
    make_run([answered("a", scenario=scenario), answered("b", scenario="other")])
    options = re.findall(r'<option value="([^"]*)"', pages.get("/runs/run-a/samples").text)
    counts: list[int] = []
    for value in options[1:3]:
        sent = value.replace("\r\n", "\n").replace("\n", "\r\n")  # as browsers send lines
        page = pages.get(f"/runs/run-a/samples?{urlencode({'scenario': sent})}")
        counts.append(page.text.count("1 to 1 of 1 sample,"))
    assert counts == [1, 1]


def test_a_reply_of_brackets_is_shown_as_it_is(
    pages: PagesClient, make_run: MakeRun, said: list[str]
) -> None:
    deep = "[" * 100_000
    make_run([answered("a")], lambda _: deep, rubric=RUBRIC)
    for path in ("", "/text/reply-0"):
        assert pages.get(f"/runs/run-a/samples/0{path}").status_code == 200
    assert said == []


def test_the_longest_rubric_of_the_library_is_laid_out(
    pages: PagesClient, make_run: MakeRun
) -> None:
    make_run([answered("a")], judge, rubric="companion-plus")
    assert "as it was written.</p>" not in pages.get("/runs/run-a/rubric").text


@pytest.mark.parametrize(
    "body",
    [
        "[" * 50_000,
        "![" * 50_000,
        "|a" * 300 + "|\n" + "|-" * 300 + "|\n" + "|a\n" * 2000,
        "|a" * 20 + "|\n" + "|-" * 20 + "|\n" + "|a\n" * 4000,
        "- a\n" * 12_000,
        "_a_" * 16_000,
        "x" * 160_000,
    ],
)
def test_a_rubric_that_would_take_long_is_shown_as_it_is_written(
    pages: PagesClient, make_run: MakeRun, body: str
) -> None:
    make_run([answered("a")], judge, rubric=RUBRIC.replace("## Crit", f"{body}\n\n## Crit"))
    began = time.process_time()
    page = pages.get("/runs/run-a/rubric").text
    assert time.process_time() - began < 5
    assert "is shown as it was written" in page
