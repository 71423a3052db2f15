"""How far a run's judges agree with its reviewers, as values and in sentences."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from jurybox.calibration import calibration_record
from jurybox.calibration.gold import WINNER
from jurybox.documents.numbers import shown
from jurybox.reporting.metric_text import metric_title, plain_words
from jurybox.review.selection import FEWEST, needed_line
from jurybox.rubric.metrics import PASSING_RATE, WIN_RATE, Comparison
from jurybox.rubric.rubric_model import Rubric
from jurybox.statistics.corrected import CorrectedMetric
from jurybox.statistics.estimates import Estimate
from jurybox.text_format import counted, joined, verb

_DECIMALS: Final = 4


class SubsetAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """The judges' agreement with people on some samples; None if nothing can be compared."""

    samples: int
    agreement: calibration_record.Agreement | None = None

    @property
    def ceilings(self) -> dict[str, calibration_record.Ceiling]:
        """How far people agree with each other on these samples, by criterion."""
        criteria = () if self.agreement is None else self.agreement.criteria
        return {each.criterion: each.ceiling for each in criteria if each.ceiling is not None}


class UnclearCase(msgspec.Struct, frozen=True, kw_only=True):
    """A sample that a reviewer could not score with the current rubric."""

    number: int
    sample_id: str
    reviewer: str
    criteria: tuple[str, ...]
    comment: str


class ReviewedSample(msgspec.Struct, frozen=True, kw_only=True):
    """A sample behind the numbers, with its labels by criterion, named as in the tables."""

    number: int
    parts: tuple[str, ...]  # ``random``, ``flagged`` or both
    people: dict[str, tuple[str, ...]]
    judge: dict[str, str]
    unstable: bool = False  # whether a vote on this pair changed with the order

    def compares(self, criterion: str, people: str = "", judge: str = "") -> bool:
        """Return whether people and the judge labeled the criterion, with these labels if given."""
        given, own = self.people.get(criterion, ()), self.judge.get(criterion)
        return bool(given) and own is not None and people in {"", *given} and judge in {"", own}


class ReviewAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """Agreement of judges with people and among people, and the run's corrected metrics.

    All metrics come from blind reviews.
    """

    # How many reviews are active, of how many samples, and by whom.
    reviews: int
    samples: int
    reviewers: tuple[str, ...]
    open: int  # reviews made after seeing the judges' verdict, which count in no metric
    random: SubsetAgreement  # on the random subset, which represents the whole run
    flagged: SubsetAgreement  # on the flagged samples, which represent only themselves
    # How far people agree with each other, by criterion, on those samples of the random subset that
    # have several reviews; without any, on flagged ones.
    people: dict[str, calibration_record.Ceiling]
    drawn: int  # how many samples the random subset has so far; ``skipped`` of them have no review
    skipped: int
    needed: int  # how many more random samples are needed before metrics are corrected
    unsure: int = 0  # how many random samples no reviewer could judge
    unscored: int = 0  # how many random samples have a label, but no judge's score to correct
    # How many reviewed samples don't count yet, because too many samples before them in the random
    # order (``passed``) have no blind review.
    waiting: int = 0
    passed: int = 0
    repair: str = ""  # what to repair first, if too few samples have a score to be corrected
    # Whether the scores come from the rubric's rules, so that people are compared with rules.
    by_rules: bool = False
    estimates: tuple[CorrectedMetric, ...] = ()  # the run's metrics, corrected by the random subset
    # Whether each gate passes whose outcome changes once reviews correct its metric.
    changed_gates: dict[str, bool] = {}
    # What reviewers could not score, for the rubric's authors.
    unclear: tuple[UnclearCase, ...] = ()
    reviewed: tuple[ReviewedSample, ...] = ()  # the samples of both parts

    @property
    def scorer(self) -> str:
        """What gave the scores that people's are compared with."""
        return "rules" if self.by_rules else "judge"

    def _does(self, plural: str) -> str:
        """Return the beginning of a sentence about the judge or the rules, with its verb."""
        return f"The {self.scorer} {plural if self.by_rules else verb(1, plural)}"

    @property
    def sentence(self) -> str:
        """How often the judge and people agree, in words; empty if nothing can be compared."""
        part = self.flagged if self.random.agreement is None else self.random
        criteria = () if part.agreement is None else part.agreement.criteria
        scored = [each for each in criteria if each.exact.value is not None]
        compared = scored[:4]
        kind = "flagged" if self.random.agreement is None else "random"
        hard = " Flagged samples are the hard ones." if self.random.agreement is None else ""
        if not compared:  # on a continuous scale, scores are rarely the same
            apart = [each for each in criteria if each.error is not None][:4]
            most = counted(max((each.n for each in apart), default=0), f"{kind} sample")
            by = ", ".join(f"by {each.error:.2f} on {each.criterion}" for each in apart)
            differ = f"The {self.scorer} and people differ {by} on average in {most}.{hard}"
            return differ if apart else ""
        # More labels than samples: some samples have labels from several people.
        several, pairs = any(each.labels > each.n for each in compared), compared[0].scale is None
        of = " of cases" if several else f" of {kind} samples"
        same = [
            ("" if pairs else f"on {each.criterion} ") + f"in {100 * (each.exact.value or 0):.0f}%"
            f"{of if each is compared[0] else ''} ({each.alike})"
            for each in compared
        ]
        who = self._does("make" if pairs else "give")
        what = "choice" if pairs else "score"
        fewest, most = min(each.n for each in compared), max(each.n for each in compared)
        samples = f"{fewest:,} to " * (fewest < most) + counted(most, f"{kind} sample")
        hard = hard or (" These are too few to say." if most < FEWEST else "")
        by = f"some with the {what}s of several people"
        # What someone found unclear has fewer labels.
        rest = [
            each.criterion
            for each in scored
            if not (each.ceiling and each.ceiling.n == part.samples and each.labels == 2 * each.n)
        ]
        if len(rest) < len(scored):
            by = f"each {'judged' if pairs else 'scored'} by 2 people"
            by += f", though not always on {joined(rest)}" if rest else ""
        case = f": {samples}, {by}"
        return f"{who} the same {what} as people {', '.join(same)}{case if several else ''}.{hard}"

    @property
    def conclusion(self) -> tuple[str, str]:
        """Whether the judge can be relied on and why, in words, and the tone of these words."""
        said, why, tone = self.concluded
        return ": ".join(filter(None, (said, why))), tone

    @property
    def concluded(self) -> tuple[str, str, str]:
        """Whether the judge can be relied on, why not, and the tone of these words.

        A judge that agrees beyond chance can still score too high. Such a judge isn't to be relied
        on if a gate shows it, or if the agreement isn't proven.
        """
        agreed, tone = self._beyond_chance
        if not self.biased:
            return agreed, "", tone
        whose = "the rules' scores" if self.by_rules else "this judge's scores"
        lost = [gate for gate, passes in self.changed_gates.items() if not passes]
        change = counted(len(lost), "gate", "change")
        names = joined([plain_words(Comparison.parse(each).name) for each in lost])
        grave = tone != "passes" or bool(self.changed_gates)
        why = f"they {self._apart}" + (f". Corrected, {change} to failed: {names}" if lost else "")
        said, tone = ("Don't rely on", "fails") if grave else ("Correct", "waits")
        return f"{said} {whose}", why, tone

    @property
    def advice(self) -> str:
        """Whether the judge can be relied on, and how its scores differ from people's."""
        said = self.concluded[0]
        return f"{said}, which {self._apart}" if self.biased else said

    @property
    def _apart(self) -> str:
        """On which criteria the scores are higher or lower than people's."""
        sides: dict[str, list[str]] = {}
        for name, by in self.biased:
            sides.setdefault("higher" if by > 0 else "lower", []).append(name)
        ways = (f"{way} than people's on {joined(on)}" for way, on in sides.items())
        return f"are {' and '.join(ways)}"

    @property
    def _beyond_chance(self) -> tuple[str, str]:
        """Whether the agreement with people is more than chance, in words, and their tone."""
        who, known, proven = self._does("agree"), self._known, self._proven
        if not known:
            few = "Too few random samples are reviewed to rely on any number"
            if self.repair:
                few = "Too few samples have a score to rely on any number"
            elif self.drawn and not self.needed and self.random.samples < FEWEST:
                few = "All samples that count are reviewed, but too few to measure the agreement"
            return few, "waits"
        same = [each.criterion for each in known if each.kappa.value is None]
        if len(same) == len(known):
            return "All scores are equal, so agreement can't be distinguished from chance", "waits"
        if proven and len(proven) + len(same) == len(known):
            others = f"; every score on {joined(same)} is the same" if same else self._least
            on = f" on {joined([each.criterion for each in proven])}" if same else ""
            return f"{who} with people{on}, and not by chance{others}", "passes"
        if not proven:
            unsure = self._unsure and f", and {self._unsure}"
            may = f"The {self.scorer} may agree with people only by chance"
            return f"{may}{unsure}", "fails"
        names = joined([each.criterion for each in proven])
        return f"{who} with people beyond chance only on {names}", "waits"

    @property
    def beyond_chance(self) -> str:
        """Whether the agreement is more than chance, where the conclusion says something else."""
        agreed, tone = self._beyond_chance
        if not self.biased:
            return ""
        if tone != "passes":
            return agreed
        least = min(self._proven, key=lambda each: each.kappa.value or 0.0)
        on = f"lowest on {least.criterion}: " if len(self._proven) > 1 else ""
        made = least.kappa.interval
        within = f" ({made.low:.3f} to {made.high:.3f})" if made else ""
        still = verb(1 + self.by_rules, "follow")
        said = f"The {self.scorer} still {still} people's scores more than by chance"
        return f"{said}; kappa is {on}{least.kappa.value or 0.0:.3f}{within}"

    @property
    def _least(self) -> str:
        """On which of several criteria the same score is rarest."""
        same = {each.criterion: each.exact.value for each in self._known if each.exact.value}
        lowest = min(same.values(), default=0.0)
        if lowest == max(same.values(), default=0.0):
            return ""
        least = [name for name, share in same.items() if share == lowest]
        return f", least on {' and '.join(least)} ({100 * lowest:.0f}%)"

    @property
    def warns(self) -> bool:
        """Whether the conclusion warns against the judge's scores."""
        return bool(self.biased) or self.concluded[2] == "fails"

    @property
    def biased(self) -> list[tuple[str, float]]:
        """The criteria on which the judge scores higher or lower than people, and by how much."""
        return [
            (each.criterion, bias.value)
            for each in self._known
            if (bias := each.bias) is not None and bias.value is not None
            if (made := bias.interval) is not None and not made.low <= 0 <= made.high
        ]

    @property
    def _known(self) -> list[calibration_record.CriterionAgreement]:
        """The criteria with enough random samples."""
        criteria = () if self.random.agreement is None else self.random.agreement.criteria
        return [each for each in criteria if each.n >= FEWEST]

    @property
    def _proven(self) -> list[calibration_record.CriterionAgreement]:
        """The criteria of `_known` on which agreement is beyond chance."""
        return [each for each in self._known if (made := each.kappa.interval) and made.low > 0]

    @property
    def weak(self) -> list[str]:
        """The criteria of `_known` on which agreement may be by chance, though scores differ."""
        weak = [each for each in self._known if each not in self._proven]
        return [each.criterion for each in weak if each.kappa.value is not None]

    @property
    def _unsure(self) -> str:
        """On which of the `weak` criteria people may agree with each other only by chance too."""
        # Without an interval, people's labels are all the same, or too few to say anything.
        made = {name: each.alpha.interval for name, each in self.people.items()}
        unsure = _named(name for name in self.weak if (own := made.get(name)) and own.low <= 0)
        clearer = "make the rubric clearer first"
        return f"people don't agree with each other on {unsure} either: {clearer}" if unsure else ""

    def next_steps(self, overlap: int) -> Iterator[str]:
        """Yield the steps that would measure the agreement better, or improve it.

        Each sample is given to ``overlap`` reviewers.
        """
        yield from _missing(self, overlap)
        if self.repair:
            return
        again = "`--overlap 2` of `jurybox serve` gives each sample to two reviewers"
        if overlap > 1:
            again = "let others review too, as this server gives each sample to several reviewers"
        if not self.people:
            one = len(self.reviewers) == 1
            alone = "one person has reviewed" if one else "no scores that count are by two people"
            yield f"how far people agree with each other isn't known, since {alone}: {again}"
        if not self._proven and not self.weak and self._known:
            yield "review more random samples until some scores differ"
        if self._unsure:
            if self._unsure not in self._beyond_chance[0]:
                yield self._unsure
        elif self.weak and not self.turned and not self.biased:
            what = "change the rules" if self.by_rules else "calibrate the judge"
            where = f"the {self.scorer} and people differ on {_named(self.weak)}"
            yield f"{where}: {what}, or make the rubric clearer"

    @property
    def turned(self) -> int:
        """On how many differing random pairs the order changed a vote, if this makes them weak."""
        apart = {each.number for _, each in self.differences("random") if self.weak}
        turned = sum(each.unstable for each in self.reviewed if each.number in apart)
        return turned if 2 * turned > len(apart) else 0

    @property
    def weightless(self) -> str:
        """The metrics whose correction gives the judge no weight."""
        return joined([each.metric for each in self.estimates if each.mean.tuning == 0])

    def by_gated_metric(self, rubric: Rubric, samples: int) -> dict[str, CorrectedMetric]:
        """Return the corrections for a run of ``samples``, by the metrics' names in gates."""
        found: dict[str, CorrectedMetric] = {}
        for each in self.estimates:
            mean = each.mean
            if mean.human.n == samples:  # then people's own value needs no correction
                mean = replace(mean, corrected=mean.human)
            is_rate = each.metric in {WIN_RATE, PASSING_RATE}
            name = each.metric if is_rate else rubric.mean_of(each.metric)
            found[name] = replace(each, mean=mean)
        return found

    def titled(self, rubric: Rubric) -> "ReviewAgreement":
        """Return the same agreement with titles in place of ids."""

        def part(one: SubsetAgreement) -> SubsetAgreement:
            if one.agreement is None:
                return one
            criteria = tuple(
                replace(each, criterion=metric_title(each.criterion, rubric))
                for each in one.agreement.criteria
            )
            return replace(one, agreement=replace(one.agreement, criteria=criteria))

        return replace(
            self,
            random=part(self.random),
            flagged=part(self.flagged),
            people={metric_title(name, rubric): each for name, each in self.people.items()},
            estimates=tuple(
                replace(each, metric=metric_title(each.metric, rubric)) for each in self.estimates
            ),
            unclear=tuple(
                replace(each, criteria=tuple(metric_title(name, rubric) for name in each.criteria))
                for each in self.unclear
            ),
        )

    @property
    def people_named(self) -> str:
        """How many reviewers there are, and their names."""
        who = "1 person" if len(self.reviewers) == 1 else f"{len(self.reviewers)} people"
        return f"{who}: {', '.join(self.reviewers)}"

    def differences(self, *parts: str) -> list[tuple[str, calibration_record.Disagreement]]:
        """Return the random or flagged samples whose labels differ, with the criterion.

        The farthest apart come first, by the width of their scale.
        """
        known = {"random": self.random.agreement, "flagged": self.flagged.agreement}
        made = [known[part] for part in parts or known]
        criteria = [each for agreement in made if agreement for each in agreement.criteria]
        found = [(each.criterion, one) for each in criteria for one in each.worst]
        return sorted(found, key=lambda each: -each[1].distance)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Warnings about missing and uncounted reviews."""
        return (*_missing(self), *self.uncounted)

    @property
    def uncounted(self) -> Iterator[str]:
        """Warnings about reviews that count in no metric, and about samples without a review."""
        if self.skipped:
            yield skipped_line(self.skipped)
        if self.unsure:
            samples = counted(self.unsure, "sample")
            yield f"{samples} of the random subset that no reviewer could judge"
        if self.unscored:
            samples = f"{counted(self.unscored, 'reviewed sample')} of the random subset"
            lack = f"{verb(self.unscored, 'have')} no score by the {self.scorer}"
            those = "it" if self.unscored == 1 else "them"
            yield f"{samples} {lack}, so people's labels of {those} correct no mean"
        if self.open:
            made = counted(self.open, "review")
            count = "it counts" if self.open == 1 else "they count"
            after = "on picked samples or after seeing the judges' verdict, such as on safety flags"
            yield f"{made} made {after}: {count} for the release, not for agreement"

    @property
    def lines(self) -> tuple[str, ...]:
        """The agreement as lines of text."""
        concluded = (self.conclusion[0],) if self.warns else ()
        reviews, samples = counted(self.reviews, "review"), counted(self.samples, "sample")
        made = f"{reviews} of {samples} by {self.people_named}"
        return (made, *concluded, *_tabled(self), *_corrected(self), *self.doubts)

    @property
    def compared(self) -> bool:
        """Whether there is any sample on which judges can be compared with people."""
        return self.random.agreement is not None or self.flagged.agreement is not None

    def as_data(self) -> dict[str, Any]:
        """Return the agreement as plain data for JSON."""
        data: dict[str, Any] = msgspec.to_builtins(replace(self, reviewed=()))
        del data["reviewed"]
        return {**data, "lines": list(self.lines)}


def _named(criteria: Iterable[str]) -> str:
    return ", ".join("the winner" if name == WINNER else name for name in criteria)


def _corrected(found: ReviewAgreement) -> Iterator[str]:
    for each in found.estimates:
        yield f"{each.metric}: {each.mean.sentence}"
    if found.unclear:
        criteria = ", ".join(
            dict.fromkeys(name for each in found.unclear for name in each.criteria)
        )
        answers = counted(len(found.unclear), "review")
        yield f"criteria that {answers} under the current rubric marked unclear: {criteria}"


def _tabled(found: ReviewAgreement) -> Iterator[str]:
    against = f"{found.scorer} against people"
    for where, part in (("random subset", found.random), ("flagged", found.flagged)):
        for each in () if part.agreement is None else part.agreement.criteria:
            yield f"{against}, {where}, {_agreement(each, found.scorer)}"
    where = "random subset" if found.random.ceilings else "flagged"
    for name, each in found.people.items():
        both = f"{_same(each.exact)}alpha {_ranged(each.alpha)}"
        yield f"people among themselves, {where}, {name}: {both} {_count(each.n)}"


def _missing(found: ReviewAgreement, overlap: int = 1) -> Iterator[str]:
    if found.repair:
        yield found.repair
    elif found.waiting:
        yield waiting_line(found.waiting, found.passed)
    elif found.needed:
        unsure = found.unsure if overlap == 1 else 0  # otherwise a second reviewer gets them anyway
        line = needed_line(found.needed, unsure, others=found.flagged.samples > 0)
        yield f"nothing is corrected yet: {line}"


def skipped_line(count: int) -> str:
    """Warn that samples of the random subset were skipped: they have no review, later ones do."""
    skipped = f"{counted(count, 'sample')} of the random subset {verb(count, 'have')}"
    biased = "if reviewers skip samples because of what they contain, the metrics are biased"
    return f"{skipped} no review yet, though later ones do: {biased}"


def waiting_line(waiting: int, passed: int) -> str:
    """Return why reviews from the random queue don't count yet, and what to do."""
    wait = counted(waiting, "reviewed sample", "wait")
    before = f"{counted(passed, 'earlier sample')} in the random order {verb(passed, 'have')}"
    it = "it" if passed == 1 else "them"
    follow = f"reviewers who can still score {it} blind get {it} next in the random queue"
    return f"{wait} to be counted: {before} no blind review; {follow}"


