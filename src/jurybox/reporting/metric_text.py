"""The order of a run's metrics, its gates in words, and why its samples failed."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from jurybox.documents.numbers import (
    compared_value,
    dollars,
    exact,
    metric_change,
    rounded,
    rounding_misleads,
    written_value,
)
from jurybox.review.selection import FEWEST
from jurybox.rubric.metrics import (
    AGGREGATE_SCORE,
    PERCENTILES,
    SAMPLE_SCORE,
    SAMPLES,
    WIN_RATE,
    Comparison,
    Statistic,
    run_metrics,
)
from jurybox.rubric.rubric_model import Rubric
from jurybox.scoring.summary import GateOutcome
from jurybox.statistics.estimates import Interval
from jurybox.text_format import counted, joined

_SMALLEST_P: Final = 0.0001


def cost_of(cost: Mapping[str, Any]) -> str:
    """Return a run's cost; if only a part is known, this part and whose cost is unknown."""
    models: Sequence[Mapping[str, Any]] = cost.get("models", ())
    known = [each["dollars"] for each in models if each.get("dollars") is not None]
    unknown = dict.fromkeys(each["role"] for each in models if each.get("dollars") is None)
    if not (any(known) and unknown):
        return dollars(cost.get("dollars"))
    return f"{dollars(math.fsum(known))} + {joined([*unknown])} unknown"


UNITS: Final = {"latency_e2e_ms": "ms", "total_tokens": "tokens"}
"""The units of a sample's measures."""


