"""One evaluation, from names and texts to a report."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from jurybox.errors import InputError
from jurybox.text_format import listed
from jurybox.wiring import load_rubric, read_settings

if TYPE_CHECKING:
    from jurybox.engine.driver import OnExchange
    from jurybox.judging.evaluation_report import EvaluationReport
    from jurybox.judging.safety import SafetyFinding
    from jurybox.rubric import Rubric
    from jurybox.sample import Sample, Turn
    from jurybox.scoring.rules import AutomatedReport

T = TypeVar("T")

CHECKLIST = "bias-awareness"


def evaluate(  # noqa: PLR0913 - the parts of an evaluation, all by keyword
    *,
    rubric: "str | os.PathLike[str] | Rubric",
    task: str,
    response: str,
    response_b: str | None = None,
    reference: str | None = None,
    context: str | None = None,
    messages: "Sequence[Turn]" = (),
    judges: str | Sequence[str] = (),
    votes: int | None = None,
    base_url: str | None = None,
    on_exchange: "OnExchange | None" = None,
    on_default_judge: Callable[[str], object] | None = None,
) -> "EvaluationReport":
    """Judge one response, or compare two, and return the report.

    Where the rubric has rules of its own for every criterion, they give the scores of a single
    response, and no judge is needed; what judges say then stands beside them (`RulesReport`).

    Args:
        rubric: a name, a path, or a rubric.
        task: what was asked of the system under test.
        response: what it said.
        response_b: what another one said, to compare the two.
        reference: the right answer; then every response is scored against it.
        context: what the system under test was given to work with.
        messages: the conversation before the task.
        judges: models such as ``openai/gpt-4.1-2025-04-14``; several share the votes. None are
            needed where the rubric's rules score everything; else, where none is named, the
            embedded one judges if it is on this machine.
        votes: how many votes; the rubric's number otherwise.
        base_url: the address of an OpenAI-compatible endpoint.
        on_exchange: is called with every request and what came of it.
        on_default_judge: is called with the embedded judge's name before it judges unnamed.

    Raises:
        InputError: something that was given can't be used.
        RubricError: the rubric document has faults.

    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise InputError("an event loop is running already", "use `await aevaluate(...)` there")
    return asyncio.run(
        _interruptibly(
            aevaluate(
                rubric=rubric,
                task=task,
                response=response,
                response_b=response_b,
                reference=reference,
                context=context,
                messages=messages,
                judges=judges,
                votes=votes,
                base_url=base_url,
                on_exchange=on_exchange,
                on_default_judge=on_default_judge,
            )
        )
    )


async def _interruptibly(work: Awaitable[T]) -> T:
    """Do some work in a loop that wakes now and then.

    A Ctrl-C that comes in the very moment in which the loop goes to sleep is heard only when it
    wakes, and a function that hangs would never wake it.
    """
    beat = asyncio.create_task(_beat())
    try:
        return await work
    finally:
        beat.cancel()


async def _beat() -> None:
    while True:  # noqa: ASYNC110 - there is no event to wait for, that is the point
        await asyncio.sleep(1)