def _agreement(each: calibration_record.CriterionAgreement, scorer: str) -> str:
    text = f"{_same(each.exact.value)}kappa {_ranged(each.kappa)}"
    if each.bias is not None and each.bias.value is not None:
        bias = Estimate(value=each.bias.value, n=each.n, interval=each.bias.interval)
        text = f"{text}, {scorer} minus people {_ranged(bias, with_method=True)}"
    return f"{each.criterion}: {text} {_count(each.n, each.labels)}"


def _same(share: float | None) -> str:
    return "" if share is None else f"the same in {100 * share:.0f}%, "


def _count(n: int, labels: int = 0) -> str:
    several = f", {labels} labels" if labels > n else ""
    return f"(n {n}{several}{', too few to rely on' if n < FEWEST else ''})"


def _ranged(metric: Estimate, *, with_method: bool = False) -> str:
    """Return a metric with its interval, and the method if it isn't the usual one."""
    if metric.value is None:
        return "unknown" if metric.reason is None else f"unknown ({metric.reason})"
    made = metric.interval
    if made is None:
        return _near(metric.value)
    unusual = ("added", "clusters")
    method = (
        f", {made.method}" if with_method and any(word in made.method for word in unusual) else ""
    )
    return f"{_near(metric.value)} ({_near(made.low)} to {_near(made.high)}{method})"


def _near(value: float) -> str:
    """Return a formatted number; a value that rounds to zero is shown as 0."""
    return shown(round(value, _DECIMALS) + 0.0)
