"""The metrics of a run by scenario and by demographic (C13), and the judge's fallbacks (C15)."""

from jurybox.rubric import parse_rubric
from jurybox.sample import Response, Row
from jurybox.scoring.evaluate_sample import conclude
from jurybox.scoring.sample_result import SampleResult
from jurybox.scoring.summary import RunTally

RUBRIC = parse_rubric("""---
id: r
version: 1.0.0
scale: 0.0-1.0
reply_format: score-line
fallback_score: 0.5
---
# R
## Criteria
### Care
""")


def summary(*results: SampleResult) -> dict[str, object]:
    tally = RunTally(RUBRIC, 1)
    for result in results:
        tally.add(result, 0)
    return tally.conclude().summary


def test_the_demographic_is_what_the_metadata_says() -> None:
    def label(**metadata: object) -> str | None:
        row = Row(id="a", task="Hi", metadata=metadata)
        sample = row.sample(Response(text="Hello"))
        return conclude(RUBRIC, row, sample, None, None).demographic

    assert label(demographic="older_65_plus") == "older_65_plus"
    assert [label(), label(demographic=7), label(demographic=" ")] == [None, None, None]