class RunMetric(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of a run, and the number of samples behind it, if counted."""

    name: str
    value: float | None
    n: int | None


_LACKING: Final = ("unscored_rate", "target_error_rate")
_NO_SCORE: Final = "no sample has a score"
_JUDGED: Final = " by judges' flags"
"""What tells the judges' safety rate from that of a gate, which counts people's decisions too."""
_WORDS: Final = {
    "model_error": "calling the judge failed",
    "parse_error": "the judge's replies could not be read",
    "judge-concern": "a judge's own concern",
    "unscored": "not scored",
    "split": "confidence not high",
    "confirmed": "concern by people",
    "disputed": "concern disputed",
    "target_error": "no response",
    "dataset_id": "dataset",
    "dataset_version_or_hash": "dataset's content",
    "responses_id": "responses",
    "responses_version_or_hash": "responses' content",
    "prompt_template_id": "system's prompt",
    "prompt_template_version_or_hash": "content of the system's prompt",
    "generation_params": "generation parameters",
    "code_version": "git commit",
    "sha256": "text",
    "votes_raised_from": "votes before they were raised",
    "stop_when_decided": "early stop",
    "allow_unpinned": "permission for unpinned models",
    "allow_version_drift": "permission for other model versions",
    "batch": "batch mode",
    "model_id": "system under test",
    "model_version": "system's version",
    "evaluator_model_id": "judges",
    "evaluator_model_version": "judges' versions",
    "evaluator_prompt_template_version_or_hash": "judges' prompt",
    "latency_e2e_ms": "latency (ms)",
    "latency_model_ms": "model latency (ms)",
    "total_tokens": "tokens",
    "win_rate": "win rate of response A",
    "safety_rate": f"safety rate{_JUDGED}",
    "points_of_b": "points of B",
    "right": "agreement with people's labels",
}


def plain_words(name: str) -> str:
    """Return the name of a flag, metric, cause or field of metadata in plain words."""
    return _WORDS.get(name, name.replace("_", " ").replace("-", " "))


def in_sentence(title: str) -> str:
    """Return a title for the middle of a sentence; abbreviations stay in capitals."""
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


_OF_VOTES: Final = {"agreement": "votes' agreement", "win": "win of response A"}


def metric_title(name: str, rubric: Rubric) -> str:
    """Return a metric's name for readers: a criterion's title, with its id if others have it."""
    names = [each.name for each in rubric.criteria]
    titles = {
        each.id: each.name + f" ({each.id})" * (names.count(each.name) > 1)
        for each in rubric.criteria
    }
    titles |= {
        rubric.mean_of(each.id): f"{in_sentence(each.name)} mean" for each in rubric.criteria
    }
    kind, dot, criterion = name.partition(".")
    if dot and kind in _OF_VOTES:
        return f"{_OF_VOTES[kind]} on {titles.get(criterion, criterion)}"
    formula = rubric.metrics.get(name)
    if isinstance(formula, Statistic) and formula.by in PERCENTILES:
        return f"{formula.by} of {metric_title(formula.of, rubric)}"
    return titles.get(name) or plain_words(name)


# What a rule requires, and what fails it.
_REQUIRED: Final = {
    ">=": ("at least", "below"),
    "<=": ("at most", "above"),
    ">": ("more than", "at most"),
    "<": ("less than", "at least"),
    "==": ("exactly", "other than"),
    "!=": ("other than", "exactly"),
}


def required_value(rule: Comparison, *, failed: bool = False) -> str:
    """Return what a rule requires (``at least 85%``) or, if ``failed``, its opposite."""
    unit = " ms" if rule.name.endswith("_ms") else ""
    return f"{_REQUIRED[rule.operator][failed]} {written_value(rule.number, rule.name)}{unit}"


def ruled_title(name: str, rubric: Rubric) -> str:
    """Return the title of a rule's metric without its unit, which follows the rule's number.

    People's decisions count in a rule on safety, not only the judges' flags.
    """
    return metric_title(name, rubric).removesuffix(" (ms)").removesuffix(_JUDGED)


def rules_text(rules: Iterable[Comparison], rubric: Rubric, link: str = "and") -> str:
    """Return rules in words, such as ``Tone is at least 3 and pass rate is at least 85%``."""
    each = [f"{ruled_title(rule.name, rubric)} is {required_value(rule)}" for rule in rules]
    return joined(each, link)


def metrics_of(summary: Mapping[str, Any], rubric: Rubric) -> tuple[RunMetric, ...]:
    """Return the plain metrics of a summary, without those of its repeats and scenarios.

    The key metric comes first, then those that the rubric defines, then the others.
    """
    counts: Mapping[str, int] = summary.get("n", {})
    own = rubric.metrics
    usual = run_metrics(
        [criterion.id for criterion in rubric.criteria],
        overall=rubric.overall_name,
        components=bool(rubric.components),
    )
    names = dict.fromkeys((SAMPLES, key_metric(rubric), "pass_rate", *own, *usual, *summary))
    return tuple(
        RunMetric(name=name, value=summary[name], n=counts.get(name))
        for name in names
        if name in summary and isinstance(summary[name], int | float | None)
    )


def none_scored(summary: Mapping[str, Any], rubric: Rubric) -> bool:
    """Return whether there are samples, but none of them has a score."""
    return not _scored(summary, rubric) and any(map(summary.get, _LACKING))


def _scored(summary: Mapping[str, Any], rubric: Rubric) -> int:
    counts: Mapping[str, int] = summary.get("n", {})
    return counts.get(f"{rubric.overall_name}_mean") or counts.get(WIN_RATE) or 0


def mostly_unscored(summary: Mapping[str, Any]) -> int:
    """Return how many samples have no valid vote, if it is most of them; else 0."""
    rate: float = summary.get("unscored_rate") or 0.0
    return round(rate * summary[SAMPLES]) if rate > 1 / 2 else 0


def repair_first(summary: Mapping[str, Any], rubric: Rubric) -> str:
    """Return what to repair if too few samples have a score for reviews to correct it."""
    samples, scored = summary[SAMPLES], _scored(summary, rubric)
    few = mostly_unscored(summary) or not scored or scored < FEWEST <= samples
    if not few or not any(map(summary.get, _LACKING)):
        return ""
    what = "judge" if summary["unscored_rate"] else "system under test"
    has = "has a score" if scored == 1 else "have scores"
    some = f"only {scored:,} of {counted(samples, 'sample')} {has}" if scored else _NO_SCORE
    return f"{some}; repair the {what} and run the suite again"


def key_metric(rubric: Rubric) -> str:
    """Return the name of the most informative metric of a run."""
    return AGGREGATE_SCORE if rubric.components else f"{rubric.overall_name}_mean"


def key_metric_of(summary: Mapping[str, Any], rubric: Rubric) -> str:
    """Return the name of the most informative metric of a run with these metrics."""
    name = key_metric(rubric)
    pairs = summary.get(name) is None and WIN_RATE in summary
    return WIN_RATE if pairs else name  # pairs have no mean score


def headline(summary: Mapping[str, Any], rubric: Rubric) -> str:
    """Return the name of the metric for a sample's overall quality.

    ``sample_score`` is used only if its components were measured.
    """
    counts: Mapping[str, int] = summary.get("n", {})
    return SAMPLE_SCORE if counts.get(AGGREGATE_SCORE) else rubric.overall_name


def gate_value(gate: GateOutcome) -> str:
    """Return the value of a gate's metric with its unit; exact if rounding would mislead."""
    rule = Comparison.parse(gate.gate)
    return compared_value(rule.name, gate.value, rule.number) + _unit_of(gate)


def gate_margin(gate: GateOutcome) -> str:
    """Return the margin by which a gate passes, from its value as shown; negative if it fails."""
    rule = Comparison.parse(gate.gate)
    apart = rule.margin(gate.value)
    if gate.value is not None and not rounding_misleads(gate.value, rule.number):
        near = rule.margin(rounded(gate.value))
        if not apart or (near and rounded(near)):
            return metric_change(rule.name, near) + _unit_of(gate)
    return exact(apart) + _unit_of(gate)


def _unit_of(gate: GateOutcome) -> str:
    """Return the unit of a measured time; rates have theirs already."""
    is_time = Comparison.parse(gate.gate).name.endswith("_ms")
    return " ms" if is_time and gate.value is not None else ""


NO_RESPONSE: Final = "no response"
_CAUSES: Final = {
    "failed_samples": "why samples fail",
    "target_errors": "why the target gave no response",
    "evaluator_errors": "why judges gave no scores",
}


def causes_of(summary: Mapping[str, Any]) -> Iterator[str]:
    """Yield why samples failed or have no response or scores, each cause with its count."""
    for name, heading in _CAUSES.items():
        counts: Mapping[str, int] = summary.get(name) or {}
        if counts:
            known = {_WORDS.get(cause, cause): count for cause, count in counts.items()}
            yield f"{heading}: {listed_counts(known)}"


def failures_of(summary: Mapping[str, Any]) -> list[tuple[str, int]]:
    """Return why samples failed (a pass rule, no response, no valid vote), with counts."""
    failed: dict[str, int] = dict(summary.get("failed_samples", {}))
    if count := failed.pop(NO_RESPONSE, 0):
        # One reason, because samples can't be filtered by the cause.
        causes = listed_counts(summary.get("target_errors", {}))
        failed[f"{NO_RESPONSE}: {causes.removeprefix(f'{count} x ')}"] = count
    return sorted(failed.items(), key=lambda each: (-each[1], each[0]))


def listed_counts(counts: Mapping[str, int]) -> str:
    """Return causes with their counts in one line, the most frequent first."""
    return "; ".join(
        f"{count} x {cause}{judges and f' ({judges})'}" for count, cause, judges in ranked(counts)
    )


def lost_votes(summary: Mapping[str, Any]) -> list[str]:
    """Return a note on how many votes are missing, and why; empty if none are."""
    lost: int = summary["unscored_votes"]
    causes = listed_counts(summary.get("unscored_causes", {})) or "no valid reply"
    missing = f"{counted(lost, 'vote', 'are')} missing"
    return [f"{missing}: {causes.removeprefix(f'{lost} x ')}"] if lost else []


def ranked(counts: Mapping[str, int]) -> list[tuple[int, str, str]]:
    """Return causes with their counts and judges, the most frequent first.

    A cause that several judges share is listed once, with their names.
    """
    found: dict[str, dict[str, int]] = {}
    for text, count in counts.items():
        judge, _, cause = text.partition(": ")
        named = cause != "" and "/" in judge and " " not in judge
        found.setdefault(cause if named else text, {})[judge if named else ""] = count
    merged = [
        (sum(judges.values()), as_clause(cause), "" if "" in judges else ", ".join(judges))
        for cause, judges in found.items()
    ]
    return sorted(merged, key=lambda each: (-each[0], each[1]))


def short_judges(judges: Iterable[str]) -> list[str]:
    """Return names of judges without their providers, and of functions without their modules."""
    return [each.rpartition(":" if each.startswith("python/") else "/")[2] for each in judges]


def as_clause(cause: str) -> str:
    """Return a defect of a reply so that it can be read without the sentence before it."""
    named = {"it": "the reply", "its": "the reply's"}
    start = r"^((?:. before .: )?)(its?)\b"
    return re.sub(start, lambda found: found[1] + named[found[2]], cause.removesuffix("."))


def main_failure(summary: Mapping[str, Any]) -> str:
    """Return the most frequent reason for missing scores, and how many samples have it."""
    causes: dict[str, int] = {**(summary.get("evaluator_errors") or {})}
    causes |= summary.get("target_errors") or {}
    cause = max(causes, key=causes.__getitem__)
    return f"{plain_words(cause)} ({causes[cause]:,} of {counted(summary['samples'], 'sample')})"


def between(interval: Interval, name: str, joined: str = " to ") -> str:
    """Return the ends of the interval of a difference."""
    low, high = (metric_change(name, each) for each in (interval.low, interval.high))
    return f"{low.removesuffix(' points')}{joined}{high}"


def p_value(p: float | None) -> str:
    """Return a p value for a table."""
    return "-" if p is None else f"< {_SMALLEST_P}" if p < _SMALLEST_P else f"{p:.2g}"
