"""D4: a criterion has one source, and rules are never silently replaced by a judge's number."""

import json
import re
from functools import partial
from pathlib import Path

import pytest

from commands import call
from jurybox import rubric_eval_prompt
from jurybox.errors import RubricError
from jurybox.rubric import parse_rubric

MIXED = """---
id: mixed
version: 1.0.0
scale: 1-5
scales: {brevity: 1.0-5.0}
votes: 1
weights: {truth: 3}
sources: {brevity: rules, truth: judge}
pass: ["brevity >= 4", "truth >= 4"]
---
# Mixed

## Criteria

### Brevity
Says it in few words.

```yaml rules
base: 1
adjust:
  - {add: 4, when: {response_words: 1-10}, why: "Has at most ten words"}
```

### Truth
Is right.
"""
JUDGE = """
from verdicts import scored


def two(prompt):
    return scored({"truth": 2})
"""


def test_d4_the_judge_is_asked_only_for_what_no_rules_score() -> None:
    prompt = rubric_eval_prompt(parse_rubric(MIXED), task="t", response="r")
    assert re.findall(r"^### .*\(`(\w+)`", prompt, re.MULTILINE) == ["truth"]
    assert '"brevity"' not in prompt


def test_d4_rules_score_their_criterion_next_to_a_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    jurybox = partial(call, monkeypatch)
    Path("mixed.md").write_text(MIXED)
    Path("judge.py").write_text(JUDGE)
    texts = ("--rubric", "mixed.md", "--task", "Capital?", "--response", "Paris, I think.")
    done = jurybox("evaluate", *texts, "--judge", "python/judge:two", "--json")
    assert (done.code, done.json["brevity"], done.json["truth"]) == (1, 5, 2)
    brevity, truth = done.json["criteria"]
    assert "Has at most ten words" in brevity["reasoning"]
    assert (brevity["votes"], truth["votes"]) == ([], [2])
    assert done.json["overall"] == pytest.approx((1 * 1.0 + 3 * 0.25) / 4)
    # Comparisons use these (E9), so that they see the rules' criteria too.
    assert (brevity["vote_mean"], truth["vote_mean"]) == (5, 2)
    assert done.json["overall_by_votes"] == done.json["overall"]
    row = {"id": "q", "task": "Capital?", "response": "Paris, I think."}
    Path("rows.jsonl").write_text(json.dumps(row))
    Path("suite.yaml").write_text(
        "suite: s\nrubric: mixed.md\ndataset: rows.jsonl\njudge: {models: [python/judge:two]}\n"
    )
    run = jurybox("run", "suite.yaml", "--json").json
    assert (run["summary"]["brevity_mean"], run["summary"]["truth_mean"]) == (5, 2)
    assert jurybox("verify", "last").code == 0


def test_d4_judges_that_give_one_score_cannot_score_two_criteria() -> None:
    prompt = "## Judge prompt\n```text\nScore {response} by {task}.\n```\n"
    lines = MIXED.replace("votes: 1", "votes: 1\nreply_format: score-line") + prompt
    lines = lines.replace("scale: 1-5", "scale: 1.0-5.0")
    assert parse_rubric(lines).is_mixed
    with pytest.raises(RubricError) as caught:
        parse_rubric(lines.replace("## Judge prompt", "### Style\nReads well.\n\n## Judge prompt"))
    (finding,) = caught.value.findings
    assert finding.code == "ambiguous-source"
    assert lines.splitlines()[finding.line - 2] == "Is right."
    assert "a `score-line` reply has one score, and judges would score `style`" in str(finding)
