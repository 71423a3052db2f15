import pytest

from jurybox.documents.findings import Findings, Place
from jurybox.documents.plain_yaml import Items, Node, Pairs, Scalar, read_yaml

TOP = Place(1)


def read(text: str, start: Place = TOP) -> tuple[Node | None, list[str]]:
    findings = Findings()
    node = read_yaml(text, start, findings)
    return node, [f"{each.line}:{each.column} {each.code}" for each in findings.in_order()]


def plain(node: Node | None) -> object:
    match node:
        case Scalar(text=text):
            return text
        case Items(items=items):
            return [plain(item) for item in items]
        case Pairs(pairs=pairs):
            return {key.text: plain(value) for key, value in pairs}
        case None:
            return None


def test_line_ends_that_only_yaml_knows_count_for_nothing() -> None:
    _, findings = read('a: "\u2028\u2028"\nb: *x\n')
    assert findings == ["2:4 yaml-not-plain"]


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("a: !!python/object/apply:os.system [x]", "1:4 yaml-not-plain"),
        ("a: !local x", "1:4 yaml-not-plain"),
        ("a: !!str 5", "1:4 yaml-not-plain"),
        ("a: &anchor x", "1:4 yaml-not-plain"),
        ("a: {<<: {b: 1}}", "1:5 yaml-not-plain"),
        ("a: {? [x] : 1}", "1:7 yaml-not-plain"),
        ("a: 1\na: 2", "2:1 duplicate-key"),
        ("a: {b: 1, b: 2}", "1:11 duplicate-key"),
        ("a: [1", "1:6 yaml-syntax"),
        ("a:\n\tb: 1", "2:1 yaml-syntax"),
        (f"a: {26 * '['}1{26 * ']'}", "1:27 yaml-not-plain"),
        ("a: 1\n--- \nb: 2", "2:1 yaml-not-plain"),
        ("a: *x", "1:4 yaml-not-plain"),
        ("*x", "1:1 yaml-not-plain"),
        ('a: "b\\0c"', "1:4 yaml-not-plain"),
        ('a: "b\\x1b[31m"', "1:4 yaml-not-plain"),
        ('a: "\\x7f"', "1:4 yaml-not-plain"),
        ('a: "\\x85"', "1:4 yaml-not-plain"),
        ('"a\\x01": b', "1:1 yaml-not-plain"),
    ],
)
def test_what_is_not_plain_data_is_refused_where_it_stands(text: str, finding: str) -> None:
    _, findings = read(text)
    assert findings == [finding]


def test_half_a_character_is_no_text() -> None:
    node, findings = read('a: "\\ud800"')
    assert node is None
    assert [finding.partition(" ")[2] for finding in findings] == ["yaml-syntax"]


def test_line_ends_and_marks_that_a_text_may_need_are_no_control_characters() -> None:
    node, findings = read('a: "b\\tc\\nd\\u2028\\ufeff\\u200d"')
    assert plain(node) == {"a": "b\tc\nd\u2028\ufeff\u200d"}
    assert findings == []


def test_aliases_can_not_blow_up() -> None:
    text = "a: &a [x, x, x]\n" + "".join(
        f"{name}: &{name} [*{before}, *{before}, *{before}]\n"
        for before, name in zip("abcdefghijkl", "bcdefghijklm", strict=True)
    )
    assert read(text) == (None, ["1:4 yaml-not-plain"])
