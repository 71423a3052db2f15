"""The token is asked for once, in a form, and nobody gets further without it."""

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from stage import Server, Stage

TOKEN = "a-token-that-nobody-guesses"  # noqa: S105 - the test's own


def test_only_the_token_opens_the_pages(
    page: Page, stage: Stage, serve: Callable[..., Server], troubles: list[str]
) -> None:
    page.goto(serve(Path(stage.store), JURYBOX_TOKEN=TOKEN).url)
    page.get_by_label("Token").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("isn't the token")
    usual = ("403: ", "console error: Failed to load resource")
    assert [each for each in troubles if not each.startswith(usual)] == []
    troubles.clear()
    page.get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Runs")).to_be_visible()
    assert TOKEN not in page.url
    cookies = page.context.cookies()
    session = next(each for each in cookies if each["name"].startswith("jurybox_session_"))
    assert (session["httpOnly"], session["sameSite"]) == (True, "Strict")
    assert TOKEN not in session["value"]
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
