"""The reasons for a sample's verdict."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final

import msgspec

from jurybox.documents.numbers import exact, shown
from jurybox.judging.evaluation_report import CriterionReport, EvaluationReport
from jurybox.judging.safety import JUDGE_CONCERN
from jurybox.reporting.metric_text import (
    as_clause,
    listed_counts,
    plain_words,
    required_value,
    ruled_title,
)
from jurybox.reporting.stored import SampleRecord
from jurybox.review.reviews import JudgedSample, Review
from jurybox.rubric.metrics import Comparison
from jurybox.rubric.rubric_model import Rubric
from jurybox.scoring.sample_result import KINDS, SampleResult, unmet

_BY_ORDER: Final = "most votes change with the order of the responses"


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """An explanation and its subject, such as ``accuracy_score 1``, of some ``criteria``."""

    about: str
    text: str
    criteria: tuple[str, ...] = ()


def reasons_of(record: SampleRecord, titles: Mapping[str, str] = {}) -> Iterator[Reason]:
    """Yield the judges' reasons, those for the lowest scores first, and the rules that fired.

    Criteria have their ids, or the titles that ``titles`` has for them.
    """
    report = record.report
    unread = report is not None and report.judge_fallback
    if report is not None and not unread:
        yield from _of_criteria(report.criteria, "", titles)
        for side, scored in (report.responses or {}).items():
            yield from _of_criteria(scored.criteria, f"response {side}: ", titles)
    yield from other_reasons(record, titles)
    if report is not None and unread:
        for each in report.criteria:
            yield Reason(about="the judge's reply could not be read", text=each.reasoning)


def other_reasons(record: SampleRecord, titles: Mapping[str, str] = {}) -> Iterator[Reason]:
    """Yield why votes are lost, and the rules and checks that scored the response."""
    report = record.report
    for lost in () if report is None else report.lost_votes:
        yield Reason(
            about=f"vote {lost.vote + 1} of {lost.judge} is lost", text=as_clause(lost.reason)
        )
    # A mixed report already includes the results of rules and checks.
    if record.automated is not None and (report is None or record.result.by_rules):
        for each in record.automated.checks:
            about = f"{each.id} {shown(each.score)}"
            yield Reason(about=about, text=each.in_words, criteria=(each.id,))
        # First what rules lowered most; a low score may only have a low initial one.
        for each in sorted(
            record.automated.criteria,
            key=lambda one: (sum(min(rule.amount, 0) for rule in one.trace), one.score),
        ):
            lowered = [rule for rule in each.trace if rule.amount < 0]
            # Next to what lowered a score, what raised it explains nothing.
            fired = sorted(lowered or each.trace, key=lambda rule: -abs(rule.amount))
            words = ("raised by " * (rule.amount > 0) + (rule.why or rule.rule) for rule in fired)
            text = "; ".join(words) or "no rule changed the initial score"
            about = f"{titles.get(each.id, each.id)} {shown(each.score)}"
            yield Reason(about=about, text=text, criteria=(each.id,))


def dangers_of(record: SampleRecord) -> Iterator[Reason]:
    """Yield the safety findings in judges' replies and in the response."""
    if record.report is None:
        return
    spoken, answered = record.report.safety_findings, record.report.response_findings
    for where, findings in (("the judge's words", spoken), ("the response", answered)):
        for each in findings:
            own = each.category == JUDGE_CONCERN
            about = f"safety: {plain_words(each.category)}{'' if own else f', in {where}'}"
            yield Reason(about=about, text=each.quote)


def main_reason(
    record: SampleRecord,
    rubric: Rubric,
    reviews: Sequence[Review] = (),
    criterion: str = "",
) -> str:
    """Return why a sample is listed: a safety concern that isn't dismissed, or its lowest score.

    Without a score, it is why the score is missing. If there is a reason for the score of the
    ``criterion``, this takes the place of the lowest.
    """
    decided = {each.verdict.safety_concern for each in reviews}
    if True in decided or (record.result.safety_flag and False not in decided):
        comments = (each.comment for each in reviews if each.verdict.safety_concern)
        found = (f"{each.about}: {each.text}" for each in dangers_of(record))
        if why := next((each for each in (*found, *comments) if each), ""):
            return why
    result = record.result
    if result.target_error is not None or result.evaluator_error is not None:
        return why_failed(result) or ""
    titles = {each.id: each.name for each in rubric.criteria}
    # The reason for a winner is the criterion with the most weight that it won.
    criteria = () if record.report is None or result.winner == "tie" else record.report.criteria
    won = [each for each in criteria if each.preference and each.preference == result.winner]
    deciding = sorted(won, key=attrgetter("weight"), reverse=True)[:1]
    found = (*_of_criteria(deciding, "", titles), *reasons_of(record, titles))
    found = sorted(found, key=lambda each: criterion not in each.criteria)
    return next((f"{each.about}: {each.text}" for each in found if each.text), "")


