"""``jurybox rubric list | show | check | new`` (section I of the specification)."""

import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from jurybox import parse_rubric

BUNDLED = ["answer-quality", "bias-awareness", "code-review", "companion", "general"]
GOOD = (
    "---\nid: tone\nversion: 1.0.0\nscale: 1-5\n---\n# Tone\n## Criteria\n### Warmth\nFriendly.\n"
)
BAD = GOOD.replace("scale: 1-5", "scale: 5-5")
POINT = "the scale `5-5` has only one point"


def test_list_names_every_bundled_rubric(started: Callable) -> None:
    done = started("rubric", "list", "--json")
    assert done.code == 0
    rows = done.json["rubrics"]
    assert [row["name"] for row in rows if not row["extends"]] == sorted(
        {*BUNDLED, *(row["name"] for row in rows if row["name"] == "companion-plus")}
    )
    overlays = {row["name"]: row["extends"] for row in rows if row["extends"]}
    assert overlays["companion-vulnerable"] == overlays["companion-older-adults"] == ["companion"]
    assert all(row["bundled"] and row["findings"] == 0 for row in rows)


@pytest.fixture
def odd_folder(tmp_path: Path) -> Path:
    """A folder of rubrics that holds one good document among what can't be read."""
    folder = tmp_path / "rubrics"
    (folder / "folder.md").mkdir(parents=True)
    (folder / "good.md").write_text(GOOD)
    (folder / "gone.md").symlink_to("nowhere.md")
    (folder / "notes.txt").write_text(GOOD)
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.md")).write_text(GOOD)
    return folder


@pytest.mark.usefixtures("odd_folder")
def test_list_names_what_can_be_read_beside_what_can_not(jurybox: Callable) -> None:
    done = jurybox("rubric", "list", "--json")
    assert (done.code, done.err) == (0, "")
    found = {row["name"]: row for row in done.json["rubrics"] if not row["bundled"]}
    assert {name: row["findings"] for name, row in found.items()} == {
        "caf\ufffd": 0,
        "folder": 1,
        "gone": 1,
        "good": 0,
    }
    assert found["caf\ufffd"]["file"] == "rubrics/caf\ufffd.md"
    assert found["good"]["criteria"] == ["warmth"]
    assert "criteria" not in found["gone"]
    done = jurybox("rubric", "list")
    assert (done.code, done.err) == (0, "")
    assert re.findall(r"^(\S+) .* (rubrics/\S+) *$", done.out, re.MULTILINE) == [
        ("caf\ufffd", "rubrics/caf\ufffd.md"),
        ("folder", "rubrics/folder.md"),
        ("gone", "rubrics/gone.md"),
        ("good", "rubrics/good.md"),
    ]


@pytest.mark.usefixtures("odd_folder")
def test_a_name_that_is_not_utf_8_can_be_checked_by_its_path(jurybox: Callable) -> None:
    done = jurybox("rubric", "check", b"rubrics/caf\xe9.md", "--json")
    assert (done.code, done.err) == (0, "")
    assert done.json["documents"][0]["file"] == "rubrics/caf\ufffd.md"