async def aevaluate(  # noqa: PLR0913 - the same as evaluate
    *,
    rubric: "str | os.PathLike[str] | Rubric",
    task: str,
    response: str,
    response_b: str | None = None,
    reference: str | None = None,
    context: str | None = None,
    messages: "Sequence[Turn]" = (),
    judges: str | Sequence[str] = (),
    votes: int | None = None,
    base_url: str | None = None,
    on_exchange: "OnExchange | None" = None,
    on_default_judge: Callable[[str], object] | None = None,
) -> "EvaluationReport":
    """Do what ``evaluate`` does, inside an event loop."""
    from jurybox.rubric import Rubric
    from jurybox.sample import Response, Sample
    from jurybox.scoring.by_rules import report_by_rules

    names = [judges] if isinstance(judges, str) else list(judges)
    used = rubric if isinstance(rubric, Rubric) else load_rubric(rubric)
    count = used.protocol.votes if votes is None else votes
    if count < len(set(names)):
        problem = f"{len(set(names))} judges can't share {count} votes"
        raise InputError(problem, "ask for at least one vote a judge")
    if reference is not None and not reference.strip():
        raise InputError("the reference answer is empty", "give one, or leave it out")
    sample = Sample(
        task=task,
        response=Response(text=response),
        response_b=None if response_b is None else Response(text=response_b),
        reference=reference,
        context=context,
        messages=tuple(messages),
    )
    scored = _score(used, sample)
    if not names and scored is not None:
        return report_by_rules(used, *scored)
    announce = None if names else on_default_judge
    names = names or _default_judge(used, sample)
    panel = _Panel(
        names=names, votes=count, base_url=base_url, on_exchange=on_exchange, announce=announce
    )
    judge = await _judge(used, sample, panel)
    return judge if scored is None else report_by_rules(used, *scored, judge)


class _Panel(msgspec.Struct, frozen=True, kw_only=True):
    """Who judges, how often and where."""

    names: list[str]
    votes: int
    base_url: str | None
    on_exchange: "OnExchange | None"
    announce: Callable[[str], object] | None


async def _judge(rubric: "Rubric", sample: "Sample", panel: _Panel) -> "EvaluationReport":
    from jurybox.engine.caller import Callers
    from jurybox.engine.driver import drive
    from jurybox.judging.jury import jury
    from jurybox.judging.protocol import Judging
    from jurybox.wiring import build_models

    stop = rubric.protocol.stop_when_decided
    checklist = load_rubric(CHECKLIST)
    judging = Judging(rubric=rubric, checklist=checklist, stop_when_decided=stop)
    models = build_models(panel.names, read_settings(), panel.base_url)
    # Only now is it known that it can judge.
    if panel.announce is not None:
        panel.announce(panel.names[0])
    try:
        flow = jury(judging, sample, panel.names, panel.votes)
        return await drive(flow, Callers().route(models), on_exchange=panel.on_exchange)
    finally:
        for model in models.values():
            await model.aclose()


def _score(
    rubric: "Rubric", sample: "Sample"
) -> "tuple[AutomatedReport, tuple[SafetyFinding, ...]] | None":
    """Score one response by the rubric's rules; None where they don't score all that counts."""
    from jurybox.judging.safety import scan
    from jurybox.scoring.rules import compile_rules, score_by_rules

    compiled = compile_rules(rubric)
    if compiled is None or sample.response_b is not None:
        return None
    text = sample.response.text
    findings = scan(text)
    automated = score_by_rules(
        compiled, task=sample.task, response=text, messages=sample.messages, findings=findings
    )
    return None if automated.overall is None else (automated, findings)


def _default_judge(rubric: "Rubric", sample: "Sample") -> list[str]:
    """Return the embedded judge, where it is on this machine.

    Raises:
        InputError: it isn't, and no rule could score the sample.

    """
    from jurybox.wiring import embedded_judge, no_judge_error

    name = embedded_judge()
    if name is not None:
        return [name]
    problem, hint = "no judge was given", "name a model, such as `openai/gpt-4.1-2025-04-14`"
    if any(criterion.rules is not None for criterion in rubric.criteria):
        why = missing_rules(rubric)
        if sample.response_b is not None:
            why = f"`{rubric.id}` has rules that score one response at a time"
        problem = f"{problem}, and {why}"
    raise no_judge_error(problem, hint)


def missing_rules(rubric: "Rubric") -> str | None:
    """Say which criteria keep the rubric's rules from scoring a response; None where none does."""
    counting = [each for each in rubric.criteria if each.weight]
    names = [each.id for each in counting if each.rules is None]
    if not names:
        return None
    if len(names) == len(counting):
        return f"`{rubric.id}` has no rules that score by themselves"
    verb = "has" if len(names) == 1 else "have"
    return f"{listed(names)} of `{rubric.id}` {verb} no rules that score by themselves"
