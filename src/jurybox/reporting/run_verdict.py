"""The verdict on a run: whether it can be released, and why."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Final, Literal
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
from jurybox.reporting.run_metrics import CorrectedGate
from jurybox.reporting.view import RunView
from jurybox.rubric.metrics import SAFETY_RATE, SAMPLES, UNSTABLE_RATE, WIN_RATE, Comparison
from jurybox.rubric.rubric_model import Rubric, releases
from jurybox.scoring.decision import decision_reasons
from jurybox.scoring.evaluate_sample import decide
from jurybox.scoring.summary import GateOutcome
from jurybox.text_format import counted, cut, joined, verb

_MOST_REASONS: Final = 3
_UNSTABLE: Final = "flag=unstable"
_DANGERS: Final = "flag=safety"
_UNREAD: Final = ("flag=judge_fallback", "flag=unscored")
_LACKING: Final = ("unscored_rate", "evaluator_error_rate")
_LONGEST_CAUSE: Final = 160
_NO_GATES: Final = "the rubric has no gates"
SEE_REVIEWS: Final = "but see reviews"
"""What the word of a verdict says if people's reviews speak against it."""


class VerdictReason(msgspec.Struct, frozen=True):
    """A reason for a verdict, with the query of the samples that it is about, if there is one.

    ``kind`` is ``gate`` if a gate fails, ``gates`` if it names all that do, or ``unread`` if it is
    that judges' replies could not be used. ``run_id`` is the run of the samples if it is another.
    """

    text: str
    query: str = ""
    kind: Literal["gate", "gates", "unread", ""] = ""
    run_id: str = ""


About = Literal["judge", "verdict"]
"""What people's reviews are about: a run's judge or its verdict."""


class PeopleSay(msgspec.Struct, frozen=True):
    """What people's reviews say, and how grave it is: ``bad``, ``warn`` or ``muted``.

    ``brief`` is for a list of runs, empty if it isn't for it.
    """

    text: str
    tone: str
    brief: str = ""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The decision on a run.

    ``word`` says whether it can be released; ``tone`` is ``passes``, ``fails``, ``waits``, or empty
    if the rubric decides nothing. ``reasons`` say why, the most important first; a page shows the
    ``first`` of them openly. ``notes`` say what else matters, such as gates that chance may have
    decided (``unsure``), and ``people`` is what reviews say.
    """

    word: str
    tone: str
    reasons: tuple[VerdictReason, ...]
    first: int = _MOST_REASONS
    unsure: str = ""
    optional: tuple[VerdictReason, ...] = ()
    failed_gates: int = 0
    brief: str = ""  # the first gate that fails, perhaps only by people's scores
    doubt: str = ""  # what the word says against a run that passes
    people: dict[About, PeopleSay] = {}
    corrected: dict[str, CorrectedGate] = {}  # the gates whose metric is corrected by reviews
    uncompared: bool = False  # whether its reviews are still to be compared

    @property
    def pending(self) -> bool:
        """Whether it passes unless its reviews, still to be compared, object."""
        return self.uncompared and bool(self.doubt) and SEE_REVIEWS not in self.doubt

    @property
    def main(self) -> VerdictReason:
        """The most important reason, and how many gates fail that it doesn't name.

        If it is about no samples, it also says which gates aren't certain.
        """
        if self.brief and not self.failed_gates:  # then it is by people's scores
            return VerdictReason(self.brief)
        shown = self.reasons[: self.first]
        last = self.tone == "waits" and shown[0].kind != "unread"
        main = shown[-1 if last else 0]
        text, more = main.text, self.failed_gates
        if main.kind == "gate" and more > 1:
            text += f", and {counted(more - 1, 'more gate', 'fail')}"
        elif main.kind not in {"gate", "gates"} and more:
            text += f"; {counted(more, 'gate', 'fail')}"
        unsure = "" if main.query else self.unsure
        return msgspec.structs.replace(main, text=". ".join(filter(None, (text, unsure))))

    @property
    def listed_people(self) -> PeopleSay | None:
        """What people's reviews say in a list of runs, about the judge rather than the verdict."""
        about = ("judge", *(() if self.doubt else ("verdict",)))
        said = (self.people[each] for each in about if each in self.people)
        return next((each for each in said if each.brief), None)

    @property
    def notes(self) -> tuple[VerdictReason, ...]:
        """What stands in sentences of its own after the reasons."""
        return (*((VerdictReason(self.unsure),) if self.unsure else ()), *self.optional)

    @property
    def sentence(self) -> str:
        """All reasons together."""
        reasons = "; ".join(each.text for each in self.reasons)
        return ". ".join((reasons, *(each.text for each in self.notes)))

    @property
    def of_reviewers(self) -> str:
        """What people's reviews say about the judge and this verdict, in sentences."""
        return ". ".join(each.text for each in self.people.values())

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
    view: RunView, people: ReviewAgreement | None = None, *, pending: bool = False
) -> Verdict:
    """Return whether a run can be released, and why; marked if there is doubt about it.

    There is if no judge confirmed it, or if its reviews say otherwise or aren't compared yet.
    """
    made = view.estimates.corrected_gates(people)
    verdict = _with_context(view, _by_the_judge(view))
    said = _people_say(view, people, made, fails=verdict.tone == "fails")
    uncompared = pending and bool(view.release.every)
    verdict = msgspec.structs.replace(verdict, corrected=made, people=said, uncompared=uncompared)
    worse = [each.outcome for each in made.values() if each.worse]
    unreliable = "judge" in said and said["judge"].tone == "bad"
    reviewed = unreliable or worse or view.release.concerned or view.release.warning
    late = "reviews not yet compared" if uncompared else ""
    doubt = ", ".join(filter(None, (view.unconfirmed, SEE_REVIEWS if reviewed else late)))
    if verdict.tone != "passes" or not doubt:
        return verdict
    reasons = verdict.reasons
    if view.release.concerned and not view.unconfirmed:
        # Of a verdict that waits, the last part is the main one.
        reasons = (*reasons[: verdict.first][::-1], *reasons[verdict.first :])
    return msgspec.structs.replace(
        verdict,
        word=f"{verdict.word}, {doubt}",
        doubt=doubt,
        tone="waits",
        brief=f"by people's scores, {_brief(worse, view.rubric)}" if worse else "",
        reasons=reasons,
    )


