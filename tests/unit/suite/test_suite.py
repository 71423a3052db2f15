"""Suite files: what they mean, and what is said of those that mean nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jurybox.suite import (
    SUITE_KEYS,
    JudgeSpec,
    LangfuseSpec,
    Suite,
    SuiteError,
    parse_suite,
)
from jurybox.suite.model_spec import ModelSpec
from jurybox.suite.target_spec import TargetSpec

SPEC = """\
suite: support-bot
rubric: answer-quality          # a bundled name or a path
dataset: data/questions.jsonl   # jsonl, csv, parquet; or langfuse:NAME
target:                         # leave out when the dataset carries the responses
  model: openai/gpt-4.1-2025-04-14
  prompt: prompts/support.md    # or langfuse:NAME@VERSION
judge:
  models: [openai/gpt-4.1-2025-04-14]
  votes: 3
repeats: 3
"""
LEAST = "suite: a\nrubric: general\ndataset: d.jsonl\n"
A_B = ModelSpec(model="a/b")


def read(text: str) -> Suite:
    return parse_suite(text.encode(), "suite.yaml")


def findings(text: str | bytes) -> list[str]:
    """Every finding as `line:column code`."""
    data = text.encode() if isinstance(text, str) else text
    with pytest.raises(SuiteError) as caught:
        parse_suite(data, "suite.yaml")
    return [f"{each.line}:{each.column} {each.code}" for each in caught.value.findings]


def only_finding(text: str) -> str:
    with pytest.raises(SuiteError) as caught:
        read(text)
    (finding,) = caught.value.findings
    return str(finding)


def target(lines: str) -> TargetSpec:
    found = read(f"{LEAST}target: {lines}").target
    assert found is not None
    return found


def test_the_suite_file_of_the_specification_is_read() -> None:
    assert read(SPEC) == Suite(
        suite="support-bot",
        rubric="answer-quality",
        dataset="data/questions.jsonl",
        target=TargetSpec(
            model=ModelSpec(model="openai/gpt-4.1-2025-04-14"), prompt="prompts/support.md"
        ),
        judge=JudgeSpec(models=(ModelSpec(model="openai/gpt-4.1-2025-04-14"),), votes=3),
        repeats=3,
    )


def test_what_is_left_out_has_a_default() -> None:
    assert read(LEAST) == Suite(suite="a", rubric="general", dataset="d.jsonl")


def test_every_key_of_a_suite_is_read() -> None:
    text = (
        "suite: A.b_c-1\ndescription: |\n  Two\n  lines.\nrubric: my/rubric.md\n"
        "overlays: {old: over.md}\n"
        "dataset: langfuse:questions\ncolumns: {task: Q 1}\nunused: [context]\n"
        "target: {model: a/b}\njudge: {models: [a/b, c/d], batch: true}\nrepeats: 1000\n"
        "variance_sensitive: true\nlimit: 5\nconcurrency: 10000\ncache: true\n"
        "langfuse: {queue: q}\n"
    )
    suite = read(text)
    assert suite == Suite(
        suite="A.b_c-1",
        description="Two lines.",
        rubric="my/rubric.md",
        overlays={"old": "over.md"},
        dataset="langfuse:questions",
        columns={"task": "Q 1"},
        unused=("context",),
        target=TargetSpec(model=A_B),
        judge=JudgeSpec(models=(A_B, ModelSpec(model="c/d")), votes=None, batch=True),
        repeats=1000,
        variance_sensitive=True,
        limit=5,
        concurrency=10000,
        cache=True,
        langfuse=LangfuseSpec(queue="q"),
    )
    keys = {line.partition(":")[0] for line in text.splitlines() if not line.startswith(" ")}
    assert keys == {*SUITE_KEYS} - {"rows", "targets"}


@pytest.mark.parametrize(
    "written",
    ["a/b", "[a/b]", "{models: a/b}", "{model: a/b}", "{models: [{model: a/b}]}"],
)
def test_a_judge_may_be_named_in_short(written: str) -> None:
    assert read(f"{LEAST}judge: {written}").judge == JudgeSpec(models=(A_B,))


@pytest.mark.parametrize("written", ["a/b", "{model: a/b}", "{model: {model: a/b}}"])
def test_a_target_may_be_named_in_short(written: str) -> None:
    assert target(written) == TargetSpec(model=A_B)


def test_every_key_of_a_model_target_is_read() -> None:
    found = target(
        "{model: openai/m@1, prompt: 'langfuse:p@3', system: s.md, timeout: 2.5, generation: "
        "{temperature: 0.5, top_p: 0.9, max_tokens: 10, seed: -1}}"
    )
    assert found == TargetSpec(
        model=ModelSpec(model="openai/m@1", timeout=2.5),
        prompt="langfuse:p@3",
        system="s.md",
        timeout=2.5,
        generation={"temperature": 0.5, "top_p": 0.9, "max_tokens": 10, "seed": -1},
    )
    assert type(found.generation["seed"]) is int


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("python answer.py --fast", ("python", "answer.py", "--fast")),
        ("'python \"my answers.py\" a\\ b'", ("python", "my answers.py", "a b")),
        ("[python, 'my answers.py', 5, '']", ("python", "my answers.py", "5", "")),
        ('[sh, -c, "a | b > c"]', ("sh", "-c", "a | b > c")),
        ("cat", ("cat",)),
    ],
)
def test_a_command_is_parted_into_words(written: str, words: tuple[str, ...]) -> None:
    found = target(f"{{command: {written}, input: json}}")
    assert (found.command, found.input, found.model) == (words, "json", None)


def test_a_command_gets_the_text_by_default() -> None:
    assert target("{command: cat}").input == "text"


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("a | b", "the command doesn't run in a shell, so `|` would be passed as an argument"),
        ("'a && b'", "the command doesn't run in a shell, so `&&` would be passed as an argument"),
        ('"a \'b"', "the command can't be split into words (no closing quotation)"),
        ("''", "the command is empty"),
        ("'  '", "the command is empty"),
        ("", "the command is empty"),
        ("[' ', a]", "the command is empty"),
        ("[]", "`command` is a list"),
        ("{a: b}", "`command` is a mapping"),
        ("[a, [b]]", "`command` is a list, but it must consist of texts"),
    ],
)
def test_a_command_that_can_not_be_started_is_refused(command: str, problem: str) -> None:
    assert problem in only_finding(f"{LEAST}target:\n  command: {command}\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["1:1 missing-key", "1:1 missing-key", "1:1 missing-key"]),
        ("# nothing\n", ["1:1 missing-key", "1:1 missing-key", "1:1 missing-key"]),
        ("- a", ["1:1 wrong-type"]),
        ("text", ["1:1 wrong-type"]),
        ("a: [", ["1:5 yaml-syntax"]),
        (f"{LEAST}suite: b", ["4:1 duplicate-key"]),
        (f"{LEAST}cache: &x true", ["4:8 yaml-not-plain"]),
        (b"\xff\xfes\0", ["1:1 encoding"]),
        (b"suite: \xe9", ["1:8 encoding"]),
        (f"{LEAST}rubrics: x", ["4:1 unknown-key"]),
        (f"{LEAST}target: openai", ["4:9 bad-model"]),
        (f"{LEAST}target: {{model: [a/b]}}", ["4:17 wrong-type"]),
        (f"{LEAST}target: {{}}", ["4:9 missing-key"]),
        (f"{LEAST}target: {{model: a/b, command: c}}", ["4:22 two-targets"]),
        (f"{LEAST}target: {{command: c, model: a/b}}", ["4:10 two-targets"]),
        (f"{LEAST}target: {{model: gpt}}", ["4:17 bad-model"]),
        (f"{LEAST}target: {{model: a/b, timeout: 0}}", ["4:31 out-of-range"]),
        (f"{LEAST}target: {{model: a/b, timeout: -1}}", ["4:31 out-of-range"]),
        (f"{LEAST}judge: {{models: [a/b], timeout: 0}}", ["4:33 out-of-range"]),
        (f"{LEAST}target: {{model: a/b, timeout: 1e9}}", ["4:31 out-of-range"]),
        (f"{LEAST}target: {{model: a/b, timeout: '5'}}", ["4:31 wrong-type"]),
        (f"{LEAST}target: {{model: a/b, input: json}}", ["4:22 unused-key"]),
        (f"{LEAST}target: {{command: a, input: yaml}}", ["4:29 unknown-choice"]),
        (f"{LEAST}target: {{command: a, system: p.md}}", ["4:22 unused-key"]),
        (f"{LEAST}target: {{command: a, generation: {{}}}}", ["4:22 unused-key"]),
        (f"{LEAST}target: {{model: a/b, prompt: ''}}", ["4:30 bad-path"]),
        (f"{LEAST}target: {{model: a/b, prompt: 'langfuse:p'}}", ["4:30 bad-path"]),
        (f"{LEAST}target: {{model: a/b, prompt: 'langfuse:p@'}}", ["4:30 bad-path"]),
        (f"{LEAST}target: {{model: a/b, prompt: 'langfuse:@1'}}", ["4:30 bad-path"]),
        (f"{LEAST}target: {{model: a/b, generation: {{top_k: 1}}}}", ["4:35 unknown-key"]),
        (f"{LEAST}judge: {{}}", ["4:8 missing-key"]),
        (f"{LEAST}judge: {{models: []}}", ["4:17 no-models"]),
        (f"{LEAST}judge: {{models: [[a/b]]}}", ["4:18 wrong-type"]),
        (f"{LEAST}judge: {{models: a/b, model: a/b}}", ["4:22 two-names"]),
        (f"{LEAST}judge: {{models: [a/b, a/b]}}", ["4:23 duplicate-model"]),
        (f"{LEAST}judge: {{models: [a, [b]]}}", ["4:18 bad-model", "4:21 wrong-type"]),
        (f"{LEAST}judge: {{models: [a/b], votes: 0}}", ["4:31 out-of-range"]),
        (f"{LEAST}judge: {{models: [a/b], votes: 100}}", ["4:31 out-of-range"]),
        (f"{LEAST}judge: {{models: [a/b], batch: yes}}", ["4:31 wrong-type"]),
        (f"{LEAST}repeats: 0", ["4:10 out-of-range"]),
        (f"{LEAST}repeats: 1001", ["4:10 out-of-range"]),
        (f"{LEAST}repeats: 2.5", ["4:10 wrong-type"]),
        (f"{LEAST}repeats:", ["4:9 wrong-type"]),
        (f"{LEAST}limit: 0", ["4:8 out-of-range"]),
        (f"{LEAST}concurrency: 10001", ["4:14 out-of-range"]),
        ("suite: a b\nrubric: ''\ndataset: 'langfuse:'\n",
         ["1:8 bad-name", "2:9 bad-path", "3:10 bad-path"]),
        (f"suite: {'a' * 65}\nrubric: a\ndataset: b\n", ["1:8 bad-name"]),
        ('suite: a\nrubric: "a\\nb"\ndataset: [b]\n', ["2:9 bad-path", "3:10 wrong-type"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found_where_it_stands(text: str | bytes, expected: list[str]) -> None:
    assert findings(text) == expected


@pytest.mark.parametrize("key", ["cache", "variance_sensitive"])
@pytest.mark.parametrize(
    "word", ["yes", "no", "True", "on", "1", '"true"', "'false'", "[true]", ""]
)
def test_only_plain_true_and_false_are_flags(key: str, word: str) -> None:
    assert "give `true` or `false`, without quotes" in only_finding(f"{LEAST}{key}: {word}")


def test_all_findings_come_at_once_in_the_order_of_the_text() -> None:
    text = "suit: a\nrubric: x\ntarget: {}\njudge: {modle: x}\nrepeats: 0\ncache: yes\n"
    assert findings(text) == [
        "1:1 unknown-key",
        "1:1 missing-key",
        "1:1 missing-key",
        "3:9 missing-key",
        "4:8 missing-key",
        "4:9 unknown-key",
        "5:10 out-of-range",
        "6:8 wrong-type",
    ]


def test_a_number_that_looks_like_a_name_stays_a_text() -> None:
    assert read("suite: 1.10\nrubric: a\ndataset: b\n").suite == "1.10"


SNIPPETS = [
    "suite:", "rubric: [", "dataset: {a: b}", "target:", "  model: a/b", "  command: 'a", "judge:",
    "  models: [a/b]", "- x", "cache: true", "votes: 9", "\t", "&a", "*a", "!!x", "'", '"', "\0",
    "\ud800", "\u2028", "{", "}", "?", "generation: {seed: 99999999999999999999999}", "timeout: .5",
]  # fmt: skip


@given(st.lists(st.sampled_from([*SPEC.splitlines(), *SNIPPETS]), max_size=12))
def test_no_file_makes_the_reader_raise_anything_else(lines: list[str]) -> None:
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    error = None
    try:
        parse_suite(data, "x")
    except SuiteError as caught:
        error = caught
    for finding in () if error is None else error.findings:
        assert 1 <= finding.line <= len(lines) + 1
        assert str(finding).isprintable()
    assert error is None or error.findings


@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_raise_anything_else(data: bytes) -> None:
    with pytest.raises(SuiteError):
        parse_suite(data, "x")


def test_a_config_of_promptfoo_is_recognized() -> None:
    with pytest.raises(SuiteError) as caught:
        read("description: x\nprompts: [a]\nproviders: [openai:gpt-4]\ntests: []\n")
    assert str(caught.value) == (
        "suite.yaml:1:1: this is a promptfoo config, not a suite;"
        " convert it to a suite: `jurybox import FILE` [not-a-suite]"
    )
