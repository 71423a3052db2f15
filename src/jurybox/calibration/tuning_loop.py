"""The tuning loop: propose, change, measure, and keep what helps on unseen samples.

A generator without I/O: it yields requests to judge samples or to propose a change.
"""

import difflib
from collections.abc import Generator, Mapping, Sequence
from typing import Annotated, Final, Literal

import msgspec

from jurybox.calibration import rubric_changes
from jurybox.calibration.calibration_record import Agreement, Gain, Round, RoundResult, Tuning
from jurybox.calibration.gold import PARTS, GoldCase, Part, gold_scales, loss_of, losses
from jurybox.calibration.judge_comparison import Options, clusters_of, compare, doubt_of
from jurybox.calibration.proposals import Proposal, propose
from jurybox.documents.numbers import show_number
from jurybox.judging.flow import Answer as ModelAnswer
from jurybox.judging.flow import Defect, Flow, ModelRequest, ReaskPolicy, ask
from jurybox.judging.prompts import rubric_text
from jurybox.rubric import render_rubric
from jurybox.rubric.rubric_model import Criterion, Generation, Rubric
from jurybox.sample import Turn
from jurybox.statistics.paired_comparison import PairedComparison, compare_paired

_BINARY: Final = frozenset({0.0, 1.0})


class ToJudge(msgspec.Struct, frozen=True, kw_only=True):
    """A request to judge a part by a rubric; ``round`` 0 is the original rubric."""

    rubric: Rubric
    part: Part
    round: int


class JudgedPart(msgspec.Struct, frozen=True, kw_only=True):
    """The judged samples of a part, and their run."""

    cases: tuple[GoldCase, ...]
    run_id: str


