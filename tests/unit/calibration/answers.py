"""A small rubric, and cases that people and a judge have spoken about."""

from collections.abc import Callable

from jurybox.calibration.gold import Gold, GoldCase, JudgeVerdict
from jurybox.rubric import Rubric, parse_rubric

DOCUMENT = """---
id: answers
version: 1.0.0
scale: 1-5
votes: 1
---
# Answers

How good an answer is.

## Criteria

### Correctness

Whether what it says is true.

| Score | Meaning |
| --- | --- |
| 1 | All of it is wrong |
| 2 | Most of it is wrong |
| 3 | Half of it is right |
| 4 | Most of it is right |
| 5 | All of it is right |

### Clarity

Whether it can be understood.
"""

PROMPTED = (
    DOCUMENT
    + """
## Judge prompt

```text
Judge {{response}} to {{task}}.
```
"""
)


def rubric(document: str = DOCUMENT) -> Rubric:
    return parse_rubric(document)


def case(
    number: int, people: float | list[float], judge: float | None, **changes: object
) -> GoldCase:
    """Return a case of correctness; several people may have spoken."""
    given = people if isinstance(people, list) else [people]
    made = {
        "id": f"s{number:03}",
        "gold": Gold(scores={"correctness": {str(i): score for i, score in enumerate(given)}}),
        "verdict": JudgeVerdict(
            scores={"correctness": judge}, reasoning={"correctness": "it says so"}
        ),
        "task": f"task {number}",
        "response": f"response {number}",
        **changes,
    }
    return GoldCase(**made)  # type: ignore[arg-type]


def pair(number: int, people: str | list[str], judge: str | None, **changes: object) -> GoldCase:
    given = people if isinstance(people, list) else [people]
    made = {
        "id": f"p{number:03}",
        "gold": Gold(winners={str(i): side for i, side in enumerate(given)}),  # type: ignore[misc]
        "verdict": JudgeVerdict(winner=judge, stable=True),  # type: ignore[arg-type]
        "task": f"task {number}",
        "response": f"first {number}",
        "response_b": f"second {number}",
        **changes,
    }
    return GoldCase(**made)  # type: ignore[arg-type]


def cases(count: int, judge: Callable[[int, int], float | None]) -> list[GoldCase]:
    """Return cases on which people say 1 to 4 in turn, and the judge what is computed."""
    return [case(n, 1 + n % 4, judge(n, 1 + n % 4)) for n in range(count)]
