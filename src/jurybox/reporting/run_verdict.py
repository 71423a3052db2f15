"""The verdict on a run: whether it can be released, and why."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Final
from urllib.parse import urlencode

import msgspec

from jurybox.documents.numbers import exact, metric_value, rounding_misleads, written_value
from jurybox.reporting.metric_text import (
    gate_value,
    listed_counts,
    metric_title,
    plain_words,
    ranked,
    required_value,
    ruled_title,
)
from jurybox.reporting.release import ReleaseReview
from jurybox.reporting.review_text import ReviewAgreement
from jurybox.reporting.run_metrics import gauges, position_of
from jurybox.reporting.view import RunView
from jurybox.rubric.metrics import SAFETY_RATE, SAMPLES, UNSTABLE_RATE, WIN_RATE, Comparison
from jurybox.rubric.rubric_model import Rubric, releases
from jurybox.scoring.decision import decision_reasons
from jurybox.scoring.evaluate_sample import decide
from jurybox.scoring.summary import GateOutcome
from jurybox.statistics.estimates import Interval
from jurybox.text_format import counted, cut, joined

Part = tuple[str, str]
Peer = tuple[str, str, ReviewAgreement | None]
"""The id and the name of another run with the same replies or judges, and what its reviews say."""
_MOST_REASONS: Final = 3
_UNSTABLE: Final = "flag=unstable"
_DANGERS: Final = "flag=safety"
_UNREAD: Final = ("flag=judge_fallback", "flag=unscored")
_LACKING: Final = ("unscored_rate", "evaluator_error_rate")
_LONGEST_CAUSE: Final = 160
_NO_GATES: Final = "the rubric has no gates"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The decision on a run.

    ``word`` and ``sentence`` say whether it can be released, and why; ``tone`` is ``passes``,
    ``fails``, ``waits``, or empty if the rubric decides nothing. ``parts`` are the most important
    reasons, each with the query of the samples that it is about, and ``more`` are the others.
    ``unsure`` names gates that chance may have decided, and ``optional`` what may be reviewed.
    ``failed_gates`` is how many gates fail, ``unnamed_gates`` how many the main reason leaves out.
    """

    word: str
    tone: str
    parts: tuple[Part, ...]
    more: tuple[Part, ...] = ()
    unsure: str = ""
    optional: tuple[Part, ...] = ()
    failed_gates: int = 0
    unnamed_gates: int = 0
    # The first gate that fails, perhaps only by people's scores, if this is the main reason.
    brief: str = ""
    doubt: str = ""  # what the word says against a run that passes
    unreliable: str = ""  # what people's reviews say against the judge's scores
    # What reviews of another run say against them, and the id of that run.
    elsewhere: tuple[str, str] = ("", "")
    # The same in short, if they say not to rely on them.
    unreliable_elsewhere: tuple[str, str] = ("", "")
    pending: bool = False  # whether it passes unless its reviews, still to be compared, object
    uncompared: bool = False  # whether its reviews are still to be compared
    by_reviews: str = ""  # what the values corrected by people's reviews mean for it

    @property
    def main(self) -> Part:
        """The most important reason, how many gates fail, and whether chance may have decided."""
        if self.brief and not self.failed_gates:  # then it is by people's scores
            return self.brief, ""
        last = self.tone == "waits" and self.parts[0][1] not in _UNREAD
        text, query = self.parts[-1 if last else 0]
        if self.failed_gates and query not in {"", _UNSTABLE, _DANGERS}:
            fail = "fails" if self.failed_gates == 1 else "fail"
            text += f"; {counted(self.failed_gates, 'gate')} {fail}"
        elif self.unnamed_gates:
            fail = "fails" if self.unnamed_gates == 1 else "fail"
            text += f", and {counted(self.unnamed_gates, 'more gate')} {fail}"
        return ". ".join(filter(None, (text, self.unsure))), query

    @property
    def notes(self) -> tuple[Part, ...]:
        """What stands in sentences of its own after the reasons."""
        return (*(((self.unsure, ""),) if self.unsure else ()), *self.optional)

    @property
    def sentence(self) -> str:
        """All reasons together."""
        reasons = "; ".join(text for text, _ in (*self.parts, *self.more))
        return ". ".join((reasons, *(text for text, _ in self.notes)))

    @property
    def severity(self) -> str:
        """The class of ``unreliable`` on pages: scores to be corrected are no reason to stop."""
        return "warn" if self.unreliable.startswith("Correct ") else "bad"

    @property
    def of_reviewers(self) -> str:
        """What people's reviews say about the judge and this verdict, in sentences."""
        return ". ".join(filter(None, (self.unreliable, self.by_reviews, self.elsewhere[0])))

    @property
    def in_full(self) -> str:
        """The verdict, its reasons, and what people's reviews say about it."""
        whole = f"{self.word}: {self.sentence}"
        return ". ".join(filter(None, (whole, self.of_reviewers)))

    def as_data(self) -> dict[str, str | None]:
        """Return the verdict, its reasons and what people's reviews say, for JSON."""
        return {
            "verdict": self.word,
            "reason": self.sentence or None,
            "review_doubt": self.doubt or None,
            "people_say": self.of_reviewers or None,
        }


