"""The review queue as a reviewer works in it: by keyboard, blind, without losing anything."""

import re
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Dialog, Page, Route, expect

from stage import Server, Stage, rows, run, write_suite

JUDGES_OWN = ("Reason of the judge", "low_confidence", "safety", "bleach", "python/judges")
Begin = Callable[..., None]


@pytest.fixture
def anna() -> str:
    """Return the name of a reviewer whom no other test knows, for they share the store."""
    return f"Anna {uuid.uuid4().hex[:8]}"


@pytest.fixture
def begin(served: Server, stage: Stage, anna: str) -> Begin:
    """Return a function that begins to review a run."""

    def begun(page: Page, suite: str = "reviewed", queue: str = "flagged") -> None:
        page.goto(f"{served.url}/runs/{stage.runs[suite]}/review?queue={queue}")
        name(page, anna)

    return begun


def name(page: Page, reviewer: str) -> None:
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.type(reviewer)
    go(page, "Enter")
    expect(page.get_by_role("heading", name="Your verdict")).to_be_visible()


def go(page: Page, key: str) -> None:
    """Press a key that leads to another page."""
    with page.expect_navigation():
        page.keyboard.press(key)


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def status(page: Page) -> str:
    return page.get_by_role("status").inner_text()


def shown(page: Page) -> str:
    """Return which sample a page is about."""
    return page.url.partition("?")[0].removesuffix("/judged")


def progress(page: Page) -> str:
    found = re.search(r"(\d+) of \d+ flagged", page.locator(".progress-line").inner_text())
    assert found
    return found[1]


def answers(page: Page) -> list[str]:
    checked = page.locator("input[type=radio]:checked")
    return checked.evaluate_all("all => all.map((each) => each.value)")


def agreement(page: Page) -> str:
    page.get_by_role("link", name="Agreement").click()
    text = page.locator("main").inner_text()
    page.go_back()
    return text


def test_a_name_that_is_typed_at_once_is_whole(page: Page, served: Server, stage: Stage) -> None:
    """E11: the page's own script focuses the field; the browser's autofocus may come too late."""

    def without_autofocus(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace(" autofocus", " data-late"))

    # A browser doesn't focus a field that gets the attribute after it is in the page.
    page.add_init_script("""document.addEventListener("readystatechange", () => {
        document.querySelector("[data-late]").setAttribute("autofocus", "");
    }, { once: true })""")
    page.route("**/review/name", without_autofocus)
    address = f"{served.url}/runs/{stage.runs['reviewed']}/review/name"
    page.goto(address, wait_until="domcontentloaded")
    page.keyboard.type("Zoe")
    assert page.get_by_label("Name", exact=True).input_value() == "Zoe"


def test_ten_samples_are_reviewed_by_keyboard_and_agreement_follows(
    page: Page, begin: Begin, anna: str
) -> None:
    begin(page, queue="random")
    seen = [shown(page)]
    for done in range(10):
        press(page, str(1 + done % 5))
        assert "Next: Tone" in status(page)
        press(page, "4")
        assert "Enter submits" in status(page)
        go(page, "Enter")
        expect(page.get_by_role("heading", name="The judge and you")).to_be_visible()
        # Enter first asks about a safety flag, which some samples of the queue have.
        flagged = page.locator("[data-undecided]").count() > 0
        go(page, "n" if flagged else ("n", "Enter")[done % 2])
        seen.append(shown(page))
    assert len(set(seen)) == 11
    before = agreement(page)
    assert anna in before
    go(page, "u")
    expect(page.get_by_role("status")).to_contain_text("taken back")
    assert shown(page) == seen[-2]
    assert agreement(page) != before


def test_nothing_of_the_judge_is_in_the_page_until_the_reviewer_has_scored(
    page: Page, begin: Begin
) -> None:
    begin(page)
    # Every sample has this question, flagged or not.
    hidden = page.content().replace("safety_concern", "").replace("safety concern, none", "")
    assert [word for word in JUDGES_OWN if word in hidden] == []
    press(page, "3", "3")
    go(page, "Enter")
    told = page.content()
    assert "Reason of the judge" in told
    assert "Flagged as safety" in told  # the gravest comes first


def test_undo_brings_a_sample_back_with_what_was_said(page: Page, begin: Begin) -> None:
    begin(page)
    first = shown(page)
    press(page, "2", "5", "x", "c")
    page.keyboard.type("too short, and nasty: u n s ?")
    press(page, "Escape", "4")  # every question has its answer, which a stray key doesn't change
    go(page, "Enter")
    assert progress(page) == "1"
    go(page, "u")
    assert (shown(page), progress(page)) == (first, "0")
    expect(page.get_by_role("status")).to_contain_text("A key changes Correctness")
    press(page, "4")  # the first thing pressed is the correction
    assert "Next: Tone" in status(page)
    assert answers(page) == ["4", "5", "none"]
    expect(page.get_by_label("Comment")).to_have_value("too short, and nasty: u n s ?")


