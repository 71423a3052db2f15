"""Why a sample was judged as it was, in a few words."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from jurybox.engine.records import SampleRow, read_result
from jurybox.judging.evaluation_report import CriterionReport, EvaluationReport
from jurybox.reporting.metric_text import exact, shown
from jurybox.scoring.rules import AutomatedReport
from jurybox.scoring.sample_result import RuleOutcome, SampleResult

_REPORT: Final = msgspec.json.Decoder(EvaluationReport)
_AUTOMATED: Final = msgspec.json.Decoder(AutomatedReport)
_MORE: Final = "..."


def reasoning(sample: SampleRow) -> str:
    """Return the judges' reasons, those for the lowest scores first, and the rules that fired.

    A system under test that gave no response is the only reason there is.

    Raises:
        msgspec.DecodeError: something stored can't be read.

    """
    error = read_result(sample.result).target_error
    parts = [] if error is None else [f"no response: {error}"]
    if sample.report is not None:
        parts += _of_jury(_REPORT.decode(sample.report))
    if sample.automated is not None:
        parts += _of_rules(_AUTOMATED.decode(sample.automated))
    return "; ".join(parts)


def _of_jury(report: EvaluationReport) -> Iterator[str]:
    yield from _of_criteria(report.criteria)
    for side, scored in (report.responses or {}).items():
        for part in _of_criteria(scored.criteria):
            yield f"{side}: {part}"
    for lost in report.lost_votes:
        yield f"vote {lost.vote + 1} ({lost.judge}) is lost: {lost.reason}"


def _of_criteria(criteria: Iterable[CriterionReport]) -> Iterator[str]:
    """Tell each reasoning once: in some formats it is one for all criteria."""
    said: dict[str, list[str]] = {}
    for each in sorted(criteria, key=_share):
        score = each.preference or ("unscored" if each.score is None else shown(each.score))
        said.setdefault(each.reasoning.strip(), []).append(f"{each.id} {score}")
    for text, names in said.items():
        yield f"{', '.join(names)}: {text}" if text else ", ".join(names)


def _share(criterion: CriterionReport) -> float:
    return 1.0 if criterion.score is None else criterion.normalize(criterion.score)


def _of_rules(report: AutomatedReport) -> Iterator[str]:
    for each in sorted(report.criteria, key=lambda criterion: criterion.score):
        fired = ", ".join(rule.why or rule.rule for rule in each.trace)
        yield f"{each.id} {shown(each.score)}" + (f": {fired}" if fired else "")


def unmeasured(result: SampleResult) -> tuple[RuleOutcome, ...]:
    """Return the pass rules about something that nobody measured."""
    return tuple(rule for rule in result.rules if rule.passed is None)


def in_words(rules: Iterable[RuleOutcome]) -> str:
    """Return rules with the values they were held against."""
    return ", ".join(f"{rule.rule} (is {exact(rule.value)})" for rule in rules)


def cut(text: str, most: int) -> str:
    """Return a text in one line of bounded length."""
    # Only as much as can matter is brought into one line: a text may be a whole book.
    flat = " ".join(text[: 8 * most].split())
    if len(flat) <= most and len(text) <= 8 * most:
        return flat
    return flat[: most - len(_MORE)].rstrip() + _MORE