def verdict_of(
    view: RunView,
    people: ReviewAgreement | None = None,
    *,
    pending: bool = False,
    peer: Peer | None = None,
) -> Verdict:
    """Return whether a run can be released, and why; marked if there is doubt about it.

    There is if no judge confirmed it, or if its reviews say otherwise or aren't compared yet, or
    those of its ``peer``, given by id and name: a run with the same replies or the same judges.
    """
    verdict = _with_other_reviews(_with_unread(view, _by_the_judge(view)), view.release)
    run_id, name, known = peer or ("", "", None)
    others = known.titled(view.rubric) if known and known.warns else None
    said, _, tone = others.concluded if others else ("", "", "")
    elsewhere = said if tone == "fails" else ""
    whose = f"People's reviews of {cut(name, 40)}"
    made = corrected_gates(view, people)
    verdict = msgspec.structs.replace(
        verdict,
        uncompared=pending and bool(view.release.every or (run_id and not known)),
        unreliable=people.titled(view.rubric).advice if people and people.warns else "",
        elsewhere=(f"{whose}: {others.advice}", run_id) if others else ("", ""),
        unreliable_elsewhere=(f"{whose}: {elsewhere}", run_id) if elsewhere else ("", ""),
        by_reviews=_by_reviews(view, made, fails=verdict.tone == "fails"),
    )
    reviews = "but see reviews" if elsewhere or doubted_by_reviews(view, people) else ""
    late = "reviews not yet compared" if verdict.uncompared else ""
    doubts = [view.unconfirmed, reviews or late]
    if verdict.tone != "passes" or not any(doubts):
        return verdict
    doubt = ", ".join(filter(None, doubts))
    worse = [each.outcome for each in made.values() if each.worse]
    brief = f"by people's scores, {_brief(worse, view.rubric)}" if worse else ""
    # Of a verdict that waits, the last part is the main one.
    parts = verdict.parts[:: -1 if view.release.concerned and not view.unconfirmed else 1]
    return msgspec.structs.replace(
        verdict,
        word=f"{verdict.word}, {doubt}",
        doubt=doubt,
        tone="waits",
        brief=brief,
        parts=parts,
        pending=bool(late and not reviews),
    )


def doubted_by_reviews(view: RunView, people: ReviewAgreement | None) -> bool:
    """Return whether reviewers saw concerns, or their scores would fail a gate that passes."""
    worse = any(each.worse for each in corrected_gates(view, people).values())
    return bool(view.release.concerned or view.release.warning) or worse


def _with_other_reviews(verdict: Verdict, release: ReleaseReview) -> Verdict:
    """Add what reviewers said about the run that this one was rescored from."""
    others: list[Part] = [(each.sentence, "") for each in release.elsewhere]
    # The last part of a verdict that waits says what it waits for.
    at = len(verdict.parts) - (verdict.tone == "waits")
    parts = (*verdict.parts[:at], *others, *verdict.parts[at:])
    return msgspec.structs.replace(verdict, parts=parts)