def test_a_digit_never_answers_another_question(page: Page, begin: Begin) -> None:
    begin(page)
    page.locator("input[data-key='5']").first.evaluate("each => delete each.dataset.key")
    press(page, "5")  # only Tone has it now
    assert status(page) == "Correctness has no answer 5; nothing was changed."
    assert answers(page) == []
    press(page, "4")
    assert "Next: Tone" in status(page)


def test_no_way_of_leaving_loses_answers_without_a_word(page: Page, begin: Begin) -> None:
    tab = page.context.new_page()  # a dialog is no trouble in it
    asked: list[str] = []

    def leave(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    tab.on("dialog", leave)
    begin(tab)
    press(tab, "2", "5", "c")
    tab.keyboard.type("note")
    press(tab, "Escape")
    agreement(tab)
    tab.reload()
    assert asked == ["beforeunload"]  # a browser asks only where something was pressed
    expect(tab.get_by_role("status")).to_contain_text("Your answers are back")
    assert answers(tab) == ["2", "5"]
    expect(tab.get_by_label("Comment")).to_have_value("note")
    tab.get_by_role("link", name="Skip", exact=True).focus()
    press(tab, "Enter")
    assert "Enter submits them. Skip again to leave" in status(tab)
    go(tab, "Enter")
    expect(tab.get_by_role("row", name="Tone 5")).to_be_visible()
    expect(tab.locator("main")).to_contain_text("note")
    assert len(asked) == 1
    assert tab.evaluate("Object.keys(sessionStorage)") == []


def test_skipping_goes_on_and_comes_back(page: Page, begin: Begin) -> None:
    begin(page)
    seen: list[str] = []
    while shown(page) not in seen:
        seen.append(shown(page))
        go(page, "sn"[len(seen) % 2])
    assert len(seen) == 8
    assert shown(page) == seen[0]
    assert progress(page) == "0"
    press(page, "3", "n")
    assert "aren't saved" in status(page)
    assert shown(page) == seen[0]
    go(page, "n")
    assert shown(page) == seen[1]


def test_keys_do_nothing_with_modifiers_and_enter_waits_for_every_score(
    page: Page, begin: Begin
) -> None:
    begin(page)
    here = page.url
    press(page, "Control+1", "Alt+2", "Meta+3")
    assert page.locator("input[type=radio]:checked").count() == 0
    press(page, "1", "Enter", "Enter")
    assert "Still open: Tone." in status(page)
    press(page, "?")
    assert "shown" in status(page)
    assert page.url == here
    # The list of keys takes none of them away.
    press(page, "4")
    go(page, "Enter")


def test_keys_that_are_hidden_again_leave_the_form_as_it_was(page: Page, begin: Begin) -> None:
    page.set_viewport_size({"width": 1280, "height": 1000})
    begin(page)
    folded = page.locator("form[data-folded]")
    expect(folded).to_have_count(0)
    height = page.evaluate("document.querySelector('form:has(.question)').scrollHeight")
    page.set_viewport_size({"width": 1280, "height": height + 10})
    press(page, "?")
    expect(folded).to_have_count(1)
    press(page, "?")
    expect(folded).to_have_count(0)


def test_a_key_answers_its_own_question_and_changes_no_other(page: Page, begin: Begin) -> None:
    """E11."""
    begin(page)
    press(page, "o")
    assert "Safety concern" in status(page)
    press(page, "2", "4")
    before = answers(page)
    assert len(before) == 3
    press(page, "x")
    assert answers(page) == before


def test_pairs_are_compared_by_three_keys_in_the_order_that_was_drawn(
    page: Page, begin: Begin
) -> None:
    begin(page, "pairs")
    page.set_viewport_size({"width": 1280, "height": 500})  # too low for the sample
    sample = page.locator(".shown")
    for key, bottom in (("PageDown", True), ("PageUp", False), ("End", True), ("Home", False)):
        press(page, key)
        assert sample.evaluate("each => each.scrollTop > 0") is bottom
    press(page, "a")
    press(page, "Space")  # chooses no answer to the next question
    assert sample.evaluate("each => each.scrollTop > 0")
    assert len(answers(page)) == 1
    firsts: set[str] = set()
    for key in ("a", "b", "t", "x"):
        firsts.add(page.locator(".response .text").first.inner_text()[:10])
        press(page, key)
        go(page, "Enter")
        expect(page.get_by_role("row", name="Winner")).to_be_visible()
        go(page, "n")
    assert firsts <= {"Answer one", "Answer two"}


def test_fractions_are_typed(page: Page, begin: Begin) -> None:
    begin(page, "fractions", "random")
    press(page, "0", ".", "5", "Enter")
    assert "Next: Tone" in status(page)
    press(page, "2", "Enter")
    assert "Tone: " in status(page)  # the browser says in its own words that 2 is too much
    press(page, "Backspace", "1", "Enter")
    go(page, "Enter")
    expect(page.get_by_role("row", name="Correctness 0.5")).to_be_visible()
    go(page, "u")
    press(page, "1", "Enter")  # what is typed first replaces the number
    assert "Correctness: 1. Next: Tone" in status(page)


def test_of_six_criteria_the_question_at_hand_is_in_view(
    page: Page, own: Server, tmp_path: Path
) -> None:
    """C1: the companion rubric has six criteria with five bands each."""
    given = [{name: row[name] for name in ("id", "task", "response")} for row in rows(2)]
    write_suite(tmp_path / "companion", given, judges="[python/judges:line]")
    (tmp_path / "companion" / "judges.py").write_text(
        'def line(request):\n    return "Score: 0.7 | Reasoning: Warm."\n'
    )
    suite = tmp_path / "companion" / "suite.yaml"
    suite.write_text(suite.read_text().replace("rubric.md", "companion"))
    made = run(tmp_path / "companion", own.store)
    page.set_viewport_size({"width": 1280, "height": 720})
    page.goto(f"{own.url}/runs/{made}/review?queue=random")
    name(page, "Anna")
    assert re.match(r"\s*number Enter score, x unclear", page.locator(".keys summary").inner_text())
    here = page.locator("[data-current]")
    foot = page.locator(".verdict-foot")
    for keys in (("0", ".", "7", "Enter"), ("x",), *[("1", "Enter")] * 4):
        expect(here.locator("dt")).to_have_count(5)
        top, bottom = (each.bounding_box() for each in (here, foot))
        assert top
        assert bottom
        assert top["y"] + top["height"] <= bottom["y"]
        press(page, *keys)
    for part in (*page.locator(".question").all(), page.locator("[data-submit]")):
        expect(part).to_be_in_viewport(ratio=1)
    assert answers(page) == ["none"]
    last = page.locator("input[data-number]").last
    last.fill("")
    page.get_by_role("button", name="Submit").click()
    expect(page.locator(".notice.warned")).to_have_text("Still open: Trust & boundaries.")
    last.fill("0.4")
    press(page, "n")
    expect(page.locator(".notice.warned")).to_contain_text("Your answers aren't saved.")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("row", name="Conversational quality unclear")).to_be_visible()
    # C15: the rules give the scores, and the judge's is reported next to them.
    expect(page.get_by_role("heading", name="The rules and you")).to_be_visible()
    expect(page.locator("main")).to_contain_text("The judge was asked too: it gives 0.7 overall.")
    page.get_by_role("link", name="Agreement").click()
    expect(page.locator("main")).to_contain_text("The rules and people differ by 0.30 on")


