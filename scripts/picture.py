"""Draws docs/images/check.svg: what `jurybox rubric check` prints for a document with faults."""

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
COLUMNS, LINE, CHARACTER, MARGIN = 98, 19, 8.05, 18
WHERE, PROBLEM, MEND, CODE = "#e6edf3", "#ff7b72", "#7ee787", "#8b949e"


def lines() -> list[list[tuple[str, str]]]:
    """Run the command and return its lines as coloured pieces."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "support.md").write_text(DOCUMENT)
        command = [JURYBOX, "rubric", "check", "support.md"]
        done = subprocess.run(  # noqa: S603 - our own command
            command, cwd=folder, capture_output=True, text=True, check=False
        )
    rows: list[list[tuple[str, str]]] = [[("$ jurybox rubric check support.md", WHERE)]]
    for line in done.stdout.splitlines():
        where, rest = line.split(" ", 1)
        problem, rest = rest.split("; ", 1)
        mend, code = rest.rsplit(" ", 1)
        rows.append([(f"{where} ", WHERE), (problem, PROBLEM)])
        rows.append([("    ", MEND), (f"{mend} ", MEND), (code, CODE)])
    return rows


def svg(rows: list[list[tuple[str, str]]]) -> str:
    """Lay the rows out as one picture that needs no font from anywhere."""
    width = round(COLUMNS * CHARACTER + 2 * MARGIN)
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
        sys.exit("run `make demo` first: it makes the environment that this needs")
    (ROOT / "docs" / "images" / "check.svg").write_text(svg(lines()))