class CorrectedGate(msgspec.Struct, frozen=True, kw_only=True):
    """A gate, and its outcome with the value that reviews corrected."""

    rule: Comparison
    judged: GateOutcome
    outcome: GateOutcome
    interval: Interval | None

    @property
    def worse(self) -> bool:
        """Whether the gate passes only with the judge's value."""
        return self.judged.passed and not self.outcome.passed

    @property
    def in_words(self) -> str:
        """The interval of the corrected value, if chance isn't excluded."""
        if self.interval is None or not self.close:
            return ""
        ends = (self.interval.low, self.interval.high)
        low, high = (metric_value(self.rule.name, each) for each in ends)
        return f" (interval {low} to {high}, so chance isn't excluded)"

    @property
    def better(self) -> bool:
        """Whether the gate passes only with the corrected value."""
        return self.outcome.passed and not self.judged.passed

    @property
    def close(self) -> bool:
        """Whether the threshold is within the interval of the corrected value."""
        made = self.interval
        return made is not None and made.low <= self.rule.number <= made.high


def corrected_gates(view: RunView, people: ReviewAgreement | None) -> dict[str, CorrectedGate]:
    """Return the gates whose metric is corrected by reviews."""
    found = people.by_gated_metric(view.rubric, view.summary[SAMPLES]) if people else {}
    best = {name: each.mean.corrected for name, each in found.items()}
    return {
        gate.gate: CorrectedGate(
            rule=rule,
            judged=gate,
            outcome=GateOutcome(gate=gate.gate, value=made.value, passed=rule.passes(made.value)),
            interval=made.interval,
        )
        for gate, rule in ((gate, Comparison.parse(gate.gate)) for gate in view.gates)
        if (made := best.get(rule.name)) is not None and made.value is not None
    }


def _by_reviews(view: RunView, made: Mapping[str, CorrectedGate], *, fails: bool) -> str:
    """Return what values corrected by reviews mean for a verdict; empty if nothing."""
    failed = [each for each in made.values() if each.worse or (fails and not each.outcome.passed)]
    if failed:
        failed.sort(key=attrgetter("close"))
        texts = failed_gates((each.outcome for each in failed), view)
        why = "; ".join(
            f"{text}{each.in_words}" for each, (text, _) in zip(failed, texts, strict=True)
        )
        does = "support" if fails else "cast doubt on"
        return f"People's reviews {does} this verdict: corrected by them, {why}"
    better = [each for each in made.values() if each.better]
    if not better:
        return ""
    still = any(
        not (made[gate.gate].outcome if gate.gate in made else gate).passed for gate in view.gates
    )
    if not (still or view.release.blockers):
        return "People's reviews cast doubt on this verdict: corrected by them, every gate passes"
    names = ", ".join(metric_title(each.rule.name, view.rubric) for each in better)
    return f"Corrected by people's reviews, {names} would pass; the other reasons remain"


def _with_unread(view: RunView, verdict: Verdict) -> Verdict:
    """Add that judges' replies could not be used; if no judge confirmed the run, it comes first."""
    if not view.unread_note or view.status != "finished":
        return verdict
    part = (view.unread_note, _UNREAD[not view.unread])
    if view.unconfirmed:
        return msgspec.structs.replace(verdict, parts=(part, *verdict.parts))
    return msgspec.structs.replace(verdict, more=(*verdict.more, part))