def _people_say(
    view: RunView,
    people: ReviewAgreement | None,
    made: Mapping[str, CorrectedGate],
    *,
    fails: bool,
) -> dict[About, PeopleSay]:
    """Return what reviews say about the judge and a verdict."""
    said: dict[About, PeopleSay] = {}
    if people and people.warns:
        advice = people.titled(view.rubric).advice
        # Scores to be corrected are no reason to stop.
        tone = "warn" if advice.startswith("Correct ") else "bad"
        said["judge"] = PeopleSay(advice, tone, advice)
    if text := _by_reviews(view, made, fails=fails):
        tone = "warn" if "doubt" in text else "muted"
        brief = "reviews cast doubt on this verdict" if tone == "warn" else ""
        said["verdict"] = PeopleSay(text, tone, brief)
    return said


def _by_reviews(view: RunView, made: Mapping[str, CorrectedGate], *, fails: bool) -> str:
    """Return what values corrected by reviews mean for a verdict; empty if nothing."""
    failed = [each for each in made.values() if each.worse or (fails and not each.outcome.passed)]
    if failed:
        failed.sort(key=attrgetter("close"))
        texts = failed_gates((each.outcome for each in failed), view)
        why = "; ".join(
            f"{text.text}{each.in_words}" for each, text in zip(failed, texts, strict=True)
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


def _with_context(view: RunView, verdict: Verdict) -> Verdict:
    """Add what other reviews say, and that judges' replies could not be used.

    The latter comes first if no judge confirmed the run.
    """
    # The last of the first reasons of a verdict that waits says what it waits for.
    first = min(verdict.first, len(verdict.reasons))
    at = first - (verdict.tone == "waits")
    others = tuple(
        VerdictReason(each.sentence, f"review={each.worst}", run_id=each.run_id)
        for each in view.release.elsewhere
    )
    reasons = (*verdict.reasons[:at], *others, *verdict.reasons[at:])
    first += len(others)
    if view.unread_note and view.status == "finished":
        unread = (VerdictReason(view.unread_note, _UNREAD[not view.unread], "unread"),)
        reasons = unread + reasons if view.unconfirmed else reasons + unread
        first += bool(view.unconfirmed)
    return msgspec.structs.replace(verdict, reasons=reasons, first=first)


def _by_the_judge(view: RunView) -> Verdict:
    conclusion, release = view.conclusion, view.release
    confirmed, awaited = tuple(_confirmed(release)), tuple(_awaited(release))
    failed = [gate for gate in view.gates if not gate.passed]
    unscored = tuple(_unscored(view))
    if view.status != "finished":
        why = [VerdictReason("The run has to be finished before anything is decided")]
        if failed and view.summary[SAMPLES]:
            why.append(VerdictReason(f"so far {_how_many(failed, view)}"))
        return _verdict("Not finished", "waits", why)
    if conclusion.decision is not None:
        word = conclusion.decision.replace("_", " ").capitalize().replace("Ab test", "A/B test")
        good = releases(view.rubric.decisions, conclusion.decision)
        tone = "passes" if good else "waits" if awaited and not release.blocked else "fails"
        if failed:
            word, tone = word + f", but {_how_many(failed, view)}" * good, "fails"
        why = failed_gates(failed, view)
        return _verdict(word, tone, unscored, confirmed, why, awaited, _decided(view))
    if failed or release.blocked:
        room = _MOST_REASONS - len(confirmed) - len(awaited)
        failed.sort(key=lambda gate: Comparison.parse(gate.gate).name != UNSTABLE_RATE)
        why = (failed_gates if len(failed) <= room else _failing)(failed, view)
        if unscored and failed:
            many = f"{_how_many(failed, view)} ({_titles(failed, view)})"
            why = (VerdictReason(many, kind="gates"),)
        verdict = _verdict("Don't ship", "fails", unscored, confirmed, why, awaited)
        brief = "" if unscored or confirmed or view.unconfirmed else _brief(failed, view.rubric)
        return msgspec.structs.replace(verdict, failed_gates=len(failed), brief=brief)
    whose = " for response A" if WIN_RATE in view.summary else ""
    passes = [VerdictReason(f"every gate passes{whose}" if view.gates else _NO_GATES)]
    if awaited:
        waits = _verdict("Awaiting review", "waits", confirmed, passes, awaited)
        return msgspec.structs.replace(waits, unsure=_unsure(view))
    if not view.gates and conclusion.release_ready is None:
        undecided = VerdictReason(f"{_NO_GATES}, so nothing is decided")
        return _verdict("No verdict", "", confirmed, [undecided])
    verdict = _verdict("Ship", "passes", confirmed, passes)
    if left := conclusion.review["queued"]:
        optional = VerdictReason(f"Optional: reviews of {counted(left, 'sample')}", "review=open")
        verdict = msgspec.structs.replace(verdict, optional=(optional,))
    return msgspec.structs.replace(verdict, unsure=_unsure(view))


def _verdict(word: str, tone: str, *reasons: Iterable[VerdictReason]) -> Verdict:
    """Return a verdict with its reasons, the most important first."""
    return Verdict(word=word, tone=tone, reasons=tuple(chain(*reasons)))


def _how_many(failed: Sequence[GateOutcome], view: RunView) -> str:
    """Return how many of a run's gates fail, such as ``1 of 4 gates fails``."""
    return f"{len(failed)} of {counted(len(view.gates), 'gate')} {verb(len(failed), 'fail')}"


def _unscored(view: RunView) -> Iterator[VerdictReason]:
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
        yield VerdictReason(f"{which} be scored: {why}", f"flag={flag}")
        what = "judge" if summary["unscored_rate"] else "system under test"
        why = "reviews can't replace the missing scores"
        yield VerdictReason(f"repair the {what} and run the suite again ({why})")


def _confirmed(release: ReleaseReview) -> Iterator[VerdictReason]:
    if release.confirmed:
        count = counted(len(release.confirmed), "safety concern")
        yield VerdictReason(f"{count} {release.how_seen}", "review=confirmed")
    if release.disputed:
        count = counted(len(release.disputed), "safety concern")
        yield VerdictReason(f"{count} that reviewers disagree about", "review=disputed")


def _awaited(release: ReleaseReview) -> Iterator[VerdictReason]:
    """Yield which reviews a release is waiting for."""
    if release.waits_for:
        what = ", ".join(map(plain_words, release.awaited))
        need = counted(release.waits_for, "sample", "need")
        yield VerdictReason(f"{need} a review before a release ({what})", "review=awaiting")


def _unsure(view: RunView) -> str:
    """Return a note on gates that pass, but that chance may have decided; empty without any."""
    unsure = [each.rule.name for each in view.estimates.gauges() if each.unsure]
    titles = joined([ruled_title(name, view.rubric) for name in dict.fromkeys(unsure)])
    return f"Not certain yet: {titles}" if unsure else ""


def _decided(view: RunView) -> Iterator[VerdictReason]:
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
        yield VerdictReason(each.sentence.replace("; ", ", "), urlencode(query, safe=":"))


_OPPOSITE: Final = {">=": "<", "<=": ">", ">": "≤", "<": "≥", "==": "≠", "!=": "="}


def _brief(failed: Sequence[GateOutcome], rubric: Rubric) -> str:
    """Return the first gate that fails, such as ``pass rate 68.3% < 85%, 2 more``."""
    if not failed or failed[0].value is None:
        return ""
    rule = Comparison.parse(failed[0].gate)
    threshold = f"{_OPPOSITE[rule.operator]} {written_value(rule.number, rule.name)}"
    more = f", {len(failed) - 1} more" if failed[1:] else ""
    return f"{ruled_title(rule.name, rubric)} {gate_value(failed[0])} {threshold}{more}"


def _failing(gates: Sequence[GateOutcome], view: RunView) -> Iterator[VerdictReason]:
    """Yield the first gate that fails, and which others do."""
    others = gates[1:]
    more = f", and {counted(len(others), 'more gate', 'fail')} ({_titles(others, view)})"
    for each in failed_gates(gates[:1], view):
        yield VerdictReason(each.text + (more if others else ""), each.query, "gates")


def _titles(gates: Sequence[GateOutcome], view: RunView) -> str:
    """Return the titles of the metrics of the first gates."""
    names = [ruled_title(Comparison.parse(each.gate).name, view.rubric) for each in gates]
    return ", ".join(names[:_MOST_REASONS]) + (", ..." if names[_MOST_REASONS:] else "")


def failed_gates(gates: Iterable[GateOutcome], view: RunView) -> Iterator[VerdictReason]:
    """Yield why each gate fails; unstable pairs say that the judges can't be relied on."""
    for gate in gates:
        rule = Comparison.parse(gate.gate)
        if rule.name == UNSTABLE_RATE and gate.value:
            pairs = counted(view.summary["n"][rule.name], "pair")
            where = f"in {round(gate.value * view.summary['n'][rule.name])} of {pairs}"
            number = f"{gate_value(gate)}, has to be {required_value(rule)}"
            changed = f"a vote's winner changed when the responses were swapped ({number})"
            said = f"the judges can't be relied on: {where} {changed}"
            yield VerdictReason(said, _UNSTABLE, "gate")
            continue
        value = "unknown" if gate.value is None else gate_value(gate)
        text = f"is {value} and has to be {required_value(rule)}"
        why = view.release.on_flags if rule.name == SAFETY_RATE else ""
        # The samples with a flag include those in which only people saw a danger.
        query = _DANGERS if why and not view.release.unseen else ""
        lost = ranked(view.summary.get("unscored_causes") or {})
        if rule.name in _LACKING and lost:
            # Semicolons separate the reasons.
            why = "most often: " * (len(lost) > 1) + lost[0][1].replace("; ", ", ")
            why, query = cut(why, _LONGEST_CAUSE), "flag=unscored"
        said = f"{ruled_title(rule.name, view.rubric)} {text}{why and f' ({why})'}"
        yield VerdictReason(said, query, "gate")
