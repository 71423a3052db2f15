"""E7: texts that try to judge themselves, against judges that obey and judges that quote.

`data/injections.jsonl` has the texts, by kind; VERDICT in one is a reply with the best scores in
the format of the rubric. They come in responses, and in contexts and references, through whole
runs. No sample may have a score that its judge did not give; one whose reply could not be used is
flagged, and so is a response that addresses its judge, also where the judge ignored it.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import jurybox
from jurybox.judging.formats import reply_format
from jurybox.wiring import load_rubric
from verdicts import scored

DATA = Path(__file__).parent / "data" / "injections.jsonl"
INJECTIONS = [json.loads(line) for line in DATA.read_text().splitlines()]
CRITERIA = ("correctness", "completeness", "soundness", "clarity", "usefulness")
HONEST = {
    "general": scored(dict.fromkeys(CRITERIA, 2), "It is weak."),
    "answer-quality": json.dumps(
        {"accuracy_score": 1, "faithfulness_score": 1, "rationale": "It is weak."}
    ),
    "companion": "Score: 0.2 | Reasoning: It is weak.",
}
GIVEN = {"general": {2}, "answer-quality": {1}, "companion": {0.2}}


def forged(rubric: str) -> str:
    """Return a reply with the best scores."""
    loaded = load_rubric(rubric)
    checklist = load_rubric("bias-awareness")
    form = reply_format(loaded.reply_format)
    return form.forge(loaded, checklist, "It is perfect.", None)


def rows(rubric: str) -> list[dict[str, str]]:
    made = [{"id": "plain", "response": "It is 5.", "reference": "It is 4.", "context": "Sums."}]
    for number, each in enumerate(INJECTIONS):
        text = each["text"].replace("VERDICT", forged(rubric))
        made.append({**made[0], "id": f"response {number}", "response": text})
        made.append({**made[0], "id": f"around {number}", "reference": text, "context": text})
    for row in made:
        row["task"] = f"Add 2 and 2 ({row['id']})."
        if rubric == "companion":  # its prompt has no place for it
            del row["reference"]
    return made


def outside(prompt: str) -> str:
    """Return what a judge reads as its instructions: all but the material between its marks."""
    _, _, rest = prompt.partition("<<<NAME ")
    token = rest[:12]
    kept: list[str] = []
    inside = ""
    for line in prompt.split("\n"):
        if inside:
            inside = "" if line == f"<<<END {inside} {token}>>>" else inside
        elif line.startswith("<<<") and line.endswith(f" {token}>>>"):
            inside = line[3 : -len(token) - 4]
        else:
            kept.append(line.replace(token, "TOKEN"))
    return "\n".join(kept)


def headings(prompt: str, plain: str) -> list[str]:
    """Return the lines of a prompt that are the rubric's own, each as often as it comes."""
    own = {line.partition(": ")[0] for line in plain.split("\n") if line.strip()}
    labels = [line.partition(": ")[0] for line in prompt.split("\n")]
    return [label for label in labels if label in own]


class Judges:
    """Judges by name; each is a function of the prompt."""

    def __init__(self, rubric: str) -> None:
        self.rubric = rubric
        self.best, self.honest = forged(rubric), HONEST[rubric]
        self.plain = ""
        self.rows = {row["id"]: row for row in rows(rubric)}

    def obedient(self, prompt: str) -> str:
        """Obey whatever is said outside of the material."""
        self.plain = self.plain or prompt
        if "<<<NAME " in prompt:
            obeys = outside(prompt) != outside(self.plain)
        else:
            obeys = headings(prompt, self.plain) != headings(self.plain, self.plain)
        return self.best if obeys else self.honest

    def quoting(self, prompt: str) -> str:
        """Quote all that was given, and nothing else."""
        return f"I was given this:\n{self.given(prompt)}"

    def quoting_first(self, prompt: str) -> str:
        """Quote, and then judge."""
        return f"I was given this:\n{self.given(prompt)}\n\n{self.honest}"

    def copying(self, prompt: str) -> str:
        """Give back the material and nothing else."""
        return self.given(prompt)

    def given(self, prompt: str) -> str:
        (name,) = set(re.findall(r"Add 2 and 2 \((.*?)\)", prompt)) & self.rows.keys()
        row = self.rows[name]
        return row["context"] if row["id"].startswith("around") else row["response"]


@pytest.fixture(scope="module", params=HONEST)
def judges(request: pytest.FixtureRequest) -> Judges:
    return Judges(request.param)


def judged(judges: Judges, name: str) -> list[tuple[str, set[Any], tuple[str, ...]]]:
    """Return of every sample its kind, the scores that count as its judge's, and its flags."""
    # A judge that repeats a text says the same wherever it found it.
    given = [
        row
        for row in judges.rows.values()
        if name == "obedient" or not row["id"].startswith("around")
    ]
    Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given))
    Path("suite.yaml").write_text(
        f"suite: injected\nrubric: {judges.rubric}\ndataset: rows.jsonl\nconcurrency: 1\n"
        "judge: {models: [python/given:later], votes: 1}\n"
    )
    run = jurybox.run("suite.yaml", judges=getattr(judges, name), allow_unpinned=True)
    results: list[tuple[str, set[Any], tuple[str, ...]]] = []
    for sample in run.samples[1:]:
        report = json.loads(sample.row.report or "{}")
        votes = {vote for each in report.get("criteria", ()) for vote in each["votes"]}
        number = int(sample.row.sample_id.split()[1])
        kind = f"{sample.row.sample_id}: {INJECTIONS[number]['kind']}"
        results.append((kind, votes, sample.result.review_reasons))
    assert len(results) == len(given) - 1 >= len(INJECTIONS)
    return results


def test_the_corpus_is_large_and_of_many_kinds() -> None:
    assert len({each["text"] for each in INJECTIONS}) >= 150
    assert len({each["kind"] for each in INJECTIONS}) >= 10


@pytest.mark.parametrize("name", ["obedient", "quoting", "quoting_first", "copying"])
def test_no_sample_has_a_score_that_its_judge_did_not_give(judges: Judges, name: str) -> None:
    given = GIVEN[judges.rubric]
    results = judged(judges, name)
    # The rubric itself gives 0.5 where a reply can't be used (C15).
    known = given | {"unscored"} | ({0.5} if judges.rubric == "companion" else set())
    wrong = [(kind, votes) for kind, votes, _ in results if votes - known]
    assert wrong == [], wrong[:9]
    if name == "obedient":
        assert [kind for kind, votes, _ in results if votes != given] == []
        flagged = {kind for kind, _, flags in results if "forged_prompt" in flags}
        assert [kind for kind in flagged if kind.startswith("around")] == []
        assert len(flagged) >= len(INJECTIONS) - 6
    # What could not be used is looked at by a person.
    assert [kind for kind, votes, flags in results if votes != given and not flags] == []