def _by_the_judge(view: RunView) -> Verdict:
    conclusion, release = view.conclusion, view.release
    confirmed, awaited = tuple(_confirmed(release)), tuple(_awaited(release))
    failed = [gate for gate in view.gates if not gate.passed]
    unscored = tuple(_unscored(view))
    if view.status != "finished":
        why = "The run has to be finished before anything is decided"
        fail = "fails" if len(failed) == 1 else "fail"
        so_far = f"so far {len(failed)} of {counted(len(view.gates), 'gate')} {fail}"
        parts = [why, so_far] if failed and view.summary[SAMPLES] else [why]
        return Verdict(word="Not finished", tone="waits", parts=tuple((each, "") for each in parts))
    if conclusion.decision is not None:
        word = conclusion.decision.replace("_", " ").capitalize().replace("Ab test", "A/B test")
        good = releases(view.rubric.decisions, conclusion.decision)
        tone = "passes" if good else "waits" if awaited and not release.blocked else "fails"
        if failed:
            fail = "fails" if len(failed) == 1 else "fail"
            but = f", but {len(failed)} of {counted(len(view.gates), 'gate')} {fail}"
            word, tone = word + but * good, "fails"
        why = failed_gates(failed, view)
        return _verdict(word, tone, unscored, confirmed, why, awaited, _decided(view))
    if failed or release.blocked:
        room = _MOST_REASONS - len(confirmed) - len(awaited)
        failed.sort(key=lambda gate: Comparison.parse(gate.gate).name != UNSTABLE_RATE)
        named = len(failed) <= room
        why = (failed_gates if named else _failing)(failed, view)
        if unscored and failed:
            fail = "fails" if len(failed) == 1 else "fail"
            many = f"{len(failed)} of {counted(len(view.gates), 'gate')} {fail}"
            why = ((f"{many} ({_titles(failed, view)})", ""),)
        verdict = _verdict("Don't ship", "fails", unscored, confirmed, why, awaited)
        brief = "" if unscored or confirmed or view.unconfirmed else _brief(failed, view.rubric)
        unnamed = max(0, len(failed) - 1) if named else 0
        return msgspec.structs.replace(
            verdict, failed_gates=len(failed), unnamed_gates=unnamed, brief=brief
        )
    whose = " for response A" if WIN_RATE in view.summary else ""
    passes = [(f"every gate passes{whose}" if view.gates else _NO_GATES, "")]
    if awaited:
        waits = _verdict("Awaiting review", "waits", confirmed, passes, awaited)
        return msgspec.structs.replace(waits, unsure=_unsure(view))
    if not view.gates and conclusion.release_ready is None:
        return _verdict("No verdict", "", confirmed, [(f"{_NO_GATES}, so nothing is decided", "")])
    left: int = conclusion.review["queued"]
    reviews = ((f"Optional: reviews of {counted(left, 'sample')}", "review=open"),) if left else ()
    verdict = _verdict("Ship", "passes", confirmed, passes)
    return msgspec.structs.replace(verdict, unsure=_unsure(view), optional=reviews)


def _verdict(word: str, tone: str, *reasons: Iterable[Part]) -> Verdict:
    """Return a verdict with its reasons, the most important first."""
    every = tuple(part for some in reasons for part in some)
    return Verdict(word=word, tone=tone, parts=every[:_MOST_REASONS], more=every[_MOST_REASONS:])


def _unscored(view: RunView) -> Iterator[Part]:
    """Yield why no sample has a score, or too few to decide; nothing if enough have one."""
    summary = view.summary
    if view.none_scored or view.unscored:
        errors: Mapping[str, int] = summary.get("evaluator_errors") or {}
        judges = {plain_words(cause): count for cause, count in errors.items()}
        systems: Mapping[str, int] = summary.get("target_errors") or {}
        votes = listed_counts(summary.get("unscored_causes") or {})
        votes = votes.removeprefix(f"{summary['unscored_votes']} x ")
        flag = "unscored" if summary["unscored_rate"] else "target_error"
        several = len(judges) + len(systems) > 1
        causes = (listed_counts(some) if several else "".join(some) for some in (judges, systems))
        of_judges, of_systems = causes
        of_judges += f" ({cut(votes, _LONGEST_CAUSE)})" if votes and judges else ""
        why = "; ".join(filter(None, (of_judges, of_systems)))
        which = f"{view.unscored:,} of {counted(summary[SAMPLES], 'sample')} could not"
        which = "no sample could" if view.none_scored else which
        yield f"{which} be scored: {why}", f"flag={flag}"
        what = "judge" if summary["unscored_rate"] else "system under test"
        why = "reviews can't replace the missing scores"
        yield f"repair the {what} and run the suite again ({why})", ""


def _confirmed(release: ReleaseReview) -> Iterator[Part]:
    if release.confirmed:
        count = counted(len(release.confirmed), "safety concern")
        yield f"{count} {release.how_seen}", "review=confirmed"
    if release.disputed:
        count = counted(len(release.disputed), "safety concern")
        yield f"{count} that reviewers disagree about", "review=disputed"


def _awaited(release: ReleaseReview) -> Iterator[Part]:
    """Yield which reviews a release is waiting for."""
    if release.waits_for:
        need = "needs" if release.waits_for == 1 else "need"
        what = ", ".join(map(plain_words, release.awaited))
        text = f"{counted(release.waits_for, 'sample')} {need} a review before a release ({what})"
        yield text, "review=awaiting"


