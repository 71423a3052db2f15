"""Every broken document of ``tests/golden/rubrics`` is refused with exactly the findings beside it.

After a change on purpose, write the expected findings anew and read the difference line by line::

    UPDATE_GOLDEN=1 .venv/bin/python -m pytest tests/unit/rubric/document/test_golden_findings.py
"""

import os
import re
from pathlib import Path

import pytest

from jurybox.errors import Finding, InputError, RubricError
from jurybox.rubric import Base, Reading, check_rubric, parse_rubric
from jurybox.rubric.document.front_matter import KEYS

ROOT = Path(__file__).parents[4]
GOLDEN = ROOT / "tests" / "golden" / "rubrics"
BASES = ROOT / "tests" / "golden" / "bases"
DOCUMENTS = sorted(GOLDEN.glob("*.md"))
REWRITE = os.environ.get("UPDATE_GOLDEN") == "1"

SOUND = b"""---
id: support-answers
version: 1.0.0
scale: 1-5
---
# Support answers

## Criteria

### Tone
Friendly.
"""

KNOWN_KEYS = ", ".join(f"`{key}`" for key in KEYS)

# What can't be kept as a text file, or would be too large to read.
MADE: dict[str, tuple[bytes, list[str]]] = {
    "empty": (
        b"",
        [
            (
                "1:1: the document has no front matter; begin the file with a line `---`, then "
                "`id`, `version` and `scale`, then `---` [no-front-matter]"
            ),
            "1:1: the document has no title; add a line such as `# Support answers` [no-title]",
            (
                "1:1: there is no section `## Criteria`; add it, with a `###` heading for each "
                "criterion [no-criteria]"
            ),
        ],
    ),
    "an-overlay-that-stands-nowhere": (
        SOUND.replace(b"scale: 1-5", b"extends: voice"),
        [
            (
                "4:10: the base `voice` can't be used: this text has no name or path, "
                "so it can't extend another; load it by its name or path [unknown-base]"
            )
        ],
    ),
    "utf-16-little-endian": (
        SOUND.decode().encode("utf-16"),
        ["1:1: the document is UTF-16; save the file as UTF-8 [encoding]"],
    ),
    "utf-16-big-endian": (
        b"\xfe\xff" + SOUND.decode().encode("utf-16-be"),
        ["1:1: the document is UTF-16; save the file as UTF-8 [encoding]"],
    ),
    "latin-1": (
        SOUND.replace(b"Friendly.", "Übel, très".encode("latin-1")),
        ["11:1: byte 0xdc is not UTF-8; save the file as UTF-8 [encoding]"],
    ),
    "latin-1-behind-utf-8": (
        SOUND.replace(b"Friendly.", "über ".encode() + b"\xe9"),
        ["11:6: byte 0xe9 is not UTF-8; save the file as UTF-8 [encoding]"],
    ),
    "latin-1-with-carriage-returns": (
        SOUND.replace(b"\n", b"\r").replace(b"Friendly.", b"\xe9"),
        ["11:1: byte 0xe9 is not UTF-8; save the file as UTF-8 [encoding]"],
    ),
    "nul": (
        SOUND.replace(b"Friendly.", b"Friend\0ly."),
        ["11:7: the document contains the control character U+0000; remove it [encoding]"],
    ),
    "nul-with-byte-order-mark": (
        b"\xef\xbb\xbf" + SOUND.replace(b"id:", b"\0id:"),
        ["2:1: the document contains the control character U+0000; remove it [encoding]"],
    ),
    "escape": (
        SOUND.replace(b"Friendly.", b"Friend\x1b[31mly."),
        ["11:7: the document contains the control character U+001B; remove it [encoding]"],
    ),
    "next-line": (
        SOUND.replace(b"id:", "\x85id:".encode()),
        ["2:1: the document contains the control character U+0085; remove it [encoding]"],
    ),
    "no-character": (
        SOUND.replace(b"Friendly.", "Ü \uffff".encode()),
        ["11:3: the document contains the control character U+FFFF; remove it [encoding]"],
    ),
    "more-than-100-criteria": (
        SOUND + b"".join(b"\n### Tone %d\n" % number for number in range(100)),
        [
            "8:1: there are more than 100 criteria; split it into several rubrics [too-large]",
        ],
    ),
    "more-than-100-findings": (
        SOUND.replace(
            b"scale:",
            b"".join(b"k%d%s: 1\n" % (number, b"x" * 60) for number in range(101)) + b"scale:",
        ),
        [
            *(
                f"{number + 4}:1: the front matter has no key `k{number}{'x' * 60}`; "
                f"use one of {KNOWN_KEYS} [unknown-key]"
                for number in range(100)
            ),
            "104:1: more than 100 findings; fix the findings above first [too-many]",
        ],
    ),
    "more-than-100-rows": (
        SOUND.replace(b"1-5", b"0-200")
        + b"\n| Score | Meaning |\n| --- | --- |\n"
        + b"".join(b"| %d | As good as %d |\n" % (score, score) for score in range(101)),
        [
            (
                "13:1: the table of levels has 101 rows; write 1 to 100 rows below a header: "
                "score, label (optional), meaning [bad-levels]"
            )
        ],
    ),
    "larger-than-1-mb": (
        SOUND + b"x" * 1_000_000,
        [
            (
                "1:1: the document is larger than 1 MB (1,000,000 bytes); split it or shorten it "
                "[too-large]"
            )
        ],
    ),
    "front-matter-larger-than-200000-characters": (
        SOUND.replace(b"scale:", b"# " + b"x" * 200_000 + b"\nscale:"),
        ["2:1: the YAML has more than 200,000 characters; shorten it [too-large]"],
    ),
    "fault-behind-carriage-returns": (
        SOUND.replace(b"id: support-answers", b"id: Support").replace(b"\n", b"\r\n"),
        [
            (
                "2:5: `Support` can't be a rubric's id; use lower-case letters, digits and "
                "single hyphens, at most 64 characters [bad-id]"
            )
        ],
    ),
}


