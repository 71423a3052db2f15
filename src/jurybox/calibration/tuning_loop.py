"""The tuning loop: propose, change, measure, and keep what helps on unseen samples.

The caller judges the samples, and asks a model for changes if one is given.
"""

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Final, Literal

import msgspec

from jurybox.calibration import proposals
from jurybox.calibration.calibration_record import Agreement, Gain, Round, RoundResult, Tuning
from jurybox.calibration.gold import PARTS, GoldCase, Part, gold_scales, loss_of, losses
from jurybox.calibration.judge_comparison import Options, clusters_of, compare
from jurybox.calibration.proposals import Proposal, propose
from jurybox.documents.numbers import show_number
from jurybox.judging.flow import Answer as ModelAnswer
from jurybox.judging.flow import Defect, Flow, ModelRequest, ask
from jurybox.judging.prompts import rubric_text
from jurybox.rubric import render_rubric
from jurybox.rubric.rubric_model import Criterion, Generation, Protocol, Rubric
from jurybox.sample import Turn
from jurybox.statistics.paired_comparison import compare_paired, described

_BINARY: Final = frozenset({0.0, 1.0})


class JudgedPart(msgspec.Struct, frozen=True, kw_only=True):
    """The judged samples of a part, and their run."""

    cases: tuple[GoldCase, ...]
    run_id: str


class Disagreements(msgspec.Struct, frozen=True, kw_only=True):
    """What a proposal is made from: the best rubric so far, judged on the tune part."""

    rubric: Rubric
    cases: tuple[GoldCase, ...]
    metrics: Agreement
    earlier: tuple[Round, ...] = ()


Judge = Callable[[Rubric, Part, int], JudgedPart]
"""Judges a part by the rubric of a round; round 0 has the original rubric."""
Suggest = Callable[[Disagreements], Proposal | Defect]


class Tuned(msgspec.Struct, frozen=True, kw_only=True):
    """The result: the new rubric if a change was kept, and its agreement on the report part."""

    winner: Rubric | None
    metrics: Agreement
    tuning: Tuning
    report_run: str


class LoopOptions(Options, frozen=True, kw_only=True):
    """Options of the loop; intervals that decide a round are wider than the reported ``level``.

    ``narrow`` means that all judges are asked narrow questions, which contain only the rubric's
    levels.
    """

    rounds: int
    narrow: bool = False

    @property
    def deciding(self) -> float:
        """The level of the intervals that decide a round, Bonferroni-corrected for all rounds."""
        return 1 - (1 - self.level) / self.rounds


