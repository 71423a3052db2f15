"""JSONL: one object a line, strictly."""

import pytest

from dataset_files import findings, only_finding, refusal

GOOD = '{"task": "x"}'


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            '{"task": "x"',
            (
                "1:13: the JSON breaks off (expecting ',' delimiter); "
                "complete it, on one line [json-syntax]"
            ),
        ),
        ('{"é": x}', "1:7: not valid JSON (expecting value); correct it here [json-syntax]"),
        (
            '{"task": "a\tb"}',
            ("1:12: not valid JSON (invalid control character); correct it here [json-syntax]"),
        ),
        (
            GOOD + " " + GOOD,
            (
                "1:15: something follows the JSON value; "
                "give each row a line of its own [json-syntax]"
            ),
        ),
        (
            '{"task": "x", "n": NaN}',
            ("1:1: NaN is not a JSON number; use null, or leave it out [json-syntax]"),
        ),
        (
            '{"task": "x", "n": 1e999}',
            ("1:1: a number is too large; write it as a string [json-syntax]"),
        ),
        (
            '{"n": ' + "9" * 5000 + "}",
            ("1:1: a number has too many digits; write it as a string [json-syntax]"),
        ),
        (
            r'{"task": "\ud800"}',
            ("1:1: a string contains half a character (a lone surrogate); remove it [json-syntax]"),
        ),
        (
            "5",
            "1:1: the line is the number 5, not an object; write an object, `{...}` [wrong-type]",
        ),
    ],
)
def test_what_is_wrong_with_a_line_is_said_exactly(line: str, said: str) -> None:
    assert only_finding(line) == said


@pytest.mark.parametrize("opening", ['{"a": ', "["])
def test_nesting_without_end_is_refused(opening: str) -> None:
    closing = ("}" if opening.startswith("{") else "]") * 200_000
    line = '{"task": "x", "own": ' + opening * 200_000 + "1" + closing + "}"
    assert findings(line) == ["1:1 too-deep"]


def test_a_hundred_findings_are_enough() -> None:
    error = refusal("x\n" * 5000)
    assert len(error.findings) == 101
    assert (error.findings[99].line, error.findings[100].code) == (100, "too-many")


@pytest.mark.parametrize("text", ["[\n  {\n", '[{"task": "x"}]', " [1, 2]", f"[{GOOD},\n{GOOD}]\n"])
def test_a_json_list_is_told_apart_at_once(text: str) -> None:
    assert only_finding(text) == (
        "1:1: the file is a JSON list; call the file `.json`, or write each object on a line of "
        "its own, without commas [wrong-type]"
    )


@pytest.mark.parametrize("text", ["", "\n", " \n\r\n", "\ufeff"])
def test_a_dataset_without_rows_is_refused(text: str) -> None:
    assert only_finding(text) == "1:1: the dataset has no rows; give it at least one [no-rows]"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_told_apart(encoding: str) -> None:
    error = refusal(GOOD.encode(encoding))
    assert {each.code for each in error.findings} == {"encoding"}
    assert "UTF-16" in str(error)
    assert "save the file as UTF-8" in str(error)


def test_bytes_that_are_not_utf_8_are_found() -> None:
    text = f"{GOOD}\n".encode() + '{"task": "é"}\n'.encode("latin-1")
    assert only_finding(text) == ("2:11: byte 0xe9 is not UTF-8; save the file as UTF-8 [encoding]")