class ToPropose(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a model's proposal, given the disagreements on the tune part."""

    rubric: Rubric
    cases: tuple[GoldCase, ...]
    metrics: Agreement
    earlier: tuple[Round, ...]
    round: int


class Unusable(msgspec.Struct, frozen=True, kw_only=True):
    """A proposal that can't be used, and why."""

    reason: str


Request = ToJudge | ToPropose
Answer = JudgedPart | Proposal | Unusable
Loop = Generator[Request, Answer, "Tuned"]


class Tuned(msgspec.Struct, frozen=True, kw_only=True):
    """The result: the new rubric if a change was kept, and its agreement on the report part."""

    winner: Rubric | None
    metrics: Agreement
    tuning: Tuning
    report_run: str


class LoopOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the loop.

    ``level`` is for reported intervals; intervals that decide a round are wider. With ``model``,
    every second round asks a model for a change. ``narrow`` means that all judges are asked narrow
    questions, which contain only the rubric's levels.
    """

    rounds: int
    level: float = 0.95
    seed: int = 0
    model: bool = False
    narrow: bool = False

    @property
    def deciding(self) -> float:
        """The level of the intervals that decide a round, Bonferroni-corrected for all rounds."""
        return 1 - (1 - self.level) / self.rounds


class _Best(msgspec.Struct, frozen=True, kw_only=True):
    """The best rubric so far, and the cases that were judged by it."""

    rubric: Rubric
    tune: tuple[GoldCase, ...]
    select: tuple[GoldCase, ...]


def improve(base: Rubric, sizes: Mapping[Part, int], options: LoopOptions) -> Loop:
    """Try one change per round, then report on the part that no round used."""
    tune = yield from _judged(ToJudge(rubric=base, part="tune", round=0))
    select = yield from _judged(ToJudge(rubric=base, part="select", round=0))
    best = _Best(rubric=base, tune=tune.cases, select=select.cases)
    version = rubric_changes.next_version(base.version)
    quick = Options(level=options.level, seed=options.seed, worst=0)
    rounds: list[Round] = []
    tried: set[str] = set()
    ended: str | None = None
    for number in range(1, options.rounds + 1):
        metrics = compare(best.tune, best.rubric, quick)
        by, found = yield from _next_change(best, metrics, rounds, frozenset(tried), options)
        if found is None:
            ended = _why_ended(metrics, rounds)
            break
        if isinstance(found, Unusable):
            rounds.append(_unusable(number, by, found))
            continue
        tried.add(found.key)
        made, candidate = yield from _round(number, by, found, best, version, options)
        rounds.append(made)
        if made.kept and candidate is not None:
            best = candidate
            # A change that helped may be tried again; a refused one is not.
            tried.discard(found.key)
    tuning, metrics, run_id = yield from _report(base, best, tuple(rounds), options)
    tuning = msgspec.structs.replace(
        tuning, parts={part: sizes[part] for part in PARTS}, ended=ended
    )
    winner = None if best.rubric is base else best.rubric
    return Tuned(winner=winner, metrics=metrics, tuning=tuning, report_run=run_id)


def _judged(request: ToJudge) -> Generator[Request, Answer, JudgedPart]:
    answer = yield request
    if not isinstance(answer, JudgedPart):
        raise TypeError("samples were to be judged")
    return answer


def _next_change(
    best: _Best,
    metrics: Agreement,
    rounds: Sequence[Round],
    tried: frozenset[str],
    options: LoopOptions,
) -> Generator[Request, Answer, tuple[Literal["rule", "model"], Proposal | Unusable | None]]:
    """Return the next change and its source; every second one is the model's, if there is one."""
    by_rule = propose(best.rubric, best.tune, metrics, tried, narrow=options.narrow)
    is_models = options.model and (len(rounds) % 2 == 1 or by_rule is None)
    if not is_models or not metrics.loss:
        return "rule", by_rule
    answer = yield ToPropose(
        rubric=best.rubric,
        cases=best.tune,
        metrics=metrics,
        earlier=tuple(rounds),
        round=len(rounds) + 1,
    )
    if isinstance(answer, JudgedPart):
        raise TypeError("expected a proposed change")
    if isinstance(answer, Proposal) and answer.key in tried:
        return "model", Unusable(reason="the same change was refused before")
    return "model", answer


def _why_ended(metrics: Agreement, rounds: Sequence[Round]) -> str:
    if not metrics.loss:
        return "judge and people agree on every sample of the tune part: nothing to change"
    if rounds:
        return "no rule has another change to try"
    return "judge and people differ, but no rule has a change for their differences"


def _unusable(number: int, by: Literal["rule", "model"], found: Unusable) -> Round:
    return Round(
        number=number,
        by=by,
        kind="model",
        criterion=None,
        hypothesis="",
        change="",
        kept=False,
        reason=f"the proposal can't be used: {found.reason}",
    )


def _round(
    number: int,
    by: Literal["rule", "model"],
    proposal: Proposal,
    best: _Best,
    version: str,
    options: LoopOptions,
) -> Generator[Request, Answer, tuple[Round, _Best | None]]:
    """Measure one change; return the round, and the new best rubric if it was kept."""
    rubric = rubric_changes.written(msgspec.structs.replace(proposal.rubric, version=version))
    made = Round(
        number=number,
        by=by,
        kind=proposal.kind,
        criterion=proposal.criterion,
        hypothesis=proposal.hypothesis,
        change=_diff(best.rubric, proposal.rubric),
        kept=False,
        reason="a document can't express the change: it would be read back differently",
    )
    if rubric is None:
        return made, None

    def trial(before: Sequence[GoldCase], after: JudgedPart) -> RoundResult:
        level, seed = options.deciding, options.seed
        gain = gain_of(before, after.cases, rubric, level=level, seed=seed)
        quick = Options(level=options.level, seed=seed, worst=0)
        metrics = compare(after.cases, rubric, quick).criteria
        return RoundResult(run_id=after.run_id, gain=gain, criteria=metrics)

    tune = yield from _judged(ToJudge(rubric=rubric, part="tune", round=number))
    made = msgspec.structs.replace(made, tune=trial(best.tune, tune))
    if made.tune is None or not _nearer(made.tune.gain):
        reason = "no closer to people on the tune part, so the select part wasn't judged"
        return msgspec.structs.replace(made, reason=reason), None
    select = yield from _judged(ToJudge(rubric=rubric, part="select", round=number))
    chosen = trial(best.select, select)
    kept, reason = _verdict(chosen.gain)
    made = msgspec.structs.replace(made, select=chosen, kept=kept, reason=reason)
    return made, _Best(rubric=rubric, tune=tune.cases, select=select.cases) if kept else None


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
    first, second = losses(before, scales), losses(after, scales)
    shared = [case for case in before if case.id in second]
    a = [first[case.id] for case in shared]
    b = [second[case.id] for case in shared]
    made = compare_paired(
        a,
        b,
        binary=_BINARY.issuperset((*a, *b)),
        clusters=clusters_of(shared),
        level=level,
        seed=seed,
    )
    gain = Gain(
        n=made.n,
        before=made.mean_a,
        after=made.mean_b,
        difference=made.difference,
        interval=made.interval,
        clear=made.verdict == "lower",
        sentence="",
    )
    return msgspec.structs.replace(gain, sentence=_sentence(gain, made))


def _sentence(gain: Gain, made: PairedComparison) -> str:
    reason = made.reason
    if gain.before is None or gain.after is None or gain.difference is None:
        return reason or "nothing was judged by both"
    moved = f"distance from people {gain.before:.3f} before, {gain.after:.3f} after"
    if gain.interval is None:
        return f"{moved} ({reason})"
    ends = f"{gain.interval.low:+.3f} to {gain.interval.high:+.3f}"
    return f"{moved}, difference {gain.difference:+.3f} ({ends}, {gain.n} samples{doubt_of(made)})"


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


def _report(
    base: Rubric, best: _Best, rounds: tuple[Round, ...], options: LoopOptions
) -> Generator[Request, Answer, tuple[Tuning, Agreement, str]]:
    """Judge the report part by the original rubric, and by the best rubric if they differ."""
    whole = Options(level=options.level, seed=options.seed)
    first = yield from _judged(ToJudge(rubric=base, part="report", round=0))
    before = compare(first.cases, base, whole)
    tuning = Tuning(
        parts={},
        level=options.deciding,
        rounds=rounds,
        ended=None,
        base_version=base.version,
        base_sha256=base.sha256,
        before=before,
    )
    if best.rubric is base:
        return tuning, before, first.run_id
    number = max(each.number for each in rounds if each.kept)
    last = yield from _judged(ToJudge(rubric=best.rubric, part="report", round=number))
    gain = gain_of(first.cases, last.cases, best.rubric, level=options.level, seed=options.seed)
    metrics = compare(last.cases, best.rubric, whole)
    return msgspec.structs.replace(tuning, gain=gain), metrics, last.run_id


_SHOWN: Final = 8
_MAX_LENGTH: Final = 2000
_POLICY: Final = ReaskPolicy(reasks=2)
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
    """A model's reply."""

    hypothesis: Annotated[str, msgspec.Meta(pattern=r"\S")]
    criterion: str
    definition: _Text | None = None
    levels: dict[str, _Text] | None = None


def suggest(model: str, wanted: ToPropose) -> Flow[Proposal | Unusable]:
    """Ask a model for one change; after an unusable reply, state its defect and ask again."""
    if wanted.rubric.template is not None:
        return Unusable(reason="the rubric has its own judge prompt, which no model rewrites")
    request = ModelRequest(
        model=model,
        generation=_GENERATION,
        messages=(Turn(role="user", content=prompt_of(wanted)),),
    )
    answer = yield from ask(request, lambda text: read_change(text, wanted.rubric), _POLICY)
    if isinstance(answer, ModelAnswer):
        return answer.value
    return Unusable(reason=answer.reason)


def prompt_of(wanted: ToPropose) -> str:
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
            **rubric_changes.judged_texts(case),
            **{f"judge on {name}": why for name, why in case.verdict.reasoning.items()},
            **{f"people on {name or 'it'}": why for name, why in case.comments.items()},
        }
        for case in wrong
    ]
    verdicts = [rubric_changes.verdicts_text(case, list(scales)) for case in wrong]
    return rubric_changes.quoted_samples(
        "Samples, the furthest apart first.", "Sample", texts, verdicts
    )


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
        rubric=rubric_changes.replaced(rubric, changed),
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
