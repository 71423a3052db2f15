"""Two runs side by side: as plain data, and in the words that commands and pages share."""

from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec

from jurybox.documents.numbers import metric_change, metric_value
from jurybox.reporting.attention import SamplePlace
from jurybox.reporting.metric_text import between, in_sentence, main_failure, metric_title, p_value
from jurybox.reporting.run_changes import (
    TURNS,
    ChangeCounts,
    ChangeFilter,
    FieldChange,
    GatePair,
    GroupPair,
    MetricPair,
    RankedSample,
    SampleChange,
    Turn,
    turned,
)
from jurybox.reporting.view import RunView
from jurybox.rubric.metrics import AGGREGATE_SCORE, SAMPLE_SCORE, WIN_RATE
from jurybox.statistics.metric_differences import RIGHT, UNSCORED, MetricDifference, rescaled
from jurybox.text_format import counted, joined

_RUN_METRICS: Final = {SAMPLE_SCORE: AGGREGATE_SCORE, WIN_RATE: WIN_RATE}


class RunDiff(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs side by side.

    ``identical`` says whether the hashes of all records are equal; it is None if a run isn't
    finished. ``headline`` is the metric by which samples are higher or lower, None if the two
    rubrics have no such metric in common. ``shared`` has the metrics over the samples that both
    runs have, ``metrics`` those of the whole runs. ``used`` has the cost and the mean times and
    tokens in words: a name, both values, their difference, and whether they are the same.
    ``tested`` says which metrics differ by more than chance. ``ranked`` has the samples of both
    runs, sorted by their difference (of many, only every n-th and both ends), ``samples`` the
    largest changes, and ``by_kind`` those of each kind.
    """

    a: RunView
    b: RunView
    identical: bool | None
    headline: str | None
    fields: tuple[FieldChange, ...]
    metrics: tuple[MetricPair, ...]
    shared: tuple[MetricPair, ...]
    used: tuple[tuple[str, str, str, str, str], ...] = ()
    tested: tuple[MetricDifference, ...]
    gates: tuple[GatePair, ...]
    counts: ChangeCounts
    samples: tuple[SampleChange, ...]
    by_kind: dict[str, tuple[SampleChange, ...]] = {}
    only_in_a: tuple[SamplePlace, ...]
    only_in_b: tuple[SamplePlace, ...]
    ranked: tuple[RankedSample, ...] = ()
    scenarios: tuple[GroupPair, ...] = ()
    demographics: tuple[GroupPair, ...] = ()

    @property
    def lettered(self) -> bool:
        """Whether the runs are called A and B; not if responses are."""
        return all(WIN_RATE not in view.summary for view in (self.a, self.b))

    @property
    def names(self) -> tuple[str, str]:
        """What the runs are called in sentences: A and B, or numbers if responses are."""
        return ("A", "B") if self.lettered else ("run 1", "run 2")

    @property
    def regressions(self) -> tuple[str, ...]:
        """The metrics that got significantly worse from A to B."""
        return tuple(each.metric for each in self.tested if each.regression)

    @property
    def same_rubric(self) -> bool:
        """Whether both runs used one rubric; otherwise nothing counts as a gain or regression."""
        return self.a.rubric.sha256 == self.b.rubric.sha256

    @property
    def only_rescored(self) -> bool:
        """Whether the runs have the same replies of judges, scored by different rubrics."""
        a, b = ({view.run_id, view.derived_from} - {None} for view in (self.a, self.b))
        return bool(a & b) and not self.same_rubric

    @property
    def unscored_runs(self) -> tuple[str, ...]:
        """Which of the runs have no sample with a score."""
        views = zip(self.names, (self.a, self.b), strict=True)
        return tuple(name for name, view in views if view.none_scored)

    @property
    def compared(self) -> bool:
        """Whether any sample has a score, a verdict or a winner in both runs."""
        return not self.unscored_runs and any(each.of_responses for each in self.tested)

    def comparable(self, tested: MetricDifference) -> bool:
        """Whether both runs measure a metric, most samples in both; failures always are."""
        paired = tested.comparison.n
        most = bool(paired) and tested.only_in_a + tested.only_in_b <= paired
        return most and (tested.of_failures or not self.unscored_runs)

    def outcome(self, tested: MetricDifference) -> str:
        """Return whether B is better or worse than A in a metric, or higher or lower, in words."""
        if not self.comparable(tested):
            n, both = tested.comparison.n, self.counts.in_both
            return f"not comparable: {n:,} of {both:,} scored in both" if n else "not comparable"
        # With the same replies, no difference is due to chance.
        moved = tested.comparison.difference if self.only_rescored else None
        known = ("higher" if moved > 0 else "lower") if moved else tested.outcome
        return {"bad": "worse", "good": "better"}.get(self.tone_of(tested), known)

    @property
    def tone(self) -> Literal["fails", "passes", ""]:
        """Whether the comparison is a regression or a gain; empty if neither, or not known."""
        tones = {self.tone_of(each) for each in self.tested}
        return "fails" if "bad" in tones else "passes" if "good" in tones else ""

    def tone_of(self, tested: MetricDifference | None) -> Literal["bad", "good", ""]:
        """Return whether a metric got significantly worse or better; empty if not known.

        With another rubric or judge, only more failures are known to be worse.
        """
        if tested is None or not self.comparable(tested):
            return ""
        if self.other_standards and not (tested.of_failures and tested.regression):
            return ""
        return "bad" if tested.regression else "good" if tested.gained else ""

    def listed_changes(self, only: ChangeFilter | None = None) -> list[SampleChange]:
        """Return the largest changes: reviewers' safety concerns, then losses, then gains.

        A sample that is no longer scored is the largest loss, and one that newly is the last gain.
        If ``only`` selects gains, the largest gains come first. Pairs are sorted by what response A
        wins, or loses if that is what the rubric wants.
        """
        changes = self.samples if only is None else self.by_kind.get(only, ())
        sign = -1 if only in {"higher", "now_passes"} or self.wins_wanted == "lower" else 1
        place = {"no_longer_scored": 0, "newly_scored": 2}

        def order(each: SampleChange) -> tuple[bool, int, float]:
            return not any(each.concern), place.get(each.change, 1), sign * (each.apart or 0)

        return sorted(changes, key=order)

    @property
    def wins_wanted(self) -> str | None:
        """Whether more wins of response A are better; None if the runs have no pairs."""
        return next((each.wanted for each in self.tested if each.metric == WIN_RATE), None)

    def as_data(self) -> dict[str, Any]:
        """Return the comparison as plain data for JSON."""
        left_out = {"shared", "used", "ranked", "by_kind"}
        data = {
            name: getattr(self, name) for name in self.__struct_fields__ if name not in left_out
        }
        tested: list[dict[str, Any]] = []
        for each in self.tested:
            flat: dict[str, Any] = msgspec.to_builtins(each)
            comparison = flat.pop("comparison")
            tested.append({**flat, "regression": each.regression, **comparison})
        return msgspec.to_builtins(data | {"a": None, "b": None}) | {
            "a": _run_as_data(self.a),
            "b": _run_as_data(self.b),
            "tested": tested,
            "regressions": list(self.regressions),
            "same_rubric": self.same_rubric,
            "judges": self.judges_line(),
        }

    def turns(self) -> dict[Turn, tuple[int, str]]:
        """Return how many samples' verdicts or winners turned, and how, as parts of a sentence."""
        judged = any(each.metric == "passed" for each in self.tested)
        usual = {"other_winner"} if self.counts.pairs else {"now_fails", "now_passes"}
        shown = usual if judged or self.counts.pairs else set[str]()
        found: dict[Turn, tuple[int, str]] = {}
        for turn in TURNS:
            n: int = getattr(self.counts, turn)
            if n or turn in shown:
                found[turn] = n, turned(turn, n, "" if found else "sample")
        return found

    @property
    def other_standards(self) -> list[str]:
        """By what else B was judged: another rubric, another judge, or both."""
        models = [view.metadata.get("evaluator_model_id") for view in (self.a, self.b)]
        other_judge = None not in models and models[0] != models[1]
        standards = {"rubric": not self.same_rubric, "judge": other_judge}
        return [name for name, differs in standards.items() if differs]

    @property
    def same_responses(self) -> bool:
        """Whether different rubrics or judges judged the same responses."""
        both = self.counts.in_both
        return bool(self.other_standards and both) and self.counts.same_responses == both

    @property
    def coverage(self) -> str:
        """Over how many samples the runs are compared, unless it is all; else ``""``."""
        alone = zip((self.counts.only_in_a, self.counts.only_in_b), self.names, strict=True)
        left = " and ".join(f"{count:,} only in {name}" for count, name in alone if count)
        both = counted(self.counts.in_both, "sample")
        return f"compared over the {both} in both runs; left out: {left}" if left else ""

    def in_short(self, side: Literal["a", "b"]) -> dict[str, Any]:
        """Return the significant differences as plain data, with the id of the run ``side``."""
        whole = self.as_data()
        kept = {name: whole[name] for name in ("same_rubric", "regressions", "counts", "tested")}
        return {"run_id": whole[side]["run_id"], "conclusion": self.conclusion(), **kept}

    def records_line(self) -> str:
        """Return whether the records of the runs are the same, in words."""
        if self.identical is None:
            return "can't be compared as a whole: a run isn't finished"
        if self.identical:
            return "inputs, replies and results are identical, by hash"
        if not self.same_rubric:
            return "differ in every sample, because each result names its rubric"
        many = f"{self.counts.identical_records:,} of {counted(self.counts.in_both, 'sample')}"
        return f"inputs, replies and results are identical in {many}, by hash"

    def cautions(self) -> Iterator[str]:
        """Yield what a reader should know first: what differs but the scores, and runs' notes."""
        yield from filter(None, [self.coverage])
        if self.headline is None:
            yield "the rubrics have no score in common, so no sample is higher or lower"
        if names := rescaled(self.a.rubric, self.b.rubric):
            yield f"not measurable, because the scales differ: {', '.join(names)}"
        for each in self.fields:
            yield f"differs  {each}"
        for name, view in zip(self.names, (self.a, self.b), strict=True):
            for note in view.notes:
                yield f"note on {name}  {note}"

    def one_sided(self) -> dict[tuple[int, int], list[str]]:
        """Group metrics by how many samples have them only in A, and how many only in B."""
        found: dict[tuple[int, int], list[str]] = {}
        for each in self.tested:
            if each.only_in_a or each.only_in_b:
                found.setdefault((each.only_in_a, each.only_in_b), []).append(each.metric)
        return found

    def judges_line(self, *names: str) -> str | None:
        """Return which run's judge agrees with human labels more often; None if not measured.

        ``names`` are what the runs are called, if not A and B. None too if a run was only
        rescored, because both have the replies of one judge, or if the judges of both are the same
        models and neither is right more often.
        """
        found = next((each for each in self.tested if each.metric == RIGHT), None)
        made, (one, other) = found and found.comparison, names or self.names
        sides = {"higher": f"the judge of {other} is", "lower": f"the judge of {one} is"}
        side = sides.get(made.verdict) if made else None
        models = (view.metadata.get("evaluator_model_id") for view in (self.a, self.b))
        if self.only_rescored or not self.counts.labeled or (not side and len({*models}) == 1):
            return None
        samples = counted(self.counts.labeled, "sample")
        if not made:
            return f"people labeled {samples}: too few to say which judge is right more often"
        a, b = (metric_value("share_rate", mean) for mean in (made.mean_a, made.mean_b))
        said = f"{one} {a}, {other} {b} of a sample's labels by people, on average over {samples}"
        near = any(each.scale.continuous for each in self.a.rubric.criteria)
        within = "a tenth of the scale" if near else "half a point"
        meaning = "" if self.counts.pairs else f" (a score is right within {within})"
        return f"{side or 'neither judge is clearly'} right more often: {said}{meaning}"

    def conclusion(self, *, titled: bool = False, beside: str = "") -> str:
        """Return the result of the tests in words, and a warning if rubrics or judges differ."""
        finding = self.finding(titled=titled, beside=beside)
        if self.only_rescored and self.compared:
            turns = (said for _, said in self.turns().values()) if self.counts.changes else ()
            finding = ": ".join(filter(None, (finding, ", ".join(turns))))
        return ". ".join(filter(None, (finding, self.standards_caution)))

    @property
    def standards_caution(self) -> str:
        """A warning if rubrics or judges differ, which may explain differences; else ``""``."""
        other = self.other_standards
        if not other or self.only_rescored or (self.same_responses and self.compared):
            return ""
        caution = f", so a difference may come from the {joined(other, 'or')} and not the responses"
        both = " and ".join(f"{each}s" for each in other)
        return f"The {both} differ{caution if self.compared else ''}"

    def finding(self, *, titled: bool = False, beside: str = "") -> str:
        """Return whether B is better or worse than A, and in what, in words.

        ``titled`` names criteria by their titles. The runs are called A and B, or with ``beside``,
        the name of the first run, the sentence is about the second one.
        """
        if self.only_rescored and self.compared:
            differ = "so all differences come from the rubric"
            same = "and no sample's result differs"
            return f"the same replies, {differ if self.counts.changes else same}"
        names = (beside, "this run") if beside else self.names
        same = f"the same responses under another {joined(self.other_standards)}: "
        about = same if self.same_responses and self.compared else ""
        found = self._found(names, titled=titled, lettered=not beside)
        return f"{self._so_far(names)}{about}{found}"

    def _so_far(self, names: tuple[str, str]) -> str:
        """Return how much of unfinished runs is compared, to precede the finding."""
        some = [
            f"{view.summary['samples']:,} of {counted(view.planned, 'sample')} in {name}"
            for name, view in zip(names, (self.a, self.b), strict=True)
            if view.status != "finished"
        ]
        return f"so far, with {' and '.join(some)}: " if some else ""

    def _found(self, names: tuple[str, str], *, titled: bool, lettered: bool) -> str:
        intervals = (each.comparison.interval for each in self.tested)
        level = next((f" at {100 * each.level:g}%" for each in intervals if each), "")
        if self.unscored_runs:
            return self._why_not(names)
        parts = list[str]()
        if not self.compared:
            parts.append(f"no scores could be compared: {self._why_not(names)}")
        found: dict[str, list[str]] = {}
        for each in self._ordered:
            if each.comparison.verdict == "undecided" or not self.comparable(each):
                continue
            if each.metric == UNSCORED:
                parts.append(self._scoreless(each, names))
            else:
                name = self.name_of(each, titled=titled)
                found.setdefault(self.outcome(each), []).append(
                    in_sentence(name) if titled else name
                )
        if found:
            than = f" than {names[0]} in" if lettered else " in"
            differs = (f"{what}{than} {joined(metrics)}" for what, metrics in found.items())
            said = f"{'; '.join(differs)} (by more than chance{level})"
            parts.append(f"{names[1]} is {said}" if lettered else said)
        elif self.compared and (self.leading or not parts):
            who = f"{joined(names)} are " if lettered else ""
            parts.append(self._equal(who, level, some=bool(parts)))
        if self.tone == "passes":
            parts.append("no regression")
        return "; ".join(parts)

    def _equal(self, who: str, level: str, *, some: bool) -> str:
        """Return that no metric differs; with ``some``, only of samples with a score in both."""
        if self.identical:
            return "no difference: inputs, replies and results are identical in both runs"
        if not any(each.comparison.differing for each in self._ordered):
            both = counted(self.counts.in_both, "sample")
            return f"{who}equal in every metric on the {both} in both"
        if some:
            return "no clear difference between the samples with a score in both"
        return f"no clear difference: no metric differs by more than chance{level}"

    def _scoreless(self, tested: MetricDifference, names: tuple[str, str]) -> str:
        """Return how many samples lack a score in each run, in words, the run with more first."""
        shares = zip(tested.shares or (0, 0), names, strict=True)
        (fewer, one), (more, other) = sorted(shares, key=lambda each: each[0])
        every = counted(self.counts.in_both, "sample")
        lacking = f"{round(more * self.counts.in_both):,} of {every} in {other}"
        return f"{lacking} could not be scored ({one}: {round(fewer * self.counts.in_both):,})"

    def name_of(self, tested: MetricDifference, *, titled: bool = False) -> str:
        """Return the name of a tested metric for a sentence."""
        return metric_title(tested.name, self.b.rubric) if titled else tested.name

    def _why_not(self, names: tuple[str, str]) -> str:
        """Return why no sample has a score in both runs, which have these names."""
        if self.unscored_runs:
            views = zip(names, (self.a, self.b), strict=True)
            return "; ".join(
                f"{name} has no scores: {main_failure(view.summary)}"
                for name, view in views
                if view.none_scored
            )
        if not self.counts.in_both:
            return "no sample id is in both runs"
        pairs = next((each for each in self.tested if each.metric == WIN_RATE), None)
        if pairs is None or self.same_rubric:
            return "no sample has a score in both runs"
        return "one run scores single responses, and the other picks the better of two"

    @property
    def leading(self) -> MetricDifference | None:
        """The overall score, else the win rate or the first score; None if none is comparable."""
        scores = (each for each in self._ordered if each.of_responses and not each.is_share)
        return next(filter(self.comparable, scores), None)

    @property
    def explained(self) -> MetricDifference | None:
        """The leading metric if none differs by more than chance, and chance plays a part."""
        clear = any(each.comparison.verdict != "undecided" for each in self._ordered)
        found = None if clear or not self.by_chance else self.leading
        return found if found and found.comparison.differing else None

    @property
    def by_chance(self) -> bool:
        """Whether differences may be chance; not of runs only rescored, or without scores."""
        return not (self.only_rescored or self.unscored_runs)

    @property
    def _ordered(self) -> list[MetricDifference]:
        """The tested metrics of the responses, those of the whole response first."""
        first = (self.headline, "passed", WIN_RATE)
        tested = (each for each in self.tested if each.metric != RIGHT)
        return sorted(tested, key=lambda each: each.metric not in first)

    @property
    def _tests(self) -> int:
        """How many tests the p values are corrected for."""
        return sum(each.comparison.p_value is not None for each in self._ordered)

    def doubt(self, tested: MetricDifference) -> str:
        """Return why a difference may be chance if its interval doesn't say so; else ``""``."""
        made = tested.comparison
        unclear = made.differing and made.verdict == "undecided" and self.comparable(tested)
        if not (unclear and self.by_chance):
            return ""
        if made.interval is None:
            return made.reason or ""
        many = f" with {self._tests} tests" if self._tests > 1 else ""
        said = f"p {p_value(made.p_adjusted)}{many}"
        return "" if made.interval.low <= 0 <= made.interval.high else said

    @property
    def by_votes(self) -> bool:
        """Whether the tests use means of votes, which may differ from the recorded scores."""
        return any(view.metadata.get("evaluator_model_id") for view in (self.a, self.b))

    def explanation(self, tested: MetricDifference) -> str:
        """Return how certain the difference of a metric is, in words."""
        made, shown_as = tested.comparison, tested.formatted_as
        interval = made.interval
        if interval is None:
            return made.sentence
        votes = ", by the means of votes" if self.by_votes and not tested.is_share else ""
        level = f"{100 * interval.level:g}% interval"
        said = f"{metric_change(shown_as, made.difference)}, and the true difference lies between"
        said += f" {between(interval, shown_as, ' and ')}"
        said += f" ({level} from {self._samples_of(tested)}{votes})"
        if made.verdict != "undecided":
            return said
        if interval.low <= 0 <= interval.high:
            said += ", so it may be chance"
        else:
            said += f", but with all tests together it may be chance (p {p_value(made.p_adjusted)})"
        if made.detectable is None:
            return said
        detectable = metric_change(shown_as, made.detectable).lstrip("+")
        corrected = f", after correction for {self._tests} tests" if self._tests > 1 else ""
        found = f"a true difference of {detectable} would be found in 4 of 5 comparisons{corrected}"
        return f"{said}; {found}"

    def _samples_of(self, tested: MetricDifference) -> str:
        """Return how many samples a test uses, and why not all of them."""
        used, every = tested.comparison.n, self.counts.in_both
        if used == every:
            return counted(used, "sample")
        has = "verdict" if tested.metric == "passed" else "score"
        return f"the {used:,} of {counted(every, 'sample')} with a {has} in both runs"

    @property
    def same_samples(self) -> bool:
        """Whether both runs have the same samples."""
        return not (self.counts.only_in_a or self.counts.only_in_b)

    def rows(self) -> Iterator[tuple[MetricDifference | None, MetricPair]]:
        """Yield each metric over the shared samples with its test; a gate's metric may have none.

        Scores and wins have the means that were tested, so that a difference and its interval
        belong together. If a run has no scores, only what is tested is listed.
        """
        known = {each.metric: each for each in self.shared}
        mean = self.b.rubric.mean_of
        tests = {
            each.name if each.is_share else _RUN_METRICS.get(each.metric, mean(each.metric)): each
            for each in self._ordered
        }
        gated = () if self.unscored_runs else (each.metric for each in self.gates)
        for name in dict.fromkeys((*tests, *gated)):
            pair = known.get(name)
            if pair is not None and (pair.a, pair.b) != (None, None):
                test = tests.get(name)
                by_votes = test is not None and not test.is_share and self.comparable(test)
                made = test.comparison if test and by_votes else None
                if made and pair.difference is not None:
                    a, b, apart = made.mean_a, made.mean_b, made.difference
                    yield test, msgspec.structs.replace(pair, a=a, b=b, difference=apart)
                elif test is not None or pair.difference is not None:
                    yield test, pair


def _run_as_data(view: RunView) -> dict[str, Any]:
    names = ("run_id", "status", "suite", "digest", "created_at", "notes", "release_ready")
    data = view.as_data()
    return {name: data[name] for name in (*names, "decision") if name in data}