def find(name: str) -> Base:
    """Find what a golden document extends: the sound and the unsound bases beside them."""
    path = BASES / f"{name}.md"
    if not path.is_file():
        raise InputError("no such rubric", "see `jurybox rubric list`")
    return Base(origin=path.name, key=name, data=path.read_bytes(), find=find)


def checked(document: bytes) -> Reading:
    return check_rubric(document, find)


def shown(findings: tuple[Finding, ...]) -> str:
    return "".join(f"{finding}\n" for finding in findings)


def every_reading() -> list[Reading]:
    golden = [checked(path.read_bytes()) for path in DOCUMENTS]
    return [*golden, *(check_rubric(data) for data, _ in MADE.values())]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_a_broken_document_has_exactly_these_findings(path: Path) -> None:
    reading = checked(path.read_bytes())
    expected = path.with_suffix(".findings")
    if REWRITE:
        expected.write_text(shown(reading.findings), encoding="utf-8")
    assert shown(reading.findings) == expected.read_text(encoding="utf-8")
    assert reading.findings
    assert reading.rubric is None


@pytest.mark.parametrize("name", MADE)
def test_a_document_that_is_no_text_file_has_exactly_these_findings(name: str) -> None:
    data, expected = MADE[name]
    assert [str(finding) for finding in check_rubric(data).findings] == expected


def test_each_golden_document_has_its_findings_and_no_others_lie_about() -> None:
    assert {path.stem for path in GOLDEN.glob("*.findings")} == {path.stem for path in DOCUMENTS}
    assert len(DOCUMENTS) >= 190


def test_the_document_that_the_made_ones_are_broken_from_is_sound() -> None:
    assert check_rubric(SOUND).findings == ()


def test_every_documented_code_has_a_document_that_produces_it() -> None:
    noted = [each for reading in every_reading() for each in reading.findings]
    page = (ROOT / "docs" / "reference" / "rubric-document.md").read_text(encoding="utf-8")
    table = page.partition("## Findings")[2]
    documented = {*re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE)}
    assert {each.code for each in noted} == documented - {"unreadable-file"}


def test_findings_stand_in_the_order_of_the_text() -> None:
    findings = check_rubric((GOLDEN / "many-faults.md").read_bytes()).findings
    places = [(finding.line, finding.column) for finding in findings]
    assert places == sorted(places)


def test_the_error_names_the_origin_before_each_finding() -> None:
    with pytest.raises(RubricError) as caught:
        parse_rubric((GOLDEN / "many-faults.md").read_bytes(), "rubrics/mine.md")
    lines = str(caught.value).split("\n")
    assert len(lines) == len(caught.value.findings) > 10
    assert all(line.startswith("rubrics/mine.md:") for line in lines)
    assert lines[0].startswith(
        "rubrics/mine.md:2:5: `Support` can't be a rubric's id; use lower-case"
    )


def test_the_word_that_there_are_more_findings_comes_last() -> None:
    many = b"".join(b"k%d: 1\n" % number for number in range(120))
    document = SOUND.replace(b"scale:", many + b"scale:") + b"\n<br>\n### Clarity\n"
    findings = check_rubric(document).findings
    assert len(findings) == 101
    assert findings[-1].code == "too-many"


def test_what_is_beyond_the_hundredth_criterion_is_no_part_of_it() -> None:
    table = b"\n| Score | Meaning |\n| --- | --- |\n| 5 | Good |\n"
    document = SOUND + b"".join(b"\n### Tone %d\n%s" % (number, table) for number in range(103))
    assert [finding.code for finding in check_rubric(document).findings] == ["too-large"]