class TuningLoop:
    """Tries one change per round; keeps the best rubric with the cases that were judged by it.

    Changes are made by rule; if a model can ``suggest`` one, it is asked in every second round.
    """

    def __init__(
        self, base: Rubric, options: LoopOptions, judge: Judge, suggest: Suggest | None = None
    ) -> None:
        self._base = self._best = base
        self._options = options
        self._judge = judge
        self._suggest = suggest
        self._tune = judge(base, "tune", 0).cases
        self._select = judge(base, "select", 0).cases
        self._rounds: list[Round] = []
        self._tried: set[str] = set()

    def run(self, sizes: Mapping[Part, int]) -> Tuned:
        """Try the rounds, then report on the part that no round used."""
        ended = None
        while len(self._rounds) < self._options.rounds and ended is None:
            ended = self._next_round()
        base, best, options = self._base, self._best, self._options
        last = first = self._judge(base, "report", 0)
        metrics = before = compare(first.cases, base, options)
        gain = None
        if best is not base:
            number = max(each.number for each in self._rounds if each.kept)
            last = self._judge(best, "report", number)
            metrics = compare(last.cases, best, options)
            gain = gain_of(first.cases, last.cases, best, level=options.level, seed=options.seed)
        tuning = Tuning(
            parts={part: sizes[part] for part in PARTS},
            level=options.deciding,
            rounds=tuple(self._rounds),
            ended=ended,
            base_version=base.version,
            base_sha256=base.sha256,
            before=before,
            gain=gain,
        )
        winner = None if best is base else best
        return Tuned(winner=winner, metrics=metrics, tuning=tuning, report_run=last.run_id)

    def _next_round(self) -> str | None:
        """Try the next change; return why the loop ends if there is none."""
        seen = Disagreements(
            rubric=self._best,
            cases=self._tune,
            metrics=self._metrics(self._tune, self._best),
            earlier=tuple(self._rounds),
        )
        by, found = self._next_change(seen)
        if found is None:
            return _why_ended(seen)
        made = Round(number=len(self._rounds) + 1, by=by)
        if isinstance(found, Defect):
            reason = f"the proposal can't be used: {found.problem}"
            self._rounds.append(msgspec.structs.replace(made, reason=reason))
            return None
        made = msgspec.structs.replace(
            made,
            kind=found.kind,
            criterion=found.criterion,
            hypothesis=found.hypothesis,
            change=_diff(self._best, found.rubric),
        )
        self._rounds.append(self._measured(made, found))
        return None

    def _next_change(
        self, seen: Disagreements
    ) -> tuple[Literal["rule", "model"], Proposal | Defect | None]:
        """Return the next change and its source."""
        tried = frozenset(self._tried)
        by_rule = propose(seen.rubric, seen.cases, seen.metrics, tried, narrow=self._options.narrow)
        is_models = len(self._rounds) % 2 == 1 or by_rule is None
        if self._suggest is None or not is_models or not seen.metrics.loss:
            return "rule", by_rule
        found = self._suggest(seen)
        if isinstance(found, Proposal) and found.key in tried:
            return "model", Defect("the same change was refused before")
        return "model", found

    def _measured(self, made: Round, proposal: Proposal) -> Round:
        """Measure one change, and keep the rubric if it helps."""
        # A refused change isn't tried again; one that helped may be.
        self._tried.add(proposal.key)
        version = proposals.next_version(self._base.version)
        rubric = proposals.written(msgspec.structs.replace(proposal.rubric, version=version))
        if rubric is None:
            reason = "a document can't express the change: it would be read back differently"
            return msgspec.structs.replace(made, reason=reason)
        tune = self._judge(rubric, "tune", made.number)
        made = msgspec.structs.replace(made, tune=self._trial(self._tune, tune, rubric))
        if made.tune is None or not _nearer(made.tune.gain):
            reason = "no closer to people on the tune part, so the select part wasn't judged"
            return msgspec.structs.replace(made, reason=reason)
        select = self._judge(rubric, "select", made.number)
        chosen = self._trial(self._select, select, rubric)
        kept, reason = _verdict(chosen.gain)
        if kept:
            self._best, self._tune, self._select = rubric, tune.cases, select.cases
            self._tried.discard(proposal.key)
        return msgspec.structs.replace(made, select=chosen, kept=kept, reason=reason)

    def _trial(self, before: Sequence[GoldCase], after: JudgedPart, rubric: Rubric) -> RoundResult:
        level, seed = self._options.deciding, self._options.seed
        gain = gain_of(before, after.cases, rubric, level=level, seed=seed)
        metrics = self._metrics(after.cases, rubric).criteria
        return RoundResult(run_id=after.run_id, gain=gain, criteria=metrics)

    def _metrics(self, cases: Sequence[GoldCase], rubric: Rubric) -> Agreement:
        return compare(cases, rubric, msgspec.structs.replace(self._options, worst=0))


def _why_ended(seen: Disagreements) -> str:
    if not seen.metrics.loss:
        return "judge and people agree on every sample of the tune part: nothing to change"
    if seen.earlier:
        return "no rule has another change to try"
    return "judge and people differ, but no rule has a change for their differences"


def _nearer(gain: Gain) -> bool:
    return gain.difference is not None and gain.difference < 0


