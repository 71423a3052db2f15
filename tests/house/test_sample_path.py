"""How many files one judged sample crosses, from its evaluation to its stored row."""

import json
import sys
import threading
from pathlib import Path
from types import FrameType

import pytest

import jurybox
from verdicts import scored

SAMPLES = 300
WARM = 200  # samples begun, so that some are finished and nothing is worked out for the first time
MOST = 17  # the aim is 15
ENTRIES = {"Runner._finish", "Store.append"}
AFTERWARDS = "Job.finished"

RUBRIC = """---
id: right
version: 1.0.0
scale: 1-5
votes: 1
---
# Right answers

## Criteria

### Correctness
It is right.
"""


def judge(prompt: str) -> str:
    del prompt
    return scored({"correctness": 5})


class SamplePath:
    """Notes the files of functions that are called for a sample, once some samples are done."""

    def __init__(self) -> None:
        self.files: set[str] = set()
        self._begun = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or "/jurybox/" not in code.co_filename:
            return
        self._begun += code.co_qualname == "evaluate_sample"
        file = code.co_filename.rpartition("/jurybox/")[2]
        if self._begun > WARM and file not in self.files and _is_within(frame):
            self.files.add(file)


def _is_within(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_qualname != AFTERWARDS:
        if frame.f_code.co_qualname in ENTRIES:
            return True
        frame = frame.f_back
    return False


def test_a_sample_crosses_few_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("right.md").write_text(RUBRIC)
    rows = [
        {"id": f"s{number}", "task": "2 + 2?", "reference": "4", "response": f"{number} is 4."}
        for number in range(SAMPLES)
    ]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    look = SamplePath()
    threading.setprofile(look)
    sys.setprofile(look)
    try:
        jurybox.run(
            {"suite": "path", "rubric": "right.md", "dataset": "rows.jsonl"}, judges=[judge]
        )
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert "scoring/evaluate_sample.py" in look.files
    assert "storage/store.py" in look.files
    assert len(look.files) <= MOST, sorted(look.files)
