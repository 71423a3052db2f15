"""Makes docs/images/check.svg: what `jurybox rubric check` prints on a document with mistakes.

The other pictures in docs/images are screenshots, which the browser tests take.
"""

import html
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[1]
JURYBOX = ROOT / ".venv" / "bin" / "jurybox"
DOCUMENT = """---
id: support-answers
version: 1.2.0
scale: 1-5
weights: {corectness: 2}
votse: 3
pass: ["overall >= 60%", "correctness => 3"]
gates: ["pass_rat >= 0.85"]
---
# Support answers
## Criteria
### Correctness
Facts and steps are right.

| Score | Meaning |
| --- | --- |
| 5 | Everything is right |
| 0 | Wrong or misleading |
### Correctness
"""
LINE, CHARACTER, MARGIN = 19, 8.05, 18
PLAIN, BAD, GOOD, DIM = "#e6edf3", "#ff7b72", "#7ee787", "#8b949e"

Row = list[tuple[str, str]]


def printed(folder: str, *arguments: str) -> list[str]:
    """Run a command in a folder and return the lines of its standard output."""
    done = subprocess.run(  # noqa: S603 - our own command
        [JURYBOX, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    return [line.rstrip() for line in done.stdout.splitlines()]


def check() -> list[Row]:
    """Return the findings of a document as rows of colored pieces."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "support.md").write_text(DOCUMENT)
        lines = printed(folder, "rubric", "check", "support.md")
    rows: list[Row] = [[("$ jurybox rubric check support.md", PLAIN)]]
    for line in lines:
        where, rest = line.split(" ", 1)
        problem, rest = rest.split("; ", 1)
        hint, code = rest.rsplit(" ", 1)
        rows.append([(f"{where} ", PLAIN), (problem, BAD)])
        rows.append([("    ", GOOD), (f"{hint} ", GOOD), (code, DIM)])
    return rows


def svg(rows: list[Row]) -> str:
    """Lay the rows out as one picture that needs no font from anywhere."""
    columns = max(sum(len(text) for text, _ in row) for row in rows)
    width = round(columns * CHARACTER + 2 * MARGIN)
    height = len(rows) * LINE + 2 * MARGIN
    drawn = [
        f'<text x="{MARGIN}" y="{MARGIN + 14 + index * LINE}" xml:space="preserve">'
        + "".join(f'<tspan fill="{fill}">{html.escape(text)}</tspan>' for text, fill in row)
        + "</text>"
        for index, row in enumerate(rows)
    ]
    head = f"""\
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"
          font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, monospace" font-size="13.4">
        <rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>
        """
    return textwrap.dedent(head) + "\n".join(drawn) + "\n</svg>\n"


if __name__ == "__main__":
    if not JURYBOX.exists():
        sys.exit("the environment is missing; make it with: make picture")
    (ROOT / "docs" / "images" / "check.svg").write_text(svg(check()))