def _verdict(gain: Gain) -> tuple[bool, str]:
    if gain.clear:
        return True, f"closer to people on the select part too, beyond noise: {gain.sentence}"
    if _nearer(gain):
        why = "closer on the tune part, but on the select part it could be chance"
    else:
        why = "closer on the tune part only: it fits those samples and no others"
    return False, f"{why}: {gain.sentence}"


def gain_of(
    before: Sequence[GoldCase],
    after: Sequence[GoldCase],
    rubric: Rubric,
    *,
    level: float,
    seed: int,
) -> Gain:
    """Compare the distances of two rubrics' scores from people's, sample by sample."""
    scales = gold_scales(rubric)
    second = losses(after, scales)
    shared = [case for case in before if case.id in second]
    a = [loss_of(case, scales) for case in shared]
    b = [second[case.id] for case in shared]
    binary = _BINARY.issuperset((*a, *b))
    clusters = clusters_of(shared)
    made = compare_paired(a, b, binary=binary, clusters=clusters, level=level, seed=seed)
    moved = "distance from people"
    if made.mean_a is not None and made.mean_b is not None:
        moved += f" {made.mean_a:.3f} before, {made.mean_b:.3f} after"
    return Gain(
        n=made.n,
        before=made.mean_a,
        after=made.mean_b,
        difference=made.difference,
        interval=made.interval,
        clear=made.verdict == "lower",
        sentence=f"{moved}: {described(made, 'before', 'after')}",
    )


def _diff(before: Rubric, after: Rubric) -> str:
    """Return the unified diff of two rubric documents."""
    lines = difflib.unified_diff(
        render_rubric(before).splitlines(),
        render_rubric(after).splitlines(),
        "before",
        "after",
        lineterm="",
        n=1,
    )
    return "\n".join(lines)


_SHOWN: Final = 8
_MAX_LENGTH: Final = 2000
_PROTOCOL: Final = Protocol(reasks=2)
_GENERATION: Final = Generation(max_tokens=2048)
_FORM: Final = (
    '{"hypothesis": "why judge and people differ, in a sentence or two", "criterion": "its id",'
    ' "definition": "the new definition, or null to leave it", "levels": {"4": "the new'
    ' meaning of level 4, for those to be changed"}}'
)
_TASK: Final = (
    "A judge scores responses by the rubric below, and people have scored the same responses."
    " Find out why they differ, and reword one criterion so that the judge comes nearer to the"
    " people. Write for all responses of this kind, not for the samples shown: the change is"
    " measured on others."
)


_Text = Annotated[str, msgspec.Meta(pattern=r"\S", max_length=_MAX_LENGTH)]