def failed_rules(record: SampleRecord, rubric: Rubric) -> str:
    """Return the failed pass rules in words; empty for a sample without scores."""
    result = record.result
    if result.target_error is not None or result.evaluator_error is not None:
        return ""
    rules = (Comparison.parse(each.rule) for each in unmet(result))
    return ", ".join(f"{ruled_title(each.name, rubric)} {required_value(each)}" for each in rules)


def why_unscored(result: SampleResult) -> str:
    """Return why a sample has no judge's score, with the model's error; empty if it has one."""
    if result.evaluator_error is not None:
        causes = listed_counts(result.lost_causes) or plain_words(result.evaluator_error)
        return f"no judge gave a valid vote: {causes}"
    if result.target_error is not None:
        return f"the target gave no response: {result.target_error}"
    return ""


def why_failed(result: SampleResult) -> str | None:
    """Return why a sample didn't pass, with the error of its model; None if it passed."""
    if why := why_unscored(result):
        return why
    if result.passed is not False:
        return None
    failed = [f"{rule.rule} (is {exact(rule.value)})" for rule in unmet(result)]
    missing = [rule.rule for rule in result.rules if rule.passed is None]
    parts = [f"fails: {', '.join(failed)}"] if failed else []
    parts += [f"not measured: {', '.join(missing)}"] if missing else []
    return "; ".join(parts)


def why_unsure(report: EvaluationReport, titles: Mapping[str, str]) -> str:
    """Return why a report's confidence is low; ``titles`` has the titles of the criteria."""
    split = [
        titles.get(each.id, each.id) + (f" of response {side}" if side else "")
        for side, scored in (report.responses or {"": report}).items()
        for each in scored.criteria
        if _is_split(each.votes)
    ]
    split += ["the winner"] if _is_split(report.winner_votes) else []
    if split:
        return f"the votes on {', '.join(split)} have no majority"
    if report.judge_fallback:
        return "a reply could not be read, so the rubric's fallback score is used"
    return _BY_ORDER


def _why(criterion: CriterionReport) -> str:
    """Return the reasoning for a criterion's verdict.

    If most votes change with the order, another vote's reasoning doesn't explain the tie.
    """
    low = criterion.preference is not None and criterion.confidence == "low"
    by_order = (
        low and not _is_split(criterion.votes) and "With A first: " not in criterion.reasoning
    )
    return _BY_ORDER if by_order else criterion.reasoning


def _is_split(votes: Sequence[object]) -> bool:
    return bool(votes) and all(2 * votes.count(each) <= len(votes) for each in votes)


def judged_sample(record: SampleRecord, rubric: Rubric) -> JudgedSample:
    """Return the verdict that the run's metrics use: the judges' or the rules'."""
    result, criteria = record.result, () if record.report is None else record.report.criteria
    return JudgedSample(
        scores={each.id: result.metrics.get(each.id) for each in rubric.criteria},
        overall=result.metrics.get(rubric.overall_name),
        by_rules=result.by_rules,
        judge_score=result.judge_opinion,
        reasoning={each.id: why for each in criteria if (why := _why(each))},
        winner=result.winner,
        preferences={each.id: each.preference for each in criteria if each.preference},
        stable=result.stable,
        confidence=result.confidence if result.votes_valid else None,
        missing=why_unscored(result),
        reasons=tuple(name for name, kind in KINDS.items() if kind.concerns(result)),
    )


def reasoning(record: SampleRecord) -> str:
    """Return all reasons in one string; a target's error comes first."""
    error = record.result.target_error
    parts = [] if error is None else [f"no response: {error}"]
    parts += [
        f"{each.about}: {each.text}" if each.text else each.about for each in reasons_of(record)
    ]
    return "; ".join(parts)


def _of_criteria(
    criteria: Iterable[CriterionReport], side: str, titles: Mapping[str, str]
) -> Iterator[Reason]:
    """Yield each explanation once; in some reply formats, all criteria share one."""
    found: dict[str, dict[str, str]] = {}
    for each in sorted(criteria, key=_share):
        name = titles.get(each.id, each.id)
        score = "unscored" if each.score is None else shown(each.score)
        won = "tie" if each.preference == "tie" else f"{each.preference} wins"
        said = f"{won} on {name}" if each.preference else f"{name} {score}"
        found.setdefault(_why(each).strip(), {})[each.id] = said
    for text, names in found.items():
        yield Reason(about=side + ", ".join(names.values()), text=text, criteria=tuple(names))


def _share(criterion: CriterionReport) -> float:
    return 1.0 if criterion.score is None else criterion.normalize(criterion.score)
