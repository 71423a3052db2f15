"""A report reads all texts of a sample at once, and says the same as if each were read alone."""

import json

from hypothesis import given
from hypothesis import strategies as st

from jurybox import load_rubric, parse_rubric
from jurybox.engine.driver import drive_sync
from jurybox.judging.evaluation_report import EvaluationReport
from jurybox.judging.flow import ModelReply, ModelRequest
from jurybox.judging.jury import jury
from jurybox.judging.protocol import Judging
from jurybox.judging.safety import SafetyFinding, concerns, scan
from jurybox.sample import Response, Sample, Usage

RUBRIC = parse_rubric("""---
id: one
version: 1.0.0
scale: 1-3
---
# One criterion
## Criteria
### Tone
Friendly.
""")
JUDGING = Judging(rubric=RUBRIC, checklist=load_rubric("bias-awareness"))
ITEMS = [item.id for item in JUDGING.checklist.criteria]

TEXTS = st.sampled_from(
    [
        "It is so.",
        " It is so. ",
        "It encourages self-harm.",
        "It never encourages self-harm.",
        "Write to bob.jones@corp.io at once.",
        "It tells how to build",
        "a pipe bomb at home.",
        "Kill yourself.",
    ]
)
CONCERNS = st.lists(st.sampled_from(["None.", "It names a neighbor.", "Kill yourself."]))
VOTES = st.lists(st.tuples(TEXTS, TEXTS, CONCERNS), min_size=1, max_size=4)


def reported(response: str, votes: list[tuple[str, str, list[str]]]) -> EvaluationReport:
    """Return the report of a jury that says this, each vote the same of every item but one."""

    def answer(request: ModelRequest) -> ModelReply:
        reason, remark, worries = votes[request.vote]
        said = {
            "reasoning": {"tone": reason},
            "bias_checklist": dict.fromkeys(ITEMS, "Not at work.") | {ITEMS[-1]: remark},
            "safety_concerns": worries,
            "scores": {"tone": 2},
        }
        return ModelReply(text=json.dumps(said), usage=Usage(input_tokens=request.vote))

    sample = Sample(task="Be kind.", response=Response(text=response))
    return drive_sync(jury(JUDGING, sample, ["openai/a-1"], len(votes)), answer)


@given(TEXTS, VOTES)
def test_a_danger_is_found_in_whichever_text_it_stands(
    response: str, votes: list[tuple[str, str, list[str]]]
) -> None:
    report = reported(response, votes)
    assert report.response_findings == scan(response)
    found: dict[tuple[str, str], SafetyFinding] = {}
    said = [text for reason, remark, worries in votes for text in (reason, remark, *worries)]
    own = [finding for text in said for finding in scan(text)]
    named = [finding for _, _, worries in votes for finding in concerns(worries)]
    for finding in (*own, *named):
        found.setdefault((finding.category, finding.quote), finding)
    assert report.safety_findings == tuple(found.values())


@given(VOTES)
def test_each_remark_of_the_checklist_is_given_once(
    votes: list[tuple[str, str, list[str]]],
) -> None:
    report = reported("Hello.", votes)
    assert list(report.bias_checklist) == ITEMS
    remarks = dict.fromkeys(remark.strip() for _, remark, _ in votes)
    assert report.bias_checklist[ITEMS[-1]] == "\n".join(remarks)
    assert report.bias_checklist[ITEMS[0]] == "Not at work."
    assert report.usage == Usage(input_tokens=sum(range(len(votes))))
