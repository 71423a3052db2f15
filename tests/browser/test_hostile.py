"""What models, datasets and rubrics say is shown and never obeyed, and nothing breaks by it."""

from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from stage import Server, rows, run, write_suite

TRAPS = (
    "<script>window.__pwned = 1</script>",
    "<img src=x onerror='window.__pwned = 2'>",
    "</textarea></title></style><svg onload=window.__pwned=3>",
    "'\"><a href='javascript:window.__pwned=4' autofocus onfocus='window.__pwned=5'>here</a>",
    "{{ 7 * 7 }} {% raw %} ${window.__pwned = 6}",
    "\u202eright to left\u202c \u2066isolated\u2069 \u200e\u200f",
    "\x1b[2J\x07\u0085",
    "<!-- --><base href='http://127.0.0.1:9/'>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
)
NASTY = " ".join(TRAPS)
LONG = 1_000_000
RUBRIC = """---
id: hostile
version: 1.0.0
scale: 1-5
votes: 3
---
# <script>window.__pwned = 7</script> & co

<img src=x onerror="window.__pwned = 8"> [link](javascript:window.__pwned=9)

## Criteria

### <b onmouseover="window.__pwned=10">Correctness</b> `correctness`
<iframe src="javascript:window.__pwned=11"></iframe>

| Score | Meaning |
| --- | --- |
| 5 | <script>window.__pwned = 12</script> |
| 1 | "onfocus=window.__pwned=13 autofocus" |

### Tone `tone`
"""
JUDGE = """

def hostile(request):
    said = json.loads(verdict(request, 0))
    nasty = {nasty!r} + chr(0)
    said["reasoning"] = {{name: nasty for name in said["reasoning"]}}
    said["bias_checklist"] = {{name: nasty for name in said["bias_checklist"]}}
    said["safety_concerns"] = [nasty]
    return json.dumps(said)
"""


def hostile_rows() -> list[dict[str, Any]]:
    """Return rows with something nasty in every field, one of them a line of a megabyte."""
    made = rows(2) + rows(3, pairs=True)[2:]
    for row in made:
        # Numbers stay where the judges look for them.
        for name in ("task", "context", "reference", "response", "response_b"):
            if name in row:
                row[name] = f"{NASTY} {row[name]}"
        row["id"] = f"<b onclick=window.__pwned=14>{row['id']}</b>/../%2f?#"
        row["scenario"] = TRAPS[0]
        row["messages"] = [{"role": "user", "content": NASTY}]
        row["metadata"] = {TRAPS[1]: NASTY, "demographic": TRAPS[2]}
    made[1]["response"] = "x" * LONG + made[1]["response"]
    return made


def test_nothing_runs_and_nothing_breaks(page: Page, tmp_path: Path, own: Server) -> None:
    folder = tmp_path / "hostile"
    write_suite(folder, hostile_rows(), judges="[python/judges:hostile]", rubric=RUBRIC)
    with (folder / "judges.py").open("a") as judges:
        judges.write(JUDGE.format(nasty=NASTY))
    base = f"{own.url}/runs/{run(folder, own.store)}"
    paths = ["", "/samples", *(f"/samples/{number}" for number in range(3)), "/rubric"]
    paths += ["/samples?search=%3Cscript%3Ewindow.__pwned%3D15%3C/script%3E", "/review/agreement"]
    for path in paths:
        page.goto(base + path)
        untouched(page)
    page.goto(f"{base}/review?queue=random")
    page.get_by_label("Name", exact=True).fill("<script>window.__pwned=16</script>")
    page.keyboard.press("Enter")
    for _ in range(3):
        expect(page.get_by_role("heading", name="Your verdict")).to_be_visible()
        untouched(page)
        page.keyboard.press("c")
        page.keyboard.insert_text(NASTY.replace("\x1b", "").replace("\x07", "").replace("\x85", ""))
        page.keyboard.press("Escape")
        is_pair = page.get_by_role("heading", name="Response B").count()
        for key in "a" if is_pair else "54":
            page.keyboard.press(key)
        with page.expect_navigation():
            page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="The judge and you")).to_be_visible()
        untouched(page)
        with page.expect_navigation():
            page.keyboard.press("n")
    page.goto(f"{base}/review/agreement")
    untouched(page)


def untouched(page: Page) -> None:
    """Nothing ran, nothing was made into markup, and all of the page is there."""
    assert page.evaluate("typeof window.__pwned") == "undefined", page.url
    assert page.locator("main script, main iframe, main img, main base, main meta").count() == 0
    assert page.locator("main [onclick], main [onerror], main [onfocus]").count() == 0
    assert page.locator("a[href^='javascript:']").count() == 0
    expect(page.locator("footer")).to_be_attached()
