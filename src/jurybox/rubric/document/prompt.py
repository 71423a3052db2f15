"""The judge prompt that a document brings along."""

import re

from jurybox.documents.findings import Findings, Lines, Place
from jurybox.rubric.template import PLACEHOLDERS, Template
from jurybox.wording import listed, nearest

_DOUBLE = re.compile(r"\{\{([^{}\n]*)\}\}")
_SINGLE = re.compile(r"(?<!\{)\{([A-Za-z_][A-Za-z0-9_]*)\}(?!\})")


def read_template(text: str, fence: Place, findings: Findings) -> Template:
    """Read the prompt and check its placeholders; ``fence`` is where its block opens."""
    template = Template(text=text)
    lines = Lines(text, Place(fence.line + 1, fence.column))
    if not text.strip():
        findings.add(fence, "bad-template", "the judge prompt is empty", "write it")
        return template
    names = dict(template.placeholders())
    for name, index in template.placeholders():
        if name not in PLACEHOLDERS:
            mend = nearest(name, PLACEHOLDERS, f"known are {listed(PLACEHOLDERS)}")
            problem = f"there is no placeholder `{name}`"
            findings.add(lines.place(index), "unknown-placeholder", problem, mend)
    _check_braces(text, names, lines, findings)
    written = {*names, *(match[1] for match in _SINGLE.finditer(text))}
    if "response" not in {PLACEHOLDERS.get(name) for name in written}:
        form = "{response}" if names and not _DOUBLE.search(text) else "{{response}}"
        mend = f"put `{form}` where it belongs"
        findings.add(fence, "bad-template", "the judge prompt never shows the response", mend)
    return template


def _check_braces(text: str, names: dict[str, int], lines: Lines, findings: Findings) -> None:
    """Braces that look like a placeholder and would be sent as they stand."""
    doubles = list(_DOUBLE.finditer(text))
    for match in doubles:
        if match[1].strip() not in names:
            mend = nearest(match[1].strip(), PLACEHOLDERS, f"known are {listed(PLACEHOLDERS)}")
            problem = f"`{match[0]}` is no placeholder"
            findings.add(lines.place(match.start()), "unknown-placeholder", problem, mend)
    for match in _SINGLE.finditer(text) if doubles else ():
        if match[1] in PLACEHOLDERS:
            problem = f"`{match[0]}` is plain text beside placeholders in double braces"
            mend = f"write `{{{match[0]}}}`"
            findings.add(lines.place(match.start()), "unknown-placeholder", problem, mend)