@pytest.mark.parametrize(
    "arguments",
    [("list",), ("list", "--json"), ("show", "general"), ("check", "x.md"), ("new", "tone")],
    ids=" ".join,
)
def test_a_folder_of_rubrics_that_is_not_there_is_bad_input(
    jurybox: Callable, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = jurybox("rubric", *arguments, JURYBOX_RUBRICS="nowhere")
    assert (done.code, done.out) == (2, "")
    assert done.err == "JURYBOX_RUBRICS=nowhere: no such folder; create it or change the setting\n"
    assert not (tmp_path / "tone.md").exists()


def test_the_folder_of_rubrics_is_a_setting(jurybox: Callable, tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "tone.md").write_text(GOOD)
    assert jurybox("rubric", "show", "tone").code == 2
    assert jurybox("rubric", "show", "tone", JURYBOX_RUBRICS="team").out == GOOD


def test_a_name_that_is_bundled_and_ones_own_is_refused(jurybox: Callable, tmp_path: Path) -> None:
    (tmp_path / "rubrics").mkdir()
    (tmp_path / "rubrics" / "general.md").write_text(GOOD)
    done = jurybox("rubric", "show", "general")
    assert done.code == 2
    assert done.err == (
        "general: both a bundled rubric and rubrics/general.md; rename yours, or give its path\n"
    )
    assert jurybox("rubric", "show", "rubrics/general.md").out == GOOD


@pytest.mark.parametrize("name", BUNDLED)
def test_show_into_a_pipe_is_the_document_to_the_byte(jurybox: Callable, name: str) -> None:
    out = jurybox("rubric", "show", name).out
    digest = jurybox("rubric", "show", name, "--json").json["sha256"]
    assert hashlib.sha256(out.encode()).hexdigest() == digest


def test_show_json_has_all_that_the_document_says(jurybox: Callable) -> None:
    data = jurybox("rubric", "show", "answer-quality", "--json").json
    assert data["gates"][1:3] == ["pass_rate >= 0.85", "faithfulness_failure_rate <= 0.05"]
    assert data["scale"] == "0-2"
    assert data["reply_format"] == "strict-json"
    assert data["metrics"]["latency_e2e_p95_ms"] == "p95 of latency_e2e_ms"
    assert [criterion["id"] for criterion in data["criteria"]] == [
        "accuracy_score",
        "faithfulness_score",
    ]


def test_show_on_a_terminal_lays_the_document_out(on_terminal: Callable) -> None:
    shown = on_terminal("rubric", "show", "general")
    assert "\x1b[" in shown
    assert "General answer quality" in shown
    assert "### " not in shown


def test_check_goes_through_all_files_whatever_it_finds(jurybox: Callable, tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text(GOOD)
    (tmp_path / "bad.md").write_text(BAD)
    done = jurybox("rubric", "check", "nowhere.md", "bad.md", "good.md")
    assert done.code == 2
    assert done.out.splitlines() == [
        "nowhere.md: no such file; check the path [unreadable-file]",
        f"bad.md:4:8: {POINT}; give it at least two, such as `0-1` [bad-scale]",
        "good.md: ok, tone 1.0.0, 1 criterion",
    ]
    assert done.err == "2 of 3 documents have findings\n"


def test_check_json_is_only_json(jurybox: Callable, tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text(GOOD)
    (tmp_path / "bad.md").write_text(BAD)
    done = jurybox("rubric", "check", "bad.md", "good.md", "--json")
    assert done.code == 2
    assert done.err == ""
    bad, good = done.json["documents"]
    assert done.json["ok"] is False
    assert bad["findings"] == [
        {
            "line": 4,
            "column": 8,
            "code": "bad-scale",
            "problem": "the scale `5-5` has only one point",
            "hint": "give it at least two, such as `0-1`",
        }
    ]
    assert (good["ok"], good["id"], good["criteria"]) == (True, "tone", ["warmth"])
    assert good["sha256"] == hashlib.sha256(GOOD.encode()).hexdigest()


def test_check_reads_standard_input(jurybox: Callable) -> None:
    assert jurybox("rubric", "check", "-", stdin=GOOD.encode()).out.startswith("<stdin>: ok")
    assert jurybox("rubric", "check", "-", stdin=BAD.encode()).code == 2


def test_check_says_that_standard_input_is_closed(redirected: Callable) -> None:
    done = redirected("<&-", "rubric", "check", "-")
    assert (done.code, done.err) == (2, "")
    assert done.out.endswith(
        ": standard input is closed; give a file or pipe a document [unreadable-file]\n"
    )
    assert done.out.count("\n") == 1


@pytest.mark.parametrize("command", ["check", "show"])
def test_a_file_without_its_ending_is_suggested(
    jurybox: Callable, tmp_path: Path, command: str
) -> None:
    (tmp_path / "sup.md").write_text(GOOD)
    done = jurybox("rubric", command, "sup")
    assert done.code == 2
    assert (done.out + done.err).startswith("sup: no such rubric; did you mean `sup.md`?")


def test_check_reads_a_file_that_has_no_ending(jurybox: Callable, tmp_path: Path) -> None:
    (tmp_path / "draft").write_text(GOOD)
    assert jurybox("rubric", "check", "draft").out == "draft: ok, tone 1.0.0, 1 criterion\n"


def test_check_reads_no_more_of_a_file_than_it_needs(jurybox: Callable) -> None:
    done = jurybox("rubric", "check", "/dev/zero")
    assert done.code == 2
    assert "larger than 1 MB" in done.out


def test_check_on_a_terminal_puts_the_remedy_on_its_own_line(
    on_terminal: Callable, tmp_path: Path
) -> None:
    (tmp_path / "bad.md").write_text(BAD)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", on_terminal("rubric", "check", "bad.md"))
    assert plain.splitlines() == [
        "bad.md:4:8: the scale `5-5` has only one point",
        "    give it at least two, such as `0-1` [bad-scale]",
    ]


def test_check_says_when_a_file_can_not_be_read(jurybox: Callable) -> None:
    # Not even root can read this one from its beginning.
    done = jurybox("rubric", "check", "/proc/self/mem")
    assert "/proc/self/mem: can't be read (input/output error); check the file" in done.out


def test_new_writes_a_document_that_is_in_order(jurybox: Callable, tmp_path: Path) -> None:
    done = jurybox("rubric", "new", "my-own", "-o", "ours/own.md", "--json")
    assert done.code == 0
    rubric = parse_rubric((tmp_path / "ours/own.md").read_bytes())
    assert rubric.id == "my-own"
    assert done.json == {"id": "my-own", "file": "ours/own.md", "sha256": rubric.sha256}


def test_new_never_writes_over_a_file(jurybox: Callable, tmp_path: Path) -> None:
    (tmp_path / "tone.md").write_text("mine")
    done = jurybox("rubric", "new", "tone")
    assert done.code == 2
    assert done.err == "tone.md: the file exists; choose another place\n"
    assert (tmp_path / "tone.md").read_text() == "mine"


def test_new_prints_the_document_where_the_output_is_a_dash(
    jurybox: Callable, tmp_path: Path
) -> None:
    done = jurybox("rubric", "new", "support-answers", "-o", "-")
    assert (done.code, done.err) == (0, "")
    rubric = parse_rubric(done.out)
    assert (rubric.id, rubric.title) == ("support-answers", "Support answers")
    assert list(tmp_path.iterdir()) == []