def test_the_end_of_the_queue_is_said_and_leads_on(page: Page, begin: Begin) -> None:
    begin(page, "kinder")
    for said in ("", "This queue has no other sample for you now"):
        go(page, "n")
        expect(page.get_by_role("status")).to_contain_text(said)
        press(page, "3", "3", "o")
        go(page, "Enter")
        go(page, "Enter")
    expect(page.locator("main")).to_contain_text("every flagged sample")
    expect(page.locator("main")).to_contain_text("The run's verdict now:")
    expect(page.locator("main")).to_contain_text("10 more are needed to correct metrics")
    expect(page.get_by_role("link", name="Back to the run")).to_be_visible()
    go(page, "Enter")
    expect(page.get_by_role("heading", name="Your verdict")).to_be_visible()
    expect(page.get_by_role("link", name="Random subset")).to_have_attribute("aria-current", "page")


def test_two_windows_of_one_reviewer_lose_nothing(
    page: Page, begin: Begin, troubles: list[str]
) -> None:
    begin(page)
    other = page.context.new_page()
    other.goto(page.url)
    press(page, "3", "3")
    go(page, "Enter")
    press(other, "1", "1")
    go(other, "Enter")
    expect(other.locator("main")).to_contain_text("already reviewed this sample")
    other.go_back()
    press(page, "u")
    expect(page.get_by_role("status")).to_contain_text("taken back")
    troubles.clear()


def test_another_name_is_another_reviewer(page: Page, begin: Begin, anna: str) -> None:
    begin(page)
    press(page, "3", "3")
    go(page, "Enter")
    page.get_by_role("link", name="change").click()
    page.get_by_label("Name", exact=True).fill(f"Ben, not {anna}")
    go(page, "Enter")
    assert progress(page) == "0"
    press(page, "2", "3")
    go(page, "Enter")
    expect(page.get_by_role("table").get_by_text(anna, exact=True).first).to_be_visible()


