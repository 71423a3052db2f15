"""Every page can be used by people who see or move otherwise, and is kept as a picture."""

import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from commands import JURYBOX
from stage import Server, Stage
from window import NARROW, WIDE, grave_findings, picture

PAGES = {
    "runs": "/",
    "run": "/runs/{desk}",
    "samples": "/runs/{desk}/samples",
    "sample": "/runs/{pairs}/samples/3",
    "rubrics": "/rubrics",
    "rubric": "/runs/{desk}/rubric",
    "compare": "/compare?a={desk}&b={kinder}",
    "side-by-side": "/side-by-side?run={desk}&run={kinder}",
}

LOWEST = 720
TWO_LINES = 40


def look(page: Page, name: str) -> None:
    """Check a page as it is, in the dark and in a narrow window, and keep pictures of it."""
    assert grave_findings(page) == []
    assert grave_findings(page, "target-size") == []
    picture(page, f"{name}-light")
    page.emulate_media(color_scheme="dark")
    assert grave_findings(page, "color-contrast") == []
    picture(page, f"{name}-dark")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(NARROW)
    # What is too wide scrolls in a box of its own, never the page.
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= NARROW["width"], name
    picture(page, f"{name}-narrow")
    page.set_viewport_size(WIDE)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_fit_to_be_seen(page: Page, served: Server, stage: Stage, name: str) -> None:
    page.goto(served.url + PAGES[name].format(**stage.runs))
    look(page, name)
    if name == "compare":  # the chart is seen without scrolling
        chart = page.locator("svg.differences").bounding_box()
        assert chart is not None
        assert chart["y"] + chart["height"] <= LOWEST
        # A note on how many samples an interval is over has a line of its own.
        rows = page.get_by_label("Metrics of both runs").locator("tr:not(:has(small))").all()
        assert len(rows) > 1
        for line in rows:
            assert line.evaluate("line => line.clientHeight") < TWO_LINES
        page.goto(f"{served.url}/compare")  # to choose the runs
        page.set_viewport_size(NARROW)
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    if name == "samples":  # with a filter that is chosen at the end of its line
        page.goto(page.url + "?flag=passed")
        page.set_viewport_size(NARROW)
        assert page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    for table in page.locator(".outputs .document table").all():  # no column is cut off
        assert table.evaluate("table => table.scrollWidth <= table.parentElement.clientWidth")


def test_a_report_is_fit_to_be_seen(page: Page, report: str) -> None:
    page.goto(report)
    expect(page.locator("#all-samples").get_by_role("status")).to_have_text("24 samples")
    look(page, "report")
    # On paper, the labels of a scale are as high as on a screen.
    page.set_viewport_size({"width": 688, "height": 1000})
    page.emulate_media(media="print")
    labels = page.locator("svg.gauge text").all()
    assert labels
    for label in labels:
        box = label.bounding_box()
        assert box is not None
        assert box["height"] >= 10


def test_a_file_of_two_runs_is_fit_to_be_seen(page: Page, stage: Stage, tmp_path: Path) -> None:
    file, runs = tmp_path / "diff.html", (stage.runs["desk"], stage.runs["kinder"])
    subprocess.run([JURYBOX, "diff", *runs, "--store", stage.store, "-o", file], check=True)
    page.goto(file.as_uri())
    look(page, "diff")


def begin(page: Page, address: str) -> None:
    page.goto(f"{address}/review")
    page.get_by_label("Name", exact=True).fill("Zoe")
    # To the end of loading: what is typed before the script is there is lost.
    with page.expect_navigation():
        page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Your verdict")).to_be_visible()


def test_the_review_queue_is_fit_to_be_seen(page: Page, served: Server, stage: Stage) -> None:
    begin(page, f"{served.url}/runs/{stage.runs['reviewed']}")
    page.keyboard.press("2")
    look(page, "review")
    page.keyboard.press("4")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    look(page, "review-judged")
    page.get_by_role("link", name="Agreement", exact=True).click()
    expect(page.get_by_role("heading", name="Agreement so far")).to_be_visible()
    look(page, "agreement")


def test_a_pair_to_be_reviewed_is_fit_to_be_seen(page: Page, served: Server, stage: Stage) -> None:
    begin(page, f"{served.url}/runs/{stage.runs['pairs']}")
    page.keyboard.press("a")
    look(page, "review-pair")
