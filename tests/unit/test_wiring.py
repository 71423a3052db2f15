from pathlib import Path

import pytest

from jurybox import InputError, RubricError, load_rubric
from jurybox.app.evaluate_once import evaluate
from jurybox.settings import RUBRICS
from jurybox.wiring import setting

GOOD = "---\nid: tone\nversion: 1.0.0\nscale: 1-5\n---\n# Tone\n## Criteria\n### Warmth\n"
JUDGE = "python/judges:one"


@pytest.fixture
def team(tmp_path: Path) -> Path:
    (tmp_path / "rubrics").mkdir()
    path = tmp_path / "rubrics" / "tone.md"
    path.write_text(GOOD)
    return path


def test_the_folder_can_be_set(team: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    team.parent.rename(tmp_path / "elsewhere")
    monkeypatch.setenv(RUBRICS, "elsewhere")
    assert load_rubric("tone").id == "tone"


@pytest.mark.usefixtures("team")
@pytest.mark.parametrize("name", ["rubrics/tone.md", "./rubrics/tone.md"])
def test_a_rubric_is_loaded_by_its_path_as_text_or_as_a_path(name: str) -> None:
    assert load_rubric(name) == load_rubric(Path(name))


def test_a_rubric_is_loaded_by_its_whole_path(team: Path) -> None:
    assert load_rubric(team) == load_rubric(str(team)) == load_rubric("tone")


def test_a_path_is_never_a_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^general: no such file; check the path$"):
        load_rubric(Path("general"))
    (tmp_path / "general").write_text(GOOD)
    assert load_rubric(Path("general")).id == "tone"
    assert load_rubric("general").id == "general"


def test_a_path_needs_no_folder_of_rubrics(team: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUBRICS, "nowhere")
    assert load_rubric(team).id == "tone"
    with pytest.raises(InputError, match=r"^JURYBOX_RUBRICS=nowhere: no such folder; create it"):
        load_rubric("general")


@pytest.mark.parametrize("name", ["nothing", "x" * 300, "a\0b", "nowhere.md", "no/where"])
def test_what_is_not_there_is_bad_input(name: str) -> None:
    with pytest.raises(InputError, match=r"no such|can't be read"):
        load_rubric(name)


def test_a_broken_document_is_refused_under_its_path(team: Path) -> None:
    team.write_text(GOOD.replace("1-5", "5-5"))
    with pytest.raises(RubricError) as caught:
        load_rubric("tone")
    assert str(caught.value).startswith("rubrics/tone.md:4:8: the scale `5-5` has only one point;")


def test_a_variable_that_is_empty_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(RUBRICS, "")
    assert setting(RUBRICS) is None
    monkeypatch.setenv(RUBRICS, "team")
    assert setting(RUBRICS) == "team"


@pytest.mark.parametrize(("named", "announced"), [((), [JUDGE]), ((JUDGE,), [])])
def test_an_unnamed_judge_is_announced_once_before_it_judges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: tuple[str, ...], announced: list[str]
) -> None:
    (tmp_path / "judges.py").write_text("def one(prompt):\n    return ''\n")
    monkeypatch.setattr("jurybox.wiring.embedded_judge", lambda: JUDGE)
    heard: list[str] = []
    evaluate(
        rubric="answer-quality",
        task="Where?",
        response="Paris",
        reference="Paris",
        judges=named,
        on_default_judge=heard.append,
    )
    assert heard == announced


def test_a_judge_that_cannot_judge_is_not_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jurybox.wiring.embedded_judge", lambda: "local/./nowhere.gguf")
    heard: list[str] = []
    with pytest.raises(InputError):
        evaluate(rubric="general", task="t", response="r", on_default_judge=heard.append)
    assert heard == []