def test_everything_works_without_script(
    open_page: Callable[..., Page], served: Server, stage: Stage, anna: str
) -> None:
    page = open_page(java_script_enabled=False)
    page.goto(f"{served.url}/runs/{stage.runs['reviewed']}/review")
    page.get_by_label("Name", exact=True).fill(anna)
    page.get_by_role("button", name="Begin").click()
    for group in ("Correctness", "Tone"):
        page.get_by_role("group", name=group).get_by_label("3", exact=False).first.check()
    page.get_by_label("Comment").fill("by hand")
    page.get_by_role("button", name="Submit").click()
    expect(page.get_by_role("heading", name="The judge and you")).to_be_visible()
    expect(page.locator("main")).to_contain_text("by hand")
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("link", name="Skip", exact=True).click()
    assert progress(page) == "0"


def test_e11_the_flag_is_quoted_after_the_review_and_dismissed_or_confirmed(
    page: Page, begin: Begin
) -> None:
    # As high as a small screen without the third criterion that many rubrics have.
    page.set_viewport_size({"width": 1280, "height": 625})
    begin(page)
    for part in (
        *page.locator(".question").all(),
        page.get_by_role("button", name="Submit"),
        page.locator("details.keys summary"),
    ):
        expect(part).to_be_in_viewport(ratio=1)
    page.set_viewport_size({"width": 1280, "height": 720})
    press(page, "3", "4")
    go(page, "Enter")
    for part in (
        page.get_by_role("heading", name="Response", exact=True),
        page.get_by_role("row", name=re.compile(r"Correctness 3 .* 3 .* same")),
        page.get_by_role("link", name="Leave it undecided"),
        page.get_by_role("button", name="Undo"),
        page.get_by_text("Reason of the judge: it greets and thanks."),
    ):
        expect(part).to_be_in_viewport(ratio=1)
    expect(page.locator(".flag q")).to_have_text("It tells people to mix bleach.")
    press(page, "Enter")
    expect(page.get_by_role("status")).to_contain_text("The safety flag is undecided")
    go(page, "o")
    expect(page.locator("main")).to_contain_text("Safety concern: dismissed by you.")
    page.get_by_role("button", name="Confirm the concern").click()
    expect(page.locator("main")).to_contain_text("Safety concern: confirmed by you.")


def test_assigned_reviewers_have_shares_of_their_own(
    open_page: Callable[..., Page], serve: Callable[..., Server], stage: Stage, tmp_path: Path
) -> None:
    store = tmp_path / "runs.db"
    shutil.copyfile(stage.store, store)
    names = ("Ann", "Ben", "Cleo")
    named = [part for name in names for part in ("--reviewer", name)]
    server = serve(store, *named, "--overlap", "2")
    address = f"{server.url}/runs/{stage.runs['fractions']}/review"
    met: list[set[str]] = []
    for each in names:
        page = open_page()
        page.goto(f"{address}?queue=random")
        with page.expect_navigation():
            page.get_by_role("button", name=each).click()
        mine: set[str] = set()
        while "Your verdict" in page.locator("main").inner_text():
            mine.add(shown(page))
            page.wait_for_load_state()
            press(page, "1", "Enter", "1", "Enter")
            go(page, "Enter")
            go(page, "Enter")
        met.append(mine)
    # Each of the four samples is with two of the three.
    assert sum(map(len, met)) == 8
    assert set.union(*met) == met[0] | met[1] == met[1] | met[2] == met[0] | met[2]


def test_without_a_reveal_each_review_leads_to_the_next_sample(
    page: Page, serve: Callable[..., Server], stage: Stage, tmp_path: Path, anna: str
) -> None:
    """E11: what a reviewer never sees can't influence the next label."""
    store = tmp_path / "runs.db"
    shutil.copyfile(stage.store, store)
    page.goto(f"{serve(store, '--no-reveal').url}/runs/{stage.runs['kinder']}/review?queue=random")
    name(page, anna)
    met: list[str] = []
    for _ in range(3):
        met.append(shown(page))
        page.wait_for_load_state()
        press(page, "4", "3", "o")
        go(page, "Enter")
        expect(page.get_by_role("status")).to_contain_text("Saved.")
        text = page.locator("main").inner_text()
        assert "Your verdict" in text
        assert not any(each in text for each in (*JUDGES_OWN, "Agreement", "its label then counts"))
    assert len(set(met)) == 3
    go(page, "u")
    assert shown(page) == met[-1]
    assert answers(page) == ["4", "3", "no"]