class _Change(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change to one criterion, as a model proposes it."""

    hypothesis: Annotated[str, msgspec.Meta(pattern=r"\S")]
    criterion: str
    definition: _Text | None = None
    levels: dict[str, _Text] | None = None


def suggest(model: str, wanted: Disagreements) -> Flow[Proposal | Defect]:
    """Ask a model for one change; after an unusable reply, state its defect and ask again."""
    if wanted.rubric.template is not None:
        return Defect("the rubric has its own judge prompt, which no model rewrites")
    request = ModelRequest(
        model=model,
        generation=_GENERATION,
        messages=(Turn(role="user", content=prompt_of(wanted)),),
    )
    answer = yield from ask(request, lambda text: read_change(text, wanted.rubric), _PROTOCOL)
    if isinstance(answer, ModelAnswer):
        return answer.value
    return Defect(answer.reason)


def prompt_of(wanted: Disagreements) -> str:
    """Return the prompt: the rubric, the disagreements, and earlier rounds."""
    lines = [f"- {each.bias.sentence}" for each in wanted.metrics.criteria if each.bias is not None]
    parts = [
        _TASK,
        f"# The rubric\n\n{rubric_text(wanted.rubric)}",
        "\n".join(["# Where they differ\n", *(lines or ["- they prefer different responses"])]),
        _samples_text(wanted.rubric, wanted.cases),
        *_earlier_text(wanted.earlier),
        f"# Your reply\n\nReply with one JSON object and nothing else, in this form:\n\n{_FORM}",
    ]
    return "\n\n".join(parts)


def _samples_text(rubric: Rubric, cases: Sequence[GoldCase]) -> str:
    scales = gold_scales(rubric)
    wrong = sorted(cases, key=lambda case: (-loss_of(case, scales), case.id))[:_SHOWN]
    texts = [
        {
            **proposals.judged_texts(case),
            **{f"judge on {name}": why for name, why in case.verdict.reasoning.items()},
            **{f"people on {name or 'it'}": why for name, why in case.comments.items()},
        }
        for case in wrong
    ]
    verdicts = [proposals.verdicts_text(case, list(scales)) for case in wrong]
    return proposals.quoted_samples("Samples, the furthest apart first.", "Sample", texts, verdicts)


def _earlier_text(rounds: Sequence[Round]) -> list[str]:
    if not rounds:
        return []
    lines = [f"- {each.hypothesis or each.kind}: {_outcome(each)}" for each in rounds]
    return ["\n".join(["# What was tried already", "", *lines])]


def _outcome(made: Round) -> str:
    """Describe a round without its result on the select part, which no proposal may use."""
    if made.tune is None:
        return f"refused, {made.reason}"
    decided = "kept" if made.kept else "refused"
    return f"{decided}; where it was made, {made.tune.gain.sentence}"


def read_change(text: str, rubric: Rubric) -> Proposal | Defect:
    """Read a model's reply; only the wording of one criterion is ever taken from it."""
    body = text.strip()
    if body.startswith("```"):
        body = body.partition("\n")[2].rpartition("```")[0]
    try:
        change = msgspec.json.decode(body, type=_Change)
    except msgspec.ValidationError as error:
        return Defect(f"the reply isn't in the form asked for: {error}")
    except msgspec.DecodeError:
        return Defect("the reply isn't one JSON object")
    criterion = rubric.criterion(change.criterion)
    if criterion is None:
        known = ", ".join(each.id for each in rubric.criteria)
        return Defect(f"`criterion` must be one of {known}")
    changed = _changed(criterion, change)
    if changed == criterion:
        return Defect("nothing is changed; give a new definition, or levels with new meanings")
    if isinstance(changed, Defect):
        return changed
    meanings = [each.meaning for each in changed.levels]
    return Proposal(
        key=f"model {criterion.id} {changed.definition} {meanings}",
        kind="model",
        criterion=criterion.id,
        hypothesis=" ".join(change.hypothesis.split())[:_MAX_LENGTH],
        rubric=proposals.replaced(rubric, changed),
    )


def _changed(criterion: Criterion, change: _Change) -> Criterion | Defect:
    changed = criterion
    if change.definition is not None:
        lines = (line.strip() for line in change.definition.strip().split("\n"))
        changed = msgspec.structs.replace(changed, definition="\n".join(lines))
    levels = list(criterion.levels)
    for key, meaning in (change.levels or {}).items():
        place = _level_place(criterion, key)
        if place is None:
            known = ", ".join(f'"{show_number(each.low)}"' for each in levels) or "none"
            return Defect(f"`{criterion.id}` has no level `{key}`; its levels are {known}")
        levels[place] = msgspec.structs.replace(levels[place], meaning=" ".join(meaning.split()))
    return msgspec.structs.replace(changed, levels=tuple(levels))


def _level_place(criterion: Criterion, key: str) -> int | None:
    """Return the index of the level that a score belongs to."""
    try:
        score = float(key)
    except ValueError:
        return None
    places = (i for i, level in enumerate(criterion.levels) if level.low <= score <= level.high)
    return next(places, None)