def _unsure(view: RunView) -> str:
    """Return a note on gates that pass, but that chance may have decided; empty without any."""
    ordered = position_of(view)
    unsure = list[str]()
    for each in gauges(view):
        made, name = each.metric.interval, each.rule.name
        if made and each.unsure:
            ends = f"{metric_value(name, made.low)} to {metric_value(name, made.high)}"
            ends += f", needs {required_value(each.rule)}"
            if name == UNSTABLE_RATE and ordered and 0 < ordered.n < (each.metric.n or 0):
                share = metric_value(name, ordered.unstable / ordered.n)
                ends += f"; of the {counted(ordered.n, 'pair')} judged in both orders, {share}"
            title, value = ruled_title(name, view.rubric), gate_value(each.outcome)
            unsure.append(f"{title} {value} ({ends})")
    return f"Not certain yet: {joined(unsure)}" if unsure else ""


def _decided(view: RunView) -> Iterator[Part]:
    """Yield the reasons for a decision, each with the query of the samples that it is about.

    The decision is the rubric's, even if missing reviews or safety concerns replace it.
    """
    rubric, summary = view.rubric, view.summary
    decision = decide(rubric.decisions, summary)
    if decision is None:
        return

    def shown(value: float, bound: float | None) -> str:
        misleads = bound is not None and rounding_misleads(value, bound)
        return exact(value) if misleads else metric_value("", value)

    for each in decision_reasons(
        rubric,
        decision,
        summary,
        summary.get("scenarios") or {},
        title=lambda name: metric_title(name, rubric),
        shown=shown,
    ):
        query = {"scenario": each.scenario} if each.scenario else {}
        query |= {"sort": f"metric:{each.score}"} if each.score else {}
        # Semicolons separate the reasons.
        yield each.sentence.replace("; ", ", "), urlencode(query, safe=":")


_OPPOSITE: Final = {">=": "<", "<=": ">", ">": "≤", "<": "≥", "==": "≠", "!=": "="}


def _brief(failed: Sequence[GateOutcome], rubric: Rubric) -> str:
    """Return the first gate that fails, such as ``pass rate 68.3% < 85%, 2 more``."""
    if not failed or failed[0].value is None:
        return ""
    rule = Comparison.parse(failed[0].gate)
    threshold = f"{_OPPOSITE[rule.operator]} {written_value(rule.number, rule.name)}"
    more = f", {len(failed) - 1} more" if failed[1:] else ""
    return f"{ruled_title(rule.name, rubric)} {gate_value(failed[0])} {threshold}{more}"


def _failing(gates: Sequence[GateOutcome], view: RunView) -> Iterator[Part]:
    """Yield the first gate that fails, and which others do."""
    others = gates[1:]
    fail = "fails" if len(others) == 1 else "fail"
    more = f", and {counted(len(others), 'more gate')} {fail} ({_titles(others, view)})"
    for text, query in failed_gates(gates[:1], view):
        yield text + (more if others else ""), query


def _titles(gates: Sequence[GateOutcome], view: RunView) -> str:
    """Return the titles of the metrics of the first gates."""
    names = [ruled_title(Comparison.parse(each.gate).name, view.rubric) for each in gates]
    return ", ".join(names[:_MOST_REASONS]) + (", ..." if names[_MOST_REASONS:] else "")


def failed_gates(gates: Iterable[GateOutcome], view: RunView) -> Iterator[Part]:
    """Yield why each gate fails; unstable pairs say that the judges can't be relied on."""
    for gate in gates:
        rule = Comparison.parse(gate.gate)
        if rule.name == UNSTABLE_RATE and gate.value:
            pairs = counted(view.summary["n"][rule.name], "pair")
            where = f"in {round(gate.value * view.summary['n'][rule.name])} of {pairs}"
            number = f"{gate_value(gate)}, has to be {required_value(rule)}"
            changed = f"a vote's winner changed when the responses were swapped ({number})"
            yield f"the judges can't be relied on: {where} {changed}", _UNSTABLE
            continue
        value = "unknown" if gate.value is None else gate_value(gate)
        text = f"is {value} and has to be {required_value(rule)}"
        why = view.release.on_flags if rule.name == SAFETY_RATE else ""
        # The samples with a flag include those in which only people saw a danger.
        query = _DANGERS if why and not view.release.unseen else ""
        lost = ranked(view.summary.get("unscored_causes") or {})
        if rule.name in _LACKING and lost:
            # Semicolons separate the reasons.
            why = cut(lost[0][1].replace("; ", ", "), _LONGEST_CAUSE)
        yield f"{ruled_title(rule.name, view.rubric)} {text}{why and f' ({why})'}", query
