"""People's labels in a file of their own (E14)."""

from pathlib import Path

import pytest

from jurybox.app.gold_sets import read_labels
from jurybox.calibration.gold import Gold
from jurybox.datasets import DatasetError
from jurybox.rubric.scale import Scale

SCALES = {"clarity": Scale(low=1, high=5)}


def labels(folder: Path, text: str, name: str = "gold.jsonl") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def test_labels_are_told_by_the_ids_of_their_samples(tmp_path: Path) -> None:
    rows = '{"id": "a", "gold": {"clarity": [4, 5]}, "task": "?"}\n{"id": 7, "gold_winner": "B"}\n'
    found = read_labels(labels(tmp_path, rows + '{"id": "c"}\n'), SCALES)
    assert found == {
        "a": Gold(scores={"clarity": {"1": 4, "2": 5}}),
        "7": Gold(winners={"1": "B"}),
    }


def test_a_table_without_nesting_has_json_in_its_cells(tmp_path: Path) -> None:
    text = 'id,gold,gold_winner\na,"{""clarity"": 3}",\nb,,A\nc,,"[""A"", ""tie""]"\n'
    found = read_labels(labels(tmp_path, text, "gold.csv"), SCALES)
    assert found["a"].score("clarity") == 3
    assert found["b"].winner == "A"
    assert found["c"].winners == {"1": "A", "2": "tie"}


def test_every_label_that_cannot_be_one_is_told_with_its_line(tmp_path: Path) -> None:
    rows = (
        '{"id": "a", "gold": {"clarity": 9}}\n'
        '{"gold": {"clarity": 3}}\n'
        '{"id": "b", "gold": {"clarity": 3}}\n'
        '{"id": "b", "gold": {"clarity": 4}}\n'
        '{"id": "c", "gold": "high"}\n'
        "nonsense\n"
    )
    with pytest.raises(DatasetError) as refused:
        read_labels(labels(tmp_path, rows), SCALES)
    told = [(each.line, each.problem) for each in refused.value.findings]
    assert told[:4] == [
        (1, "`gold` gives `clarity` 9"),
        (2, "the label has no `id`"),
        (4, "the id `b` is given twice (first on line 3)"),
        (5, "`gold` is 'high'"),
    ]
    assert told[4][0] == 6
